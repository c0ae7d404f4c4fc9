// float32 matrix product for all kernels: matmul, dense, convolution, attention, recurrent cells.
#ifndef MYCELIA_GEMM_GEMM_H_
#define MYCELIA_GEMM_GEMM_H_

#include "mycelia/kernels.h"

namespace mycelia::MYC_ISA {

// What happens to an element of the product before it is stored:
//   c = clamp(scale * (A B) + old c (if accumulate) + row_bias[i] + column_bias[j], low, high)
struct Epilogue {
  float scale = 1;
  bool accumulate = false;             // add to C instead of overwriting it
  const float* row_bias = nullptr;     // [m]
  const float* column_bias = nullptr;  // [n]
  float low = -INFINITY, high = INFINITY;  // relu: low = 0; relu6: low = 0, high = 6.  NaN passes through.
};

// C[m, n] = op(A)[m, k] op(B)[k, n] with row-major storage and leading dimensions (elements between rows).
// transpose_a: A is stored [k, m]; transpose_b: B is stored [n, k].  k = 0 gives a product of zeros.
// Runs on the threads of `ctx`; call it from the kernel's own thread.  From inside a body of parallel_for use
// gemm_serial.  Returns MYC_OK or MYC_E_MEMORY.  Cost: 2 m n k flops.
int32_t gemm(myc_context* ctx, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a,
             int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc, const Epilogue& epilogue = {});

// The same on the current thread only, with memory from the caller: gemm_scratch(...) floats, 64-byte aligned
// (may be 0).  For bodies of parallel_for: take workers * gemm_scratch(...) before the loop.
int64_t gemm_scratch(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k);
void gemm_serial(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                 const float* b, int64_t ldb, float* c, int64_t ldc, const Epilogue& epilogue, float* scratch);

// B packed once, used often (constant weights, Winograd, several images): panels of kPanel columns.
// The packed form of one instruction set is of no use to another.
int64_t packed_size(int64_t k, int64_t n);  // floats
void pack_b(bool transpose_b, int64_t k, int64_t n, const float* b, int64_t ldb, float* packed);
// C = A B with packed B and A row-major [m, k]; current thread, no scratch.
void gemm_packed(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed, float* c,
                 int64_t ldc, const Epilogue& epilogue);
// The same with the rows [from, from + k) of a larger B, whose pack has packed_k rows.
void gemm_packed_part(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed,
                      int64_t packed_k, int64_t from, float* c, int64_t ldc, const Epilogue& epilogue);

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_GEMM_H_
