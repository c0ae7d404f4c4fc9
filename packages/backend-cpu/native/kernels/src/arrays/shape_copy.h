// Copies between strided views of two buffers: what transpose, slice, concat, pad, tile, flip and broadcast are.
//
// A plan lists axes with their extents and element strides on both sides (0 = repeat, negative = backwards).
// Neighbouring axes that are one run on both sides are merged, so that most calls end as rows of memcpy, fills, or
// two-dimensional transposes.  Cost: bytes read + bytes written.
#ifndef MYCELIA_SHAPE_COPY_H_
#define MYCELIA_SHAPE_COPY_H_

#include "mycelia/kernels.h"

namespace mycelia::MYC_ISA {

constexpr int kMaxCopyRank = 2 * MYC_MAX_RANK;  // tile gives two axes for each

struct CopyPlan {
  int rank = 0;
  int64_t n[kMaxCopyRank], from[kMaxCopyRank], to[kMaxCopyRank];

  void axis(int64_t extent, int64_t from_stride, int64_t to_stride) {
    n[rank] = extent, from[rank] = from_stride, to[rank] = to_stride;
    ++rank;
  }
};

// Row-major element strides of a shape.
inline void contiguous_strides(const int64_t* shape, int rank, int64_t* stride) {
  int64_t running = 1;
  for (int d = rank - 1; d >= 0; --d) stride[d] = running, running *= shape[d];
}

// Runs body(from offset, to offset, index of the last of them) for every index of the first `axes` axes.
template <class Body>
MYC_INLINE void for_each_outer(const myc_call* call, const CopyPlan& p, int axes, int64_t item_bytes, const Body& body) {
  int64_t count = 1;
  for (int d = 0; d < axes; ++d) count *= p.n[d];
  parallel_for(call, count, kMinParallelWork / (item_bytes + 1) + 1, [&](int64_t begin, int64_t end) {
    int64_t index[kMaxCopyRank], from = 0, to = 0, rest = begin;
    for (int d = axes - 1; d >= 0; --d) {
      index[d] = rest % p.n[d], rest /= p.n[d];
      from += index[d] * p.from[d], to += index[d] * p.to[d];
    }
    for (int64_t i = begin; i < end; ++i) {
      body(from, to, axes ? index[axes - 1] : 0);
      for (int d = axes - 1; d >= 0; --d) {  // odometer
        from += p.from[d], to += p.to[d];
        if (++index[d] < p.n[d]) break;
        from -= p.n[d] * p.from[d], to -= p.n[d] * p.to[d], index[d] = 0;
      }
    }
  });
}

// One row: y[i * to] = x[i * from].
template <class T>
MYC_INLINE void copy_row(const T* x, int64_t from, T* y, int64_t to, int64_t n) {
  if (from == 1 && to == 1) {
    if (n * sizeof(T) <= 64) {
      for (int64_t i = 0; i < n; ++i) y[i] = x[i];  // shorter than a call of memcpy
    } else {
      memcpy(y, x, n * sizeof(T));
    }
  } else if (from == 0 && to == 1) {
    const T value = *x;
    for (int64_t i = 0; i < n; ++i) y[i] = value;
  } else if (from == -1 && to == 1) {
    const T* last = x - (n - 1);
    for (int64_t i = 0; i < n; ++i) y[i] = last[n - 1 - i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * to] = x[i * from];
  }
}

// A copy of `plan` between elements of `bytes` bytes (shape_copy.cc).
int32_t copy(const myc_call* call, const void* x, void* y, int64_t bytes, CopyPlan plan);

}  // namespace mycelia::MYC_ISA

#endif
