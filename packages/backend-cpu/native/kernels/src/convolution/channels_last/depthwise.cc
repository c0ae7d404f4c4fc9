// Depthwise convolution with the channels last and its input gradient: every channel has its own
// kernel, so lanes are channels and a vector of sums stays in registers over all taps.
//
// 3x3 and 5x5 have loops of their own over two rows at once, if weights are finite; rows above and below the image are
// rows of zeros.
// Everything else goes pixel by pixel through a list of taps.  All add taps in the same order, column by column of the
// kernel.
// Cost: 2 n positions channels taps flops; x and y are touched once in memory, weights stay in L1.
//
// Compiled once: the loops are those of an instruction set.
#include "convolution/channels_last/depthwise.h"

namespace mycelia {

using namespace MYC_ISA;

namespace {

bool fits_slide(const ConvLast& s) {
  return s.kernel[0] == 3 && s.kernel[1] == 3 && s.stride[0] == 1 && s.stride[1] == 1 && s.dilation[0] == 1 &&
         s.dilation[1] == 1 && s.pad[1] <= 2;
}

bool fits_block(const ConvLast& s) {
  const bool square = s.kernel[0] == s.kernel[1] && s.stride[0] == s.stride[1];
  return square && s.dilation[0] == 1 && s.dilation[1] == 1 &&
         ((s.kernel[0] == 3 && s.stride[0] == 2) || (s.kernel[0] == 5 && s.stride[0] <= 2));
}

}  // namespace

bool DepthwiseRows::make(Scratch& scratch, const DepthwiseLoops& its_loops, int64_t workers, const ConvLast& shape, const float* packed,
                         const ConvEpilogue& epilogue) {
  loops = &its_loops, s = shape, e = epilogue, weights = packed;
  const bool finite = loops->all_finite(packed, round_up(s.c, kPackedColumns) * s.taps());
  slides = finite && fits_slide(s);
  group_rows = slides || (finite && loops->block && fits_block(s)) ? kDepthwiseRows : 1;
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
  DepthwiseLanes l = {n, n, e.bias ? e.bias : zeros, bounds ? 0 : -INFINITY, INFINITY, bounds};
  if (e.activation == Activation::relu6) l.high = 6;
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
    loops->pixel(l, s.taps() * kPackedColumns, list, count, residual ? residual + offset : nullptr, to + offset);
  };
  const float* x[kMostRows];
  for (int64_t r = 0; group_rows > 1 && r < rows_under(rows); ++r) x[r] = under[r] ? under[r] : zeros;
  const DepthwiseCall call = {s, l, x, weights, residual, to, rows};
  if (!slides || !loops->slide(call)) {
    for (int64_t p = 0; p < s.out[1];) {
      const int64_t next = group_rows > 1 && !slides ? loops->block(call, p) : p;
      for (int64_t i = 0; next == p && i < rows; ++i) one(i, p);
      p = max(next, p + 1);
    }
  }
  if (!bounds && e.activation != Activation::none) (void)loops->activate(to, rows * y_line, e.activation);
}

int32_t conv_last_depthwise(const myc_call* call, const DepthwiseLoops& loops, const ConvLast& s, const float* x,
                            const float* packed, const ConvEpilogue& e, float* y) {
  const int64_t line = s.in[1] * s.c, y_line = s.out[1] * s.c;
  if (s.n == 0 || y_line == 0) return MYC_OK;
  Scratch scratch(call);
  DepthwiseRows depthwise;
  if (!depthwise.make(scratch, loops, max_workers(call), s, packed, e)) return MYC_E_MEMORY;
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

}  // namespace mycelia
