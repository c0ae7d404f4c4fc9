// The product of rows that lie anywhere with packed columns: C(i, j) = finish(sum over k of A(i, k) B(k, j)).
// A is read where it is, by broadcast through one pointer a row, so activations in channels-last order are
// never copied.  B is packed once in panels of 16 columns: element (k, j) at [j / 16][k][j % 16], zeros
// behind the last column. k is a list of runs that are contiguous in A and in B: one for a matrix, one per
// kernel row for a convolution. Cost: a block of 6 x 16 (12 x 32 with AVX-512) takes 12 (24) multiply-adds, 2
// loads and 6 (12) broadcasts a k.
#ifndef MYCELIA_GEMM_ROWS_H_
#define MYCELIA_GEMM_ROWS_H_

#include "gemm/activations.h"
#include "gemm/row_types.h"
#include "gemm/steps.h"
#include "gemm/tile_shape.h"
#if MYC_STEPS
#include "gemm/strip_avx2.h"
#elif MYC_STRIPS
#include "gemm/strip_avx512.h"
#endif

namespace mycelia::MYC_ISA {

constexpr int64_t kWideRows = 3, kWideDepth = 192;  // of tiles two blocks wide, see run_wide_strip

// Heights of tiles that every program has: 1 and multiples of a unit but 2, which takes as long as 4. The others are a part, in whose
// place higher tiles compute some rows twice.
constexpr int unit_of(int vectors) { return vectors == 2 ? (MYC_STEPS ? 1 : 2) : kTileRows >= 12 ? 4 : 2; }
constexpr bool always_there(int64_t rows, int vectors) { return rows == 1 || (rows != 2 && rows % unit_of(vectors) == 0); }
constexpr int64_t stand_in_for(int64_t rows, int vectors) {
  while (!always_there(rows, vectors)) ++rows;
  return rows;
}

// How many k a tile takes at once, in sums of their own: eight chains of dependent additions keep two multiply-add units busy. The
// order of sums is that of the height that stands in for one, so that a program without some heights gives the same numbers; from
// kCutRows rows on it is one. Plain code does without tiles of one vector, too.
constexpr int sets_of(int rows, int vectors) {
  if (rows == 1) return 4;
  if (MYC_STEPS) return rows * vectors >= 7 ? 1 : 2;
  if (kTileRows < 12) return 1;
  return rows > 4 ? 1 : 4 / vectors;
}

// `tiles` times kRows rows of kVectors whole vectors.  `b_vector`: floats between the two vectors of B at one k.
// `fetch_step`: bytes of memory to be fetched a k.
template <int kRows, int kVectors>
inline __attribute__((noinline)) void rows_micro(int64_t tiles, const RowList& rows, const Run* runs,
                                                 int64_t count, const float* b, int64_t b_vector,
                                                 const Finish& f, const char* fetch, int64_t fetch_step) {
  constexpr int kSets = sets_of(kRows, kVectors);
  const int64_t advance = rows.c_step == 0 ? kRows : 0;
  const int64_t *a_row = rows.a_row, *c_row = rows.c_row;
  const float* a = rows.a;
  float* c = rows.c;
  const float* residual = f.residual;
  const Activation activation = f.activation;
  for (int64_t t = 0; t < tiles; ++t) {
    // C and the residual were last touched long ago: fetch them while the sums run.  A residual doubles the
    // traffic, so that this comes too late: then it is the line that the next column block needs.
    if (residual) {
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) {
        __builtin_prefetch(c + c_row[i] + kTileColumns, 1);
        __builtin_prefetch(residual + c_row[i] + kTileColumns);
      }
    } else {
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) __builtin_prefetch(c + c_row[i], 1);
    }
    // Sums start from the bias: nothing is left to add behind them.
    f32v sums[kSets][kRows][kVectors];
#pragma GCC unroll 4
    for (int set = 0; set < kSets; ++set) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        f32v first = {};
        if (set == 0 && f.bias) first = load(f.bias + v * kLanes);
#pragma GCC unroll 12
        for (int i = 0; i < kRows; ++i) sums[set][i][v] = first;
      }
    }
