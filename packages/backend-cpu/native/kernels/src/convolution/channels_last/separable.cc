// A depthwise convolution, the 1x1 convolution behind it and, if any, the one in front of it, as one pass over rows.
//
// What lies between them is many times as large as what comes in and goes out, and never leaves the second-level
// cache: a worker walks down its rows of an image and keeps just those of the expanded image that are still needed, in
// a ring.  Only the first rows of a worker's share are computed twice, so shares are long.
// Flops: those of the three convolutions.  Bytes: x, y and the packs once.
//
// Compiled once: the loops are those of an instruction set.
#include "convolution/channels_last/depthwise.h"

namespace mycelia {

using namespace MYC_ISA;

namespace {

constexpr int64_t kDepth = 384;              // of k at once: a panel of this depth is 24 KB of the first-level cache
constexpr int64_t kMostTileRows = 12;
constexpr int64_t kShareRows = 4;            // of y: at least so many in a row for one worker
constexpr int64_t kShares = 2;               // for each worker, at most: every one computes some expanded rows again

// A 1x1 convolution of pixels that lie one behind another.
struct Pointwise {
  const TileLoops& loops;
  int64_t depth, columns;
  const float *packed, *bias;
  Activation activation;

  // residual: as `to`; may be null.
  void run(int64_t pixels, const float* from, const float* residual, float* to) const {
    if (!residual && loops.multiply_dense) {
      const int64_t done = loops.multiply_dense({pixels, depth, columns, from, packed, bias, nullptr, activation, to, depth});
      if (done == pixels) return;
      pixels -= done, from += done * depth, to += done * columns;
    }
    int64_t a_row[kMostTileRows], c_row[kMostTileRows];
    for (int64_t i = 0; i < loops.rows; ++i) a_row[i] = i * depth, c_row[i] = i * columns;
    const int64_t blocks = loops.blocks(columns);
    const int64_t k_total = max<int64_t>(1, depth), k_block = ceil_div(k_total, ceil_div(k_total, kDepth));
    for (int64_t k = 0; k < k_total; k += k_block) {
      const bool last = k + k_block >= k_total;
      const Run run = {k, k, min(depth - k, k_block)};
      for (int64_t block = 0, count; block < blocks; block += count) {
        count = k_block == k_total ? loops.blocks_at_once(block, blocks, depth, columns) : 1;
        const PackedBlock b = loops.block(packed, depth * kPackedColumns, block, columns, count);
        const int64_t column = block * loops.columns;
        const RowList rows = {from, to + column, a_row, c_row, depth, columns};
        const Finish f = {k > 0, last && bias ? bias + column : nullptr, last && residual ? residual + column : nullptr,
                          last ? activation : Activation::none};
        loops.multiply(pixels, rows, &run, 1, b, f, {b.b, 0});
      }
    }
  }
};

}  // namespace

int32_t conv_last_separable(const myc_call* call, const ConvLoops& loops) {
  const auto& a = attrs<myc_conv_last_separable_attrs>(call);
  const myc_tensor &x = input(call, 0), &y = output(call);
  const float* expanding = in<float>(call, 6);
  const auto activation = [](int64_t value) { return static_cast<Activation>(value); };
  ConvLast s = {};
  s.n = x.shape[0], s.c = s.o = s.group = a.hidden;
  for (int d = 0; d < 2; ++d) {
    s.in[d] = x.shape[1 + d], s.out[d] = y.shape[1 + d], s.kernel[d] = entry(a.kernel, d);
    s.stride[d] = entry(a.stride, d), s.dilation[d] = 1, s.pad[d] = entry(a.pad, d);
  }
  if (y.size == 0) return MYC_OK;
  const int64_t used = max(a.activation, max(a.expand_activation, a.hidden_activation));  // those that may be left out come last
  if (!loops.tiles->has(activation(used))) return MYC_E_UNSUPPORTED;
  const Pointwise expand = {*loops.tiles, x.shape[3], s.c, expanding, in<float>(call, 7), activation(a.expand_activation)};
  const Pointwise project = {*loops.tiles,  s.c, y.shape[3], in<float>(call, 2), in<float>(call, 4),
                             activation(a.activation)};
  const float *from = in<float>(call, 0), *residual = in<float>(call, 5);
  float* to = out<float>(call);

  Scratch scratch(call);
  const int64_t workers = max_workers(call);
  DepthwiseRows depthwise;
  if (!depthwise.make(scratch, *loops.depthwise, workers, s, in<float>(call, 1),
                      {in<float>(call, 3), nullptr, activation(a.hidden_activation)}))
    return MYC_E_MEMORY;
  const int64_t rows_each = depthwise.group_rows, most = depthwise.rows_under(rows_each);
  const int64_t line = s.in[1] * s.c, ring_floats = expanding ? most * line : 0;
  const int64_t middle_floats = rows_each * s.out[1] * s.c, own = ring_floats + middle_floats;
  float* memory = scratch.take<float>(workers * own);
  const float** lists = scratch.take<const float*>(workers * most);
  if (!memory || !lists) return MYC_E_MEMORY;

  const int64_t groups = ceil_div(s.out[0], rows_each);  // of rows of an image
  const auto share = [&](int64_t begin, int64_t end, int32_t worker) {
    float *ring = memory + worker * own, *middle = ring + ring_floats;
    const float** under = lists + worker * most;
    int64_t expanded = 0;  // rows of the image before this one have been in the ring
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / groups, first = task % groups * rows_each;
      const int64_t rows = min(rows_each, s.out[0] - first), top = first * s.stride[0] - s.pad[0];
      if (task == begin || first == 0) expanded = 0;
      for (int64_t i = 0; i < depthwise.rows_under(rows); ++i) {
        const int64_t r = top + i;
        under[i] = nullptr;
        if (r < 0 || r >= s.in[0]) continue;
        const float* here = from + (image * s.in[0] + r) * s.in[1] * x.shape[3];
        if (expanding) {
          float* slot = ring + r % most * line;
          if (r >= expanded) expand.run(s.in[1], here, nullptr, slot), expanded = r + 1;
          here = slot;
        }
        under[i] = here;
      }
      depthwise.run(under, rows, nullptr, middle, worker);
      const int64_t at = (image * s.out[0] + first) * s.out[1] * y.shape[3];
      project.run(rows * s.out[1], middle, residual ? residual + at : nullptr, to + at);
    }
  };
  const int64_t tasks = s.n * groups;
  const int64_t grain = max(ceil_div(tasks, kShares * workers), ceil_div(kShareRows, rows_each));
  const int64_t work = 8 * s.c * (s.in[1] * expand.depth + s.out[1] * (s.taps() + project.columns)) * rows_each;
  parallel_for_worker(call, tasks, max(grain, kMinParallelWork / work + 1), share);
  return MYC_OK;
}

}  // namespace mycelia
