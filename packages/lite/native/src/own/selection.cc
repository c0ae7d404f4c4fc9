// Results whose sizes depend on data: a kernel counts first, a second one writes.
#include <algorithm>
#include <cstring>
#include <vector>

#include "own.h"

namespace mycelia::lite {

namespace {

int64_t bytes_of(int32_t dtype) {
  switch (dtype) {
    case MYC_BOOL:
    case MYC_I8:
    case MYC_U8: return 1;
    case MYC_I16:
    case MYC_U16:
    case MYC_F16:
    case MYC_BF16: return 2;
    case MYC_I32:
    case MYC_U32:
    case MYC_F32: return 4;
    default: return 8;
  }
}

// Whether an element is not 0; a float's sign does not count.
bool is_set(const myc_tensor& x, int64_t i) {
  const uint8_t* at = static_cast<const uint8_t*>(x.data) + i * bytes_of(x.dtype);
  switch (x.dtype) {
    case MYC_F16:
    case MYC_BF16: {
      uint16_t v;
      std::memcpy(&v, at, 2);
      return v & 0x7fff;
    }
    case MYC_F32: return *reinterpret_cast<const float*>(at) != 0;
    case MYC_F64: return *reinterpret_cast<const double*>(at) != 0;
    default:
      for (int64_t b = 0; b < bytes_of(x.dtype); ++b)
        if (at[b]) return true;
      return false;
  }
}

}  // namespace

int32_t own_count_nonzero_any(const myc_call* call) {
  int64_t count = 0;
  for (int64_t i = 0; i < call->in[0]->size; ++i) count += is_set(*call->in[0], i);
  *out<int64_t>(call) = count;
  return MYC_OK;
}

// The places [rank, count] of what is not 0, in order.
int32_t own_nonzero_any(const myc_call* call) {
  const myc_tensor &x = *call->in[0], &y = *call->out[0];
  const int64_t count = y.shape[1];
  int64_t found = 0;
  for (int64_t i = 0; i < x.size && found < count; ++i) {
    if (!is_set(x, i)) continue;
    int64_t rest = i;
    for (int d = x.rank - 1; d >= 0; --d) {
      out<int64_t>(call)[d * count + found] = rest % x.shape[d];
      rest /= x.shape[d];
    }
    ++found;
  }
  return MYC_OK;
}

namespace {

// Blocks of a tensor along an axis as rows of bytes with an order.
struct Rows {
  const myc_tensor& x;
  int64_t count, before, after, item;

  Rows(const myc_tensor& x, int64_t axis) : x(x), count(1), before(1), after(1), item(bytes_of(x.dtype)) {
    if (axis < 0) {
      count = x.size;
      return;
    }
    count = x.shape[axis];
    for (int d = 0; d < x.rank; ++d) (d < axis ? before : after) *= d == axis ? 1 : x.shape[d];
  }

  const uint8_t* at(int64_t row, int64_t k) const {
    return static_cast<const uint8_t*>(x.data) + ((k / after * count + row) * after + k % after) * item;
  }

  template <class T>
  int compared(int64_t a, int64_t b) const {
    for (int64_t k = 0; k < before * after; ++k) {
      T p, q;
      std::memcpy(&p, at(a, k), sizeof(T));
      std::memcpy(&q, at(b, k), sizeof(T));
      const bool p_nan = p != p, q_nan = q != q;  // those come last and are all the same
      if (p < q || (!p_nan && q_nan)) return -1;
      if (q < p || (p_nan && !q_nan)) return 1;
    }
    return 0;
  }

