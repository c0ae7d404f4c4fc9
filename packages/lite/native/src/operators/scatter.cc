// Operators that write at named places, look rows up in tables, or find places by their elements.
#include <algorithm>
#include <numeric>

#include "../own/own.h"
#include "common.h"

namespace mycelia::lite {

using namespace schema;

namespace {

enum Reduction : int64_t { kUpdate = 0, kAdd = 1 };

// The dtype in which updates of this one are combined: integers in int64, where products wrap around alike.
int32_t combined_in(int32_t dtype, int64_t reduction) {
  switch (dtype) {
    case MYC_I8:
    case MYC_I16:
    case MYC_U8:
    case MYC_U16:
    case MYC_U32: return reduction == kUpdate ? dtype : MYC_I64;
    case MYC_I32: return reduction == kUpdate || reduction == kAdd ? dtype : MYC_I64;
    default: return dtype;
  }
}

// A kernel that writes `updates` into `x`.
template <class Attributes>
int written(Planner& p, const char* op, int x, int index, int updates, const Attributes& attributes) {
  const Type type = p.type(x);
  const int32_t wide = combined_in(type.dtype, attributes.reduction);
  if (wide == type.dtype) return p.emit(op, {x, index, updates}, attributes, type);
  const auto cast = [&](int value, int32_t dtype) { return p.emit("cast", {value}, myc_cast_attrs{dtype}, Type{dtype, p.type(value).shape}); };
  const int large = cast(x, wide), more = cast(updates, wide);
  return cast(p.emit(op, {large, index, more}, attributes, Type{wide, type.shape}), type.dtype);
}

}  // namespace

int scattered(Planner& p, int x, int index, int updates, int64_t reduction) {
  if (!p.ok()) return 0;
  const Type type = p.type(x), at = p.type(index);
  const int64_t depth = at.rank() ? at.shape.back() : 0;
  if (!are_places(p, index)) return 0;
  std::vector<int64_t> wanted(at.shape.begin(), at.shape.end() - (at.rank() ? 1 : 0));
  if (depth >= 1 && depth <= type.rank()) wanted.insert(wanted.end(), type.shape.begin() + depth, type.shape.end());
  if (depth < 1 || depth > type.rank() || p.type(updates).shape != wanted || p.type(updates).dtype != type.dtype)
    return p.fail(kInferFailed, "indices " + text_of(at) + " and updates " + text_of(p.type(updates)) + " do not fit " + text_of(type));
  return written(p, "tensor_scatter", x, index, updates, myc_tensor_scatter_attrs{reduction});
}

namespace {

int all_of(Planner& p, int value, const std::vector<int64_t>& shape) {  // one number in every place
  for (const int64_t n : shape)
    if (n < 0) return p.fail(kOperatorAttribute, "the shape has " + std::to_string(n));
  if (!p.ok()) return 0;
  if (shape.size() > MYC_MAX_RANK) return p.fail(kOperatorAttribute, "the shape has " + std::to_string(shape.size()) + " axes");
  return p.emit("broadcast_to", {p.view(value, {})}, myc_broadcast_to_attrs{ints(p, shape)}, Type{p.type(value).dtype, shape});
}

int in_int32(Planner& p, int value) {
  const Type type = p.type(value);
  return type.dtype == MYC_I32 ? value : p.emit("cast", {value}, myc_cast_attrs{MYC_I32}, Type{MYC_I32, type.shape});
}

}  // namespace

OPERATOR(ScatterNd) {  // indices, updates, shape; what comes to one place is added up
  const int index = p.input(0), updates = p.input(1);
  const std::vector<int64_t> shape = p.integers(p.input(2), "the shape");
  if (p.ok()) p.set_output(0, scattered(p, all_of(p, p.scalar(p.type(updates).dtype, 0), shape), index, updates, kAdd));
}

OPERATOR(ScatterNdUpdate) { p.set_output(0, scattered(p, p.input(0), p.input(1), p.input(2), kUpdate)); }
OPERATOR(TensorScatterAdd) { p.set_output(0, scattered(p, p.input(0), p.input(1), p.input(2), kAdd)); }

int scattered_along(Planner& p, int x, int index, int updates, int64_t along, int64_t reduction) {
  if (!p.ok()) return 0;
  const Type type = p.type(x), at = p.type(index);
  const int axis = axis_of(p, along, type.rank());
  if (!p.ok() || !are_places(p, index)) return 0;
  bool fine = at.rank() == type.rank() && p.type(updates).shape == at.shape && p.type(updates).dtype == type.dtype;
  for (int d = 0; d < type.rank() && fine; ++d) fine = d == axis || at.shape[d] <= type.shape[d];
  if (!fine) return p.fail(kInferFailed, "indices " + text_of(at) + " and updates " + text_of(p.type(updates)) + " do not fit " + text_of(type));
  return written(p, "scatter_elements", x, index, updates, myc_scatter_elements_attrs{axis, reduction});
}

OPERATOR(ScatterElements) {
  p.set_output(0, scattered_along(p, p.input(0), p.input(1), p.input(2), p.node().attributes.get<int64_t>(kScatterElements_axis), kUpdate));
}

OPERATOR(SparseToDense) {  // places, the shape, their elements or one for all, the element elsewhere
  int index = p.input(0), values = p.input(2);
  const int elsewhere = p.input(3);
  const std::vector<int64_t> shape = p.integers(p.input(1), "the shape");
  if (!p.ok()) return;
  const Type at = p.type(index);
  const int64_t depth = static_cast<int64_t>(shape.size());
  if (at.rank() > 2 || depth < 1 || element_count(at.shape) % depth || (at.rank() == 2 && at.shape[1] != depth))
    p.fail(kInferFailed, "places " + text_of(at) + " in " + std::to_string(depth) + " dimensions");
  if (p.ok() && element_count(p.type(elsewhere).shape) != 1) p.fail(kInferFailed, "the element elsewhere is " + text_of(p.type(elsewhere)));
  if (!p.ok()) return;
  const int64_t count = element_count(at.shape) / depth;
  index = p.view(index, {count, depth});
  values = element_count(p.type(values).shape) == 1 ? all_of(p, values, {count}) : p.view(values, {count});
  p.set_output(0, scattered(p, all_of(p, elsewhere, shape), index, values, kUpdate));
}

OPERATOR(UnsortedSegmentSum) {  // rows, the segment of each, how many segments
  const int x = p.input(0), index = p.input(1);
  const int64_t count = number_of(p, p.input(2), "the number of segments");
  if (!p.ok()) return;
  const Type type = p.type(x), at = p.type(index);
  if (at.rank() < 1 || at.rank() > type.rank() || !std::equal(at.shape.begin(), at.shape.end(), type.shape.begin()) || count < 0) {
    p.fail(kInferFailed, "segments " + text_of(at) + " of " + text_of(type));
    return;
  }
  std::vector<int64_t> shape{count}, places = at.shape;
  shape.insert(shape.end(), type.shape.begin() + at.rank(), type.shape.end());
  places.push_back(1);
  p.set_output(0, scattered(p, all_of(p, p.scalar(type.dtype, 0), shape), p.view(index, places), x, kAdd));
}

OPERATOR(SparseSegmentSum) {  // sums of the rows that `index` names, by segments in rising order
  const int x = p.input(0), index = p.input(1);
  const std::vector<int64_t> segments = p.integers(p.input(2), "the segments");
  if (!p.ok() || !are_places(p, index)) return;
  const Type type = p.type(x);
  const int64_t n = static_cast<int64_t>(segments.size());
  if (type.rank() < 1 || p.type(index).shape != std::vector<int64_t>{n} || !std::is_sorted(segments.begin(), segments.end()) || (n && segments[0] < 0)) {
    p.fail(kInferFailed, "segments of rows " + text_of(p.type(index)) + " of " + text_of(type));
    return;
  }
  Type rows = type, out = type;
  rows.shape[0] = n, out.shape[0] = n ? segments.back() + 1 : 0;
  const int taken = p.emit("gather", {x, index}, myc_gather_attrs{0, 0}, rows);
  const int places = p.made_constant({MYC_I64, {n, 1}}, segments.data());
  p.set_output(0, scattered(p, all_of(p, p.scalar(type.dtype, 0), out.shape), places, taken, kAdd));
}

OPERATOR(EmbeddingLookupFusion) {  // tables one after the other, then the rows wanted; long rows are shortened to max_norm
  std::vector<int> tables;
  for (size_t i = 0; i + 1 < p.node().inputs.size(); ++i) tables.push_back(p.input(i));
  if (tables.empty()) p.fail(kInferFailed, "it has no tables");
  const double most = p.node().attributes.get<float>(kEmbeddingLookupFusion_max_norm);
  const int index = p.input(tables.size());
  if (!p.ok() || !are_places(p, index)) return;
  Type all = p.type(tables[0]);
  for (size_t i = 1; i < tables.size() && p.ok(); ++i) {
    const Type more = p.type(tables[i]);
    if (more.dtype != all.dtype || more.rank() != all.rank() || more.rank() < 1 || !std::equal(more.shape.begin() + 1, more.shape.end(), all.shape.begin() + 1))
      p.fail(kInferFailed, "a table " + text_of(more) + " behind " + text_of(all));
    else all.shape[0] += more.shape[0];
  }
  if (p.ok() && all.rank() < 1) p.fail(kInferFailed, "a table " + text_of(all));
  if (!p.ok()) return;
  int table = tables.size() == 1 ? tables[0] : p.emit("concat", tables, myc_concat_attrs{0}, all);
  const Type at = p.type(index);
  Type out{all.dtype, at.shape};
  out.shape.insert(out.shape.end(), all.shape.begin() + 1, all.shape.end());
  int y = p.emit("gather", {table, index}, myc_gather_attrs{0, 0}, out);
  if (most != 0) {
    Type norms = out;
    myc_sum_attrs sum{1, {}, 1, 0, 0};
    for (int d = at.rank(); d < out.rank(); ++d) sum.dim.v[sum.dim.n++] = d, norms.shape[d] = 1;
    const int norm = p.emit("sqrt", {p.emit("sum", {p.emit("square", {y}, out)}, sum, norms)}, norms);
    const int factor = p.emit("minimum", {p.emit("div", {p.scalar(out.dtype, most), norm}, norms), p.scalar(out.dtype, 1)}, norms);
    y = p.emit("mul", {y, factor}, out);
  }
  p.set_output(0, y);
}

OPERATOR(ReverseSequence) {  // x, and how many elements along an axis are turned round in each slice of another one
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  int lengths = p.input(1);
  const Type type = p.type(x);
  const int along = axis_of(p, a.get<int64_t>(kReverseSequence_seq_dim), type.rank());
  const int batch = axis_of(p, a.get<int64_t>(kReverseSequence_batch_dim), type.rank());
  if (!p.ok() || !are_places(p, lengths)) return;
  if (along == batch || p.type(lengths).shape != std::vector<int64_t>{type.shape[batch]}) {
    p.fail(kInferFailed, "lengths " + text_of(p.type(lengths)) + " of " + text_of(type));
    return;
  }
  lengths = p.emit("cast", {lengths}, myc_cast_attrs{MYC_I64}, Type{MYC_I64, p.type(lengths).shape});
  p.set_output(0, p.emit("reverse_sequence", {x, lengths}, ReverseAttributes{along, batch}, type));
}

OPERATOR(Unique) {  // the distinct elements in the order in which they come, and which of them each is
  const int x = p.input(0);
  if (!p.ok()) return;
  const Type type = p.type(x), all{MYC_I64, {element_count(type.shape)}};
  if (type.dtype != MYC_F32 && type.dtype != MYC_I32 && type.dtype != MYC_I64) p.fail(kNotSupported, "distinct elements of " + text_of(type));
  const std::vector<int> made = p.emit_all("distinct", {x}, TakeAttributes{-1}, {Type{MYC_I64, {1}}, all, all, all});
  const int64_t n = number_of(p, made[0], "the number of distinct elements");
  if (!p.ok()) return;
  const int places = p.emit("take_rows", {made[1]}, Type{MYC_I64, {n}});
  p.set_output(0, p.emit("gather", {p.view(x, all.shape), places}, myc_gather_attrs{0, 0}, Type{type.dtype, {n}}));
  if (p.node().outputs.size() > 1) p.set_output(1, in_int32(p, made[2]));
}

namespace {

int rows_of_places(Planner& p, int x) {  // [count, rank]
  const int places = places_of(p, x);
  return p.ok() ? in_int32(p, p.turned(places, {1, 0})) : 0;
}

// condition ? a : b, all broadcast.
void select(Planner& p) {
  const int condition = p.input(0), a = p.input(1), b = p.input(2);
  if (p.type(condition).dtype != MYC_BOOL) p.fail(kNotSupported, "the condition must be bool, but is " + text_of(p.type(condition)));
  Type out = broadcast(p, p.type(a), p.type(b));
  out = broadcast(p, out, {out.dtype, p.type(condition).shape});
  p.set_output(0, p.emit("where", {condition, a, b}, out));
}

}  // namespace

OPERATOR(Select) { select(p); }

OPERATOR(Where) {  // condition ? a : b; of a condition alone the places where it holds
  if (p.node().inputs.size() == 1) p.set_output(0, rows_of_places(p, p.input(0)));
  else select(p);
}

OPERATOR(NonZero) {
  const int places = p.input(0);
  if (p.ok()) p.set_output(0, in_int32(p, places_of(p, places)));
}

// ---- sparse tensors: places [n, rank] in rising order, elements [n] and a shape

OPERATOR(SparseReshape) {  // places, shape, new shape
  const int index = p.input(0);
  const std::vector<int64_t> places = p.integers(index, "the places"), from = p.integers(p.input(1), "the shape");
  std::vector<int64_t> to = p.integers(p.input(2), "the new shape");
  if (!p.ok() || !are_places(p, index)) return;
  const int64_t count = element_count(from), rank = static_cast<int64_t>(from.size());
  const auto open = std::find(to.begin(), to.end(), -1);
  if (open != to.end()) {
    *open = 1;
    const int64_t known = element_count(to);
    *open = known > 0 ? count / known : 0;
  }
  if (count < 0 || element_count(to) != count || p.type(index).shape != std::vector<int64_t>{rank ? static_cast<int64_t>(places.size()) / rank : 0, rank}) {
    p.fail(kInferFailed, "places " + text_of(p.type(index)) + " do not fit the shapes");
    return;
  }
  std::vector<int32_t> moved, shape(to.begin(), to.end());
  for (size_t i = 0; i < places.size(); i += from.size()) {
    int64_t at = 0;
    for (size_t d = 0; d < from.size(); ++d) {
      if (places[i + d] < 0 || places[i + d] >= from[d]) p.fail(kOperatorAttribute, "place " + std::to_string(places[i + d]) + " is not in axis " + std::to_string(d));
      at = at * from[d] + places[i + d];
    }
    for (size_t d = 0; d < to.size(); ++d) {
      const int64_t rest = element_count({to.begin() + static_cast<int64_t>(d) + 1, to.end()});
      moved.push_back(static_cast<int32_t>(rest ? at / rest % std::max<int64_t>(to[d], 1) : 0));
    }
  }
  if (!p.ok()) return;
  p.set_output(0, p.made_constant({MYC_I32, {p.type(index).shape[0], static_cast<int64_t>(to.size())}}, moved.data()));
  if (p.node().outputs.size() > 1) p.set_output(1, p.made_constant({MYC_I32, {static_cast<int64_t>(to.size())}}, shape.data()));
}

OPERATOR(SparseFillEmptyRows) {  // places, elements, shape, what fills; results: places, elements, which rows were empty, where each went
  const int index = p.input(0), values = p.input(1), filler = p.input(3);
  const std::vector<int64_t> places = p.integers(index, "the places"), shape = p.integers(p.input(2), "the shape");
  if (!p.ok() || !are_places(p, index)) return;
  const int64_t rank = static_cast<int64_t>(shape.size()), n = rank ? static_cast<int64_t>(places.size()) / rank : 0;
  const bool fits = rank > 0 && shape[0] >= 0 && shape[0] < (1 << 24) && p.type(index).shape == std::vector<int64_t>{n, rank} &&
                    p.type(values).shape == std::vector<int64_t>{n} && element_count(p.type(filler).shape) == 1;
  if (!fits || p.type(filler).dtype != p.type(values).dtype) {
    p.fail(kInferFailed, "places " + text_of(p.type(index)) + " and elements " + text_of(p.type(values)));
    return;
  }
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(shape[0]));
  for (int64_t i = 0; i < n; ++i) {
    if (places[i * rank] < 0 || places[i * rank] >= shape[0]) {
      p.fail(kOperatorAttribute, "row " + std::to_string(places[i * rank]) + " is not one of " + std::to_string(shape[0]));
      return;
    }
    rows[places[i * rank]].push_back(i);
  }
  std::vector<int32_t> found, order, went(static_cast<size_t>(n));
  std::vector<uint8_t> empty;
  for (int64_t r = 0; r < shape[0]; ++r) {
    empty.push_back(rows[r].empty());
    if (rows[r].empty()) rows[r].push_back(n);
    for (const int64_t i : rows[r]) {
      if (i < n) went[i] = static_cast<int32_t>(order.size());
      order.push_back(static_cast<int32_t>(i));
      for (int64_t d = 0; d < rank; ++d) found.push_back(static_cast<int32_t>(i < n ? places[i * rank + d] : d ? 0 : r));
    }
  }
  const int64_t m = static_cast<int64_t>(order.size());
  const Type type{p.type(values).dtype, {n + 1}};
  const int all = p.emit("concat", {values, p.view(filler, {1})}, myc_concat_attrs{0}, type);
  const int results[] = {p.made_constant({MYC_I32, {m, rank}}, found.data()),
                         p.emit("gather", {all, p.made_constant({MYC_I32, {m}}, order.data())}, myc_gather_attrs{0, 0}, Type{type.dtype, {m}}),
                         p.made_constant({MYC_BOOL, {shape[0]}}, empty.data()), p.made_constant({MYC_I32, {n}}, went.data())};
  for (size_t i = 0; i < std::min<size_t>(4, p.node().outputs.size()); ++i) p.set_output(i, results[i]);
}

