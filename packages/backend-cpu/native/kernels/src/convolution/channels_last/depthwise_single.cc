// Blocks of one row of 3x3 depthwise convolutions with stride 2, see depthwise_block.cc.
#include "convolution/channels_last/depthwise_block.h"

namespace mycelia::MYC_ISA {

KERNEL_PART(depthwise_single)(BlockKernel* found) {
  if constexpr (kDepthwiseBlocks) {
    found->inside = depthwise_loop<3, 2, 1, kWide, 0, 0>;
    found->left = depthwise_loop<3, 2, 1, kWide, 1, 0>;
  }
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
