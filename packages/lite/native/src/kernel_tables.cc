// The tables of kernels; the only ones that name them, so that a program which has other tables links no other kernels.
#include "kernel_tables.h"

#include "mycelia/isa.h"

// The functions of every variant; generic ones have plain names.
#define LITE_KERNEL(op, suffix, dtypes)                       \
  int32_t myc_cpu_##op##_##suffix(const myc_call*);           \
  int32_t myc_cpu_##op##_##suffix##_avx2(const myc_call*);    \
  int32_t myc_cpu_##op##_##suffix##_avx512(const myc_call*);  \
  int32_t myc_cpu_##op##_##suffix##_neon(const myc_call*);
#define LITE_KERNEL_WIDE LITE_KERNEL
#ifdef LITE_SHARED // a cropped library for several instruction sets
#define LITE_KERNEL_SHARED LITE_KERNEL_PLAIN
#define LITE_KERNEL_WIDE_SHARED LITE_KERNEL_PLAIN
#else
#define LITE_KERNEL_SHARED LITE_KERNEL
#define LITE_KERNEL_WIDE_SHARED LITE_KERNEL_WIDE
#endif
#define LITE_KERNEL_PLAIN(op, suffix, dtypes) int32_t myc_cpu_##op##_##suffix(const myc_call*);
extern "C" {
#include "kernels.def"
}
#undef LITE_KERNEL
#undef LITE_KERNEL_WIDE
#undef LITE_KERNEL_PLAIN

namespace mycelia::lite {

#define LITE_OWN(op, suffix, dtypes) int32_t own_##op##_##suffix(const myc_call*);
#include "own/own.def"
#undef LITE_OWN

namespace {

constexpr myc_kernel kLast = {nullptr, nullptr, nullptr, 0};

#ifdef MYC_WITH_GENERIC
#define LITE_KERNEL(op, suffix, dtypes) {#op, dtypes, myc_cpu_##op##_##suffix, 0},
#else
#define LITE_KERNEL(op, suffix, dtypes)
#endif
#define LITE_KERNEL_WIDE LITE_KERNEL
#define LITE_KERNEL_PLAIN(op, suffix, dtypes)
const myc_kernel kGeneric[] = {
#include "kernels.def"
    kLast};
#undef LITE_KERNEL
#undef LITE_KERNEL_PLAIN

#define LITE_KERNEL(op, suffix, dtypes)
#define LITE_KERNEL_PLAIN(op, suffix, dtypes) {#op, dtypes, myc_cpu_##op##_##suffix, 0},
#define LITE_OWN(op, suffix, dtypes) {#op, dtypes, own_##op##_##suffix, 0},
const myc_kernel kPlain[] = {
#include "kernels.def"
#include "own/own.def"
    kLast};
#undef LITE_OWN
#undef LITE_KERNEL
#undef LITE_KERNEL_PLAIN
#define LITE_KERNEL_PLAIN(op, suffix, dtypes)

#ifdef MYC_WITH_NEON
#define LITE_KERNEL(op, suffix, dtypes) {#op, dtypes, myc_cpu_##op##_##suffix##_neon, 0},
const myc_kernel kNeon[] = {
#include "kernels.def"
    kLast};
#undef LITE_KERNEL
#endif
#ifdef MYC_WITH_AVX2
#define LITE_KERNEL(op, suffix, dtypes) {#op, dtypes, myc_cpu_##op##_##suffix##_avx2, 0},
const myc_kernel kAvx2[] = {
#include "kernels.def"
    kLast};
#undef LITE_KERNEL
#endif
#undef LITE_KERNEL_WIDE
#ifdef MYC_WITH_AVX512
#ifdef MYC_WITH_AVX2
#define LITE_KERNEL(op, suffix, dtypes)
#else  // kernels that gain nothing from AVX-512 are those of AVX2, whose own table a cropped library lacks
#define LITE_KERNEL(op, suffix, dtypes) {#op, dtypes, myc_cpu_##op##_##suffix##_avx2, 0},
#endif
#define LITE_KERNEL_WIDE(op, suffix, dtypes) {#op, dtypes, myc_cpu_##op##_##suffix##_avx512, 0},
const myc_kernel kAvx512[] = {
#include "kernels.def"
    kLast};
#undef LITE_KERNEL
#undef LITE_KERNEL_WIDE
#endif

}  // namespace

const KernelTable kKernelTables[] = {
#ifdef MYC_WITH_AVX512
    {"avx512", has_avx512, kAvx512},
#endif
#ifdef MYC_WITH_AVX2
    {"avx2", has_avx2, kAvx2},
#endif
#ifdef MYC_WITH_NEON
    {"neon", has_any, kNeon},
#endif
#ifdef MYC_WITH_GENERIC
    {"generic", has_any, kGeneric},
#endif
    {"", has_any, kPlain},
    {nullptr, nullptr, nullptr},
};

}  // namespace mycelia::lite
