// Weights that lie in panels in the file: as such for the kernels that read panels, in their own order for all else.
#include <cstring>

#include "kernels.h"
#include "operators/common.h"
#include "plan.h"
#include "schema.h"

namespace mycelia::lite {

using namespace schema;

Status read_panels(const FileNode& node, ModelFile* file, bool* found) {
  *found = node.kind == kOp_Custom && node.attributes.text(kCustom_type) == "panels";
  if (!*found) return {};
  ask_for_part("panels");
  const std::string which = "node '" + std::string(node.name) + "' (panels)";
  const TableSpan attributes = node.attributes.tables(kCustom_attr);
  const auto within = [&](const std::vector<uint32_t>& all) { return all.size() == 1 && all[0] < file->tensors.size(); };
  if (!within(node.inputs) || !within(node.outputs) || attributes.size() != 1 || attributes[0].text(kAttribute_data).size() != sizeof(int64_t))
    return broken(which + " must have one input, one output and one attribute");
  FileTensor &packed = file->tensors[node.inputs[0]], &weights = file->tensors[node.outputs[0]];
  int64_t axis;
  std::memcpy(&axis, attributes[0].text(kAttribute_data).data(), sizeof(axis));
  const int64_t rank = static_cast<int64_t>(weights.shape.size()), count = element_count(weights.shape);
  if (!packed.data || packed.panels || packed.half || packed.scales || weights.data || packed.dtype != kDataType_FLOAT32 || weights.dtype != kDataType_FLOAT32)
    return broken(which + " must make weights of float32 of a constant");
  if (rank < 2 || count < 1 || (axis != 0 && (axis != rank - 1 || rank != 2))) return broken(which + ": its weights cannot lie in panels along axis " + std::to_string(axis));
  const int64_t columns = weights.shape[axis], depth = count / columns;
  if (element_count({depth, (columns + kPanel - 1) / kPanel, kPanel}) * static_cast<int64_t>(sizeof(float)) != static_cast<int64_t>(packed.bytes))
    return broken(which + ": " + std::to_string(packed.bytes) + " bytes are not the panels of its weights");
  weights.data = packed.data;
  weights.bytes = packed.bytes;
  weights.panels = axis ? FileTensor::kColumnsLast : FileTensor::kColumnsFirst;
  packed.data = nullptr;  // nobody else may read it
  packed.bytes = 0;
  return {};
}

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