#if MYC_STEPS
    if constexpr (has_steps(kRows, kVectors)) {
      RowSteps x;
      for (int i = 0; i < kRows; ++i) x.row[i] = a + a_row[i];
      for (int i = kRows; i < 6; ++i) x.row[i] = a;
      x.fetch_step = fetch_step;
      for (int64_t r = 0; r < count; ++r) {
        x.b = b + runs[r].b * kPackedColumns, x.count = runs[r].length, x.first = runs[r].a * 4, x.fetch = fetch;
        add_steps(x, sums[0]);
        fetch += runs[r].length * fetch_step;
      }
    } else
#endif
    {
    const float* row[kRows];
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) row[i] = a + a_row[i];
    for (int64_t r = 0; r < count; ++r) {
      const float* bk = b + runs[r].b * kPackedColumns;
      int64_t k = runs[r].a;
      const int64_t end = k + runs[r].length;
      const auto step = [&](f32v(&to)[kRows][kVectors]) __attribute__((always_inline)) {
        f32v bv[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) bv[v] = load(bk + v * b_vector);
        bk += kPackedColumns;
#pragma GCC unroll 12
        for (int i = 0; i < kRows; ++i) {
          const f32v av = splat(row[i][k]);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) to[i][v] = fma(av, bv[v], to[i][v]);
        }
        ++k;
      };
      if constexpr (kSets > 1) {
        while (k + kSets <= end) {
          __builtin_prefetch(fetch);
          fetch += kSets * fetch_step;
#pragma GCC unroll 4
          for (int set = 0; set < kSets; ++set) step(sums[set]);
        }
      }
      if constexpr (kSets == 1 && kVectors == 1) {  // as many loads as multiply-adds: one that fetches nothing costs a cycle
        while (fetch_step == 0 && k < end) step(sums[0]);
      }
      while (k < end) {
        __builtin_prefetch(fetch);
        fetch += fetch_step;
        step(sums[0]);
      }
    }
    }
    f32v(&sum)[kRows][kVectors] = sums[0];
#pragma GCC unroll 4
    for (int set = 1; set < kSets; ++set) {
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[i][v] += sums[set][i][v];
      }
    }
    const auto add_rows = [&](const float* from) __attribute__((always_inline)) {
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[i][v] += load(from + c_row[i] + v * kLanes);
      }
    };
    if (f.add) add_rows(c);
    if (residual) add_rows(residual);
    if (activation == Activation::relu || activation == Activation::relu6) {
      const f32v high = splat(activation == Activation::relu ? INFINITY : 6.0f);
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[i][v] = clip(sum[i][v], f32v{}, high);
      }
    }
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) store(c + c_row[i] + v * kLanes, sum[i][v]);
    }
    a_row += advance, c_row += advance;
    a += kRows * rows.a_step, c += kRows * rows.c_step;
    if (residual) residual += kRows * rows.c_step;
  }
}

using RowsMicro = void (*)(int64_t, const RowList&, const Run*, int64_t, const float*, int64_t, const Finish&,
                           const char*, int64_t);

// The most rows for which tiles of one or two vectors have no strip.
constexpr int most_rows(int vectors) {
  int rows = kTileRows;
  while (vectors == 2 && has_strips(rows, kTileColumns)) --rows;
  return rows;
}

// The micro-kernel for `rows` in [1, most_rows(kVectors)], of those heights of which always_there says `kThere`; null for others.
template <int kVectors, bool kThere, int kRows = most_rows(kVectors)>
RowsMicro rows_micro_for(int64_t rows) {
  if constexpr (kRows == 0) {
    return nullptr;
  } else {
    if constexpr (always_there(kRows, kVectors) == kThere) {
      if (rows == kRows) return rows_micro<kRows, kVectors>;
    }
    return rows_micro_for<kVectors, kThere, kRows - 1>(rows);
  }
}

