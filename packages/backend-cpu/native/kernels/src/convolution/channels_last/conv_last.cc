// The kernels of channels-last convolutions on packed weights, by the loops of an instruction set.
#include "convolution/channels_last/conv_last.h"

#include "convolution/channels_last/depthwise.h"
#include "gemm/rows.h"

namespace mycelia::MYC_ISA {
namespace {

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

ConvLoops conv_loops() {
  ConvLoops loops = {&kTileLoops, nullptr, MYC_PART(conv_winograd), MYC_PART(conv_stem)};
  (void)MYC_PART(depthwise_loops)(&loops.depthwise);
  return loops;
}

}  // namespace

KERNEL_FN(conv_last, f32) { return mycelia::conv_last(call, conv_loops()); }

KERNEL_FN(conv_last_separable, f32) { return mycelia::conv_last_separable(call, conv_loops()); }

KERNEL_FN(conv_last_input_grad, f32) {
  const auto& a = attrs<myc_conv_last_input_grad_attrs>(call);
  const ConvLast s = conv_last_shape(output(call), input(call, 0), a);
  const float *dy = in<float>(call, 0), *packed = in<float>(call, 1);
  float* dx = out<float>(call);
  const auto algorithm = static_cast<ConvAlgorithm>(a.algorithm);
  switch (algorithm) {
    case ConvAlgorithm::direct:
      return conv_last_phases_fit(s) ? conv_last_phases_input_grad(call, s, dy, packed, dx)
                                     : conv_last_direct_input_grad(call, kTileLoops, s, dy, packed, dx);
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