  int compare(int64_t a, int64_t b) const {
    switch (x.dtype) {
      case MYC_BOOL:
      case MYC_U8: return compared<uint8_t>(a, b);
      case MYC_I8: return compared<int8_t>(a, b);
      case MYC_I16: return compared<int16_t>(a, b);
      case MYC_U16: return compared<uint16_t>(a, b);
      case MYC_I32: return compared<int32_t>(a, b);
      case MYC_U32: return compared<uint32_t>(a, b);
      case MYC_I64: return compared<int64_t>(a, b);
      case MYC_U64: return compared<uint64_t>(a, b);
      case MYC_F32: return compared<float>(a, b);
      default: return compared<double>(a, b);
    }
  }
};

}  // namespace

// The distinct rows of x along an axis (-1: elements): how many; the first place of each; for each row which of them it is;
// how often each comes. Ordered by value, or as they first come. The attribute axis: axis + 1, negative if unsorted.
int32_t own_distinct_any(const myc_call* call) {
  const int64_t given = attrs<TakeAttributes>(call).axis;
  const bool sorted = given >= 0;
  const Rows rows(*call->in[0], sorted ? given - 1 : -given - 2);
  std::vector<int64_t> order(static_cast<size_t>(rows.count));
  for (int64_t i = 0; i < rows.count; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return rows.compare(a, b) < 0; });
  std::vector<int64_t> first, group(order.size()), counts;
  for (size_t i = 0; i < order.size(); ++i) {
    if (!i || rows.compare(order[i - 1], order[i]) != 0) first.push_back(order[i]), counts.push_back(0);
    group[order[i]] = static_cast<int64_t>(first.size()) - 1;
    ++counts.back();
  }
  std::vector<int64_t> rank(first.size()), by(first.size());
  for (size_t i = 0; i < by.size(); ++i) by[i] = static_cast<int64_t>(i);
  if (!sorted) std::sort(by.begin(), by.end(), [&](int64_t a, int64_t b) { return first[a] < first[b]; });
  for (size_t i = 0; i < by.size(); ++i) rank[by[i]] = static_cast<int64_t>(i);
  *out<int64_t>(call, 0) = static_cast<int64_t>(first.size());
  for (size_t i = 0; i < by.size(); ++i) out<int64_t>(call, 1)[i] = first[by[i]], out<int64_t>(call, 3)[i] = counts[by[i]];
  for (size_t i = by.size(); i < order.size(); ++i) out<int64_t>(call, 1)[i] = out<int64_t>(call, 3)[i] = 0;
  for (size_t i = 0; i < group.size(); ++i) out<int64_t>(call, 2)[i] = rank[group[i]];
  return MYC_OK;
}

// The first elements of a vector, as many as the result has.
int32_t own_take_rows_any(const myc_call* call) {
  std::memcpy(call->out[0]->data, call->in[0]->data, static_cast<size_t>(call->out[0]->size * bytes_of(call->out[0]->dtype)));
  return MYC_OK;
}

namespace {

struct Box {
  float top, left, bottom, right;
  float area() const { return (bottom - top) * (right - left); }
};

Box box_of(const float* at, bool center) {
  if (center) return {at[1] - at[3] / 2, at[0] - at[2] / 2, at[1] + at[3] / 2, at[0] + at[2] / 2};
  return {std::min(at[0], at[2]), std::min(at[1], at[3]), std::max(at[0], at[2]), std::max(at[1], at[3])};
}

bool overlaps(const Box& a, const Box& b, double threshold) {
  const float h = std::min(a.bottom, b.bottom) - std::max(a.top, b.top), w = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(h > 0 && w > 0) || !(a.area() > 0 && b.area() > 0)) return false;
  const float both = h * w;
  return both / (a.area() + b.area() - both) > static_cast<float>(threshold);
}

}  // namespace

// boxes [N, B, 4], scores [N, C, B] -> how many are selected, and (image, class, box) of each in [N * C * most, 3].
int32_t own_nms_f32(const myc_call* call) {
  NmsAttributes a = attrs<NmsAttributes>(call);
  if (const float* overlap = in<float>(call, 2)) a.overlap = *overlap;
  if (const float* score = in<float>(call, 3)) a.score = *score, a.with_score = 1;
  const int64_t boxes = call->in[0]->shape[1], classes = call->in[1]->shape[1];
  int64_t found = 0;
  int64_t* selected = out<int64_t>(call, 1);
  for (int64_t pair = 0; pair < call->in[1]->shape[0] * classes; ++pair) {
    const float* scores = in<float>(call, 1) + pair * boxes;
    const float* places = in<float>(call, 0) + pair / classes * boxes * 4;
    std::vector<int64_t> order;
    for (int64_t i = 0; i < boxes; ++i)
      if (!a.with_score || scores[i] > static_cast<float>(a.score)) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) { return scores[p] > scores[q]; });
    std::vector<Box> kept;
    for (const int64_t i : order) {
      if (static_cast<int64_t>(kept.size()) >= a.most) break;
      const Box box = box_of(places + i * 4, a.center);
      if (std::any_of(kept.begin(), kept.end(), [&](const Box& other) { return overlaps(box, other, a.overlap); })) continue;
      kept.push_back(box);
      selected[found * 3] = pair / classes, selected[found * 3 + 1] = pair % classes, selected[found * 3 + 2] = i;
      ++found;
    }
  }
  *out<int64_t>(call, 0) = found;
  std::fill(selected + found * 3, selected + call->out[1]->size, 0);
  return MYC_OK;
}

}  // namespace mycelia::lite
