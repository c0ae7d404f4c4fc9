// Places of extremes along one axis, and the scatter that is their gradient.  A NaN counts as the extreme; of
// equals the first wins.  One read of the input (rows in L1 are read twice).  16-bit floats are widened on the way.
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

// An integer, or a float as float32.
template <class T>
MYC_INLINE T number_of(T x) {
  return x;
}
MYC_INLINE float number_of(Half x) { return widen_one(x); }
MYC_INLINE float number_of(Brain x) { return widen_one(x); }

template <class Order, class T>
MYC_INLINE int64_t place_by_one(const T* x, int64_t n) {
  int64_t best = 0;
  auto extreme = number_of(x[0]);
  for (int64_t i = 1; i < n; ++i) {
    const auto v = number_of(x[i]);
    if (Order::beats(v, extreme)) best = i, extreme = v;
  }
  return best;
}

// Two passes over a row: the extreme on vectors, then where it first stands.
template <class Order, class T>
MYC_INLINE int64_t place_by_vectors(const T* x, int64_t n) {
  if (n < 2 * kLanes) return place_by_one<Order>(x, n);
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
      const float one = widen_one(x[j]);
      if (nan ? one != one : one == extreme) return j;
    }
  }
}

template <class T>
constexpr bool is_integer = false;
template <>
constexpr bool is_integer<int32_t> = true;
template <>
constexpr bool is_integer<int64_t> = true;

template <class Order, class T>
int64_t place_in_row(const T* x, int64_t n) {
  if constexpr (is_integer<T>) return place_by_one<Order>(x, n);
  else return place_by_vectors<Order>(x, n);
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
    using Wide = decltype(number_of(T{}));
    constexpr bool widens = sizeof(Wide) != sizeof(T);
    Wide best[strip], wide[widens ? strip : 1];
    const T* block = x + o * v.n * v.inner;
    for (int64_t from = 0; from < v.inner; from += strip) {
      const int64_t width = min(strip, v.inner - from);
      int64_t* place = at + o * v.inner + from;
      for (int64_t j = 0; j < width; ++j) best[j] = number_of(block[from + j]), place[j] = 0;
      for (int64_t r = 1; r < v.n; ++r) {
        const T* from_row = block + r * v.inner + from;
        const Wide* row;
        if constexpr (widens) widen(from_row, wide, width), row = wide;
        else row = from_row;
        for (int64_t j = 0; j < width; ++j) {
          const bool better = Order::beats(row[j], best[j]);
          best[j] = better ? row[j] : best[j];
          place[j] = better ? r : place[j];
        }
      }
      if (values == nullptr) continue;
      T* to = values + o * v.inner + from;
      if constexpr (widens) narrow(best, to, width);
      else memcpy(to, best, width * sizeof(T));
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

// The type of an element, or the 16-bit one that comes in the place of float.
template <class T, class Body>
MYC_INLINE int32_t with_type(const myc_call* call, const Body& body) {
  if constexpr (is_integer<T>) return body(T{});
  else return with_float_type(input(call).dtype, body);
}

#define EXTREME(op, Order, run, suffix, T)                                                                     \
  KERNEL_FN(op, suffix) {                                                                                      \
    return with_type<T>(call, [&](auto type) { return run<Order, decltype(type), myc_##op##_attrs>(call); }); \
  }
#define EXTREMES(suffix, T)                                      \
  EXTREME(argmax, Larger, arg_extreme, suffix, T)                \
  EXTREME(argmin, Smaller, arg_extreme, suffix, T)               \
  EXTREME(max_with_index, Larger, extreme_with_index, suffix, T) \
  EXTREME(min_with_index, Smaller, extreme_with_index, suffix, T)

EXTREMES(f32, float)
EXTREMES(i32, int32_t)
EXTREMES(i64, int64_t)

// Sums of 16-bit floats wait in float32 where a place may get more than one number.
template <class T>
int32_t place_along_of(const myc_call* call) {
  const auto& a = attrs<myc_place_along_attrs>(call);
  const AxisView from = around_axis(input(call), a.axis), to = around_axis(output(call), a.axis);
  const T* x = in<T>(call);
  const int64_t* place = in<int64_t>(call, 1);
  T* y = out<T>(call);
  for (int64_t i = 0; i < input(call).size; ++i) {
    if (place[i] < 0 || place[i] >= to.n) {
      return fail(call, "place_along: place %lld is not in [0, %lld)", static_cast<long long>(place[i]),
                  static_cast<long long>(to.n));
    }
  }
  const auto add_to = [&](auto* sums) {
    for (int64_t r = 0; r < from.n; ++r)
      for (int64_t j = 0; j < from.inner; ++j, ++x, ++place) {
        auto* sum = sums + *place * to.inner + j;
        store_one(sum, widen_one(*sum) + widen_one(*x));
      }
  };
  const int64_t size = to.n * to.inner;
  if (sizeof(T) == sizeof(float) || from.n <= 1) {
    memset(y, 0, output(call).size * sizeof(T));
    for (int64_t o = 0; o < from.outer; ++o) add_to(y + o * size);
    return MYC_OK;
  }
  Scratch scratch(call);
  float* sums = scratch.take<float>(size);
  if (!sums) return MYC_E_MEMORY;
  for (int64_t o = 0; o < from.outer; ++o) {
    memset(sums, 0, size * sizeof(float));
    add_to(sums);
    narrow(sums, y + o * size, size);
  }
  return MYC_OK;
}

KERNEL_FN(place_along, f32_i64) {
  return with_float_type(output(call).dtype, [&](auto type) { return place_along_of<decltype(type)>(call); });
}

}  // namespace mycelia::MYC_ISA
