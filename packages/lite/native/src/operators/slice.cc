// Operators that cut out parts of a tensor or put a border around it.
#include <algorithm>

#include "common.h"

namespace mycelia::lite {

using namespace schema;

int sliced(Planner& p, int x, const myc_ints& begin, const myc_ints& size, const myc_ints& stride) {
  const Type type = p.type(x);
  Type out{type.dtype, {}};
  bool whole = true;
  for (int d = 0; d < type.rank(); ++d) {
    out.shape.push_back(size.v[d]);
    whole = whole && size.v[d] == type.shape[d] && stride.v[d] == 1;
  }
  return whole ? x : p.emit("strided_slice", {x}, myc_strided_slice_attrs{begin, size, stride, size}, out);
}

int sliced_along(Planner& p, int x, int axis, int64_t begin, int64_t size, int64_t stride) {
  const Type& type = p.type(x);
  myc_ints from{}, count = ints(p, type.shape), step{};
  from.n = step.n = type.rank();
  for (int d = 0; d < type.rank(); ++d) step.v[d] = 1;
  from.v[axis] = size ? begin : 0, count.v[axis] = size, step.v[axis] = stride;
  return sliced(p, x, from, count, step);
}

OPERATOR(Split) {
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  const Type type = p.type(x);
  const int axis = axis_of(p, a.get<int64_t>(kSplit_axis), type.rank());
  const int64_t parts = static_cast<int64_t>(p.node().outputs.size());
  std::vector<int64_t> sizes = numbers(a.span<int64_t>(kSplit_size_splits));
  if (!p.ok()) return;
  const int64_t n = type.shape[axis];
  if (sizes.empty() && parts && n % parts == 0) sizes.assign(parts, n / parts);
  int64_t known = 0, open = -1;
  bool fine = static_cast<int64_t>(sizes.size()) == parts;
  for (size_t i = 0; i < sizes.size() && fine; ++i) {
    if (sizes[i] == -1 && open < 0) {
      open = static_cast<int64_t>(i);
    } else {
      fine = sizes[i] >= 0 && sizes[i] <= n - known;
      known += sizes[i];
    }
  }
  if (fine && open >= 0) sizes[open] = n - known, known = n;
  if (!fine || known != n) {
    p.fail(kInferFailed, text_of(type) + " cannot be split along axis " + std::to_string(axis) + " into " + std::to_string(parts) + " parts of these sizes");
    return;
  }
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); begin += sizes[i++]) p.set_output(i, sliced_along(p, x, axis, begin, sizes[i]));
}

OPERATOR(Unstack) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const int axis = axis_of(p, p.node().attributes.get<int64_t>(kUnstack_axis), type.rank());
  if (p.ok() && type.shape[axis] != static_cast<int64_t>(p.node().outputs.size()))
    p.fail(kInferFailed, text_of(type) + " has not " + std::to_string(p.node().outputs.size()) + " parts along axis " + std::to_string(axis));
  if (!p.ok()) return;
  std::vector<int64_t> shape = type.shape;
  shape.erase(shape.begin() + axis);
  for (int64_t i = 0; i < type.shape[axis] && p.ok(); ++i) {
    const int part = sliced_along(p, x, axis, i, 1);
    p.set_output(static_cast<size_t>(i), p.view(part, shape));
  }
}