// The micro-kernels that a program may leave out, null for other heights: those of the other heights, and those of one vector,
// in whose place two vectors are computed.  tile_heights.cc, tile_narrow.cc
KERNEL_PART(tile_micro)(int64_t rows, int64_t vectors, RowsMicro* found);
KERNEL_PART(tile_narrow)(int64_t rows, RowsMicro* found);

inline bool all_heights() {
  RowsMicro none;
  return MYC_PART(tile_micro)(0, 1, &none) == MYC_OK;
}
inline bool is_narrow(int64_t columns) {
  RowsMicro none;
  return columns <= kLanes && MYC_PART(tile_narrow)(0, &none) == MYC_OK;
}

inline RowsMicro micro_of(int64_t rows, int64_t vectors) {
  RowsMicro found = nullptr;
  if (vectors == 2) {
    found = rows_micro_for<2, true>(rows);
  } else {
    (void)MYC_PART(tile_narrow)(rows, &found);
  }
  if (!found) (void)MYC_PART(tile_micro)(rows, vectors, &found);
  return found;
}

inline __attribute__((noinline)) void activate_rows(int64_t count, const RowList& rows, int64_t columns,
                                                    Activation f) {
  for (int64_t i = 0; i < count; ++i) {
    float* row = rows.c_step == 0 ? rows.c + rows.c_row[i] : rows.c + rows.c_row[0] + i * rows.c_step;
    (void)MYC_PART(activations)(row, columns, f);  // who plans has asked whether it is there
  }
}

extern const TileLoops kTileLoops;  // tile_loops.cc

// A block of columns of panels `panel_stride` floats apart.
inline PackedBlock packed_block(const float* packed, int64_t panel_stride, int64_t block, int64_t all_columns) {
  return kTileLoops.block(packed, panel_stride, block, all_columns);
}

#if MYC_STRIPS
// `tiles` times `height` rows, by assembly; `step`: bytes to be fetched a k. AVX2 with height 3: of two blocks of
// columns each. False if that height was left out.
inline bool run_strip(int64_t tiles, int64_t height, const RowList& rows, const Run* runs, int64_t run_count,
                      const PackedBlock& b, const Finish& f, const char* fetch, int64_t step) {
  static constexpr float zeros[2 * kTileColumns] = {}, none = INFINITY, six = 6;
  const bool wide = MYC_STEPS && height == kWideRows;
  const int64_t blocks = wide ? b.blocks / 2 : b.blocks, columns = wide ? 2 * kTileColumns : kTileColumns;
  constexpr int64_t kFloat = sizeof(float);
  const int64_t bytes = columns * kFloat;
  Strip x = {};
  x.a = rows.a, x.a_row = rows.a_row, x.a_step = height * rows.a_step * kFloat;
  x.c = rows.c, x.c_row = rows.c_row, x.c_step = height * rows.c_step * kFloat - (blocks - 1) * bytes;
  x.row_step = rows.c_step == 0 ? height * static_cast<int64_t>(sizeof(int64_t)) : 0;
  x.runs = runs, x.runs_end = runs + run_count;
  x.b = b.b, x.b_step = b.b_block * columns / kTileColumns * kFloat, x.b_back = (1 - blocks) * x.b_step;
  x.start = f.bias ? f.bias : zeros, x.start_step = f.bias ? bytes : 0, x.start_back = (1 - blocks) * x.start_step;
  if (f.residual) {  // laid out as C
    x.residual = reinterpret_cast<intptr_t>(f.residual) - reinterpret_cast<intptr_t>(rows.c), x.c_ahead = bytes;
  }
  x.add = f.add;
  x.high = f.activation == Activation::relu ? &none : f.activation == Activation::relu6 ? &six : nullptr;
  x.fetch = fetch, x.fetch_step = kFetchEvery * step;
  x.tiles = tiles, x.blocks = blocks;
#if MYC_STEPS
  wide ? run_wide_strip(x, b.b_block * kFloat) : run_strip(height, x);
  return true;
#else
  x.b_vector = b.b_vector * kFloat, x.b_k = kPackedColumns * kFloat;
  return run_strip(height, b.columns, x);
#endif
}
#endif

