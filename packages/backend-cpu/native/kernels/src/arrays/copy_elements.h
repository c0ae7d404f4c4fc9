// The copy engine behind shape_copy.h for one size of elements: rows, and two-dimensional transposes.
#ifndef MYCELIA_SHAPE_COPY_ELEMENTS_H_
#define MYCELIA_SHAPE_COPY_ELEMENTS_H_

#include <type_traits>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "arrays/shape_copy.h"
#include "part.h"

namespace mycelia::MYC_ISA {

struct alignas(16) u128 {
  uint64_t low, high;
};

// ---- transposing ----

// A tile of V x V elements in V vectors of 16 bytes: log2(V) rounds of interleaving the first half of the rows with the
// second (a perfect shuffle) are a transpose.  Each interleave is one instruction on SSE2 and NEON.
template <class T>
struct Tile {
  static constexpr int V = 16 / sizeof(T);
  typedef T vec __attribute__((vector_size(16)));

  template <int... I>
  struct Indices {};
  template <int N, int... I>
  struct Make : Make<N - 1, N - 1, I...> {};
  template <int... I>
  struct Make<0, I...> {
    typedef Indices<I...> type;
  };
  template <int... I>
  static MYC_INLINE vec low(vec a, vec b, Indices<I...>) {
    return __builtin_shufflevector(a, b, (I / 2 + (I % 2) * V)...);
  }
  template <int... I>
  static MYC_INLINE vec high(vec a, vec b, Indices<I...>) {
    return __builtin_shufflevector(a, b, (V / 2 + I / 2 + (I % 2) * V)...);
  }

  // a[p][q] becomes a[q][p].
  static MYC_INLINE void turn(vec (&a)[V]) {
    typedef typename Make<V>::type all;
    vec b[V];
#pragma GCC unroll 4
    for (int round = 1; round < V; round *= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < V / 2; ++i) {
        b[2 * i] = low(a[i], a[i + V / 2], all());
        b[2 * i + 1] = high(a[i], a[i + V / 2], all());
      }
#pragma GCC unroll 16
      for (int i = 0; i < V; ++i) a[i] = b[i];
    }
  }

  // y[p * to + q] = x[q * from + p] for p, q < V; `streaming` stores go past the caches (y 16-byte aligned).
  template <bool streaming>
  static MYC_INLINE void transpose(const T* x, int64_t from, T* y, int64_t to) {
    vec a[V];
    for (int q = 0; q < V; ++q) memcpy(&a[q], x + q * from, 16);
    turn(a);
    for (int p = 0; p < V; ++p) {
#if defined(__x86_64__)
      if (streaming) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(y + p * to), (__m128i)a[p]);
        continue;
      }
#endif
      memcpy(y + p * to, &a[p], 16);
    }
  }
};

template <>
struct Tile<u128> {  // an element is a vector
  static constexpr int V = 1;
  template <bool streaming>
  static MYC_INLINE void transpose(const u128* x, int64_t, u128* y, int64_t) {
    *y = *x;
  }
};

// y[p * to + q] = x[q * from + p] for p < np, q < nq.  Blocks of one cache line by one cache line: each line of x is
// read once and each line of y is completed at once.  In the cache, 64 columns at a time keep the lines of x near;
// streaming goes along x, so that its rows are read as a few sequential streams (20 GB/s against 12).
template <class T, bool streaming>
void transpose_matrix(const T* x, int64_t from, T* y, int64_t to, int64_t np, int64_t nq) {
  constexpr int64_t V = Tile<T>::V, L = 64 / sizeof(T), B = streaming ? L : 64;
  const int64_t tiled_p = np / V * V, tiled_q = nq / V * V;
  for (int64_t qb = 0; qb < tiled_q; qb += B) {
    const int64_t q_block = min(qb + B, tiled_q);
    for (int64_t pl = 0; pl < tiled_p; pl += L) {
      const int64_t p_line = min(pl + L, tiled_p);
      for (int64_t ql = qb; ql < q_block; ql += L) {
        const int64_t q_line = min(ql + L, q_block);
        for (int64_t p = pl; p < p_line; p += V) {
          for (int64_t q = ql; q < q_line; q += V) {
            Tile<T>::template transpose<streaming>(x + q * from + p, from, y + p * to + q, to);
          }
        }
      }
    }
  }
  for (int64_t q = tiled_q; q < nq; ++q) copy_row(x + q * from, 1, y + q, to, np);
  for (int64_t p = tiled_p; p < np; ++p) copy_row(x + p, from, y + p * to, 1, tiled_q);
}

