// Custom nodes "low_bit": weights as fields of few bits, with scales of one or two bytes less than a QuantParam has, and of runs of a
// channel's weights. Like a QuantParam's they are integers with Scales from then on, and the node is no node of ours.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels.h"
#include "mycelia/cpu.h"
#include "operators/common.h"
#include "operators/windows.h"
#include "plan.h"
#include "schema.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kRun = 32;  // weights of a channel that lie together in a pack; groups are whole ones

float half(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023u;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(fraction), -24), sign ? -1.0f : 1.0f);
  const uint32_t wide = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

// The elements of a constant of float16 or float32; none for others.
std::vector<float> floats(const FileTensor& tensor) {
  const int64_t count = element_count(tensor.shape);
  std::vector<float> found;
  if (!tensor.data || tensor.scales || (tensor.dtype != kDataType_FLOAT16 && tensor.dtype != kDataType_FLOAT32)) return found;
  for (int64_t i = 0; i < count; ++i) {
    if (tensor.dtype == kDataType_FLOAT32) {
      float value;
      std::memcpy(&value, tensor.data + 4 * i, sizeof(value));
      found.push_back(value);
    } else {
      uint16_t value;
      std::memcpy(&value, tensor.data + 2 * i, sizeof(value));
      found.push_back(half(value));
    }
  }
  return found;
}

int64_t number(const Table& node, const char* name) {
  const TableSpan attributes = node.tables(kCustom_attr);
  int64_t found = -1;
  for (uint32_t i = 0; i < attributes.size(); ++i)
    if (attributes[i].text(kAttribute_name) == name && attributes[i].text(kAttribute_data).size() == sizeof(found))
      std::memcpy(&found, attributes[i].text(kAttribute_data).data(), sizeof(found));
  return found;
}

}  // namespace

// Inputs: the fields, scales [channels, groups], shifts alike or none. Attributes: bits, axis (of the channels), group (0: one of all).
Status read_low_bit(const FileNode& node, ModelFile* file, bool* found) {
  *found = node.kind == kOp_Custom && node.attributes.text(kCustom_type) == "low_bit";
  if (!*found) return {};
  ask_for_part("scales");
  const std::string which = message({"node '", node.name, "' (low_bit)"});
  const auto within = [&](const std::vector<uint32_t>& all) { return std::all_of(all.begin(), all.end(), [&](uint32_t i) { return i < file->tensors.size(); }); };
  if (!within(node.inputs) || !within(node.outputs) || node.inputs.size() < 2 || node.inputs.size() > 3 || node.outputs.size() != 1)
    return broken(which + " must have two or three inputs and one output");
  FileTensor &fields = file->tensors[node.inputs[0]], &weights = file->tensors[node.outputs[0]];
  const int64_t bits = number(node.attributes, "bits"), axis = number(node.attributes, "axis"), group = number(node.attributes, "group");
  const int64_t rank = static_cast<int64_t>(weights.shape.size()), count = element_count(weights.shape);
  if (!fields.data || fields.scales || fields.dtype != kDataType_UINT8 || weights.data || weights.dtype != kDataType_FLOAT32)
    return broken(which + " must make weights of float32 of constant fields");
  if (bits < 1 || bits > 8 || rank < 2 || count < 1 || (axis != 0 && axis != rank - 1) || group < 0 || group % kRun || (group && rank != 2))
    return broken(message({which, ": ", bits, " bits, axis ", axis, " and groups of ", group, " do not fit its weights"}));
  const int64_t channels = weights.shape[axis], depth = count / channels, groups = group ? depth / group : 1;
  const auto packed = static_cast<uint64_t>((count * bits + 7) / 8);
  const uint8_t* data = fields.data;
  if (const int64_t lanes = number(node.attributes, "lanes"); lanes > 0 && !(group && depth % group)) {
    file->decoded.emplace_back(static_cast<size_t>(packed));
    uint8_t* const made = file->decoded.back().data();
    if (!made) return {kMemory, message({"no memory for ", packed, " bytes"})};
    if (!decode_fields(data, fields.bytes, lanes, static_cast<int>(bits), count, made)) return broken(which + " has damaged codes");
    data = made;
  } else if ((group && depth % group) || fields.bytes != packed)
    return broken(message({which, ": ", fields.bytes, " bytes and groups of ", group, " do not fit its weights"}));
  const auto scales = std::make_shared<Scales>();
  scales->scale = floats(file->tensors[node.inputs[1]]);
  scales->shift = node.inputs.size() > 2 ? floats(file->tensors[node.inputs[2]]) : std::vector<float>(scales->scale.size());
  if (scales->scale.size() != static_cast<size_t>(channels * groups) || scales->shift.size() != scales->scale.size())
    return broken(message({which, " must have ", channels * groups, " scales and as many shifts or none"}));
  scales->zero.resize(scales->scale.size());
  scales->axis = static_cast<int>(axis), scales->bits = static_cast<int>(bits), scales->groups = static_cast<int>(groups);
  weights.data = data, weights.bytes = packed;
  weights.dtype = kDataType_INT8, weights.scales = scales;
  fields.data = nullptr, fields.bytes = 0;  // nobody else may read it
  return {};
}

