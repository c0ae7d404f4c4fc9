// Custom nodes whose results have sizes that depend on data: what counts runs first, the rest is planned with the number.
#include <algorithm>

#include "../own/own.h"
#include "custom.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kMostCandidates = int64_t{1} << 26;

// Fails on what the kernels of this file do not take.
bool is_real(Planner& p, int value) {
  const int32_t dtype = p.type(value).dtype;
  if (dtype == MYC_C64 || dtype == MYC_C128) p.fail(kNotSupported, "complex numbers " + text_of(p.type(value)));
  return p.ok();
}

// The one number of a value, waiting for it if it is data; 0 until it is known.
int64_t number(Planner& p, int value, const char* what) {
  const std::vector<int64_t> found = p.integers(value, what);
  if (p.ok() && found.size() != 1) p.fail(kOperatorAttribute, std::string(what) + " has " + std::to_string(found.size()) + " numbers");
  return p.ok() ? found[0] : 0;
}

int places_of(Planner& p, int x) {  // [rank, count]
  const Type type = p.type(x);
  const int count = p.emit("count_nonzero", {x}, Type{MYC_I64, {1}});
  const int64_t n = number(p, count, "the number of elements");
  return p.ok() ? p.emit("nonzero", {x}, Type{MYC_I64, {type.rank(), n}}) : 0;
}

}  // namespace

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
  const int64_t n = number(p, made[0], "the number of distinct elements");
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
  const int boxes = p.input(0), scores = p.input(1);
  const int64_t center = custom_int(p, "center", 0, 1), has_score = custom_int(p, "with_score", 0, 1);
  const Type b = p.type(boxes), s = p.type(scores);
  const bool fits = b.rank() == 3 && s.rank() == 3 && b.shape[2] == 4 && b.shape[0] == s.shape[0] && b.shape[1] == s.shape[2];
  if (p.ok() && (!fits || b.dtype != MYC_F32 || s.dtype != MYC_F32)) p.fail(kInferFailed, "boxes " + text_of(b) + " and scores " + text_of(s));
  const int64_t most = std::clamp<int64_t>(number(p, p.input(2), "the most boxes of a class"), 0, p.ok() && fits ? b.shape[1] : 0);
  const int overlap = p.input(3), score = has_score ? p.input(4) : -1;
  for (const int value : {overlap, score})
    if (p.ok() && value >= 0 && (p.type(value).dtype != MYC_F32 || element_count(p.type(value).shape) != 1))
      p.fail(kInferFailed, "a threshold " + text_of(p.type(value)));
  if (!p.ok()) return;
  const int64_t candidates = s.shape[0] * s.shape[1] * most;
  if (candidates > kMostCandidates) p.fail(kNotSupported, std::to_string(candidates) + " boxes to select");
  const NmsAttributes attributes{center, most, 0, 0, 0};
  const std::vector<int> made =
      p.emit_all("nms", {boxes, scores, overlap, score}, attributes, {Type{MYC_I64, {1}}, Type{MYC_I64, {candidates, 3}}});
  const int64_t n = number(p, made[0], "the number of boxes");
  if (p.ok()) p.set_output(0, p.emit("take_rows", {made[1]}, Type{MYC_I64, {n, 3}}));
}

}  // namespace mycelia::lite
