// Reductions, running sums, and the largest elements along axes.
#include <algorithm>
#include <cstring>

#include "common.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int8_t kMean = 0, kMax = 1, kMin = 2, kProd = 3, kSum = 4, kSumSquare = 5, kAbsSum = 6, kAll = 7, kNorm = 8;

bool is_narrow_float(int32_t dtype) { return dtype == MYC_F32 || dtype == MYC_F16 || dtype == MYC_BF16; }

int cast_to(Planner& p, int x, int32_t dtype) {
  const Type type = p.type(x);
  return type.dtype == dtype ? x : p.emit("cast", {x}, myc_cast_attrs{dtype}, Type{dtype, type.shape});
}

}  // namespace

int product(Planner& p, int x, const myc_ints& axes, bool keep, const Type& out) {
  const int64_t given = axes.n > 0;
  if (is_narrow_float(out.dtype)) return p.emit("prod", {x}, myc_prod_attrs{given, axes, keep, 0, 0}, out);
  for (int64_t i = 0; i < axes.n && p.ok(); ++i) {  // the last of the running products
    const Type type = p.type(x);
    const int axis = static_cast<int>(axes.v[i]);
    Type one = type;
    one.shape[axis] = 1;
    x = type.shape[axis] ? sliced_along(p, p.emit("cumprod", {x}, myc_cumprod_attrs{axis}, type), axis, type.shape[axis] - 1, 1)
                         : p.emit("broadcast_to", {p.scalar(type.dtype, 1)}, myc_broadcast_to_attrs{ints(p, one.shape)}, one);
  }
  return p.ok() ? p.view(x, out.shape) : 0;
}

int mean(Planner& p, int x, const myc_ints& axes, bool keep, const Type& out) {
  const int64_t given = axes.n > 0;
  if (is_narrow_float(out.dtype)) return p.emit("mean", {x}, myc_mean_attrs{given, axes, keep}, out);
  const int64_t count = element_count(p.type(x).shape), parts = element_count(out.shape);
  if (!count && out.dtype != MYC_F64) return p.fail(kInferFailed, message({"a mean of no elements of ", text_of(p.type(x))}));
  const Type wide{MYC_F64, out.shape};
  const int sum = p.emit("sum", {cast_to(p, x, MYC_F64)}, myc_sum_attrs{given, axes, keep, 0, 0}, wide);
  const int quotient = p.emit("div", {sum, p.scalar(MYC_F64, parts ? static_cast<double>(count / parts) : 0)}, wide);
  return cast_to(p, quotient, out.dtype);
}

namespace {

int reduced(Planner& p, int x, int8_t mode, const myc_ints& axes, bool keep, const Type& out) {
  const int64_t given = axes.n > 0;
  const Type type = p.type(x);
  switch (mode) {
    case kMean: return mean(p, x, axes, keep, out);
    case kMax: return p.emit("reduce_max", {x}, myc_reduce_max_attrs{given, axes, keep}, out);
    case kMin: return p.emit("reduce_min", {x}, myc_reduce_min_attrs{given, axes, keep}, out);
    case kProd: return product(p, x, axes, keep, out);
    case kSumSquare: return reduced(p, p.emit("square", {x}, type), kSum, axes, keep, out);
    case kAbsSum: return reduced(p, p.emit("abs", {x}, type), kSum, axes, keep, out);
    case kAll: return p.emit("all", {x}, myc_all_attrs{given, axes, keep}, out);
    case kNorm: return p.emit("l2_norm", {x}, myc_l2_norm_attrs{given, axes, keep}, out);
    case kSum: break;
    default: return p.fail(kNotSupported, message({"mode ", mode, " is unknown"}));
  }
  const myc_sum_attrs attributes{given, axes, keep, 0, 0};
  if (type.dtype != MYC_I32) return p.emit("sum", {x}, attributes, out);
  const int wide = p.emit("sum", {x}, attributes, Type{MYC_I64, out.shape});
  return p.emit("cast", {wide}, myc_cast_attrs{MYC_I32}, out);
}

}  // namespace