bool Planner::low_bit(size_t i, int matrix, bool transposed, LowBit* found) {
  if (!ok() || !is_compact(matrix) || (!is_portable() && !kernels().find("low_bit_pack", {MYC_U8}))) return false;
  const FileTensor& from = stored(i);
  const Type& t = type(matrix);
  const int axis = transposed || t.rank() != 2 ? 0 : 1;
  if (!from.scales || (from.scales->scale.size() > 1 && from.scales->axis != axis)) return false;
  const Scales& scales = *from.scales;
  // Of 8 bits a convolution's weights are widened: its other forms are faster, and the memory is no more than MindSpore Lite's. A
  // portable plan leaves that to whoever runs it.
  const bool whole = !scales.bits && (is_portable() || t.rank() == 2) && item_bytes(abi_dtype(from.dtype)) == 1;
  if ((!scales.bits && !whole) || scales.bits > 8) return false;
  const int64_t outputs = t.shape[axis], depth = element_count(t.shape) / std::max<int64_t>(outputs, 1);
  const bool is_signed = from.dtype == kDataType_INT8;
  const int64_t groups = scales.groups;
  std::vector<float> scale(static_cast<size_t>(outputs * groups)), zero(scale.size());
  for (size_t j = 0; j < scale.size(); ++j) {
    const size_t k = scales.scale.size() > 1 ? j : 0;
    scale[j] = scales.scale[k], zero[j] = scales.zero[k] - (is_signed ? 0 : 128);
    if (scales.shift[k] == 0) continue;
    zero[j] -= scales.shift[k] / scale[j];
    if (!std::isfinite(zero[j])) return false;
  }
  if (groups > 1) scale = groups_first(scale, groups), zero = groups_first(zero, groups), found->group = depth / groups;
  found->bits = whole ? 8 : scales.bits;
  const myc_low_bit_pack_attrs attributes{found->bits, outputs, depth, axis == 0, whole && is_signed};
  found->scale = made_constant({MYC_F32, {groups, outputs}}, scale.data());
  if (std::any_of(zero.begin(), zero.end(), [](float z) { return z != 0; })) found->zero = made_constant({MYC_F32, {groups, outputs}}, zero.data());
  if (is_portable()) {  // the bytes as they are stored, and how: whether outputs are the first axis, and integers have a sign
    std::vector<int32_t> words((from.bytes + 3) / 4);
    std::memcpy(words.data(), from.data, static_cast<size_t>(from.bytes));
    found->pack = made_constant({MYC_I32, {static_cast<int64_t>(words.size())}}, words.data());
    const float order[] = {axis == 0 ? 1.0f : 0.0f, whole && is_signed ? 1.0f : 0.0f};
    found->order = made_constant({MYC_F32, {2}}, order);
    return ok();
  }
  const int bytes = stored_bytes(i);
  const int64_t words = (depth + kRun - 1) / kRun * found->bits * padded(outputs);
  found->pack = once(axis ? "low bit" : "low bit^T", bytes, [&] { return emit_pack("low_bit_pack", bytes, attributes, Type{MYC_I32, {words}}); });
  return ok();
}

int Planner::low_bit_linear(int x, const LowBit& weights, int bias, int8_t activation, const Type& out) {
  const int64_t fused = fused_activation(activation);
  const myc_low_bit_linear_attrs attributes{out.shape.back(), weights.bits, weights.group, fused < 0 ? 0 : fused};
  const int y = emit("low_bit_linear", {x, weights.pack, weights.scale, weights.zero, bias, weights.order}, attributes, out);
  return fused < 0 ? activated(*this, y, activation) : y;
}

int Planner::low_bit_conv(int x, const LowBit& weights, int bias, const Windows& windows, int8_t activation, const Type& out) {
  const int64_t fused = fused_activation(activation);
  const myc_low_bit_conv_last_attrs attributes{
      out.shape.back(),
      weights.bits,
      ints({windows.kernel[0], windows.kernel[1]}),
      ints({windows.stride[0], windows.stride[1]}),
      ints({windows.pad[0], windows.pad[1], windows.pad[2], windows.pad[3]}),
      ints({windows.dilation[0], windows.dilation[1]}),
      fused < 0 ? 0 : fused};
  const int y = emit("low_bit_conv_last", {x, weights.pack, weights.scale, weights.zero, bias, weights.order}, attributes, out);
  return fused < 0 ? activated(*this, y, activation) : y;
}

}  // namespace mycelia::lite
