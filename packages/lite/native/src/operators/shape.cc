// Operators that move, repeat or rename elements, and softmax along an axis.
#include <algorithm>
#include <cstdint>

#include "common.h"

namespace mycelia::lite {

using namespace schema;

int axis_of(Planner& p, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    p.fail(kOperatorAttribute, "axis " + std::to_string(axis) + " is not one of " + std::to_string(rank) + " dimensions");
    return 0;
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<bool> named_axes(Planner& p, const std::vector<int64_t>& axes, int rank) {
  std::vector<bool> named(rank);
  for (int64_t axis : axes) {
    const int at = axis_of(p, axis, rank);
    if (!p.ok()) break;
    named[at] = true;
  }
  return named;
}

myc_ints ints(Planner& p, const std::vector<int64_t>& values) {
  myc_ints made{};
  if (values.size() > MYC_MAX_INTS) {
    p.fail(kOperatorAttribute, std::to_string(values.size()) + " numbers are more than the " + std::to_string(MYC_MAX_INTS) + " that a kernel takes");
    return made;
  }
  for (int64_t v : values) made.v[made.n++] = v;
  return made;
}

std::vector<int64_t> numbers(const Span<int64_t>& span) {
  std::vector<int64_t> found;
  for (uint32_t i = 0; i < span.size; ++i) found.push_back(span[i]);
  return found;
}

OPERATOR(Reshape) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const int target = p.input(1);
  std::vector<int64_t> shape = p.integers(target, "the shape");
  int64_t known = 1, open = -1;
  bool whole = p.ok() && p.constant(target) && p.was_resized(0);  // the shape is one of other sizes
  for (size_t i = 0; i < shape.size(); ++i) {
    whole = whole && shape[i] > 0;
    if (shape[i] == 0 && i < type.shape.size()) shape[i] = type.shape[i];  // 0: as it was
    if (shape[i] == -1 && open < 0) {
      open = static_cast<int64_t>(i);
    } else if (shape[i] < 0) {
      p.fail(kOperatorAttribute, "the shape has " + std::to_string(shape[i]));
      return;
    }
  }
  const int64_t count = element_count(type.shape);
  if (open >= 0) {
    shape[open] = 1;
    known = element_count(shape);
    if (known <= 0 || count % known) {
      p.fail(kInferFailed, text_of(type) + " cannot be given the shape");
      return;
    }
    shape[open] = count / known;
  }
  if (whole) p.fail(kInferFailed, text_of(type) + " cannot be given a shape that was made for other sizes");
  if (p.ok()) p.set_output(0, p.view(x, std::move(shape)));
}

OPERATOR(Flatten) {
  const Type type = p.type(p.input(0));
  const int64_t given = p.node().attributes.get<int64_t>(kFlatten_axis, 1);
  const int axis = given == type.rank() ? type.rank() : axis_of(p, given, type.rank());
  const int64_t outer = element_count({type.shape.begin(), type.shape.begin() + axis});
  p.set_output(0, p.view(p.input(0), {outer, element_count({type.shape.begin() + axis, type.shape.end()})}));
}

OPERATOR(Squeeze) {
  const Type type = p.type(p.input(0));
  const Span<int64_t> axes = p.node().attributes.span<int64_t>(kSqueeze_axis);
  const std::vector<bool> gone = named_axes(p, numbers(axes), type.rank());
  std::vector<int64_t> shape;
  for (size_t i = 0; i < type.shape.size(); ++i) {
    if (gone[i] && type.shape[i] != 1) p.fail(kInferFailed, "dimension " + std::to_string(i) + " of " + text_of(type) + " is not 1");
    if (!(axes.size ? gone[i] : type.shape[i] == 1)) shape.push_back(type.shape[i]);
  }
  if (p.ok()) p.set_output(0, p.view(p.input(0), std::move(shape)));
}

namespace {

void inserted(Planner& p, std::vector<int64_t> axes) {
  const Type type = p.type(p.input(0));
  if (axes.size() > MYC_MAX_RANK) {
    p.fail(kOperatorAttribute, std::to_string(axes.size()) + " axes are inserted");
    return;
  }
  const int rank = type.rank() + static_cast<int>(axes.size());
  std::vector<int64_t> shape = type.shape;
  for (int64_t& axis : axes) axis = axis_of(p, axis, rank);
  std::sort(axes.begin(), axes.end());
  if (const auto twice = std::adjacent_find(axes.begin(), axes.end()); twice != axes.end())
    p.fail(kOperatorAttribute, "axis " + std::to_string(*twice) + " is named twice");
  for (size_t i = 0; i < axes.size() && p.ok(); ++i) shape.insert(shape.begin() + axes[i], 1);
  if (p.ok()) p.set_output(0, p.view(p.input(0), std::move(shape)));
}

}  // namespace

OPERATOR(Transpose) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const std::vector<int64_t> order = p.integers(p.input(1), "the order of axes");
  if (order.size() != type.shape.size()) {
    p.fail(kOperatorAttribute, "the order has " + std::to_string(order.size()) + " axes, the input " + text_of(type));
    return;
  }
  std::vector<int> axes;
  for (int64_t axis : order) {
    axes.push_back(axis_of(p, axis, type.rank()));
    if (!p.ok() || std::count(axes.begin(), axes.end(), axes.back()) > 1) {
      p.fail(kOperatorAttribute, "the order names axis " + std::to_string(axis) + " twice");
      return;
    }
  }
  const bool to_first = axes == std::vector<int>{0, 3, 1, 2} && p.first_of(x) >= 0, to_last = axes == std::vector<int>{0, 2, 3, 1};
  p.set_output(0, to_first ? p.first_of(x) : to_last ? p.channels_last(x) : p.turned(x, axes));
}

