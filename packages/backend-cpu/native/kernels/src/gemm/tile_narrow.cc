// Register tiles of one vector that a program may leave out, see rows.h.
#include "gemm/rows.h"

namespace mycelia::MYC_ISA {

KERNEL_PART(tile_narrow)(int64_t rows, RowsMicro* found) {
  *found = rows_micro_for<1, true>(rows);
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
