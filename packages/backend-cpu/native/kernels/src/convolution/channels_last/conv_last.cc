// Channels-last convolution on packed weights: sizes from the call, and the algorithm that the compiler
// chose.
#include "convolution/channels_last/conv_last.h"

namespace mycelia::MYC_ISA {
namespace {

// `x` and `y` are the convolution's own input and output, whichever of its tensors a kernel computes.
template <class Attrs>
ConvLast conv_last_shape(const myc_tensor& x, const myc_tensor& y, const Attrs& a) {
  const bool first = static_cast<ConvAlgorithm>(a.algorithm) == ConvAlgorithm::planes;  // are x's channels
  ConvLast s = {};
  s.n = x.shape[0], s.c = x.shape[first ? 1 : 3], s.o = s.y_pixel = y.shape[3], s.group = a.group;
  for (int d = 0; d < 2; ++d) {
    s.in[d] = x.shape[first + 1 + d], s.out[d] = y.shape[1 + d], s.kernel[d] = entry(a.kernel, d);
    s.stride[d] = entry(a.stride, d), s.dilation[d] = entry(a.dilation, d), s.pad[d] = entry(a.pad, d);
  }
  return s;
}

// The convolution that an input gradient of stride 1 is: dy's positions in, x's out.
ConvLast turned(const ConvLast& s) {
  ConvLast t = s;
  t.c = s.o, t.o = t.y_pixel = s.c;
  for (int d = 0; d < 2; ++d) {
    t.in[d] = s.out[d], t.out[d] = s.in[d];
    t.pad[d] = (s.kernel[d] - 1) * s.dilation[d] - s.pad[d];
  }
  return t;
}

}  // namespace

KERNEL_FN(conv_last, f32) {
  const auto& a = attrs<myc_conv_last_attrs>(call);
  ConvLast s = conv_last_shape(input(call, 0), output(call), a);
  s.o = a.channels;  // those of `y` may be more: it begins with the channels that are written
  const ConvEpilogue e = {in<float>(call, 2), in<float>(call, 3), static_cast<Activation>(a.activation)};
  const float *x = in<float>(call, 0), *packed = in<float>(call, 1);
  const myc_tensor* direct = has_input(call, 4) ? &input(call, 4) : nullptr;
  float* y = out<float>(call);
  const auto algorithm = static_cast<ConvAlgorithm>(a.algorithm);
  switch (algorithm) {
    case ConvAlgorithm::direct:
      return conv_last_direct(call, s, x, packed, e, y);
    case ConvAlgorithm::planes:
      return conv_last_planes(call, s, x, packed, e, y);
    case ConvAlgorithm::winograd2:
    case ConvAlgorithm::winograd4:
    case ConvAlgorithm::winograd6:
      return MYC_PART(conv_winograd)(call, s, winograd_size(algorithm), x, packed, direct, e, y);
    case ConvAlgorithm::depthwise:
      return s.y_pixel == s.o ? conv_last_depthwise(call, s, x, packed, e, y) : MYC_E_UNSUPPORTED;
  }
  return MYC_E_UNSUPPORTED;
}

KERNEL_FN(conv_last_input_grad, f32) {
  const auto& a = attrs<myc_conv_last_input_grad_attrs>(call);
  const ConvLast s = conv_last_shape(output(call), input(call, 0), a);
  const float *dy = in<float>(call, 0), *packed = in<float>(call, 1);
  float* dx = out<float>(call);
  const auto algorithm = static_cast<ConvAlgorithm>(a.algorithm);
  switch (algorithm) {
    case ConvAlgorithm::direct:
      return conv_last_phases_fit(s) ? conv_last_phases_input_grad(call, s, dy, packed, dx)
                                     : conv_last_direct_input_grad(call, s, dy, packed, dx);
    case ConvAlgorithm::winograd2:
    case ConvAlgorithm::winograd4:
    case ConvAlgorithm::winograd6:
      return MYC_PART(conv_winograd)(call, turned(s), winograd_size(algorithm), dy, packed, nullptr, ConvEpilogue{}, dx);
    case ConvAlgorithm::depthwise:
      return conv_last_depthwise_input_grad(call, s, dy, packed, dx);
    case ConvAlgorithm::planes:
      break;  // the forward pass alone has it
  }
  return MYC_E_UNSUPPORTED;
}

}  // namespace mycelia::MYC_ISA
