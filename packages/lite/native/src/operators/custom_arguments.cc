// Custom nodes with ONNX's meaning whose axes, sizes and places are tensors that may be data.
#include <algorithm>
#include <cmath>

#include "custom.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kMostPlaces = int64_t{1} << 26;  // that are listed in a constant

// The numbers of an input; with `given` false none.
std::vector<int64_t> argument(Planner& p, size_t i, const char* what) {
  if (!p.ok()) return {};
  return p.integers(p.input(i), what);
}

// Axes counted from the front, in order, none twice.
std::vector<int> axes_of(Planner& p, const std::vector<int64_t>& given, int rank) {
  std::vector<int> axes;
  for (const int64_t axis : given) {
    axes.push_back(axis_of(p, axis, rank));
    if (!p.ok()) return {};
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) p.fail(kOperatorAttribute, "an axis is named twice");
  return axes;
}

enum Reduction { kSumOf, kMeanOf, kMaxOf, kMinOf, kProdOf, kL1Of, kL2Of, kSquaresOf, kLogSumOf, kLogSumExpOf, kReductions };

int number_of(Planner& p, int32_t dtype, double value, const Type& out) {
  const int one = p.scalar(dtype, value);
  return p.emit("broadcast_to", {one}, myc_broadcast_to_attrs{ints(p, out.shape)}, out);
}

int reduced(Planner& p, int x, int64_t kind, const myc_ints& axes, const Type& out) {
  const Type type = p.type(x);
  const auto sum = [&](int value) {
    if (type.dtype != MYC_I32) return p.emit("sum", {value}, myc_sum_attrs{1, axes, 1, 0, 0}, out);
    const int wide = p.emit("sum", {value}, myc_sum_attrs{1, axes, 1, 0, 0}, Type{MYC_I64, out.shape});
    return p.emit("cast", {wide}, myc_cast_attrs{MYC_I32}, out);
  };
  switch (kind) {
    case kSumOf: return sum(x);
    case kMeanOf: return mean(p, x, axes, true, out);
    case kMaxOf: return p.emit("reduce_max", {x}, myc_reduce_max_attrs{1, axes, 1}, out);
    case kMinOf: return p.emit("reduce_min", {x}, myc_reduce_min_attrs{1, axes, 1}, out);
    case kProdOf: return product(p, x, axes, true, out);
    case kL1Of: return sum(p.emit("abs", {x}, type));
    case kSquaresOf: return sum(p.emit("square", {x}, type));
    case kL2Of: return p.emit("sqrt", {sum(p.emit("square", {x}, type))}, out);
    case kLogSumOf: return p.emit("log", {sum(x)}, out);
    default: break;
  }
  int most = p.emit("reduce_max", {x}, myc_reduce_max_attrs{1, axes, 1}, out);  // so that exponents do not overflow
  const Type truth{MYC_BOOL, out.shape};
  const int beyond = p.emit("equal", {p.emit("abs", {most}, out), p.scalar(out.dtype, INFINITY)}, truth);
  most = p.emit("where", {beyond, p.scalar(out.dtype, 0), most}, out);
  const int powers = p.emit("exp", {p.emit("sub", {x, most}, type)}, type);
  return p.emit("add", {p.emit("log", {sum(powers)}, out), most}, out);
}

// What a reduction of no elements is.
double of_nothing(Planner& p, int64_t kind, int32_t dtype) {
  const bool floating = dtype == MYC_F16 || dtype == MYC_BF16 || dtype == MYC_F32 || dtype == MYC_F64;
  if (kind == kProdOf) return 1;
  if ((kind == kMaxOf || kind == kMinOf || kind == kMeanOf) && !floating) p.fail(kInferFailed, "an extreme or mean of no integers");
  if (kind == kMeanOf) return NAN;
  return kind == kMaxOf || kind == kLogSumOf || kind == kLogSumExpOf ? -INFINITY : kind == kMinOf ? INFINITY : 0;
}

}  // namespace

CUSTOM(reduce) {  // x, axes; no axes are all of them, or none if the attribute `none` is set
  const int x = p.input(0);
  const Type type = p.type(x);
  const int64_t kind = custom_int(p, "kind", 0, kReductions - 1), keep = custom_int(p, "keep", 0, 1), none = custom_int(p, "none", 0, 1);
  std::vector<int> axes = axes_of(p, argument(p, 1, "the axes"), type.rank());
  if (!p.ok()) return;
  if (axes.empty() && !none)
    for (int d = 0; d < type.rank(); ++d) axes.push_back(d);
  Type out = type;
  std::vector<int64_t> dropped;
  myc_ints named{};
  bool nothing = false;
  for (int d = 0; d < type.rank(); ++d) {
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) {
      dropped.push_back(type.shape[d]);
      continue;
    }
    nothing = nothing || type.shape[d] == 0;
    named.v[named.n++] = d, out.shape[d] = 1;
  }
  int y;
  if (nothing) y = number_of(p, type.dtype, of_nothing(p, kind, type.dtype), out);
  else if (axes.empty() && (kind == kSumOf || kind == kMeanOf || kind == kMaxOf || kind == kMinOf || kind == kProdOf)) y = x;
  else if (axes.empty()) {  // over an axis of one element in front
    Type wide = type;
    wide.shape.insert(wide.shape.begin(), 1);
    y = p.ok() ? p.view(reduced(p, p.view(x, wide.shape), kind, ints({0}), wide), type.shape) : 0;
  } else y = reduced(p, x, kind, named, out);
  if (p.ok()) p.set_output(0, keep || axes.empty() ? y : p.view(y, dropped));
}

