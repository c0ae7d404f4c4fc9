// Magnitudes of pixels: by them Winograd's algorithms find the tiles that they must leave to plain sums.
//
// Sums over a tile mix its pixels: a large one's rounding error reaches all results of the tile, an infinity or NaN
// becomes NaN in all of them. A pixel's magnitude is its largest absolute channel, as the bits of a float: as integers
// they compare like the floats, and NaN is above infinity. Costs: three instructions a vector of x.
#ifndef MYCELIA_MAGNITUDE_H_
#define MYCELIA_MAGNITUDE_H_

#include "simd/transpose.h"
#include "simd/vec.h"

namespace mycelia::MYC_ISA {

// So many times the largest magnitude under a result's window the largest one of the tile may be.
constexpr float kKindredPixels = 16;

MYC_INLINE int32_t magnitude_bits(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}
MYC_INLINE float magnitude_of(int32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

// Of n floats, one of kLanes parts a lane.
MYC_INLINE i32v magnitude_lanes(const float* x, int64_t n) {
  i32v most[2] = {};
  const auto see = [](i32v& m, f32v v) __attribute__((always_inline)) { m = maximum(m, bits(v) & 0x7fffffff); };
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) see(most[0], load(x + i)), see(most[1], load(x + i + kLanes));
  for (; i + kLanes <= n; i += kLanes) see(most[0], load(x + i));
  if (i < n) see(most[0], load_partial(x + i, n - i));
  return maximum(most[0], most[1]);
}

// Of n floats.
inline int32_t magnitude(const float* x, int64_t n) {
  return magnitude_bits(horizontal_max(from_bits(magnitude_lanes(x, n))));
}

MYC_INLINE f32v merge(f32v a, f32v b) { return from_bits(maximum(bits(a), bits(b))); }
template <int s>  // rows of groups of s lanes, each group with what is left of other rows
MYC_INLINE void halve_rows(f32v (&row)[kLanes]) {
#pragma GCC unroll 2
  for (int i = 0; i < kLanes / s / 2; ++i) {
    const f32v a = row[2 * i], b = row[2 * i + 1];
    row[i] = merge(shuffle<even_groups<s>>(a, b), shuffle<odd_groups<s>>(a, b));
  }
}

// The largest lane of row l in lane l: a transposition that takes the larger of two wherever it can.
MYC_INLINE i32v most_of_each(f32v (&row)[kLanes]) {
#pragma GCC unroll 4
  for (int g = 0; g < kLanes; g += 4) {
    const f32v ab = merge(shuffle<zip_low>(row[g], row[g + 1]), shuffle<zip_high>(row[g], row[g + 1]));
    const f32v cd = merge(shuffle<zip_low>(row[g + 2], row[g + 3]), shuffle<zip_high>(row[g + 2], row[g + 3]));
    row[g / 4] = merge(shuffle<pair_low>(ab, cd), shuffle<pair_high>(ab, cd));
  }
  if constexpr (kLanes >= 8) halve_rows<4>(row);
  if constexpr (kLanes >= 16) halve_rows<8>(row);
  return bits(row[0]);
}

struct Whole {
  const float* from;
  MYC_INLINE f32v operator()(const float* at) const { return load(at); }
};
struct Partial {
  const float* from;
  int64_t n;
  MYC_INLINE f32v operator()(const float* at) const { return load_partial(at, n); }
};

// Of `count` pixels of c channels each; kLanes at a time share the work across lanes.
inline void magnitudes(const float* x, int64_t count, int64_t c, int32_t* to) {
  constexpr int64_t kAhead = 1024;  // floats: a page, beyond which the processor does not look by itself
  int64_t i = 0;
  f32v pixel[kLanes];
  for (; i + kLanes <= count; i += kLanes, x += kLanes * c) {
    i32v most[kLanes] = {};
    const auto see = [&](const auto& read) __attribute__((always_inline)) {
      const float* at = read.from;
#pragma GCC unroll 16
      for (int p = 0; p < kLanes; ++p, at += c) {
        __builtin_prefetch(at + kAhead);
        most[p] = maximum(most[p], bits(read(at)) & 0x7fffffff);
      }
    };
    int64_t j = 0;
    for (; j + kLanes <= c; j += kLanes) see(Whole{x + j});
    if (j < c) see(Partial{x + j, c - j});
#pragma GCC unroll 16
    for (int p = 0; p < kLanes; ++p) pixel[p] = from_bits(most[p]);
    store(to + i, most_of_each(pixel));
  }
  if (i == count) return;
  for (int64_t p = 0; p < kLanes; ++p) pixel[p] = i + p < count ? from_bits(magnitude_lanes(x + p * c, c)) : f32v{};
  const i32v most = most_of_each(pixel);
  memcpy(to + i, &most, (count - i) * sizeof(int32_t));
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_MAGNITUDE_H_
