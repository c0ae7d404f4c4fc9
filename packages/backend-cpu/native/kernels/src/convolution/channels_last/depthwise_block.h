// The loops of depthwise_block.cc, and the tables of them.
//
// A block is 7 or 4 neighbouring positions in two rows.  A tap's weights lie in a register, its pixels are operands in
// memory of the multiply-adds: with 14 sums there is no room for pixels.  Columns left and right of the image are left
// out.  About 200 instructions for 126 multiply-adds on AVX2.
#ifndef MYCELIA_CONV_LAST_DEPTHWISE_BLOCK_H_
#define MYCELIA_CONV_LAST_DEPTHWISE_BLOCK_H_

#include "convolution/channels_last/depthwise_lanes.h"
#include "part.h"

namespace mycelia::MYC_ISA {

constexpr int kWide = 7, kNarrow = 4;  // positions of a block in a row, see myc_cpu_depthwise_is_narrow

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
__attribute__((noinline)) void depthwise_loop(const DepthwiseLanes& l, const float* const* rows, const float* w,
                                     const float* residual, float* y, int64_t y_row) {
  constexpr int kUnder = K + S * (kRows - 1), kColumns = K + S * (kPixels - 1);
  const int64_t n = l.pixel;
  const LaneBounds bound(l);
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
      put([&](f32v v, const float* at) { return bound(v + load(at + distance)); });
    } else if (l.bounded) {
      put([&](f32v v, const float*) { return bound(v); });
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
  return {depthwise_loop<K, S, kRows, kPixels, 0, 0>,
          depthwise_loop<K, S, kRows, kPixels, kLeft, 0>,
          depthwise_loop<K, S, kRows, kPixels, 0, kRight>,
          depthwise_loop<K, S, kRows, kPixels, kLeft, kRight>,
          kLeft,
          kRight};
}

// Wide blocks of 3x3 with stride 2 that a program may leave out: those on the right of an image, and those of one row.  depthwise_right.cc, depthwise_single.cc
KERNEL_PART(depthwise_right)(int64_t rows, BlockKernel* found);
KERNEL_PART(depthwise_single)(BlockKernel* found);

// The narrow blocks of 3x3 with stride 2.  depthwise_narrow.cc
KERNEL_PART(depthwise_narrow)(int64_t rows, BlockKernel* found);

// The blocks of 5x5 with this stride, 1 or 2.  depthwise_block5.cc
KERNEL_PART(depthwise5)(int64_t stride, int64_t rows, BlockKernel* found);

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_CONV_LAST_DEPTHWISE_BLOCK_H_
