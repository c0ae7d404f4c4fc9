// Parts of a product around the micro-kernel: rows of A that are packed or read in place against panels of B, and how a
// product is cut for caches and threads.  For gemm.cc alone.
//
// Cache plan: a panel of B (kDepth x kPanel) lives in the first-level cache while all rows of an A block
// (kRowsInBlock x kDepth, second-level cache) pass by it.
#ifndef MYCELIA_GEMM_BLOCKS_H_
#define MYCELIA_GEMM_BLOCKS_H_

#include "gemm/gemm.h"
#include "gemm/pack.h"
#if MYC_STEPS
#include "gemm/outer_avx2.h"
#elif MYC_STRIPS
#include "gemm/outer_avx512.h"
#include "gemm/strip_avx512.h"
#endif

namespace mycelia::MYC_ISA {
namespace {

// AVX-512: a panel of 64 KB. It is read from the second-level cache, of at least 1 MB, as fast as it is needed.
constexpr int64_t kDepth = kLanes == 16 ? 512 : min(384, 8192 / kPanel);  // x kPanel floats of B: 24 KB
constexpr int64_t kPartFloats = kLanes == 16 ? 147456 : 73728;            // of A: 288 KB, AVX-512 576 KB
constexpr int64_t kRowsInBlock = kPartFloats / kDepth / kBlockRows * kBlockRows;
constexpr int64_t kFewRows = 2 * kRowsInBlock;   // up to here all of A's part fits the second-level cache
constexpr int64_t kColumnsInBlock = 4096;        // x kDepth floats of B: 6 MB, third-level cache, for all threads
constexpr int64_t kSerialWork = 1 << 20;         // multiply-adds that one core does in 20 us: not worth a second thread
constexpr int64_t kTileWork = 1 << 21;           // multiply-adds of a tile: 40 us
constexpr int64_t kDirectFloats = 6 * 1024;      // B that stays in the first-level cache without packing
static_assert(kRowsInBlock % kBlockRows == 0 && kColumnsInBlock % kPanel == 0);

struct Product {
  int64_t m, n, k;
  View a, b;
  float* c;
  int64_t ldc;
  const Epilogue* epilogue;
};

// Rows [i, i + m) x columns [j, j + n) of C for the part [p, p + depth) of k.
struct Part {
  int64_t i, m, j, n, p, depth;
};

Store store_at(const Product& g, const Part& t) {
  const Epilogue& e = *g.epilogue;
  const bool last = t.p + t.depth == g.k;
  Store s;
  s.scale = e.scale;
  s.add = e.accumulate || t.p > 0;
  s.clamp = last && (e.low > -INFINITY || e.high < INFINITY);
  s.low = e.low, s.high = e.high;
  s.row_bias = last && e.row_bias ? e.row_bias + t.i : nullptr;
  s.column_bias = last && e.column_bias ? e.column_bias + t.j : nullptr;
  return s;
}

#if MYC_STRIPS
// Whether sums are stored as they are, but for the columns' biases.
bool is_plain(const Store& s) { return s.scale == 1.0f && !s.clamp && !s.row_bias; }
#endif
#if MYC_STRIPS && !MYC_STEPS
constexpr float kZeros[kPanel] = {};

// Adds the columns' biases to rows that strips have stored: behind the sums, so that a product with biases has the bits
// of the product and an addition.
void add_column_bias(const float* bias, float* c, int64_t ldc, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i, c += ldc) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      const int64_t lanes = min<int64_t>(columns - j, kLanes);
      store_partial(c + j, load_partial(c + j, lanes) + load_partial(bias + j, lanes), lanes);
    }
  }
}
#endif

// Memory that is needed next.
struct Fetch {
  const char* at;
  int64_t bytes;
};

// Row blocks of the part from row `i` on against one panel of B; blocks of packed A are `a_block` floats apart.
template <int kVectors, bool kPackedA>
void multiply_panel(const Product& g, const Part& t, int64_t i, const float* packed_a, int64_t a_block, const float* b,
                    int64_t b_step, int64_t column, int64_t columns, Store s, Fetch next) {
  if (s.column_bias) s.column_bias += column;
  if (s.row_bias) s.row_bias += i;
  // What comes next is farther away than this panel: fetch a share of it per row block.
  const int64_t share = t.m > kBlockRows ? ceil_div(next.bytes, ceil_div(t.m, kBlockRows)) : 0;
  for (; i < t.m; i += kBlockRows) {
    for (int64_t q = 0; q < share; q += 64) __builtin_prefetch(next.at + q, 0, 2);
    next.at += share;
    const int64_t rows = min<int64_t>(kBlockRows, t.m - i);
    const float* a = kPackedA ? packed_a + i / kBlockRows * a_block : g.a.at(t.i + i, t.p);
    float* c = g.c + (t.i + i) * g.ldc + t.j + column;
    const Micro kernel = rows == kBlockRows ? micro<kBlockRows, kVectors, kPackedA> : micro_for<kVectors, kPackedA>(rows);
    kernel(t.depth, a, g.a.row, g.a.column, b, b_step, c, g.ldc, columns, s);
    if (s.row_bias) s.row_bias += kBlockRows;
  }
}