OPERATOR(ReduceFusion) {
  const Table& a = p.node().attributes;
  const int x = p.input(0), given = p.optional_input(1);
  const Type type = p.type(x);
  std::vector<int64_t> axes;
  if (given >= 0) axes = p.integers(given, "the axes");
  const bool to_end = a.get<uint8_t>(kReduceFusion_reduce_to_end), keep = a.get<uint8_t>(kReduceFusion_keep_dims);
  if (to_end) {
    if (axes.size() != 1) p.fail(kOperatorAttribute, message({"reduce_to_end with ", axes.size(), " axes"}));
    const int from = p.ok() ? axis_of(p, axes[0], type.rank()) : 0;
    axes.clear();
    for (int d = from; d < type.rank(); ++d) axes.push_back(d);
  }
  const std::vector<bool> gone = axes.empty() ? std::vector<bool>(type.shape.size(), true) : named_axes(p, axes, type.rank());
  if (!p.ok()) return;
  const int8_t mode = a.get<int8_t>(kReduceFusion_mode);
  Type out{type.dtype, {}};
  myc_ints named{};
  for (int d = 0; d < type.rank(); ++d) {
    if (gone[d]) named.v[named.n++] = d;
    if (gone[d] && !type.shape[d] && (mode == kMax || mode == kMin)) p.fail(kInferFailed, message({"an extreme of no elements of ", text_of(type)}));
    if (!gone[d]) out.shape.push_back(type.shape[d]);
    if (gone[d] && keep) out.shape.push_back(1);
  }
  int y = reduced(p, x, mode, named, keep, out);
  const double factor = a.get<float>(kReduceFusion_coeff);
  if (to_end && factor != 1) y = p.emit("mul", {y, p.scalar(out.dtype, factor)}, out);
  p.set_output(0, y);
}

namespace {

// The places of the `count` largest or smallest elements along an axis, or these elements; with two outputs both.
void extreme_place(Planner& p, const char* op, int64_t axis, int64_t count, bool keep, bool values) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const int at = axis_of(p, axis, type.rank());
  if (p.ok() && !type.shape[at]) p.fail(kInferFailed, message({"an extreme of no elements of ", text_of(type)}));
  if (p.ok() && count > type.shape[at]) p.fail(kOperatorAttribute, message({"top_k ", count, " of ", text_of(type)}));
  if (!p.ok()) return;
  const bool both = p.node().outputs.size() == 2;
  if (count > 1 || values || both || type.dtype == MYC_F64) {
    Type out = type;
    out.shape[at] = std::max<int64_t>(count, 1);
    const myc_topk_attrs attributes{out.shape[at], at, !std::strcmp(op, "argmax"), 1};
    std::vector<int> made = p.emit_all("topk", {x}, attributes, {out, Type{MYC_I32, out.shape}});
    if (!keep && count <= 1 && p.ok()) {
      out.shape.erase(out.shape.begin() + at);
      for (int& value : made) value = p.view(value, out.shape);
    }
    p.set_output(0, made[both || !values ? 1 : 0]);
    if (both) p.set_output(1, made[0]);
    return;
  }
  Type out{MYC_I64, type.shape};
  out.shape[at] = 1;
  if (!keep) out.shape.erase(out.shape.begin() + at);
  const int place = p.emit(op, {x}, myc_argmax_attrs{1, at, keep}, out);
  out.dtype = MYC_I32;
  p.set_output(0, p.emit("cast", {place}, myc_cast_attrs{MYC_I32}, out));
}

}  // namespace

