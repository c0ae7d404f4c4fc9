// Softmax of one row that stays in L1: peak, sum of exponentials, scaling.  X and Y are float or a 16-bit float.
#ifndef MYCELIA_SOFTMAX_ROW_H_
#define MYCELIA_SOFTMAX_ROW_H_

#include "reductions/sums.h"
#include "simd/math.h"

namespace mycelia::MYC_ISA {

// A vector of the row; lanes behind its end hold `fill`.
template <class X>
MYC_INLINE f32v load_or(const X* x, int64_t n, float fill) {
  return select(iota() < static_cast<int32_t>(n), load_partial(x, n), splat(fill));
}

// f(vector, index, lanes in use) over a row; lanes not in use hold `fill`.
template <class X, class F>
MYC_INLINE void for_vectors(const X* x, int64_t n, float fill, const F& f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(load(x + i), i, int64_t{kLanes});
  if (i < n) f(load_or(x + i, n - i, fill), i, n - i);
}

template <class X>
MYC_INLINE float row_max(const X* x, int64_t n) {
  f32v peak[4];
  for (f32v& p : peak) p = splat(-INFINITY);
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    // NaN is passed over here and comes back through the exponentials.
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) peak[k] = max_or_second(load(x + i + k * kLanes), peak[k]);
  }
  for_vectors(x + i, n - i, -INFINITY, [&](f32v v, int64_t, int64_t) { peak[0] = max_or_second(v, peak[0]); });
  return horizontal_max(max_or_second(max_or_second(peak[0], peak[1]), max_or_second(peak[2], peak[3])));
}

// y = exp(x - peak) if `keep`; returns the sum. Meanwhile what lies `next` floats behind x and y is fetched if that
// is not 0, the row that comes after this one: exponentials leave the memory idle.
template <bool keep, class X>
MYC_INLINE float row_exp_sum(const X* x, float* y, int64_t n, float peak, int64_t next = 0) {
  f32v sum = {};
  const f32v shift = splat(peak);
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    if (next) {
      __builtin_prefetch(x + i + next);
      if (keep) __builtin_prefetch(y + i + next, 1);
    }
    f32v e[2];
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      e[k] = exp_of_negative(load(x + i + k * kLanes) - shift);
      if (keep) store(y + i + k * kLanes, e[k]);
    }
    sum += e[0] + e[1];
  }
  for_vectors(x + i, n - i, peak, [&](f32v v, int64_t j, int64_t lanes) {
    const f32v e = exp_of_negative(v - shift);
    if (keep) store_lanes(y + i + j, e, lanes);
    sum += keep_lanes(e, lanes);
  });
  return horizontal_sum(sum);
}

// The exponentials wait in `row`, n floats, which is y where that takes floats.
template <class X, class Y>
MYC_INLINE void softmax_row(const X* x, float* row, Y* y, int64_t n) {
  const float total = row_exp_sum<true>(x, row, n, row_max(x, n), n);  // subtracting the peak keeps exp() finite
  const float scale = 1.0f / total;
  int64_t i = 0;
  if (sizeof(Y) != sizeof(float) && scale == scale)  // no result is NaN, which makes rounding to 16 bits cheaper
    for (; i + kLanes <= n; i += kLanes) store_numbers(y + i, load(row + i) * scale);
  map(row + i, y + i, n - i, [=](f32v v) { return v * scale; });
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_SOFTMAX_ROW_H_
