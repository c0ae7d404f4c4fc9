// The kernels of one instruction set as an array; compiled once per variant like every kernel source.
#include "mycelia/kernels.h"
#include "narrow/narrow.h"

#define KERNEL_ENTRY(op, suffix, dtypes, flags) KERNEL_FN(op, suffix);
#define NARROW_ENTRY(op, suffix, dtypes, flags)
#include "kernels.def"
#undef KERNEL_ENTRY
#undef NARROW_ENTRY

namespace mycelia::MYC_ISA {
namespace {

#define KERNEL_ENTRY(op, suffix, dtypes, flags)
#define NARROW_ENTRY(op, suffix, dtypes, flags)       \
  struct Name_##op##_##suffix {                       \
    static constexpr const char* text = #op;          \
  };
#include "kernels.def"
#undef KERNEL_ENTRY
#undef NARROW_ENTRY

const myc_kernel kernels[] = {
#define KERNEL_ENTRY(op, suffix, dtypes, flags) {#op, dtypes, MYC_KERNEL_NAME(op, suffix), flags},
#define NARROW_ENTRY(op, suffix, dtypes, flags) \
  {#op, dtypes, narrowed<Name_##op##_##suffix, MYC_KERNEL_NAME(op, suffix)>, (flags) | narrow_flags(#op)},
#include "kernels.def"
#undef KERNEL_ENTRY
#undef NARROW_ENTRY
};

}  // namespace
}  // namespace mycelia::MYC_ISA

extern "C" const myc_kernel* MYC_PASTE(myc_cpu_kernels_of_, MYC_ISA, , , )(uint32_t* count) {
  using namespace mycelia::MYC_ISA;
  *count = sizeof(kernels) / sizeof(kernels[0]);
  return kernels;
}
