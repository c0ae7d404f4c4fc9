// The 16-bit floats: float16 (IEEE 754 binary16) and bfloat16 (the upper half of a float32), to and from
// float32. Rounding is to nearest, ties to even; NaN stays NaN.
#ifndef MYCELIA_HALF_H_
#define MYCELIA_HALF_H_

#include "mycelia/kernels.h"
#include "simd/vec.h"

namespace mycelia::MYC_ISA {

struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

constexpr int64_t kHalfBlock = 512;  // floats that wait between two conversions: 2 KB of L1

MYC_INLINE float float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
MYC_INLINE uint32_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return bits;
}

// ---- 16-bit floats to and from float32 ----

inline void widen(const Brain* x, float* y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i)));
    _mm512_storeu_si512(y + i, _mm512_slli_epi32(wide, 16));
  }
#endif
  for (; i < n; ++i) y[i] = float_of(static_cast<uint32_t>(x[i].bits) << 16);
}

inline void narrow(const float* x, Brain* y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  const __m512i half = _mm512_set1_epi32(0x7fff), one = _mm512_set1_epi32(1), quiet = _mm512_set1_epi32(0x40);
  for (; i + 16 <= n; i += 16) {
    const __m512 v = _mm512_loadu_ps(x + i);
    const __m512i bits = _mm512_castps_si512(v), upper = _mm512_srli_epi32(bits, 16);
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, half), _mm512_and_si512(upper, one));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i rounded = _mm512_mask_or_epi32(_mm512_srli_epi32(sum, 16), nan, upper, quiet);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), _mm512_cvtepi32_epi16(rounded));
  }
#endif
  for (; i < n; ++i) {
    const uint32_t b = bits_of(x[i]);
    const uint32_t rounded = (b + 0x7fff + ((b >> 16) & 1)) >> 16;
    y[i].bits =
        static_cast<uint16_t>((b & 0x7fffffff) > 0x7f800000 ? (b >> 16) | 0x40 : rounded);  // NaN stays NaN
  }
}

MYC_INLINE float widen_one(Half h) {
  const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000) << 16, magnitude = h.bits & 0x7fff;
  if (magnitude >= 0x7c00) return float_of(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  // A half's bits in the place of a float's stand for the number times 2^-112, also the denormal ones.
  return float_of(bits_of(float_of(magnitude << 13) * 0x1p112f) | sign);
}

MYC_INLINE Half narrow_one(float x) {
  const uint32_t sign = (bits_of(x) >> 16) & 0x8000, magnitude = bits_of(x) & 0x7fffffff;
  if (magnitude > 0x7f800000) return {static_cast<uint16_t>(sign | 0x7e00)};
  if (magnitude >= 0x477ff000)
    return {static_cast<uint16_t>(sign | 0x7c00)};  // 65520 and above round to infinity
  if (magnitude < 0x38800000) {  // below 2^-14: adding 1/2 leaves the denormal's bits, rounded, at the end
    const uint32_t b = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
    return {static_cast<uint16_t>(sign | b)};
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return {static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13))};
}

inline void widen(const Half* x, float* y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i))));
  }
#endif
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  }
#endif
  for (; i < n; ++i) y[i] = widen_one(x[i]);
}

inline void narrow(const float* x, Half* y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i),
                        _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
#if defined(__F16C__)
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  for (; i < n; ++i) y[i] = narrow_one(x[i]);
}

// A double on its way to 16 bits: cut to float32 with the last bit set where something was lost ("round to
// odd"), so that the second rounding sees on which side of a tie the number lies.
MYC_INLINE float to_odd(double x) {
  const float f = static_cast<float>(x);
  if (static_cast<double>(f) == x || f != f) return f;
  const bool away = fabs(static_cast<double>(f)) > fabs(x);
  return float_of((bits_of(f) - away) | 1);
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_HALF_H_