// How many panels from column `column` on should be multiplied at once: as many as fit the first-level cache; with AVX-512
// a part of the second-level one, which is fast enough.
int64_t panels_at_once(const Part& t, int64_t column) {
  constexpr int64_t kFloats = MYC_STEPS ? 6 * 1024 : MYC_STRIPS ? 32 * 1024 : 0;
  return max(min(kFloats / (t.depth * kPanel), (t.n - column) / kPanel), int64_t{1});
}

// The part with packed A against `count` panels of B, the first one for column `column`.
void multiply_packed(const Product& g, const Part& t, const float* packed_a, int64_t a_block, const float* b,
                     int64_t panel_stride, int64_t column, int64_t count, const Store& s, Fetch next) {
  int64_t done = 0;
#if MYC_STEPS
  if (is_plain(s) && !s.column_bias && t.n - column >= kPanel && t.m >= kBlockRows) {
    OuterStrip x = {};
    x.a = packed_a, x.a_tile = a_block * 4;
    x.b = b, x.b_block = panel_stride * 4;
    x.c = g.c + t.i * g.ldc + t.j + column, x.c_row = g.ldc * 4;
    x.count = t.depth, x.tiles = t.m / kBlockRows, x.blocks = count;
    x.add = s.add;
    x.fetch = next.at, x.fetch_step = next.bytes > 0 ? next.bytes * 4 / (x.tiles * count * t.depth) + 1 : 0;
    done = x.tiles * kBlockRows;
    run_outer_strip(x);
    next.bytes = 0;
  }
#elif MYC_STRIPS
  const int64_t rest = t.m % kBlockRows, columns = min(t.n - column, count * kPanel), whole = columns / kPanel;
  if (is_plain(s) && (columns % kPanel == 0 || columns % kPanel > kLanes)) {
    const auto strip = [&](int64_t tiles, int64_t rows, int64_t first, int64_t blocks) {
      if (tiles == 0 || blocks == 0) return;
      OuterStrip x = {};
      const int64_t at = first * kPanel;
      x.a = packed_a + done / kBlockRows * a_block, x.a_tile = a_block * 4;
      x.b = b + first * panel_stride, x.b_block = panel_stride * 4;
      x.c = g.c + (t.i + done) * g.ldc + t.j + column + at, x.c_row = g.ldc * 4;
      x.count = t.depth, x.tiles = tiles, x.blocks = blocks;
      x.columns = (1 << min<int64_t>(columns - at - kLanes, kLanes)) - 1;
      x.start = s.add ? nullptr : kZeros;
      x.fetch = next.at, x.fetch_step = next.bytes > 0 ? next.bytes * 4 / (tiles * blocks * t.depth) + 1 : 0;
      float* const stored = x.c;  // the strip moves its own
      run_outer_strip(rows, x);
      next.bytes = 0;
      if (s.column_bias) {
        add_column_bias(s.column_bias + column + at, stored, g.ldc, tiles * rows, min(columns - at, blocks * kPanel));
      }
    };
    const auto strips = [&](int64_t tiles, int64_t rows) {
      strip(tiles, rows, 0, whole);
      strip(tiles, rows, whole, columns > whole * kPanel);
      done += tiles * rows;
    };
    strips(t.m / kBlockRows, kBlockRows);
    if (rest >= 4) strips(1, rest);
  }
#endif
  for (const int64_t end = column + count * kPanel; column < end; column += kPanel, b += panel_stride) {
    const int64_t columns = min<int64_t>(kPanel, t.n - column);
    (columns <= kLanes ? multiply_panel<1, true> : multiply_panel<2, true>)(g, t, done, packed_a, a_block, b, kPanel,
                                                                             column, columns, s, next);
  }
}

#if MYC_STRIPS && !MYC_STEPS
// Rows of A in place against one block of columns, in tiles of nearly equal height; whether there are strips for that.
bool multiply_in_place(const Product& g, const Part& t, const float* b, int64_t b_step, int64_t column, int64_t columns,
                       const Store& s, Fetch next) {
  const int64_t tiles = ceil_div(t.m, kBlockRows), height = t.m / tiles, taller = t.m % tiles;
  if (g.a.column != 1 || !is_plain(s) || !has_strips(height, columns)) return false;
  int64_t a_row[kBlockRows], c_row[kBlockRows];
  for (int64_t i = 0; i < kBlockRows; ++i) a_row[i] = i * g.a.row, c_row[i] = i * g.ldc;
  const int64_t run[3] = {0, 0, t.depth};  // of A, of B, how long
  const auto strip = [&](int64_t first, int64_t count, int64_t rows) {
    if (count == 0) return;
    Strip x = {};
    x.a = g.a.at(t.i + first, t.p), x.a_row = a_row, x.a_step = rows * g.a.row * 4;
    x.c = g.c + (t.i + first) * g.ldc + t.j + column, x.c_row = c_row, x.c_step = rows * g.ldc * 4;
    x.runs = run, x.runs_end = run + 3;
    x.b = b, x.b_vector = kLanes * 4, x.b_k = b_step * 4;
    x.start = kZeros, x.add = s.add;
    x.fetch = next.at + first * next.bytes / t.m;
    x.fetch_step = next.bytes > 0 ? next.bytes * kFetchEvery / (tiles * t.depth) + 1 : 0;
    x.tiles = count, x.blocks = 1;
    float* const stored = x.c;
    run_any_strip(rows, columns, x);
    if (s.column_bias) add_column_bias(s.column_bias + column, stored, g.ldc, count * rows, columns);
  };
  strip(0, taller, height + 1);
  strip(taller * (height + 1), tiles - taller, height);
  return true;
}
#endif

