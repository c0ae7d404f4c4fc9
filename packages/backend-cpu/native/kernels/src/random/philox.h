// Philox4x32-10 (Salmon et al. 2011) on vectors: kLanes blocks of four words at once, words in the order of their blocks.
#ifndef MYCELIA_PHILOX_H_
#define MYCELIA_PHILOX_H_

#include "simd/vec.h"

namespace mycelia::MYC_ISA {

// Key of a draw: seed = Philox key, offset = high half of the counter; a block's number is the low half.
struct PhiloxKey {
  uint64_t seed, offset;
};

inline PhiloxKey philox_key(const int64_t* key) {
  return {static_cast<uint64_t>(key[0]), static_cast<uint64_t>(key[1])};
}

// High and low words of a * m.
MYC_INLINE void multiply_words(u32v a, uint32_t m, u32v* high, u32v* low) {
#if MYC_VECTOR_BYTES == 64
  const __m512i factor = _mm512_set1_epi32(static_cast<int32_t>(m));
  const __m512i even = _mm512_mul_epu32((__m512i)a, factor);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)a, 32), factor);
  *low = (u32v)_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
  *high = (u32v)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
#elif MYC_VECTOR_BYTES == 32
  const __m256i factor = _mm256_set1_epi32(static_cast<int32_t>(m));
  const __m256i even = _mm256_mul_epu32((__m256i)a, factor);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), factor);
  *low = (u32v)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
  *high = (u32v)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
#else
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t product = static_cast<uint64_t>(a[i]) * m;
    (*high)[i] = static_cast<uint32_t>(product >> 32);
    (*low)[i] = static_cast<uint32_t>(product);
  }
#endif
}

struct PhiloxWords {
  u32v word[4];  // word[w][lane]: word w of block first + lane
};

MYC_INLINE PhiloxWords philox(PhiloxKey key, uint64_t first) {
  const uint32_t low = static_cast<uint32_t>(first);
  u32v c0 = (u32v)iota() + low;
  u32v c1 = ((u32v)(c0 < low) & 1u) + static_cast<uint32_t>(first >> 32);  // with the carry of c0
  u32v c2 = u32v{} + static_cast<uint32_t>(key.offset), c3 = u32v{} + static_cast<uint32_t>(key.offset >> 32);
  uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    u32v high0 = {}, low0 = {}, high1 = {}, low1 = {};
    multiply_words(c0, 0xd2511f53u, &high0, &low0);
    multiply_words(c2, 0xcd9e8d57u, &high1, &low1);
    c0 = high1 ^ c1 ^ k0, c1 = low1;
    c2 = high0 ^ c3 ^ k1, c3 = low0;
    k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
  }
  return {{c0, c1, c2, c3}};
}

constexpr int kPhiloxGroup = 4 * kLanes;  // words that one call of philox makes

// out[4 * lane + w] = word[w][lane]: the order of the stream.  Any 32-bit values, kPhiloxGroup of them.
MYC_INLINE void store_interleaved(const u32v (&word)[4], uint32_t* out) {
#if MYC_VECTOR_BYTES == 64
  typedef __m512i raw;
#define MYC_UNPACK(how, width, a, b) _mm512_unpack##how##_epi##width(a, b)
#elif MYC_VECTOR_BYTES == 32
  typedef __m256i raw;
#define MYC_UNPACK(how, width, a, b) _mm256_unpack##how##_epi##width(a, b)
#endif
#ifdef MYC_UNPACK
  const raw low01 = MYC_UNPACK(lo, 32, (raw)word[0], (raw)word[1]), high01 = MYC_UNPACK(hi, 32, (raw)word[0], (raw)word[1]);
  const raw low23 = MYC_UNPACK(lo, 32, (raw)word[2], (raw)word[3]), high23 = MYC_UNPACK(hi, 32, (raw)word[2], (raw)word[3]);
  const raw block[4] = {MYC_UNPACK(lo, 64, low01, low23), MYC_UNPACK(hi, 64, low01, low23),
                        MYC_UNPACK(lo, 64, high01, high23), MYC_UNPACK(hi, 64, high01, high23)};
#undef MYC_UNPACK
  constexpr int kQuads = MYC_VECTOR_BYTES / 16;  // block[i] holds the blocks 4 q + i
  for (int i = 0; i < 4; ++i) {
    uint32_t quads[kQuads][4];
    memcpy(quads, &block[i], sizeof(quads));
    for (int q = 0; q < kQuads; ++q) memcpy(out + 4 * (4 * q + i), quads[q], 16);
  }
#else
  for (int lane = 0; lane < kLanes; ++lane)
    for (int w = 0; w < 4; ++w) out[4 * lane + w] = word[w][lane];
#endif
}

// The words [4 * first_block, 4 * first_block + kPhiloxGroup) of a draw.
MYC_INLINE void philox_group(PhiloxKey key, uint64_t first_block, uint32_t* out) {
  store_interleaved(philox(key, first_block).word, out);
}

// A word of dropout below this zeroes its element.
inline uint32_t drop_threshold(double p) {
  const double scaled = p * 4294967296.0;
  return scaled >= 4294967295.0 ? 0xffffffffu : static_cast<uint32_t>(scaled);
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_PHILOX_H_
