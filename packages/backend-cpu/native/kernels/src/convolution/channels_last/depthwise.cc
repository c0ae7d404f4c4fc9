// Depthwise convolution with the channels last and its input gradient: every channel has its own
// kernel, so lanes are channels and a vector of sums stays in registers over all taps.
//
// 3x3 and 5x5 have loops of their own over two rows at once, if weights are finite; rows above and below the image are
// rows of zeros.
// Everything else goes pixel by pixel through a list of taps.  All add taps in the same order, column by column of the
// kernel.
// Cost: 2 n positions channels taps flops; x and y are touched once in memory, weights stay in L1.
#include "convolution/channels_last/depthwise.h"
#include "simd/magnitude.h"

#include <cmath>

namespace mycelia::MYC_ISA {
namespace {

MYC_INLINE f32v load_lanes(const float* p, int64_t lanes) { return lanes == kLanes ? load(p) : load_partial(p, lanes); }
MYC_INLINE void store_lanes(float* p, f32v v, int64_t lanes) {
  if (lanes == kLanes) {
    store(p, v);
  } else {
    store_partial(p, v, lanes);
  }
}

// One pixel from a list of taps; panel: distance of the weights of 16 channels.
void pixel(const DepthwiseLanes& l, int64_t panel, const DepthwiseTap* taps, int64_t count, const float* residual,
           float* y) {
  constexpr int kVectors = 4;  // chains of additions that hide their latency
  const int64_t n = l.channels;
  const auto weights = [&](const float* w, int64_t c) { return w + c / kPackedColumns * panel + c % kPackedColumns; };
  int64_t c = 0;
  for (; c + kVectors * kLanes <= n; c += kVectors * kLanes) {
    f32v sum[kVectors];
    for (int v = 0; v < kVectors; ++v) sum[v] = load(l.bias + c + v * kLanes);
    for (int64_t t = 0; t < count; ++t)
      for (int v = 0; v < kVectors; ++v)
        sum[v] += load(taps[t].x + c + v * kLanes) * load(weights(taps[t].w, c + v * kLanes));
    for (int v = 0; v < kVectors; ++v) {
      if (residual) sum[v] += load(residual + c + v * kLanes);
      store(y + c + v * kLanes, l.bound(sum[v]));
    }
  }
  for (; c < n; c += kLanes) {
    const int64_t lanes = min<int64_t>(kLanes, n - c);
    f32v sum = load_lanes(l.bias + c, lanes);
    for (int64_t t = 0; t < count; ++t) sum += load_lanes(taps[t].x + c, lanes) * load(weights(taps[t].w, c));
    if (residual) sum += load_lanes(residual + c, lanes);
    store_lanes(y + c, l.bound(sum), lanes);
  }
}

// Loops that multiply zeros outside of an image are for weights that are finite.
bool all_finite(const ConvLast& s, const float* packed) {
  return magnitude_of(magnitude(packed, round_up(s.c, kPackedColumns) * s.taps())) < INFINITY;
}

}  // namespace

bool DepthwiseRows::make(Scratch& scratch, int64_t workers, const ConvLast& shape, const float* packed,
                         const ConvEpilogue& epilogue) {
  s = shape, e = epilogue, weights = packed;
  const bool finite = all_finite(s, packed);
  slides = finite && depthwise_slides(s);
  group_rows = slides || (finite && depthwise_has_blocks(s)) ? kDepthwiseRows : 1;
  const int64_t zero_floats = max(s.in[1] * s.c, round_up(s.c, kPackedColumns));
  float* empty = scratch.take<float>(zero_floats);
  taps = scratch.take<DepthwiseTap>(workers * s.taps());
  if (!empty || !taps) return false;
  memset(empty, 0, zero_floats * sizeof(float));
  zeros = empty;
  return true;
}

void DepthwiseRows::run(const float* const* under, int64_t rows, const float* residual, float* to,
                        int64_t worker) const {
  constexpr int kMostRows = 7;  // of x under two rows of 5x5 with stride 2
  const int64_t n = s.c, y_line = s.out[1] * n;
  const bool bounds = e.activation == Activation::relu || e.activation == Activation::relu6;
  DepthwiseLanes l = {n, n, e.bias ? e.bias : zeros, splat(-INFINITY), splat(INFINITY), bounds};
  if (bounds) l.low = f32v{};
  if (e.activation == Activation::relu6) l.high = splat(6.0f);
  const auto one = [&](int64_t i, int64_t p) {
    DepthwiseTap* list = taps + worker * s.taps();
    int64_t count = 0;
    for (int64_t b = 0; b < s.kernel[1]; ++b) {
      const int64_t q = p * s.stride[1] - s.pad[1] + b * s.dilation[1];
      if (q < 0 || q >= s.in[1]) continue;
      for (int64_t a = 0; a < s.kernel[0]; ++a) {
        const float* from = under[i * s.stride[0] + a * s.dilation[0]];
        if (from) list[count++] = {from + q * n, weights + (a * s.kernel[1] + b) * kPackedColumns};
      }
    }
    const int64_t offset = i * y_line + p * n;
    pixel(l, s.taps() * kPackedColumns, list, count, residual ? residual + offset : nullptr, to + offset);
  };
  const float* x[kMostRows];
  for (int64_t r = 0; group_rows > 1 && r < rows_under(rows); ++r) x[r] = under[r] ? under[r] : zeros;
  const DepthwiseCall call = {s, l, x, weights, residual, to, rows};
  if (slides) {
    depthwise_slide(call);
  } else {
    for (int64_t p = 0; p < s.out[1];) {
      const int64_t next = group_rows > 1 ? depthwise_block(call, p) : p;
      for (int64_t i = 0; next == p && i < rows; ++i) one(i, p);
      p = max(next, p + 1);
    }
  }
  if (!bounds && e.activation != Activation::none)
    map(to, to, rows * y_line, [&](f32v v) { return activate(v, e.activation); });
}

int32_t conv_last_depthwise(const myc_call* call, const ConvLast& s, const float* x, const float* packed,
                            const ConvEpilogue& e, float* y) {
  const int64_t line = s.in[1] * s.c, y_line = s.out[1] * s.c;
  if (s.n == 0 || y_line == 0) return MYC_OK;
  Scratch scratch(call);
  DepthwiseRows depthwise;
  if (!depthwise.make(scratch, max_workers(call), s, packed, e)) return MYC_E_MEMORY;
  const int64_t most = depthwise.rows_under(depthwise.group_rows);
  const float** lists = scratch.take<const float*>(max_workers(call) * most);
  if (!lists) return MYC_E_MEMORY;
  const auto group = [&](int64_t image, int64_t first, int64_t rows, int32_t worker) {
    const int64_t at = (image * s.out[0] + first) * y_line;
    const float** under = lists + worker * most;
    for (int64_t i = 0; i < depthwise.rows_under(rows); ++i) {
      const int64_t r = first * s.stride[0] - s.pad[0] + i;
      under[i] = r < 0 || r >= s.in[0] ? nullptr : x + (image * s.in[0] + r) * line;
    }
    depthwise.run(under, rows, e.residual ? e.residual + at : nullptr, y + at, worker);
  };
  // Threads share rows, not groups: as evenly as those that made x share its pixels.
  const int64_t work = 8 * s.taps() * y_line;
  const int64_t grain = round_up(kMinParallelWork / work + 1, depthwise.group_rows);
  parallel_for_worker(call, s.n * s.out[0], grain, [&](int64_t begin, int64_t end, int32_t worker) {
    for (int64_t row = begin, rows; row < end; row += rows) {
      const int64_t first = row % s.out[0];
      rows = min(depthwise.group_rows, min(end - row, s.out[0] - first));
      group(row / s.out[0], first, rows, worker);
    }
  });
  return MYC_OK;
}

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
  const bool doubles = depthwise_doubles(s) && all_finite(s, packed);
  const DepthwiseLanes l = {n, n, zeros, splat(-INFINITY), splat(INFINITY), false};

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
      pixel(l, panel, taps, count, nullptr, to);
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
