// Fully connected layers as they are planned, for the kernels of each instruction set.
#ifndef MYCELIA_NN_OPS_LINEAR_H_
#define MYCELIA_NN_OPS_LINEAR_H_

#include "gemm/row_types.h"

namespace mycelia {

constexpr int64_t kStrassen = 1;  // value of the attribute `algorithm` of linear and linear_pack

using MultiplyStrassen = int32_t (*)(myc_context* ctx, const Layer& g);

// The op `linear`, by these loops and this part of the kernels.  linear_plan.cc
int32_t linear(const myc_call* call, const TileLoops& loops, MultiplyStrassen strassen);

}  // namespace mycelia

#endif  // MYCELIA_NN_OPS_LINEAR_H_
