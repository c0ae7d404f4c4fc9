// Winograd's form of Strassen's product (Winograd 1971; Higham 2002, section 23.2.2). With quarters of A, of
// the weights B and of C:
//
//   s1 = a21 + a22  s2 = s1 - a11   s3 = a11 - a21  s4 = a12 - s2
//   t1 = b12 - b11  t2 = b22 - t1   t3 = b22 - b12  t4 = t2 - b21
//   p1 = a11 b11    p2 = a12 b21    p3 = s4 b22     p4 = a22 t4    p5 = s1 t1    p6 = s2 t2    p7 = s3 t3
//   c11 = p1 + p2   c12 = p1 + p6 + p5 + p3   c21 = p1 + p6 + p7 - p4   c22 = p1 + p6 + p7 + p5
//
// The t are part of the pack. The s of some rows are made once; then, for a few panels of columns of the left
// half of C and their counterparts of the right half, the seven products go to scratch in the second-level
// cache, and one pass over it writes C. Flops: 7/4 rows depth columns, a few for each element of A and of C.
// Bytes: x, y, the residual, and 7/4 of the weights for each block of rows.
//
// The sums mix each row of the upper half with one of the lower half, so rounding errors of the larger row reach
// the smaller one, as infinities and NaN would. A block of rows where two are not of similar magnitude is multiplied
// plainly, by the same pack, since b12 = b11 + t1: c12 = a11 b11 + a11 t1 + a12 b22, and c22 with a21 and a22.
#include "gemm/strassen.h"

#include <algorithm>
#include <array>

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kDepth = 512;      // of k at once: a panel of this depth just fits the first-level cache
constexpr int64_t kMostRows = 72;    // of half the rows, in a block: seven products of 72 x 64 are 126 KB
constexpr int64_t kGroup = 64;       // columns: so often rows of A in the second-level cache are used
constexpr int64_t kSharesEach = 4;   // groups for each thread between two synchronizations
constexpr int64_t kShare = 2 << 20;  // multiply-adds of 40 us: less is not worth a second thread
constexpr int64_t kSlack = 16;       // floats: products should not meet in the same cache sets
constexpr int64_t kProductFloats = kMostRows * kGroup + kSlack;
static_assert(kMostRows % kTileRows == 0 && kGroup % kTileColumns == 0 && kGroup % kPackedColumns == 0);

constexpr float kKindred = 64;  // so many times another row's largest element a row's may be
enum Operand { a11, a12, s4, a22, s1, s2, s3, a21 };  // of A, in the order of the products; a21 is in none of them

struct Halves {
  const HalvedProduct& g;
  int64_t rows, depth, columns;  // half of each
  int64_t k_block;               // of the depth at once
  int64_t panel, width;          // floats of a packed panel; columns with the padding of the last one
  int64_t block_rows, blocks;    // blocks of rows
  int64_t sum_row, sum_floats;   // from row to row of a sum, and of one sum of a block

  explicit Halves(const HalvedProduct& g)
      : g(g),
        rows(ceil_div(g.rows, 2)),
        depth(g.depth / 2),
        columns(g.columns / 2),
        k_block(ceil_div(depth, ceil_div(depth, kDepth))),
        panel(depth * kPackedColumns),
        width(round_up(columns, kPackedColumns)),
        block_rows(min(rows, round_up(ceil_div(rows, ceil_div(rows, kMostRows)), int64_t{kTileRows}))),
        blocks(ceil_div(rows, block_rows)),
        sum_row((ceil_div(depth, 16) | 1) * 16),  // odd: rows lie in different cache sets
        sum_floats(block_rows * sum_row) {}

  int64_t height(int64_t block) const { return min(block_rows, rows - block * block_rows); }
  // Rows of the block that have a counterpart in the lower half: all, or all but the last one.
  int64_t height_below(int64_t block) const { return min(height(block), g.rows - rows - block * block_rows); }
};

// Up to one vector, all of it where n is a constant.
MYC_INLINE f32v read(const float* from, int64_t n) {
  return n == kLanes ? load(from) : load_partial(from, n);
}
MYC_INLINE void write(float* to, f32v x, int64_t n) {
  if (n == kLanes) {
    store(to, x);
  } else {
    store_partial(to, x, n);
  }
}

