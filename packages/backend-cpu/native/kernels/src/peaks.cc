// Multiply-adds with everything in registers: the rate that no kernel can exceed.
#include "simd/vec.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int kChains = 12;  // more than latency times ports of the processors there are, fewer than registers

double multiply_adds(int64_t rounds) {
  volatile float factor = 0.999999f, term = 1e-6f;  // not known to the compiler
  const f32v a = splat((float)factor), b = splat((float)term);
  f32v chain[kChains];
  for (int i = 0; i < kChains; ++i) chain[i] = splat((float)i);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chain[i] = chain[i] * a + b;
  }
  f32v sum = chain[0];
  for (int i = 1; i < kChains; ++i) sum = sum + chain[i];
  volatile float kept = sum[0];
  (void)kept;
  return (double)rounds * kChains * kLanes * 2;
}

}  // namespace
}  // namespace mycelia::MYC_ISA

extern "C" double MYC_PASTE(myc_cpu_multiply_adds_of_, MYC_ISA, , , )(int64_t rounds) {
  return mycelia::MYC_ISA::multiply_adds(rounds);
}
