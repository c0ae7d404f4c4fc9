// Fully connected layers on weights packed once: rows of x are read in place, bias, residual and activation follow while
// the tile is in registers or the first-level cache.  Flops: 2 rows in out.  Bytes: x, y, the residual and w once for up
// to kMostRows rows; a single row runs at the speed at which memory delivers w.  Strassen's product is
// that of gemm/strassen.cc.
#include "gemm/pack.h"
#include "gemm/rows.h"
#include "gemm/strassen.h"

namespace mycelia::MYC_ISA {
namespace {

// Of k at once: a panel just fits the first-level cache. AVX-512 reads panels from the second-level cache as fast as it
// needs them, and does better with fewer visits to the result.
constexpr int64_t kDepth = kLanes == 16 ? 1024 : 512;
constexpr int64_t kBlockFloats = (kLanes == 16 ? 128 : 48) * 1024;  // of x in a block of rows, to stay in the second-level cache
constexpr int64_t kMostRows = 384;
constexpr int64_t kShare = 2 << 20;  // multiply-adds of 40 us: less is not worth a second thread

constexpr int64_t kPage = 1024;  // floats: rows so far apart lie in the same sets of the first-level cache
constexpr int64_t kMostCopied = 1 << 20;  // floats of x: more would not stay in a cache from the copy to its use
constexpr int64_t kLeastColumns = 256;    // for which a copy pays

constexpr int64_t kStrassen = 1;  // value of the attribute `algorithm` of both ops

struct Layer {
  int64_t rows, depth, columns;
  const float *x, *packed, *bias, *residual;
  Activation activation;
  float* y;
  int64_t x_step;  // floats from row to row of x