// Whether rows with these largest absolute values may be mixed; a row of zeros may, one with a NaN may not.
bool have_similar_magnitude(float above, float below) {
  if (above == 0 || below == 0) return above == above && below == below;
  return above <= kKindred * below && below <= kKindred * above;
}

// The four sums of row i, which is row `to` of a block's sums. False: it and its lower row are not to be mixed.
bool sum_quarters(const Halves& h, int64_t i, float* to) {
  const HalvedProduct& g = h.g;
  const float *above = g.x + i * g.x_step, *below = above + h.rows * g.x_step;
  const bool has_below = i + h.rows < g.rows;
  f32v most_above{}, most_below{}, not_finite{};  // zeros, or NaN for an infinity
  const auto sum = [&](int64_t k, int64_t n) __attribute__((always_inline)) {
    const f32v x11 = read(above + k, n), x12 = read(above + h.depth + k, n);
    const f32v x21 = has_below ? read(below + k, n) : f32v{};
    const f32v x22 = has_below ? read(below + h.depth + k, n) : f32v{};
    const f32v sum1 = x21 + x22, sum2 = sum1 - x11;
    const f32v sums[4] = {x12 - sum2, sum1, sum2, x11 - x21};  // s4, s1, s2, s3
    for (int s = 0; s < 4; ++s) write(to + s * h.sum_floats + k, sums[s], n);
    most_above = max_or_second(most_above, max_or_second(abs(x11), abs(x12)));
    most_below = max_or_second(most_below, max_or_second(abs(x21), abs(x22)));
    not_finite += (abs(x11) + abs(x12) + abs(x21) + abs(x22)) * 0.0f;
  };
  int64_t k = 0;
  for (; k + kLanes <= h.depth; k += kLanes) sum(k, kLanes);
  if (k < h.depth) sum(k, h.depth - k);
  if (!has_below) return true;
  const float flaw = horizontal_sum(not_finite);
  return have_similar_magnitude(horizontal_max(most_above) + flaw, horizontal_max(most_below) + flaw);
}

// A quarter or sum of A by the weights that belong to product `p`: `count` tiles of columns from `tile` on, to (or
// added to) `to` with rows of kGroup floats.
void multiply_quarter(const Halves& h, Operand x, Operand p, int64_t block, const float* sums, int64_t tile,
                      int64_t count, bool add, float* to) {
  const HalvedProduct& g = h.g;
  const bool lower = x == a21 || x == a22, is_sum = !lower && x != a11 && x != a12;
  const int64_t first = block * h.block_rows, height = lower ? h.height_below(block) : h.height(block);
  const float* a = g.x + (first + (lower ? h.rows : 0)) * g.x_step + (x == a12 || x == a22 ? h.depth : 0);
  if (is_sum) a = sums + (x == s4 ? 0 : x - a22) * h.sum_floats;
  const int64_t a_step = is_sum ? h.sum_row : g.x_step;
  int64_t a_row[kTileRows], c_row[kTileRows];
  for (int64_t i = 0; i < kTileRows; ++i) a_row[i] = i * a_step, c_row[i] = i * kGroup;
  for (int64_t k0 = 0; k0 < h.depth; k0 += h.k_block) {
    const Run run = {k0, k0, min(h.k_block, h.depth - k0)};
    const Finish f = {add || k0 > 0, nullptr, nullptr, Activation::none};
    for (int64_t q = 0; q < count; ++q) {
      const auto weights = [&](int64_t at, int64_t operand) {
        return packed_block(g.packed + operand * h.panel, 7 * h.panel, tile + at, h.width);
      };
      const PackedBlock b = weights(q, p);
      // Next come the same k of the next panel, the next k of the first one, or the next product's first.
      const bool more = q + 1 < count, last = k0 + h.k_block >= h.depth;
      const float* next = more   ? weights(q + 1, p).b + k0 * kPackedColumns
                          : last ? weights(p == s3 ? count : 0, (p + 1) % 7).b
                                 : weights(0, p).b + (k0 + h.k_block) * kPackedColumns;
      const RowList list = {a, to + q * kTileColumns, a_row, c_row, a_step, kGroup};
      multiply_rows(height, list, &run, 1, b, f, {next, run.length * kPackedColumns});
    }
  }
}

