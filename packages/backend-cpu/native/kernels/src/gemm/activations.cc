// Activations behind a product, those beyond relu6.
#include "gemm/activations.h"

#include "simd/leave.h"

namespace mycelia::MYC_ISA {

KERNEL_PART(activations)(float* y, int64_t count, Activation f) {
  map(y, y, count, [=](f32v x) { return activate(x, f); });
  leave_vectors();
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
