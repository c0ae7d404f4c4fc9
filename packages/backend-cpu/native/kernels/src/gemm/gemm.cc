// The drivers around the micro-kernel: which operand is packed, how the product is cut for caches and threads.
//
// Cache plan: a panel of B (kDepth x kPanel) lives in the first-level cache while all rows of an A block
// (kRowsInBlock x kDepth, second-level cache) pass by it.  Few rows: each panel of B is packed just before its only
// use.  Many rows: kDepth x kColumnsInBlock of B is packed once and shared by all row blocks and threads.
#include "gemm/gemm.h"

#include "gemm/gemv.h"
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
    x.fetch_step = next.bytes > 0 ? next.bytes * 4 / (tiles * t.depth) + 1 : 0;
    x.tiles = count, x.columns = (1 << (columns - kLanes)) - 1, x.blocks = 1;
    float* const stored = x.c;
    run_strip(rows, x);
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

// Scratch of the drivers below, in floats.
int64_t few_rows_shared(const Product& g) { return should_pack_a(g) ? packed_a_size(g.m, g.k) : 0; }
int64_t few_rows_per_worker(const Product& g) { return part_depth(g) * kPanel * kPanelsAtOnce; }
int64_t many_rows_shared(const Product& g) {
  return part_depth(g) * round_up(min(g.n, kColumnsInBlock), kPanel);
}
int64_t many_rows_per_worker(const Product& g) {
  return should_pack_a(g) ? packed_a_size(kRowsInBlock, part_depth(g)) : 0;
}

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

int32_t multiply_few_rows(myc_context* ctx, const Product& g) {
  Scratch scratch(ctx);
  const int64_t own = few_rows_per_worker(g);
  float* panels = scratch.take<float>(own * max_workers(ctx));
  const bool pack = should_pack_a(g);
  float* packed_a = pack ? scratch.take<float>(few_rows_shared(g)) : nullptr;
  if (!panels || (pack && !packed_a)) return MYC_E_MEMORY;
  const int64_t padded = round_up(g.m, kBlockRows), depth = part_depth(g);
  if (pack) {
    for (int64_t p = 0; p < g.k; p += depth) {
      pack_blocks({g.a.at(0, p), g.a.row, g.a.column}, g.m, min(depth, g.k - p), packed_a + padded * p);
    }
  }
  const bool direct = is_direct(g);
  const Tiles tiles = cut(g.m, g.n, g.k, g.m, max_workers(ctx));
  parallel_for_worker(ctx, tiles.count(), 1, [&](int64_t begin, int64_t end, int32_t worker) {
    const int64_t j = begin * tiles.column_step, columns = min(g.n, end * tiles.column_step) - j;
    for (int64_t p = 0; p < g.k; p += depth) {
      pack_and_multiply(g, {0, g.m, j, columns, p, min(depth, g.k - p)}, pack ? packed_a + padded * p : nullptr, direct,
                        panels + own * worker);
    }
  });
  return MYC_OK;
}

int32_t multiply_many_rows(myc_context* ctx, const Product& g) {
  Scratch scratch(ctx);
  const bool pack = should_pack_a(g);
  const int64_t own = many_rows_per_worker(g);
  float* packed_b = scratch.take<float>(many_rows_shared(g));
  float* blocks = pack ? scratch.take<float>(own * max_workers(ctx)) : nullptr;
  if (!packed_b || (pack && !blocks)) return MYC_E_MEMORY;
  for (int64_t j = 0; j < g.n; j += kColumnsInBlock) {
    const int64_t columns = min(kColumnsInBlock, g.n - j);
    for (int64_t p = 0, depth; p < g.k; p += depth) {
      depth = min(part_depth(g), g.k - p);
      const int64_t stride = depth * kPanel;
      constexpr int64_t kGroup = kPanelsAtOnce * kPanel;
      parallel_for(ctx, ceil_div(columns, kGroup), 2, [&](int64_t begin, int64_t end) {
        pack_panels({g.b.at(p, j + begin * kGroup), g.b.row, g.b.column}, min(columns, end * kGroup) - begin * kGroup, depth,
                    packed_b + begin * kPanelsAtOnce * stride, stride);
      });
      const Tiles tiles = cut(g.m, columns, depth, kRowsInBlock, max_workers(ctx));
      parallel_for_worker(ctx, tiles.count(), 1, [&](int64_t begin, int64_t end, int32_t worker) {
        for (int64_t tile = begin; tile < end; ++tile) {
          const int64_t i = tile / tiles.columns * kRowsInBlock, q = tile % tiles.columns * tiles.column_step;
          const Part part = {i, min(kRowsInBlock, g.m - i), j + q, min(tiles.column_step, columns - q), p, depth};
          float* block = pack ? blocks + own * worker : nullptr;
          if (pack) pack_blocks({g.a.at(i, p), g.a.row, g.a.column}, part.m, depth, block);
          multiply_part(g, part, block, packed_b + q / kPanel * stride, stride);
        }
      });
    }
  }
  return MYC_OK;
}