OPERATOR(RaggedRange) {  // first, limit and step of each row; results: where rows begin, and all numbers
  std::vector<int64_t> limits[3];
  for (size_t i = 0; i < 3; ++i) {
    const int value = p.input(i);
    if (p.ok() && p.type(value).dtype != MYC_I32) p.fail(kNotSupported, "limits " + text_of(p.type(value)));
    limits[i] = p.integers(value, "a limit or step");
  }
  if (!p.ok()) return;
  size_t count = 1;
  for (const std::vector<int64_t>& each : limits) count = std::max(count, each.size());
  std::vector<int32_t> begins{0}, found;
  for (size_t i = 0; i < count && p.ok(); ++i) {
    int64_t of_row[3];
    for (int k = 0; k < 3; ++k) {
      if (limits[k].size() != count && limits[k].size() != 1) p.fail(kInferFailed, "limits and steps differ in number");
      of_row[k] = p.ok() ? limits[k][limits[k].size() == 1 ? 0 : i] : 0;
    }
    const int64_t first = of_row[0], limit = of_row[1], step = of_row[2];
    if (p.ok() && !step) p.fail(kOperatorAttribute, "a step is 0");
    for (int64_t at = first; p.ok() && (step > 0 ? at < limit : at > limit); at += step) {
      found.push_back(static_cast<int32_t>(at));
      if (found.size() > (size_t{1} << 26)) p.fail(kNotSupported, "more than 2^26 numbers");
    }
    begins.push_back(static_cast<int32_t>(found.size()));
  }
  if (!p.ok()) return;
  p.set_output(0, p.made_constant({MYC_I32, {static_cast<int64_t>(begins.size())}}, begins.data()));
  p.set_output(1, p.made_constant({MYC_I32, {static_cast<int64_t>(found.size())}}, found.data()));
}

}  // namespace mycelia::lite
