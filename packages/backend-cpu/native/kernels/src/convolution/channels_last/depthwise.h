// Depthwise convolution of a few rows, for the kernels that compute one row after another, and the loops inside.
#ifndef MYCELIA_CONV_LAST_DEPTHWISE_H_
#define MYCELIA_CONV_LAST_DEPTHWISE_H_

#include "convolution/channels_last/conv_last.h"
#include "simd/activations.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kDepthwiseRows = 2;  // of y that the loops compute together, at most

// A tap of one pixel.
struct DepthwiseTap {
  const float *x, *w;
};

// Channels, and what happens to their sums.
struct DepthwiseLanes {
  int64_t channels, pixel;  // pixel: distance of two pixels
  const float* bias;        // never null
  f32v low, high;           // bounds of the result
  bool bounded;             // whether they are finite

  MYC_INLINE f32v bound(f32v x) const { return clip(x, low, high); }
};

// Whether there are loops for blocks of positions: with the 16 short registers of SSE2 their sums do not fit.
#if defined(__SSE2__) && !defined(__AVX2__)
constexpr bool kDepthwiseBlocks = false;
#else
constexpr bool kDepthwiseBlocks = true;
#endif

// What the loops are given: rows of x (those outside of the image are rows of zeros), weights, rows of y.
struct DepthwiseCall {
  const ConvLast& s;
  const DepthwiseLanes& l;
  const float* const* x;
  const float* w;
  const float* residual;  // as y; may be null
  float* y;
  int64_t rows;  // of y, 1 or 2

  int64_t y_row() const { return s.out[1] * l.pixel; }
  int64_t panel() const { return s.taps() * kPackedColumns; }  // weights of 16 channels
};

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

// 3x3 with stride 1: all positions.  depthwise_slide.cc
bool depthwise_slides(const ConvLast& s);
void depthwise_slide(const DepthwiseCall& call);

// 3x3 with stride 2 and 5x5: blocks of positions.  depthwise_block.cc
// The position behind a block of positions from p on, or p if there is none.
bool depthwise_has_blocks(const ConvLast& s);
int64_t depthwise_block(const DepthwiseCall& call, int64_t p);

// 3x3 and 5x5 with stride 2: a row of the input gradient from rows of dy and the weights of the taps that reach it from
// there, of which there are at most 3.  depthwise_double.cc
// zeros, spare: a pixel to read and one to write for what is outside.
bool depthwise_doubles(const ConvLast& s);
void depthwise_double(const ConvLast& s, const DepthwiseTap* rows, int64_t count, const float* zeros, float* spare,
                      float* dx);

// Rows of one depthwise convolution, whose memory belongs to the Scratch given to `make`.
struct DepthwiseRows {
  ConvLast s;
  ConvEpilogue e;
  int64_t group_rows;  // rows that are best computed together
  bool slides;         // whether by depthwise_slide
  const float *weights, *zeros;
  DepthwiseTap* taps;

  // False when memory is exhausted.
  bool make(Scratch& scratch, int64_t workers, const ConvLast& shape, const float* packed,
            const ConvEpilogue& epilogue);

  // Rows of x that lie under `rows` rows of y.
  int64_t rows_under(int64_t rows) const { return (s.kernel[0] - 1) * s.dilation[0] + 1 + (rows - 1) * s.stride[0]; }

  // `rows` <= group_rows rows of y, one behind another in `to` as in `residual` (may be null); under: these rows of
  // x, null for one outside of the image.
  void run(const float* const* under, int64_t rows, const float* residual, float* to, int64_t worker) const;
};

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_CONV_LAST_DEPTHWISE_H_
