// Walks for channels that do not fill a vector, see depthwise_walk.h.
#include "convolution/channels_last/depthwise_walk.h"

namespace mycelia::MYC_ISA {

KERNEL_PART(depthwise_rest)(int64_t rows, Walk* found) {
  *found = rows == 2 ? walk<2, false, Ending::any> : walk<1, false, Ending::any>;
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
