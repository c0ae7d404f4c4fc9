// What the loops of depthwise convolutions share: bounds of vectors, and whether there are blocks.
#ifndef MYCELIA_CONV_LAST_DEPTHWISE_LANES_H_
#define MYCELIA_CONV_LAST_DEPTHWISE_LANES_H_

#include "convolution/channels_last/depthwise.h"
#include "simd/activations.h"

namespace mycelia::MYC_ISA {

// Whether there are loops for blocks of positions: with the 16 short registers of SSE2 their sums do not fit.
#if defined(__SSE2__) && !defined(__AVX2__)
constexpr bool kDepthwiseBlocks = false;
#else
constexpr bool kDepthwiseBlocks = true;
#endif

// The bounds of results, in registers.
struct LaneBounds {
  f32v low, high;

  MYC_INLINE explicit LaneBounds(const DepthwiseLanes& l) : low(splat(l.low)), high(splat(l.high)) {}
  MYC_INLINE f32v operator()(f32v x) const { return clip(x, low, high); }
};

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_CONV_LAST_DEPTHWISE_LANES_H_
