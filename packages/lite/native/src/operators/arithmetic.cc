// Arithmetic of two tensors that are broadcast against each other as in NumPy.
#include <algorithm>

#include "common.h"

namespace mycelia::lite {

using namespace schema;

Type broadcast(Planner& p, const Type& a, const Type& b) {
  Type out{a.dtype, std::vector<int64_t>(std::max(a.shape.size(), b.shape.size()))};
  for (size_t i = 0; i < out.shape.size(); ++i) {  // counted from the last axis
    const int64_t m = i < a.shape.size() ? a.shape[a.shape.size() - 1 - i] : 1;
    const int64_t n = i < b.shape.size() ? b.shape[b.shape.size() - 1 - i] : 1;
    if (m != n && m != 1 && n != 1) p.fail(kInferFailed, text_of(a) + " and " + text_of(b) + " cannot be broadcast");
    out.shape[out.shape.size() - 1 - i] = m == 1 ? n : m;
  }
  if (a.dtype != b.dtype) p.fail(kNotSupported, "inputs of two dtypes: " + text_of(a) + " and " + text_of(b));
  return out;
}

namespace {

int of_two(Planner& p, const char* op) {
  const int a = p.input(0), b = p.input(1);
  const Type out = broadcast(p, p.type(a), p.type(b));
  return p.emit(op, {a, b}, out);
}

void arithmetic(Planner& p, const char* op, uint16_t activation_field) {
  p.set_output(0, activated(p, of_two(p, op), p.node().attributes.get<int8_t>(activation_field)));
}

}  // namespace

OPERATOR(AddFusion) { arithmetic(p, "add", kAddFusion_activation_type); }
OPERATOR(SubFusion) { arithmetic(p, "sub", kSubFusion_activation_type); }
OPERATOR(MulFusion) { arithmetic(p, "mul", kMulFusion_activation_type); }
OPERATOR(DivFusion) { arithmetic(p, "div", kDivFusion_activation_type); }

OPERATOR(RealDiv) { p.set_output(0, of_two(p, "div")); }
OPERATOR(FloorDiv) { p.set_output(0, of_two(p, "floor_div")); }
OPERATOR(FloorMod) { p.set_output(0, of_two(p, "floor_mod")); }
OPERATOR(Maximum) { p.set_output(0, of_two(p, "maximum")); }
OPERATOR(Minimum) { p.set_output(0, of_two(p, "minimum")); }

OPERATOR(SquaredDifference) {
  const int difference = of_two(p, "sub");
  p.set_output(0, p.emit("square", {difference}, p.type(difference)));
}

OPERATOR(Mod) {  // of the sign of the dividend
  const int a = p.input(0), b = p.input(1);
  const Type out = broadcast(p, p.type(a), p.type(b));
  p.set_output(0, p.emit("truncate_mod", {a, b}, out));
}

namespace {

void of_all(Planner& p, const char* op) {
  int y = p.input(0);
  for (size_t i = 1; i < p.node().inputs.size() && p.ok(); ++i) {
    const int more = p.input(i);
    if (p.ok() && p.type(more).shape != p.type(y).shape) p.fail(kInferFailed, text_of(p.type(more)) + " beside " + text_of(p.type(y)));
    y = p.emit(op, {y, more}, broadcast(p, p.type(y), p.type(more)));
  }
  p.set_output(0, y);
}

}  // namespace

OPERATOR(AddN) { of_all(p, "add"); }

OPERATOR(Eltwise) {
  switch (const int8_t mode = p.node().attributes.get<int8_t>(kEltwise_mode)) {
    case kEltwiseMode_PROD: return of_all(p, "mul");
    case kEltwiseMode_SUM: return of_all(p, "add");
    case kEltwiseMode_MAXIMUM: return of_all(p, "maximum");
    default: p.fail(kNotSupported, "mode " + std::to_string(mode) + " is unknown");
  }
}

OPERATOR(PowFusion) {  // (scale x + shift) ^ exponent
  const Table& a = p.node().attributes;
  const double scale = a.get<float>(kPowFusion_scale, 1), shift = a.get<float>(kPowFusion_shift);
  int x = p.input(0);
  const int exponent = p.input(1);
  const Type type = p.type(x);
  if (scale != 1) x = p.emit("mul", {x, p.scalar(type.dtype, scale)}, type);
  if (shift != 0) x = p.emit("add", {x, p.scalar(type.dtype, shift)}, type);
  const Type out = broadcast(p, type, p.type(exponent));
  p.set_output(0, p.emit("pow", {x, exponent}, out));
}

namespace {

void compare(Planner& p, const char* op) {
  const int a = p.input(0), b = p.input(1);
  Type out = broadcast(p, p.type(a), p.type(b));
  out.dtype = MYC_BOOL;
  p.set_output(0, p.emit(op, {a, b}, out));
}

}  // namespace

OPERATOR(Equal) { compare(p, "equal"); }
OPERATOR(NotEqual) { compare(p, "not_equal"); }
OPERATOR(Less) { compare(p, "less"); }
OPERATOR(LessEqual) { compare(p, "less_equal"); }
OPERATOR(Greater) { compare(p, "greater"); }
OPERATOR(GreaterEqual) { compare(p, "greater_equal"); }
OPERATOR(LogicalAnd) { compare(p, "logical_and"); }
OPERATOR(LogicalOr) { compare(p, "logical_or"); }
OPERATOR(BiasAdd) {  // along the last axis
  const int x = p.input(0), b = p.input(1);
  const Type type = p.type(x);
  if (p.type(b).shape != std::vector<int64_t>{type.rank() ? type.shape.back() : 0})
    p.fail(kInferFailed, "the bias " + text_of(p.type(b)) + " does not fit " + text_of(type));
  p.set_output(0, p.emit("add", {x, b}, type));
}

}  // namespace mycelia::lite
