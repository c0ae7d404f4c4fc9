#include "gemm/gemm.h"

namespace mycelia::MYC_ISA {
namespace {

float finish(float product, float old, const Epilogue& e, int64_t i, int64_t j) {
  float v = e.scale * product;
  if (e.accumulate) v += old;
  if (e.row_bias) v += e.row_bias[i];
  if (e.column_bias) v += e.column_bias[j];
  return v < e.low ? e.low : v > e.high ? e.high : v;
}

}  // namespace

int64_t gemm_scratch(bool, bool, int64_t, int64_t, int64_t) { return 0; }

void gemm_serial(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                 const float* b, int64_t ldb, float* c, int64_t ldc, const Epilogue& epilogue, float*) {
  const int64_t ai = transpose_a ? 1 : lda, ak = transpose_a ? lda : 1;
  const int64_t bk = transpose_b ? 1 : ldb, bj = transpose_b ? ldb : 1;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += a[i * ai + p * ak] * b[p * bk + j * bj];
      c[i * ldc + j] = finish(sum, c[i * ldc + j], epilogue, i, j);
    }
  }
}

int32_t gemm(myc_context*, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a,
             int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc, const Epilogue& epilogue) {
  gemm_serial(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, c, ldc, epilogue, nullptr);
  return MYC_OK;
}

int64_t packed_size(int64_t k, int64_t n) { return k * n; }

void pack_b(bool transpose_b, int64_t k, int64_t n, const float* b, int64_t ldb, float* packed) {
  for (int64_t p = 0; p < k; ++p)
    for (int64_t j = 0; j < n; ++j) packed[p * n + j] = transpose_b ? b[j * ldb + p] : b[p * ldb + j];
}

void gemm_packed(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed, float* c,
                 int64_t ldc, const Epilogue& epilogue) {
  gemm_serial(false, false, m, n, k, a, lda, packed, n, c, ldc, epilogue, nullptr);
}

}  // namespace mycelia::MYC_ISA
