// The 16-bit floats: float16 (IEEE 754 binary16) and bfloat16 (the upper half of a float32), to and from
// float32: vectors in registers, and whole arrays. Rounding is to nearest, ties to even; NaN stays NaN, and becomes 0x7fc0
// as bfloat16.
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

constexpr bool is_16_bits(int32_t dtype) { return dtype == MYC_F16 || dtype == MYC_BF16; }

// Kernels of float32 take the 16-bit floats, too, unless the library is built without them: then its host gives them none.
#if defined(MYC_WITHOUT_16_BITS)
constexpr bool kTakes16Bits = false;
#else
constexpr bool kTakes16Bits = true;
#endif

// Returns body(T{}) with T = Half or Brain for these dtypes and float for any other.
template <class Body>
MYC_INLINE auto with_float_type(int32_t dtype, const Body& body) {
  if constexpr (kTakes16Bits) {
    if (dtype == MYC_F16) return body(Half{});
    if (dtype == MYC_BF16) return body(Brain{});
  }
  return body(float{});
}

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

// ---- one number ----

MYC_INLINE float widen_one(float x) { return x; }
MYC_INLINE float widen_one(Brain x) { return float_of(static_cast<uint32_t>(x.bits) << 16); }
MYC_INLINE float widen_one(Half h) {
#if defined(__F16C__)
  return _cvtsh_ss(h.bits);
#else
  const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000) << 16, magnitude = h.bits & 0x7fff;
  if (magnitude >= 0x7c00) return float_of(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  // A half's bits in the place of a float's stand for the number times 2^-112, also the denormal ones.
  return float_of(bits_of(float_of(magnitude << 13) * 0x1p112f) | sign);
#endif
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

// ---- a vector ----

typedef uint16_t u16h __attribute__((vector_size(MYC_VECTOR_BYTES / 2)));  // as many as f32v holds

MYC_INLINE f32v widened(u16h x, Brain) {
#if MYC_VECTOR_BYTES == 64  // each number into the upper half of a lane, 0 into the lower one
  const __m512i from = _mm512_set_epi16(15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10, 9, 9, 8, 8,  //
                                        7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
  return (f32v)_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, from, _mm512_castsi256_si512((__m256i)x));
#elif MYC_VECTOR_BYTES == 32
  return (f32v)_mm256_slli_epi32(_mm256_cvtepu16_epi32((__m128i)x), 16);
#else
  return (f32v)(__builtin_convertvector(x, u32v) << 16);
#endif
}
MYC_INLINE f32v widened(u16h x, Half) {
#if MYC_VECTOR_BYTES == 64
  return (f32v)_mm512_cvtph_ps((__m256i)x);
#elif MYC_VECTOR_BYTES == 32 && defined(__F16C__)
  return (f32v)_mm256_cvtph_ps((__m128i)x);
#else
  f32v y;
  for (int i = 0; i < kLanes; ++i) y[i] = widen_one(Half{x[i]});
  return y;
#endif
}

// Lanes whose upper halves are x as bfloat16. Of two equally near numbers the even one: the last bit that stays is put
// into the lowest one, then a bit less than half is added.
MYC_INLINE u32v rounded_upper(f32v x) {
#if MYC_VECTOR_BYTES == 64
  const __m512i bits = (__m512i)x, one = _mm512_set1_epi32(1);
  const __m512i marked = _mm512_ternarylogic_epi32(bits, _mm512_srli_epi32(bits, 16), one, 0xf8);  // a | (b & c)
  const __mmask16 is_number = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_ORD_Q);
  return (u32v)_mm512_mask_add_epi32(_mm512_set1_epi32(0x7fc00000), is_number, marked, _mm512_set1_epi32(0x7fff));
#else
  const u32v bits = (u32v)x;
  return (u32v)select(is_nan(x), splat(0x7fc00000), (i32v)((bits | ((bits >> 16) & 1)) + 0x7fff));
#endif
}

// The same for lanes none of which is NaN.
MYC_INLINE u32v rounded_upper_of_numbers(f32v x) {
#if MYC_VECTOR_BYTES == 64
  const __m512i bits = (__m512i)x, up = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
  const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  return (u32v)_mm512_mask_sub_epi32(up, odd, up, _mm512_set1_epi32(-1));
#else
  const u32v bits = (u32v)x;
  return bits + ((bits >> 16) & 1) + 0x7fff;
#endif
}

