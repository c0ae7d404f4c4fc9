// Depthwise convolution of a few rows, for the kernels that compute one row after another.
#ifndef MYCELIA_CONV_LAST_DEPTHWISE_H_
#define MYCELIA_CONV_LAST_DEPTHWISE_H_

#include "conv_last.h"

namespace mycelia::MYC_ISA {

// A tap of one pixel.
struct DepthwiseTap {
  const float *x, *w;
};

// Rows of one depthwise convolution, whose memory belongs to the Scratch given to `make`.
struct DepthwiseRows {
  ConvLast s;
  ConvEpilogue e;
  int64_t group_rows;  // rows that are best computed together
  int64_t distance;    // of the weights of two taps
  const float *weights, *zeros;
  DepthwiseTap* taps;

  // False when memory is exhausted.
  bool make(Scratch& scratch, int64_t workers, const ConvLast& shape, const float* packed, const ConvEpilogue& epilogue);

  // Rows of x that lie under `rows` rows of y.
  int64_t rows_under(int64_t rows) const { return (s.kernel[0] - 1) * s.dilation[0] + 1 + (rows - 1) * s.stride[0]; }

  // `rows` <= group_rows rows of y, one behind another in `to` as in `residual` (may be null); under: these rows of
  // x, null for one outside of the image.
  void run(const float* const* under, int64_t rows, const float* residual, float* to, int64_t worker) const;
};

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_CONV_LAST_DEPTHWISE_H_
