// The loops over register tiles of an instruction set, as those who plan products call them.
#include "gemm/rows.h"
#if MYC_STEPS
#include "gemm/dense_avx2.h"
#endif
#include "simd/leave.h"

namespace mycelia::MYC_ISA {
namespace {

void multiply(int64_t count, const RowList& rows, const Run* runs, int64_t run_count, const PackedBlock& b, const Finish& f,
              Ahead ahead) {
  multiply_rows(count, rows, runs, run_count, b, f, ahead);
  leave_vectors();
}

constexpr int kParts = kPackedColumns / kLanes;  // vectors of a panel
constexpr int64_t kStretch = 256;
constexpr int kStreams = 8 / kParts;             // panels at once: eight chains of additions, several streams from memory

constexpr int64_t kFarFloats = 192 * 1024;       // of weights: 768 KB, more does not stay in a second-level cache of 1 MB

// One row against `count` panels from column j on, at most kStreams; behind the last one it is read again. kFar: the weights
// are more than the second-level cache holds, so they come there first, which waits for more lines than the first-level one.
template <bool kFar>
void multiply_streams_of(const Layer& g, int64_t j, int64_t count) {
  // Of k: less waits for memory, more drives what the cache needs out of it.
  constexpr int64_t kAhead = kFar ? 16 : 8;
  const float* b = g.packed + j * g.depth;
  const int64_t first = j;
  int64_t panel[kStreams];
  for (int64_t s = 0; s < kStreams; ++s) panel[s] = min(s, count - 1) * g.depth * kPackedColumns;
  f32v total[kStreams][kParts] = {};
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
      for (int v = 0; v < kParts; ++v) total[s][v] += sum[s][v];
    }
  }
  const bool bounded = g.activation == Activation::relu || g.activation == Activation::relu6;
  const f32v high = splat(g.activation == Activation::relu6 ? 6.0f : INFINITY);
  for (int64_t s = 0; s < kStreams; ++s) {
    for (int64_t v = 0; v < kParts && j < g.columns; ++v, j += kLanes) {
      const int64_t lanes = min<int64_t>(kLanes, g.columns - j);
      f32v y = total[s][v];
      if (g.bias) y += load_partial(g.bias + j, lanes);
      if (g.residual) y += load_partial(g.residual + j, lanes);
      store_partial(g.y + j, bounded ? clip(y, f32v{}, high) : y, lanes);
    }
  }
  if (g.activation > Activation::relu6) (void)MYC_PART(activations)(g.y + first, j - first, g.activation);
  leave_vectors();
}

void multiply_streams(const Layer& g, int64_t j, int64_t count) {
  auto run = multiply_streams_of<false>;
  if constexpr (kLanes == 16)
    if (g.depth * g.columns > kFarFloats) run = multiply_streams_of<true>;
  run(g, j, count);
}

#if MYC_STEPS
constexpr int64_t kDenseFloats = 16 * 1024;  // of weights that are read again for every few rows

// When many columns have little depth. What is left is summed up in the same order.
int64_t multiply_dense(const Layer& g) {
  static constexpr float zeros[kTileColumns] = {}, none = INFINITY, six = 6;
  constexpr int64_t kFloat = sizeof(float), kBlock = kTileColumns * kFloat;
  const int64_t over = g.rows % kTileRows, rest = over == 0 || over >= 4 ? over : over + 2 * kTileRows;
  const bool fits = g.depth > 0 && g.depth * g.columns <= kDenseFloats && g.columns % kTileColumns == 0;
  if (!fits || g.activation > Activation::relu6 || g.rows <= rest) return 0;
  DenseStrip x = {};
  x.a = g.x, x.a_row = g.depth * kFloat, x.a_step = kTileRows * x.a_row;
  x.c = g.y, x.c_row = g.columns * kFloat, x.c_step = (kTileRows - 1) * x.c_row;
  x.b = g.packed, x.k = g.depth, x.blocks = g.columns / kTileColumns, x.tiles = (g.rows - rest) / kTileRows;
  x.start = g.bias ? g.bias : zeros, x.start_step = g.bias ? kBlock : 0;
  x.high = g.activation == Activation::relu ? &none : g.activation == Activation::relu6 ? &six : nullptr;
  run_dense(x);
  leave_vectors();
  return g.rows - rest;
}
#else
constexpr int64_t (*multiply_dense)(const Layer&) = nullptr;
#endif

}  // namespace

const TileLoops kTileLoops = {kLanes,   kTileRows,        kTileColumns,  MYC_STRIPS ? 16 * 1024 : 0,
                              multiply, multiply_streams, MYC_PART(activations), multiply_dense};

}  // namespace mycelia::MYC_ISA
