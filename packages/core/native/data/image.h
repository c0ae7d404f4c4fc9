// Filters, warps and colours of 8-bit images [rows, columns, channels], equal to their meaning in NumPy
// (dataset/vision/resample.py and recolor.py) to the last bit.
#pragma once
#include <cstdint>

#include "module.h"

namespace mycelia::data {

// How often each value is there: [channels, 256].
void histogram(const Pixels& in, int64_t* counts);

// [rows, columns, 3] -> [rows, columns], shares of the channels in 15 bits.
void grey(const Pixels& in, const int* shares, uint8_t* out);

// image * factor + grey * (1 - factor).
void saturation(const Pixels& in, const int* shares, double factor, uint8_t* out);

// Hue moved by `shift` of 256.
void hue(const Pixels& in, int shift, uint8_t* out);

// image * factor + smoothed * (1 - factor).
void sharpness(const Pixels& in, double factor, uint8_t* out);

// Kernels along rows and columns, of odd lengths; the border is mirrored without its last pixel.
void blur(const Pixels& in, const double* across, int wide, const double* down, int high, uint8_t* out);

// Pixels of `in` where the inverse map of [3, 3] sends the places of the result; `fill` [channels] outside. `taps`: 1 nearest,
// 2 linear, 4 cubic; `weights` [32, taps]. An affine map rounds as OpenCV's does, in 10 bits.
struct Warp {
  double inverse[9];
  bool perspective;
  int rows, columns, taps;
  const float* weights;
  const uint8_t* fill;
};
void warp(const Pixels& in, const Warp& how, uint8_t* out);

}  // namespace mycelia::data
