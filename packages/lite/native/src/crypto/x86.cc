// AES-NI and PCLMULQDQ.
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "gcm.h"

#define WITH_AES __attribute__((target("aes,pclmul,ssse3,sse4.1")))

namespace mycelia::lite {

namespace {

constexpr int kLanes = 8;  // blocks at work: as many as hide the latency of a round

WITH_AES void stream(const AesKey& key, const uint8_t counter[kAesBlock], uint8_t* data, size_t size) {
  __m128i rounds[15];
  for (int i = 0; i <= key.count; ++i) rounds[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key.rounds[i]));
  const __m128i swap = _mm_set_epi8(12, 13, 14, 15, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);  // the number little endian
  __m128i number = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(counter)), swap);
  const __m128i one = _mm_set_epi32(1, 0, 0, 0);
  for (size_t at = 0; at < size; at += kLanes * kAesBlock) {
    __m128i lanes[kLanes];
    for (__m128i& lane : lanes) {
      lane = _mm_xor_si128(_mm_shuffle_epi8(number, swap), rounds[0]);
      number = _mm_add_epi32(number, one);
    }
    for (int r = 1; r < key.count; ++r)
      for (__m128i& lane : lanes) lane = _mm_aesenc_si128(lane, rounds[r]);
    for (__m128i& lane : lanes) lane = _mm_aesenclast_si128(lane, rounds[key.count]);
    const size_t rest = std::min<size_t>(size - at, kLanes * kAesBlock);
    if (rest == kLanes * kAesBlock) {
      __m128i* const out = reinterpret_cast<__m128i*>(data + at);
      for (int i = 0; i < kLanes; ++i) _mm_storeu_si128(out + i, _mm_xor_si128(_mm_loadu_si128(out + i), lanes[i]));
    } else {
      uint8_t bytes[kLanes * kAesBlock];
      std::memcpy(bytes, lanes, sizeof(bytes));
      for (size_t i = 0; i < rest; ++i) data[at + i] ^= bytes[i];
    }
  }
}

// Blocks with their bytes turned are polynomials whose bits are mirrored: the product is shifted by one, then reduced.
WITH_AES __m128i product(__m128i a, __m128i b) {
  __m128i low = _mm_clmulepi64_si128(a, b, 0x00), high = _mm_clmulepi64_si128(a, b, 0x11);
  const __m128i middle = _mm_xor_si128(_mm_clmulepi64_si128(a, b, 0x10), _mm_clmulepi64_si128(a, b, 0x01));
  low = _mm_xor_si128(low, _mm_slli_si128(middle, 8));
  high = _mm_xor_si128(high, _mm_srli_si128(middle, 8));
  // 256 bits to the left by one
  const __m128i from_low = _mm_srli_epi64(low, 63), from_high = _mm_srli_epi64(high, 63);
  low = _mm_or_si128(_mm_slli_epi64(low, 1), _mm_slli_si128(from_low, 8));
  high = _mm_or_si128(_mm_or_si128(_mm_slli_epi64(high, 1), _mm_slli_si128(from_high, 8)), _mm_srli_si128(from_low, 8));
  // modulo x^128 + x^7 + x^2 + x + 1, mirrored
  __m128i t = _mm_xor_si128(_mm_xor_si128(_mm_slli_epi64(low, 63), _mm_slli_epi64(low, 62)), _mm_slli_epi64(low, 57));
  low = _mm_xor_si128(low, _mm_slli_si128(t, 8));
  const __m128i spill = _mm_srli_si128(t, 8);
  t = _mm_xor_si128(_mm_xor_si128(_mm_srli_epi64(low, 1), _mm_srli_epi64(low, 2)), _mm_srli_epi64(low, 7));
  return _mm_xor_si128(_mm_xor_si128(high, low), _mm_xor_si128(t, spill));
}

WITH_AES void hash(const uint8_t h[kAesBlock], const uint8_t* data, size_t size, uint8_t sum[kAesBlock]) {
  const __m128i turn = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m128i factor = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(h)), turn);
  __m128i total = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sum)), turn);
  for (size_t at = 0; at < size; at += kAesBlock) {
    uint8_t block[kAesBlock] = {};
    std::memcpy(block, data + at, std::min(size - at, kAesBlock));
    const __m128i x = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block)), turn);
    total = product(_mm_xor_si128(total, x), factor);
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(sum), _mm_shuffle_epi8(total, turn));
}

const GcmFunctions kFunctions = {stream, hash};

}  // namespace

const GcmFunctions* native_gcm() {
  constexpr unsigned kPclmul = 1u << 1, kSsse3 = 1u << 9, kSse41 = 1u << 19, kAes = 1u << 25, kAll = kPclmul | kSsse3 | kSse41 | kAes;
  unsigned a, b, c, d;  // the compiler's own function brings 4 KB of tables of processors into every program
  return __get_cpuid(1, &a, &b, &c, &d) && (c & kAll) == kAll ? &kFunctions : nullptr;
}

}  // namespace mycelia::lite

#endif
