// Input gradient of depthwise convolutions, channels last: rows from those of dy, or pixel by pixel through a list of taps.
// Cost: 2 n positions channels taps flops; dy and dx are touched once in memory, weights stay in L1.
#include "convolution/channels_last/depthwise.h"

namespace mycelia::MYC_ISA {

// A pixel of dx collects the positions whose windows hold it; the flipped pack has the taps in falling order.
int32_t conv_last_depthwise_input_grad(const myc_call* call, const ConvLast& s, const float* dy, const float* packed,
                                       float* dx) {
  const int64_t n = s.c, panel = s.taps() * kPackedColumns;
  if (s.n == 0 || n == 0) return MYC_OK;
  Scratch scratch(call);
  float* zeros = scratch.take<float>(n);
  float* spares = scratch.take<float>(max_workers(call) * n);
  DepthwiseTap* lists = scratch.take<DepthwiseTap>(max_workers(call) * s.taps());
  if (!zeros || !spares || !lists) return MYC_E_MEMORY;
  memset(zeros, 0, n * sizeof(float));
  const bool doubles = depthwise_doubles(s) && depthwise_finite(packed, round_up(n, kPackedColumns) * s.taps());
  const DepthwiseLanes l = {n, n, zeros, -INFINITY, INFINITY, false};

  // The position of which pixel p is tap t; -1 for none.
  const auto position = [&](int d, int64_t p, int64_t t) {
    const int64_t q = p + s.pad[d] - t * s.dilation[d];
    return q < 0 || q % s.stride[d] || q / s.stride[d] >= s.out[d] ? int64_t{-1} : q / s.stride[d];
  };
  const auto row = [&](int64_t task, int32_t worker) {
    const int64_t image = task / s.in[0], r = task % s.in[0];
    float* to = dx + task * s.in[1] * n;
    DepthwiseTap* taps = lists + worker * s.taps();
    if (doubles) {
      int64_t count = 0;
      for (int64_t a = 0; a < s.kernel[0]; ++a) {
        const int64_t y = position(0, r, a);
        if (y >= 0)
          taps[count++] = {dy + (image * s.out[0] + y) * s.out[1] * n,
                           packed + (s.kernel[0] - 1 - a) * s.kernel[1] * kPackedColumns};
      }
      depthwise_double(s, taps, count, zeros, spares + worker * n, to);
      return;
    }
    for (int64_t p = 0; p < s.in[1]; ++p, to += n) {
      int64_t count = 0;
      for (int64_t a = 0; a < s.kernel[0]; ++a) {
        const int64_t y = position(0, r, a);
        if (y < 0) continue;
        for (int64_t b = 0; b < s.kernel[1]; ++b) {
          const int64_t e = position(1, p, b);
          if (e >= 0)
            taps[count++] = {dy + ((image * s.out[0] + y) * s.out[1] + e) * n,
                             packed + (s.taps() - 1 - a * s.kernel[1] - b) * kPackedColumns};
        }
      }
      depthwise_pixel(l, panel, taps, count, nullptr, to);
    }
  };
  const int64_t work = 8 * s.in[1] * n * (s.taps() / (s.stride[0] * s.stride[1]) + 1);
  parallel_for_worker(call, s.n * s.in[0], kMinParallelWork / work + 1,
                      [&](int64_t begin, int64_t end, int32_t worker) {
                        for (int64_t i = begin; i < end; ++i) row(i, worker);
                      });
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
