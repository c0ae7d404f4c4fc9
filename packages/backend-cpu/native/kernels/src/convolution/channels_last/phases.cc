// Input gradient of a strided convolution with few input channels: the stem of a network, or its last upsampling to
// an image.
//
// Positions of x with one remainder by the stride (a phase) are a convolution of dy with the taps that reach this
// remainder, and three channels leave most lanes of a vector idle. Here all phases of a place are columns of one
// product: a convolution of dy with stride 1, over the union of their taps, whose results are then put side by side.
// Weights are zero where a phase lacks a tap; so an infinite dy makes all phases of a place NaN. Then the direct form
// computes all of it once more.
// Flops: 2 places union o 16, where the definition has 2 places taps o c.
#include "convolution/channels_last/conv_last.h"
#include "gemm/rows.h"
#include "simd/magnitude.h"

#include <cmath>

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kPlaceFloats = 1 << 20;  // results of all phases at once, unless an image has more

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }

// Position stride * i + r gets dy[i + u] times tap r + pad - stride u: the u of all r.
struct Union {
  int64_t first, count;

  Union(const ConvLast& s, int d) {
    first = -floor_div(s.kernel[d] - 1 - s.pad[d], s.stride[d]);
    count = floor_div(s.stride[d] - 1 + s.pad[d], s.stride[d]) - first + 1;
  }
};

// [u][v][o][16] of the pack [tap][o][16], whose taps are flipped.
void join_phases(const ConvLast& s, const Union (&all)[2], const float* packed, float* joined) {
  const int64_t panel = s.o * kPackedColumns;
  memset(joined, 0, static_cast<size_t>(all[0].count * all[1].count * panel) * sizeof(float));
  for (int64_t u = 0; u < all[0].count; ++u) {
    for (int64_t v = 0; v < all[1].count; ++v, joined += panel) {
      for (int64_t r = 0; r < s.stride[0]; ++r) {
        for (int64_t q = 0; q < s.stride[1]; ++q) {
          const int64_t row = r + s.pad[0] - s.stride[0] * (all[0].first + u),
                        col = q + s.pad[1] - s.stride[1] * (all[1].first + v);
          if (row < 0 || row >= s.kernel[0] || col < 0 || col >= s.kernel[1]) continue;
          const float* from = packed + (s.taps() - 1 - (row * s.kernel[1] + col)) * panel;
          float* to = joined + (r * s.stride[1] + q) * s.c;
          for (int64_t i = 0; i < s.o; ++i)
            for (int64_t j = 0; j < s.c; ++j) to[i * kPackedColumns + j] = from[i * kPackedColumns + j];
        }
      }
    }
  }
}

}  // namespace

bool conv_last_phases_fit(const ConvLast& s) {
  const int64_t phases = s.stride[0] * s.stride[1];
  if (s.group != 1 || phases == 1 || phases * s.c > kPackedColumns || s.c == 0) return false;
  if (s.dilation[0] != 1 || s.dilation[1] != 1) return false;
  const Union rows(s, 0), cols(s, 1);
  if (rows.count < 1 || cols.count < 1) return false;
  // Products with a lane each, idle lanes counted. A tile one vector wide needs half as many loads again.
  const int64_t alone = s.taps() * round_up(s.c, kLanes), joined = rows.count * cols.count * kPackedColumns;
  return 2 * joined <= 3 * alone;
}

int32_t conv_last_phases_input_grad(const myc_call* call, const ConvLast& s, const float* dy, const float* packed,
                                    float* dx) {
  const Union all[2] = {Union(s, 0), Union(s, 1)};
  ConvLast t = {};
  t.c = s.o, t.o = t.y_pixel = kPackedColumns, t.group = 1;
  for (int d = 0; d < 2; ++d) {
    t.in[d] = s.out[d], t.out[d] = ceil_div(s.in[d], s.stride[d]), t.kernel[d] = all[d].count;
    t.stride[d] = t.dilation[d] = 1, t.pad[d] = -all[d].first;
  }
  const int64_t places = t.out[0] * t.out[1];
  const int64_t images = clamp(kPlaceFloats / (max<int64_t>(places, 1) * t.o), int64_t{1}, max<int64_t>(s.n, 1));
  Scratch scratch(call);
  float* joined = scratch.take<float>(t.taps() * t.c * t.o);
  float* all_phases = scratch.take<float>(images * places * t.o);
  bool* unknown = scratch.take<bool>(images * s.in[0]);  // of each line of x: whether there is a NaN
  if (!joined || !all_phases || !unknown) return MYC_E_MEMORY;
  join_phases(s, all, packed, joined);
  const int64_t width = s.in[1] * s.c, step = s.stride[1] * s.c;  // floats of a line of x, of a line's place
  for (int64_t first = 0; first < s.n; first += images) {
    t.n = min(images, s.n - first);
    const int32_t status = conv_last_direct(call, kTileLoops, t, dy + first * s.out[0] * s.out[1] * s.o, joined, {}, all_phases);
    if (status != MYC_OK) return status;
    parallel_rows(call, t.n * s.in[0], width * 8, [&](int64_t line) {
      const int64_t image = line / s.in[0], i = line % s.in[0];
      const float* from = all_phases + (image * t.out[0] + i / s.stride[0]) * t.out[1] * t.o + i % s.stride[0] * step;
      float *begin = dx + (first * s.in[0] + line) * width, *to = begin;
      for (int64_t left = width; left > 0; left -= step, from += t.o, to += step)
        for (int64_t j = 0; j < min(left, step); ++j) to[j] = from[j];
      unknown[line] = std::isnan(magnitude_of(magnitude(begin, width)));
    });
    for (int64_t line = 0; line < t.n * s.in[0]; ++line)
      if (unknown[line]) return conv_last_direct_input_grad(call, kTileLoops, s, dy, packed, dx);
  }
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
