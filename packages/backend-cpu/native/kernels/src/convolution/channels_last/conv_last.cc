// Channels-last convolution on packed weights: sizes from the call, and the algorithm that the compiler
// chose.
#include "convolution/channels_last/conv_last.h"

#include <cmath>

namespace mycelia::MYC_ISA {
namespace {

// `x` and `y` are the convolution's own input and output, whichever of its tensors a kernel computes.
template <class Attrs>
ConvLast conv_last_shape(const myc_tensor& x, const myc_tensor& y, const Attrs& a) {
  ConvLast s = {};
  s.n = x.shape[0], s.c = x.shape[3], s.o = y.shape[3], s.group = a.group;
  for (int d = 0; d < 2; ++d) {
    s.in[d] = x.shape[1 + d], s.out[d] = y.shape[1 + d], s.kernel[d] = entry(a.kernel, d);
    s.stride[d] = entry(a.stride, d), s.dilation[d] = entry(a.dilation, d), s.pad[d] = entry(a.pad, d);
  }
  return s;
}

// The convolution that an input gradient of stride 1 is: dy's positions in, x's out.
ConvLast turned(const ConvLast& s) {
  ConvLast t = s;
  t.c = s.o, t.o = s.c;
  for (int d = 0; d < 2; ++d) {
    t.in[d] = s.out[d], t.out[d] = s.in[d];
    t.pad[d] = (s.kernel[d] - 1) * s.dilation[d] - s.pad[d];
  }
  return t;
}

// `packed`: the direct form's pack. Only called if there are weights that are not finite.
int32_t multiply_padding(const myc_call* call, const ConvLast& s, const float* packed, float* y) {
  Scratch scratch(call);
  PaddingProducts padding;
  if (!padding.make(scratch, s, packed)) return MYC_E_MEMORY;
  const int64_t line = s.out[1] * s.o;
  parallel_rows(call, s.n * s.out[0], line * s.taps(), [&](int64_t r) { padding.run(r % s.out[0], 1, y + r * line); });
  return MYC_OK;
}

// The same for the depthwise input gradient. Other algorithms multiply the zeros around dy, but not those that a stride
// puts between its places.
void multiply_padding_of_grad(const myc_call* call, const ConvLast& s, const float* packed, float* dx) {
  const int64_t taps = s.taps();
  // Whether tap t of pixel `at` has a place, and whether dy reaches it.
  struct Place {
    bool any, inside;
  };
  const auto place = [&](int d, int64_t at, int64_t t) {
    const int64_t q = at + s.pad[d] - t * s.dilation[d];
    return Place{q % s.stride[d] == 0, q >= 0 && q < s.out[d] * s.stride[d]};
  };
  parallel_rows(call, s.n * s.in[0], 8 * s.in[1] * taps * s.c, [&](int64_t line) {
    for (int64_t col = 0; col < s.in[1]; ++col) {
      float* pixel = dx + (line * s.in[1] + col) * s.c;
      for (int64_t t = 0; t < taps; ++t) {
        const Place y = place(0, line % s.in[0], t / s.kernel[1]), x = place(1, col, t % s.kernel[1]);
        if (!y.any || !x.any || (y.inside && x.inside)) continue;
        for (int64_t c = 0; c < s.c; ++c) {
          const int64_t at = (c / kPackedColumns * taps + taps - 1 - t) * kPackedColumns + c % kPackedColumns;
          if (!std::isfinite(packed[at])) pixel[c] = NAN;
        }
      }
    }
  });
}

}  // namespace

bool PaddingProducts::make(Scratch& scratch, const ConvLast& shape, const float* packed) {
  s = shape;
  const int64_t taps = s.taps(), depth = s.group_c(), panels = ceil_div(s.group_o(), kPackedColumns);
  spoils = scratch.take<char>(taps * s.o);
  if (!spoils) return false;
  for (int64_t o = 0; o < s.o; ++o) {
    const int64_t j = o % s.group_o(), panel = o / s.group_o() * panels + j / kPackedColumns;
    for (int64_t t = 0; t < taps; ++t) {
      const float* w = packed + (panel * taps + t) * depth * kPackedColumns + j % kPackedColumns;
      bool finite = true;
      for (int64_t i = 0; i < depth; ++i) finite &= std::isfinite(w[i * kPackedColumns]);
      spoils[t * s.o + o] = !finite;
    }
  }
  return true;
}

void PaddingProducts::run(int64_t first, int64_t rows, float* y) const {
  const auto outside = [&](int d, int64_t at, int64_t tap) {
    const int64_t place = at * s.stride[d] - s.pad[d] + tap * s.dilation[d];
    return place < 0 || place >= s.in[d];
  };
  for (int64_t i = 0; i < rows * s.out[1]; ++i, y += s.o) {
    for (int64_t t = 0; t < s.taps(); ++t) {
      if (!outside(0, first + i / s.out[1], t / s.kernel[1]) && !outside(1, i % s.out[1], t % s.kernel[1])) continue;
      for (int64_t o = 0; o < s.o; ++o)
        if (spoils[t * s.o + o]) y[o] = NAN;
    }
  }
}

KERNEL_FN(conv_last, f32) {
  const auto& a = attrs<myc_conv_last_attrs>(call);
  const ConvLast s = conv_last_shape(input(call, 0), output(call), a);
  const ConvEpilogue e = {in<float>(call, 2), in<float>(call, 3), static_cast<Activation>(a.activation)};
  const float *x = in<float>(call, 0), *packed = in<float>(call, 1);
  float* y = out<float>(call);
  const auto algorithm = static_cast<ConvAlgorithm>(a.algorithm);
  if (algorithm == ConvAlgorithm::depthwise) {
    const int32_t status = conv_last_depthwise(call, s, x, packed, e, y);
    if (status != MYC_OK || conv_last_depthwise_finite(s, packed)) return status;
    return multiply_padding(call, conv_last_depthwise_as_direct(s), packed, y);
  }
  const int64_t matrix = ceil_div(s.group_o(), kPackedColumns) * s.group_c() * kPackedColumns;
  const float* panels = packed;
  int32_t status;
  if (algorithm == ConvAlgorithm::direct) {
    status = conv_last_direct(call, s, x, packed, e, y);
  } else {
    const int size = algorithm == ConvAlgorithm::winograd4 ? 4 : 6;
    status = conv_last_winograd(call, s, size, x, packed, e, y);
    panels += (size + 2) * (size + 2) * matrix;
  }
  const bool finite = panels[s.group * s.taps() * matrix] >= 0;
  return finite || status != MYC_OK ? status : multiply_padding(call, s, panels, y);
}

KERNEL_FN(conv_last_input_grad, f32) {
  const auto& a = attrs<myc_conv_last_input_grad_attrs>(call);
  const ConvLast s = conv_last_shape(output(call), input(call, 0), a);
  const float *dy = in<float>(call, 0), *packed = in<float>(call, 1);
  float* dx = out<float>(call);
  switch (static_cast<ConvAlgorithm>(a.algorithm)) {
    case ConvAlgorithm::direct:
      return conv_last_phases_fit(s) ? conv_last_phases_input_grad(call, s, dy, packed, dx)
                                     : conv_last_direct_input_grad(call, s, dy, packed, dx);
    case ConvAlgorithm::winograd4:
      return conv_last_winograd(call, turned(s), 4, dy, packed, ConvEpilogue{}, dx);
    case ConvAlgorithm::winograd6:
      return conv_last_winograd(call, turned(s), 6, dy, packed, ConvEpilogue{}, dx);
    case ConvAlgorithm::depthwise: {
      const int32_t status = conv_last_depthwise_input_grad(call, s, dy, packed, dx);
      if (status == MYC_OK && !conv_last_depthwise_finite(s, packed)) multiply_padding_of_grad(call, s, packed, dx);
      return status;
    }
  }
  return MYC_E_UNSUPPORTED;
}

}  // namespace mycelia::MYC_ISA