OPERATOR(ArgMaxFusion) {
  const Table& a = p.node().attributes;
  extreme_place(p, "argmax", a.get<int64_t>(kArgMaxFusion_axis), a.get<int64_t>(kArgMaxFusion_top_k, 1),
                a.get<uint8_t>(kArgMaxFusion_keep_dims), a.get<uint8_t>(kArgMaxFusion_out_max_value));
}
OPERATOR(ArgMinFusion) {
  const Table& a = p.node().attributes;
  extreme_place(p, "argmin", a.get<int64_t>(kArgMinFusion_axis), a.get<int64_t>(kArgMinFusion_top_k),
                a.get<uint8_t>(kArgMinFusion_keep_dims), a.get<uint8_t>(kArgMinFusion_out_max_value));
}

OPERATOR(All) {  // along the axes named
  const int x = p.input(0), given = p.optional_input(1);
  const Type type = p.type(x);
  const std::vector<int64_t> axes = given >= 0 ? p.integers(given, "the axes") : std::vector<int64_t>();
  const std::vector<bool> gone = axes.empty() ? std::vector<bool>(type.shape.size(), true) : named_axes(p, axes, type.rank());
  const bool keep = p.node().attributes.get<int64_t>(kAll_keep_dims) != 0;
  if (p.ok() && type.dtype != MYC_BOOL) p.fail(kNotSupported, message({"elements ", text_of(type)}));
  if (!p.ok()) return;
  Type out{MYC_BOOL, {}};
  myc_ints named{};
  for (int d = 0; d < type.rank(); ++d) {
    if (gone[d]) named.v[named.n++] = d;
    if (!gone[d] || keep) out.shape.push_back(gone[d] ? 1 : type.shape[d]);
  }
  p.set_output(0, reduced(p, x, kAll, named, keep, out));
}

OPERATOR(TopKFusion) {
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  const std::vector<int64_t> k = p.integers(p.input(1), "k");
  Type out = p.type(x);
  const int axis = axis_of(p, a.get<int64_t>(kTopKFusion_axis), out.rank());
  if (p.ok() && (k.size() != 1 || k[0] < 0 || k[0] > out.shape[axis])) p.fail(kOperatorAttribute, message({"k does not fit ", text_of(out)}));
  if (!p.ok()) return;
  out.shape[axis] = k[0];
  const myc_topk_attrs attributes{k[0], axis, a.get<int64_t>(kTopKFusion_largest), a.get<uint8_t>(kTopKFusion_sorted, 1)};
  const std::vector<int> made = p.emit_all("topk", {x}, attributes, {out, Type{MYC_I32, out.shape}});
  for (size_t i = 0; i < std::min<size_t>(2, p.node().outputs.size()); ++i) p.set_output(i, made[i]);
}

OPERATOR(CumSum) {
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  const std::vector<int64_t> given = p.integers(p.input(1), "the axis");
  const Type type = p.type(x);
  if (p.ok() && given.size() != 1) p.fail(kOperatorAttribute, message({given.size(), " axes"}));
  const int axis = p.ok() ? axis_of(p, given[0], type.rank()) : 0;
  if (!p.ok()) return;
  const bool reverse = a.get<uint8_t>(kCumSum_reverse);
  int y = p.emit("cumsum", {x}, myc_cumsum_attrs{axis, reverse}, type);
  if (a.get<uint8_t>(kCumSum_exclusive) && type.shape[axis]) {  // moved on by one, with 0 in front
    myc_pad_constant_attrs moved{};
    moved.pads.n = 2 * type.rank();
    moved.pads.v[2 * axis] = reverse ? -1 : 1;
    moved.pads.v[2 * axis + 1] = reverse ? 1 : -1;
    y = p.emit("pad_constant", {y}, moved, type);
  }
  p.set_output(0, y);
}

OPERATOR(LogSoftmax) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const int axis = axis_of(p, p.node().attributes.get<int64_t>(kLogSoftmax_axis), type.rank());
  p.set_output(0, p.emit("log_softmax", {x}, myc_log_softmax_attrs{axis}, type));
}

}  // namespace mycelia::lite
