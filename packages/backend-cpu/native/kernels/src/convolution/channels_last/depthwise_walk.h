// The walk of depthwise_slide.cc along a row, and its forms.
//
// A vector of channels walks along two rows of y.  A column of x meets the three positions whose windows hold it: 4
// pixels, 18 multiply-adds with 9 weights and 6 sums that all stay in registers, so every pixel is read once for two
// rows and no position is a special case.  28 instructions for 18 multiply-adds on AVX2.
#ifndef MYCELIA_CONV_LAST_DEPTHWISE_WALK_H_
#define MYCELIA_CONV_LAST_DEPTHWISE_WALK_H_

#include "convolution/channels_last/depthwise_lanes.h"
#include "part.h"

namespace mycelia::MYC_ISA {

enum class Ending { plain, bounded, added, any };  // any: as the call says

// Adds what kRows + 2 pixels of a column give to the sums of the positions whose last (e), middle (m) and first column
// (n) they are; the latter start here with the bias.
template <int kRows, bool kWhole>
struct Column {
  f32v w[9];
  const float* x[kRows + 2];
  const float* bias;
  int64_t lanes;

  MYC_INLINE f32v get(const float* p) const { return kWhole ? load(p) : load_partial(p, lanes); }

  // at: bytes behind x.
  MYC_INLINE void add(int64_t at, f32v (&e)[kRows], f32v (&m)[kRows], f32v (&n)[kRows]) const {
#if MYC_VECTOR_BYTES == 32
    // 9 weights, 6 sums and a pixel take all registers, if the first pixel of a new sum lies in its place.
    if constexpr (kWhole && kRows == 2) {
      f32v t;
      asm("vmovups (%[x0], %[at]), %[n0]\n\t"
          "vmovups (%[x1], %[at]), %[n1]\n\t"
          "vmovups (%[x2], %[at]), %[t]\n\t"
          "vfmadd231ps %[w1], %[n0], %[m0]\n\t"
          "vfmadd231ps %[w2], %[n0], %[e0]\n\t"
          "vfmadd213ps (%[bias]), %[w0], %[n0]\n\t"
          "vfmadd231ps %[w1], %[n1], %[m1]\n\t"
          "vfmadd231ps %[w2], %[n1], %[e1]\n\t"
          "vfmadd231ps %[w4], %[n1], %[m0]\n\t"
          "vfmadd231ps %[w5], %[n1], %[e0]\n\t"
          "vfmadd231ps %[w3], %[n1], %[n0]\n\t"
          "vfmadd213ps (%[bias]), %[w0], %[n1]\n\t"
          "vfmadd231ps %[w4], %[t], %[m1]\n\t"
          "vfmadd231ps %[w5], %[t], %[e1]\n\t"
          "vfmadd231ps %[w7], %[t], %[m0]\n\t"
          "vfmadd231ps %[w8], %[t], %[e0]\n\t"
          "vfmadd231ps %[w6], %[t], %[n0]\n\t"
          "vfmadd231ps %[w3], %[t], %[n1]\n\t"
          "vmovups (%[x3], %[at]), %[t]\n\t"
          "vfmadd231ps %[w7], %[t], %[m1]\n\t"
          "vfmadd231ps %[w8], %[t], %[e1]\n\t"
          "vfmadd231ps %[w6], %[t], %[n1]\n\t"
          : [n0] "=&x"(n[0]), [n1] "=&x"(n[1]), [t] "=&x"(t), [m0] "+x"(m[0]), [m1] "+x"(m[1]), [e0] "+x"(e[0]),
            [e1] "+x"(e[1])
          : [w0] "x"(w[0]), [w1] "x"(w[1]), [w2] "x"(w[2]), [w3] "x"(w[3]), [w4] "x"(w[4]), [w5] "x"(w[5]),
            [w6] "x"(w[6]), [w7] "x"(w[7]), [w8] "x"(w[8]), [x0] "r"(x[0]), [x1] "r"(x[1]), [x2] "r"(x[2]),
            [x3] "r"(x[3]), [at] "r"(at), [bias] "r"(bias)
          : "memory");
      return;
    }
#endif
    for (int i = 0; i < kRows; ++i) n[i] = get(bias);
#pragma GCC unroll 4
    for (int r = 0; r < kRows + 2; ++r) {
      const f32v v = get(bytes_behind(x[r], at));
#pragma GCC unroll 2
      for (int i = 0; i < kRows; ++i) {
        const int a = r - i;
        if (a < 0 || a > 2) continue;
        n[i] = fma(w[3 * a], v, n[i]), m[i] = fma(w[3 * a + 1], v, m[i]), e[i] = fma(w[3 * a + 2], v, e[i]);
      }
    }
  }
};

// A walk over the positions [begin, end) of kRows rows for the channels [c, last): whole vectors, or less than one.
// x: rows with pixels `x_pixel` apart, whose first one is column `shift` of the image and channel c.
template <int kRows, bool kWhole, Ending kEnding>
__attribute__((noinline)) void walk(const DepthwiseCall& call, const float* const* x, int64_t x_pixel, int64_t shift,
                                    int64_t begin, int64_t end, int64_t c, int64_t last) {
  const DepthwiseLanes& l = call.l;
  const LaneBounds bound(l);
  const int64_t y_row = call.y_row(), pad = call.s.pad[1];
  const bool adds = call.residual != nullptr;
  const int64_t added = (call.residual - call.y) * static_cast<int64_t>(sizeof(float));
  int64_t x_step = x_pixel * static_cast<int64_t>(sizeof(float));
  int64_t y_step = l.pixel * static_cast<int64_t>(sizeof(float));
  // Columns of x: the first, and behind the last. Bytes: where the first position ends, behind the last column, where
  // the last position ends.
  const int64_t first = max<int64_t>(0, begin - pad), stop = min(call.s.in[1], end - pad + 2);
  const int64_t start = (begin - pad + 2 - shift) * x_step, full = (stop - shift) * x_step;
  const int64_t quiet = min(start, full), thrice = full - 2 * x_step, ending = (end - pad + 2 - shift) * x_step;
  for (int64_t from = c; c < last; c += kLanes) {
    in_register(x_step), in_register(y_step);
    Column<kRows, kWhole> column;
    column.lanes = l.channels - c, column.bias = l.bias + c;
    in_register(column.bias);
    const float* w = call.w + c / kPackedColumns * 9 * kPackedColumns + c % kPackedColumns;
#pragma GCC unroll 9
    for (int t = 0; t < 9; ++t) column.w[t] = load(w + t * kPackedColumns);
#pragma GCC unroll 4
    for (int r = 0; r < kRows + 2; ++r) column.x[r] = x[r] + (c - from), in_register(column.x[r]);
    float* to[kRows];  // of the position that ends next
    for (int i = 0; i < kRows; ++i) to[i] = call.y + i * y_row + begin * l.pixel + c, in_register(to[i]);
    int64_t at = (first - shift) * x_step, y_at = 0;
    const auto finish = [&](f32v (&e)[kRows]) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int i = 0; i < kRows; ++i) {
        float* p = bytes_behind(to[i], y_at);
        f32v v = e[i];
        if (kEnding == Ending::added || (kEnding == Ending::any && adds)) v += column.get(bytes_behind(p, added));
        if (kEnding != Ending::plain) v = bound(v);
        if (kWhole) {
          store(p, v);
        } else {
          store_partial(p, v, column.lanes);
        }
      }
      y_at += y_step;
    };
    f32v e[kRows], m[kRows], n[kRows];
    for (int i = 0; i < kRows; ++i) e[i] = m[i] = column.get(column.bias);
    const auto add_one = [&]() __attribute__((always_inline)) { column.add(at, e, m, n), at += x_step; };
    // The next cache line of the lowest row, which the rows of y before these have not read.
    const auto fetch = [&]() __attribute__((always_inline)) {
      __builtin_prefetch(bytes_behind(column.x[kRows + 1], at + kPackedColumns * int64_t{sizeof(float)}));
    };
    const auto turn = [&]() __attribute__((always_inline)) {
      for (int i = 0; i < kRows; ++i) e[i] = m[i], m[i] = n[i];
    };
    while (at < quiet) add_one(), turn();
    while (at < thrice) {
      column.add(at, e, m, n), finish(e), fetch(), at += x_step;
      column.add(at, m, n, e), finish(m), fetch(), at += x_step;
      column.add(at, n, e, m), finish(n), fetch(), at += x_step;
    }
    while (at < full) add_one(), finish(e), turn();
    for (; at < ending; at += x_step) {
      if (at >= start) finish(e);
      for (int i = 0; i < kRows; ++i) e[i] = m[i], m[i] = column.get(column.bias);
    }
  }
}

using Walk = void (*)(const DepthwiseCall&, const float* const*, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);

// Forms that a program may leave out: of two rows one for each ending, in whose place the one for any serves; and those for
// channels that do not fill a vector.  depthwise_endings.cc, depthwise_rest.cc
KERNEL_PART(depthwise_endings)(const DepthwiseCall& call, Walk* found);
KERNEL_PART(depthwise_rest)(int64_t rows, Walk* found);

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_CONV_LAST_DEPTHWISE_WALK_H_