// Tiles of a height that was left out: each as one of the next height, whose rows behind the last are the last once more.
// (`List` is RowList; a template may be told of before whole_tiles, which it calls, and have one body in a program.)
template <typename List>
void stand_in(int64_t tiles, int64_t height, const List& rows, const Run* runs, int64_t run_count, const PackedBlock& b,
              const Finish& f, const char* fetch, int64_t step);

// `tiles` times `height` rows and blocks of columns; of tiles that have no strip, those fill their vectors.
inline __attribute__((noinline)) void whole_tiles(int64_t tiles, int64_t height, const RowList& rows,
                                                  const Run* runs, int64_t run_count, const PackedBlock& b,
                                                  const Finish& f, const char* fetch, int64_t step) {
#if MYC_STRIPS
  if (has_strips(height, b.columns) && run_count > 0) {
    if (run_strip(tiles, height, rows, runs, run_count, b, f, fetch, step)) return;
    return stand_in(tiles, height, rows, runs, run_count, b, f, fetch, step);
  }
#endif
  const RowsMicro micro = micro_of(height, b.columns > kLanes ? 2 : 1);
  if (!micro) return stand_in(tiles, height, rows, runs, run_count, b, f, fetch, step);
  RowList at = rows;
  Finish own = f;
  for (int64_t q = 0; q < b.blocks; ++q, at.c += kTileColumns) {
    micro(tiles, at, runs, run_count, b.b + q * b.b_block, b.b_vector, own, fetch, step);
    if (own.bias) own.bias += kTileColumns;
    if (own.residual) own.residual += kTileColumns;
  }
}

template <typename List>
__attribute__((noinline)) void stand_in(int64_t tiles, int64_t height, const List& rows, const Run* runs, int64_t run_count,
                                        const PackedBlock& b, const Finish& f, const char* fetch, int64_t step) {
  const int64_t higher = stand_in_for(height, b.columns > kLanes ? 2 : 1);
  int64_t a_row[kTileRows], c_row[kTileRows];
  Finish own = f;
  for (int64_t t = 0; t < tiles; ++t) {
    const RowList here = rows.from(t * height);
    for (int64_t i = 0; i < higher; ++i) {
      const int64_t at = min(i, height - 1);
      a_row[i] = here.a_row[at], c_row[i] = here.c_row[at];
    }
    if (f.residual) own.residual = f.residual + (here.c - rows.c);
    whole_tiles(1, higher, {here.a, here.c, a_row, c_row, 0, 0}, runs, run_count, b, own, fetch, step);
  }
}

// Tiles of one block whose columns do not fill its vectors: whole ones go to memory of their own, and from there those
// that there are to C.
inline __attribute__((noinline)) void cut_tiles(int64_t tiles, int64_t height, const RowList& rows, const Run* runs,
                                                int64_t run_count, const PackedBlock& b, const Finish& f, int64_t k,
                                                const char* fetch, int64_t step) {
  alignas(64) float sums[kTileRows * kTileColumns], bias[kTileColumns] = {};
  int64_t row[kTileRows];
  for (int64_t i = 0; i < height; ++i) row[i] = i * kTileColumns;
  if (f.bias) memcpy(bias, f.bias, b.columns * sizeof(float));
  PackedBlock whole = b;
  whole.columns = is_narrow(b.columns) ? kLanes : kTileColumns;
  const f32v high = splat(f.activation == Activation::relu6 ? 6.0f : INFINITY);
  const bool bounded = f.activation == Activation::relu || f.activation == Activation::relu6;
  for (int64_t t = 0; t < tiles; ++t, fetch += k * step) {
    const RowList here = rows.from(t * height);
    whole_tiles(1, height, {here.a, sums, here.a_row, row, 0, 0}, runs, run_count, whole,
                {false, bias, nullptr, Activation::none}, fetch, step);
    for (int64_t i = 0; i < height; ++i) {
      float* const to = here.c + here.c_row[i];
      for (int64_t j = 0; j < b.columns; j += kLanes) {
        const int64_t lanes = min<int64_t>(kLanes, b.columns - j);
        f32v sum = load(sums + row[i] + j);
        if (f.add) sum += load_partial(to + j, lanes);
        if (f.residual) sum += load_partial(f.residual + (to - rows.c) + j, lanes);
        if (bounded) sum = clip(sum, f32v{}, high);
        store_partial(to + j, sum, lanes);
      }
    }
  }
}