OPERATOR(SliceFusion) {  // begin and size of the axes named, of the first ones if none are
  const int x = p.input(0);
  const Type type = p.type(x);
  const std::vector<int64_t> begin = p.integers(p.input(1), "begin"), size = p.integers(p.input(2), "size");
  std::vector<int64_t> axes = numbers(p.node().attributes.span<int64_t>(kSliceFusion_axes));
  if (axes.empty())
    for (size_t i = 0; i < begin.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (begin.size() != size.size() || axes.size() != begin.size()) p.fail(kOperatorAttribute, "axes, begin and size differ in number");
  myc_ints from{}, count = ints(p, type.shape), step{};
  from.n = step.n = type.rank();
  for (int d = 0; d < type.rank(); ++d) step.v[d] = 1;
  for (size_t i = 0; i < axes.size() && p.ok(); ++i) {
    const int axis = axis_of(p, axes[i], type.rank());
    if (!p.ok()) return;
    const int64_t n = type.shape[axis], b = begin[i] < 0 ? begin[i] + n : begin[i], s = size[i] == -1 ? n - b : size[i];
    if (b < 0 || b > n || s < 0 || s > n - b) {
      p.fail(kOperatorAttribute, std::to_string(size[i]) + " elements from " + std::to_string(begin[i]) + " on do not lie in axis " + std::to_string(axis) +
                                     " of " + text_of(type));
      return;
    }
    from.v[axis] = s ? b : 0, count.v[axis] = s;
  }
  if (p.ok()) p.set_output(0, sliced(p, x, from, count, step));
}

namespace {

// The places that begin:end:stride names of n, as Python does; `open`: the end of that side.
void place(int64_t n, int64_t begin, int64_t end, int64_t stride, bool open_begin, bool open_end, int64_t* from, int64_t* size) {
  const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? n : n - 1;
  const auto within = [&](int64_t at) { return std::clamp(at < 0 ? at + n : at, low, std::max(high, low)); };
  const int64_t b = open_begin ? (stride > 0 ? low : high) : within(begin), e = open_end ? (stride > 0 ? high : low) : within(end);
  const int64_t free = stride > 0 ? e - b : b - e;
  *size = free > 0 ? (free - 1) / (stride > 0 ? stride : -stride) + 1 : 0;
  *from = *size ? b : 0;
}

}  // namespace

OPERATOR(StridedSlice) {  // x, begin, end, strides; or x, begin, end, axes, strides
  const Table& a = p.node().attributes;
  constexpr int64_t kLongest = int64_t{1} << 48;
  const int x = p.input(0);
  const Type type = p.type(x);
  const bool named = p.node().inputs.size() == 5;
  const std::vector<int64_t> begin = p.integers(p.input(1), "begin"), end = p.integers(p.input(2), "end");
  const std::vector<int64_t> stride = p.integers(p.input(named ? 4 : 3), "strides");
  const auto marked = [&](uint16_t mask, size_t i) { return i < 63 && (a.get<int64_t>(mask) >> i & 1) != 0; };
  std::vector<int64_t> axes;
  if (named) axes = p.integers(p.input(3), "the axes");
  const int64_t ellipsis = a.get<int64_t>(kStridedSlice_ellipsis_mask), inserted = a.get<int64_t>(kStridedSlice_new_axis_mask);
  if (named && (ellipsis || inserted)) p.fail(kNotSupported, "an ellipsis or a new axis among named axes");
  if (const uint64_t bits = static_cast<uint64_t>(ellipsis); bits & (bits - 1)) p.fail(kOperatorAttribute, "several ellipses");
  // What the entries stand for: an axis each, but one of size 1 that is new, or all axes that no other entry stands for.
  constexpr int64_t kNew = -1 - MYC_MAX_RANK, kRest = kNew - 1;
  if (!named) {
    int64_t others = 0, next = 0;
    for (size_t i = 0; i < begin.size(); ++i) others += !marked(kStridedSlice_ellipsis_mask, i) && !marked(kStridedSlice_new_axis_mask, i);
    for (size_t i = 0; i < begin.size(); ++i) {
      const bool rest = marked(kStridedSlice_ellipsis_mask, i);
      axes.push_back(rest ? kRest : marked(kStridedSlice_new_axis_mask, i) ? kNew : next++);
      if (rest) next += type.rank() - others;
    }
    if (others > type.rank()) p.fail(kOperatorAttribute, std::to_string(others) + " axes of " + text_of(type));
  }
  if (begin.size() != end.size() || begin.size() != stride.size() || begin.size() != axes.size() || axes.size() > 2 * MYC_MAX_RANK)
    p.fail(kOperatorAttribute, "begin, end, strides and axes do not fit " + text_of(type));
  myc_ints from{}, count = ints(p, type.shape), step{};
  from.n = step.n = type.rank();
  for (int d = 0; d < type.rank(); ++d) step.v[d] = 1;
  std::vector<bool> gone(type.shape.size());
  for (size_t i = 0; i < axes.size() && p.ok(); ++i) {
    if (axes[i] <= kNew) continue;
    const int axis = axis_of(p, axes[i], type.rank());
    if (!stride[i]) p.fail(kOperatorAttribute, "a stride is 0");
    if (!p.ok()) return;
    const int64_t n = type.shape[axis], s = std::clamp(stride[i], -kLongest, kLongest);
    if (marked(kStridedSlice_shrink_axis_mask, i)) {
      const int64_t at = begin[i] < 0 ? begin[i] + n : begin[i];
      if (at < 0 || at >= n) p.fail(kOperatorAttribute, "place " + std::to_string(begin[i]) + " is not in axis " + std::to_string(axis) + " of " + text_of(type));
      from.v[axis] = at, count.v[axis] = 1, gone[axis] = true;
    } else {
      const int64_t first = named && s < 0 ? std::max(begin[i], -n) : begin[i];  // ONNX counts from the first place then, Python not
      place(n, first, end[i], s, marked(kStridedSlice_begin_mask, i), marked(kStridedSlice_end_mask, i), &from.v[axis], &count.v[axis]);
      step.v[axis] = count.v[axis] > 1 ? s : 1;
    }
  }
  if (!p.ok()) return;
  const int part = sliced(p, x, from, count, step);
  std::vector<int64_t> shape;
  int next = 0;
  const auto keep_to = [&](int64_t axis) {
    for (; next < axis; ++next)
      if (!gone[next]) shape.push_back(count.v[next]);
  };
  for (const int64_t axis : named ? std::vector<int64_t>() : axes) {
    if (axis == kNew) shape.push_back(1);
    else if (axis != kRest) keep_to(axis + 1);
    else keep_to(next + type.rank() - std::count_if(axes.begin(), axes.end(), [](int64_t other) { return other >= 0; }));
  }
  keep_to(type.rank());
  if (p.ok()) p.set_output(0, shape == p.type(part).shape ? part : p.view(part, shape));
}

OPERATOR(PadFusion) {
  const Table& a = p.node().attributes;
  constexpr int64_t kLargest = (int64_t{1} << 31) - 1;
  const int x = p.input(0), given = p.optional_input(1);
  const Type type = p.type(x);
  std::vector<int64_t> pads;
  if (given >= 0) {
    pads = p.integers(given, "the paddings");
  } else {
    const TableSpan rows = a.table(kPadFusion_paddings).tables(kVec2D_data);
    for (uint32_t i = 0; i < rows.size() && i < MYC_MAX_RANK + 1; ++i)
      for (int64_t n : numbers(rows[i].span<int64_t>(kVec_data))) pads.push_back(n);
  }
  if (static_cast<int>(pads.size()) != 2 * type.rank()) p.fail(kOperatorAttribute, std::to_string(pads.size()) + " paddings do not fit " + text_of(type));
  for (int64_t n : pads)
    if (n < 0 || n > kLargest) p.fail(kOperatorAttribute, "a padding of " + std::to_string(n) + ", out of range");
  if (!p.ok()) return;
  const int8_t mode = a.get<int8_t>(kPadFusion_padding_mode);
  if (mode == 0) {
    Type out = type;
    for (int d = 0; d < type.rank(); ++d) out.shape[d] += pads[2 * d] + pads[2 * d + 1];
    const double value = a.get<float>(kPadFusion_constant_value);
    p.set_output(0, p.emit("pad_constant", {x}, myc_pad_constant_attrs{ints(p, pads), value}, out));
    return;
  }
  if (mode != 1 && mode != 2) p.fail(kNotSupported, "padding_mode " + std::to_string(mode) + " is unknown");
  const int64_t edge = mode == 1;  // a reflection leaves the element at the edge out
  int y = x;
  for (int d = 0; d < type.rank() && p.ok(); ++d) {
    const int64_t n = type.shape[d], before = pads[2 * d], after = pads[2 * d + 1];
    if (!before && !after) continue;
    if (before > n - edge || after > n - edge) {
      p.fail(kInferFailed, "axis " + std::to_string(d) + " of " + text_of(type) + " is too short for what it is to mirror");
      return;
    }
    std::vector<int> parts;
    if (before) parts.push_back(sliced_along(p, y, d, before - 1 + edge, before, -1));
    parts.push_back(y);
    if (after) parts.push_back(sliced_along(p, y, d, n - 1 - edge, after, -1));
    Type out = p.type(y);
    out.shape[d] = n + before + after;
    y = p.emit("concat", parts, myc_concat_attrs{d}, out);
  }
  p.set_output(0, y);
}

OPERATOR(Crop) {  // the part of x, from `axis` on, that has the shape of another tensor
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  const Type type = p.type(x), like = p.type(p.input(1));
  const std::vector<int64_t> offsets = numbers(a.span<int64_t>(kCrop_offsets));
  const int axis = axis_of(p, a.get<int64_t>(kCrop_axis), type.rank());
  if (!p.ok()) return;
  if (like.rank() != type.rank() || (offsets.size() != 1 && static_cast<int>(offsets.size()) != type.rank() - axis)) {
    p.fail(kOperatorAttribute, std::to_string(offsets.size()) + " offsets into " + text_of(type) + " for " + text_of(like));
    return;
  }
  myc_ints from{}, count = ints(p, type.shape), step{};
  from.n = step.n = type.rank();
  for (int d = 0; d < type.rank(); ++d) step.v[d] = 1;
  if (!std::equal(type.shape.begin(), type.shape.begin() + axis, like.shape.begin()))
    p.fail(kInferFailed, text_of(like) + " and " + text_of(type) + " differ before axis " + std::to_string(axis));
  for (int d = axis; d < type.rank(); ++d) {
    from.v[d] = offsets[offsets.size() == 1 ? 0 : d - axis], count.v[d] = like.shape[d];
    if (from.v[d] < 0 || from.v[d] > type.shape[d] || count.v[d] > type.shape[d] - from.v[d])
      p.fail(kOperatorAttribute, text_of(like) + " from " + std::to_string(from.v[d]) + " of axis " + std::to_string(d) + " on is not in " + text_of(type));
  }
  if (p.ok()) p.set_output(0, sliced(p, x, from, count, step));
}

OPERATOR(SplitWithOverlap) {  // parts in a ratio along an axis, which begin and end some elements further out
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  const Type type = p.type(x);
  const int axis = axis_of(p, a.get<int64_t>(kSplitWithOverlap_split_dim), type.rank());
  const std::vector<int64_t> ratio = numbers(a.span<int64_t>(kSplitWithOverlap_ratio)), top = numbers(a.span<int64_t>(kSplitWithOverlap_extend_top));
  const std::vector<int64_t> bottom = numbers(a.span<int64_t>(kSplitWithOverlap_extend_bottom));
  const size_t parts = p.node().outputs.size();
  if (p.ok() && (ratio.size() != parts || top.size() != parts || bottom.size() != parts)) p.fail(kOperatorAttribute, "ratio and extensions differ in number");
  int64_t total = 0;
  for (const int64_t part : ratio) {
    if (part < 0 || part > (1 << 20)) p.fail(kOperatorAttribute, "a ratio of " + std::to_string(part));
    total += part;
  }
  if (p.ok() && !total) p.fail(kOperatorAttribute, "ratios of 0");
  if (!p.ok()) return;
  const int64_t n = type.shape[axis];
  int64_t before = 0;
  for (size_t i = 0; i < parts && p.ok(); ++i) {
    const int64_t begin = before * n / total - top[i], end = (before += ratio[i]) * n / total + bottom[i];
    if (begin < 0 || end > n || begin > end) p.fail(kOperatorAttribute, "part " + std::to_string(i) + " does not lie in " + text_of(type));
    if (p.ok()) p.set_output(i, sliced_along(p, x, axis, begin, end - begin));
  }
}

}  // namespace mycelia::lite
