// Narrow blocks of 3x3 depthwise convolutions with stride 2, see depthwise_block.cc.
#include "convolution/channels_last/depthwise_block.h"

namespace mycelia::MYC_ISA {

KERNEL_PART(depthwise_narrow)(int64_t rows, BlockKernel* found) {
  if constexpr (kDepthwiseBlocks) *found = rows == 2 ? blocks_of<3, 2, 2, kNarrow>() : blocks_of<3, 2, 1, kNarrow>();
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
