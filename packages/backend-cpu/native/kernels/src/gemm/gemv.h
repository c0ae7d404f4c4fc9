// Products with very few rows, where packing B would cost more than it saves.
#ifndef MYCELIA_GEMM_GEMV_H_
#define MYCELIA_GEMM_GEMV_H_

#include "gemm/gemm.h"
#include "simd/vec.h"

namespace mycelia::MYC_ISA {

inline float finish(float product, float old, const Epilogue& e, int64_t i, int64_t j) {
  float v = e.scale * product;
  if (e.accumulate) v += old;
  if (e.row_bias) v += e.row_bias[i];
  if (e.column_bias) v += e.column_bias[j];
  return v < e.low ? e.low : v > e.high ? e.high : v;
}

// Inner products of kRows rows of x with kCols rows of w: sums[r][c].
template <int kRows, int kCols>
inline __attribute__((noinline)) void dots(int64_t k, const float* x, int64_t ldx, const float* w, int64_t ldw,
                                           float (*sums)[4]) {
  f32v sum[kRows][kCols] = {};
  int64_t p = 0;
  for (; p + kLanes <= k; p += kLanes) {
    f32v wv[kCols];
    for (int c = 0; c < kCols; ++c) wv[c] = load(w + c * ldw + p);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const f32v xv = load(x + r * ldx + p);
      for (int c = 0; c < kCols; ++c) sum[r][c] = fma(xv, wv[c], sum[r][c]);
    }
  }
  if (p < k) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const f32v xv = load_partial(x + r * ldx + p, k - p);
      for (int c = 0; c < kCols; ++c) sum[r][c] = fma(xv, load_partial(w + c * ldw + p, k - p), sum[r][c]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kCols; ++c) sums[r][c] = horizontal_sum(sum[r][c]);
  }
}

// C[m, n] (element strides c_row, c_column) = X[m, k] W[n, k]^T, both with contiguous k, columns [begin, end).
// Compute-bound from three rows on; one row reads W once.
inline void multiply_dots(int64_t m, int64_t begin, int64_t end, int64_t k, const float* x, int64_t ldx,
                          const float* w, int64_t ldw, float* c, int64_t c_row, int64_t c_column, const Epilogue& e) {
  for (int64_t j = begin; j < end; j += 4) {
    const int64_t cols = min<int64_t>(4, end - j);
    for (int64_t i = 0; i < m; i += 3) {
      const int64_t rows = min<int64_t>(3, m - i);
      float sums[3][4];
      const float *xs = x + i * ldx, *ws = w + j * ldw;
      if (cols == 4) {
        (rows == 3 ? dots<3, 4> : rows == 2 ? dots<2, 4> : dots<1, 4>)(k, xs, ldx, ws, ldw, sums);
      } else {
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t q = 0; q < cols; ++q) {
            float one[1][4];
            dots<1, 1>(k, xs + r * ldx, ldx, ws + q * ldw, ldw, one);
            sums[r][q] = one[0][0];
          }
        }
      }
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t q = 0; q < cols; ++q) {
          float& to = c[(i + r) * c_row + (j + q) * c_column];
          to = finish(sums[r][q], to, e, i + r, j + q);
        }
      }
    }
  }
}

// y[j] += sum over p of x[p * x_step] * w[p, j] for j < n: eight rows of W at a time, so that W streams through and y
// stays in the first-level cache.
inline void add_rows(int64_t n, int64_t k, const float* x, int64_t x_step, const float* w, int64_t ldw, float* y) {
  int64_t p = 0;
  for (; p + 8 <= k; p += 8, w += 8 * ldw) {
    f32v f[8];
    for (int q = 0; q < 8; ++q) f[q] = splat(x[(p + q) * x_step]);
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      f32v even = fma(f[0], load(w + j), load(y + j)), odd = f[1] * load(w + ldw + j);
      for (int q = 2; q < 8; q += 2) {
        even = fma(f[q], load(w + q * ldw + j), even);
        odd = fma(f[q + 1], load(w + (q + 1) * ldw + j), odd);
      }
      store(y + j, even + odd);
    }
    for (; j < n; ++j) {
      float sum = 0;
      for (int q = 0; q < 8; ++q) sum += f[q][0] * w[q * ldw + j];
      y[j] += sum;
    }
  }
  for (; p < k; ++p, w += ldw) {
    const float f = x[p * x_step];
    for (int64_t j = 0; j < n; ++j) y[j] += f * w[j];
  }
}

// y[i * ldy + j] += sum over kDepth p of x[i * x_row + p * x_step] * w[p * ldw + j] for i < kRows, j < n.
template <int kRows, int kDepth>
inline __attribute__((noinline)) void add_some_rows(int64_t n, const float* x, int64_t x_row, int64_t x_step,
                                                    const float* w, int64_t ldw, float* y, int64_t ldy) {
  float factor[kDepth][kRows];
  for (int q = 0; q < kDepth; ++q) {
    for (int i = 0; i < kRows; ++i) factor[q][i] = x[i * x_row + q * x_step];
  }
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    f32v sum[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sum[i] = load(y + i * ldy + j);
#pragma GCC unroll 8
    for (int q = 0; q < kDepth; ++q) {
      const f32v v = load(w + q * ldw + j);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) sum[i] = fma(splat(factor[q][i]), v, sum[i]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) store(y + i * ldy + j, sum[i]);
  }
  for (; j < n; ++j) {
    for (int i = 0; i < kRows; ++i) {
      float sum = y[i * ldy + j];
      for (int q = 0; q < kDepth; ++q) sum += factor[q][i] * w[q * ldw + j];
      y[i * ldy + j] = sum;
    }
  }
}

// The same for all k and up to 8 rows: W streams through once, eight of its rows at a time.
template <int kRows = 8>
inline void add_rows_to(int64_t rows, int64_t n, int64_t k, const float* x, int64_t x_row, int64_t x_step, const float* w,
                        int64_t ldw, float* y, int64_t ldy) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return add_rows_to<kRows - 1>(rows, n, k, x, x_row, x_step, w, ldw, y, ldy);
  }
  int64_t p = 0;
  for (; p + 8 <= k; p += 8) add_some_rows<kRows, 8>(n, x + p * x_step, x_row, x_step, w + p * ldw, ldw, y, ldy);
  for (; p < k; ++p) add_some_rows<kRows, 1>(n, x + p * x_step, x_row, x_step, w + p * ldw, ldw, y, ldy);
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_GEMV_H_
