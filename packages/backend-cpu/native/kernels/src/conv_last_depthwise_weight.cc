// Weight gradient of a depthwise convolution with the channels last: dw[c][tap] = sum over positions of
// x[position, tap][c] * dy[position][c].
//
// A vector of channels keeps the sums of the taps in registers while it walks along some rows of dy; all channels
// take their turn before the next rows, so that those stay in the second-level cache. Rows above and below the image
// are zeros. The positions are cut into parts by the shape alone, whose sums meet in order: the result does not
// depend on the number of threads.
// Cost: 2 n positions channels taps flops; x and dy once in memory, (taps + 1) loads for taps multiply-adds, 4 for 9
// where windows of three columns overlap.
#include "conv_last.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kPartPixels = 1024;  // positions of a part, at least
constexpr int64_t kParts = 32;
constexpr int64_t kBlockPixels = 192;  // positions that all channels see in turn

struct Gradient {
  ConvLast s;
  const float *x, *dy, *zeros;
  int64_t first, last;  // columns whose windows lie inside the image
  int64_t width;        // distance of the sums of two taps
};

// Sums of the taps [a, a + A) x [b, b + B) over rows [begin, end) of all images' dy, for channels [c, c + lanes).
template <int A, int B, bool kWhole>
__attribute__((noinline)) void add_rows(const Gradient& g, int64_t begin, int64_t end, int64_t a, int64_t b,
                                        int64_t c, int64_t lanes, float* sums) {
  const ConvLast& s = g.s;
  const int64_t n = s.c, apart = s.dilation[1] * n;
  const auto get = [&](const float* p) __attribute__((always_inline)) {
    return kWhole ? load(p) : load_partial(p, lanes);
  };
  float* to[A][B];
  f32v sum[A][B];
#pragma GCC unroll 3
  for (int i = 0; i < A; ++i) {
#pragma GCC unroll 7
    for (int j = 0; j < B; ++j) {
      to[i][j] = sums + ((a + i) * s.kernel[1] + b + j) * g.width + c;
      sum[i][j] = load(to[i][j]);
    }
  }
  for (int64_t row = begin; row < end; ++row) {
    const int64_t top = row % s.out[0] * s.stride[0] - s.pad[0] + a * s.dilation[0];
    const int64_t left = b * s.dilation[1] - s.pad[1];  // column of x under the first one of dy
    const float* line[A];                               // of x; null outside
    const float* at[A];
    int64_t step[A];
#pragma GCC unroll 3
    for (int i = 0; i < A; ++i) {
      const int64_t r = top + i * s.dilation[0];
      const bool in = r >= 0 && r < s.in[0];
      line[i] = in ? g.x + (row / s.out[0] * s.in[0] + r) * s.in[1] * n + c : nullptr;
      at[i] = in ? line[i] + (g.first * s.stride[1] + left) * n : g.zeros;
      step[i] = in ? s.stride[1] * n : 0;
    }
    const float* y = g.dy + row * s.out[1] * n + c;
    const auto at_border = [&](int64_t p) {
      const f32v v = get(y + p * n);
#pragma GCC unroll 3
      for (int i = 0; i < A; ++i) {
#pragma GCC unroll 7
        for (int j = 0; j < B; ++j) {
          const int64_t q = p * s.stride[1] + left + j * s.dilation[1];
          if (line[i] && q >= 0 && q < s.in[1]) sum[i][j] = fma(v, get(line[i] + q * n), sum[i][j]);
        }
      }
    };
    for (int64_t p = 0; p < g.first; ++p) at_border(p);
    for (int64_t p = g.first; p < g.last; ++p) {
      const f32v v = get(y + p * n);
#pragma GCC unroll 3
      for (int i = 0; i < A; ++i) {
#pragma GCC unroll 7
        for (int j = 0; j < B; ++j) sum[i][j] = fma(v, get(at[i] + j * apart), sum[i][j]);
        at[i] += step[i];
      }
    }
    for (int64_t p = max(g.first, g.last); p < s.out[1]; ++p) at_border(p);
  }
#pragma GCC unroll 3
  for (int i = 0; i < A; ++i) {
#pragma GCC unroll 7
    for (int j = 0; j < B; ++j) store(to[i][j], sum[i][j]);
  }
}

