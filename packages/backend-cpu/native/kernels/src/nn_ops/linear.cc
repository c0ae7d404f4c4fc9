// Kernels of fully connected layers: packing of weights; products are planned in linear_plan.cc.
#include "nn_ops/linear.h"

#include "gemm/pack.h"
#include "gemm/rows.h"
#include "gemm/strassen.h"

namespace mycelia::MYC_ISA {

KERNEL_FN(linear_pack, f32) {
  const auto& a = attrs<myc_linear_pack_attrs>(call);
  const myc_tensor& w = input(call);
  const bool turned = a.transpose_w != 0;
  if (a.algorithm == kStrassen) {
    const int64_t rows = w.shape[0], length = w.shape[1];
    const float* data = in<float>(call);
    return turned ? MYC_PART(pack_strassen)(call->ctx, {data, 1, length}, length, rows, out<float>(call))
                  : MYC_PART(pack_strassen)(call->ctx, {data, length, 1}, rows, length, out<float>(call));
  }
  const int64_t columns = w.shape[turned ? 0 : 1], depth = w.shape[turned ? 1 : 0];
  const float* from = in<float>(call);
  float* to = out<float>(call);
  parallel_for(call, ceil_div(columns, kPackedColumns), kMinParallelWork / (depth * kPackedColumns * 8 + 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t panel = begin; panel < end; ++panel) {
                   const int64_t j = panel * kPackedColumns, count = min(kPackedColumns, columns - j);
                   float* at = to + j * depth;
                   if (turned) {
                     pack_transposed<kPackedColumns, kPackedColumns>(from + j * depth, depth, count, depth, at);
                   } else {
                     pack_rows<kPackedColumns, kPackedColumns>(from + j, columns, count, depth, at);
                   }
                 }
               });
  return MYC_OK;
}

KERNEL_FN(linear, f32) { return mycelia::linear(call, kTileLoops, MYC_PART(multiply_strassen)); }

}  // namespace mycelia::MYC_ISA
