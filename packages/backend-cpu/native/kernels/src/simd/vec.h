// Vectors of the instruction set's natural width through the compiler's vector extensions: f32v, i32v, u32v.
// Operators (+ - * / < > == & | ^ ~ << >>) work element by element; comparisons give masks (i32v of 0 and -1).
// a * b + c contracts to a fused multiply-add where the target has one.
#ifndef MYCELIA_SIMD_VEC_H_
#define MYCELIA_SIMD_VEC_H_

#include "mycelia/kernels.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define MYC_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define MYC_VECTOR_BYTES 32
#else
#define MYC_VECTOR_BYTES 16
#endif

namespace mycelia::MYC_ISA {

typedef float f32v __attribute__((vector_size(MYC_VECTOR_BYTES)));
typedef int32_t i32v __attribute__((vector_size(MYC_VECTOR_BYTES)));
typedef uint32_t u32v __attribute__((vector_size(MYC_VECTOR_BYTES)));
typedef double f64v __attribute__((vector_size(MYC_VECTOR_BYTES)));
typedef int64_t i64v __attribute__((vector_size(MYC_VECTOR_BYTES)));
typedef float f32h __attribute__((vector_size(MYC_VECTOR_BYTES / 2)));  // half a vector: as many as f64v holds
typedef int32_t i32h __attribute__((vector_size(MYC_VECTOR_BYTES / 2)));

constexpr int kLanes = MYC_VECTOR_BYTES / 4;  // floats in a vector

// ---- construction and memory ----

// A vector with x in every lane.
MYC_INLINE f32v splat(float x) { return x - f32v{}; }  // minus keeps -0
MYC_INLINE i32v splat(int32_t x) { return i32v{} + x; }

MYC_INLINE f32v load(const float* p) {
  f32v v;
  memcpy(&v, p, sizeof(v));  // an unaligned vector load
  return v;
}
MYC_INLINE i32v load(const int32_t* p) {
  i32v v;
  memcpy(&v, p, sizeof(v));
  return v;
}
MYC_INLINE void store(float* p, f32v v) { memcpy(p, &v, sizeof(v)); }
MYC_INLINE void store(int32_t* p, i32v v) { memcpy(p, &v, sizeof(v)); }

// Lane numbers 0, 1, 2, ...
MYC_INLINE i32v iota() {
#if MYC_VECTOR_BYTES == 64
  return i32v{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif MYC_VECTOR_BYTES == 32
  return i32v{0, 1, 2, 3, 4, 5, 6, 7};
#else
  return i32v{0, 1, 2, 3};
#endif
}

// The first n lanes (0 <= n <= kLanes), the rest zero; touches no memory behind them.
MYC_INLINE f32v load_partial(const float* p, int64_t n) {
#if MYC_VECTOR_BYTES == 64
  return (f32v)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#elif MYC_VECTOR_BYTES == 32
  return (f32v)_mm256_maskload_ps(p, (__m256i)(iota() < (int32_t)n));
#else
  f32v v = {};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}
MYC_INLINE void store_partial(float* p, f32v v, int64_t n) {
#if MYC_VECTOR_BYTES == 64
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif MYC_VECTOR_BYTES == 32
  _mm256_maskstore_ps(p, (__m256i)(iota() < (int32_t)n), (__m256)v);
#else
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
#endif
}

// ---- element by element ----

MYC_INLINE f32v select(i32v mask, f32v a, f32v b) { return mask ? a : b; }
MYC_INLINE i32v select(i32v mask, i32v a, i32v b) { return mask ? a : b; }

MYC_INLINE i32v bits(f32v x) { return (i32v)x; }
MYC_INLINE f32v from_bits(i32v x) { return (f32v)x; }
MYC_INLINE i32v is_nan(f32v x) { return x != x; }

MYC_INLINE f32v abs(f32v x) { return from_bits(bits(x) & 0x7fffffff); }
MYC_INLINE f32v copysign(f32v magnitude, f32v sign) {
  return from_bits((bits(magnitude) & 0x7fffffff) | (bits(sign) & INT32_MIN));
}

MYC_INLINE f32v fma(f32v a, f32v b, f32v c) { return a * b + c; }

// One instruction each: b where either is NaN.  For maximum(limit, x) with a constant limit x's NaN survives.
MYC_INLINE f32v max_or_second(f32v a, f32v b) {
#if MYC_VECTOR_BYTES == 64
  return (f32v)_mm512_max_ps((__m512)a, (__m512)b);
#elif MYC_VECTOR_BYTES == 32
  return (f32v)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return a > b ? a : b;
#endif
}
MYC_INLINE f32v min_or_second(f32v a, f32v b) {
#if MYC_VECTOR_BYTES == 64
  return (f32v)_mm512_min_ps((__m512)a, (__m512)b);
#elif MYC_VECTOR_BYTES == 32
  return (f32v)_mm256_min_ps((__m256)a, (__m256)b);
#else
  return a < b ? a : b;
#endif
}

// NaN if either is NaN, as NumPy's maximum and minimum.
MYC_INLINE f32v maximum(f32v a, f32v b) { return select(is_nan(a), a, max_or_second(a, b)); }
MYC_INLINE f32v minimum(f32v a, f32v b) { return select(is_nan(a), a, min_or_second(a, b)); }

MYC_INLINE i32v maximum(i32v a, i32v b) {
#if MYC_VECTOR_BYTES == 64
  return (i32v)_mm512_max_epi32((__m512i)a, (__m512i)b);
#elif MYC_VECTOR_BYTES == 32
  return (i32v)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
  return a > b ? a : b;
#endif
}
MYC_INLINE i32v minimum(i32v a, i32v b) {
#if MYC_VECTOR_BYTES == 64
  return (i32v)_mm512_min_epi32((__m512i)a, (__m512i)b);
#elif MYC_VECTOR_BYTES == 32
  return (i32v)_mm256_min_epi32((__m256i)a, (__m256i)b);
#else
  return a < b ? a : b;
#endif
}

MYC_INLINE f32v sqrt(f32v x) {
#if MYC_VECTOR_BYTES == 64
  return (f32v)_mm512_sqrt_ps((__m512)x);
#elif MYC_VECTOR_BYTES == 32
  return (f32v)_mm256_sqrt_ps((__m256)x);
#else
  for (int i = 0; i < kLanes; ++i) x[i] = sqrtf(x[i]);
  return x;
#endif
}

// To the nearest integer, ties to even.
MYC_INLINE f32v round_even(f32v x) {
#if MYC_VECTOR_BYTES == 64
  return (f32v)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif MYC_VECTOR_BYTES == 32
  return (f32v)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
  const f32v magic = copysign(splat(0x1p23f), x);  // adding 2^23 leaves no bits for a fraction
  return select(abs(x) < 0x1p23f, copysign((x + magic) - magic, x), x);
#endif
}
MYC_INLINE f32v floor(f32v x) {
#if MYC_VECTOR_BYTES == 64
  return (f32v)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif MYC_VECTOR_BYTES == 32
  return (f32v)_mm256_floor_ps((__m256)x);
#else
  const f32v r = round_even(x);
  return copysign(select(r > x, r - 1.0f, r), x);
#endif
}
MYC_INLINE f32v ceil(f32v x) { return -floor(-x); }
MYC_INLINE f32v trunc(f32v x) { return copysign(floor(abs(x)), x); }

MYC_INLINE i32v to_int(f32v x) { return __builtin_convertvector(x, i32v); }  // towards zero
MYC_INLINE f32v to_float(i32v x) { return __builtin_convertvector(x, f32v); }

// ---- across lanes ----

MYC_INLINE float horizontal_sum(f32v v) {
  typedef float quad __attribute__((vector_size(16)));
  quad q[MYC_VECTOR_BYTES / 16];
  memcpy(q, &v, sizeof(v));
  quad s = q[0];
  for (int i = 1; i < MYC_VECTOR_BYTES / 16; ++i) s += q[i];
  return (s[0] + s[2]) + (s[1] + s[3]);
}

// Folds the lanes in halves, `better(a, b)` being a mask of where a stays. Without branches: which lane wins is random.
template <class Better>
MYC_INLINE float fold_lanes(f32v v, const Better& better) {
  typedef float quad __attribute__((vector_size(16)));
  quad q[MYC_VECTOR_BYTES / 16];
  memcpy(q, &v, sizeof(v));
  quad m = q[0];
  const auto fold = [&](quad other) __attribute__((always_inline)) { m = better(m, other) ? m : other; };
  for (int i = 1; i < MYC_VECTOR_BYTES / 16; ++i) fold(q[i]);
  fold(__builtin_shufflevector(m, m, 2, 3, 2, 3));
  fold(__builtin_shufflevector(m, m, 1, 1, 1, 1));
  return m[0];
}

// NaN if any lane is NaN.
MYC_INLINE float horizontal_max(f32v v) {
  return fold_lanes(v, [](auto a, auto b) __attribute__((always_inline)) { return (a > b) | (a != a); });
}
MYC_INLINE float horizontal_min(f32v v) {
  return fold_lanes(v, [](auto a, auto b) __attribute__((always_inline)) { return (a < b) | (a != a); });
}

MYC_INLINE bool any(i32v mask) {
#if MYC_VECTOR_BYTES == 64
  return _mm512_movepi32_mask((__m512i)mask) != 0;
#elif MYC_VECTOR_BYTES == 32
  return _mm256_movemask_ps((__m256)mask) != 0;
#else
  int32_t all = 0;
  for (int i = 0; i < kLanes; ++i) all |= mask[i];
  return all != 0;
#endif
}

// ---- whole arrays ----

// y[i] = f(x[i]), f on vectors; the tail goes through the same f.  Floats, or what else has `load` and `store` (half.h).
template <class X, class Y, class F>
MYC_INLINE void map(const X* x, Y* y, int64_t n, const F& f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, f(load(x + i)));
  if (i < n) store_partial(y + i, f(load_partial(x + i, n - i)), n - i);
}

// y[i] = f(a[i], b[i]).
template <class A, class B, class Y, class F>
MYC_INLINE void map(const A* a, const B* b, Y* y, int64_t n, const F& f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, f(load(a + i), load(b + i)));
  if (i < n) store_partial(y + i, f(load_partial(a + i, n - i), load_partial(b + i, n - i)), n - i);
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_SIMD_VEC_H_
