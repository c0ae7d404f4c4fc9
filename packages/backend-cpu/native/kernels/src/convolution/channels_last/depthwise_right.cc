// Blocks of 3x3 depthwise convolutions with stride 2 that reach over the right end of an image, see depthwise_block.cc.
#include "convolution/channels_last/depthwise_block.h"

namespace mycelia::MYC_ISA {

KERNEL_PART(depthwise_right)(int64_t rows, BlockKernel* found) {
  if constexpr (kDepthwiseBlocks) {
    const bool two = rows == 2;
    found->right = two ? depthwise_loop<3, 2, 2, kWide, 0, 1> : depthwise_loop<3, 2, 1, kWide, 0, 1>;
    found->both = two ? depthwise_loop<3, 2, 2, kWide, 1, 1> : depthwise_loop<3, 2, 1, kWide, 1, 1>;
  }
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