// The quarters of C, to the places of p1, p2, p3 and p4. product(of A, the product whose weights, add, to).
template <class Product>
void multiply_plainly(const Product& product) {
  for (const auto [left, right, to] : {std::array{a11, a12, a11}, std::array{a21, a22, s4}}) {
    product(left, a11, false, to);
    product(right, a12, true, to);
    const Operand other = to == a11 ? a12 : a22;
    product(left, a11, false, other);
    product(left, s1, true, other);
    product(right, s4, true, other);
  }
}

// From products to a row of each quarter of C. `c`: of the upper left one; the others lie `right` and `below`
// behind it, below is 0 if there is no lower row.
struct Combination {
  const float *left_bias, *right_bias, *residual;
  float* c;
  int64_t right, below;
  f32v low, high;
  bool plain;  // the first four products are the quarters of C

  MYC_INLINE void put(f32v sum, const float* bias, int64_t at, int64_t n) const {
    if (bias) sum += read(bias, n);
    if (residual) sum += read(residual + at, n);
    write(c + at, clip(sum, low, high), n);
  }
  // `n` lanes from column j on.
  MYC_INLINE void run(const float* p, int64_t j, int64_t n) const {
    const auto product = [&](Operand i) __attribute__((always_inline)) {
      return load(p + i * kProductFloats + j);
    };
    const float* left = left_bias ? left_bias + j : nullptr;
    const float* other = right_bias ? right_bias + j : nullptr;
    if (plain) {
      put(product(a11), left, j, n);
      put(product(a12), other, right + j, n);
      if (below == 0) return;
      put(product(s4), left, below + j, n);
      put(product(a22), other, below + right + j, n);
      return;
    }
    const f32v p1 = product(a11), p5 = product(s1), u2 = p1 + product(s2);
    put(p1 + product(a12), left, j, n);
    put(u2 + p5 + product(s4), other, right + j, n);
    if (below == 0) return;
    const f32v u3 = u2 + product(s3);
    put(u3 - product(a22), left, below + j, n);
    put(u3 + p5, other, below + right + j, n);
  }
};

// Writes C for a block's rows and `n` columns of each half, from `column` on.
void combine(const Halves& h, int64_t block, int64_t column, int64_t n, const float* products, bool plain) {
  const HalvedProduct& g = h.g;
  constexpr int64_t kAhead = 2;  // rows: more of C would fight for the same cache sets
  const bool clips = g.activation == Activation::relu || g.activation == Activation::relu6;
  const int64_t first = block * h.block_rows, height = h.height(block), height_below = h.height_below(block);
  const int64_t at = first * g.columns + column, half = h.rows * g.columns;
  Combination c = {g.bias ? g.bias + column : nullptr,
                   g.bias ? g.bias + h.columns + column : nullptr,
                   g.residual ? g.residual + at : nullptr,
                   g.y + at,
                   h.columns,
                   half,
                   splat(clips ? 0.0f : -INFINITY),
                   splat(g.activation == Activation::relu6 ? 6.0f : INFINITY),
                   plain};
  for (int64_t i = 0; i < height; ++i, products += kGroup, c.c += g.columns) {
    if (i == height_below) c.below = 0;
    for (int64_t quarter = 0; quarter < 4; ++quarter) {
      const int64_t from = kAhead * g.columns + quarter / 2 * c.below + quarter % 2 * c.right;
      for (int64_t j = 0; j < n; j += 16) {
        __builtin_prefetch(c.c + from + j, 1);
        if (c.residual) __builtin_prefetch(c.residual + from + j);
      }
    }
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) c.run(products, j, kLanes);
    if (j < n) c.run(products, j, n - j);
    if (c.residual) c.residual += g.columns;
  }
  if (g.activation <= Activation::relu6) return;
  constexpr int64_t kStart = 0;
  for (int64_t quarter = 0; quarter < 4; ++quarter) {
    float* to = g.y + at + quarter / 2 * half + quarter % 2 * h.columns;
    const RowList rows = {nullptr, to, &kStart, &kStart, 0, g.columns};
    activate_rows(quarter < 2 ? height : height_below, rows, n, g.activation);
  }
}

}  // namespace

