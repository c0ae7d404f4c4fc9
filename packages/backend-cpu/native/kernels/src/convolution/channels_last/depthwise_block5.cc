// Blocks of 5x5 depthwise convolutions, see depthwise_block.cc.
#include "convolution/channels_last/depthwise_block.h"

namespace mycelia::MYC_ISA {

KERNEL_PART(depthwise5)(int64_t stride, int64_t rows, BlockKernel* found) {
  if constexpr (kDepthwiseBlocks) {
    const bool two = rows == 2;
    if (stride == 1) {
      *found = two ? blocks_of<5, 1, 2, kWide>() : blocks_of<5, 1, 1, kWide>();
    } else {
      *found = two ? blocks_of<5, 2, 2, kWide>() : blocks_of<5, 2, 1, kWide>();
    }
  }
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
