// Weight gradient of a depthwise convolution with the channels last: dw[c][tap] = sum over positions of
// x[position, tap][c] * dy[position][c].
//
// A vector of channels keeps the sums of the taps in registers while it walks along some rows of dy; all channels
// take their turn before the next rows. Where a walk reads its rows several times, or pixels lie so that few of them
// fit the first-level cache together, 16 channels of these rows are copied first. The positions are cut into parts by
// the shape alone, whose sums meet in order: the result does not depend on the number of threads.
// Cost: 2 n positions channels taps flops; x and dy once in memory, (taps + 1) loads for taps multiply-adds, 4 for 9
// where windows of three columns overlap, 3 for 9 in pairs of rows.
#include "convolution/channels_last/depthwise.h"
#include "convolution/conv_transpose.h"
#if MYC_STEPS
#include "convolution/channels_last/depthwise_weight_avx2.h"
#endif

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kPartPixels = 1024;  // positions of a part, at least
constexpr int64_t kParts = 32;
constexpr int64_t kBlockPixels = 192, kBlockRows = 32;  // positions that all channels see in turn, without a copy
constexpr int64_t kCopyFloats = 6 << 10;                // of a block's copy, if two rows are not more
constexpr int64_t kFewLines = 16;                       // of the first-level cache

struct Gradient {
  ConvLast s;
  const float *x, *dy, *zeros;
  int64_t first, last;  // columns whose windows lie inside the image

  Gradient(const ConvLast& shape, const float* x, const float* dy, const float* zeros)
      : s(shape), x(x), dy(dy), zeros(zeros) {
    const int64_t room = s.in[1] - 1 + s.pad[1] - (s.kernel[1] - 1) * s.dilation[1];
    first = min(s.out[1], ceil_div(max(s.pad[1], int64_t{0}), s.stride[1]));
    last = room < 0 ? first : max(first, min(s.out[1], room / s.stride[1] + 1));
  }
};

// Rows of dy and channels, whole vectors.
struct Block {
  int64_t begin, end, from, to;
};

