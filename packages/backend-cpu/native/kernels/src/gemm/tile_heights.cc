// Register tiles that a program may leave out: rows.h and strip_avx512.h tell what stands in for them.
#include "gemm/rows.h"

namespace mycelia::MYC_ISA {

KERNEL_PART(tile_micro)(int64_t rows, int64_t vectors, RowsMicro* found) {
  *found = vectors == 2 ? rows_micro_for<2, false>(rows) : rows_micro_for<1, false>(rows);
  return MYC_OK;
}

#if MYC_STRIPS && !MYC_STEPS
KERNEL_PART(tile_odd)(int64_t rows, Strip& x) {
  run_odd_whole_strip(rows, x);
  return MYC_OK;
}

KERNEL_PART(tile_quarters)(int64_t rows, Strip& x) {
  run_three_quarter_strip(rows, x);
  return MYC_OK;
}
#endif

}  // namespace mycelia::MYC_ISA