// ---- sums of outer products: both operands have k as their outer dimension, as in weight gradients ----

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

// C[rows, n] (element strides c_row, c_step) = X[rows, k] W[k, n] for few rows and row-major W, which is read once.
int32_t multiply_rows(myc_context* ctx, int64_t rows, int64_t n, int64_t k, const float* x, int64_t x_row,
                      int64_t x_step, const float* w, int64_t ldw, float* c, int64_t c_row, int64_t c_step,
                      const Epilogue& e) {
  Scratch scratch(ctx);
  float* sums = scratch.take<float>(rows * n);
  if (!sums) return MYC_E_MEMORY;
  constexpr int64_t kStep = 1024;  // columns: 4 KB of sums a row
  parallel_for(ctx, ceil_div(n, kStep), ceil_div(kSerialWork / 4, rows * k * kStep), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin * kStep; j < min(n, end * kStep); j += kStep) {
      const int64_t columns = min(kStep, n - j);
      float* part = sums + rows * j;  // [rows, columns]
      memset(part, 0, rows * columns * sizeof(float));
      if (rows == 1) {
        add_rows(columns, k, x, x_step, w + j, ldw, part);
      } else {
        add_rows_to(rows, columns, k, x, x_row, x_step, w + j, ldw, part, columns);
      }
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t q = 0; q < columns; ++q) {
          float& to = c[i * c_row + (j + q) * c_step];
          to = finish(part[i * columns + q], to, e, i, j + q);
        }
      }
    }
  });
  return MYC_OK;
}

// C[m, n] = X[m, k] W[n, k]^T for few rows of X; x_step is the stride along k.
int32_t multiply_rows_by_dots(myc_context* ctx, int64_t m, int64_t n, int64_t k, const float* x, int64_t ldx,
                              int64_t x_step, const float* w, int64_t ldw, float* c, int64_t c_row, int64_t c_column,
                              const Epilogue& e) {
  Scratch scratch(ctx);
  if (x_step != 1) {
    float* copy = scratch.take<float>(m * k);
    if (!copy) return MYC_E_MEMORY;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t p = 0; p < k; ++p) copy[i * k + p] = x[i * ldx + p * x_step];
    }
    x = copy, ldx = k;
  }
  const int64_t groups = ceil_div(n, 4);
  parallel_for(ctx, groups, ceil_div(kSerialWork / 4, 4 * m * k), [&](int64_t begin, int64_t end) {
    multiply_dots(m, begin * 4, min(n, end * 4), k, x, ldx, w, ldw, c, c_row, c_column, e);
  });
  return MYC_OK;
}

// How a product is computed; see choose().
enum class Path { kRows, kRowDots, kColumns, kColumnDots, kDots, kLongK, kOuter, kFewRows, kManyRows };

constexpr int64_t kThin = 8, kThinInPlace = 4;  // rows that read a large matrix along and across its rows
constexpr int64_t kLargeFloats = 1 << 16;
constexpr int64_t kLongPart = kLanes == 16 ? 1024 : 4 * kDepth, kMostParts = 16, kFewTiles = 8;
constexpr int64_t kDotRows = 12;  // up to here packing a transposed B costs more than the horizontal sums

// Few elements of C, so that only k can be cut for the threads.  It is cut the same way for any number of them: results
// do not depend on it.
bool has_long_k(const Product& g) {
  return ceil_div(g.m, kRowsInBlock) * ceil_div(g.n, 2 * kPanel) < kFewTiles && g.k >= 2 * kLongPart &&
         g.m * g.n * g.k >= 2 * kSerialWork;
}

// The path of a product that none of the others suits.
Path block_path(const Product& g) { return is_outer(g) ? Path::kOuter : has_few_rows(g) ? Path::kFewRows : Path::kManyRows; }

