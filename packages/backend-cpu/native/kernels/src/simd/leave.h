// Leaving vectors for code of the compiler's plain target.
#ifndef MYCELIA_SIMD_LEAVE_H_
#define MYCELIA_SIMD_LEAVE_H_

#include "simd/vec.h"

namespace mycelia::MYC_ISA {

// Code that knows half of a register alone, and follows this, would wait for the other half.
MYC_INLINE void leave_vectors() {
#if MYC_VECTOR_BYTES >= 32
  _mm256_zeroupper();
#endif
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_SIMD_LEAVE_H_