namespace {

// The values of all inputs, one at least.
std::vector<int> all_inputs(Planner& p) {
  std::vector<int> parts;
  for (size_t i = 0; i < p.node().inputs.size(); ++i) parts.push_back(p.input(i));
  if (parts.empty()) p.fail(kInferFailed, "it has no inputs");
  return parts;
}

}  // namespace

OPERATOR(Concat) {
  const std::vector<int> parts = all_inputs(p);
  if (!p.ok()) return;
  Type out = p.type(parts[0]);
  const int axis = axis_of(p, p.node().attributes.get<int64_t>(kConcat_axis), out.rank());
  for (size_t i = 1; i < parts.size() && p.ok(); ++i) {
    Type part = p.type(parts[i]);
    if (part.rank() != out.rank() || part.dtype != out.dtype) {
      p.fail(kInferFailed, text_of(part) + " cannot be joined to " + text_of(out));
      return;
    }
    const int64_t length = part.shape[axis];
    part.shape[axis] = out.shape[axis];
    if (part.shape != out.shape) p.fail(kInferFailed, text_of(p.type(parts[i])) + " cannot be joined to " + text_of(out));
    out.shape[axis] += length;
  }
  if (p.ok()) p.set_output(0, p.emit("concat", parts, myc_concat_attrs{axis}, out));
}

OPERATOR(Softmax) {
  const int x = p.input(0);
  const Span<int64_t> axes = p.node().attributes.span<int64_t>(kSoftmax_axis);
  if (axes.size > 1) {
    p.fail(kNotSupported, "softmax over several axes");
    return;
  }
  const int axis = axis_of(p, axes.size ? axes[0] : -1, p.type(x).rank());
  p.set_output(0, p.emit("softmax", {x}, myc_softmax_attrs{axis}, p.type(x)));
}

OPERATOR(Unsqueeze) {
  const Span<int64_t> axes = p.node().attributes.span<int64_t>(kUnsqueeze_axis);
  inserted(p, numbers(axes));
}
OPERATOR(ExpandDims) { inserted(p, p.integers(p.input(1), "the axis")); }

