// Elementary functions on vectors, accurate to about 2 units in the last place over the whole range, with the limits,
// infinities and NaN of the C library.  Polynomials are minimax fits (weighted least squares, Lawson's iteration) of the
// expressions named beside them; ranges are reduced as usual (Cody and Waite 1980).
#ifndef MYCELIA_SIMD_MATH_H_
#define MYCELIA_SIMD_MATH_H_

#include "simd/vec.h"

namespace mycelia::MYC_ISA {

// p[0] + x (p[1] + x (p[2] + ...)), each step one fused multiply-add.
template <class V, class T, int n>
MYC_INLINE V polynomial(V x, const T (&p)[n]) {
  V sum = V{} + p[n - 1];
#pragma GCC unroll 16
  for (int i = n - 2; i >= 0; --i) sum = sum * x + p[i];
  return sum;
}

constexpr float kLog2e = 0x1.715476p0f;
constexpr float kLn2High = 0x1.63p-1f;          // 9 bits: n * kLn2High is exact for |n| < 2^15
constexpr float kLn2Low = -0x1.bd0106p-13f;     // ln 2 - kLn2High

// 2^n for integers n in [-126, 127].
MYC_INLINE f32v power_of_two(i32v n) { return from_bits((n + 127) << 23); }

// exp(x) for -87.3 <= x <= 89, 0 at the lower end. Instructions are what it costs: Horner's scheme for 2 exp(r), and the
// rounded exponent as it comes.
MYC_INLINE f32v exp_in_range(f32v x) {
  const float magic = 0x1.8p23f + 126.0f;  // adding it rounds to an integer and leaves it, n + 126, in the lowest bits
  const f32v shifted = x * kLog2e + magic, n = shifted - magic;
  const f32v half_scale = from_bits(bits(shifted) << 23);  // 2^(n-1), so that n = 128 fits; bits of 0 for n = -126
  const f32v r = (x - n * kLn2High) - n * kLn2Low;         // |r| <= ln(2) / 2
  const float p[] = {2.0f,            2.0f,            9.999998808e-01f, 3.333286046e-01f,
                     8.333601058e-02f, 1.674839109e-02f, 2.768721432e-03f};
  return polynomial(r, p) * half_scale;
}

// Results below 2^-125.5 are 0: denormal numbers would cost a hundred cycles each on many processors, and masked softmax
// makes whole rows of them. NaN stays, infinities come out at the ends.
MYC_INLINE f32v exp(f32v x) { return exp_in_range(min_or_second(splat(89.0f), max_or_second(splat(-87.3f), x))); }

// exp(x) for x <= 0.
MYC_INLINE f32v exp_of_negative(f32v x) { return exp_in_range(max_or_second(splat(-87.3f), x)); }

MYC_INLINE f32v expm1(f32v x) {
  const f32v limited = min_or_second(splat(89.0f), max_or_second(splat(-18.0f), x));  // exp(-18) is below half an ulp of 1
  const f32v n = round_even(limited * kLog2e);
  const f32v r = (limited - n * kLn2High) - n * kLn2Low;
  const float p[] = {5.000000000e-01f, 1.666666716e-01f, 4.166635498e-02f,
                     8.333274163e-03f, 1.394102233e-03f, 1.991357422e-04f};
  const f32v y = (r * r) * polynomial(r, p) + r;  // exp(r) - 1
  const f32v half_scale = power_of_two(to_int(n - 1.0f));  // half of 2^n, so that n = 128 fits
  const f32v result = 2.0f * (half_scale * y + (half_scale - 0.5f));
  return select(x == 0.0f, x, result);  // keeps -0
}

// For x > 0 and normal: x = m 2^e, m in [sqrt(1/2), sqrt(2)); log(x) = e ln 2 + log(m).
MYC_INLINE f32v log_normal(f32v x, f32v e_extra) {
  const i32v shifted = (i32v)((u32v)bits(x) - 0x3f3504f3u);  // bits of sqrt(1/2); may wrap for what log() replaces
  const f32v e = to_float(shifted >> 23) + e_extra;
  const f32v f = from_bits((shifted & 0x007fffff) + 0x3f3504f3) - 1.0f;
  const float p[] = {3.333331645e-01f, -2.500081062e-01f, 2.000228614e-01f, -1.662455350e-01f,
                     1.418119669e-01f, -1.312876791e-01f, 1.288162172e-01f, -7.859545946e-02f};
  const f32v square = f * f;
  const f32v tail = (square * f) * polynomial(f, p) + e * kLn2Low;  // p: (log(1 + f) - f + f^2 / 2) / f^3
  return (tail - 0.5f * square) + f + e * kLn2High;
}

MYC_INLINE f32v log(f32v x) {
  const i32v tiny = x < 0x1p-126f;  // denormal, zero or negative
  const f32v y = log_normal(select(tiny, x * 0x1p24f, x), select(tiny, splat(-24.0f), f32v{}));
  f32v result = select(x == INFINITY, x, y);
  result = select(x == 0.0f, splat(-INFINITY), result);
  return select((x < 0.0f) | is_nan(x), splat(NAN), result);
}

MYC_INLINE f32v log2(f32v x) { return log(x) * kLog2e; }

MYC_INLINE f32v log1p(f32v x) {
  const f32v u = 1.0f + x;
  const f32v lost = x - (u - 1.0f);  // what rounding took from u: log(1 + x) = log(u) + lost / u
  const f32v y = log(u) + select((u > 0.0f) & (u < INFINITY), lost / u, f32v{});
  return select(x == 0.0f, x, y);
}

MYC_INLINE f32v sigmoid(f32v x) { return 1.0f / (1.0f + exp(-x)); }

MYC_INLINE f32v tanh(f32v x) {
  const f32v t = expm1(2.0f * min_or_second(splat(10.0f), abs(x)));  // tanh(10) rounds to 1
  return copysign(t / (t + 2.0f), x);
}

MYC_INLINE f32v erf(f32v x) {
  const f32v a = abs(x), square = x * x;
  const float small[] = {1.128379107e+00f,  -3.761262596e-01f, 1.128360033e-01f, -2.685444430e-02f,
                         5.189535208e-03f, -8.020841051e-04f, 7.889119297e-05f};  // erf(x) / x in x^2, |x| <= 1
  const float large[] = {3.537089215e-04f,  1.127040029e+00f, 6.382256150e-01f, 1.030374318e-01f,
                         -2.180535160e-02f, 2.939615631e-03f, -1.855748997e-04f};  // -log(1 - erf(x)), 1 <= x <= 4
  const f32v t = min_or_second(splat(4.0f), a);                                    // erf(4) rounds to 1
  const f32v outside = copysign(1.0f - exp(-polynomial(t, large)), x);
  return select(a < 1.0f, x * polynomial(square, small), outside);
}

// sin and cos of a vector; lanes beyond the reach of the reduction go through the C library.
struct SinCos {
  f32v sin, cos;
};

MYC_INLINE SinCos sincos(f32v x) {
  const f32v n = round_even(x * 0x1.45f306p-1f);  // 2 / pi
  f32v r = x - n * 0x1.92p+0f;  // pi / 2 in four parts, the first three of 11 bits
  r = r - n * 0x1.fb4p-12f;
  r = r - n * 0x1.444p-24f;
  r = r - n * 0x1.68c234p-39f;
  const float s[] = {-1.666665524e-01f, 8.332176134e-03f, -1.951697632e-04f};  // (sin(r) - r) / r^3 in r^2
  const float c[] = {4.166664556e-02f, -1.388736418e-03f, 2.443808989e-05f};   // (cos(r) - 1 + r^2 / 2) / r^4 in r^2
  const f32v z = r * r;
  const f32v sine = (r * z) * polynomial(z, s) + r;
  const f32v cosine = (z * z) * polynomial(z, c) + (1.0f - 0.5f * z);
  const i32v quadrant = to_int(n);
  const i32v swap = (quadrant & 1) != 0;
  const i32v sin_sign = (quadrant & 2) << 30, cos_sign = ((quadrant + 1) & 2) << 30;
  SinCos result = {from_bits(bits(select(swap, cosine, sine)) ^ sin_sign),
                   from_bits(bits(select(swap, sine, cosine)) ^ cos_sign)};
  const i32v far = ~(abs(x) < 8192.0f);  // the first parts times n are exact up to here; also inf and NaN
  if (__builtin_expect(any(far), 0)) {
    for (int i = 0; i < kLanes; ++i) {
      if (far[i]) result.sin[i] = sinf(x[i]), result.cos[i] = cosf(x[i]);
    }
  }
  return result;
}

MYC_INLINE f32v sin(f32v x) { return select(x == 0.0f, x, sincos(x).sin); }
MYC_INLINE f32v cos(f32v x) { return sincos(x).cos; }

// exp(y log(x)) in double precision for x > 0 and finite; over- and underflow as they should.
MYC_INLINE f32h pow_positive(f32h x, f32h y) {
  const i64v b = (i64v)__builtin_convertvector(x, f64v);
  const int64_t origin = 0x3fe6a09e667f3bcd;  // bits of sqrt(1/2)
  const i64v shifted = b - origin;
  const f64v e = __builtin_convertvector(__builtin_convertvector(shifted >> 52, i32h), f64v);
  const f64v m = (f64v)((shifted & 0x000fffffffffffff) + origin);
  const f64v s = (m - 1.0) / (m + 1.0), z = s * s;
  const double q[] = {0.6666666667555339, 0.3999999568647105, 0.2857210364844706, 0.22176378429876223,
                      0.19581872036634052};  // (log((1 + s) / (1 - s)) - 2 s) / s^3 in s^2
  const f64v log2_x = ((s * z) * polynomial(z, q) + 2.0 * s) * 1.4426950408889634 + e;
  f64v t = __builtin_convertvector(y, f64v) * log2_x;
  t = t < 200.0 ? t : f64v{} + 200.0;  // 2^200 and 2^-200 become inf and 0 in float32
  t = t > -200.0 ? t : f64v{} - 200.0;
  const f64v magic = f64v{} + 0x1.8p52;  // adding it rounds to an integer
  const f64v n = (t + magic) - magic;
  const double p[] = {0.9999999999997623,    0.6931471805464889,    0.24022650698884412,
                      0.05550410939443211,   0.009618128542147214,  0.0013333451964678525,
                      0.00015403852030828615, 1.5309763317621755e-05, 1.31758424578245e-06};  // 2^r, |r| <= 1/2
  const i64v exponent = ((i64v)(n + magic) << 52) + (i64v{} + (int64_t{1023} << 52));
  return __builtin_convertvector(polynomial(t - n, p) * (f64v)exponent, f32h);
}

MYC_INLINE f32v pow(f32v x, f32v y) {
  f32h xs[2], ys[2], rs[2];
  const f32v a = abs(x);
  const f32v base = select((a > 0.0f) & (a < INFINITY), a, splat(1.0f));
  memcpy(xs, &base, sizeof(base));
  memcpy(ys, &y, sizeof(y));
  for (int i = 0; i < 2; ++i) rs[i] = pow_positive(xs[i], ys[i]);
  f32v r;
  memcpy(&r, rs, sizeof(r));
  // Special cases, in the order of C's Annex F, later ones win.
  const f32v whole = trunc(y);
  const i32v is_whole = (whole == y) & (abs(y) < INFINITY);
  const f32v half = y * 0.5f;
  const i32v is_odd = is_whole & (abs(y) < 0x1p24f) & (trunc(half) != half);
  const f32v zero_or_inf = select((a == 0.0f) ^ (y > 0.0f), splat(INFINITY), f32v{});
  r = select((a == 0.0f) | (a == INFINITY), zero_or_inf, r);
  r = select(is_odd & (bits(x) < 0), -r, r);
  r = select((x < 0.0f) & (a < INFINITY) & ~is_whole, splat(NAN), r);
  const f32v at_infinity = select((a > 1.0f) ^ (y > 0.0f), f32v{}, splat(INFINITY));
  r = select(abs(y) == INFINITY, select(a == 1.0f, splat(1.0f), at_infinity), r);
  r = select(is_nan(x) | is_nan(y), splat(NAN), r);
  return select((x == 1.0f) | (y == 0.0f), splat(1.0f), r);
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_SIMD_MATH_H_
