// Depthwise convolution of one pixel, by a list of taps.
#include "convolution/channels_last/depthwise_lanes.h"
#include "simd/lanes.h"
#include "simd/magnitude.h"

namespace mycelia::MYC_ISA {

void depthwise_pixel(const DepthwiseLanes& l, int64_t panel, const DepthwiseTap* taps, int64_t count, const float* residual,
           float* y) {
  constexpr int kVectors = 4;  // chains of additions that hide their latency
  const int64_t n = l.channels;
  const auto weights = [&](const float* w, int64_t c) { return w + c / kPackedColumns * panel + c % kPackedColumns; };
  const LaneBounds bound(l);
  int64_t c = 0;
  for (; c + kVectors * kLanes <= n; c += kVectors * kLanes) {
    f32v sum[kVectors];
    for (int v = 0; v < kVectors; ++v) sum[v] = load(l.bias + c + v * kLanes);
    for (int64_t t = 0; t < count; ++t)
      for (int v = 0; v < kVectors; ++v)
        sum[v] += load(taps[t].x + c + v * kLanes) * load(weights(taps[t].w, c + v * kLanes));
    for (int v = 0; v < kVectors; ++v) {
      if (residual) sum[v] += load(residual + c + v * kLanes);
      store(y + c + v * kLanes, bound(sum[v]));
    }
  }
  for (; c < n; c += kLanes) {
    const int64_t lanes = min<int64_t>(kLanes, n - c);
    f32v sum = load_lanes(l.bias + c, lanes);
    for (int64_t t = 0; t < count; ++t) sum += load_lanes(taps[t].x + c, lanes) * load(weights(taps[t].w, c));
    if (residual) sum += load_lanes(residual + c, lanes);
    store_lanes(y + c, bound(sum), lanes);
  }
}

bool depthwise_finite(const float* weights, int64_t count) { return magnitude_of(magnitude(weights, count)) < INFINITY; }

}  // namespace mycelia::MYC_ISA