OPERATOR(Stack) {
  const std::vector<int> parts = all_inputs(p);
  if (!p.ok()) return;
  Type out = p.type(parts[0]);
  for (int part : parts) {
    if (p.type(part).dtype != out.dtype || p.type(part).shape != out.shape)
      p.fail(kInferFailed, text_of(p.type(part)) + " cannot be stacked on " + text_of(out));
  }
  const int axis = axis_of(p, p.node().attributes.get<int64_t>(kStack_axis), out.rank() + 1);
  out.shape.insert(out.shape.begin() + axis, static_cast<int64_t>(parts.size()));
  p.set_output(0, p.emit("stack", parts, myc_stack_attrs{axis}, out));
}

namespace {

int broadcast_to(Planner& p, int x, std::vector<int64_t> shape) {  // -1: as it was
  const Type type = p.type(x);
  const size_t rank = type.shape.size();
  if (shape.size() < rank || shape.size() > MYC_MAX_RANK)
    return p.fail(kOperatorAttribute, text_of(type) + " cannot have " + std::to_string(shape.size()) + " dimensions");
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t lead = shape.size() - rank;
    const int64_t given = i < lead ? 1 : type.shape[i - lead];
    if (shape[i] == -1 && i >= lead) shape[i] = given;
    if (shape[i] < 0 || (given != shape[i] && given != 1))
      return p.fail(kInferFailed, text_of(type) + " cannot be broadcast to size " + std::to_string(shape[i]) + " of axis " + std::to_string(i));
  }
  if (shape == type.shape) return x;
  const myc_broadcast_to_attrs attributes{ints(p, shape)};
  return p.emit("broadcast_to", {x}, attributes, Type{type.dtype, shape});
}

}  // namespace

OPERATOR(BroadcastTo) {
  const int x = p.input(0), wanted = p.optional_input(1);
  std::vector<int64_t> shape = numbers(p.node().attributes.span<int64_t>(kBroadcastTo_shape));
  if (wanted >= 0) shape = p.integers(wanted, "the shape");
  if (p.ok()) p.set_output(0, broadcast_to(p, x, std::move(shape)));
}

OPERATOR(TileFusion) {
  const int x = p.input(0), given = p.optional_input(1);
  const Type type = p.type(x);
  const std::vector<int64_t> dims = numbers(p.node().attributes.span<int64_t>(kTileFusion_dims));
  // Times by axis: an input, with the axes as attribute, or times of all axes as attribute.
  std::vector<int64_t> times = given >= 0 ? p.integers(given, "the multiples") : dims;
  if (given >= 0 && !dims.empty() && dims.size() == times.size() && static_cast<int>(dims.size()) <= type.rank()) {
    std::vector<int64_t> placed(type.shape.size(), 1);
    for (size_t i = 0; i < dims.size(); ++i) {
      const int axis = axis_of(p, dims[i], type.rank());
      if (p.ok()) placed[axis] = times[i];
    }
    times = std::move(placed);
  }
  if (times.size() > MYC_MAX_RANK) p.fail(kOperatorAttribute, std::to_string(times.size()) + " multiples");
  if (!p.ok()) return;
  if (times.size() < type.shape.size()) times.insert(times.begin(), type.shape.size() - times.size(), 1);
  Type out = type;
  out.shape.insert(out.shape.begin(), times.size() - type.shape.size(), 1);
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] < 0 || element_count({out.shape[i], times[i]}) < 0) {
      p.fail(kOperatorAttribute, "the multiples have " + std::to_string(times[i]) + ", out of range");
      return;
    }
    out.shape[i] *= times[i];
  }
  const myc_tile_attrs attributes{ints(p, times)};
  p.set_output(0, p.emit("tile", {x}, attributes, out));
}

