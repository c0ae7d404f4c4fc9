// The source of a gathering convolution: images copied once into zero-padded planes whose rows are split by
// the stride, so that for every tap the values of neighbouring positions lie side by side in memory.
//
//   y[p] = sum over taps of w[tap] * x[p * step + offset(tap)],    offset(tap) = first + tap * by
//
// This form is a convolution and also each phase of its input gradient (conv_gemm.cc).
#ifndef MYCELIA_CONV_SOURCE_H_
#define MYCELIA_CONV_SOURCE_H_

#include "convolution/conv_shape.h"
#include "simd/vec.h"

namespace mycelia::MYC_ISA {

// One dimension of the gathering.
struct GatherAxis {
  int64_t in;         // source extent
  int64_t positions;  // results along this axis
  int64_t step;       // source elements between two positions
  int64_t taps, first, by;
};

struct GatherSource {
  GatherAxis axis[3];
  int64_t before[3], extent[3];  // zeros before the data; padded extent
  int64_t phase_length;  // a row = `step` phases of this length, phase f holding elements f, f + step, ...
  int64_t row, plane;    // elements of a padded row and plane
  bool copies;           // false: the caller's array already has this form

  int64_t positions() const { return axis[0].positions * axis[1].positions * axis[2].positions; }
  int64_t taps() const { return axis[0].taps * axis[1].taps * axis[2].taps; }
  // Where the values of a tap begin, counted from a position's own place.
  int64_t tap_offset(int64_t a, int64_t b, int64_t c) const {
    const int64_t z = axis[0].first + a * axis[0].by + before[0];
    const int64_t y = axis[1].first + b * axis[1].by + before[1];
    const int64_t x = axis[2].first + c * axis[2].by + before[2];
    const int64_t at = (z * extent[1] + y) * row, step = axis[2].step;
    return step == 1 ? at + x : at + x % step * phase_length + x / step;
  }
  int64_t position_offset(int64_t z, int64_t y, int64_t x) const {
    return (z * axis[0].step * extent[1] + y * axis[1].step) * row + x;
  }
};

// One phase of the input gradient along an axis: the positions f, f + stride, ... of x, gathered from dy.
struct Phase {
  GatherAxis axis;
  int64_t tap, tap_by;  // of the kernel: the first that reaches the phase, and the distance to the next
};

// Tap t reaches position i from dy's element (i + pad - t * dilation) / stride where that is whole: every so
// many taps.
inline Phase input_grad_phase(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                              int64_t pad, int64_t f) {
  int64_t every = 1, tap = 0;
  while (every * dilation % stride != 0) ++every;
  const int64_t candidates = min(every, kernel);
  while (tap < candidates && (f + pad - tap * dilation) % stride != 0) ++tap;
  Phase p = {{out, f < in ? ceil_div(in - f, stride) : 0, 1, 0, 0, 0}, tap, every};
  if (tap < candidates) {
    p.axis.taps = ceil_div(kernel - tap, every);
    p.axis.first = (f + pad - tap * dilation) / stride;
    p.axis.by = -(every * dilation / stride);
  }
  return p;
}

inline GatherSource gather_source(const GatherAxis (&axis)[3]) {
  GatherSource s;
  s.copies = axis[2].step != 1;
  for (int d = 0; d < 3; ++d) {
    const GatherAxis& a = s.axis[d] = axis[d];
    const int64_t last = a.first + (a.taps - 1) * a.by;
    const int64_t low = min(a.first, last), high = (a.positions - 1) * a.step + max(a.first, last);
    s.before[d] = max(int64_t{0}, -low);
    s.extent[d] = s.before[d] + max(a.in, high + 1);
    if (s.extent[d] != a.in) s.copies = true;
  }
  s.phase_length = ceil_div(s.extent[2], axis[2].step);
  s.row = s.phase_length * axis[2].step;
  s.plane = s.extent[0] * s.extent[1] * s.row;
  return s;
}

// The source of the convolution itself.
inline GatherSource forward_source(const ConvShape& s) {
  GatherAxis axis[3];
  for (int d = 0; d < 3; ++d) axis[d] = {s.in[d], s.out[d], s.stride[d], s.kernel[d], -s.pad[d], s.dilation[d]};
  return gather_source(axis);
}

// dst[f * length + i] = src[i * step + f - before], zero outside [0, n).
inline void split_row(const float* src, int64_t n, int64_t before, int64_t step, int64_t length, float* dst) {
  for (int64_t f = 0; f < step; ++f, dst += length) {
    const int64_t begin = min(length, max(int64_t{0}, ceil_div(before - f, step)));
    const int64_t end = max(begin, min(length, ceil_div(n + before - f, step)));
    const float* s = src + f - before;
    for (int64_t i = 0; i < begin; ++i) dst[i] = 0;
    if (step == 2) {
      for (int64_t i = begin; i < end; ++i) dst[i] = s[i * 2];
    } else {
      for (int64_t i = begin; i < end; ++i) dst[i] = s[i * step];
    }
    for (int64_t i = end; i < length; ++i) dst[i] = 0;
  }
}

// Rows of a small image are too short for a call.
MYC_INLINE void copy_floats(const float* from, float* to, int64_t n) {
  if (n < kLanes) return store_partial(to, load_partial(from, n), n);
  for (int64_t i = 0; i + kLanes < n; i += kLanes) store(to + i, load(from + i));
  store(to + n - kLanes, load(from + n - kLanes));
}

// One plane of the source into its padded form.  Cost: plane * 4 bytes written.
inline void fill_plane(const GatherSource& s, const float* src, float* dst) {
  const int64_t step = s.axis[2].step, width = s.axis[2].in, left = s.before[2];
  for (int64_t z = 0; z < s.extent[0]; ++z) {
    const int64_t iz = z - s.before[0];
    for (int64_t y = 0; y < s.extent[1]; ++y, dst += s.row) {
      const int64_t iy = y - s.before[1];
      if (iz < 0 || iz >= s.axis[0].in || iy < 0 || iy >= s.axis[1].in) {
        memset(dst, 0, s.row * sizeof(float));
        continue;
      }
      const float* from = src + (iz * s.axis[1].in + iy) * width;
      if (step == 1) {
        for (int64_t i = 0; i < left; ++i) dst[i] = 0;
        copy_floats(from, dst + left, width);
        for (int64_t i = left + width; i < s.row; ++i) dst[i] = 0;
      } else {
        split_row(from, width, left, step, s.phase_length, dst);
      }
    }
  }
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_CONV_SOURCE_H_
