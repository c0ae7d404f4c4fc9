// The product of rows that lie anywhere with packed columns: C(i, j) = finish(sum over k of A(i, k) B(k, j)).
// A is read where it is, by broadcast through one pointer a row, so activations in channels-last order are never
// copied.  B is packed once in panels of 16 columns: element (k, j) at [j / 16][k][j % 16], zeros behind the last column.
// k is a list of runs that are contiguous in A and in B: one for a matrix, one per kernel row for a convolution.
// Cost: a block of 6 x 16 (12 x 32 with AVX-512) takes 12 (24) multiply-adds, 2 loads and 6 (12) broadcasts a k.
#ifndef MYCELIA_GEMM_ROWS_H_
#define MYCELIA_GEMM_ROWS_H_

#include "simd/activations.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kPackedColumns = 16;  // of a panel; one format for all instruction sets

// Rows of a block: its accumulators, two vectors of B and one of A must fit the register file.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kTileRows = 12;  // 32 registers
#else
constexpr int kTileRows = 6;  // 16 registers
#endif
constexpr int kTileColumns = 2 * kLanes;  // half a panel, a panel or two

// Functions that may follow a product; the order is that of the ops' attribute `activation`.
enum class Activation : int64_t { none, relu, relu6, hardswish, silu, sigmoid, gelu, gelu_tanh };

MYC_INLINE f32v activate(f32v x, Activation f) {
  switch (f) {
    case Activation::relu:
      return relu(x);
    case Activation::relu6:
      return relu6(x);
    case Activation::hardswish:
      return hardswish(x);
    case Activation::silu:
      return silu(x);
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::none:
      break;
  }
  return x;
}

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

// Memory that will be needed after this block: one line is fetched each time the cursor enters it.
struct Ahead {
  const char* at;
  int64_t step;  // bytes a k; 0 fetches one line again and again, which costs nothing
};

// `columns` <= kVectors * kLanes are stored; row i of C begins at c[c_row[i]].  `b_vector`: floats between the two vectors
// of B at one k.
template <int kRows, int kVectors>
inline __attribute__((noinline)) void rows_micro(const Run* runs, int64_t count, const float* const* a, const float* b,
                                                 int64_t b_vector, float* c, const int64_t* c_row, int64_t columns,
                                                 const Finish& f, Ahead ahead) {
  // Eight chains of dependent additions keep two multiply-add units busy; small blocks take several k at once.
  constexpr int kSets = kRows * kVectors >= 7 ? 1 : kRows * kVectors >= 4 ? 2 : 4;
  f32v sum[kRows][kVectors];
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[i][v] = f32v{};
  }
  // C and the residual were last touched long ago: fetch them while the sums run.  A residual doubles the traffic, so
  // that this comes too late: then it is the line that the next column block needs.
  const float* later = f.residual ? f.residual + kTileColumns : nullptr;
  float* soon = later ? c + kTileColumns : c;
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) __builtin_prefetch(soon + c_row[i], 1);
  if (later) {
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) __builtin_prefetch(later + c_row[i]);
  }
  const char* fetch = ahead.at;
  const int64_t fetch_step = ahead.step;
  for (int64_t r = 0; r < count; ++r) {
    const float* row[kRows];
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) row[i] = a[i] + runs[r].a;
    const float* bk = b + runs[r].b * kPackedColumns;
    const int64_t length = runs[r].length;
    int64_t k = 0;
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
      f32v more[kSets][kRows][kVectors] = {};
      while (k + kSets <= length) {
        __builtin_prefetch(fetch);
        fetch += kSets * fetch_step;
#pragma GCC unroll 4
        for (int set = 0; set < kSets; ++set) step(more[set]);
      }
