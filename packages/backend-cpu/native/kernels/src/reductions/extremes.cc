// Places of extremes along one axis, and the scatter that is their gradient.  A NaN counts as the extreme; of
// equals the first wins.  One read of the input (rows in L1 are read twice).
#include "elementwise/elementwise.h"

namespace mycelia::MYC_ISA {

namespace {

// Whether `a` beats `b`, which came before it.
struct Larger {
  template <class T>
  static MYC_INLINE bool beats(T a, T b) {
    return a > b || (a != a && b == b);
  }
  static MYC_INLINE f32v step(f32v a, f32v b) { return maximum(a, b); }
  static MYC_INLINE float across(f32v v) { return horizontal_max(v); }
};
struct Smaller {
  template <class T>
  static MYC_INLINE bool beats(T a, T b) {
    return a < b || (a != a && b == b);
  }
  static MYC_INLINE f32v step(f32v a, f32v b) { return minimum(a, b); }
  static MYC_INLINE float across(f32v v) { return horizontal_min(v); }
};

// Two passes over a row: the extreme on vectors, then where it first stands.
template <class Order>
int64_t place_in_row(const float* x, int64_t n) {
  if (n < 2 * kLanes) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; ++i) {
      if (Order::beats(x[i], x[best])) best = i;
    }
    return best;
  }
  f32v peak = load(x);
  for (int64_t i = kLanes; i + kLanes <= n; i += kLanes) peak = Order::step(peak, load(x + i));
  peak = Order::step(peak, load(x + n - kLanes));
  const float extreme = Order::across(peak);
  const bool nan = extreme != extreme;
  for (int64_t i = 0;; i += kLanes) {
    const int64_t from = min(i, n - kLanes);
    const f32v v = load(x + from);
    const i32v hit = nan ? is_nan(v) : v == extreme;
    if (!any(hit)) continue;
    for (int64_t j = from;; ++j) {
      if (nan ? x[j] != x[j] : x[j] == extreme) return j;
    }
  }
}
template <class Order, class T>
int64_t place_in_row(const T* x, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i) {
    if (Order::beats(x[i], x[best])) best = i;
  }
  return best;
}

// Places along the middle of [outer, n, inner]; values may be null.
template <class Order, class T>
void places(const myc_call* call, AxisView v, const T* x, T* values, int64_t* at) {
  if (v.inner == 1) {
    return parallel_rows(call, v.outer, v.n * sizeof(T) * 2, [&](int64_t o) {
      at[o] = place_in_row<Order>(x + o * v.n, v.n);
      if (values != nullptr) values[o] = x[o * v.n + at[o]];
    });
  }
  parallel_rows(call, v.outer, v.n * v.inner * 8, [&](int64_t o) {
    constexpr int64_t strip = 512;  // columns whose best values and places stay in L1
    T best[strip];
    const T* block = x + o * v.n * v.inner;
    for (int64_t from = 0; from < v.inner; from += strip) {
      const int64_t width = min(strip, v.inner - from);
      int64_t* place = at + o * v.inner + from;
      for (int64_t j = 0; j < width; ++j) best[j] = block[from + j], place[j] = 0;
      for (int64_t r = 1; r < v.n; ++r) {
        const T* row = block + r * v.inner + from;
        for (int64_t j = 0; j < width; ++j) {
          const bool better = Order::beats(row[j], best[j]);
          best[j] = better ? row[j] : best[j];
          place[j] = better ? r : place[j];
        }
      }
      if (values != nullptr) memcpy(values + o * v.inner + from, best, width * sizeof(T));
    }
  });
}

template <class Order, class T, class Attrs>
MYC_INLINE int32_t arg_extreme(const myc_call* call) {
  const auto& a = attrs<Attrs>(call);
  if (output(call).size == 0) return MYC_OK;
  const AxisView v = a.has_axis ? around_axis(input(call), a.axis) : AxisView{1, input(call).size, 1};
  places<Order>(call, v, in<T>(call), static_cast<T*>(nullptr), out<int64_t>(call));
  return MYC_OK;
}

template <class Order, class T, class Attrs>
MYC_INLINE int32_t extreme_with_index(const myc_call* call) {
  if (output(call).size == 0) return MYC_OK;
  places<Order>(call, around_axis(input(call), attrs<Attrs>(call).axis), in<T>(call), out<T>(call),
                out<int64_t>(call, 1));
  return MYC_OK;
}

}  // namespace

#define EXTREMES(suffix, T)                                                             \
  KERNEL_FN(argmax, suffix) { return arg_extreme<Larger, T, myc_argmax_attrs>(call); }  \
  KERNEL_FN(argmin, suffix) { return arg_extreme<Smaller, T, myc_argmin_attrs>(call); } \
  KERNEL_FN(max_with_index, suffix) {                                                   \
    return extreme_with_index<Larger, T, myc_max_with_index_attrs>(call);               \
  }                                                                                     \
  KERNEL_FN(min_with_index, suffix) { return extreme_with_index<Smaller, T, myc_min_with_index_attrs>(call); }

EXTREMES(f32, float)
EXTREMES(i32, int32_t)
EXTREMES(i64, int64_t)

KERNEL_FN(place_along, f32_i64) {
  const auto& a = attrs<myc_place_along_attrs>(call);
  const AxisView from = around_axis(input(call), a.axis), to = around_axis(output(call), a.axis);
  const float* x = in<float>(call);
  const int64_t* place = in<int64_t>(call, 1);
  float* y = out<float>(call);
  memset(y, 0, output(call).size * sizeof(float));
  for (int64_t i = 0; i < input(call).size; ++i) {
    if (place[i] < 0 || place[i] >= to.n) {
      return fail(call, "place_along: place %lld is not in [0, %lld)", static_cast<long long>(place[i]),
                  static_cast<long long>(to.n));
    }
  }
  for (int64_t o = 0; o < from.outer; ++o) {
    for (int64_t r = 0; r < from.n; ++r) {
      for (int64_t j = 0; j < from.inner; ++j, ++x, ++place) y[(o * to.n + *place) * to.inner + j] += *x;
    }
  }
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
