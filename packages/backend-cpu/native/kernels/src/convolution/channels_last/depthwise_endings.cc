// Walks of two rows that know how sums end, see depthwise_walk.h.
#include "convolution/channels_last/depthwise_walk.h"

namespace mycelia::MYC_ISA {

KERNEL_PART(depthwise_endings)(const DepthwiseCall& call, Walk* found) {
  *found = call.residual    ? walk<2, true, Ending::added>
           : call.l.bounded ? walk<2, true, Ending::bounded>
                            : walk<2, true, Ending::plain>;
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
