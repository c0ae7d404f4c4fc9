#include "kernels.h"

#include <algorithm>
#include <cstdlib>

#include "mycelia/isa.h"
#include "own/own.h"

// The functions of every variant; generic ones have plain names.
#define LITE_KERNEL(op, suffix, dtypes)                       \
  int32_t myc_cpu_##op##_##suffix(const myc_call*);           \
  int32_t myc_cpu_##op##_##suffix##_avx2(const myc_call*);    \
  int32_t myc_cpu_##op##_##suffix##_avx512(const myc_call*);  \
  int32_t myc_cpu_##op##_##suffix##_neon(const myc_call*);
#define LITE_KERNEL_WIDE LITE_KERNEL
#define LITE_KERNEL_PLAIN(op, suffix, dtypes) int32_t myc_cpu_##op##_##suffix(const myc_call*);
extern "C" {
#include "kernels.def"
}
#undef LITE_KERNEL
#undef LITE_KERNEL_PLAIN

namespace mycelia::lite {

namespace {

struct Variant {
  const char* isa;
  bool (*runs)();
  const myc_kernel* kernels;
  size_t count;
};

#ifdef MYC_WITH_GENERIC
#define LITE_KERNEL(op, suffix, dtypes) {#op, dtypes, myc_cpu_##op##_##suffix, 0},
#define LITE_KERNEL_PLAIN LITE_KERNEL
const myc_kernel kGeneric[] = {
#include "kernels.def"
};
#undef LITE_KERNEL
#undef LITE_KERNEL_PLAIN
#endif
#define LITE_KERNEL_PLAIN(op, suffix, dtypes)
#ifdef MYC_WITH_NEON
#define LITE_KERNEL(op, suffix, dtypes) {#op, dtypes, myc_cpu_##op##_##suffix##_neon, 0},
const myc_kernel kNeon[] = {
#include "kernels.def"
};
#undef LITE_KERNEL
#endif
#ifdef MYC_WITH_AVX2
#define LITE_KERNEL(op, suffix, dtypes) {#op, dtypes, myc_cpu_##op##_##suffix##_avx2, 0},
const myc_kernel kAvx2[] = {
#include "kernels.def"
};
#undef LITE_KERNEL
#endif
#undef LITE_KERNEL_WIDE
#ifdef MYC_WITH_AVX512
#define LITE_KERNEL(op, suffix, dtypes)
#define LITE_KERNEL_WIDE(op, suffix, dtypes) {#op, dtypes, myc_cpu_##op##_##suffix##_avx512, 0},
const myc_kernel kAvx512[] = {
#include "kernels.def"
};
#undef LITE_KERNEL
#undef LITE_KERNEL_WIDE
#endif

#define LITE_OWN(op, suffix, dtypes) {#op, dtypes, own_##op##_##suffix, 0},
const myc_kernel kOwn[] = {
#include "own/own.def"
};
#undef LITE_OWN

template <size_t N>
constexpr Variant variant(const char* isa, bool (*runs)(), const myc_kernel (&kernels)[N]) {
  return {isa, runs, kernels, N};
}

// Fastest first; what a variant does not have is looked for in the next.
const Variant kVariants[] = {
#ifdef MYC_WITH_AVX512
    variant("avx512", has_avx512, kAvx512),
#endif
#ifdef MYC_WITH_AVX2
    variant("avx2", has_avx2, kAvx2),
#endif
#ifdef MYC_WITH_NEON
    variant("neon", has_any, kNeon),
#endif
#ifdef MYC_WITH_GENERIC
    variant("generic", has_any, kGeneric),
#endif
};

bool takes(const std::string& wanted, const std::vector<int32_t>& dtypes) {
  if (wanted == "*") return true;
  std::vector<std::string> each;
  for (size_t begin = 0; begin <= wanted.size();) {
    const size_t end = std::min(wanted.find(',', begin), wanted.size());
    each.push_back(wanted.substr(begin, end - begin));
    begin = end + 1;
  }
  for (size_t i = 0; i < dtypes.size(); ++i) {
    if (dtypes[i] < 0) continue;
    if (each.size() > 1 && i >= each.size()) return false;
    if (each[each.size() == 1 ? 0 : i] != dtype_name(dtypes[i])) return false;
  }
  return true;
}

}  // namespace

const char* dtype_name(int32_t dtype) {
  static const char* const names[] = {"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64", "c64", "c128"};
  return names[dtype];
}

Kernels::Kernels() {
  const char* wanted = std::getenv("MYCELIA_ISA");
  for (const Variant& variant : kVariants) {
    if (!variant.runs() || (!isa_ && wanted && *wanted && wanted != std::string(variant.isa))) continue;
    if (!isa_) isa_ = variant.isa;
    for (size_t i = 0; i < variant.count; ++i) by_op_[variant.kernels[i].op].push_back(variant.kernels + i);
  }
  for (const myc_kernel& kernel : kOwn) by_op_[kernel.op].push_back(&kernel);
}

const Kernels& kernels() {
  static const Kernels found;
  return found;
}

myc_kernel_fn Kernels::find(const std::string& op, const std::vector<int32_t>& dtypes) const {
  const auto found = by_op_.find(op);
  if (found == by_op_.end()) return nullptr;
  for (const myc_kernel* kernel : found->second)
    if (takes(kernel->dtypes, dtypes)) return kernel->fn;
  return nullptr;
}

}  // namespace mycelia::lite
