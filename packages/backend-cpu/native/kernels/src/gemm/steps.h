// Inner loops written by hand, for the instruction sets that have them: MYC_STEPS.
#ifndef MYCELIA_GEMM_STEPS_H_
#define MYCELIA_GEMM_STEPS_H_

#if defined(__x86_64__) && defined(__AVX2__) && !defined(__AVX512F__)
#include "gemm/steps_avx2.h"
#define MYC_STEPS 1

namespace mycelia::MYC_ISA {

// Whether there is one for a block of this size.
constexpr bool has_steps(int rows, int vectors) { return vectors == 2 && rows >= 4 && rows <= 6; }

}  // namespace mycelia::MYC_ISA

#else
#define MYC_STEPS 0
#endif

#endif  // MYCELIA_GEMM_STEPS_H_
