// Depthwise convolution, channels last, in blocks: 3x3 with stride 2 and 5x5.
//
// A block is 7 or 4 neighbouring positions in two rows.  A tap's weights lie in a register, its pixels are operands in
// memory of the multiply-adds: with 14 sums there is no room for pixels.  Columns left and right of the image are left
// out.  About 200 instructions for 126 multiply-adds on AVX2.
// Flops and bytes: as the convolution, but for blocks that overlap where the width is no multiple of theirs.
#include "convolution/channels_last/depthwise.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int kWide = 7, kNarrow = 4;          // positions of a block in a row
constexpr int kMaxRows = 7, kMaxColumns = 17;  // of x under a block

// sum += weight * base[kScale * index], index in bytes.  Left to itself a compiler computes every address in a
// register, and runs out of them.
template <int kScale>
MYC_INLINE void multiply_add(f32v& sum, f32v weight, const float* base, int64_t index) {
#if MYC_VECTOR_BYTES == 32
  const auto& memory = *reinterpret_cast<const float(*)[]>(base);  // that it is read
  if constexpr (kScale == 0) {
    asm("vfmadd231ps (%1), %2, %0" : "+x"(sum) : "r"(base), "x"(weight), "m"(memory));
  } else {
    asm("vfmadd231ps (%1, %2, %c4), %3, %0" : "+x"(sum) : "r"(base), "r"(index), "x"(weight), "i"(kScale), "m"(memory));
  }
#else
  sum = fma(weight, load(bytes_behind(base, kScale * index)), sum);
#endif
}

// Positions of a row are `one` bytes apart: three multiples reach all of a block by the scales of an address.
struct Distances {
  int64_t one, three, five;

  explicit Distances(int64_t bytes) : one(bytes), three(3 * bytes), five(5 * bytes) {}

  // sum += weight * base[j positions on]; j is known to the compiler.
  MYC_INLINE void add(f32v& sum, f32v weight, const float* base, int j) const {
    if (j == 0) multiply_add<0>(sum, weight, base, one);
    if (j == 1) multiply_add<1>(sum, weight, base, one);
    if (j == 2) multiply_add<2>(sum, weight, base, one);
    if (j == 3) multiply_add<1>(sum, weight, base, three);
    if (j == 4) multiply_add<4>(sum, weight, base, one);
    if (j == 5) multiply_add<1>(sum, weight, base, five);
    if (j == 6) multiply_add<2>(sum, weight, base, three);
  }
};

// kRows x kPixels positions; rows[r]: the first pixel under the block in row r of x; residual may be null, else it
// lies as y.  y_row: floats between rows of y.  The first kLeft and the last kRight columns lie outside of the image.
template <int K, int S, int kRows, int kPixels, int kLeft, int kRight>
__attribute__((noinline)) void block(const DepthwiseLanes& l, const float* const* rows, const float* w,
                                     const float* residual, float* y, int64_t y_row) {
  constexpr int kUnder = K + S * (kRows - 1), kColumns = K + S * (kPixels - 1);
  const int64_t n = l.pixel;
  Distances d(S * n * static_cast<int64_t>(sizeof(float)));
  for (int64_t c = 0; c < l.channels; c += kLanes) {
    in_register(d.one), in_register(d.three), in_register(d.five);
    const float* weights = w + c / kPackedColumns * (K * K * kPackedColumns) + c % kPackedColumns;
    const float* from[kUnder];
#pragma GCC unroll 8
    for (int r = 0; r < kUnder; ++r) from[r] = rows[r] + c, in_register(from[r]);
    f32v sum[kRows][kPixels];
    const f32v bias = load(l.bias + c);
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kPixels; ++j) sum[i][j] = bias;
#pragma GCC unroll 5
    for (int b = 0; b < K; ++b) {
#pragma GCC unroll 5
      for (int a = 0; a < K; ++a) {
        const f32v weight = load(weights + (a * K + b) * kPackedColumns);
#pragma GCC unroll 2
        for (int i = 0; i < kRows; ++i) {
          const float* p = from[a + i * S];
#pragma GCC unroll 7
          for (int j = 0; j < kPixels; ++j) {
            if (j * S + b >= kLeft && j * S + b < kColumns - kRight) d.add(sum[i][j], weight, p, j);
          }
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < kUnder; ++r) from[r] += n, in_register(from[r]);
    }
    const auto put = [&](const auto& finish) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int i = 0; i < kRows; ++i) {
        float* to = y + i * y_row + c;
#pragma GCC unroll 7
        for (int j = 0; j < kPixels; ++j) {
          store(to, finish(sum[i][j], to));
          to += n, in_register(to);
        }
      }
    };
    if (residual) {
      const int64_t distance = residual - y;
      put([&](f32v v, const float* at) { return l.bound(v + load(at + distance)); });
    } else if (l.bounded) {
      put([&](f32v v, const float*) { return l.bound(v); });
    } else {
      put([](f32v v, const float*) { return v; });
    }
  }
}

using Block = void (*)(const DepthwiseLanes&, const float* const*, const float*, const float*, float*, int64_t);

// The block kernels of a geometry and number of rows by what lies outside of the image; null where there is none.
struct BlockKernel {
  Block inside = nullptr, left = nullptr, right = nullptr, both = nullptr;
  int64_t left_columns = 0, right_columns = 0;  // that lie outside for those

  Block outside(int64_t before, int64_t behind) const {
    if ((before != 0 && before != left_columns) || (behind != 0 && behind != right_columns)) return nullptr;
    return before ? behind ? both : left : behind ? right : inside;
  }
};