Path choose(const Product& g) {
  if (g.m == 1) return g.b.row == 1 ? Path::kRowDots : Path::kRows;
  if (g.n == 1) return g.a.column == 1 ? Path::kColumnDots : Path::kColumns;
  // A thin operand against a large one: the large one is read once, where it is.
  if (g.m <= kThinInPlace && g.b.column == 1 && g.k * g.n >= kLargeFloats) return Path::kRows;
  if (g.n <= kThin && g.a.column == 1 && g.m * g.k >= kLargeFloats) return Path::kColumnDots;
  if (g.n <= kThinInPlace && g.a.row == 1 && g.m * g.k >= kLargeFloats) return Path::kColumns;
  if (g.m <= kDotRows && g.b.row == 1 && g.a.column == 1 && g.k >= 4 * kLanes) return Path::kDots;
  if (has_long_k(g)) return Path::kLongK;
  return block_path(g);
}

int32_t run(myc_context* ctx, const Product& g, Path path);

// A context for one thread that hands out memory given by the caller.
struct SerialContext {
  myc_context base = {};
  float* memory;

  explicit SerialContext(float* scratch) : memory(scratch) {
    base.host = this;
    base.threads = 1;
    base.scratch = [](myc_context* ctx, int64_t bytes) -> void* {
      void* at = reinterpret_cast<char*>(static_cast<SerialContext*>(ctx->host)->memory) + ctx->scratch_used;
      ctx->scratch_used += round_up(bytes, 64);
      return at;
    };
  }
};

// A product with a long k, cut into parts of `depth`; each is summed up in a C of its own of `size` floats.
struct LongK {
  int64_t depth, parts, size;
  Path path;  // of a part
  Product first;

  explicit LongK(const Product& g)
      : depth(ceil_div(g.k, min(kMostParts, round_up(ceil_div(g.k, kLongPart), 2)))),
        parts(ceil_div(g.k, depth)),
        size(round_up(g.m * g.n, 16)),
        path(block_path(g)),
        first(g) {
    first.k = depth;
  }
};

// Floats that run() takes on one thread.
int64_t serial_scratch(const Product& g, Path path) {
  switch (path) {
    case Path::kRows:
    case Path::kColumns:
      return round_up(g.m * g.n, 16);
    case Path::kRowDots:
      return round_up(g.k, 16);
    case Path::kColumnDots:
      return round_up(g.k * g.n, 16);
    case Path::kFewRows:
      return round_up(few_rows_per_worker(g), 16) + few_rows_shared(g);
    case Path::kOuter:
      return outer_per_worker(g);
    case Path::kManyRows:
      return round_up(many_rows_shared(g), 16) + many_rows_per_worker(g);
    case Path::kLongK: {
      const LongK cut(g);
      return cut.parts * cut.size + round_up(serial_scratch(cut.first, cut.path), 16);
    }
    default:
      return 0;
  }
}

// Few elements of C but a long k, as in weight gradients.
int32_t multiply_long_k(myc_context* ctx, const Product& g) {
  const LongK cut(g);
  const int64_t own = round_up(serial_scratch(cut.first, cut.path), 16);
  Scratch scratch(ctx);
  float* sums = scratch.take<float>(cut.parts * cut.size);
  float* memory = scratch.take<float>(max_workers(ctx) * own);
  if (!sums || !memory) return MYC_E_MEMORY;
  const Epilogue plain;
  parallel_for_worker(ctx, cut.parts, 1, [&](int64_t begin, int64_t end, int32_t worker) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t p = part * cut.depth;
      const Product own_part = {g.m, g.n, min(cut.depth, g.k - p), {g.a.at(0, p), g.a.row, g.a.column},
                                {g.b.at(p, 0), g.b.row, g.b.column}, sums + part * cut.size, g.n, &plain};
      SerialContext serial(memory + worker * own);
      run(&serial.base, own_part, cut.path);
    }
  });
  const Epilogue& e = *g.epilogue;
  const bool is_plain = e.scale == 1 && !e.row_bias && !e.column_bias && e.low == -INFINITY && e.high == INFINITY;
  for (int64_t i = 0; i < g.m; ++i) {
    float *sum = sums + i * g.n, *to = g.c + i * g.ldc;
    for (int64_t part = 1; part < cut.parts; ++part) {
      map(sum, sum + part * cut.size, sum, g.n, [](f32v x, f32v y) { return x + y; });
    }
    if (!is_plain) {
      for (int64_t j = 0; j < g.n; ++j) to[j] = finish(sum[j], to[j], e, i, j);
    } else if (e.accumulate) {
      map(sum, to, to, g.n, [](f32v x, f32v y) { return x + y; });
    } else {
      memcpy(to, sum, g.n * sizeof(float));
    }
  }
  return MYC_OK;
}

