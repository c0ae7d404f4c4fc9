// Convolution and its gradients: sizes from the call, and the choice of the algorithm.
#include "convolution/conv_shape.h"

namespace mycelia::MYC_ISA {
namespace {

// One way to compute the three directions.
struct Algorithm {
  int32_t (*forward)(const myc_call*, const ConvShape&, const float* x, const float* w, const float* bias,
                     float* y);
  int32_t (*input_grad)(const myc_call*, const ConvShape&, const float* dy, const float* w, float* dx);
  int32_t (*weight_grad)(const myc_call*, const ConvShape&, const float* x, const float* dy, float* dw);
};

Algorithm choose(const ConvShape& s) {
  if (conv_planes_fits(s)) return {conv_planes, conv_planes_input_grad, conv_planes_weight_grad};
  const auto forward = conv_few_fits(s) ? conv_few : conv_lanes_fits(s) ? conv_lanes : conv_gemm;
  return {forward, conv_lanes_fits(s) ? conv_lanes_input_grad : conv_gemm_input_grad, conv_tiles_weight_grad};
}

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

}  // namespace

KERNEL_FN(conv, f32) {
  const auto& a = attrs<myc_conv_attrs>(call);
  const ConvShape s = conv_shape(input(call, 0), output(call), input(call, 1).shape + 2, a.stride, a.pad,
                                 a.dilation, a.group);
  return choose(s).forward(call, s, in<float>(call, 0), in<float>(call, 1), in<float>(call, 2),
                           out<float>(call));
}

KERNEL_FN(conv_input_grad, f32) {
  const auto& a = attrs<myc_conv_input_grad_attrs>(call);
  const ConvShape s = conv_shape(output(call), input(call, 0), input(call, 1).shape + 2, a.stride, a.pad,
                                 a.dilation, a.group);
  return choose(s).input_grad(call, s, in<float>(call, 0), in<float>(call, 1), out<float>(call));
}

KERNEL_FN(conv_weight_grad, f32) {
  const auto& a = attrs<myc_conv_weight_grad_attrs>(call);
  const ConvShape s = conv_shape(input(call, 0), input(call, 1), output(call).shape + 2, a.stride, a.pad,
                                 a.dilation, a.group);
  return choose(s).weight_grad(call, s, in<float>(call, 0), in<float>(call, 1), out<float>(call));
}

}  // namespace mycelia::MYC_ISA
