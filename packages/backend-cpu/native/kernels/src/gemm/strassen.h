// One level of Strassen's product for constant weights: seven products of half the sizes instead of eight.
#ifndef MYCELIA_GEMM_STRASSEN_H_
#define MYCELIA_GEMM_STRASSEN_H_

#include "gemm/pack.h"
#include "gemm/rows.h"
#include "part.h"

namespace mycelia::MYC_ISA {

// Depth and columns are even, rows need not be.
using HalvedProduct = Layer;

// Floats of packed weights, 7/4 of the plain pack.
inline int64_t strassen_size(int64_t depth, int64_t columns) {
  return 7 * (depth / 2) * round_up(columns / 2, kPackedColumns);
}
// Parts, which a program may leave out.
// Packs w [depth, columns] on the threads of `ctx`.
KERNEL_PART(pack_strassen)(myc_context* ctx, const View& w, int64_t depth, int64_t columns, float* to);
// Runs on the threads of `ctx`, from the kernel's own thread. The result does not depend on their number.
KERNEL_PART(multiply_strassen)(myc_context* ctx, const HalvedProduct& g);

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_STRASSEN_H_
