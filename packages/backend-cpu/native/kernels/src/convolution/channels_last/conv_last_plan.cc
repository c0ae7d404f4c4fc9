// Channels-last convolution on packed weights: sizes from the call, and the algorithm that the compiler
// chose. Compiled once: the loops are those of an instruction set.
#include "convolution/channels_last/conv_last.h"

namespace mycelia {

using namespace MYC_ISA;

int32_t conv_last(const myc_call* call, const ConvLoops& loops) {
  const auto& a = attrs<myc_conv_last_attrs>(call);
  ConvLast s = conv_last_shape(input(call, 0), output(call), a);
  s.o = a.channels;  // those of `y` may be more: it begins with the channels that are written
  const ConvEpilogue e = {in<float>(call, 2), in<float>(call, 3), static_cast<Activation>(a.activation)};
  if (!loops.tiles->has(e.activation)) return MYC_E_UNSUPPORTED;
  const float *x = in<float>(call, 0), *packed = in<float>(call, 1);
  const myc_tensor* direct = has_input(call, 4) ? &input(call, 4) : nullptr;
  float* y = out<float>(call);
  const auto algorithm = static_cast<ConvAlgorithm>(a.algorithm);
  switch (algorithm) {
    case ConvAlgorithm::direct:
      return conv_last_direct(call, *loops.tiles, s, x, packed, e, y);
    case ConvAlgorithm::planes: {
      const int32_t done = loops.stem(call, s, x, packed, e, y);
      return done == MYC_E_UNSUPPORTED ? conv_last_planes(call, *loops.tiles, s, x, packed, e, y) : done;
    }
    case ConvAlgorithm::winograd2:
    case ConvAlgorithm::winograd4:
    case ConvAlgorithm::winograd6:
      return loops.winograd(call, s, winograd_size(algorithm), x, packed, direct, e, y);
    case ConvAlgorithm::depthwise:
      return s.y_pixel == s.o ? conv_last_depthwise(call, *loops.depthwise, s, x, packed, e, y) : MYC_E_UNSUPPORTED;
  }
  return MYC_E_UNSUPPORTED;
}

}  // namespace mycelia
