// Running sums and products along one axis.  One read and one write; flops: one per element.
#include "elementwise/elementwise.h"

namespace mycelia::MYC_ISA {

namespace {

// Along the rows of [outer, n] one after another; with inner columns all of them at once.
template <class T, class Step>
MYC_INLINE int32_t scan(const myc_call* call, int64_t axis, bool reverse, const Step& step) {
  const AxisView v = around_axis(input(call), axis);
  const T* x = in<T>(call);
  T* y = out<T>(call);
  if (input(call).size == 0) return MYC_OK;
  const int64_t stride = reverse ? -v.inner : v.inner, first = reverse ? (v.n - 1) * v.inner : 0;
  parallel_rows(call, v.outer, v.n * v.inner * 2 * sizeof(T), [&](int64_t o) {
    const T* from = x + o * v.n * v.inner + first;
    T* to = y + o * v.n * v.inner + first;
    if (v.inner == 1) {
      T total = *to = *from;
      for (int64_t r = 1; r < v.n; ++r) to[r * stride] = total = step(total, from[r * stride]);
      return;
    }
    memcpy(to, from, v.inner * sizeof(T));
    for (int64_t r = 1; r < v.n; ++r) {
      const T *row = from + r * stride, *before = to + (r - 1) * stride;
      T* result = to + r * stride;
#pragma GCC ivdep
      for (int64_t j = 0; j < v.inner; ++j) result[j] = step(before[j], row[j]);
    }
  });
  return MYC_OK;
}

struct RunningSum {
  template <class T>
  MYC_INLINE T operator()(T a, T b) const {
    return a + b;
  }
};
struct RunningProduct {
  template <class T>
  MYC_INLINE T operator()(T a, T b) const {
    return a * b;
  }
};

}  // namespace

// Integers as unsigned numbers, whose overflow is defined.
#define SCANS(suffix, T)                                                                \
  KERNEL_FN(cumsum, suffix) {                                                           \
    const auto& a = attrs<myc_cumsum_attrs>(call);                                      \
    return scan<T>(call, a.axis, a.reverse != 0, RunningSum{});                         \
  }                                                                                     \
  KERNEL_FN(cumprod, suffix) {                                                          \
    return scan<T>(call, attrs<myc_cumprod_attrs>(call).axis, false, RunningProduct{}); \
  }

SCANS(f32, float)
SCANS(f64, double)
SCANS(i32, uint32_t)
SCANS(i64, uint64_t)

}  // namespace mycelia::MYC_ISA