CUSTOM(reshape) {  // x, its new shape, in which 0 is a size of 0; one size may be -1
  const int x = p.input(0);
  std::vector<int64_t> shape = argument(p, 1, "the shape");
  if (!p.ok()) return;
  const int64_t count = element_count(p.type(x).shape);
  const auto open = std::find(shape.begin(), shape.end(), -1);
  if (open != shape.end()) {
    *open = 1;
    const int64_t known = element_count(shape);
    *open = known > 0 ? count / known : -1;
  }
  if (std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; }) || element_count(shape) != count)
    p.fail(kInferFailed, text_of(p.type(x)) + " cannot be given the shape");
  if (p.ok()) p.set_output(0, p.view(x, std::move(shape)));
}

CUSTOM(pad) {  // x, pads, then the element and axes as `given` says; mode 0 constant, 1 reflect, 2 edge, 3 wrap
  int x = p.input(0);
  const Type type = p.type(x);
  const int64_t mode = custom_int(p, "mode", 0, 3);
  const std::vector<int64_t> given = custom_ints(p, "given", 2, 0, 1), pads = argument(p, 1, "the pads");
  const int value = given[0] ? p.input(2) : -1;
  std::vector<int64_t> axes;
  if (given[1]) axes = argument(p, 2 + given[0], "the axes");
  if (!p.ok()) return;
  for (int d = 0; d < type.rank() && !given[1]; ++d) axes.push_back(d);
  if (pads.size() != 2 * axes.size() || (value >= 0 && (p.type(value).dtype != type.dtype || element_count(p.type(value).shape) != 1))) {
    p.fail(kOperatorAttribute, std::to_string(pads.size()) + " pads for " + std::to_string(axes.size()) + " axes");
    return;
  }
  myc_pad_constant_attrs moved{};
  moved.pads.n = 2 * type.rank();
  Type out = type;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = axis_of(p, axes[i], type.rank());
    if (!p.ok()) return;
    const int64_t before = pads[i], after = pads[i + axes.size()], n = type.shape[axis];
    const auto small = [](int64_t pad) { return -kMostSize < pad && pad < kMostSize; };
    const bool fits = small(before) && small(after) && n + before + after >= 0 && n + before >= 0 && n + after >= 0;
    if (!fits || moved.pads.v[2 * axis] || moved.pads.v[2 * axis + 1] || (mode && n == 0) ||
        (mode == 1 && (before >= std::max<int64_t>(n, 1) || after >= std::max<int64_t>(n, 1)))) {
      p.fail(kOperatorAttribute, "pads of " + std::to_string(before) + " and " + std::to_string(after) + " along axis " + std::to_string(axis) + " of " + text_of(type));
      return;
    }
    moved.pads.v[2 * axis] = before, moved.pads.v[2 * axis + 1] = after;
    out.shape[axis] = n + before + after;
    if (!mode || (!before && !after)) continue;
    if (out.shape[axis] > kMostPlaces) {
      p.fail(kNotSupported, std::to_string(out.shape[axis]) + " places along axis " + std::to_string(axis) + ", which a constant would list");
      return;
    }
    std::vector<int64_t> places(static_cast<size_t>(out.shape[axis]));
    for (int64_t k = 0; k < out.shape[axis]; ++k) {
      const int64_t at = k - before;
      places[k] = mode == 2 ? std::clamp<int64_t>(at, 0, n - 1) : mode == 3 ? ((at % n) + n) % n : at < 0 ? -at : at >= n ? 2 * (n - 1) - at : at;
    }
    const int index = p.made_constant({MYC_I64, {out.shape[axis]}}, places.data());
    Type longer = p.type(x);
    longer.shape[axis] = out.shape[axis];
    x = p.emit("gather", {x, index}, myc_gather_attrs{axis, 0}, longer);
  }
  if (mode) {
    p.set_output(0, x);
    return;
  }
  const int y = p.emit("pad_constant", {x}, moved, out);
  if (value < 0) {
    p.set_output(0, y);
    return;
  }
  const int inside = p.emit("pad_constant", {number_of(p, MYC_BOOL, 1, Type{MYC_BOOL, type.shape})}, moved, Type{MYC_BOOL, out.shape});
  if (p.ok()) p.set_output(0, p.emit("where", {inside, y, p.view(value, {})}, out));
}

}  // namespace mycelia::lite