template <int K, int S, int kRows, int kPixels>
BlockKernel blocks_of() {
  constexpr int kLeft = K / 2, kRight = K == 3 || S == 1 ? K / 2 : 1;
  return {block<K, S, kRows, kPixels, 0, 0>,      block<K, S, kRows, kPixels, kLeft, 0>,
          block<K, S, kRows, kPixels, 0, kRight>, block<K, S, kRows, kPixels, kLeft, kRight>,
          kLeft,                                  kRight};
}

BlockKernel block_kernel(const ConvLast& s, int64_t rows, bool narrow) {
  const bool two = rows == 2;
  if (narrow) return two ? blocks_of<3, 2, 2, kNarrow>() : blocks_of<3, 2, 1, kNarrow>();
  if (s.kernel[0] == 3) return two ? blocks_of<3, 2, 2, kWide>() : blocks_of<3, 2, 1, kWide>();
  if (s.stride[0] == 1) return two ? blocks_of<5, 1, 2, kWide>() : blocks_of<5, 1, 1, kWide>();
  return two ? blocks_of<5, 2, 2, kWide>() : blocks_of<5, 2, 1, kWide>();
}

// At most 16 channels.
MYC_INLINE void copy_lanes(const float* from, int64_t lanes, float* to) {
  for (int64_t v = 0; v < lanes; v += kLanes)
    store(to + v, lanes - v >= kLanes ? load(from + v) : load_partial(from + v, lanes - v));
}

// The block of `pixels` positions from p on, for all channels; first: the column of x under it, of its columns
// [begin, end) lie in the image.  Channels that do not fill a vector are copied first, with all that they need; so are
// all, 16 at a time, where few of their pixels fit the first-level cache together.
void in_lanes(const DepthwiseCall& call, Block run, int64_t p, int64_t pixels, int64_t first, int64_t begin,
              int64_t end) {
  constexpr int64_t kFewLines = 32;
  const DepthwiseLanes& l = call.l;
  const int64_t y_row = call.y_row(), under = call.s.kernel[0] + (call.rows - 1) * call.s.stride[0];
  const int64_t direct = depthwise_cache_lines(l.pixel) <= kFewLines ? 0 : l.channels / kLanes * kLanes;
  const float* residual = call.residual ? call.residual + p * l.pixel : nullptr;
  const float* rows[kMaxRows];
  float* y = call.y + p * l.pixel;
  for (int64_t r = 0; r < under; ++r) rows[r] = call.x[r] + first * l.pixel;
  if (direct > 0) {
    DepthwiseLanes whole = l;
    whole.channels = direct;
    run(whole, rows, call.w, residual, y, y_row);
  }
  for (int64_t c = direct; c < l.channels; c += kPackedColumns) {
    const int64_t lanes = min(l.channels - c, kPackedColumns);
    float x[kMaxRows][kMaxColumns][kPackedColumns], bias[kPackedColumns];
    float added[kDepthwiseRows][kWide][kPackedColumns], sums[kDepthwiseRows][kWide][kPackedColumns];
    const float* copies[kMaxRows];
    for (int64_t r = 0; r < under; ++r) {
      for (int64_t q = begin; q < end; ++q) copy_lanes(rows[r] + q * l.pixel + c, lanes, x[r][q]);
      copies[r] = x[r][0];
    }
    for (int64_t i = 0; residual && i < call.rows; ++i) {
      for (int64_t j = 0; j < pixels; ++j) copy_lanes(residual + i * y_row + j * l.pixel + c, lanes, added[i][j]);
    }
    copy_lanes(l.bias + c, lanes, bias);
    DepthwiseLanes some = l;
    some.channels = round_up(lanes, int64_t{kLanes}), some.pixel = kPackedColumns, some.bias = bias;
    const float* w = call.w + c / kPackedColumns * call.panel() + c % kPackedColumns;
    run(some, copies, w, residual ? added[0][0] : nullptr, sums[0][0], kWide * kPackedColumns);
    for (int64_t i = 0; i < call.rows; ++i) {
      for (int64_t j = 0; j < pixels; ++j) {
        float* to = y + i * y_row + j * l.pixel + c;
        for (int64_t v = 0; v < lanes; v += kLanes) {
          const f32v sum = load(sums[i][j] + v);
          if (lanes - v >= kLanes) {
            store(to + v, sum);
          } else {
            store_partial(to + v, sum, lanes - v);
          }
        }
      }
    }
  }
}

}  // namespace

bool depthwise_has_blocks(const ConvLast& s) {
  const bool square = s.kernel[0] == s.kernel[1] && s.stride[0] == s.stride[1];
  return square && s.dilation[0] == 1 && s.dilation[1] == 1 &&
         ((s.kernel[0] == 3 && s.stride[0] == 2) || (s.kernel[0] == 5 && s.stride[0] <= 2));
}

int64_t depthwise_block(const DepthwiseCall& call, int64_t p) {
  const ConvLast& s = call.s;
  const int64_t width = s.out[1];
  const bool narrow =
      s.kernel[1] == 3 && (width < kWide || 8 * round_up(width, kNarrow) < 7 * round_up(width, kWide));
  const int64_t pixels = narrow ? kNarrow : kWide, columns = s.kernel[1] + s.stride[1] * (pixels - 1);
  const int64_t at = p + pixels > width && p + 1 < width ? width - pixels : p;  // some positions once more
  if (at < 0 || at + pixels > width) return p;
  const int64_t first = at * s.stride[1] - s.pad[1], before = max(-first, int64_t{0});
  const int64_t behind = max(first + columns - s.in[1], int64_t{0});
  const Block run = block_kernel(s, call.rows, narrow).outside(before, behind);
  if (!run) return p;
  in_lanes(call, run, at, pixels, first, before, columns - behind);
  return at + pixels;
}

}  // namespace mycelia::MYC_ISA