OPERATOR(Shape) {
  std::vector<int32_t> shape;
  for (int64_t n : p.type(p.input(0)).shape) {
    if (n > INT32_MAX) p.fail(kInferFailed, "a size of " + std::to_string(n) + " is no int32");
    shape.push_back(static_cast<int32_t>(n));
  }
  const Type out{MYC_I32, {static_cast<int64_t>(shape.size())}};
  p.set_output(0, p.made_constant(out, shape.data()));
}

OPERATOR(FormatTranspose) {  // an image from channels last to channels first, or back
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  const int32_t from = a.get<int32_t>(kFormatTranspose_src_format, kFormat_NHWC), to = a.get<int32_t>(kFormatTranspose_dst_format, kFormat_NHWC);
  if (p.ok() && p.type(x).rank() != 4) p.fail(kInferFailed, "an image must have 4 axes, but is " + text_of(p.type(x)));
  if ((from != kFormat_NHWC && from != kFormat_NCHW) || (to != kFormat_NHWC && to != kFormat_NCHW))
    p.fail(kNotSupported, "formats " + std::to_string(from) + " and " + std::to_string(to));
  if (!p.ok()) return;
  p.set_output(0, from == to ? x : from == kFormat_NHWC ? p.channels_first(x) : p.channels_last(x));
}

int spliced(Planner& p, int x, const std::vector<int64_t>& places, int64_t each) {
  if (!p.ok()) return 0;
  const Type type = p.type(x);
  const int64_t n = static_cast<int64_t>(places.size());
  for (const int64_t at : places)
    if (at < 0 || at >= type.shape[1]) return p.fail(kOperatorAttribute, "row " + std::to_string(at) + " is not in " + text_of(type));
  const int index = p.made_constant({MYC_I64, {n}}, places.data());
  const int rows = p.emit("gather", {x, index}, myc_gather_attrs{1, 0}, Type{type.dtype, {type.shape[0], n, type.shape[2]}});
  return p.view(rows, {type.shape[0], n / each, each * type.shape[2]});
}

OPERATOR(Splice) {  // x [N, T, C]: rows of neighbours one behind the other, as `forward_indexes` names them
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  const Type type = p.type(x);
  const std::vector<int64_t> places = numbers(a.span<int64_t>(kSplice_forward_indexes));
  const int64_t each = a.span<int64_t>(kSplice_context).size, wide = a.get<int64_t>(kSplice_output_dim), n = static_cast<int64_t>(places.size());
  if (p.ok() && type.rank() != 3) p.fail(kInferFailed, "rows must be [N, T, C], but are " + text_of(type));
  if (p.ok() && (!each || n % each || wide != each * type.shape[2])) p.fail(kOperatorAttribute, "context, forward_indexes and output_dim do not fit " + text_of(type));
  const int y = spliced(p, x, places, each);
  if (p.ok()) p.set_output(0, y);
}

int triangle(Planner& p, const char* op, int x, int64_t diagonal) {
  if (!p.ok()) return 0;
  const Type type = p.type(x);
  if (type.rank() < 2) return p.fail(kInferFailed, text_of(type) + " is no matrix");
  return p.emit(op, {x}, myc_tril_attrs{diagonal}, type);
}

namespace {

void triangle_by_input(Planner& p, const char* op) {
  const int x = p.input(0), given = p.optional_input(1);
  const int64_t diagonal = given >= 0 ? number_of(p, given, "the diagonal") : 0;
  p.set_output(0, triangle(p, op, x, diagonal));
}

}  // namespace

OPERATOR(Tril) { triangle_by_input(p, "tril"); }
OPERATOR(Triu) { triangle_by_input(p, "triu"); }

OPERATOR(ReverseV2) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const std::vector<bool> turned = named_axes(p, numbers(p.node().attributes.span<int64_t>(kReverseV2_axis)), type.rank());
  myc_flip_attrs attributes{};
  for (int d = 0; d < type.rank(); ++d)
    if (turned[d]) attributes.dims.v[attributes.dims.n++] = d;
  p.set_output(0, attributes.dims.n ? p.emit("flip", {x}, attributes, type) : x);
}

}  // namespace mycelia::lite
