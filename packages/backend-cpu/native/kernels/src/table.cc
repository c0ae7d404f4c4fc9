// The kernels of one instruction set as an array; compiled once per variant like every kernel source.
#include "mycelia/kernels.h"

#define KERNEL_ENTRY(op, suffix, dtypes, flags) KERNEL_FN(op, suffix);
#include "kernels.def"
#undef KERNEL_ENTRY

namespace {
const myc_kernel kernels[] = {
#define KERNEL_ENTRY(op, suffix, dtypes, flags) {#op, dtypes, MYC_KERNEL_NAME(op, suffix), flags},
#include "kernels.def"
#undef KERNEL_ENTRY
};
}  // namespace

extern "C" const myc_kernel* MYC_PASTE(myc_cpu_kernels_of_, MYC_ISA, , , )(uint32_t* count) {
  *count = sizeof(kernels) / sizeof(kernels[0]);
  return kernels;
}
