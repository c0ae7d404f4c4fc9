// Register tiles of convolution: kRows x kColumns products summed over packed panels.
#ifndef MYCELIA_CONV_TILE_H_
#define MYCELIA_CONV_TILE_H_

#include "gemm/steps.h"
#include "gemm/tile_shape.h"

namespace mycelia::MYC_ISA {

enum class TileStart { zero, bias, add };

// c[i][j] (= or += or = bias[i] +) sum over p < k of a[p * R + i] * b[p * kTileColumns + j].
template <int R>
inline void tile(int64_t k, const float* a, const float* b, float* c, int64_t ldc, TileStart start,
                 const float* bias) {
  f32v sum[R][kTileVectors];
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < kTileVectors; ++v)
      sum[i][v] = start == TileStart::add ? load(c + i * ldc + v * kLanes)
                                          : f32v{} + (start == TileStart::bias ? bias[i] : 0.0f);
#if MYC_STEPS
  if constexpr (has_steps(R, kTileVectors)) {
    add_steps(OuterSteps{a, R * 4, b, k}, sum);
    k = 0;
  }
#endif
  for (int64_t p = 0; p < k; ++p, a += R, b += kTileColumns) {
    f32v x[kTileVectors];
    for (int v = 0; v < kTileVectors; ++v) x[v] = load(b + v * kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i)
      for (int v = 0; v < kTileVectors; ++v) sum[i][v] += a[i] * x[v];
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < kTileVectors; ++v) store(c + i * ldc + v * kLanes, sum[i][v]);
}

using TileFn = void (*)(int64_t k, const float* a, const float* b, float* c, int64_t ldc, TileStart start,
                        const float* bias);

// The tile of `rows` rows, 1 <= rows <= kTileRows.
inline TileFn tile_of(int64_t rows) {
  switch (rows) {
    case 1: return tile<1>;
    case 2: return tile<2>;
    case 3: return tile<3>;
    case 4: return tile<4>;
    case 5: return tile<5>;
#if defined(__AVX512F__) || defined(__aarch64__)
    case 6: return tile<6>;
    case 7: return tile<7>;
    case 8: return tile<8>;
    case 9: return tile<9>;
    case 10: return tile<10>;
    case 11: return tile<11>;
#endif
    default: return tile<kTileRows>;
  }
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_CONV_TILE_H_
