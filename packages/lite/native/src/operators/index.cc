// Operators that read at places which another tensor names.
#include "common.h"

namespace mycelia::lite {

using namespace schema;

bool are_places(Planner& p, int index) {
  const int32_t dtype = p.type(index).dtype;
  if (dtype != MYC_I32 && dtype != MYC_I64) p.fail(kNotSupported, "indices must be int32 or int64, but are " + text_of(p.type(index)));
  return p.ok();
}

int64_t number_of(Planner& p, int value, const char* what) {
  const std::vector<int64_t> found = p.integers(value, what);
  if (p.ok() && found.size() != 1) p.fail(kOperatorAttribute, std::string(what) + " has " + std::to_string(found.size()) + " numbers, expected 1");
  return p.ok() ? found[0] : 0;
}

OPERATOR(Gather) {
  const int x = p.input(0), index = p.input(1), given = p.optional_input(2);
  const Type type = p.type(x), at = p.type(index);
  const int axis = axis_of(p, given >= 0 ? number_of(p, given, "the axis") : 0, type.rank());
  if (!p.ok() || !are_places(p, index)) return;
  Type out{type.dtype, {type.shape.begin(), type.shape.begin() + axis}};
  out.shape.insert(out.shape.end(), at.shape.begin(), at.shape.end());
  out.shape.insert(out.shape.end(), type.shape.begin() + axis + 1, type.shape.end());
  p.set_output(0, p.emit("gather", {x, index}, myc_gather_attrs{axis, 0}, out));
}

OPERATOR(GatherNd) {  // the last axis of the indices has the first axes' places
  const int x = p.input(0), index = p.input(1);
  const Type type = p.type(x), at = p.type(index);
  if (!p.ok() || !are_places(p, index)) return;
  const int64_t depth = at.rank() ? at.shape.back() : 0;
  if (depth < 1 || depth > type.rank()) {
    p.fail(kInferFailed, "indices " + text_of(at) + " do not fit " + text_of(type));
    return;
  }
  Type out{type.dtype, {at.shape.begin(), at.shape.end() - 1}};
  out.shape.insert(out.shape.end(), type.shape.begin() + depth, type.shape.end());
  p.set_output(0, p.emit("gather_nd", {x, index}, out));
}

OPERATOR(GatherD) {  // x, axis, indices
  const int x = p.input(0), index = p.input(2);
  const Type type = p.type(x), at = p.type(index);
  const int axis = axis_of(p, number_of(p, p.input(1), "the axis"), type.rank());
  if (!p.ok() || !are_places(p, index)) return;
  bool fine = at.rank() == type.rank();
  for (int d = 0; d < type.rank() && fine; ++d) fine = d == axis || at.shape[d] <= type.shape[d];
  if (!fine) p.fail(kInferFailed, "indices " + text_of(at) + " do not fit " + text_of(type));
  p.set_output(0, p.emit("gather_d", {x, index}, myc_gather_d_attrs{axis}, Type{type.dtype, at.shape}));
}

OPERATOR(OneHot) {  // indices, depth, then [off, on] or on, off
  const int index = p.input(0);
  const int64_t depth = number_of(p, p.input(1), "the depth");
  const Type at = p.type(index);
  const int axis = axis_of(p, p.node().attributes.get<int64_t>(kOneHot_axis), at.rank() + 1);
  int on = p.input(2), off;
  if (!p.ok() || !are_places(p, index)) return;
  if (depth < 0) p.fail(kOperatorAttribute, "the depth is " + std::to_string(depth));
  const Type value = p.type(on);
  if (p.node().inputs.size() > 3) {
    off = p.input(3);
  } else if (value.shape == std::vector<int64_t>{2}) {
    off = sliced_along(p, on, 0, 0, 1);
    on = sliced_along(p, on, 0, 1, 1);
  } else {
    p.fail(kInferFailed, "the values must be off and on, but are " + text_of(value));
    return;
  }
  if (p.ok() && (element_count(p.type(on).shape) != 1 || element_count(p.type(off).shape) != 1 || p.type(on).dtype != p.type(off).dtype))
    p.fail(kInferFailed, "the values " + text_of(p.type(on)) + " and " + text_of(p.type(off)) + " must be one number each of one dtype");
  Type out{value.dtype, at.shape};
  out.shape.insert(out.shape.begin() + axis, depth);
  p.set_output(0, p.emit("one_hot", {index, on, off}, myc_one_hot_attrs{depth, axis}, out));
}

}  // namespace mycelia::lite