// `count` rows times blocks of columns, in tiles of nearly equal height: a tile of one row takes as long as one
// of four. `step`: bytes of `fetch` to be fetched a k.
inline void multiply_tiles(int64_t count, const RowList& rows, const Run* runs, int64_t run_count, const PackedBlock& b,
                           const Finish& f, int64_t k, const char* fetch, int64_t step) {
  const int64_t most = run_count > 0 ? kTileRows : most_rows(2);
  const int64_t tiles = ceil_div(count, most);
  int64_t unit = unit_of(is_narrow(b.columns) ? 1 : 2);
  if (unit > 1 && (count <= unit || all_heights())) unit = 1;
  const int64_t units = ceil_div(count, unit), height = units / tiles * unit, taller = units % tiles;
  const int64_t over = units * unit - count;  // rows that the last tile does without
  const auto strip = [&](int64_t first, int64_t how_many, int64_t rows_each) __attribute__((always_inline)) {
    if (how_many == 0) return;
    const RowList part = rows.from(first);
    Finish own = f;
    if (f.residual) own.residual += first * rows.c_step;
    if (b.columns == kTileColumns || (b.columns == kLanes && is_narrow(kLanes)) || (run_count > 0 && has_strips(rows_each, b.columns))) {
      whole_tiles(how_many, rows_each, part, runs, run_count, b, own, fetch, step);
    } else {
      cut_tiles(how_many, rows_each, part, runs, run_count, b, own, k, fetch, step);
    }
  };
  strip(0, taller, height + unit);
  fetch += taller * b.blocks * k * step;
  const int64_t lower = taller * (height + unit);
  strip(lower, tiles - taller - (over > 0), height);
  if (over > 0) strip(count - (height - over), 1, height - over);
}

// The same with bytes fetched evenly, and any activation.
inline void multiply_rows(int64_t count, const RowList& rows, const Run* runs, int64_t run_count,
                          const PackedBlock& b, const Finish& f, Ahead ahead) {
  if (count == 0) return;
  int64_t k = 0;
  for (int64_t r = 0; r < run_count; ++r) k += runs[r].length;
  const int64_t all_tiles = ceil_div(count, kTileRows) * b.blocks;
  const int64_t step = ahead.floats > 0 ? min<int64_t>(ahead.floats * 4 / (all_tiles * k + 1) + 1, 32) : 0;
  const char* fetch = reinterpret_cast<const char*>(ahead.at);
  int64_t done = 0;  // rows
  Finish finish = f;
#if MYC_STEPS
  // Several runs: wide tiles, and 4 or 5 rows that are left. From 8 rows on every tile sums up in the same order,
  // however rows and columns are cut. One long run gains nothing.
  if (run_count > 1 && b.blocks % 2 == 0 && k <= kWideDepth && count >= 8) {
    done = count - (count % kWideRows == 0 ? 0 : count % kWideRows + kWideRows);
    run_strip(done / kWideRows, kWideRows, rows, runs, run_count, b, f, fetch, step);
    fetch += done * b.blocks * k * step / kTileRows;
    if (f.residual) finish.residual += done * rows.c_step;
  }
#endif
  if (done < count) multiply_tiles(count - done, rows.from(done), runs, run_count, b, finish, k, fetch, step);
  if (f.activation > Activation::relu6) {
    activate_rows(count, rows, (b.blocks - 1) * kTileColumns + b.columns, f.activation);
  }
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_ROWS_H_