// The same for the taps [a, a + A) x [0, 3) with stride and dilation 1 along the columns. It walks along x: a pixel meets
// the three positions whose windows hold it, those outside of dy as zeros, so that no column is a special case.
template <int A, bool kWhole>
__attribute__((noinline)) void slide_rows(const Gradient& g, int64_t begin, int64_t end, int64_t a, int64_t c,
                                          int64_t lanes, float* sums) {
  const ConvLast& s = g.s;
  const int64_t n = s.c, left = -s.pad[1], columns = s.out[1];
  const auto get = [&](const float* p) __attribute__((always_inline)) {
    return kWhole ? load(p) : load_partial(p, lanes);
  };
  f32v sum[A][3];
#pragma GCC unroll 3
  for (int i = 0; i < A; ++i) {
    for (int j = 0; j < 3; ++j) sum[i][j] = load(sums + ((a + i) * 3 + j) * g.width + c);
  }
  const int64_t first = max<int64_t>(0, left);
  const int64_t full = min(s.in[1], columns + left), last = min(s.in[1], columns + left + 2);
  int64_t image = begin / s.out[0], at_row = begin % s.out[0];
  for (int64_t row = begin; row < end; ++row, ++at_row) {
    if (at_row == s.out[0]) at_row = 0, ++image;  // no division: a row takes but 100 cycles
    const int64_t top = at_row * s.stride[0] - s.pad[0] + a * s.dilation[0];
    const float* line[A];
#pragma GCC unroll 3
    for (int i = 0; i < A; ++i) {
      const int64_t r = top + i * s.dilation[0];
      line[i] = r >= 0 && r < s.in[0] ? g.x + (image * s.in[0] + r) * s.in[1] * n + c : g.zeros;
    }
    const float* y = g.dy + (row * columns - left) * n + c;  // of the position whose first tap is at column 0 of x
    const auto position = [&](int64_t u) { return u >= left && u - left < columns ? get(y + u * n) : f32v{}; };
    f32v d1 = position(first - 1), d2 = position(first - 2);
    // What pixel u adds, d0 being the position that it is the first tap of.
    const auto pixel = [&](int64_t at, f32v d0, f32v d1, f32v d2) __attribute__((always_inline)) {
#pragma GCC unroll 3
      for (int i = 0; i < A; ++i) {
        const f32v x = get(line[i] + at);
        sum[i][0] = fma(x, d0, sum[i][0]), sum[i][1] = fma(x, d1, sum[i][1]), sum[i][2] = fma(x, d2, sum[i][2]);
      }
    };
    int64_t u = first, at = first * n;
    for (; u + 3 <= full; u += 3) {
      const f32v d0 = get(y + at);
      pixel(at, d0, d1, d2);
      at += n;
      d2 = get(y + at);
      pixel(at, d2, d0, d1);
      at += n;
      d1 = get(y + at);
      pixel(at, d1, d2, d0);
      at += n;
    }
    for (; u < last; ++u, at += n) {
      const f32v d0 = u < full ? get(y + at) : f32v{};
      pixel(at, d0, d1, d2);
      d2 = d1, d1 = d0;
    }
  }
#pragma GCC unroll 3
  for (int i = 0; i < A; ++i) {
    for (int j = 0; j < 3; ++j) store(sums + ((a + i) * 3 + j) * g.width + c, sum[i][j]);
  }
}

