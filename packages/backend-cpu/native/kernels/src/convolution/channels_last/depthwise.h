// Depthwise convolution of a few rows, for the kernels that compute one row after another: compiled once; and the loops
// inside, once per instruction set.
#ifndef MYCELIA_CONV_LAST_DEPTHWISE_H_
#define MYCELIA_CONV_LAST_DEPTHWISE_H_

#include "convolution/channels_last/conv_last.h"

namespace mycelia {

constexpr int64_t kDepthwiseRows = 2;  // of y that the loops compute together, at most

// A tap of one pixel.
struct DepthwiseTap {
  const float *x, *w;
};

// Channels, and what happens to their sums.
struct DepthwiseLanes {
  int64_t channels, pixel;  // pixel: distance of two pixels
  const float* bias;        // never null
  float low, high;          // bounds of the result
  bool bounded;             // whether they are finite
};

// What the loops are given: rows of x (those outside of the image are rows of zeros), weights, rows of y.
struct DepthwiseCall {
  const ConvLast& s;
  const DepthwiseLanes& l;
  const float* const* x;
  const float* w;
  const float* residual;  // as y; may be null
  float* y;
  int64_t rows;  // of y, 1 or 2

  MYC_INLINE int64_t y_row() const { return s.out[1] * l.pixel; }
  MYC_INLINE int64_t panel() const { return s.taps() * kPackedColumns; }  // weights of 16 channels
};

// The loops of an instruction set.
struct DepthwiseLoops {
  // Whether loops may multiply these weights by zeros outside of an image.
  bool (*all_finite)(const float* weights, int64_t count);
  // One pixel from a list of taps; panel: distance of the weights of 16 channels.
  void (*pixel)(const DepthwiseLanes& l, int64_t panel, const DepthwiseTap* taps, int64_t count, const float* residual,
                float* y);
  // 3x3 with stride 1: all positions; whether the program has that.  depthwise_slide.cc
  bool (*slide)(const DepthwiseCall& call);
  // 3x3 with stride 2 and 5x5: blocks of positions.  depthwise_block.cc
  // The position behind a block of positions from p on, or p if there is none; null without such loops.
  int64_t (*block)(const DepthwiseCall& call, int64_t p);
  int32_t (*activate)(float* y, int64_t count, Activation activation);  // as that of TileLoops
};

// Rows of one depthwise convolution, whose memory belongs to the Scratch given to `make`.
struct DepthwiseRows {
  const DepthwiseLoops* loops;
  ConvLast s;
  ConvEpilogue e;
  int64_t group_rows;  // rows that are best computed together
  bool slides;         // whether by `slide`
  const float *weights, *zeros;
  DepthwiseTap* taps;

  // False when memory is exhausted.
  bool make(MYC_ISA::Scratch& scratch, const DepthwiseLoops& loops, int64_t workers, const ConvLast& shape, const float* packed,
            const ConvEpilogue& epilogue);

  // Rows of x that lie under `rows` rows of y.
  MYC_INLINE int64_t rows_under(int64_t rows) const { return (s.kernel[0] - 1) * s.dilation[0] + 1 + (rows - 1) * s.stride[0]; }

  // `rows` <= group_rows rows of y, one behind another in `to` as in `residual` (may be null); under: these rows of
  // x, null for one outside of the image.
  void run(const float* const* under, int64_t rows, const float* residual, float* to, int64_t worker) const;
};

}  // namespace mycelia

namespace mycelia::MYC_ISA {

// Those of this instruction set, or of another one in a program that has both.  depthwise_loops.cc
KERNEL_PART(depthwise_loops)(const DepthwiseLoops** found);

// Keeps a compiler from computing x anew, or as part of a vector, where it would queue behind the multiply-adds.
template <class T>
MYC_INLINE void in_register(T& x) {
  asm("" : "+r"(x));
}

template <class T>
MYC_INLINE T* bytes_behind(T* p, int64_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(p) + bytes);
}

// Lines of the first-level cache that one channel of many pixels can lie in.
inline int64_t depthwise_cache_lines(int64_t pixel) {
  constexpr int64_t kSets = 64, kWays = 8, kLineFloats = 16;
  if (pixel % kLineFloats != 0) return kSets * kWays;
  int64_t sets = kSets;
  for (int64_t lines = pixel / kLineFloats; sets > 1 && lines % 2 == 0; lines /= 2) sets /= 2;
  return sets * kWays;
}

// One pixel from a list of taps.  depthwise_pixel.cc
void depthwise_pixel(const DepthwiseLanes& l, int64_t panel, const DepthwiseTap* taps, int64_t count, const float* residual,
                     float* y);
bool depthwise_finite(const float* weights, int64_t count);

KERNEL_PART(depthwise_slide)(const DepthwiseCall& call);
int64_t depthwise_block(const DepthwiseCall& call, int64_t p);

// 3x3 and 5x5 with stride 2: a row of the input gradient from rows of dy and the weights of the taps that reach it from
// there, of which there are at most 3.  depthwise_double.cc
// zeros, spare: a pixel to read and one to write for what is outside.
bool depthwise_doubles(const ConvLast& s);
void depthwise_double(const ConvLast& s, const DepthwiseTap* rows, int64_t count, const float* zeros, float* spare,
                      float* dx);

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_CONV_LAST_DEPTHWISE_H_
