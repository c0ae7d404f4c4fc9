// Convolution and its gradients: sizes from the call, and the choice of the algorithm.  Each kernel names its own algorithms
// alone, so that programs link no others.
#include "convolution/conv_shape.h"

namespace mycelia::MYC_ISA {
namespace {

// A list attribute of one entry holds for all dimensions.
int64_t entry(const myc_ints& list, int i) { return list.v[list.n == 1 ? 0 : i]; }

// `x` and `y` are the convolution's own input and output, whichever of its tensors a kernel computes.
ConvShape conv_shape(const myc_tensor& x, const myc_tensor& y, const int64_t* kernel, const myc_ints& stride,
                     const myc_ints& pad, const myc_ints& dilation, int64_t group) {
  ConvShape s = {x.shape[0], x.shape[1], y.shape[1], group,     {1, 1, 1},
                 {1, 1, 1},  {1, 1, 1},  {1, 1, 1},  {1, 1, 1}, {0, 0, 0}};
  const int rank = x.rank - 2;
  for (int i = 0; i < rank; ++i) {
    const int d = 3 - rank + i;
    s.in[d] = x.shape[2 + i], s.out[d] = y.shape[2 + i], s.kernel[d] = kernel[i];
    // Of no meaning, and of any size, where there is nothing to step to.
    s.stride[d] = s.out[d] == 1 ? 1 : entry(stride, i), s.dilation[d] = s.kernel[d] == 1 ? 1 : entry(dilation, i);
    s.pad[d] = entry(pad, i);
  }
  return s;
}

ConvLayout channels_first(int64_t channels, int64_t plane) { return {channels * plane, plane, 1}; }

// `a`, `b`, `to` as conv_restore_border has them.
int32_t restore_border(const myc_call* call, ConvResult kind, const ConvShape& s, const float* a, const float* b,
                       const float* bias, float* to, int32_t status) {
  if (status == MYC_OK)
    conv_restore_border(call, kind, s, channels_first(s.c, s.in_plane()), channels_first(s.o, s.out_plane()), a, b,
                        bias, to);
  return status;
}

}  // namespace

KERNEL_FN(conv, f32) {
  const auto& a = attrs<myc_conv_attrs>(call);
  const ConvShape s = conv_shape(input(call, 0), output(call), input(call, 1).shape + 2, a.stride, a.pad,
                                 a.dilation, a.group);
  const float *x = in<float>(call, 0), *w = in<float>(call, 1), *bias = in<float>(call, 2);
  float* y = out<float>(call);
  const auto compute = conv_planes_fits(s)  ? conv_planes
                       : conv_few_fits(s)   ? conv_few
                       : conv_lanes_fits(s) ? conv_lanes
                                            : conv_gemm;
  return restore_border(call, ConvResult::forward, s, x, w, bias, y, compute(call, s, x, w, bias, y));
}

KERNEL_FN(conv_input_grad, f32) {
  const auto& a = attrs<myc_conv_input_grad_attrs>(call);
  const ConvShape s = conv_shape(output(call), input(call, 0), input(call, 1).shape + 2, a.stride, a.pad,
                                 a.dilation, a.group);
  const float *dy = in<float>(call, 0), *w = in<float>(call, 1);
  float* dx = out<float>(call);
  const auto compute = conv_planes_fits(s)  ? conv_planes_input_grad
                       : conv_lanes_fits(s) ? conv_lanes_input_grad
                                            : conv_gemm_input_grad;
  return restore_border(call, ConvResult::input_grad, s, dy, w, nullptr, dx, compute(call, s, dy, w, dx));
}

KERNEL_FN(conv_weight_grad, f32) {
  const auto& a = attrs<myc_conv_weight_grad_attrs>(call);
  const ConvShape s = conv_shape(input(call, 0), input(call, 1), output(call).shape + 2, a.stride, a.pad,
                                 a.dilation, a.group);
  const float *x = in<float>(call, 0), *dy = in<float>(call, 1);
  float* dw = out<float>(call);
  const auto compute = conv_planes_fits(s) ? conv_planes_weight_grad : conv_tiles_weight_grad;
  return restore_border(call, ConvResult::weight_grad, s, x, dy, nullptr, dw, compute(call, s, x, dy, dw));
}

}  // namespace mycelia::MYC_ISA
