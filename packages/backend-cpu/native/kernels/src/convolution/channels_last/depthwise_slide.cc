// 3x3 depthwise convolution of stride 1, channels last: along a row.
//
// A vector of channels walks along two rows of y.  A column of x meets the three positions whose windows hold it: 4
// pixels, 18 multiply-adds with 9 weights and 6 sums that all stay in registers, so every pixel is read once for two
// rows and no position is a special case.  28 instructions for 18 multiply-adds on AVX2.
//
// The next vector takes the other half of each cache line, so a walk ends before the first-level cache is full.  Where
// the distance of pixels is a multiple of 1 KB, they all lie in so few of its sets that a walk of any use does not fit:
// then 16 channels of the pixels are copied first.
// Flops and bytes: as the convolution; x four times from the second-level cache for two rows of y.
#include "convolution/channels_last/depthwise.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kLineFloats = 16;            // of a cache line
constexpr int64_t kWalk = 64, kShortWalk = 7;  // positions

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
        if (kEnding != Ending::plain) v = l.bound(v);
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
      __builtin_prefetch(bytes_behind(column.x[kRows + 1], at + kLineFloats * int64_t{sizeof(float)}));
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

template <int kRows>
void walk_any(const DepthwiseCall& call, const float* const* x, int64_t x_pixel, int64_t shift, int64_t begin,
              int64_t end, int64_t c, int64_t last) {
  const int64_t whole = c + (last - c) / kLanes * kLanes;
  if (c < whole) {
    if constexpr (kRows == 1) {  // the last row of some images
      walk<kRows, true, Ending::any>(call, x, x_pixel, shift, begin, end, c, whole);
    } else {
      const auto run = call.residual    ? walk<kRows, true, Ending::added>
                       : call.l.bounded ? walk<kRows, true, Ending::bounded>
                                        : walk<kRows, true, Ending::plain>;
      run(call, x, x_pixel, shift, begin, end, c, whole);
    }
  }
  if (whole == last) return;
  const float* rest[kRows + 2];
  for (int r = 0; r < kRows + 2; ++r) rest[r] = x[r] + (whole - c);
  walk<kRows, false, Ending::any>(call, rest, x_pixel, shift, begin, end, whole, last);
}

template <int kRows>
void slide(const DepthwiseCall& call) {
  const int64_t n = call.l.channels, columns = call.s.in[1], pad = call.s.pad[1];
  // Walks whose pixels (kRows + 2 rows, two more columns) and positions fit, with a bit of room.
  const int64_t lines = depthwise_cache_lines(call.l.pixel), fit = (lines * 5 / 6 - 2 * (kRows + 2)) / (2 * kRows + 2);
  const bool apart = fit < min(kShortWalk, call.s.out[1]);
  const int64_t walks = ceil_div(call.s.out[1], apart ? kWalk : min(kWalk, fit));
  for (int64_t i = 0; i < walks; ++i) {
    const int64_t begin = call.s.out[1] * i / walks, end = call.s.out[1] * (i + 1) / walks;
    if (!apart) {
      walk_any<kRows>(call, call.x, call.l.pixel, 0, begin, end, 0, n);
      continue;
    }
    alignas(64) float copy[kRows + 2][(kWalk + 2) * kLineFloats];
    const int64_t first = max<int64_t>(0, begin - pad), stop = min(columns, end - pad + 2);
    for (int64_t c = 0; c < n; c += kLineFloats) {
      const float* here[kRows + 2];
      for (int r = 0; r < kRows + 2; ++r) {
        here[r] = copy[r];
        const float* from = call.x[r] + first * call.l.pixel + c;
        for (int64_t q = 0; q < stop - first; ++q)
          for (int64_t v = 0; v < kLineFloats; v += kLanes)
            store(copy[r] + q * kLineFloats + v, load(from + q * call.l.pixel + v));
      }
      walk_any<kRows>(call, here, kLineFloats, first, begin, end, c, c + kLineFloats);
    }
  }
}

}  // namespace

bool depthwise_slides(const ConvLast& s) {
  return s.kernel[0] == 3 && s.kernel[1] == 3 && s.stride[0] == 1 && s.stride[1] == 1 && s.dilation[0] == 1 &&
         s.dilation[1] == 1 && s.pad[1] <= 2;
}

void depthwise_slide(const DepthwiseCall& call) {
  if (call.rows == 2) {
    slide<2>(call);
  } else {
    slide<1>(call);
  }
}

}  // namespace mycelia::MYC_ISA
