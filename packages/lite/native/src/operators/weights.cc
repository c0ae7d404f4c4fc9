// Weights of products and convolutions in the panels that kernels read: packed once, or as they lie in the file.
#include <algorithm>
#include <cmath>

#include "common.h"
#include "kernels.h"
#include "mycelia/cpu.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kLowBitUnit = 32;  // weights of an output that lie together in a pack of low_bit_pack

}  // namespace

int64_t padded(int64_t n) { return (n + kPanel - 1) / kPanel * kPanel; }

Weights::Weights(Planner& p, size_t input) : planner_(p), input_(input) {
  panels_ = p.panels(input, &type_);
  if (panels_ >= 0) return;
  matrix_ = p.input(input);
  type_ = p.type(matrix_);
}

int Weights::matrix() { return matrix_ >= 0 ? matrix_ : matrix_ = planner_.input(input_); }

int Weights::panels(bool transposed) {
  Planner& p = planner_;
  const bool first = transposed || type_.rank() != 2;
  if (panels_ >= 0 && p.panels_are_of_first_axis(input_) == first) return panels_;
  std::vector<int64_t> others = type_.shape;
  others.erase(others.begin() + (first ? 0 : 1));
  const int64_t outputs = type_.shape[first ? 0 : 1], depth = element_count(others);  // either may be 0
  const int weight = matrix();
  if (!p.ok()) return 0;
  if (p.is_portable()) return first ? p.view(weight, {outputs, depth}) : p.turned(weight, {1, 0});
  return p.once(first ? "panels^T" : "panels", weight, [&] {
    const int flat = p.view(weight, first ? std::vector<int64_t>{outputs, depth} : type_.shape);
    return p.emit_pack("linear_pack", flat, myc_linear_pack_attrs{first, 0}, Type{type_.dtype, {depth * padded(outputs)}});
  });
}

bool Weights::low_bit(bool transposed, LowBit* found) {
  Planner& p = planner_;
  if (!p.ok() || p.is_portable() || panels_ >= 0 || !p.is_compact(matrix_) || !kernels().find("low_bit_pack", {MYC_U8})) return false;
  const FileTensor& stored = p.stored(input_);
  const int axis = transposed || type_.rank() != 2 ? 0 : 1;
  if (!stored.scales || (stored.scales->scale.size() > 1 && stored.scales->axis != axis)) return false;
  const Scales& scales = *stored.scales;
  // Of 8 bits a convolution's weights are widened: its other forms are faster, and the memory is no more than MindSpore Lite's.
  const bool whole = !scales.bits && type_.rank() == 2 && item_bytes(abi_dtype(stored.dtype)) == 1;
  if ((!scales.bits && !whole) || scales.bits > 8) return false;
  const int64_t outputs = type_.shape[axis], depth = element_count(type_.shape) / std::max<int64_t>(outputs, 1);
  const bool is_signed = stored.dtype == kDataType_INT8;
  const int64_t groups = scales.groups;
  std::vector<float> scale(static_cast<size_t>(outputs * groups)), zero(scale.size());
  for (size_t j = 0; j < scale.size(); ++j) {
    const size_t i = scales.scale.size() > 1 ? j : 0;
    scale[j] = scales.scale[i], zero[j] = scales.zero[i] - (is_signed ? 0 : 128);
    if (scales.shift[i] == 0) continue;
    zero[j] -= scales.shift[i] / scale[j];
    if (!std::isfinite(zero[j])) return false;
  }
  if (groups > 1) scale = groups_first(scale, groups), zero = groups_first(zero, groups), found->group = depth / groups;
  found->bits = whole ? 8 : scales.bits;
  const myc_low_bit_pack_attrs attributes{found->bits, outputs, depth, axis == 0, whole && is_signed};
  const int bytes = p.stored_bytes(input_);
  const int64_t words = (depth + kLowBitUnit - 1) / kLowBitUnit * found->bits * padded(outputs);
  found->pack = p.once(axis ? "low bit" : "low bit^T", bytes, [&] { return p.emit_pack("low_bit_pack", bytes, attributes, Type{MYC_I32, {words}}); });
  found->scale = p.made_constant({MYC_F32, {groups, outputs}}, scale.data());
  if (std::any_of(zero.begin(), zero.end(), [](float z) { return z != 0; })) found->zero = p.made_constant({MYC_F32, {groups, outputs}}, zero.data());
  return p.ok();
}

int Weights::halves(bool transposed) {
  Planner& p = planner_;
  const int64_t outputs = type_.shape[transposed ? 0 : 1], depth = type_.shape[transposed ? 1 : 0];
  const int weight = matrix();
  if (!p.ok()) return 0;
  ask_for_part("strassen");
  return p.once(transposed ? "strassen^T" : "strassen", weight, [&] {
    const Type out{type_.dtype, {7 * (depth / 2) * padded(outputs / 2)}};
    return p.emit_pack("linear_pack", weight, myc_linear_pack_attrs{transposed, MYC_PRODUCT_STRASSEN}, out);
  });
}

}  // namespace mycelia::lite
