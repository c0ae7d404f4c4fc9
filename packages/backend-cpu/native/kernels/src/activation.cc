// Elementwise activations and their gradients, float32.  Bytes: 8 an element forward, 12 for a gradient; relu and its kin
// are bound by memory, the others by one exponential (about 20 flops) and, for the sigmoids, one division.
#include "elementwise.h"
#include "simd/math.h"

namespace mycelia::MYC_ISA {

// out = f(in[0], in[1]) for two inputs of one shape; f carries the attributes.
template <class F>
MYC_INLINE int32_t map_pairs(const myc_call* call, int64_t work, const F& f) {
  const float *a = in<float>(call, 0), *b = in<float>(call, 1);
  float* y = out<float>(call);
  parallel_for(call, output(call).size, grain_of(work),
               [&](int64_t begin, int64_t end) { map(a + begin, b + begin, y + begin, end - begin, f); });
  return MYC_OK;
}

// Work of an element in bytes, memory and arithmetic together.
constexpr int64_t kCheap = 12, kOneExp = 32, kOneErf = 40;

MYC_INLINE f32v clip(f32v x, f32v low, f32v high) {
  return min_or_second(high, max_or_second(low, x));  // NaN stays
}

// ---- rectifiers ----

KERNEL_FN(relu, f32) {
  return map_floats(call, kCheap, [](f32v x) { return max_or_second(f32v{}, x); });
}
KERNEL_FN(relu_grad, f32) {
  return map_pairs(call, kCheap, [](f32v dy, f32v y) { return select(y > 0.0f, dy, f32v{}); });
}

KERNEL_FN(relu6, f32) {
  return map_floats(call, kCheap, [](f32v x) { return clip(x, f32v{}, splat(6.0f)); });
}

KERNEL_FN(hardtanh, f32) {
  const auto& a = attrs<myc_hardtanh_attrs>(call);
  const f32v low = splat(static_cast<float>(a.min_val)), high = splat(static_cast<float>(a.max_val));
  return map_floats(call, kCheap, [=](f32v x) { return clip(x, low, high); });
}
KERNEL_FN(hardtanh_grad, f32) {
  const auto& a = attrs<myc_hardtanh_grad_attrs>(call);
  const f32v low = splat(static_cast<float>(a.min_val)), high = splat(static_cast<float>(a.max_val));
  return map_pairs(call, kCheap, [=](f32v dy, f32v x) { return select((x > low) & (x < high), dy, f32v{}); });
}

KERNEL_FN(leaky_relu, f32) {
  const f32v alpha = splat(static_cast<float>(attrs<myc_leaky_relu_attrs>(call).alpha));
  return map_floats(call, kCheap, [=](f32v x) { return select(x > 0.0f, x, x * alpha); });
}
KERNEL_FN(leaky_relu_grad, f32) {
  const f32v alpha = splat(static_cast<float>(attrs<myc_leaky_relu_grad_attrs>(call).alpha));
  return map_pairs(call, kCheap, [=](f32v dy, f32v x) { return select(x > 0.0f, dy, dy * alpha); });
}

KERNEL_FN(elu, f32) {
  const f32v alpha = splat(static_cast<float>(attrs<myc_elu_attrs>(call).alpha));
  return map_floats(call, kOneExp, [=](f32v x) { return select(x > 0.0f, x, alpha * expm1(x)); });
}
KERNEL_FN(elu_grad, f32) {
  const f32v alpha = splat(static_cast<float>(attrs<myc_elu_grad_attrs>(call).alpha));
  return map_pairs(call, kCheap, [=](f32v dy, f32v y) { return select(y > 0.0f, dy, dy * (y + alpha)); });
}

KERNEL_FN(hardsigmoid, f32) {
  return map_floats(call, kCheap, [](f32v x) { return clip(x * (1.0f / 6) + 0.5f, f32v{}, splat(1.0f)); });
}

KERNEL_FN(hardswish, f32) {
  return map_floats(call, kCheap, [](f32v x) { return x * (clip(x + 3.0f, f32v{}, splat(6.0f)) * (1.0f / 6)); });
}
KERNEL_FN(hardswish_grad, f32) {
  return map_pairs(call, kCheap, [](f32v dy, f32v x) {
    const f32v inside = dy * (x * (1.0f / 3) + 0.5f);
    return select(x <= -3.0f, f32v{}, select(x >= 3.0f, dy, inside));
  });
}

// ---- sigmoids ----

KERNEL_FN(sigmoid, f32) {
  return map_floats(call, kOneExp, [](f32v x) { return sigmoid(x); });
}
KERNEL_FN(sigmoid_grad, f32) {
  return map_pairs(call, kCheap, [](f32v dy, f32v y) { return dy * (y * (1.0f - y)); });
}

KERNEL_FN(silu, f32) {
  return map_floats(call, kOneExp, [](f32v x) { return x * sigmoid(x); });
}
KERNEL_FN(silu_grad, f32) {
  return map_pairs(call, kOneExp, [](f32v dy, f32v x) {
    const f32v s = sigmoid(x);
    return dy * (s * (1.0f + x * (1.0f - s)));
  });
}

KERNEL_FN(fast_gelu, f32) {
  return map_floats(call, kOneExp, [](f32v x) { return x * sigmoid(1.702f * x); });
}

MYC_INLINE f32v softplus(f32v x) { return max_or_second(f32v{}, x) + log1p(exp(-abs(x))); }

KERNEL_FN(softplus, f32) {
  const auto& a = attrs<myc_softplus_attrs>(call);
  const f32v beta = splat(static_cast<float>(a.beta)), inverse = splat(static_cast<float>(1 / a.beta));
  const f32v threshold = splat(static_cast<float>(a.threshold));
  return map_floats(call, 2 * kOneExp, [=](f32v x) {
    const f32v scaled = x * beta;
    return select(scaled > threshold, x, softplus(scaled) * inverse);
  });
}
KERNEL_FN(softplus_grad, f32) {
  const auto& a = attrs<myc_softplus_grad_attrs>(call);
  const f32v beta = splat(static_cast<float>(a.beta)), threshold = splat(static_cast<float>(a.threshold));
  return map_pairs(call, kOneExp, [=](f32v dy, f32v x) {
    const f32v scaled = x * beta;
    return select(scaled > threshold, dy, dy * sigmoid(scaled));
  });
}

KERNEL_FN(logsigmoid, f32) {
  return map_floats(call, 2 * kOneExp, [](f32v x) { return -softplus(-x); });
}

// With n = exp(x)^2 + 2 exp(x): tanh(log(1 + exp(x))) = n / (n + 2), and 1 in float32 from x = 20 on.
KERNEL_FN(mish, f32) {
  return map_floats(call, kOneExp, [](f32v x) {
    const f32v e = exp(min_or_second(splat(20.0f), x));
    const f32v n = e * (e + 2.0f);
    return x * (n / (n + 2.0f));
  });
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
KERNEL_FN(gelu, f32) {
  if (attrs<myc_gelu_attrs>(call).approximate)  // (1 + tanh(u)) / 2 = sigmoid(2 u)
    return map_floats(call, kOneExp, [](f32v x) { return x * sigmoid(x * (kGelu1 + kGelu3 * x * x)); });
  return map_floats(call, kOneErf, [](f32v x) { return (0.5f * x) * (1.0f + quick_erf(x * kSqrtHalf)); });
}
KERNEL_FN(gelu_grad, f32) {
  if (attrs<myc_gelu_grad_attrs>(call).approximate) {
    return map_pairs(call, kOneExp, [](f32v dy, f32v x) {
      const f32v square = x * x;
      const f32v s = sigmoid(x * (kGelu1 + kGelu3 * square));
      return dy * (s + x * (s * (1.0f - s)) * (kGelu1 + 3 * kGelu3 * square));
    });
  }
  return map_pairs(call, kOneErf, [](f32v dy, f32v x) {
    const f32v cdf = 0.5f + 0.5f * quick_erf(x * kSqrtHalf);
    return dy * (cdf + x * (kInvSqrt2Pi * exp(-0.5f * x * x)));
  });
}

}  // namespace mycelia::MYC_ISA