int32_t run(myc_context* ctx, const Product& g, Path path) {
  // Columns are rows of the transposed product: the biases change places.
  Epilogue turned = *g.epilogue;
  turned.row_bias = g.epilogue->column_bias;
  turned.column_bias = g.epilogue->row_bias;
  switch (path) {
    case Path::kRows:
      return multiply_rows(ctx, g.m, g.n, g.k, g.a.data, g.a.row, g.a.column, g.b.data, g.b.row, g.c, g.ldc, 1,
                           *g.epilogue);
    case Path::kColumns:
      return multiply_rows(ctx, g.n, g.m, g.k, g.b.data, g.b.column, g.b.row, g.a.data, g.a.column, g.c, 1, g.ldc,
                           turned);
    case Path::kRowDots:
      return multiply_rows_by_dots(ctx, 1, g.n, g.k, g.a.data, 0, g.a.column, g.b.data, g.b.column, g.c, g.ldc, 1,
                                   *g.epilogue);
    case Path::kColumnDots:
      return multiply_rows_by_dots(ctx, g.n, g.m, g.k, g.b.data, g.b.column, g.b.row, g.a.data, g.a.row, g.c, 1, g.ldc,
                                   turned);
    case Path::kDots:
      return multiply_rows_by_dots(ctx, g.m, g.n, g.k, g.a.data, g.a.row, 1, g.b.data, g.b.column, g.c, g.ldc, 1,
                                   *g.epilogue);
    case Path::kLongK:
      return multiply_long_k(ctx, g);
    case Path::kOuter:
      return multiply_outer(ctx, g);
    case Path::kFewRows:
      return multiply_few_rows(ctx, g);
    case Path::kManyRows:
      return multiply_many_rows(ctx, g);
  }
  return MYC_E_UNSUPPORTED;
}

Product make_product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                     const float* b, int64_t ldb, float* c, int64_t ldc, const Epilogue* epilogue) {
  return {m,
          n,
          k,
          transpose_a ? View{a, 1, lda} : View{a, lda, 1},
          transpose_b ? View{b, 1, ldb} : View{b, ldb, 1},
          c,
          ldc,
          epilogue};
}

void multiply_nothing(const Product& g) {
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      float& to = g.c[i * g.ldc + j];
      to = finish(0.0f, to, *g.epilogue, i, j);
    }
  }
}

}  // namespace

int32_t gemm(myc_context* ctx, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a,
             int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc, const Epilogue& epilogue) {
  const Product g = make_product(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, c, ldc, &epilogue);
  if (k == 0) multiply_nothing(g);
  if (m == 0 || n == 0 || k == 0) return MYC_OK;
  return run(ctx, g, choose(g));
}

int64_t gemm_scratch(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k) {
  // The leading dimensions may be larger than these: the path does not depend on them, packing A does.
  const Product g = make_product(transpose_a, transpose_b, m, n, k, nullptr, INT32_MAX, nullptr, INT32_MAX, nullptr, n,
                                 nullptr);
  return serial_scratch(g, choose(g));
}

void gemm_serial(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                 const float* b, int64_t ldb, float* c, int64_t ldc, const Epilogue& epilogue, float* scratch) {
  SerialContext serial(scratch);
  gemm(&serial.base, transpose_a, transpose_b, m, n, k, a, lda, b, ldb, c, ldc, epilogue);
}

int64_t packed_size(int64_t k, int64_t n) { return k * round_up(n, kPanel); }

void pack_b(bool transpose_b, int64_t k, int64_t n, const float* b, int64_t ldb, float* packed) {
  const View view = transpose_b ? View{b, 1, ldb} : View{b, ldb, 1};
  pack_panels(view, n, k, packed, k * kPanel);
}

void gemm_packed_part(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed,
                      int64_t packed_k, int64_t from, float* c, int64_t ldc, const Epilogue& epilogue) {
  const Product g = make_product(false, false, m, n, k, a, lda, packed, kPanel, c, ldc, &epilogue);
  if (k == 0) return multiply_nothing(g);
  for (int64_t i = 0; i < m; i += kRowsInBlock) {
    for (int64_t p = 0; p < k; p += kDepth) {
      multiply_part(g, {i, min(kRowsInBlock, m - i), 0, n, p, min(kDepth, k - p)}, nullptr,
                    packed + (from + p) * kPanel, packed_k * kPanel);
    }
  }
}

void gemm_packed(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed, float* c,
                 int64_t ldc, const Epilogue& epilogue) {
  gemm_packed_part(m, n, k, a, lda, packed, k, 0, c, ldc, epilogue);
}

}  // namespace mycelia::MYC_ISA