KERNEL_PART(pack_strassen)(myc_context* ctx, const View& w, int64_t depth, int64_t columns, float* to) {
  const int64_t k = depth / 2, n = columns / 2, panel = k * kPackedColumns;
  const int64_t grain = kMinParallelWork / (panel * 64 + 1) + 1;
  parallel_for(ctx, ceil_div(n, kPackedColumns), grain, [&](int64_t begin, int64_t end) {
    for (int64_t q = begin; q < end; ++q) {
      const int64_t j = q * kPackedColumns, count = min(kPackedColumns, n - j);
      float* at = to + 7 * panel * q;
      const auto copy = [&](int64_t p0, int64_t j0, Operand slot) {
        const float* from = w.at(p0, j0 + j);
        if (w.column == 1) {
          pack_rows<kPackedColumns, kPackedColumns>(from, w.row, count, k, at + slot * panel);
        } else {
          pack_transposed<kPackedColumns, kPackedColumns>(from, w.column, count, k, at + slot * panel);
        }
      };
      copy(0, 0, a11);  // each quarter to the place of the operand of A by which it is multiplied
      copy(k, 0, a12);
      copy(k, n, s4);
      copy(0, n, s3);  // b12 has none: t3 takes its place
      for (int64_t p = 0; p < panel; p += kLanes) {
        const auto slot = [&](Operand i) { return at + i * panel + p; };
        const f32v b11 = load(slot(a11)), b21 = load(slot(a12)), b22 = load(slot(s4)), b12 = load(slot(s3));
        const f32v t1 = b12 - b11, t2 = b22 - t1;
        store(slot(a22), t2 - b21);
        store(slot(s1), t1);
        store(slot(s2), t2);
        store(slot(s3), b22 - b12);
      }
    }
  });
  return MYC_OK;
}

KERNEL_PART(multiply_strassen)(myc_context* ctx, const HalvedProduct& g) {
  const Halves h(g);
  constexpr int64_t kTiles = kGroup / kTileColumns;
  const int64_t tiles = ceil_div(h.width, int64_t{kTileColumns}), block_sums = 4 * h.sum_floats;
  const int32_t workers = max_workers(ctx);
  const int64_t wanted = workers > 1 ? ceil_div(kSharesEach * workers, ceil_div(tiles, kTiles)) : 1;
  const int64_t at_once = clamp(wanted, int64_t{1}, h.blocks);
  Scratch scratch(ctx);
  float* sums = scratch.take<float>(at_once * block_sums);
  float* products = scratch.take<float>(workers * 7 * kProductFloats);
  bool* mixable = scratch.take<bool>(at_once * h.block_rows);  // for each row of the sums
  if (!sums || !products || !mixable) return MYC_E_MEMORY;
  for (int64_t block = 0; block < h.blocks; block += at_once) {
    const int64_t count = min(at_once, h.blocks - block), row = block * h.block_rows;
    const int64_t rows = min(count * h.block_rows, h.rows - row);
    parallel_for(ctx, rows, kMinParallelWork / (h.depth * 32 + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        float* to = sums + i / h.block_rows * block_sums + i % h.block_rows * h.sum_row;
        mixable[i] = sum_quarters(h, row + i, to);
      }
    });
    const int64_t share = kShare / (7 * h.block_rows * h.depth * kTileColumns + 1) + 1;
    const auto multiply = [&](int64_t begin, int64_t end, int32_t worker) {
      float* own = products + worker * 7 * kProductFloats;
      for (int64_t n; begin < end; begin += n) {
        const int64_t b = begin / tiles, tile = begin % tiles, column = tile * kTileColumns;
        n = min(min(end - begin, tiles - tile), kTiles);
        const bool* row_mixable = mixable + b * h.block_rows;
        const bool plain = !std::all_of(row_mixable, row_mixable + h.height(block + b), [](bool m) { return m; });
        const auto product = [&](Operand x, Operand weights, bool add, Operand to) {
          multiply_quarter(h, x, weights, block + b, sums + b * block_sums, tile, n, add, own + to * kProductFloats);
        };
        if (plain) {
          multiply_plainly(product);
        } else {
          for (int64_t p = a11; p <= s3; ++p) product(Operand(p), Operand(p), false, Operand(p));
        }
        combine(h, block + b, column, min(n * kTileColumns, h.columns - column), own, plain);
      }
    };
    parallel_for_worker(ctx, count * tiles, share, multiply);
  }
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
