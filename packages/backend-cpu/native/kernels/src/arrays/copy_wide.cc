// Copies of elements of 8 and 16 bytes, see shape_copy.cc.
#include "arrays/copy_elements.h"

namespace mycelia::MYC_ISA {

KERNEL_PART(copy_wide)(const myc_call* call, const void* x, void* y, int64_t bytes, const CopyPlan* plan) {
  if (bytes == 8) {
    copy_elements(call, static_cast<const uint64_t*>(x), static_cast<uint64_t*>(y), *plan);
  } else {
    copy_elements(call, static_cast<const u128*>(x), static_cast<u128*>(y), *plan);
  }
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
