// Integers with scales that stand for float32: weights, and what a border means.
#include <algorithm>

#include "kernels.h"
#include "plan.h"
#include "schema.h"

namespace mycelia::lite {

using namespace schema;

std::shared_ptr<Scales> read_scales(const Table& table, int32_t dtype) {
  const TableSpan params = table.tables(kTensor_quantParams);
  const int32_t compressed = table.get<int32_t>(kTensor_weightQuantCompressType);
  const bool packed = compressed == kWeightQuantCompressType_BITPACKING;
  const bool plain = (packed || compressed == 0) && table.get<uint8_t>(kTensor_enableHuffmanCode) == 0 && !table.span<float>(kTensor_quantClusters).size;
  if (!plain || !params.size() || (dtype != kDataType_INT8 && dtype != kDataType_UINT8 && dtype != kDataType_INT16)) return nullptr;
  ask_for_part("scales");
  const int32_t whole = dtype == kDataType_INT16 ? 16 : 8, bits = packed ? params[0].get<int32_t>(kQuantParam_numBits, 8) : 0;
  if (packed && (dtype == kDataType_UINT8 || bits < whole - 7 || bits >= whole)) return nullptr;
  const auto found = std::make_shared<Scales>();
  found->bits = bits;
  for (uint32_t i = 0; i < params.size(); ++i) {
    const Table param = params[i];
    if (packed && param.get<int32_t>(kQuantParam_numBits, 8) != bits) return nullptr;
    const double scale = param.get<double>(kQuantParam_scale, 1);
    const float change = param.get<float>(kQuantParam_varCorr, 1), shift = param.get<float>(kQuantParam_meanCorr);
    found->scale.push_back(static_cast<float>(scale * (change < 0 || change > 10 ? 1 : change)));  // others are as if there were none
    found->zero.push_back(static_cast<float>(param.get<int32_t>(kQuantParam_zeroPoint)));
    found->shift.push_back(shift);
  }
  return found;
}

const char* const kUnreadScales = "in a way that this runtime does not compute yet";

namespace {

// Which axis the scales of weights belong to: MindSpore Lite has the one of the results of convolutions and products. Of a
// transposed convolution its versions have different ones: -1.
int axis_of_scales(const FileNode& node, size_t place, int rank) {
  if (node.kind == kOp_Conv2dTransposeFusion) return -1;
  if (node.kind != kOp_MatMulFusion) return 0;
  const bool transposed = node.attributes.get<uint8_t>(place ? kMatMulFusion_transpose_b : kMatMulFusion_transpose_a);
  return transposed == (place > 0) ? rank - 2 : rank - 1;
}

}  // namespace

Status find_scales(ModelFile* file) {
  const auto refuse = [&](uint32_t i, const std::string& why) {
    return Status(kNotSupported, "tensor " + std::to_string(i) + " '" + std::string(file->tensors[i].name) + "' is quantized, " + why);
  };
  for (const FileGraph& graph : file->graphs)
    for (const uint32_t i : graph.outputs)
      if (file->tensors[i].scales) return refuse(i, "but is an output");
  for (const FileNode& node : file->nodes) {
    for (size_t place = 0; place < node.inputs.size(); ++place) {
      const uint32_t i = node.inputs[place];
      const std::vector<int64_t>& shape = file->tensors[i].shape;
      Scales* scales = file->tensors[i].scales.get();
      if (!scales) continue;
      const std::string which = "node '" + std::string(node.name) + "' (" + name_of_operator(node.kind) + ")";
      if (!node.widens && !node.of_integers) return refuse(i, "which " + which + " does not compute yet");
      if (scales->scale.size() == 1) continue;
      const int axis = axis_of_scales(node, place, static_cast<int>(shape.size()));
      if (axis < 0 || axis >= static_cast<int>(shape.size()) || shape[axis] * scales->groups != static_cast<int64_t>(scales->scale.size()))
        return refuse(i, "but its " + std::to_string(scales->scale.size()) + " scales do not fit " + which);
      if (scales->axis >= 0 && scales->axis != axis) return refuse(i, "but the nodes that read it have its scales along different axes");
      scales->axis = axis;
    }
  }
  return {};
}

std::vector<float> groups_first(const std::vector<float>& numbers, int64_t groups) {
  const int64_t channels = static_cast<int64_t>(numbers.size()) / groups;
  std::vector<float> turned(numbers.size());
  for (int64_t j = 0; j < channels; ++j)
    for (int64_t g = 0; g < groups; ++g) turned[g * channels + j] = numbers[j * groups + g];
  return turned;
}

// `value`, integers in float32, as the numbers that they stand for.
int Planner::scaled(int value, const Scales& scales, const Type& wide) {
  Type type{MYC_F32, std::vector<int64_t>(scales.axis < 0 ? 0 : wide.shape.size(), 1)}, parts = wide;
  if (scales.axis >= 0) type.shape[scales.axis] = wide.shape[scales.axis];
  if (scales.groups > 1) {  // of a matrix
    const int64_t channels = wide.shape[scales.axis], depth = wide.shape[1 - scales.axis], each = depth / scales.groups;
    parts.shape = scales.axis ? std::vector<int64_t>{scales.groups, each, channels} : std::vector<int64_t>{channels, scales.groups, each};
    type.shape = scales.axis ? std::vector<int64_t>{scales.groups, 1, channels} : std::vector<int64_t>{channels, scales.groups, 1};
    value = view(value, parts.shape);
  }
  const auto with = [&](const char* op, const std::vector<float>& numbers, float nothing) {
    if (std::all_of(numbers.begin(), numbers.end(), [&](float n) { return n == nothing; })) return;
    const std::vector<float> turned = scales.groups > 1 && scales.axis ? groups_first(numbers, scales.groups) : numbers;
    value = emit(op, {value, made_constant(type, turned.data(), true)}, parts);
  };
  with("sub", scales.zero, 0);
  with("mul", scales.scale, 1);
  with("add", scales.shift, 0);
  return scales.groups > 1 ? view(value, wide.shape) : value;
}

}  // namespace mycelia::lite
