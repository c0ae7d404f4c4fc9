// Picks the variant of the kernels that the processor can run.  Compiled once, for the compiler's plain target.
#include <stdint.h>
#include <string.h>

#include "mycelia/cpu.h"
#include "mycelia/isa.h"

extern "C" {
#ifdef MYC_WITH_GENERIC
const myc_kernel* myc_cpu_kernels_of_generic(uint32_t* count);
double myc_cpu_multiply_adds_of_generic(int64_t rounds);
#endif
#ifdef MYC_WITH_AVX2
const myc_kernel* myc_cpu_kernels_of_avx2(uint32_t* count);
double myc_cpu_multiply_adds_of_avx2(int64_t rounds);
#endif
#ifdef MYC_WITH_AVX512
const myc_kernel* myc_cpu_kernels_of_avx512(uint32_t* count);
double myc_cpu_multiply_adds_of_avx512(int64_t rounds);
#endif
#ifdef MYC_WITH_NEON
const myc_kernel* myc_cpu_kernels_of_neon(uint32_t* count);
double myc_cpu_multiply_adds_of_neon(int64_t rounds);
#endif
}

namespace {

struct Variant {
  const char* isa;
  bool (*runs)();
  const myc_kernel* (*kernels)(uint32_t* count);
  double (*multiply_adds)(int64_t rounds);
};

// Fastest first.
const Variant variants[] = {
#ifdef MYC_WITH_AVX512
    {"avx512", mycelia::has_avx512, myc_cpu_kernels_of_avx512, myc_cpu_multiply_adds_of_avx512},
#endif
#ifdef MYC_WITH_AVX2
    {"avx2", mycelia::has_avx2, myc_cpu_kernels_of_avx2, myc_cpu_multiply_adds_of_avx2},
#endif
#ifdef MYC_WITH_NEON
    {"neon", mycelia::has_any, myc_cpu_kernels_of_neon, myc_cpu_multiply_adds_of_neon},
#endif
#ifdef MYC_WITH_GENERIC
    {"generic", mycelia::has_any, myc_cpu_kernels_of_generic, myc_cpu_multiply_adds_of_generic},
#endif
};

// The fastest variant, or the one called `isa`, that this processor runs; NULL if there is none.
const Variant* find(const char* isa) {
  const bool any = isa == nullptr || *isa == '\0';
  for (const Variant& v : variants) {
    if ((any || strcmp(isa, v.isa) == 0) && v.runs()) return &v;
  }
  return nullptr;
}

}  // namespace

extern "C" const myc_kernel* myc_cpu_kernels(const char* isa, uint32_t* count, const char** chosen) {
  const Variant* v = find(isa);
  if (v == nullptr) return nullptr;
  *chosen = v->isa;
  return v->kernels(count);
}

extern "C" double myc_cpu_multiply_adds(const char* isa, int64_t rounds) {
  const Variant* v = find(isa);
  return v == nullptr ? 0 : v->multiply_adds(rounds);
}
