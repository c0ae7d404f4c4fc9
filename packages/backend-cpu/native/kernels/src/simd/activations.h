// Activations and their gradients on vectors: what kernels, epilogues and fused programs share.  NaN stays NaN.
#ifndef MYCELIA_SIMD_ACTIVATIONS_H_
#define MYCELIA_SIMD_ACTIVATIONS_H_

#include "simd/math.h"

namespace mycelia::MYC_ISA {

// The upper bound wins where the bounds cross.
MYC_INLINE f32v clip(f32v x, f32v low, f32v high) { return min_or_second(high, max_or_second(low, x)); }

// ---- rectifiers ----

MYC_INLINE f32v relu(f32v x) { return max_or_second(f32v{}, x); }
MYC_INLINE f32v relu_grad(f32v dy, f32v y) { return select(y > 0.0f, dy, f32v{}); }
MYC_INLINE f32v relu6(f32v x) { return clip(x, f32v{}, splat(6.0f)); }
MYC_INLINE f32v inside_or_zero(f32v dy, f32v x, f32v low, f32v high) {
  return select((x > low) & (x < high), dy, f32v{});
}
MYC_INLINE f32v leaky_relu(f32v x, f32v alpha) { return select(x > 0.0f, x, x * alpha); }
MYC_INLINE f32v leaky_relu_grad(f32v dy, f32v x, f32v alpha) { return select(x > 0.0f, dy, dy * alpha); }
MYC_INLINE f32v elu(f32v x, f32v alpha) { return select(x > 0.0f, x, alpha * expm1(x)); }
MYC_INLINE f32v elu_grad(f32v dy, f32v y, f32v alpha) { return select(y > 0.0f, dy, dy * (y + alpha)); }
MYC_INLINE f32v hardsigmoid(f32v x) { return clip(x * (1.0f / 6) + 0.5f, f32v{}, splat(1.0f)); }
MYC_INLINE f32v hardswish(f32v x) { return x * (clip(x + 3.0f, f32v{}, splat(6.0f)) * (1.0f / 6)); }
MYC_INLINE f32v hardswish_grad(f32v dy, f32v x) {
  const f32v inside = dy * (x * (1.0f / 3) + 0.5f);
  return select(x <= -3.0f, f32v{}, select(x >= 3.0f, dy, inside));
}

// ---- sigmoids ----

MYC_INLINE f32v sigmoid_grad(f32v dy, f32v y) { return dy * (y * (1.0f - y)); }
MYC_INLINE f32v tanh_grad(f32v dy, f32v y) { return dy * (1.0f - y * y); }
MYC_INLINE f32v silu(f32v x) { return x * sigmoid(x); }
MYC_INLINE f32v silu_grad(f32v dy, f32v x) {
  const f32v s = sigmoid(x);
  return dy * (s * (1.0f + x * (1.0f - s)));
}
MYC_INLINE f32v fast_gelu(f32v x) { return x * sigmoid(1.702f * x); }
MYC_INLINE f32v softplus(f32v x) { return max_or_second(f32v{}, x) + log1p(exp(-abs(x))); }

// With n = exp(x)^2 + 2 exp(x): tanh(log(1 + exp(x))) = n / (n + 2), and 1 in float32 from x = 20 on.
MYC_INLINE f32v mish(f32v x) {
  const f32v e = exp(min_or_second(splat(20.0f), x));
  const f32v n = e * (e + 2.0f);
  return x * (n / (n + 2.0f));
}

// ---- Gaussian error units ----

constexpr float kSqrtHalf = 0.70710678f, kInvSqrt2Pi = 0.39894228f;
constexpr float kGelu1 = 2 * 0.79788456f, kGelu3 = kGelu1 * 0.044715f;  // twice the argument of the tanh, in x and x^3

// erf to 4e-7 relative, a third of the work of the exact one: a rational minimax fit of erf(x) / x in x^2 up to 3.92,
// from where erf rounds to 1.
MYC_INLINE f32v quick_erf(f32v x) {
  const float p[] = {1.128379109e+00f,  1.999264221e-01f,  5.057355650e-02f, 3.701681146e-03f,
                     1.418514135e-04f, -1.957818132e-06f, 1.992380239e-08f};
  const float q[] = {1.0f, 5.105118331e-01f, 1.149991770e-01f, 1.435335246e-02f, 9.560541645e-04f};
  const f32v square = x * x;
  const f32v inside = x * polynomial(square, p) / polynomial(square, q);
  return select(abs(x) < 3.92f, inside, copysign(splat(1.0f), x));
}

// NaN and infinities come out right: 0.5 x carries them.
MYC_INLINE f32v gelu(f32v x) { return (0.5f * x) * (1.0f + quick_erf(x * kSqrtHalf)); }
MYC_INLINE f32v gelu_grad(f32v dy, f32v x) {
  const f32v cdf = 0.5f + 0.5f * quick_erf(x * kSqrtHalf);
  return dy * (cdf + x * (kInvSqrt2Pi * exp(-0.5f * x * x)));
}
// (1 + tanh(u)) / 2 = sigmoid(2 u)
MYC_INLINE f32v gelu_tanh(f32v x) { return x * sigmoid(x * (kGelu1 + kGelu3 * x * x)); }
MYC_INLINE f32v gelu_tanh_grad(f32v dy, f32v x) {
  const f32v square = x * x;
  const f32v s = sigmoid(x * (kGelu1 + kGelu3 * square));
  return dy * (s + x * (s * (1.0f - s)) * (kGelu1 + 3 * kGelu3 * square));
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_SIMD_ACTIVATIONS_H_
