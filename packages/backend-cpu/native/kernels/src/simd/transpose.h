// Transposes a square tile of kLanes x kLanes floats in registers.
#ifndef MYCELIA_SIMD_TRANSPOSE_H_
#define MYCELIA_SIMD_TRANSPOSE_H_

#include <utility>

#include "simd/vec.h"

namespace mycelia::MYC_ISA {

// Lane l of the result is lane Pattern(l) of the pair (a, b); lanes of b count from kLanes.
template <int (*Pattern)(int), int... l>
MYC_INLINE f32v shuffle_lanes(f32v a, f32v b, std::integer_sequence<int, l...>) {
  return __builtin_shufflevector(a, b, Pattern(l)...);
}
template <int (*Pattern)(int)>
MYC_INLINE f32v shuffle(f32v a, f32v b) {
  return shuffle_lanes<Pattern>(a, b, std::make_integer_sequence<int, kLanes>());
}

// Each of these is one instruction: the first two work inside groups of 4 lanes, the others swap whole groups.
constexpr int zip_low(int l) { return l / 4 * 4 + l % 4 / 2 + (l % 2 ? kLanes : 0); }
constexpr int zip_high(int l) { return zip_low(l) + 2; }
constexpr int pair_low(int l) { return l / 4 * 4 + l % 2 + (l % 4 / 2 ? kLanes : 0); }
constexpr int pair_high(int l) { return pair_low(l) + 2; }
template <int s>  // groups of s lanes: keep the even ones of a, then the even ones of b
constexpr int even_groups(int l) {
  return l / (2 * s) * (2 * s) + l % s + (l / s % 2 ? kLanes : 0);
}
template <int s>
constexpr int odd_groups(int l) {
  return even_groups<s>(l) + s;
}

template <int s>
MYC_INLINE void exchange_groups(f32v (&row)[kLanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if (i & s) continue;
    const f32v a = row[i], b = row[i + s];
    row[i] = shuffle<even_groups<s>>(a, b);
    row[i + s] = shuffle<odd_groups<s>>(a, b);
  }
}

// row[i][j] becomes row[j][i].
MYC_INLINE void transpose(f32v (&row)[kLanes]) {
#pragma GCC unroll 4
  for (int g = 0; g < kLanes; g += 4) {  // 4 x 4 blocks inside every group of 4 lanes
    const f32v ab_low = shuffle<zip_low>(row[g], row[g + 1]), ab_high = shuffle<zip_high>(row[g], row[g + 1]);
    const f32v cd_low = shuffle<zip_low>(row[g + 2], row[g + 3]), cd_high = shuffle<zip_high>(row[g + 2], row[g + 3]);
    row[g] = shuffle<pair_low>(ab_low, cd_low);
    row[g + 1] = shuffle<pair_high>(ab_low, cd_low);
    row[g + 2] = shuffle<pair_low>(ab_high, cd_high);
    row[g + 3] = shuffle<pair_high>(ab_high, cd_high);
  }
  if constexpr (kLanes >= 8) exchange_groups<4>(row);
  if constexpr (kLanes >= 16) exchange_groups<8>(row);
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_SIMD_TRANSPOSE_H_
