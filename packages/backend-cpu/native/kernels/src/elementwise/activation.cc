// Elementwise activations and their gradients, float32.  Bytes: 8 an element forward, 12 for a gradient; relu and its kin
// are bound by memory, the others by one exponential (about 20 flops) and, for the sigmoids, one division.
#include "elementwise/elementwise.h"
#include "simd/activations.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kCheap = 12, kOneExp = 32, kOneErf = 40;

// ---- rectifiers ----

KERNEL_FN(relu, f32) {
  return map_floats(call, kCheap, [](f32v x) { return relu(x); });
}
KERNEL_FN(relu_grad, f32) {
  return map_pairs(call, kCheap, [](f32v dy, f32v y) { return relu_grad(dy, y); });
}

KERNEL_FN(relu6, f32) {
  return map_floats(call, kCheap, [](f32v x) { return relu6(x); });
}

KERNEL_FN(hardtanh, f32) {
  const auto& a = attrs<myc_hardtanh_attrs>(call);
  return clip_floats(call, static_cast<float>(a.min_val), static_cast<float>(a.max_val));
}
KERNEL_FN(hardtanh_grad, f32) {
  const auto& a = attrs<myc_hardtanh_grad_attrs>(call);
  const f32v low = splat(static_cast<float>(a.min_val)), high = splat(static_cast<float>(a.max_val));
  return map_pairs(call, kCheap, [=](f32v dy, f32v x) { return inside_or_zero(dy, x, low, high); });
}

KERNEL_FN(leaky_relu, f32) {
  const f32v alpha = splat(static_cast<float>(attrs<myc_leaky_relu_attrs>(call).alpha));
  return map_floats(call, kCheap, [=](f32v x) { return leaky_relu(x, alpha); });
}
KERNEL_FN(leaky_relu_grad, f32) {
  const f32v alpha = splat(static_cast<float>(attrs<myc_leaky_relu_grad_attrs>(call).alpha));
  return map_pairs(call, kCheap, [=](f32v dy, f32v x) { return leaky_relu_grad(dy, x, alpha); });
}

KERNEL_FN(elu, f32) {
  const f32v alpha = splat(static_cast<float>(attrs<myc_elu_attrs>(call).alpha));
  return map_floats(call, kOneExp, [=](f32v x) { return elu(x, alpha); });
}
KERNEL_FN(elu_grad, f32) {
  const f32v alpha = splat(static_cast<float>(attrs<myc_elu_grad_attrs>(call).alpha));
  return map_pairs(call, kCheap, [=](f32v dy, f32v y) { return elu_grad(dy, y, alpha); });
}

KERNEL_FN(hardsigmoid, f32) {
  return map_floats(call, kCheap, [](f32v x) { return hardsigmoid(x); });
}

KERNEL_FN(hardswish, f32) {
  return map_floats(call, kCheap, [](f32v x) { return hardswish(x); });
}
KERNEL_FN(hardswish_grad, f32) {
  return map_pairs(call, kCheap, [](f32v dy, f32v x) { return hardswish_grad(dy, x); });
}

// ---- sigmoids ----

KERNEL_FN(sigmoid, f32) {
  return map_floats(call, kOneExp, [](f32v x) { return sigmoid(x); });
}
KERNEL_FN(sigmoid_grad, f32) {
  return map_pairs(call, kCheap, [](f32v dy, f32v y) { return sigmoid_grad(dy, y); });
}

KERNEL_FN(silu, f32) {
  return map_floats(call, kOneExp, [](f32v x) { return silu(x); });
}
KERNEL_FN(silu_grad, f32) {
  return map_pairs(call, kOneExp, [](f32v dy, f32v x) { return silu_grad(dy, x); });
}

KERNEL_FN(fast_gelu, f32) {
  return map_floats(call, kOneExp, [](f32v x) { return fast_gelu(x); });
}

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

KERNEL_FN(mish, f32) {
  return map_floats(call, kOneExp, [](f32v x) { return mish(x); });
}

// ---- Gaussian error units ----

KERNEL_FN(gelu, f32) {
  if (attrs<myc_gelu_attrs>(call).approximate)
    return map_floats(call, kOneExp, [](f32v x) { return gelu_tanh(x); });
  return map_floats(call, kOneErf, [](f32v x) { return gelu(x); });
}
KERNEL_FN(gelu_grad, f32) {
  if (attrs<myc_gelu_grad_attrs>(call).approximate)
    return map_pairs(call, kOneExp, [](f32v dy, f32v x) { return gelu_tanh_grad(dy, x); });
  return map_pairs(call, kOneErf, [](f32v dy, f32v x) { return gelu_grad(dy, x); });
}

}  // namespace mycelia::MYC_ISA