MYC_INLINE u16h upper_halves(u32v y) {
#if MYC_VECTOR_BYTES == 64
  const __m512i upper = _mm512_set_epi16(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                                         31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return (u16h)_mm512_castsi512_si256(_mm512_permutexvar_epi16(upper, (__m512i)y));
#elif MYC_VECTOR_BYTES == 32
  const __m256i upper = (__m256i)(y >> 16), pairs = _mm256_packus_epi32(upper, upper);
  return (u16h)_mm256_castsi256_si128(_mm256_permute4x64_epi64(pairs, 8));
#else
  return __builtin_convertvector(y >> 16, u16h);
#endif
}
MYC_INLINE u16h narrowed(f32v x, Brain) { return upper_halves(rounded_upper(x)); }
MYC_INLINE u16h narrowed(f32v x, Half) {
#if MYC_VECTOR_BYTES == 64
  return (u16h)_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT);
#elif MYC_VECTOR_BYTES == 32 && defined(__F16C__)
  return (u16h)_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT);
#else
  u16h y;
  for (int i = 0; i < kLanes; ++i) y[i] = narrow_one(x[i]).bits;
  return y;
#endif
}

// One number into memory.
MYC_INLINE void store_one(float* p, float x) { *p = x; }
template <class T>
MYC_INLINE void store_one(T* p, float x) {
  p->bits = narrowed(splat(x), T{})[0];
}

// The number that a vector of 16-bit floats would keep of each lane.
template <class T>
MYC_INLINE f32v rounded_to(f32v x) {
  return widened(narrowed(x, T{}), T{});
}
template <>
MYC_INLINE f32v rounded_to<Brain>(f32v x) {
  return (f32v)(rounded_upper(x) & 0xffff0000u);
}

// `load` and `store` of vec.h for memory of 16-bit floats.
template <class T>
MYC_INLINE f32v load_16_bits(const T* p) {
  u16h v;
  memcpy(&v, p, sizeof(v));
  return widened(v, T{});
}
template <class T>
MYC_INLINE void store_16_bits(T* p, f32v x) {
  const u16h v = narrowed(x, T{});
  memcpy(p, &v, sizeof(v));
}
template <class T>
MYC_INLINE f32v load_16_bits_partial(const T* p, int64_t n) {
  u16h v = {};
#if MYC_VECTOR_BYTES == 64
  v = (u16h)_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p);
#else
  for (int64_t i = 0; i < n; ++i) v[i] = p[i].bits;
#endif
  return widened(v, T{});
}
template <class T>
MYC_INLINE void store_16_bits_partial(T* p, f32v x, int64_t n) {
  const u16h v = narrowed(x, T{});
#if MYC_VECTOR_BYTES == 64
  _mm256_mask_storeu_epi16(p, (__mmask16)((1u << n) - 1), (__m256i)v);
#else
  for (int64_t i = 0; i < n; ++i) p[i].bits = v[i];
#endif
}
MYC_INLINE f32v load(const Half* p) { return load_16_bits(p); }
MYC_INLINE f32v load(const Brain* p) { return load_16_bits(p); }
MYC_INLINE void store(Half* p, f32v x) { store_16_bits(p, x); }
MYC_INLINE void store(Brain* p, f32v x) { store_16_bits(p, x); }
// `store` of numbers: no lane is NaN.
MYC_INLINE void store_numbers(float* p, f32v x) { store(p, x); }
MYC_INLINE void store_numbers(Half* p, f32v x) { store(p, x); }
MYC_INLINE void store_numbers(Brain* p, f32v x) {
  const u16h v = upper_halves(rounded_upper_of_numbers(x));
  memcpy(p, &v, sizeof(v));
}
MYC_INLINE f32v load_partial(const Half* p, int64_t n) { return load_16_bits_partial(p, n); }
MYC_INLINE f32v load_partial(const Brain* p, int64_t n) { return load_16_bits_partial(p, n); }
MYC_INLINE void store_partial(Half* p, f32v x, int64_t n) { store_16_bits_partial(p, x, n); }
MYC_INLINE void store_partial(Brain* p, f32v x, int64_t n) { store_16_bits_partial(p, x, n); }

// ---- arrays ----

template <class T>
inline void widen(const T* x, float* y, int64_t n) {
  map(x, y, n, [](f32v v) { return v; });
}
template <class T>
inline void narrow(const float* x, T* y, int64_t n) {
  map(x, y, n, [](f32v v) { return v; });
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
