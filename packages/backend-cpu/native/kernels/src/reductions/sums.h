// Sums over contiguous floats, of 32 or 16 bits, that several families need: plain, about a mean, products.  Four chains of additions hide
// their latency; partial sums of a block meet in double precision, so that long inputs lose no digits.
#ifndef MYCELIA_SUMS_H_
#define MYCELIA_SUMS_H_

#include "simd/half.h"
#include "simd/lanes.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kSumBlock = 4096;  // elements: a block's chain has at most 128 additions

// Sum of term(vector at i, i, lanes) over [0, n); lanes behind the end must give 0, so `load` fills them with 0 and
// `term` masks what that does not zero.
template <class Term>
MYC_INLINE double sum_terms(int64_t n, const Term& term) {
  double total = 0;
  for (int64_t start = 0; start < n; start += kSumBlock) {
    const int64_t end = min(n, start + kSumBlock);
    f32v a = {}, b = {}, c = {}, d = {};
    int64_t i = start;
    for (; i + 4 * kLanes <= end; i += 4 * kLanes) {
      a += term(i, int64_t{kLanes});
      b += term(i + kLanes, int64_t{kLanes});
      c += term(i + 2 * kLanes, int64_t{kLanes});
      d += term(i + 3 * kLanes, int64_t{kLanes});
    }
    for (; i + kLanes <= end; i += kLanes) a += term(i, int64_t{kLanes});
    if (i < end) b += term(i, end - i);
    total += horizontal_sum((a + b) + (c + d));
  }
  return total;
}

// Sum of x.
template <class T>
inline double sum_of(const T* x, int64_t n) {
  return sum_terms(n, [=](int64_t i, int64_t lanes) { return load_lanes(x + i, lanes); });
}
// Sum of x^2.
template <class T>
inline double sum_of_squares(const T* x, int64_t n) {
  return sum_terms(n, [=](int64_t i, int64_t lanes) {
    const f32v v = load_lanes(x + i, lanes);
    return v * v;
  });
}
// Sum of (x - center)^2.
template <class T>
inline double sum_of_squares_about(const T* x, int64_t n, float center) {
  const f32v mean = splat(center);
  return sum_terms(n, [=](int64_t i, int64_t lanes) {
    const f32v v = keep_lanes(load_lanes(x + i, lanes) - mean, lanes);
    return v * v;
  });
}
// Sum of a (b - center).
template <class T>
inline double sum_of_products_about(const T* a, const T* b, int64_t n, float center) {
  const f32v mean = splat(center);
  return sum_terms(n, [=](int64_t i, int64_t lanes) {
    return load_lanes(a + i, lanes) * (load_lanes(b + i, lanes) - mean);
  });
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_SUMS_H_
