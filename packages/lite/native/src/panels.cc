// Weights that lie in panels in the file: as such for the kernels that read panels, in their own order for all else.
#include "operators/common.h"
#include "plan.h"

namespace mycelia::lite {

int Planner::panels(size_t i, Type* type) {
  if (i >= node_->inputs.size() || !file_.tensors[node_->inputs[i]].panels) return -1;
  *type = {MYC_F32, file_.tensors[node_->inputs[i]].shape};
  return value_of_panels(node_->inputs[i]);
}

int Planner::value_of_panels(uint32_t index) {
  const auto [found, fresh] = panels_.emplace(index, 0);
  if (!fresh) return found->second;
  const FileTensor& tensor = file_.tensors[index];
  file_.expect(tensor.data, tensor.bytes);
  return found->second = value_of_bytes(index, {MYC_F32, {static_cast<int64_t>(tensor.bytes / sizeof(float))}});
}

int Planner::unpacked(uint32_t index) {
  const FileTensor& tensor = file_.tensors[index];
  const bool first = tensor.panels == FileTensor::kColumnsFirst;
  const int64_t columns = first ? tensor.shape[0] : tensor.shape.back(), depth = element_count(tensor.shape) / columns;
  const int64_t filled = padded(columns), panels = filled / kPanel;
  const int packed = value_of_panels(index);
  const int made = once("unpacked", packed, [&] {
    const int parts = view(packed, {panels, depth, kPanel});
    const Type turned{MYC_F32, first ? std::vector<int64_t>{panels, kPanel, depth} : std::vector<int64_t>{depth, panels, kPanel}};
    const int all = emit("transpose", {parts}, myc_transpose_attrs{first ? ints({0, 2, 1}) : ints({1, 0, 2})}, turned);
    return sliced_along(*this, view(all, {first ? filled : depth, first ? depth : filled}), first ? 0 : 1, 0, columns);
  });
  return ok() ? view(made, tensor.shape) : 0;
}

}  // namespace mycelia::lite
