// The loops of depthwise convolutions, as those who plan them call them.
#include "convolution/channels_last/depthwise_lanes.h"

#include "gemm/activations.h"
#include "simd/leave.h"

namespace mycelia::MYC_ISA {
namespace {

bool all_finite(const float* weights, int64_t count) {
  const bool finite = depthwise_finite(weights, count);
  leave_vectors();
  return finite;
}

void pixel(const DepthwiseLanes& l, int64_t panel, const DepthwiseTap* taps, int64_t count, const float* residual, float* y) {
  depthwise_pixel(l, panel, taps, count, residual, y);
  leave_vectors();
}

bool slide(const DepthwiseCall& call) {
  const bool done = MYC_PART(depthwise_slide)(call) == MYC_OK;
  leave_vectors();
  return done;
}

int64_t block(const DepthwiseCall& call, int64_t p) {
  const int64_t next = depthwise_block(call, p);
  leave_vectors();
  return next;
}

constexpr DepthwiseLoops kLoops = {all_finite, pixel, slide, kDepthwiseBlocks ? block : nullptr, MYC_PART(activations)};

}  // namespace

KERNEL_PART(depthwise_loops)(const DepthwiseLoops** found) {
  *found = &kLoops;
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