// Images of few channels: pixels side by side from planes (y[kChannels p + q] = x[q * plane + p]), or back. Vectors of four
// elements of which not all count; those behind a pixel are overwritten by the next store, of a load they are left out.
template <int kChannels>
void join_planes(const uint32_t* x, int64_t plane, uint32_t* y, int64_t pixels) {
  typedef Tile<uint32_t> Four;
  constexpr int kTiles = (kChannels + Four::V - 1) / Four::V;
  int64_t p = 0;
  for (; p + Four::V < pixels; p += Four::V) {
    Four::vec a[kTiles][Four::V];
#pragma GCC unroll 2
    for (int t = 0; t < kTiles; ++t) {
#pragma GCC unroll 4  // rolled loops keep the tile in memory: twice the time
      for (int q = 0; q < Four::V; ++q) memcpy(&a[t][q], x + min(t * Four::V + q, kChannels - 1) * plane + p, 16);
      Four::turn(a[t]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < Four::V; ++i)
#pragma GCC unroll 2
      for (int t = 0; t < kTiles; ++t) memcpy(y + kChannels * (p + i) + t * Four::V, &a[t][i], 16);
  }
  for (; p < pixels; ++p)
    for (int q = 0; q < kChannels; ++q) y[kChannels * p + q] = x[q * plane + p];
}
inline void split_planes(const uint32_t* x, uint32_t* y, int64_t plane, int64_t pixels) {
  typedef Tile<uint32_t> Four;
  int64_t q = 0;
  for (; q + Four::V < pixels; q += Four::V) {
    Four::vec a[Four::V];
#pragma GCC unroll 4
    for (int i = 0; i < Four::V; ++i) memcpy(&a[i], x + 3 * (q + i), 16);
    Four::turn(a);
#pragma GCC unroll 3
    for (int p = 0; p < 3; ++p) memcpy(y + p * plane + q, &a[p], 16);
  }
  for (; q < pixels; ++q)
    for (int p = 0; p < 3; ++p) y[p * plane + q] = x[3 * q + p];
}

// Results larger than this do not stay in the cache: streaming stores save reading the lines that are overwritten.
constexpr int64_t kStreamingBytes = 8 << 20;

template <class T>
bool can_stream(const T* y, const CopyPlan& p, int64_t bytes) {
  if (sizeof(T) < 4 || sizeof(T) > 8 || bytes < kStreamingBytes || reinterpret_cast<uintptr_t>(y) % 16) return false;
  for (int d = 0; d < p.rank; ++d) {
    if (p.to[d] != 1 && p.to[d] * sizeof(T) % 16) return false;
  }
  return true;
}

// ---- the copy ----

template <class T>
void copy_elements(const myc_call* call, const T* x, T* y, CopyPlan p) {
  constexpr int64_t item = 2 * sizeof(T);
  if (p.rank == 0) {
    *y = *x;
    return;
  }
  const int last = p.rank - 1;
  int64_t size = 1;
  for (int d = 0; d < p.rank; ++d) size *= p.n[d];
  // An axis that is contiguous in x while the last axis is contiguous in y: transpose in that plane.
  int cross = -1;
  if (p.to[last] == 1 && p.from[last] != 1 && p.from[last] != 0) {
    for (int d = 0; d < last; ++d) {
      if (p.from[d] == 1) cross = d;
    }
  }
  if (cross >= 0) {
    const int64_t np = p.n[cross], nq = p.n[last], from = p.from[last], to = p.to[cross];
    const bool stream = can_stream(y, p, size * static_cast<int64_t>(sizeof(T)));
    const bool joins = to == nq && nq >= 3 && nq < 8 && nq != 4;  // channels of images
    const int64_t strip = stream || joins ? 512 : 64;  // rows of y that one body makes
    CopyPlan outer;
    for (int d = 0; d < last; ++d) {
      if (d != cross) outer.axis(p.n[d], p.from[d], p.to[d]);
    }
    outer.axis(ceil_div(np, strip), strip, strip * to);
    for_each_outer(call, outer, outer.rank, min(np, strip) * nq * item, [&](int64_t a, int64_t b, int64_t s) {
      const int64_t rows = min(strip, np - s * strip);
      if constexpr (std::is_same<T, uint32_t>::value) {
        if (joins) {
          const auto join = nq == 3 ? join_planes<3> : nq == 5 ? join_planes<5> : nq == 6 ? join_planes<6> : join_planes<7>;
          return join(x + a, from, y + b, rows);
        }
        if (np == 3 && from == 3)
          return split_planes(x + a, y + b, to, nq);
      }
      if (stream) {
        transpose_matrix<T, true>(x + a, from, y + b, to, rows, nq);
      } else {
        transpose_matrix<T, false>(x + a, from, y + b, to, rows, nq);
      }
    });
    return;
  }
  if (p.rank == 1 && size * item >= 2 * kMinParallelWork) {
    return parallel_for(call, size, kMinParallelWork / item, [&](int64_t begin, int64_t end) {
      copy_row(x + begin * p.from[0], p.from[0], y + begin * p.to[0], p.to[0], end - begin);
    });
  }
  for_each_outer(call, p, last, p.n[last] * item, [&](int64_t a, int64_t b, int64_t) {
    copy_row(x + a, p.from[last], y + b, p.to[last], p.n[last]);
  });
}

// Elements of 1, of 2, and of 8 or 16 bytes.  copy_bytes.cc, copy_pairs.cc, copy_wide.cc
KERNEL_PART(copy_bytes)(const myc_call* call, const void* x, void* y, const CopyPlan* plan);
KERNEL_PART(copy_pairs)(const myc_call* call, const void* x, void* y, const CopyPlan* plan);
KERNEL_PART(copy_wide)(const myc_call* call, const void* x, void* y, int64_t bytes, const CopyPlan* plan);

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_SHAPE_COPY_ELEMENTS_H_
