// Depthwise convolution, channels last, in blocks: 3x3 with stride 2 and 5x5.
// Flops and bytes: as the convolution, but for blocks that overlap where the width is no multiple of theirs.
#include "convolution/channels_last/depthwise_block.h"

#include "mycelia/cpu.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int kMaxRows = 7, kMaxColumns = 17;  // of x under a block

BlockKernel block_kernel(const ConvLast& s, int64_t rows, bool narrow) {
  BlockKernel found;
  if constexpr (kDepthwiseBlocks) {
    // Left out, parts find none: positions go one by one.
    if (narrow) return (void)MYC_PART(depthwise_narrow)(rows, &found), found;
    if (s.kernel[0] != 3) return (void)MYC_PART(depthwise5)(s.stride[0], rows, &found), found;
    found.left_columns = found.right_columns = 1;
    if (rows == 2) {
      found.inside = depthwise_loop<3, 2, 2, kWide, 0, 0>;
      found.left = depthwise_loop<3, 2, 2, kWide, 1, 0>;
    } else {
      (void)MYC_PART(depthwise_single)(&found);
    }
    (void)MYC_PART(depthwise_right)(rows, &found);
  }
  return found;
}

// At most 16 channels.
MYC_INLINE void copy_lanes(const float* from, int64_t lanes, float* to) {
  for (int64_t v = 0; v < lanes; v += kLanes)
    store(to + v, lanes - v >= kLanes ? load(from + v) : load_partial(from + v, lanes - v));
}

// The block of `pixels` positions from p on, for all channels; first: the column of x under it, of its columns
// [begin, end) lie in the image.  Channels that do not fill a vector are copied first, with all that they need; so are
// all, 16 at a time, where few of their pixels fit the first-level cache together.
void in_lanes(const DepthwiseCall& call, Block run, int64_t p, int64_t pixels, int64_t first, int64_t begin,
              int64_t end) {
  constexpr int64_t kFewLines = 32;
  const DepthwiseLanes& l = call.l;
  const int64_t y_row = call.y_row(), under = call.s.kernel[0] + (call.rows - 1) * call.s.stride[0];
  const int64_t direct = depthwise_cache_lines(l.pixel) <= kFewLines ? 0 : l.channels / kLanes * kLanes;
  const float* residual = call.residual ? call.residual + p * l.pixel : nullptr;
  const float* rows[kMaxRows];
  float* y = call.y + p * l.pixel;
  for (int64_t r = 0; r < under; ++r) rows[r] = call.x[r] + first * l.pixel;
  if (direct > 0) {
    DepthwiseLanes whole = l;
    whole.channels = direct;
    run(whole, rows, call.w, residual, y, y_row);
  }
  for (int64_t c = direct; c < l.channels; c += kPackedColumns) {
    const int64_t lanes = min(l.channels - c, kPackedColumns);
    float x[kMaxRows][kMaxColumns][kPackedColumns], bias[kPackedColumns];
    float added[kDepthwiseRows][kWide][kPackedColumns], sums[kDepthwiseRows][kWide][kPackedColumns];
    const float* copies[kMaxRows];
    for (int64_t r = 0; r < under; ++r) {
      for (int64_t q = begin; q < end; ++q) copy_lanes(rows[r] + q * l.pixel + c, lanes, x[r][q]);
      copies[r] = x[r][0];
    }
    for (int64_t i = 0; residual && i < call.rows; ++i) {
      for (int64_t j = 0; j < pixels; ++j) copy_lanes(residual + i * y_row + j * l.pixel + c, lanes, added[i][j]);
    }
    copy_lanes(l.bias + c, lanes, bias);
    DepthwiseLanes some = l;
    some.channels = round_up(lanes, int64_t{kLanes}), some.pixel = kPackedColumns, some.bias = bias;
    const float* w = call.w + c / kPackedColumns * call.panel() + c % kPackedColumns;
    run(some, copies, w, residual ? added[0][0] : nullptr, sums[0][0], kWide * kPackedColumns);
    for (int64_t i = 0; i < call.rows; ++i) {
      for (int64_t j = 0; j < pixels; ++j) {
        float* to = y + i * y_row + j * l.pixel + c;
        for (int64_t v = 0; v < lanes; v += kLanes) {
          const f32v sum = load(sums[i][j] + v);
          if (lanes - v >= kLanes) {
            store(to + v, sum);
          } else {
            store_partial(to + v, sum, lanes - v);
          }
        }
      }
    }
  }
}

}  // namespace

int64_t depthwise_block(const DepthwiseCall& call, int64_t p) {
  const ConvLast& s = call.s;
  const int64_t width = s.out[1];
  const bool narrow = s.kernel[1] == 3 && myc_cpu_depthwise_is_narrow(width);
  const int64_t pixels = narrow ? kNarrow : kWide, columns = s.kernel[1] + s.stride[1] * (pixels - 1);
  const int64_t at = p + pixels > width && p + 1 < width ? width - pixels : p;  // some positions once more
  if (at < 0 || at + pixels > width) return p;
  const int64_t first = at * s.stride[1] - s.pad[1], before = max(-first, int64_t{0});
  const int64_t behind = max(first + columns - s.in[1], int64_t{0});
  const Block run = block_kernel(s, call.rows, narrow).outside(before, behind);
  if (!run) return p;
  in_lanes(call, run, at, pixels, first, before, columns - behind);
  return at + pixels;
}

}  // namespace mycelia::MYC_ISA
