// Winograd's minimal filtering F(m, 3) for m = 2, 4 and 6 along one dimension, on vectors; two dimensions are
// one after the other.  y = At [(G g) . (Bt d)] with m results y, m + 2 inputs d, 3 taps g.  Interpolation
// points: 0, 1, -1 and infinity for m = 2, with 2 and -2 for m = 4, with 1/2 and -1/2 for m = 6 (Lavin and Gray 2015; Toom and
// Cook before). Largest error against float64, as part of the largest result, uniform random data of 64 to
// 512 channels: 2e-6 to 5e-6 for m = 4, 3e-6 to 1e-5 for m = 6; 1e-7 to 3e-7 for the direct form.
#ifndef MYCELIA_WINOGRAD_H_
#define MYCELIA_WINOGRAD_H_

#include "simd/vec.h"

namespace mycelia::MYC_ISA {

template <int m>
struct Filtering;

template <>
struct Filtering<2> {
  // 4 in, 4 out.
  static MYC_INLINE void input(const f32v* x, int from, f32v* o, int to) {
    const f32v x0 = x[0], x1 = x[from], x2 = x[2 * from], x3 = x[3 * from];
    o[0] = x0 - x2;
    o[to] = x1 + x2;
    o[2 * to] = x2 - x1;
    o[3 * to] = x3 - x1;
  }
  // 4 in, 2 out.
  static MYC_INLINE void output(const f32v* x, int from, f32v* o, int to) {
    o[0] = x[0] + (x[from] + x[2 * from]);
    o[to] = x[3 * from] + (x[from] - x[2 * from]);
  }
  // 3 in, 4 out.
  static MYC_INLINE void taps(const f32v* g, int from, f32v* o, int to) {
    const f32v ends = g[0] + g[2 * from], mid = g[from];
    o[0] = g[0];
    o[to] = 0.5f * (ends + mid);
    o[2 * to] = 0.5f * (ends - mid);
    o[3 * to] = g[2 * from];
  }
};

template <>
struct Filtering<4> {
  // o[i * to] = (Bt d)[i] with d[i] = x[i * from]; 6 in, 6 out.
  static MYC_INLINE void input(const f32v* x, int from, f32v* o, int to) {
    const f32v x0 = x[0], x1 = x[from], x2 = x[2 * from], x3 = x[3 * from], x4 = x[4 * from],
               x5 = x[5 * from];
    const f32v even1 = x4 - 4.0f * x2, odd1 = x3 - 4.0f * x1;  // at 1 and -1
    const f32v even2 = x4 - x2, odd2 = 2.0f * (x3 - x1);       // at 2 and -2
    o[0] = 4.0f * x0 + (x4 - 5.0f * x2);
    o[to] = even1 + odd1;
    o[2 * to] = even1 - odd1;
    o[3 * to] = even2 + odd2;
    o[4 * to] = even2 - odd2;
    o[5 * to] = 4.0f * x1 + (x5 - 5.0f * x3);
  }
  // 6 in, 4 out.
  static MYC_INLINE void output(const f32v* x, int from, f32v* o, int to) {
    const f32v even1 = x[from] + x[2 * from], odd1 = x[from] - x[2 * from];
    const f32v even2 = x[3 * from] + x[4 * from], odd2 = x[3 * from] - x[4 * from];
    o[0] = x[0] + even1 + even2;
    o[to] = odd1 + 2.0f * odd2;
    o[2 * to] = even1 + 4.0f * even2;
    o[3 * to] = x[5 * from] + (odd1 + 8.0f * odd2);
  }
  // 3 in, 6 out.
  static MYC_INLINE void taps(const f32v* g, int from, f32v* o, int to) {
    const f32v ends = g[0] + g[2 * from], far = g[0] + 4.0f * g[2 * from], mid = g[from];
    o[0] = g[0] * 0.25f;
    o[to] = (ends + mid) * (-1.0f / 6);
    o[2 * to] = (ends - mid) * (-1.0f / 6);
    o[3 * to] = (far + 2.0f * mid) * (1.0f / 24);
    o[4 * to] = (far - 2.0f * mid) * (1.0f / 24);
    o[5 * to] = g[2 * from];
  }
};

template <>
struct Filtering<6> {
  // 8 in, 8 out.
  static MYC_INLINE void input(const f32v* x, int from, f32v* o, int to) {
    const f32v x0 = x[0], x1 = x[from], x2 = x[2 * from], x3 = x[3 * from], x4 = x[4 * from],
               x5 = x[5 * from], x6 = x[6 * from], x7 = x[7 * from];
    const f32v even1 = (x2 + x6) - 4.25f * x4, odd1 = (x1 + x5) - 4.25f * x3;                       // 1, -1
    const f32v even2 = (x6 + 0.25f * x2) - 1.25f * x4, odd2 = (2.0f * x5 + 0.5f * x1) - 2.5f * x3;  // 2, -2
    const f32v even3 = (x6 + 4.0f * x2) - 5.0f * x4, odd3 = (0.5f * x5 + 2.0f * x1) - 2.5f * x3;  // 1/2, -1/2
    o[0] = (x0 - x6) + 5.25f * (x4 - x2);
    o[to] = even1 + odd1;
    o[2 * to] = even1 - odd1;
    o[3 * to] = even2 + odd2;
    o[4 * to] = even2 - odd2;
    o[5 * to] = even3 + odd3;
    o[6 * to] = even3 - odd3;
    o[7 * to] = (x7 - x1) + 5.25f * (x3 - x5);
  }
  // 8 in, 6 out.
  static MYC_INLINE void output(const f32v* x, int from, f32v* o, int to) {
    const f32v even1 = x[from] + x[2 * from], odd1 = x[from] - x[2 * from];
    const f32v even2 = x[3 * from] + x[4 * from], odd2 = x[3 * from] - x[4 * from];
    const f32v even3 = x[5 * from] + x[6 * from], odd3 = x[5 * from] - x[6 * from];
    o[0] = (x[0] + even1) + (even2 + even3);
    o[to] = odd1 + 2.0f * odd2 + 0.5f * odd3;
    o[2 * to] = even1 + 4.0f * even2 + 0.25f * even3;
    o[3 * to] = odd1 + 8.0f * odd2 + 0.125f * odd3;
    o[4 * to] = even1 + 16.0f * even2 + 0.0625f * even3;
    o[5 * to] = (x[7 * from] + odd1) + (32.0f * odd2 + 0.03125f * odd3);
  }
  // 3 in, 8 out.
  static MYC_INLINE void taps(const f32v* g, int from, f32v* o, int to) {
    const f32v g0 = g[0], mid = g[from], g2 = g[2 * from];
    const f32v ends = g0 + g2, far = g0 + 4.0f * g2, near = 4.0f * g0 + g2;
    o[0] = g0;
    o[to] = (ends + mid) * (-2.0f / 9);
    o[2 * to] = (ends - mid) * (-2.0f / 9);
    o[3 * to] = (far + 2.0f * mid) * (1.0f / 90);
    o[4 * to] = (far - 2.0f * mid) * (1.0f / 90);
    o[5 * to] = (near + 2.0f * mid) * (8.0f / 45);
    o[6 * to] = (near - 2.0f * mid) * (8.0f / 45);
    o[7 * to] = g2;
  }
};

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_WINOGRAD_H_
