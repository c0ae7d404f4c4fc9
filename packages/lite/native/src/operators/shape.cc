// Operators that move or rename elements: reshape, flatten, squeeze, transpose, concat; softmax along an axis.
#include <algorithm>

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

OPERATOR(Reshape) {
  const int x = p.input(0);
  const Type type = p.type(x);
  std::vector<int64_t> shape = p.integers(p.input(1), "the shape");
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
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
  std::vector<bool> gone(type.shape.size());
  for (uint32_t i = 0; i < axes.size; ++i) gone[axis_of(p, axes[i], type.rank())] = true;
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
  const int rank = type.rank() + static_cast<int>(axes.size());
  std::vector<int64_t> shape = type.shape;
  for (int64_t& axis : axes) axis = axis_of(p, axis, rank);
  std::sort(axes.begin(), axes.end());
  for (size_t i = 0; i < axes.size() && p.ok(); ++i) {
    if (i && axes[i] == axes[i - 1]) p.fail(kOperatorAttribute, "axis " + std::to_string(axes[i]) + " is named twice");
    shape.insert(shape.begin() + axes[i], 1);
  }
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
  myc_transpose_attrs attributes{};
  Type out{type.dtype, {}};
  std::vector<bool> seen(order.size());
  for (int64_t axis : order) {
    const int from = axis_of(p, axis, type.rank());
    if (!p.ok() || seen[from]) {
      p.fail(kOperatorAttribute, "the order names axis " + std::to_string(axis) + " twice");
      return;
    }
    seen[from] = true;
    attributes.dims.v[attributes.dims.n++] = from;
    out.shape.push_back(type.shape[from]);
  }
  p.set_output(0, p.emit("transpose", {x}, attributes, std::move(out)));
}

OPERATOR(Concat) {
  std::vector<int> parts;
  for (size_t i = 0; i < p.node().inputs.size(); ++i) parts.push_back(p.input(i));
  if (parts.empty()) {
    p.fail(kInferFailed, "it has no inputs");
    return;
  }
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
  std::vector<int64_t> all;
  for (uint32_t i = 0; i < axes.size; ++i) all.push_back(axes[i]);
  inserted(p, std::move(all));
}
OPERATOR(ExpandDims) { inserted(p, p.integers(p.input(1), "the axis")); }

}  // namespace mycelia::lite