// The part with B from packed panels, one every `panel_stride` floats, or in place if that is 0.
// packed_a: blocks of the part's rows and depth, or null to read A in place.
void multiply_part(const Product& g, const Part& t, const float* packed_a, const float* b, int64_t panel_stride) {
  const Store s = store_at(g, t);
  const int64_t b_step = panel_stride ? kPanel : g.b.row, block = t.depth * kBlockRows;
  for (int64_t j = 0, end; j < t.n; j = end) {
    const float* from = b + j / kPanel * (panel_stride ? panel_stride : kPanel);
    const int64_t count = packed_a && panel_stride ? panels_at_once(t, j) : 1;
    end = min(t.n, j + count * kPanel);
    const Fetch next = {reinterpret_cast<const char*>(from + count * panel_stride),
                        panel_stride ? t.depth * (min(t.n, end + count * kPanel) - end) * 4 : 0};
    if (packed_a && panel_stride) {
      multiply_packed(g, t, packed_a, block, from, panel_stride, j, count, s, next);
    } else if (packed_a) {
      (end - j <= kLanes ? multiply_panel<1, true> : multiply_panel<2, true>)(g, t, 0, packed_a, block, from, b_step, j,
                                                                               end - j, s, next);
    } else {
#if MYC_STRIPS && !MYC_STEPS
      if (multiply_in_place(g, t, from, b_step, j, end - j, s, next)) continue;
#endif
      (end - j <= kLanes ? multiply_panel<1, false> : multiply_panel<2, false>)(g, t, 0, nullptr, 0, from, b_step, j,
                                                                                end - j, s, next);
    }
  }
}

// The same with B packed into `panels` (up to kPanelsAtOnce of the part's depth) just before its only use.
void pack_and_multiply(const Product& g, const Part& t, const float* packed_a, bool direct, float* panels) {
  Part group = t;
  if (direct) {
    group.n = t.n / kPanel * kPanel;  // whole vectors only: nothing may be read behind a row
    multiply_part(g, group, packed_a, g.b.at(t.p, t.j), 0);
    group.j += group.n;
  }
  const int64_t step = kPanel * (g.b.column == 1 ? kPanelsAtOnce : 1);
  for (; group.j < t.j + t.n; group.j += group.n) {
    group.n = min(step, t.j + t.n - group.j);
    pack_panels({g.b.at(t.p, group.j), g.b.row, g.b.column}, group.n, t.depth, panels, t.depth * kPanel);
    multiply_part(g, group, packed_a, panels, t.depth * kPanel);
  }
}

// Length when the extent is cut into as few pieces of up to `most` as possible, all nearly equal.
int64_t even_piece(int64_t extent, int64_t most, int64_t unit) {
  return round_up(ceil_div(extent, max(ceil_div(extent, max(most, unit)), int64_t{1})), unit);
}
int64_t part_depth(const Product& g) { return max(even_piece(g.k, kDepth, 1), int64_t{1}); }

// A is read in place unless its rows would fight for the same cache sets and pages.
bool should_pack_a(const Product& g) {
  return g.n > 4 * kPanel && (g.a.row == 1 ? g.a.column >= 256 : g.a.row >= 512);
}

bool is_direct(const Product& g) { return g.b.column == 1 && (g.k * g.n <= kDirectFloats || g.m <= kBlockRows); }

bool has_few_rows(const Product& g) { return g.m <= kFewRows; }

int64_t packed_a_size(int64_t rows, int64_t depth) { return round_up(round_up(rows, kBlockRows) * depth + kPackSlack, 16); }

// Tiles of a parallel product; `column_step` is a multiple of kPanel.
struct Tiles {
  int64_t rows, columns, row_step, column_step;
  int64_t count() const { return rows * columns; }
};

// Several tiles per worker even out their speed.
Tiles cut(int64_t m, int64_t n, int64_t depth, int64_t row_step, int32_t workers, int64_t tiles_each = 4) {
  Tiles t;
  t.row_step = row_step;
  t.rows = ceil_div(m, row_step);
  const int64_t panels = ceil_div(n, kPanel);
  const int64_t wanted = workers <= 1 ? 1 : ceil_div(tiles_each * workers, t.rows);
  const int64_t least = ceil_div(kTileWork, min(m, row_step) * depth * kPanel);
  t.column_step = kPanel * clamp(ceil_div(panels, wanted), min(least, panels), panels);
  t.columns = ceil_div(n, t.column_step);
  return t;
}

}  // namespace
}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_BLOCKS_H_
