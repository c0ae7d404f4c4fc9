// Custom nodes whose results have sizes that depend on data: what counts runs first, the rest is planned with the number.
#include <algorithm>

#include "../own/own.h"
#include "custom.h"

namespace mycelia::lite {

using namespace schema;

namespace {

// Fails on what the kernels of this file do not take.
bool is_real(Planner& p, int value) {
  const int32_t dtype = p.type(value).dtype;
  if (dtype == MYC_C64 || dtype == MYC_C128) p.fail(kNotSupported, "complex numbers " + text_of(p.type(value)));
  return p.ok();
}

}  // namespace

int places_of(Planner& p, int x) {  // [rank, count]
  const Type type = p.type(x);
  const int count = p.emit("count_nonzero", {x}, Type{MYC_I64, {1}});
  const int64_t n = number_of(p, count, "the number of elements");
  return p.ok() ? p.emit("nonzero", {x}, Type{MYC_I64, {type.rank(), n}}) : 0;
}

CUSTOM(nonzero) {
  const int x = p.input(0);
  if (p.ok() && is_real(p, x)) p.set_output(0, places_of(p, x));
}

CUSTOM(compress) {  // the slices of x along an axis where the condition holds; without an axis, of its elements
  int x = p.input(0);
  const int condition = p.input(1), places = p.ok() ? places_of(p, condition) : 0;
  const std::vector<int64_t> axes = custom_ints(p, "axis");
  if (!p.ok()) return;
  if (axes.empty()) x = p.view(x, {element_count(p.type(x).shape)});
  const Type type = p.type(x), mask = p.type(condition);
  const int axis = axes.empty() ? 0 : axis_of(p, axes[0], type.rank());
  if (p.ok() && (mask.rank() != 1 || mask.dtype != MYC_BOOL || mask.shape[0] > type.shape[axis]))
    p.fail(kInferFailed, "a condition " + text_of(mask) + " for " + text_of(type));
  if (!p.ok()) return;
  const int64_t n = p.type(places).shape[1];
  Type out = type;
  out.shape[axis] = n;
  p.set_output(0, p.emit("gather", {x, p.view(places, {n})}, myc_gather_attrs{axis, 0}, out));
}

CUSTOM(unique) {  // the distinct elements or slices, the first place of each, which of them each is, how often each comes
  int x = p.input(0);
  const std::vector<int64_t> axes = custom_ints(p, "axis");
  const int64_t sorted = custom_int(p, "sorted", 0, 1);
  if (!p.ok() || !is_real(p, x)) return;
  if (p.type(x).dtype == MYC_F16 || p.type(x).dtype == MYC_BF16) {
    p.fail(kNotSupported, "distinct elements of " + text_of(p.type(x)));
    return;
  }
  const int along = axes.empty() ? -1 : axis_of(p, axes[0], p.type(x).rank());
  if (!p.ok()) return;
  const Type all{MYC_I64, {along < 0 ? element_count(p.type(x).shape) : p.type(x).shape[along]}};
  const TakeAttributes attributes{sorted ? along + 1 : -(along + 2)};
  const std::vector<int> made = p.emit_all("distinct", {x}, attributes, {Type{MYC_I64, {1}}, all, all, all});
  const int64_t n = number_of(p, made[0], "the number of distinct elements");
  if (!p.ok()) return;
  if (along < 0) x = p.view(x, all.shape);
  const Type type = p.type(x);
  const int axis = std::max(along, 0);
  const auto first = [&](int value) { return p.emit("take_rows", {value}, Type{MYC_I64, {n}}); };
  const int places = first(made[1]);
  Type out = type;
  out.shape[axis] = n;
  const int results[] = {p.emit("gather", {x, places}, myc_gather_attrs{axis, 0}, out), places, made[2], first(made[3])};
  for (size_t i = 0; i < std::min<size_t>(4, p.node().outputs.size()); ++i) p.set_output(i, results[i]);
}

CUSTOM(nms) {  // boxes, scores, how many of a class at most, thresholds of overlap and of scores
  const int boxes = p.input(0), scores = p.input(1), most = p.input(2), overlap = p.input(3);
  const int64_t center = custom_int(p, "center", 0, 1), has_score = custom_int(p, "with_score", 0, 1);
  if (!p.ok()) return;
  const int made = selected_boxes(p, boxes, scores, most, overlap, has_score ? p.input(4) : -1, center);
  if (p.ok()) p.set_output(0, made);
}

}  // namespace mycelia::lite
