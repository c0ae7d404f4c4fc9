// Custom nodes that write at named places, order elements or keep triangles.
#include <algorithm>

#include "custom.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kReductions = 7;

}  // namespace

CUSTOM(tensor_scatter) {  // the last axis of the indices has the first axes' places
  const int x = p.input(0), index = p.input(1), updates = p.input(2);
  const Type type = p.type(x), at = p.type(index);
  const int64_t reduction = custom_int(p, "reduction", 0, kReductions - 1);
  const int64_t depth = at.rank() ? at.shape.back() : 0;
  if (!p.ok() || !places(p, index)) return;
  std::vector<int64_t> wanted(at.shape.begin(), at.shape.end() - (at.rank() ? 1 : 0));
  if (depth >= 1 && depth <= type.rank()) wanted.insert(wanted.end(), type.shape.begin() + depth, type.shape.end());
  if (depth < 1 || depth > type.rank() || p.type(updates).shape != wanted || p.type(updates).dtype != type.dtype) {
    p.fail(kInferFailed, "indices " + text_of(at) + " and updates " + text_of(p.type(updates)) + " do not fit " + text_of(type));
    return;
  }
  p.set_output(0, p.emit("tensor_scatter", {x, index, updates}, myc_tensor_scatter_attrs{reduction}, type));
}

CUSTOM(scatter_elements) {
  const int x = p.input(0), index = p.input(1), updates = p.input(2);
  const Type type = p.type(x), at = p.type(index);
  const int64_t reduction = custom_int(p, "reduction", 0, kReductions - 1);
  const int axis = axis_of(p, custom_int(p, "axis", -MYC_MAX_RANK, MYC_MAX_RANK), type.rank());
  if (!p.ok() || !places(p, index)) return;
  bool fine = at.rank() == type.rank() && p.type(updates).shape == at.shape && p.type(updates).dtype == type.dtype;
  for (int d = 0; d < type.rank() && fine; ++d) fine = d == axis || at.shape[d] <= type.shape[d];
  if (!fine) p.fail(kInferFailed, "indices " + text_of(at) + " and updates " + text_of(p.type(updates)) + " do not fit " + text_of(type));
  p.set_output(0, p.emit("scatter_elements", {x, index, updates}, myc_scatter_elements_attrs{axis, reduction}, type));
}

CUSTOM(sort) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const int64_t descending = custom_int(p, "descending", 0, 1);
  const int axis = axis_of(p, custom_int(p, "axis", -MYC_MAX_RANK, MYC_MAX_RANK), type.rank());
  const std::vector<int> made = p.emit_all("sort", {x}, myc_sort_attrs{axis, descending}, {type, Type{MYC_I32, type.shape}});
  for (size_t i = 0; i < std::min<size_t>(2, p.node().outputs.size()); ++i) p.set_output(i, made[i]);
}

CUSTOM(cumprod) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const int axis = axis_of(p, custom_int(p, "axis", -MYC_MAX_RANK, MYC_MAX_RANK), type.rank());
  p.set_output(0, p.emit("cumprod", {x}, myc_cumprod_attrs{axis}, type));
}

namespace {

void triangle(Planner& p, const char* op) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const int64_t diagonal = custom_int(p, "diagonal", -kMostSize, kMostSize);
  if (type.rank() < 2) p.fail(kInferFailed, text_of(type) + " is no matrix");
  p.set_output(0, p.emit(op, {x}, myc_tril_attrs{diagonal}, type));
}

}  // namespace

CUSTOM(tril) { triangle(p, "tril"); }
CUSTOM(triu) { triangle(p, "triu"); }

CUSTOM(det) {
  const int x = p.input(0);
  const Type type = p.type(x);
  if (type.rank() < 2 || type.shape.back() != type.shape[type.shape.size() - 2]) {
    p.fail(kInferFailed, text_of(type) + " is no square matrix");
    return;
  }
  p.set_output(0, p.emit("det", {x}, Type{type.dtype, {type.shape.begin(), type.shape.end() - 2}}));
}

}  // namespace mycelia::lite
