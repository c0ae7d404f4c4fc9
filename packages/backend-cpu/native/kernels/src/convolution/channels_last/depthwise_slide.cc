// 3x3 depthwise convolution of stride 1, channels last: along a row.
//
// The next vector takes the other half of each cache line, so a walk ends before the first-level cache is full.  Where
// the distance of pixels is a multiple of 1 KB, they all lie in so few of its sets that a walk of any use does not fit:
// then 16 channels of the pixels are copied first.
// Flops and bytes: as the convolution; x four times from the second-level cache for two rows of y.
#include "convolution/channels_last/depthwise_walk.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kLineFloats = 16;            // of a cache line
constexpr int64_t kWalk = 64, kShortWalk = 7;  // positions

// rest: the walk for channels that do not fill a vector.
template <int kRows>
void walk_any(const DepthwiseCall& call, Walk rest, const float* const* x, int64_t x_pixel, int64_t shift, int64_t begin,
              int64_t end, int64_t c, int64_t last) {
  const int64_t whole = c + (last - c) / kLanes * kLanes;
  if (c < whole) {
    Walk run = walk<kRows, true, Ending::any>;
    if constexpr (kRows == 2) (void)MYC_PART(depthwise_endings)(call, &run);
    run(call, x, x_pixel, shift, begin, end, c, whole);
  }
  if (whole == last) return;
  const float* from[kRows + 2];
  for (int r = 0; r < kRows + 2; ++r) from[r] = x[r] + (whole - c);
  rest(call, from, x_pixel, shift, begin, end, whole, last);
}

template <int kRows>
void slide(const DepthwiseCall& call, Walk rest) {
  const int64_t n = call.l.channels, columns = call.s.in[1], pad = call.s.pad[1];
  // Walks whose pixels (kRows + 2 rows, two more columns) and positions fit, with a bit of room.
  const int64_t lines = depthwise_cache_lines(call.l.pixel), fit = (lines * 5 / 6 - 2 * (kRows + 2)) / (2 * kRows + 2);
  const bool apart = fit < min(kShortWalk, call.s.out[1]);
  const int64_t walks = ceil_div(call.s.out[1], apart ? kWalk : min(kWalk, fit));
  for (int64_t i = 0; i < walks; ++i) {
    const int64_t begin = call.s.out[1] * i / walks, end = call.s.out[1] * (i + 1) / walks;
    if (!apart) {
      walk_any<kRows>(call, rest, call.x, call.l.pixel, 0, begin, end, 0, n);
      continue;
    }
    alignas(64) float copy[kRows + 2][(kWalk + 2) * kLineFloats];
    const int64_t first = max<int64_t>(0, begin - pad), stop = min(columns, end - pad + 2);
    for (int64_t c = 0; c < n; c += kLineFloats) {
      const float* here[kRows + 2];
      for (int r = 0; r < kRows + 2; ++r) {
        here[r] = copy[r];
        const float* from = call.x[r] + first * call.l.pixel + c;
        for (int64_t q = 0; q < stop - first; ++q)
          for (int64_t v = 0; v < kLineFloats; v += kLanes)
            store(copy[r] + q * kLineFloats + v, load(from + q * call.l.pixel + v));
      }
      walk_any<kRows>(call, rest, here, kLineFloats, first, begin, end, c, c + kLineFloats);
    }
  }
}

}  // namespace

KERNEL_PART(depthwise_slide)(const DepthwiseCall& call) {
  Walk rest = nullptr;
  if (call.l.channels % kLanes != 0 && MYC_PART(depthwise_rest)(call.rows, &rest) != MYC_OK) return MYC_E_UNSUPPORTED;
  if (call.rows == 2) {
    slide<2>(call, rest);
  } else {
    slide<1>(call, rest);
  }
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
