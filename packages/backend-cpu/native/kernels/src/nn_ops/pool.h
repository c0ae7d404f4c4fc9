// Geometry of pooling, and what its algorithms share; pool.cc averages, pool_max.cc looks for maxima, both with the
// channels first; pool_last.cc does both with the channels last.
#ifndef MYCELIA_POOL_H_
#define MYCELIA_POOL_H_

#include "simd/vec.h"

namespace mycelia::MYC_ISA {

// Windows along one axis: window p covers elements begin(p) + t * dilation inside [0, in), t < taps.
struct Axis {
  int64_t in, out;
  int64_t kernel = 0, stride = 0, dilation = 1, before = 0, after = 0;  // kernel 0: adaptive

  int64_t begin(int64_t p) const { return kernel ? p * stride - before : p * in / out; }
  int64_t end(int64_t p) const {
    return kernel ? begin(p) + (kernel - 1) * dilation + 1 : ceil_div((p + 1) * in, out);
  }
  // The part inside the data, on the dilation's grid: first element and one behind the last.
  int64_t first(int64_t p) const {
    const int64_t b = begin(p);
    return b < 0 ? b + ceil_div(-b, dilation) * dilation : b;
  }
  int64_t last(int64_t p) const { return min(in, end(p)); }
  // Elements that a mean counts.
  int64_t counted(int64_t p, bool padding) const {
    return padding ? min(end(p), in + after) - begin(p) : min(end(p), in) - max(begin(p), int64_t{0});
  }
};

// Depth, height and width of x (or of the data a gradient is for) and of the windows; missing axes have extent 1.
struct Pool {
  int64_t images, channels;
  bool last;  // the channels are the last axis
  Axis axis[3];

  int64_t planes() const { return images * channels; }
  int64_t in_plane() const { return axis[0].in * axis[1].in * axis[2].in; }
  int64_t out_plane() const { return axis[0].out * axis[1].out * axis[2].out; }
};

inline Pool adaptive_pool(const myc_tensor& data, const myc_tensor& windows, bool last = false) {
  Pool p;
  const int rank = data.rank - 2, first = last ? 1 : 2;
  p.images = data.shape[0], p.channels = data.shape[last ? data.rank - 1 : 1], p.last = last;
  for (int d = 0; d < 3; ++d) {
    const int i = d - (3 - rank);
    p.axis[d] = {i < 0 ? 1 : data.shape[first + i], i < 0 ? 1 : windows.shape[first + i]};
  }
  return p;
}

inline Pool regular_pool(const myc_tensor& data, const myc_tensor& windows, int64_t data_format, const myc_ints& kernel,
                         const myc_ints& stride, const myc_ints& pad, const myc_ints* dilation) {
  Pool p = adaptive_pool(data, windows, data_format == 1);
  const int rank = data.rank - 2;
  const auto entry = [](const myc_ints& list, int i) { return list.v[list.n == 1 ? 0 : i]; };
  for (int d = 0; d < 3; ++d) {
    const int i = d - (3 - rank);
    Axis& a = p.axis[d];
    // Strides and dilations are of no meaning, and of any size, where there is nothing to step to.
    a.kernel = i < 0 ? 1 : entry(kernel, i), a.stride = i < 0 || a.out == 1 ? 1 : entry(stride, i);
    a.dilation = i < 0 || !dilation || a.kernel == 1 ? 1 : entry(*dilation, i);
    a.before = i < 0 ? 0 : entry(pad, i), a.after = i < 0 ? 0 : entry(pad, rank + i);
  }
  return p;
}

template <class Body>  // body(plane, window, z, y, x) for every window of planes [begin, end)
MYC_INLINE void for_each_window(const Pool& p, int64_t begin, int64_t end, const Body& body) {
  for (int64_t plane = begin; plane < end; ++plane) {
    int64_t window = 0;
    for (int64_t z = 0; z < p.axis[0].out; ++z)
      for (int64_t y = 0; y < p.axis[1].out; ++y)
        for (int64_t e = 0; e < p.axis[2].out; ++e) body(plane, window++, z, y, e);
  }
}

inline int64_t plane_grain(const Pool& p) {
  return kMinParallelWork / (8 * (p.in_plane() + p.out_plane()) + 1) + 1;
}

// What the sum of a window is multiplied by.
struct Scale {
  bool padding;
  int64_t divisor;

  float of(const Pool& p, int64_t z, int64_t y, int64_t e) const {
    if (divisor) return 1.0f / static_cast<float>(divisor);
    const int64_t n = max(int64_t{1}, p.axis[0].counted(z, padding)) *
                      max(int64_t{1}, p.axis[1].counted(y, padding)) *
                      max(int64_t{1}, p.axis[2].counted(e, padding));
    return 1.0f / static_cast<float>(n);
  }
};

// Regular windows with the channels last: x [images, *in, channels], y [images, *out, channels].  pool_last.cc
int32_t max_pool_last(const myc_call* call, const Pool& p, const float* x, float* y);
int32_t max_pool_last_grad(const myc_call* call, const Pool& p, const float* x, const float* dy, float* dx);
int32_t avg_pool_last(const myc_call* call, const Pool& p, const Scale& scale, const float* x, float* y);
int32_t avg_pool_last_grad(const myc_call* call, const Pool& p, const Scale& scale, const float* dy, float* dx);

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_POOL_H_
