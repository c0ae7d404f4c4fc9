// What a product of rows is told, and the loops over register tiles as those see them who plan products: they are compiled once,
// the loops once per instruction set (rows.h, tile_loops.cc).
#ifndef MYCELIA_GEMM_ROW_TYPES_H_
#define MYCELIA_GEMM_ROW_TYPES_H_

#include "mycelia/kernels.h"

namespace mycelia {

constexpr int64_t kCutRows = 16;  // from here on all rows sum up in the same order, however many there are
constexpr int64_t kPackedColumns = 16;  // of a panel; one format for all instruction sets, half a tile, one or two

// Functions that may follow a product; the order is that of the ops' attribute `activation`.
enum class Activation : int64_t { none, relu, relu6, hardswish, silu, sigmoid, gelu, gelu_tanh };

// A stretch of k: `a` floats behind each row's pointer, `b` rows of a panel, `length` long.
struct Run {
  int64_t a, b, length;
};

// How sums leave the registers.
struct Finish {
  bool add;               // to what is in C: a later part of k
  const float* bias;      // of the block's first column; null without one, and before the last part of k
  const float* residual;  // added; laid out as C; null as above
  Activation activation;  // none before the last part of k
};

// Rows of A and C.  Row i lies at a + a_row[i] and c + c_row[i]; or, when the steps are not 0, the lists hold
// just the first rows of a tile and a later row lies where it would in a matrix with these leading dimensions.
struct RowList {
  const float* a;
  float* c;
  const int64_t *a_row, *c_row;
  int64_t a_step, c_step;

  MYC_INLINE RowList from(int64_t i) const {
    if (c_step == 0) return {a, c, a_row + i, c_row + i, 0, 0};
    return {a + i * a_step, c + i * c_step, a_row, c_row, a_step, c_step};
  }
};

// Memory that will be needed after this block, fetched evenly while it is computed.
struct Ahead {
  const float* at;
  int64_t floats;
};

// Where columns lie in packed panels: the first one at one k, the distance of a block's second vector, and of its
// successor. More than one block: all are whole.
struct PackedBlock {
  const float* b;
  int64_t b_vector, columns, blocks, b_block;
};

// A product with packed weights: y[rows, columns] = activation(x[rows, depth] w + bias + residual).
struct Layer {
  int64_t rows, depth, columns;
  const float *x, *packed, *bias, *residual;  // bias and residual may be null; the residual lies as y
  Activation activation;
  float* y;
  int64_t x_step;  // floats from row to row of x
};

// The loops of an instruction set.
struct TileLoops {
  int64_t lanes, rows, columns;  // of a vector, of a register tile
  int64_t floats_at_once;        // of panels that a tile of rows passes at once while k is short
  // `count` rows times blocks of columns, over `run_count` runs of k.
  void (*multiply)(int64_t count, const RowList& rows, const Run* runs, int64_t run_count, const PackedBlock& b,
                   const Finish& f, Ahead ahead);
  // One row against `count` panels from column j on, at most lanes / 2; behind the last one it is read again.
  void (*multiply_streams)(const Layer& g, int64_t j, int64_t count);
  // Applies what tiles do not themselves, all beyond relu6; an error code if the program does without.
  int32_t (*activate)(float* y, int64_t count, Activation activation);
  // `rows` rows one behind another by all columns, in tiles of whole rows: how many of the first ones it did. May be null.
  int64_t (*multiply_dense)(const Layer& g);

  MYC_INLINE bool has(Activation f) const { return f <= Activation::relu6 || activate(nullptr, 0, f) == MYC_OK; }
  MYC_INLINE int64_t blocks(int64_t all_columns) const { return (all_columns + columns - 1) / columns; }
  // `count` blocks of columns from `block` on, of panels `panel_stride` floats apart.
  MYC_INLINE PackedBlock block(const float* packed, int64_t panel_stride, int64_t block, int64_t all_columns,
                               int64_t count = 1) const {
    const int64_t first = block * columns, left = all_columns - first;
    return {packed + first / kPackedColumns * panel_stride + first % kPackedColumns,
            lanes < kPackedColumns ? lanes : panel_stride, left < columns ? left : columns, count,
            columns / kPackedColumns * panel_stride};
  }
  // How many of the blocks [block, end) a tile of rows should pass at once while k is short: the more, the less often
  // A is read and lines of C are visited. Their panels may take twice the first-level cache, they are read in order.
  MYC_INLINE int64_t blocks_at_once(int64_t block, int64_t end, int64_t k, int64_t all_columns) const {
    const int64_t fit = floats_at_once / ((k > 1 ? k : 1) * columns), whole = all_columns / columns;
    const int64_t there = (end < whole ? end : whole) - block, most = fit < there ? fit : there;
    return most >= 2 ? most / 2 * 2 : 1;  // pairs, for wide tiles
  }
};

}  // namespace mycelia

#endif  // MYCELIA_GEMM_ROW_TYPES_H_
