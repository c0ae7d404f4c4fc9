// Fully connected layers on weights packed once: rows of x are read in place, bias, residual and activation follow while
// the tile is in registers or the first-level cache.  Flops: 2 rows in out.  Bytes: x, y, the residual and w once for up
// to kMostRows rows; a single row runs at the speed at which memory delivers w.  Strassen's product is
// that of gemm/strassen.cc.
//
// Compiled once: the loops are those of an instruction set.
#include "nn_ops/linear.h"

namespace mycelia {

using namespace MYC_ISA;

namespace {

constexpr int64_t kWideLanes = 16;  // of AVX-512
// Of k at once: a panel just fits the first-level cache. AVX-512 reads panels from the second-level cache as fast as it
// needs them, and does better with fewer visits to the result.
int64_t depth_at_once(const TileLoops& loops) { return loops.lanes == kWideLanes ? 1024 : 512; }
// Floats of x in a block of rows, to stay in the second-level cache.
int64_t block_floats(const TileLoops& loops) { return (loops.lanes == kWideLanes ? 128 : 48) * 1024; }
constexpr int64_t kMostTileRows = 12;
constexpr int64_t kMostRows = 384;
constexpr int64_t kShare = 2 << 20;  // multiply-adds of 40 us: less is not worth a second thread

constexpr int64_t kPage = 1024;  // floats: rows so far apart lie in the same sets of the first-level cache
constexpr int64_t kMostCopied = 1 << 20;  // floats of x: more would not stay in a cache from the copy to its use
constexpr int64_t kLeastColumns = 256;    // for which a copy pays

// Rows [first, first + rows) x column blocks [begin, end), k_block of the depth at a time.
void multiply_block(const TileLoops& loops, const Layer& g, int64_t first, int64_t rows, int64_t begin, int64_t end,
                    int64_t k_block) {
  const auto block = [&](int64_t q, int64_t count) {
    return loops.block(g.packed, g.depth * kPackedColumns, q, g.columns, count);
  };
  int64_t x_row[kMostTileRows], y_row[kMostTileRows];
  for (int64_t i = 0; i < loops.rows; ++i) x_row[i] = i * g.x_step, y_row[i] = i * g.columns;
  const int64_t at = first * g.columns;
  for (int64_t k0 = 0; k0 == 0 || k0 < g.depth; k0 += k_block) {
    const int64_t k1 = min(g.depth, k0 + k_block);
    const bool last = k1 == g.depth;
    const Run run = {k0, k0, k1 - k0};
    for (int64_t q = begin, count; q < end; q += count) {
      count = k1 - k0 == g.depth ? loops.blocks_at_once(q, end, g.depth, g.columns) : 1;
      const PackedBlock b = block(q, count);
      const int64_t column = q * loops.columns;
      // While these blocks are computed the next one comes, of the same depth or the first one of the next depth.  One tile
      // alone uses every number just once: it runs behind its own prefetches.
      const bool more = q + count < end;
      const float* next = block(more ? q + count : begin, 1).b + (more ? k0 : k1) * kPackedColumns;
      if (rows <= loops.rows) next = b.b + (k0 + 32) * kPackedColumns;
      // A block's panels lie one behind the other as far as the whole depth goes.
      Ahead ahead = {next, (k1 - k0) * (k1 - k0 == g.depth ? loops.columns : kPackedColumns) * count};
      if (q == begin && rows > loops.rows && k1 - k0 == g.depth) {  // first rows of x come, a tile before they are used
        ahead = {g.x + (first + loops.rows) * g.x_step, rows * g.x_step};
      }
      const Finish f = {k0 > 0, last && g.bias ? g.bias + column : nullptr,
                        last && g.residual ? g.residual + at + column : nullptr,
                        last ? g.activation : Activation::none};
      const RowList list = {g.x + first * g.x_step, g.y + at + column, x_row, y_row, g.x_step, g.columns};
      loops.multiply(rows, list, &run, 1, b, f, ahead);
    }
  }
}

// Whether a tile's rows of x, more of them than the first-level cache has ways, all lie in the same sets.
bool collides(const TileLoops& loops, const Layer& g) {
  return loops.rows > 8 && g.depth % kPage == 0 && g.rows > loops.rows && g.columns >= kLeastColumns && g.rows * g.depth <= kMostCopied;
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

// A batch of one: only memory limits it. Up to half of the streams at the end are left to tiles.
void multiply_row(const myc_call* call, const TileLoops& loops, const Layer& g) {
  const int64_t streams = loops.lanes / 2;
  const int64_t panels = ceil_div(g.columns, kPackedColumns), groups = (panels + streams / 2 - 1) / streams;
  parallel_for(call, groups, kMinParallelWork * 8 / (streams * kPackedColumns * g.depth * 4 + 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t q = begin; q < end; ++q)
                   loops.multiply_streams(g, q * streams * kPackedColumns, min(streams, panels - q * streams));
               });
  const int64_t done = groups * streams * kPackedColumns / loops.columns;
  if (done < loops.blocks(g.columns)) multiply_block(loops, g, 0, 1, done, loops.blocks(g.columns), max<int64_t>(1, g.depth));
}

}  // namespace

int32_t linear(const myc_call* call, const TileLoops& loops, MultiplyStrassen strassen) {
  const auto& a = attrs<myc_linear_attrs>(call);
  const myc_tensor& x = input(call);
  Layer g = {extent(x, 0, x.rank - 1), x.shape[x.rank - 1], a.channels, in<float>(call, 0), in<float>(call, 1),
             in<float>(call, 2), in<float>(call, 3), static_cast<Activation>(a.activation), out<float>(call),
             x.shape[x.rank - 1]};
  if (g.rows == 0 || g.columns == 0) return MYC_OK;
  if (!loops.has(g.activation)) return MYC_E_UNSUPPORTED;
  Scratch scratch(call);
  if (collides(loops, g)) {
    g.x_step += 16;
    g.x = spread_rows(call, scratch, g, g.x_step);
    if (!g.x) return MYC_E_MEMORY;
  }
  if (a.algorithm == kStrassen) return strassen(call->ctx, g);
  if (g.rows == 1) {
    multiply_row(call, loops, g);
    return MYC_OK;
  }
  const int64_t parts = g.rows <= loops.rows ? 1 : max<int64_t>(1, ceil_div(g.depth, depth_at_once(loops)));
  const int64_t k_block = max<int64_t>(1, ceil_div(g.depth, parts));
  const int64_t most = clamp(block_floats(loops) / k_block, 8 * loops.rows, kMostRows);
  const int64_t row_blocks = ceil_div(g.rows, most), in_block = ceil_div(g.rows, row_blocks), blocks = loops.blocks(g.columns);
  parallel_for(call, row_blocks * blocks, kShare / (in_block * g.depth * loops.columns + 1) + 1,
               [&](int64_t begin, int64_t end) {
                 while (begin < end) {
                   const int64_t row = begin / blocks * in_block, q = begin % blocks, count = min(end - begin, blocks - q);
                   multiply_block(loops, g, row, min(in_block, g.rows - row), q, q + count, k_block);
                   begin += count;
                 }
               });
  return MYC_OK;
}

}  // namespace mycelia
