// The rarer elementary functions on vectors, built on math.h: other bases, inverse and hyperbolic functions,
// erfc, erfinv. Accurate to a few units in the last place, with the limits, infinities and NaN of the C
// library.  Polynomials are minimax fits of the expressions named beside them, made as those of math.h.
#ifndef MYCELIA_SIMD_FUNCTIONS_H_
#define MYCELIA_SIMD_FUNCTIONS_H_

#include "simd/math.h"

namespace mycelia::MYC_ISA {

constexpr float kPi = 0x1.921fb6p1f, kHalfPi = 0x1.921fb6p0f, kHalfPiLow = -0x1.777a5cp-25f;

// ---- other bases ----

MYC_INLINE f32v exp2(f32v x) {
  x = min_or_second(splat(129.0f),
                    max_or_second(splat(-151.0f), x));  // beyond, the result is inf or 0 anyway
  const f32v n = round_even(x);
  const f32v r = (x - n) * 0x1.62e43p-1f;  // ln 2
  const float p[] = {4.999999404e-01f, 1.666652113e-01f, 4.166838899e-02f, 8.368717507e-03f,
                     1.381459646e-03f};
  const f32v y = (r * r) * polynomial(r, p) + r + 1.0f;  // as in exp
  const i32v whole = to_int(n), half = whole >> 1;
  return y * power_of_two(half) * power_of_two(whole - half);
}

// Logarithm to a base with 1 / ln(base) = scale: the exponent of 2 enters last and exactly, so powers of 2
// are exact.
MYC_INLINE f32v log_to_base(f32v x, float scale, float of_two_high, float of_two_low) {
  const i32v tiny = x < 0x1p-126f;
  const f32v scaled = select(tiny, x * 0x1p24f, x);
  const i32v shifted = bits(scaled) - 0x3f3504f3;
  const f32v e = to_float(shifted >> 23) + select(tiny, splat(-24.0f), f32v{});
  const f32v m = from_bits((shifted & 0x007fffff) + 0x3f3504f3);
  const f32v y = (log_normal(m, f32v{}) * scale + e * of_two_low) + e * of_two_high;
  f32v result = select(x == INFINITY, x, y);
  result = select(x == 0.0f, splat(-INFINITY), result);
  return select((x < 0.0f) | is_nan(x), splat(NAN), result);
}
MYC_INLINE f32v log_base2(f32v x) { return log_to_base(x, kLog2e, 1.0f, 0.0f); }
MYC_INLINE f32v log_base10(f32v x) {
  return log_to_base(x, 0x1.bcb7b2p-2f, 0x1.344p-2f, 0x1.3509f8p-18f);  // lg 2 = high (10 bits) + low
}

MYC_INLINE f32v log_add_exp(f32v a, f32v b) {
  const f32v peak = maximum(a, b), gap = abs(a - b);
  return select(a == b, a + 0x1.62e43p-1f, peak + log1p(exp(-gap)));  // equal infinities have no gap
}
MYC_INLINE f32v log_add_exp2(f32v a, f32v b) {
  const f32v peak = maximum(a, b), gap = abs(a - b);
  return select(a == b, a + 1.0f, peak + log1p(exp2(-gap)) * kLog2e);
}

// ---- hyperbolic ----

MYC_INLINE f32v sinh(f32v x) {
  const f32v a = abs(x), t = expm1(a), half = exp(0.5f * a);
  const f32v y =
      select(a < 80.0f, 0.5f * (t + t / (t + 1.0f)), (0.5f * half) * half);  // exp(a) overflows first
  return copysign(y, x);
}
MYC_INLINE f32v cosh(f32v x) {
  const f32v a = abs(x), t = exp(a), half = exp(0.5f * a);
  return select(a < 80.0f, 0.5f * (t + 1.0f / t), (0.5f * half) * half);
}
MYC_INLINE f32v asinh(f32v x) {
  const f32v a = abs(x), square = a * a;
  const f32v near = log1p(a + square / (1.0f + sqrt(1.0f + square)));
  const f32v far = log(a) + 0x1.62e43p-1f;  // log(2 a); a * a would overflow
  return copysign(select(a < 0x1p40f, near, far), x);
}
MYC_INLINE f32v acosh(f32v x) {
  const f32v t = x - 1.0f;
  const f32v near = log1p(t + sqrt(t * (t + 2.0f)));
  const f32v y = select(x < 0x1p40f, near, log(x) + 0x1.62e43p-1f);
  return select(x < 1.0f, splat(NAN), y);
}
MYC_INLINE f32v atanh(f32v x) {
  const f32v a = abs(x);
  return copysign(0.5f * log1p(2.0f * a / (1.0f - a)), x);
}

// ---- circular ----

MYC_INLINE f32v tan(f32v x) {
  const SinCos v = sincos(x);
  return select(x == 0.0f, x, v.sin / v.cos);
}

MYC_INLINE f32v atan(f32v x) {
  const f32v a = abs(x);
  const i32v far = a > 2.414213562f, middle = a > 0.4142135624f;  // tan(3 pi / 8), tan(pi / 8)
  const f32v t = select(far, -1.0f / a, select(middle, (a - 1.0f) / (a + 1.0f), a));
  const f32v origin = select(far, splat(kHalfPi), select(middle, splat(0.5f * kHalfPi), f32v{}));
  const f32v low = select(far, splat(kHalfPiLow), select(middle, splat(0.5f * kHalfPiLow), f32v{}));
  const f32v z = t * t;
  const float p[] = {-3.333331645e-01f, 1.999848783e-01f, -1.424383074e-01f, 1.059586182e-01f,
                     -6.083082408e-02f};  // (atan(t) - t) / t^3 in t^2
  return copysign(origin + (t + ((t * z) * polynomial(z, p) + low)), x);
}

MYC_INLINE f32v atan2(f32v y, f32v x) {
  const f32v ax = abs(x), ay = abs(y);
  const i32v steep = ay > ax;
  const f32v low = select(steep, ax, ay), high = select(steep, ay, ax);
  f32v q = low / high;                                             // 0 <= q <= 1
  q = select((low == high) & (high == INFINITY), splat(1.0f), q);  // both infinite
  q = select(high == 0.0f, f32v{}, q);                             // both zero
  f32v angle = atan(q);
  angle = select(steep, kHalfPi - (angle - kHalfPiLow), angle);
  angle = select(bits(x) < 0, kPi - (angle - 2.0f * kHalfPiLow), angle);
  return select(is_nan(x) | is_nan(y), splat(NAN), copysign(angle, y));
}

// For 0 <= x <= 1/2: asin(x).
MYC_INLINE f32v asin_near(f32v x, f32v z) {
  const float p[] = {1.666675359e-01f, 7.495241612e-02f, 4.547709599e-02f, 2.414761111e-02f,
                     4.221854731e-02f};  // (asin(x) - x) / x^3 in x^2
  return (x * z) * polynomial(z, p) + x;
}
MYC_INLINE f32v asin(f32v x) {
  const f32v a = abs(x);
  const i32v far = a > 0.5f;  // asin(a) = pi / 2 - 2 asin(sqrt((1 - a) / 2))
  const f32v z = select(far, 0.5f * (1.0f - a), a * a);
  const f32v y = asin_near(select(far, sqrt(z), a), z);
  return copysign(select(far, kHalfPi - (2.0f * y - kHalfPiLow), y), x);
}
MYC_INLINE f32v acos(f32v x) {
  const f32v a = abs(x);
  const i32v far = a > 0.5f;
  const f32v z = select(far, 0.5f * (1.0f - a), a * a);
  const f32v y = asin_near(select(far, sqrt(z), a), z);
  const f32v near = kHalfPi - (copysign(y, x) - kHalfPiLow);
  return select(far, select(x < 0.0f, kPi - (2.0f * y - 2.0f * kHalfPiLow), 2.0f * y), near);
}

// sqrt(a^2 + b^2), scaled by a power of two so that squares neither overflow nor vanish.
MYC_INLINE f32v hypot(f32v a, f32v b) {
  a = abs(a), b = abs(b);
  const f32v peak = max_or_second(a, b);
  const f32v scale =
      select(peak > 0x1p60f, splat(0x1p-70f), select(peak < 0x1p-60f, splat(0x1p70f), splat(1.0f)));
  const f32v back =
      select(peak > 0x1p60f, splat(0x1p70f), select(peak < 0x1p-60f, splat(0x1p-70f), splat(1.0f)));
  const f32v u = a * scale, v = b * scale;
  const f32v y = sqrt(u * u + v * v) * back;
  return select((a == INFINITY) | (b == INFINITY), splat(INFINITY), y);
}

// ---- error function ----

MYC_INLINE f32v erfc(f32v x) {
  const f32v a = min_or_second(splat(10.2f), abs(x));  // erfc(10.2) is 0 in float32
  const float p[] = {2.553956807e-01f, -4.271858633e-01f, 2.416581810e-01f,  -7.897835970e-02f,
                     3.733162303e-03f, 6.995142438e-03f,  -8.488442400e-04f, -9.719388327e-04f,
                     5.006857828e-05f, 1.546022977e-04f,  1.336860441e-05f,  -1.198740483e-05f};
  const f32v t = (a - 2.0f) / (a + 2.0f);                      // p: exp(a^2) erfc(a) in t
  const f32v high = from_bits(bits(a) & (int32_t)0xfffff000);  // high * high is exact
  const f32v tail = exp(-(high * high)) * exp(-((a - high) * (a + high))) * polynomial(t, p);
  const f32v y = select(x < 0.0f, 2.0f - tail, tail);
  return select(is_nan(x), x, y);
}

MYC_INLINE f32v erfinv(f32v x) {
  const f32v a = abs(x);
  const f32v w = -log((1.0f - a) * (1.0f + a));
  const float near[] = {1.501409411e+00f, 2.466402799e-01f,  -4.177386872e-03f, -1.252741902e-03f,
                        2.183444449e-04f, -4.963347692e-06f, -3.462704854e-06f, 4.661706612e-07f,
                        2.323264425e-08f, -8.791056771e-09f};
  const float far[] = {3.003501177e+00f,  1.004322171e+00f,  6.378018763e-03f, -4.667435773e-03f,
                       3.246282227e-03f,  -2.191816457e-03f, 1.216744888e-03f, -3.540687903e-04f,
                       -1.338783186e-04f, 1.136399078e-04f};
  // erfinv(x) / x in w - 2.5 for w < 5, in sqrt(w) - 3.17 beyond.
  const f32v y = x * select(w < 5.0f, polynomial(w - 2.5f, near), polynomial(sqrt(w) - 3.17f, far));
  return select(a == 1.0f, copysign(splat(INFINITY), x), y);
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_SIMD_FUNCTIONS_H_