#pragma GCC unroll 4
      for (int set = 0; set < kSets; ++set) {
#pragma GCC unroll 12
        for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) sum[i][v] += more[set][i][v];
        }
      }
    }
    while (k < length) {
      __builtin_prefetch(fetch);
      fetch += fetch_step;
      step(sum);
    }
  }
  int64_t valid[kVectors];  // stored lanes of each vector
  for (int v = 0; v < kVectors; ++v) valid[v] = clamp<int64_t>(columns - v * kLanes, 0, kLanes);
  const bool whole = columns == kVectors * kLanes;
  const auto add_rows = [&](const float* from) __attribute__((always_inline)) {
    if (whole) {
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[i][v] += load(from + c_row[i] + v * kLanes);
      }
    } else {
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[i][v] += load_partial(from + c_row[i] + v * kLanes, valid[v]);
      }
    }
  };
  if (f.add) add_rows(c);
  if (f.bias) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const f32v bias = whole ? load(f.bias + v * kLanes) : load_partial(f.bias + v * kLanes, valid[v]);
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) sum[i][v] += bias;
    }
  }
  if (f.residual) add_rows(f.residual);
  if (f.activation == Activation::relu) {
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] = max_or_second(f32v{}, sum[i][v]);
    }
  }
  if (whole) {
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) store(c + c_row[i] + v * kLanes, sum[i][v]);
    }
  } else {
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        if (valid[v] > 0) store_partial(c + c_row[i] + v * kLanes, sum[i][v], valid[v]);
      }
    }
  }
}

using RowsMicro = void (*)(const Run*, int64_t, const float* const*, const float*, int64_t, float*, const int64_t*,
                           int64_t, const Finish&, Ahead);

// The micro-kernel for `rows` in [1, kTileRows].
template <int kVectors, int kRows = kTileRows>
RowsMicro rows_micro_for(int64_t rows) {
  if constexpr (kRows == 1) {
    return rows_micro<1, kVectors>;
  } else {
    return rows == kRows ? rows_micro<kRows, kVectors> : rows_micro_for<kVectors, kRows - 1>(rows);
  }
}

inline __attribute__((noinline)) void activate_tile(int64_t rows, float* c, const int64_t* c_row, int64_t columns,
                                                    Activation f) {
  for (int64_t i = 0; i < rows; ++i) {
    float* row = c + c_row[i];
    map(row, row, columns, [=](f32v x) { return activate(x, f); });
  }
}

// Where the columns of a block lie in packed panels `panel_stride` floats apart: its first column at one k, and the
// distance of its second vector.
struct PackedBlock {
  const float* b;
  int64_t b_vector, columns;

  PackedBlock(const float* packed, int64_t panel_stride, int64_t block, int64_t all_columns) {
    const int64_t first = block * kTileColumns;
    b = packed + first / kPackedColumns * panel_stride + first % kPackedColumns;
    b_vector = kLanes < kPackedColumns ? kLanes : panel_stride;
    columns = min<int64_t>(kTileColumns, all_columns - first);
  }
};

// One block of at most kTileRows rows: row i reads a[i] and is stored at c[c_row[i]].
inline void rows_tile(int64_t rows, const Run* runs, int64_t count, const float* const* a, const PackedBlock& b,
                      float* c, const int64_t* c_row, const Finish& f, Ahead ahead) {
  const RowsMicro micro = b.columns > kLanes ? rows_micro_for<2>(rows) : rows_micro_for<1>(rows);
  micro(runs, count, a, b.b, b.b_vector, c, c_row, b.columns, f, ahead);
  if (f.activation > Activation::relu) activate_tile(rows, c, c_row, b.columns, f.activation);
}

// `count` rows in blocks of nearly equal height: a block of one row would take as long as one of four.
template <class Body>
MYC_INLINE void for_each_tile(int64_t count, const Body& body) {
  const int64_t tiles = ceil_div(count, kTileRows);
  for (int64_t t = 0, begin = 0; t < tiles; ++t) {
    const int64_t rows = count / tiles + (t < count % tiles);
    body(begin, rows);
    begin += rows;
  }
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_ROWS_H_
