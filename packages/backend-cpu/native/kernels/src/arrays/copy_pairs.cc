// Copies of elements of two bytes, see shape_copy.cc.
#include "arrays/copy_elements.h"

namespace mycelia::MYC_ISA {

KERNEL_PART(copy_pairs)(const myc_call* call, const void* x, void* y, const CopyPlan* plan) {
  copy_elements(call, static_cast<const uint16_t*>(x), static_cast<uint16_t*>(y), *plan);
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
