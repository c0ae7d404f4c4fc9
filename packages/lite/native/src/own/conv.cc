// Convolutions of integers and float64, channels first, by their definition.
#include "own.h"

namespace mycelia::lite {

namespace {

// Sizes along depth, height and width; missing ones are 1.
struct Shape {
  int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
};

Shape shape_of(const myc_call* call, const myc_conv_attrs& a) {
  const myc_tensor &x = *call->in[0], &w = *call->in[1], &y = *call->out[0];
  const int rank = x.rank - 2;
  const auto entry = [](const myc_ints& list, int i) { return list.v[list.n == 1 ? 0 : i]; };
  Shape s;
  for (int d = 0; d < 3; ++d) {
    const int i = d - (3 - rank);
    s.in[d] = i < 0 ? 1 : x.shape[2 + i], s.out[d] = i < 0 ? 1 : y.shape[2 + i], s.kernel[d] = i < 0 ? 1 : w.shape[2 + i];
    s.stride[d] = i < 0 ? 1 : entry(a.stride, i), s.dilation[d] = i < 0 ? 1 : entry(a.dilation, i), s.pad[d] = i < 0 ? 0 : entry(a.pad, i);
  }
  return s;
}

template <class T, class Sum>
int32_t convolution(const myc_call* call) {
  const auto& a = attrs<myc_conv_attrs>(call);
  const Shape s = shape_of(call, a);
  const myc_tensor &x = *call->in[0], &w = *call->in[1], &y = *call->out[0];
  const int64_t channels = w.shape[1], outputs = w.shape[0], per_group = outputs / a.group;
  const int64_t plane = s.in[0] * s.in[1] * s.in[2], taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const int64_t places = s.out[0] * s.out[1] * s.out[2];
  for_each(call, y.shape[0] * outputs, 1, [&](int64_t row) {
    const int64_t image = row / outputs, o = row % outputs;
    const T* source = in<T>(call, 0) + (image * x.shape[1] + o / per_group * channels) * plane;
    const T* weights = in<T>(call, 1) + o * channels * taps;
    T* target = out<T>(call) + row * places;
    for (int64_t i = 0; i < places; ++i) {
      const int64_t at[3] = {i / (s.out[1] * s.out[2]), i / s.out[2] % s.out[1], i % s.out[2]};
      Sum sum = in<T>(call, 2) ? static_cast<Sum>(in<T>(call, 2)[o]) : Sum{0};
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t tap[3] = {t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1], t % s.kernel[2]};
        int64_t from = 0;
        bool inside = true;
        for (int d = 0; d < 3; ++d) {
          const int64_t p = at[d] * s.stride[d] - s.pad[d] + tap[d] * s.dilation[d];
          inside = inside && p >= 0 && p < s.in[d];
          from = from * s.in[d] + p;
        }
        for (int64_t c = 0; inside && c < channels; ++c)
          sum += static_cast<Sum>(source[c * plane + from]) * static_cast<Sum>(weights[c * taps + t]);
      }
      target[i] = static_cast<T>(sum);
    }
  });
  return MYC_OK;
}

}  // namespace

int32_t own_conv_f64(const myc_call* call) { return convolution<double, double>(call); }
int32_t own_conv_i32(const myc_call* call) { return convolution<int32_t, uint32_t>(call); }

}  // namespace mycelia::lite
