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

// 16-bit floats: float32 runs along, what is written is rounded.
template <class T, class Step>
MYC_INLINE int32_t scan_narrow(const myc_call* call, int64_t axis, bool reverse, const Step& step) {
  const AxisView v = around_axis(input(call), axis);
  const T* x = in<T>(call);
  T* y = out<T>(call);
  if (input(call).size == 0) return MYC_OK;
  if (v.inner == 1 && v.n <= kHalfBlock) {  // whole rows, as many as are worth a conversion
    const int64_t each = kHalfBlock / v.n;
    parallel_rows(call, ceil_div(v.outer, each), kHalfBlock * 8, [&](int64_t part) {
      const int64_t first = part * each, rows = min(each, v.outer - first);
      float block[kHalfBlock];
      widen(x + first * v.n, block, rows * v.n);
      const int64_t stride = reverse ? -1 : 1;
      for (int64_t r = 0; r < rows; ++r) {
        float* at = block + r * v.n + (reverse ? v.n - 1 : 0);
        float total = *at;
        for (int64_t j = 1; j < v.n; ++j) at[j * stride] = total = step(total, at[j * stride]);
      }
      narrow(block, y + first * v.n, rows * v.n);
    });
    return MYC_OK;
  }
  const int64_t strips = ceil_div(v.inner, kHalfBlock);  // of columns, whose running values stay in L1
  parallel_rows(call, v.outer * strips, v.n * min(v.inner, kHalfBlock) * 8, [&](int64_t strip) {
    const int64_t column = strip % strips * kHalfBlock, start = strip / strips * v.n * v.inner + column;
    float block[kHalfBlock], row[kHalfBlock];
    if (v.inner == 1) {
      float total = 0;
      for (int64_t done = 0; done < v.n; done += kHalfBlock) {
        const int64_t m = min(kHalfBlock, v.n - done), at = start + (reverse ? v.n - done - m : done);
        const int64_t first = reverse ? m - 1 : 0, stride = reverse ? -1 : 1;
        widen(x + at, block, m);
        int64_t j = 0;
        if (done == 0) total = block[first], j = 1;
        for (; j < m; ++j) block[first + j * stride] = total = step(total, block[first + j * stride]);
        narrow(block, y + at, m);
      }
      return;
    }
    const int64_t width = min(kHalfBlock, v.inner - column);
    for (int64_t i = 0; i < v.n; ++i) {
      const int64_t at = start + (reverse ? v.n - 1 - i : i) * v.inner;
      if (i == 0) {
        widen(x + at, row, width);
      } else {
        widen(x + at, block, width);
        for (int64_t j = 0; j < width; ++j) row[j] = step(row[j], block[j]);
      }
      narrow(row, y + at, width);
    }
  });
  return MYC_OK;
}

template <class Step>
MYC_INLINE int32_t scan_floats(const myc_call* call, int64_t axis, bool reverse, const Step& step) {
  if constexpr (kTakes16Bits) {
    if (input(call).dtype == MYC_F16) return scan_narrow<Half>(call, axis, reverse, step);
    if (input(call).dtype == MYC_BF16) return scan_narrow<Brain>(call, axis, reverse, step);
  }
  return scan<float>(call, axis, reverse, step);
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

KERNEL_FN(cumsum, f32) {
  const auto& a = attrs<myc_cumsum_attrs>(call);
  return scan_floats(call, a.axis, a.reverse != 0, RunningSum{});
}
KERNEL_FN(cumprod, f32) { return scan_floats(call, attrs<myc_cumprod_attrs>(call).axis, false, RunningProduct{}); }

// Integers as unsigned numbers, whose overflow is defined.
#define SCANS(suffix, T)                                                                \
  KERNEL_FN(cumsum, suffix) {                                                           \
    const auto& a = attrs<myc_cumsum_attrs>(call);                                      \
    return scan<T>(call, a.axis, a.reverse != 0, RunningSum{});                         \
  }                                                                                     \
  KERNEL_FN(cumprod, suffix) {                                                          \
    return scan<T>(call, attrs<myc_cumprod_attrs>(call).axis, false, RunningProduct{}); \
  }

SCANS(f64, double)
SCANS(i32, uint32_t)
SCANS(i64, uint64_t)

}  // namespace mycelia::MYC_ISA
