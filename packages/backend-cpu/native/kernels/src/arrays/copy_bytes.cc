// Copies of single bytes, see shape_copy.cc.
#include "arrays/copy_elements.h"

namespace mycelia::MYC_ISA {

KERNEL_PART(copy_bytes)(const myc_call* call, const void* x, void* y, const CopyPlan* plan) {
  copy_elements(call, static_cast<const uint8_t*>(x), static_cast<uint8_t*>(y), *plan);
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