  int64_t blocks() const { return ceil_div(columns, kTileColumns); }
  PackedBlock block(int64_t q, int64_t count = 1) const { return {packed, depth * kPackedColumns, q, columns, count}; }
};

// Rows [first, first + rows) x column blocks [begin, end), k_block of the depth at a time.
void multiply_block(const Layer& g, int64_t first, int64_t rows, int64_t begin, int64_t end, int64_t k_block) {
  int64_t x_row[kTileRows], y_row[kTileRows];
  for (int64_t i = 0; i < kTileRows; ++i) x_row[i] = i * g.x_step, y_row[i] = i * g.columns;
  const int64_t at = first * g.columns;
  for (int64_t k0 = 0; k0 == 0 || k0 < g.depth; k0 += k_block) {
    const int64_t k1 = min(g.depth, k0 + k_block);
    const bool last = k1 == g.depth;
    const Run run = {k0, k0, k1 - k0};
    for (int64_t q = begin, count; q < end; q += count) {
      count = k1 - k0 == g.depth ? blocks_at_once(q, end, g.depth, g.columns) : 1;
      const PackedBlock b = g.block(q, count);
      const int64_t column = q * kTileColumns;
      // While these blocks are computed the next one comes, of the same depth or the first one of the next depth.  One tile
      // alone uses every number just once: it runs behind its own prefetches.
      const bool more = q + count < end;
      const float* next = (more ? g.block(q + count) : g.block(begin)).b + (more ? k0 : k1) * kPackedColumns;
      if (rows <= kTileRows) next = b.b + (k0 + 32) * kPackedColumns;
      // A block's panels lie one behind the other as far as the whole depth goes.
      Ahead ahead = {next, (k1 - k0) * (k1 - k0 == g.depth ? kTileColumns : kPackedColumns) * count};
      if (q == begin && rows > kTileRows && k1 - k0 == g.depth) {  // first rows of x come, a tile before they are used
        ahead = {g.x + (first + kTileRows) * g.x_step, rows * g.x_step};
      }
      const Finish f = {k0 > 0, last && g.bias ? g.bias + column : nullptr,
                        last && g.residual ? g.residual + at + column : nullptr,
                        last ? g.activation : Activation::none};
      const RowList list = {g.x + first * g.x_step, g.y + at + column, x_row, y_row, g.x_step, g.columns};
      multiply_rows(rows, list, &run, 1, b, f, ahead);
    }
  }
}

// Whether a tile's rows of x, more of them than the first-level cache has ways, all lie in the same sets.
bool collides(const Layer& g) {
  return kTileRows > 8 && g.depth % kPage == 0 && g.rows > kTileRows && g.columns >= kLeastColumns && g.rows * g.depth <= kMostCopied;
}

// x with rows a line further apart; null without memory.
const float* spread_rows(const myc_call* call, Scratch& scratch, const Layer& g, int64_t step) {
  float* to = scratch.take<float>(g.rows * step);
  if (!to) return nullptr;
  parallel_for(call, g.rows, kMinParallelWork / (8 * g.depth + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) memcpy(to + i * step, g.x + i * g.depth, g.depth * sizeof(float));
  });
  return to;
}

// ---- one row ----

constexpr int kParts = kPackedColumns / kLanes;  // vectors of a panel
constexpr int64_t kStretch = 256;
constexpr int64_t kFarFloats = 192 * 1024;       // of weights: 768 KB, more does not stay in a second-level cache of 1 MB
constexpr int kStreams = 8 / kParts;             // panels at once: eight chains of additions, several streams from memory

// The columns from j on that one row's sums are for.
__attribute__((noinline)) void finish_streams(const Layer& g, int64_t j, const float* sums) {
  const bool bounded = g.activation == Activation::relu || g.activation == Activation::relu6;
  const f32v high = splat(g.activation == Activation::relu6 ? 6.0f : INFINITY);
  const int64_t end = min(g.columns, j + kStreams * kPackedColumns);
  for (int64_t at = j; at < end; at += kLanes) {
    const int64_t lanes = min<int64_t>(kLanes, end - at);
    f32v y = load(sums + (at - j));
    if (g.bias) y += load_partial(g.bias + at, lanes);
    if (g.residual) y += load_partial(g.residual + at, lanes);
    if (bounded) y = clip(y, f32v{}, high);
    store_partial(g.y + at, y, lanes);
  }
  const int64_t begins = 0;
  if (g.activation > Activation::relu6) activate_rows(1, {nullptr, g.y + j, &begins, &begins, 0, 0}, end - j, g.activation);
}

// One row against `count` panels from column j on, at most kStreams; behind the last one it is read again. kFar: the weights
// are more than the second-level cache holds, so they come there first, which waits for more lines than the first-level one.
template <bool kFar>
void multiply_streams(const Layer& g, int64_t j, int64_t count) {
  // Of k: less waits for memory, more drives what the cache needs out of it.
  constexpr int64_t kAhead = kFar ? 16 : 8;
  const float* b = g.packed + j * g.depth;
  int64_t panel[kStreams];
  for (int64_t s = 0; s < kStreams; ++s) panel[s] = min(s, count - 1) * g.depth * kPackedColumns;
  alignas(64) float total[kStreams * kPackedColumns] = {};
  for (int64_t k = 0; k < g.depth;) {
    f32v sum[kStreams][kParts] = {};  // of a stretch: one chain over all of k would lose digits
    for (const int64_t end = min(g.depth, k + kStretch); k < end; ++k, b += kPackedColumns) {
      const f32v a = splat(g.x[k]);
#pragma GCC unroll 8
      for (int s = 0; s < kStreams; ++s) {
        __builtin_prefetch(b + panel[s] + kAhead * kPackedColumns, 0, kFar ? 2 : 3);
#pragma GCC unroll 4
        for (int v = 0; v < kParts; ++v) sum[s][v] = fma(a, load(b + panel[s] + v * kLanes), sum[s][v]);
      }
    }
    for (int s = 0; s < kStreams; ++s) {
      for (int v = 0; v < kParts; ++v) {
        float* to = total + s * kPackedColumns + v * kLanes;
        store(to, load(to) + sum[s][v]);
      }
    }
  }
  finish_streams(g, j, total);
}

// A batch of one: only memory limits it. Up to half of the streams at the end are left to tiles.
void multiply_row(const myc_call* call, const Layer& g) {
  const int64_t panels = ceil_div(g.columns, kPackedColumns), groups = (panels + kStreams / 2 - 1) / kStreams;
  auto run = multiply_streams<false>;
  if constexpr (kLanes == 16)
    if (g.depth * g.columns > kFarFloats) run = multiply_streams<true>;
  parallel_for(call, groups, kMinParallelWork * 8 / (kStreams * kPackedColumns * g.depth * 4 + 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t q = begin; q < end; ++q)
                   run(g, q * kStreams * kPackedColumns, min<int64_t>(kStreams, panels - q * kStreams));
               });
  const int64_t done = groups * kStreams * kPackedColumns / kTileColumns;
  if (done < g.blocks()) multiply_block(g, 0, 1, done, g.blocks(), max<int64_t>(1, g.depth));
}

}  // namespace

