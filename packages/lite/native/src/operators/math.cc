// Operators of one tensor, element by element.
#include <cmath>

#include "common.h"

namespace mycelia::lite {

using namespace schema;

namespace {

void unary(Planner& p, const char* op) {
  const int x = p.input(0);
  const Type type = p.type(x);
  p.set_output(0, p.emit(op, {x}, type));
}

}  // namespace

OPERATOR(Abs) { unary(p, "abs"); }
OPERATOR(Ceil) { unary(p, "ceil"); }
OPERATOR(Cos) { unary(p, "cos"); }
OPERATOR(Erf) { unary(p, "erf"); }
OPERATOR(Floor) { unary(p, "floor"); }
OPERATOR(Log) { unary(p, "log"); }
OPERATOR(Log1p) { unary(p, "log1p"); }
OPERATOR(Neg) { unary(p, "neg"); }
OPERATOR(Reciprocal) { unary(p, "reciprocal"); }
OPERATOR(Rsqrt) { unary(p, "rsqrt"); }
OPERATOR(Sin) { unary(p, "sin"); }
OPERATOR(Sqrt) { unary(p, "sqrt"); }
OPERATOR(Square) { unary(p, "square"); }

OPERATOR(LogicalNot) {
  const int x = p.input(0);
  const Type out{MYC_BOOL, p.type(x).shape};
  p.set_output(0, p.emit("logical_not", {x}, out));
}

OPERATOR(IsFinite) {
  const int x = p.input(0);
  const Type out{MYC_BOOL, p.type(x).shape};
  p.set_output(0, p.emit("isfinite", {x}, out));
}

OPERATOR(Round) {  // halves to even
  const int x = p.input(0);
  const Type type = p.type(x);
  p.set_output(0, p.emit("round", {x}, myc_round_attrs{0}, type));
}

OPERATOR(ExpFusion) {  // base ^ (scale x + shift), e where the base is -1
  const Table& a = p.node().attributes;
  const double base = a.get<float>(kExpFusion_base, -1);
  const double factor = base == -1 ? 1 : std::log(base);
  const double scale = a.get<float>(kExpFusion_scale, 1) * factor, shift = a.get<float>(kExpFusion_shift) * factor;
  int x = p.input(0);
  const Type type = p.type(x);
  if (base != -1 && !(base > 0)) p.fail(kOperatorAttribute, "base " + std::to_string(base) + " is not positive");
  if (scale != 1) x = p.emit("mul", {x, p.scalar(type.dtype, scale)}, type);
  if (shift != 0) x = p.emit("add", {x, p.scalar(type.dtype, shift)}, type);
  p.set_output(0, p.emit("exp", {x}, type));
}

OPERATOR(Clip) {
  const Table& a = p.node().attributes;
  const int x = p.input(0), low = p.optional_input(1), high = p.optional_input(2);
  const Type type = p.type(x);
  if (low < 0 && high < 0 && type.dtype == MYC_F32) {
    const double min = a.get<float>(kClip_min), max = a.get<float>(kClip_max);
    p.set_output(0, p.emit("clip", {x}, myc_clip_attrs{1, min, 1, max}, type));
    return;
  }
  const bool attributes = low < 0 && high < 0;
  int y = x;
  for (const bool upper : {false, true}) {
    int bound = upper ? high : low;
    if (attributes) bound = p.scalar(type.dtype, a.get<float>(upper ? kClip_max : kClip_min));
    if (bound < 0) continue;
    if (p.type(bound).dtype != type.dtype || element_count(p.type(bound).shape) != 1)
      p.fail(kInferFailed, "a bound " + text_of(p.type(bound)) + " of " + text_of(type));
    if (p.ok()) y = p.emit(upper ? "minimum" : "maximum", {y, p.view(bound, {})}, type);
  }
  p.set_output(0, y);
}

OPERATOR(Cast) {
  const int x = p.input(0);
  const std::vector<int64_t> to = p.integers(p.input(1), "the dtype");
  if (!p.ok()) return;
  const int32_t dtype = to.size() == 1 && to[0] == static_cast<int32_t>(to[0]) ? abi_dtype(static_cast<int32_t>(to[0])) : -1;
  if (dtype < 0) {
    p.fail(kOperatorAttribute, "the dtype to cast to is unknown");
    return;
  }
  const Type out{dtype, p.type(x).shape};
  p.set_output(0, p.type(x).dtype == dtype ? x : p.emit("cast", {x}, myc_cast_attrs{dtype}, out));
}

OPERATOR(PReLUFusion) {  // x if positive, else x times the slope of its channel, which is the last axis
  const int x = p.input(0);
  int slope = p.input(1);
  const Type type = p.type(x), s = p.type(slope);
  const int64_t count = element_count(s.shape);
  if (count != 1 && (type.rank() < 1 || count != type.shape.back())) {
    p.fail(kInferFailed, "slopes " + text_of(s) + " do not fit " + text_of(type));
    return;
  }
  slope = count == 1 ? p.view(slope, {}) : p.view(slope, {count});
  const int scaled = p.emit("mul", {x, slope}, broadcast(p, type, p.type(slope)));
  const int positive = p.emit("greater", {x, p.scalar(type.dtype, 0)}, Type{MYC_BOOL, type.shape});
  p.set_output(0, p.emit("where", {positive, x, scaled}, type));
}

}  // namespace mycelia::lite
