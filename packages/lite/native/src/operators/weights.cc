// Weights of products and convolutions in the panels that kernels read: packed once, or as they lie in the file.
#include "common.h"
#include "kernels.h"
#include "mycelia/cpu.h"

namespace mycelia::lite {

using namespace schema;

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