// Sums of the taps [a, a + A) x [b, b + B) over rows [begin, end) of all images' dy, for a vector of channels from c.
template <int A, int B>
__attribute__((noinline)) void add_rows(const Gradient& g, int64_t begin, int64_t end, int64_t a, int64_t b,
                                        int64_t c, float* sums) {
  const ConvLast& s = g.s;
  const int64_t n = s.c, apart = s.dilation[1] * n;
  float* to[A][B];
  f32v sum[A][B];
#pragma GCC unroll 3
  for (int i = 0; i < A; ++i) {
#pragma GCC unroll 7
    for (int j = 0; j < B; ++j) {
      to[i][j] = sums + ((a + i) * s.kernel[1] + b + j) * kLanes;
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
      const f32v v = load(y + p * n);
#pragma GCC unroll 3
      for (int i = 0; i < A; ++i) {
#pragma GCC unroll 7
        for (int j = 0; j < B; ++j) {
          const int64_t q = p * s.stride[1] + left + j * s.dilation[1];
          if (line[i] && q >= 0 && q < s.in[1]) sum[i][j] = fma(v, load(line[i] + q * n), sum[i][j]);
        }
      }
    };
    for (int64_t p = 0; p < g.first; ++p) at_border(p);
    for (int64_t p = g.first; p < g.last; ++p) {
      const f32v v = load(y + p * n);
#pragma GCC unroll 3
      for (int i = 0; i < A; ++i) {
#pragma GCC unroll 7
        for (int j = 0; j < B; ++j) sum[i][j] = fma(v, load(at[i] + j * apart), sum[i][j]);
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

// The same for the taps [a, a + A) x [0, 3) with stride and dilation 1 along the columns. It walks along x: a pixel
// meets the three positions whose windows hold it, those outside of dy as zeros, so that no column is a special case.
template <int A>
__attribute__((noinline)) void slide_rows(const Gradient& g, int64_t begin, int64_t end, int64_t a, int64_t c,
                                          float* sums) {
  const ConvLast& s = g.s;
  const int64_t n = s.c, left = -s.pad[1], columns = s.out[1];
  f32v sum[A][3];
#pragma GCC unroll 3
  for (int i = 0; i < A; ++i) {
    for (int j = 0; j < 3; ++j) sum[i][j] = load(sums + ((a + i) * 3 + j) * kLanes);
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
    const auto position = [&](int64_t u) { return u >= left && u - left < columns ? load(y + u * n) : f32v{}; };
    f32v d1 = position(first - 1), d2 = position(first - 2);
    // What pixel u adds, d0 being the position that it is the first tap of.
    const auto pixel = [&](int64_t at, f32v d0, f32v d1, f32v d2) __attribute__((always_inline)) {
#pragma GCC unroll 3
      for (int i = 0; i < A; ++i) {
        const f32v x = load(line[i] + at);
        sum[i][0] = fma(x, d0, sum[i][0]), sum[i][1] = fma(x, d1, sum[i][1]), sum[i][2] = fma(x, d2, sum[i][2]);
      }
    };
    int64_t u = first, at = first * n;
    for (; u + 3 <= full; u += 3) {
      const f32v d0 = load(y + at);
      pixel(at, d0, d1, d2);
      at += n;
      d2 = load(y + at);
      pixel(at, d2, d0, d1);
      at += n;
      d1 = load(y + at);
      pixel(at, d1, d2, d0);
      at += n;
    }
    for (; u < last; ++u, at += n) {
      const f32v d0 = u < full ? load(y + at) : f32v{};
      pixel(at, d0, d1, d2);
      d2 = d1, d1 = d0;
    }
  }
#pragma GCC unroll 3
  for (int i = 0; i < A; ++i) {
    for (int j = 0; j < 3; ++j) store(sums + ((a + i) * 3 + j) * kLanes, sum[i][j]);
  }
}

// All taps of a block, A x B at a time.
template <int A, int B>
void add_block(const Gradient& g, const Block& k, float* sums) {
  const ConvLast& s = g.s;
  for (int64_t c = k.from; c < k.to; c += kLanes, sums += s.taps() * kLanes) {
    for (int64_t b = 0; b < s.kernel[1]; b += B) {
      for (int64_t a = 0; a < s.kernel[0];) {
        const bool high = s.kernel[0] - a >= A;
        (high ? add_rows<A, B> : add_rows<1, B>)(g, k.begin, k.end, a, b, c, sums);
        a += high ? A : 1;
      }
    }
  }
}

void slide_block(const Gradient& g, const Block& k, float* sums) {
  const ConvLast& s = g.s;
  for (int64_t c = k.from; c < k.to; c += kLanes, sums += s.taps() * kLanes) {
    for (int64_t a = 0; a < s.kernel[0];) {
      const bool high = s.kernel[0] - a >= 3;
      (high ? slide_rows<3> : slide_rows<1>)(g, k.begin, k.end, a, c, sums);
      a += high ? 3 : 1;
    }
  }
}

#if MYC_STEPS
constexpr int64_t kPairAhead = 3, kStridedAhead = 2;  // positions whose pixels are fetched ahead

// 3x3 where a row of the result is as long as one of the image.
bool in_pairs(const ConvLast& s) {
  return s.kernel[0] == 3 && s.kernel[1] == 3 && s.stride[0] == 1 && s.stride[1] == 1 && s.dilation[0] == 1 &&
         s.dilation[1] == 1 && s.pad[0] >= 0 && s.pad[0] <= 1 && s.pad[1] == 1 && s.out[1] == s.in[1] &&
         s.in[1] > 1 && s.in[0] > 1 && s.out[0] < s.in[0] + s.pad[0];
}

// Rows of dy that one call adds.
struct Piece {
  DepthwiseUnder under;
  int64_t x, y, pairs, rows;  // x: row above
};

Piece piece(const ConvLast& s, int64_t row, int64_t end) {
  const int64_t image = row / s.out[0], at = row % s.out[0], left = min(end - row, s.out[0] - at);
  const int64_t above = at - s.pad[0], below = s.in[0] - 2 - above;  // below: rows after the one beside `row`
  const int64_t x = image * s.in[0] + above;
  if (above < 0) {
    if (left > 1 && below > 1) return {DepthwiseUnder::last_three, x, row, 1, 2};
    return {DepthwiseUnder::last_two_single, x, row, 1, 1};
  }
  const int64_t pairs = min(left, below) / 2;
  if (pairs > 0) return {DepthwiseUnder::four, x, row, pairs, 2 * pairs};
  if (left > 1 && below == 1) return {DepthwiseUnder::first_three, x, row, 1, 2};
  return {below > 0 ? DepthwiseUnder::three_single : DepthwiseUnder::first_two_single, x, row, 1, 1};
}

void pair_block(const Gradient& g, const Block& k, float* sums) {
  constexpr int64_t kBytes = sizeof(float);
  const int64_t n = g.s.c, width = g.s.in[1], line = width * n;
  Piece pieces[kBlockRows];
  int count = 0;
  for (int64_t row = k.begin; row < k.end; row += pieces[count++].rows) pieces[count] = piece(g.s, row, k.end);
  DepthwiseSums call;
  call.step = n * kBytes, call.row = line * kBytes, call.ahead = kPairAhead * call.step;
  call.rounds = width / 3, call.entry = (width + 1) % 3;
  for (int64_t c = k.from; c < k.to; c += kLanes, sums += 9 * kLanes) {
    call.sums = sums;
    for (int i = 0; i < count; ++i) {
      call.x = g.x + pieces[i].x * line + c, call.y = g.dy + pieces[i].y * line + n + c, call.pairs = pieces[i].pairs;
      add_depthwise_rows(pieces[i].under, call);
    }
  }
}

// 3x3 with a stride along the rows and at most one column and row of zeros at each end.
bool strided(const ConvLast& s) {
  for (int d = 0; d < 2; ++d) {
    const int64_t behind = (s.out[d] - 1) * s.stride[d] + 3 - s.pad[d] - s.in[d];
    if (s.kernel[d] != 3 || s.dilation[d] != 1 || s.in[d] < 2) return false;
    if (s.pad[d] < 0 || s.pad[d] > 1 || behind > 1) return false;
  }
  return s.stride[1] > 1;
}

void strided_block(const Gradient& g, const Block& k, float* sums) {
  constexpr int64_t kBytes = sizeof(float);
  const ConvLast& s = g.s;
  const int64_t n = s.c, line = s.in[1] * n;
  DepthwiseStrided call;
  call.step = n * kBytes, call.row = line * kBytes;
  call.x_step = s.stride[1] * call.step, call.x_rows = s.stride[0] * call.row;
  call.x_ahead = kStridedAhead * call.x_step, call.y_ahead = kStridedAhead * call.step;
  call.first = g.first, call.positions = g.last - g.first, call.last = s.out[1] - g.last;
  for (int64_t c = k.from; c < k.to; c += kLanes, sums += 9 * kLanes) {
    call.sums = sums;
    for (int64_t row = k.begin, rows; row < k.end; row += rows) {
      const int64_t image = row / s.out[0], at = row % s.out[0], top = at * s.stride[0] - s.pad[0];
      const int64_t room = s.in[0] - 3 - top, inside = room < 0 ? 0 : room / s.stride[0] + 1;
      rows = top < 0 || inside == 0 ? 1 : min(min(k.end - row, s.out[0] - at), inside);
      call.x = g.x + (image * s.in[0] + top) * line + (g.first * s.stride[1] - s.pad[1]) * n + c;
      call.y = g.dy + row * s.out[1] * n + c, call.rows = rows;
      const DepthwiseTaps cut = top < 0 ? DepthwiseTaps::last_two : DepthwiseTaps::first_two;
      add_depthwise_strided(top >= 0 && inside > 0 ? DepthwiseTaps::all : cut, call);
    }
  }
}
#endif

// How the sums are added.
struct Way {
  void (*add)(const Gradient& g, const Block& k, float* sums);  // sums: those of the first vector
  bool zeros;                                                   // whether rows of zeros are read
  bool borders;  // whether it is better that a copy has zeros left and right

  explicit Way(const ConvLast& s) : zeros(true), borders(true) {
    switch (s.kernel[1]) {
      case 3:
        add = add_block<3, 3>;
        break;
      case 5:
        add = add_block<2, 5>;
        break;
      case 7:
        add = add_block<1, 7>;
        break;
      default:
        add = add_block<1, 1>;
    }
    if (s.kernel[1] == 3 && s.stride[1] == 1 && s.dilation[1] == 1) add = slide_block, borders = false;
#if MYC_STEPS
    if (in_pairs(s)) add = pair_block, zeros = false;
    if (strided(s)) add = strided_block, zeros = borders = false;
#endif
  }
};

// The form of copies of 16 channels of some rows.
struct Copies {
  ConvLast s;             // of the copied columns
  int64_t before, first;  // columns of zeros, then columns of the image from this one on
  int64_t columns;        // of the image
  int64_t rows;           // of dy, at most

  int64_t under(int64_t dy_rows) const {
    return (dy_rows - 1) * s.stride[0] + (s.kernel[0] - 1) * s.dilation[0] + 1;
  }
  int64_t floats(int64_t dy_rows) const {
    return (under(dy_rows) * s.in[1] + dy_rows * s.out[1]) * kPackedColumns;
  }

  Copies(const ConvLast& whole, bool borders) : s(whole), before(0), first(0), columns(whole.in[1]), rows(2) {
    s.n = 1, s.c = s.o = s.group = kPackedColumns;
    if (borders) {
      s.pad[1] = 0, s.in[1] = (s.out[1] - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
      before = clamp(whole.pad[1], int64_t{0}, s.in[1]), first = max(-whole.pad[1], int64_t{0});
      columns = max(min(whole.in[1] - first, s.in[1] - before), int64_t{0});
    }
    while (rows < kBlockRows && floats(rows + 1) <= kCopyFloats) ++rows;
  }
};

// to: pixels of 16 channels; from: pixels of n channels, of which `lanes` are copied.
void copy_pixels(const float* from, int64_t n, int64_t lanes, int64_t pixels, float* to) {
  constexpr int64_t kAhead = 6;  // pixels
  for (int64_t q = 0; q < pixels; ++q, from += n, to += kPackedColumns) {
    __builtin_prefetch(from + kAhead * n);
    if (lanes >= kPackedColumns) {
      for (int64_t v = 0; v < kPackedColumns; v += kLanes) store(to + v, load(from + v));
    } else {
      for (int64_t v = 0; v < lanes; v += kLanes)
        store(to + v, load_partial(from + v, min<int64_t>(kLanes, lanes - v)));
    }
  }
}

// A block within an image, of at most 16 channels.
void add_copied(const Gradient& g, const Way& way, const Copies& copies, const Block& k, float* room, float* sums) {
  const ConvLast& s = g.s;
  const int64_t image = k.begin / s.out[0], at = k.begin % s.out[0], rows = k.end - k.begin;
  const int64_t lanes = k.to - k.from, top = at * s.stride[0] - s.pad[0];
  const int64_t first = clamp(top, int64_t{0}, s.in[0]), last = clamp(top + copies.under(rows), first, s.in[0]);
  ConvLast part = copies.s;
  part.in[0] = last - first, part.out[0] = rows, part.pad[0] = first - top;
  float* to = room;
  for (int64_t r = first; r < last; ++r, to += part.in[1] * kPackedColumns) {
    const int64_t end = copies.before + copies.columns;
    memset(to, 0, copies.before * kPackedColumns * sizeof(float));
    copy_pixels(g.x + ((image * s.in[0] + r) * s.in[1] + copies.first) * s.c + k.from, s.c, lanes, copies.columns,
                to + copies.before * kPackedColumns);
    memset(to + end * kPackedColumns, 0, (part.in[1] - end) * kPackedColumns * sizeof(float));
  }
  copy_pixels(g.dy + k.begin * s.out[1] * s.c + k.from, s.c, lanes, rows * s.out[1], to);
  way.add(Gradient(part, room, to, g.zeros), {0, rows, 0, round_up(lanes, int64_t{kLanes})}, sums);
}

}  // namespace

int32_t conv_last_depthwise_weight_grad(const myc_call* call, const ConvLast& s, const float* x, const float* dy,
                                        float* dw) {
  const int64_t n = s.c, taps = s.taps(), rows = s.n * s.out[0];
  const int64_t parts = clamp(min(rows, rows * s.out[1] / kPartPixels), int64_t{1}, kParts);
  const int64_t each = taps * round_up(n, kPackedColumns);
  const Way way(s);
  const Copies copies(s, way.borders);
  const bool copied = taps > 9 || depthwise_cache_lines(n) <= kFewLines;
  const int64_t direct = copied ? 0 : n / kLanes * kLanes;  // channels without a copy
  const int64_t direct_rows = clamp(kBlockPixels / max<int64_t>(1, s.out[1]), int64_t{1}, kBlockRows);
  const int64_t room = copies.floats(copies.rows);
  const int64_t zero_pixels = !way.zeros ? 0 : way.borders ? (s.kernel[1] - 1) * s.dilation[1] + 1 : s.in[1];
  const int64_t zero_floats = zero_pixels * max(n, kPackedColumns);
  Scratch scratch(call);
  float* sums = scratch.take<float>(parts * each);
  float* zeros = scratch.take<float>(zero_floats);
  float* rooms = scratch.take<float>(max_workers(call) * room);
  if (!sums || !zeros || !rooms) return MYC_E_MEMORY;
  memset(zeros, 0, zero_floats * sizeof(float));

  const Gradient g(s, x, dy, zeros);
  const auto part = [&](int64_t i, int32_t worker) {
    float* own = sums + i * each;
    memset(own, 0, each * sizeof(float));
    const int64_t begin = rows * i / parts, end = rows * (i + 1) / parts;
    for (int64_t row = begin; row < end && direct > 0; row += direct_rows)
      way.add(g, {row, min(end, row + direct_rows), 0, direct}, own);
    for (int64_t row = begin, next; row < end && direct < n; row = next) {
      next = min(min(end, row + copies.rows), (row / s.out[0] + 1) * s.out[0]);
      for (int64_t c = direct; c < n; c += kPackedColumns)
        add_copied(g, way, copies, {row, next, c, min(n, c + kPackedColumns)}, rooms + worker * room, own + c * taps);
    }
  };
  const int64_t work = 8 * taps * rows * s.out[1] * n / parts;
  parallel_for_worker(call, parts, kMinParallelWork / (work + 1) + 1,
                      [&](int64_t begin, int64_t end, int32_t worker) {
                        for (int64_t i = begin; i < end; ++i) part(i, worker);
                      });
  for (int64_t part = 1; part < parts; ++part)
    for (int64_t i = 0; i < each; i += kLanes) store(sums + i, load(sums + i) + load(sums + part * each + i));
  for (int64_t c = 0; c < n; c += kLanes)
    transpose_matrix(sums + c * taps, kLanes, taps, min<int64_t>(kLanes, n - c), dw + c * taps, taps);
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
