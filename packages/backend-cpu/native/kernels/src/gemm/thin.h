// Products with few rows, which read the other matrix once, where it is.  For gemm.cc alone.
#ifndef MYCELIA_GEMM_THIN_H_
#define MYCELIA_GEMM_THIN_H_

#include "gemm/blocks.h"
#include "gemm/gemv.h"

namespace mycelia::MYC_ISA {
namespace {

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

}  // namespace
}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_THIN_H_
