// Reductions of a contiguous run of floats: what is reduced (sum, product, extremes), how vectors of partial
// results meet.
#ifndef MYCELIA_REDUCE_RUN_H_
#define MYCELIA_REDUCE_RUN_H_

#include "elementwise/elementwise.h"

namespace mycelia::MYC_ISA {

// ---- what is reduced: identity, one step, and how vectors of partial results meet ----

struct SumOp {
  using Total = double;  // of blocks: a few additions, so that their width costs nothing
  static constexpr float identity = 0.0f;
  template <class V>
  static MYC_INLINE V step(V a, V b) {
    return a + b;
  }
  static MYC_INLINE float across(f32v v) { return horizontal_sum(v); }
};
struct ProdOp {
  using Total = float;
  static constexpr float identity = 1.0f;
  template <class V>
  static MYC_INLINE V step(V a, V b) {
    return a * b;
  }
  static MYC_INLINE float across(f32v v) {
    float p = v[0];
    for (int i = 1; i < kLanes; ++i) p *= v[i];
    return p;
  }
};
struct MaxOp {
  using Total = float;
  static constexpr float identity = -INFINITY;
  static MYC_INLINE f32v step(f32v a, f32v b) { return maximum(a, b); }
  static MYC_INLINE float step(float a, float b) { return (a > b) | (a != a) ? a : b; }
  static MYC_INLINE float across(f32v v) { return horizontal_max(v); }
};
struct MinOp {
  using Total = float;
  static constexpr float identity = INFINITY;
  static MYC_INLINE f32v step(f32v a, f32v b) { return minimum(a, b); }
  static MYC_INLINE float step(float a, float b) { return (a < b) | (a != a) ? a : b; }
  static MYC_INLINE float across(f32v v) { return horizontal_min(v); }
};

struct Identity {
  template <class V>
  static MYC_INLINE V of(V v) {
    return v;
  }
};
struct Square {
  template <class V>
  static MYC_INLINE V of(V v) {
    return v * v;
  }
};

// ---- on vectors, T being float or a float of 16 bits that is widened on the way ----

// Elements that one chain of additions may take: partial sums of this many meet in a second level, so that
// the rounding error grows with n / kBlock + kBlock / (4 kLanes) instead of n.
constexpr int64_t kBlock = 4096;

template <class Op, class Pre, class T>
MYC_INLINE float reduce_block(const T* x, int64_t n) {
  f32v a = splat(Op::identity), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a = Op::step(a, Pre::of(load(x + i)));
    b = Op::step(b, Pre::of(load(x + i + kLanes)));
    c = Op::step(c, Pre::of(load(x + i + 2 * kLanes)));
    d = Op::step(d, Pre::of(load(x + i + 3 * kLanes)));
  }
  for (; i + kLanes <= n; i += kLanes) a = Op::step(a, Pre::of(load(x + i)));
  float rest = Op::identity;
  for (; i < n; ++i) rest = Op::step(rest, Pre::of(widen_one(x[i])));
  return Op::step(Op::across(Op::step(Op::step(a, b), Op::step(c, d))), rest);
}

template <class Op, class Pre, class T>
MYC_NOINLINE float reduce_run(const T* x, int64_t n) {
  if (n <= kBlock) return reduce_block<Op, Pre>(x, n);
  typename Op::Total total = reduce_block<Op, Pre>(x, kBlock);
  for (int64_t i = kBlock; i < n; i += kBlock) {
    const typename Op::Total block = reduce_block<Op, Pre>(x + i, min(kBlock, n - i));
    total = Op::step(total, block);
  }
  return static_cast<float>(total);
}

// The same for a run that may be too short for vectors.
template <class Op, class Pre, class T>
MYC_INLINE float reduce_short_run(const T* x, int64_t n) {
  if (n > kLanes) return reduce_run<Op, Pre>(x, n);
  float total = Op::identity;
  for (int64_t i = 0; i < n; ++i) total = Op::step(total, Pre::of(widen_one(x[i])));
  return total;
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_REDUCE_RUN_H_
