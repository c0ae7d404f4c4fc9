// Outer products summed over positions: what the channels-last weight gradients are made of.
#ifndef MYCELIA_CONV_LAST_SUM_H_
#define MYCELIA_CONV_LAST_SUM_H_

#include "convolution/channels_last/conv_last.h"
#include "gemm/rows.h"
#include "simd/transpose.h"

namespace mycelia::MYC_ISA {

constexpr int kCopies = (kTileRows + kLanes - 1) / kLanes;  // vectors that hold a tile's rows

// Panels at distances that are odd multiples of 64 bytes do not meet in the same cache sets.
constexpr int64_t panel_stride(int64_t floats) { return (ceil_div(floats, 16) | 1) * 16; }

// c[i][v] (+)= sum over runs and their positions of a[position * advance + i] * b[position][v].
template <int R, int V>
__attribute__((noinline)) void sum_tile(const float* x, const int64_t* runs, int64_t count, int64_t length,
                                        int64_t advance, const float* b, float* c, bool add) {
  // Eight chains of dependent additions keep two multiply-add units busy; small tiles take several positions at once.
  constexpr int kSets = R * V >= 7 ? 1 : R * V >= 4 ? 2 : 4;
  f32v sum[kSets][R][V] = {};
  const auto position = [&](const float* a, const float* from, f32v(&to)[R][V]) __attribute__((always_inline)) {
    f32v y[V];
    for (int v = 0; v < V; ++v) y[v] = load(from + v * kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i)
      for (int v = 0; v < V; ++v) to[i][v] += a[i] * y[v];
  };
  for (int64_t r = 0; r < count; ++r) {
    const float* a = x + runs[r];
    int64_t t = 0;
#if MYC_STEPS
    if constexpr (has_steps(R, V)) {
      add_steps(OuterSteps{a, advance * 4, b, length}, sum[0]);
      b += length * kTileColumns;
      continue;
    }
#endif
    if constexpr (kSets > 1) {
      for (; t + kSets <= length; t += kSets, a += kSets * advance, b += kSets * kTileColumns) {
#pragma GCC unroll 4
        for (int set = 0; set < kSets; ++set) position(a + set * advance, b + set * kTileColumns, sum[set]);
      }
    }
    for (; t < length; ++t, a += advance, b += kTileColumns) position(a, b, sum[0]);
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < V; ++v) {
      float* to = c + i * kTileColumns + v * kLanes;
      f32v total = sum[0][i][v];
      for (int set = 1; set < kSets; ++set) total += sum[set][i][v];
      store(to, add ? load(to) + total : total);
    }
}

using SumTile = void (*)(const float*, const int64_t*, int64_t, int64_t, int64_t, const float*, float*, bool);

template <int V, int R = kTileRows>
SumTile sum_tile_of(int64_t rows) {
  if constexpr (R == 1) {
    return sum_tile<1, V>;
  } else {
    return rows == R ? sum_tile<R, V> : sum_tile_of<V, R - 1>(rows);
  }
}

// dw for up to kTileColumns outputs of a panel from n of its rows of sums; row(q, o): those of outputs [o, o + kLanes)
// for element q of dw.
template <class Row>
MYC_INLINE void store_turned(int64_t n, int64_t outputs, float* dw, int64_t k, const Row& row) {
  f32v block[kLanes];
  for (int64_t o = 0; o < outputs; o += kLanes) {
    const int64_t lanes = min<int64_t>(kLanes, outputs - o);
    for (int64_t q = 0; q < n; q += kLanes) {
      const int64_t count = min<int64_t>(kLanes, n - q);
      for (int64_t e = 0; e < kLanes; ++e) block[e] = e < count ? row(q + e, o) : f32v{};
      transpose(block);
      for (int64_t e = 0; e < lanes; ++e) {
        float* to = dw + (o + e) * k + q;
        if (count == kLanes) {
          store(to, block[e]);
        } else {
          store_partial(to, block[e], count);
        }
      }
    }
  }
}

// 3x3, stride and dilation 1, one group: F(3x3, 4x4) of Winograd.  weight_winograd.cc
// Whether that takes less time than sums tap by tap.
bool winograd_weight_grad_pays(const ConvLast& s);
// `done`: whether dw is as good as sums tap by tap, but for a few bits; if not, its contents are of no use.
int32_t winograd_weight_grad(const myc_call* call, const ConvLast& s, const float* x, const float* dy, float* dw,
                             bool& done);

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_CONV_LAST_SUM_H_