KERNEL_FN(linear_pack, f32) {
  const auto& a = attrs<myc_linear_pack_attrs>(call);
  const myc_tensor& w = input(call);
  const bool turned = a.transpose_w != 0;
  if (a.algorithm == kStrassen) {
    const int64_t rows = w.shape[0], length = w.shape[1];
    const float* data = in<float>(call);
    return turned ? MYC_PART(pack_strassen)(call->ctx, {data, 1, length}, length, rows, out<float>(call))
                  : MYC_PART(pack_strassen)(call->ctx, {data, length, 1}, rows, length, out<float>(call));
  }
  const int64_t columns = w.shape[turned ? 0 : 1], depth = w.shape[turned ? 1 : 0];
  const float* from = in<float>(call);
  float* to = out<float>(call);
  parallel_for(call, ceil_div(columns, kPackedColumns), kMinParallelWork / (depth * kPackedColumns * 8 + 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t panel = begin; panel < end; ++panel) {
                   const int64_t j = panel * kPackedColumns, count = min(kPackedColumns, columns - j);
                   float* at = to + j * depth;
                   if (turned) {
                     pack_transposed<kPackedColumns, kPackedColumns>(from + j * depth, depth, count, depth, at);
                   } else {
                     pack_rows<kPackedColumns, kPackedColumns>(from + j, columns, count, depth, at);
                   }
                 }
               });
  return MYC_OK;
}

KERNEL_FN(linear, f32) {
  const auto& a = attrs<myc_linear_attrs>(call);
  const myc_tensor& x = input(call);
  Layer g = {extent(x, 0, x.rank - 1),
                   x.shape[x.rank - 1],
                   a.channels,
                   in<float>(call, 0),
                   in<float>(call, 1),
                   in<float>(call, 2),
                   in<float>(call, 3),
                   static_cast<Activation>(a.activation),
                   out<float>(call),
                   x.shape[x.rank - 1]};
  if (g.rows == 0 || g.columns == 0) return MYC_OK;
  Scratch scratch(call);
  if (collides(g)) {
    g.x_step += 16;
    g.x = spread_rows(call, scratch, g, g.x_step);
    if (!g.x) return MYC_E_MEMORY;
  }
  if (a.algorithm == kStrassen) {
    return MYC_PART(multiply_strassen)(call->ctx, {g.rows, g.depth, g.columns, g.x_step, g.x, g.packed, g.bias, g.residual, g.activation, g.y});
  }
  if (g.rows == 1) {
    multiply_row(call, g);
    return MYC_OK;
  }
  const int64_t parts = g.rows <= kTileRows ? 1 : max<int64_t>(1, ceil_div(g.depth, kDepth));
  const int64_t k_block = max<int64_t>(1, ceil_div(g.depth, parts));
  const int64_t most = clamp(kBlockFloats / k_block, int64_t{8} * kTileRows, kMostRows);
  const int64_t row_blocks = ceil_div(g.rows, most), in_block = ceil_div(g.rows, row_blocks), blocks = g.blocks();
  parallel_for(call, row_blocks * blocks, kShare / (in_block * g.depth * kTileColumns + 1) + 1,
               [&](int64_t begin, int64_t end) {
                 while (begin < end) {
                   const int64_t row = begin / blocks * in_block, q = begin % blocks, count = min(end - begin, blocks - q);
                   multiply_block(g, row, min(in_block, g.rows - row), q, q + count, k_block);
                   begin += count;
                 }
               });
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