// All taps of some rows and all channels, A x B taps at a time.
template <int A, int B>
void add_block(const Gradient& g, int64_t begin, int64_t end, float* sums) {
  const ConvLast& s = g.s;
  for (int64_t c = 0; c < s.c; c += kLanes) {
    const int64_t lanes = min<int64_t>(kLanes, s.c - c);
    for (int64_t b = 0; b < s.kernel[1]; b += B) {
      for (int64_t a = 0; a < s.kernel[0];) {
        const bool high = s.kernel[0] - a >= A;
        if (lanes == kLanes) {
          (high ? add_rows<A, B, true> : add_rows<1, B, true>)(g, begin, end, a, b, c, lanes, sums);
        } else {
          (high ? add_rows<A, B, false> : add_rows<1, B, false>)(g, begin, end, a, b, c, lanes, sums);
        }
        a += high ? A : 1;
      }
    }
  }
}

void slide_block(const Gradient& g, int64_t begin, int64_t end, float* sums) {
  const ConvLast& s = g.s;
  for (int64_t c = 0; c < s.c; c += kLanes) {
    const int64_t lanes = min<int64_t>(kLanes, s.c - c);
    for (int64_t a = 0; a < s.kernel[0];) {
      const bool high = s.kernel[0] - a >= 3;
      if (lanes == kLanes) {
        (high ? slide_rows<3, true> : slide_rows<1, true>)(g, begin, end, a, c, lanes, sums);
      } else {
        (high ? slide_rows<3, false> : slide_rows<1, false>)(g, begin, end, a, c, lanes, sums);
      }
      a += high ? 3 : 1;
    }
  }
}

}  // namespace

int32_t conv_last_depthwise_weight_grad(const myc_call* call, const ConvLast& s, const float* x, const float* dy,
                                        float* dw) {
  const int64_t n = s.c, taps = s.taps(), rows = s.n * s.out[0];
  // Sums at multiples of 1 KB would all meet in few cache sets.
  const int64_t lanes = round_up(n, kPackedColumns), width = lanes + (lanes % 256 ? 0 : kPackedColumns);
  const int64_t parts = clamp(min(rows, rows * s.out[1] / kPartPixels), int64_t{1}, kParts), each = taps * width;
  const bool slides = s.kernel[1] == 3 && s.stride[1] == 1 && s.dilation[1] == 1;
  const int64_t zero_floats = (slides ? s.in[1] : (s.kernel[1] - 1) * s.dilation[1]) * n + kLanes;
  Scratch scratch(call);
  float* sums = scratch.take<float>(parts * each);
  float* zeros = scratch.take<float>(zero_floats);
  if (!sums || !zeros) return MYC_E_MEMORY;
  memset(zeros, 0, zero_floats * sizeof(float));

  const int64_t room = s.in[1] - 1 + s.pad[1] - (s.kernel[1] - 1) * s.dilation[1];
  const int64_t first = min(s.out[1], ceil_div(max(s.pad[1], int64_t{0}), s.stride[1]));
  const int64_t last = room < 0 ? first : max(first, min(s.out[1], room / s.stride[1] + 1));
  const Gradient g = {s, x, dy, zeros, first, last, width};
  const auto add = slides             ? slide_block
                   : s.kernel[1] == 3 ? add_block<3, 3>
                   : s.kernel[1] == 5 ? add_block<2, 5>
                   : s.kernel[1] == 7 ? add_block<1, 7>
                                      : add_block<1, 1>;
  const int64_t block = max<int64_t>(1, kBlockPixels / max<int64_t>(1, s.out[1]));
  parallel_rows(call, parts, 8 * taps * rows * s.out[1] * n / parts, [&](int64_t part) {
    float* own = sums + part * each;
    memset(own, 0, each * sizeof(float));
    const int64_t stop = rows * (part + 1) / parts;
    for (int64_t i = rows * part / parts; i < stop; i += block) add(g, i, min(stop, i + block), own);
  });
  for (int64_t part = 1; part < parts; ++part)
    for (int64_t i = 0; i < each; i += kLanes) store(sums + i, load(sums + i) + load(sums + part * each + i));
  for (int64_t c = 0; c < n; ++c)
    for (int64_t t = 0; t < taps; ++t) dw[c * taps + t] = sums[t * width + c];
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
