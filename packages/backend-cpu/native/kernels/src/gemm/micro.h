// The innermost piece of the matrix product: a block of kRows x (kVectors vectors) of C kept in registers while it runs
// along k.  Two vectors of B are shared by all rows, A is read by broadcast.
#ifndef MYCELIA_GEMM_MICRO_H_
#define MYCELIA_GEMM_MICRO_H_

#include "gemm/gemm.h"
#include "gemm/steps.h"
#include "gemm/tile_shape.h"

namespace mycelia::MYC_ISA {

constexpr int kBlockRows = kTileRows;
constexpr int kPanel = kTileColumns;  // columns of a block

// How a block leaves the registers.
struct Store {
  float scale;
  bool add;                  // to what is in C: a later part of k, or the epilogue's accumulate
  bool clamp;
  float low, high;
  const float* row_bias;     // of the block's first row; null unless this is the last part of k
  const float* column_bias;  // of the block's first column; null unless this is the last part of k
};

// A(i, p) = a[i * a_row + p * a_step], B(p, j) = b[p * b_step + j]; `columns` <= kVectors * kLanes are stored.
// Packed A has a_row = 1 and a_step = kBlockRows, known to the compiler.
template <int kRows, int kVectors, bool kPackedA>
inline __attribute__((noinline)) void micro(int64_t k, const float* a, int64_t a_row, int64_t a_step, const float* b,
                                            int64_t b_step, float* c, int64_t ldc, int64_t columns, const Store& s) {
  // Eight chains of dependent additions keep two multiply-add units busy; small blocks take several k at once.
  constexpr int kSets = kRows * kVectors >= 7 ? 1 : kRows * kVectors >= 4 ? 2 : 4;
  f32v sum[kRows][kVectors];
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) sum[i][v] = f32v{};
  }
  if (k >= 128) {  // C was last touched a whole part of k ago, or never: fetch it while the sums run
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      __builtin_prefetch(c + i * ldc, 1);
      __builtin_prefetch(c + i * ldc + kVectors * kLanes - 1, 1);
    }
  }
  // Three rows per pointer: the processor's addressing adds the other two for free.
  const float* rows[(kRows + 2) / 3];
  for (int i = 0; i < (kRows + 2) / 3; ++i) rows[i] = a + 3 * i * a_row;
  const auto step = [&](f32v(&to)[kRows][kVectors]) __attribute__((always_inline)) {
    f32v bv[kVectors];
    for (int v = 0; v < kVectors; ++v) bv[v] = load(b + v * kLanes);
    b += b_step;
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      const f32v av = splat(kPackedA ? a[i] : rows[i / 3][i % 3 * a_row]);
      for (int v = 0; v < kVectors; ++v) to[i][v] = fma(av, bv[v], to[i][v]);
    }
    if (kPackedA) {
      a += kBlockRows;
    } else {
#pragma GCC unroll 4
      for (int i = 0; i < (kRows + 2) / 3; ++i) rows[i] += a_step;
    }
  };
  if constexpr (kSets > 1) {
    f32v more[kSets][kRows][kVectors] = {};
    for (; k >= kSets; k -= kSets) {
#pragma GCC unroll 4
      for (int set = 0; set < kSets; ++set) step(more[set]);
    }
    for (int set = 0; set < kSets; ++set) {
      for (int i = 0; i < kRows; ++i) {
        for (int v = 0; v < kVectors; ++v) sum[i][v] += more[set][i][v];
      }
    }
  }
#if MYC_STEPS
  if constexpr (has_steps(kRows, kVectors)) {
    if (b_step == kPanel && kPackedA) {
      add_steps(OuterSteps{a, kBlockRows * 4, b, k}, sum);
      k = 0;
    } else if (b_step == kPanel && a_step == 1) {
      RowSteps x = {{}, b, k, reinterpret_cast<const char*>(b), 0, 0};
      for (int i = 0; i < 6; ++i) x.row[i] = a + min(i, kRows - 1) * a_row;
      add_steps(x, sum);
      k = 0;
    }
  }
#endif
  for (; k > 0; --k) step(sum);
  if (s.scale != 1.0f) {
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) sum[i][v] *= s.scale;
    }
  }
  int64_t valid[kVectors];  // stored lanes of each vector
  for (int v = 0; v < kVectors; ++v) valid[v] = clamp<int64_t>(columns - v * kLanes, 0, kLanes);
  if (s.add) {
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        const float* from = c + i * ldc + v * kLanes;
        sum[i][v] += valid[v] == kLanes ? load(from) : load_partial(from, valid[v]);
      }
    }
  }
  if (s.row_bias) {
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) sum[i][v] += s.row_bias[i];
    }
  }
  if (s.column_bias) {
    for (int v = 0; v < kVectors; ++v) {
      const f32v bias = load_partial(s.column_bias + v * kLanes, valid[v]);
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) sum[i][v] += bias;
    }
  }
  if (s.clamp) {
    const f32v low = splat(s.low), high = splat(s.high);
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) sum[i][v] = min_or_second(high, max_or_second(low, sum[i][v]));
    }
  }
  if (columns == kVectors * kLanes) {
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) store(c + i * ldc + v * kLanes, sum[i][v]);
    }
  } else {
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        float* to = c + i * ldc + v * kLanes;
        if (valid[v] == kLanes) {
          store(to, sum[i][v]);
        } else {
          store_partial(to, sum[i][v], valid[v]);
        }
      }
    }
  }
}

using Micro = void (*)(int64_t k, const float* a, int64_t a_row, int64_t a_step, const float* b, int64_t b_step,
                       float* c, int64_t ldc, int64_t columns, const Store& s);

// The micro-kernel for `rows` in [1, kBlockRows].
template <int kVectors, bool kPackedA, int kRows = kBlockRows>
Micro micro_for(int64_t rows) {
  if constexpr (kRows == 1) {
    return micro<1, kVectors, kPackedA>;
  } else {
    return rows == kRows ? micro<kRows, kVectors, kPackedA> : micro_for<kVectors, kPackedA, kRows - 1>(rows);
  }
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_MICRO_H_
