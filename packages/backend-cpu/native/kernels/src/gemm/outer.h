// Sums of outer products: both operands have k as their outer dimension, as in weight gradients.  For gemm.cc alone.
#ifndef MYCELIA_GEMM_OUTER_H_
#define MYCELIA_GEMM_OUTER_H_

#include "gemm/blocks.h"

namespace mycelia::MYC_ISA {
namespace {

// A thread sums up some rows x columns of C over all of k, a depth of 136 to 272 at a time. So much of A and B is
// packed, from rows that are fetched while the depth before them is computed; all of it fits the second-level cache.
constexpr int64_t kOuterDepth = 136, kOuterRowFloats = 36 * 1024, kOuterColumnFloats = 72 * 1024;

bool is_outer(const Product& g) {
  return g.a.row == 1 && g.a.column > 1 && g.b.column == 1 && g.b.row > 1 && g.m >= kBlockRows && g.n >= kPanel;
}
int64_t outer_depth(const Product& g) {
  return max(even_piece(g.k, clamp(kOuterRowFloats / g.m, kOuterDepth, 2 * kOuterDepth), 1), int64_t{1});
}
int64_t outer_rows(const Product& g) { return even_piece(g.m, kOuterRowFloats / outer_depth(g), kBlockRows); }
int64_t outer_columns(const Product& g) { return even_piece(g.n, kOuterColumnFloats / outer_depth(g), kPanel); }
int64_t outer_a_floats(const Product& g) {
  return ceil_div(outer_rows(g), kBlockRows) * block_stride(outer_depth(g)) + kPackSlack;
}
int64_t outer_per_worker(const Product& g) {
  return round_up(outer_a_floats(g), 16) + outer_depth(g) * outer_columns(g);
}

void multiply_outer_tile(const Product& g, Part t, float* packed_a, float* packed_b) {
  const int64_t depth = outer_depth(g), stride = block_stride(depth), panels = ceil_div(t.n, kPanel);
  for (t.p = 0; t.p < g.k; t.p += depth) {
    t.depth = min(depth, g.k - t.p);
    pack_outer(g.a.at(t.i, t.p), g.a.column, t.m, t.depth, stride, packed_a);
    pack_panels({g.b.at(t.p, t.j), g.b.row, 1}, t.n, t.depth, packed_b, t.depth * kPanel);
    // What is packed next.
    const int64_t next = min(depth, g.k - t.p - t.depth);
    const int64_t a_bytes = next * g.a.column * 4, bytes = next > 0 ? a_bytes + next * g.b.row * 4 : 0;
    const char* a_next = reinterpret_cast<const char*>(g.a.at(t.i, t.p + t.depth));
    const char* b_next = reinterpret_cast<const char*>(g.b.at(t.p + t.depth, t.j));
    const Store s = store_at(g, t);
    for (int64_t j = 0, count; j < t.n; j += count * kPanel) {
      count = panels_at_once(t, j);
      const int64_t at = j / kPanel, fetched = at * bytes / panels;
      const Fetch fetch = {fetched < a_bytes ? a_next + fetched : b_next + fetched - a_bytes, count * bytes / panels};
      multiply_packed(g, t, packed_a, stride, packed_b + at * t.depth * kPanel, t.depth * kPanel, j, count, s, fetch);
    }
  }
}

int32_t multiply_outer(myc_context* ctx, const Product& g) {
  Scratch scratch(ctx);
  const int64_t own = outer_per_worker(g);
  float* memory = scratch.take<float>(own * max_workers(ctx));
  if (!memory) return MYC_E_MEMORY;
  Tiles tiles = cut(g.m, g.n, g.k, outer_rows(g), max_workers(ctx), 2);  // each tile packs its rows of A anew
  tiles.column_step = min(tiles.column_step, outer_columns(g));
  tiles.columns = ceil_div(g.n, tiles.column_step);
  parallel_for_worker(ctx, tiles.count(), 1, [&](int64_t begin, int64_t end, int32_t worker) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t i = tile / tiles.columns * tiles.row_step, j = tile % tiles.columns * tiles.column_step;
      float* block = memory + own * worker;
      multiply_outer_tile(g, {i, min(tiles.row_step, g.m - i), j, min(tiles.column_step, g.n - j), 0, 0}, block,
                          block + round_up(outer_a_floats(g), 16));
    }
  });
  return MYC_OK;
}

}  // namespace
}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_OUTER_H_
