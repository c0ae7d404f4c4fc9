// Batch normalization for training and inference and its gradient, and the forms with a residual and an activation
// behind it that the compiler makes.
#include "nn_ops/norm_batch.h"

#include <atomic>
#include <cfloat>
#include <cmath>

#include "simd/activations.h"

namespace mycelia::MYC_ISA {

using namespace batch_norm;

namespace {

// Values of the attribute `activation` of batch_norm_act_train; those of the gradient start at relu.
enum { kNone, kRelu, kRelu6 };

template <int kActivation>
MYC_INLINE f32v activated(f32v v) {
  return kActivation == kRelu ? relu(v) : kActivation == kRelu6 ? relu6(v) : v;
}
// The gradient of the activation of y.
template <int kActivation>
MYC_INLINE f32v gated(f32v dy, f32v y) {
  return kActivation == kRelu ? relu_grad(dy, y) : inside_or_zero(dy, y, f32v{}, splat(6.0f));
}

template <int kActivation, class T>
int32_t train_activated(const myc_call* call, const Layout& l, const Training<T>& t, const T* residual) {
  if (!residual) return train(call, l, t, [](f32v v, int64_t, int64_t) { return activated<kActivation>(v); });
  return train(call, l, t, [=](f32v v, int64_t at, int64_t lanes) {
    return activated<kActivation>(v + load_lanes(residual + at, lanes));
  });
}

template <class T>
struct NoGate {
  const T* dy;
  MYC_INLINE f32v operator()(int64_t at, int64_t lanes, f32v) const { return load_lanes(dy + at, lanes); }
};

// The argument of the activation is the normalized x: cheaper to compute again than to read.
template <int kActivation, class T>
struct GateByX {
  const T* dy;
  MYC_INLINE f32v operator()(int64_t at, int64_t lanes, f32v v) const {
    return gated<kActivation>(load_lanes(dy + at, lanes), v);
  }
};

template <class T>
int32_t infer(const myc_call* call) {
  const auto& a = attrs<myc_batch_norm_infer_attrs>(call);
  const Layout l = layout_of(input(call), a.data_format);
  const T* x = in<T>(call);
  const float *scale = in<float>(call, 1), *bias = in<float>(call, 2), *mean = in<float>(call, 3);
  const float* variance = in<float>(call, 4);
  T* y = out<T>(call);
  if (output(call).size == 0) return MYC_OK;
  const float epsilon = static_cast<float>(a.epsilon);
  const auto factor_of = [&](int64_t c) { return scale[c] / sqrtf(variance[c] + epsilon); };
  if (by_planes(l)) {
    parallel_rows(call, l.samples * l.channels, l.plane * kWork, [&](int64_t r) {
      const int64_t c = r % l.channels;
      const float factor = factor_of(c);
      const f32v middle = splat(mean[c]), by = splat(factor), shift = splat(bias[c]);
      map(x + r * l.plane, y + r * l.plane, l.plane, [=](f32v v) { return (v - middle) * by + shift; });
    });
    return MYC_OK;
  }
  const int64_t width = padded(l.channels);
  Scratch scratch(call);
  float* factor = scratch.take<float>(3 * width);  // copies that may be read in whole vectors
  if (!factor) return MYC_E_MEMORY;
  float *middle = factor + width, *shift = middle + width;
  for (int64_t c = 0; c < l.channels; ++c) factor[c] = factor_of(c), middle[c] = mean[c], shift[c] = bias[c];
  for_rows(call, l, [=](int64_t at, int64_t c, int64_t lanes) {
    store_lanes(y + at, (load_lanes(x + at, lanes) - load(middle + c)) * load(factor + c) + load(shift + c), lanes);
  });
  return MYC_OK;
}

}  // namespace

KERNEL_FN(batch_norm_infer, f32) {
  return with_float_type(output(call).dtype, [&](auto type) { return infer<decltype(type)>(call); });
}

// out: weights and bias of the convolution. Runs once for weights that stay.
KERNEL_FN(batch_norm_fold, f32) {
  const auto& a = attrs<myc_batch_norm_fold_attrs>(call);
  const myc_tensor& weight = input(call);
  const int axis = static_cast<int>(a.axis);
  const float *w = in<float>(call), *scale = in<float>(call, 1), *shift = in<float>(call, 2);
  const float *mean = in<float>(call, 3), *variance = in<float>(call, 4), *bias = in<float>(call, 5);
  float *made = out<float>(call), *made_bias = out<float>(call, 1);
  const int64_t channels = weight.shape[axis], rows = extent(weight, 0, axis + 1);
  const int64_t width = extent(weight, axis + 1, weight.rank);
  const float epsilon = static_cast<float>(a.epsilon);
  const auto factor_of = [&](int64_t c) { return scale[c] / sqrtf(variance[c] + epsilon); };
  std::atomic<bool> finite{true};
  parallel_rows(call, rows, width * 8, [&](int64_t r) {
    const float factor = factor_of(r % channels);
    int bad = 0;
    for (int64_t i = r * width; i < (r + 1) * width; ++i) {
      const float v = w[i] * factor;
      made[i] = v == 0 && w[i] != 0 && factor != 0 ? copysignf(FLT_MIN, v) : v;
      bad |= !(fabsf(v) <= FLT_MAX);
    }
    if (bad) finite.store(false, std::memory_order_relaxed);
  });
  for (int64_t c = 0; c < channels; ++c) {
    made_bias[c] = shift[c] - (bias ? mean[c] - bias[c] : mean[c]) * factor_of(c);
    if (!(fabsf(made_bias[c]) <= FLT_MAX)) finite.store(false, std::memory_order_relaxed);
  }
  return finite.load() ? MYC_OK : fail(call, "batch_norm_fold: a folded weight is not finite");
}

// out: running mean and variance (in place), y, batch mean, inverse deviation.
KERNEL_FN(batch_norm_train, f32) {
  const auto& a = attrs<myc_batch_norm_train_attrs>(call);
  return with_float_type(output(call, 2).dtype, [&](auto type) {
    using T = decltype(type);
    const Training<T> t(call, a);
    return train_activated<kNone, T>(call, layout_of(input(call, 2), a.data_format), t, nullptr);
  });
}

// The same after ``activation(. + residual)``.
KERNEL_FN(batch_norm_act_train, f32) {
  const auto& a = attrs<myc_batch_norm_act_train_attrs>(call);
  const Layout l = layout_of(input(call, 2), a.data_format);
  return with_float_type(output(call, 2).dtype, [&](auto type) {
    using T = decltype(type);
    const Training<T> t(call, a);
    const T* residual = in<T>(call, 5);
    if (a.activation == kRelu) return train_activated<kRelu>(call, l, t, residual);
    if (a.activation == kRelu6) return train_activated<kRelu6>(call, l, t, residual);
    return train_activated<kNone>(call, l, t, residual);
  });
}

// dx may be the memory of dy or x: it is written where both were read.
KERNEL_FN(batch_norm_grad, f32) {
  const auto& a = attrs<myc_batch_norm_grad_attrs>(call);
  const Layout l = layout_of(input(call, 1), a.data_format);
  return with_float_type(output(call).dtype, [&](auto type) {
    using T = decltype(type);
    const Gradient<T> g = {in<T>(call, 1), in<float>(call, 2), in<float>(call, 3),  in<float>(call, 4),
                           nullptr,        out<T>(call, 0),    out<float>(call, 1), out<float>(call, 2)};
    return gradient(call, l, g, NoGate<T>{in<T>(call)});
  });
}

// in: dy, x, scale, bias, batch mean, inverse deviation.
KERNEL_FN(batch_norm_act_grad, f32) {
  const auto& a = attrs<myc_batch_norm_act_grad_attrs>(call);
  const Layout l = layout_of(input(call, 1), a.data_format);
  return with_float_type(output(call).dtype, [&](auto type) {
    using T = decltype(type);
    const Gradient<T> g = {in<T>(call, 1),     in<float>(call, 2), in<float>(call, 4),  in<float>(call, 5),
                           in<float>(call, 3), out<T>(call, 0),    out<float>(call, 1), out<float>(call, 2)};
    if (a.activation + kRelu == kRelu) return gradient(call, l, g, GateByX<kRelu, T>{in<T>(call)});
    return gradient(call, l, g, GateByX<kRelu6, T>{in<T>(call)});
  });
}

}  // namespace mycelia::MYC_ISA
