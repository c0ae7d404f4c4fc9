// Pooling with the channels last: lanes are channels, so a window is a list of pixels and every geometry is alike.
// Bound by memory: 4 bytes read an input element, 4 written an output element.
#include <type_traits>

#include "nn_ops/pool.h"
#include "simd/lanes.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int kVectors = 4;  // of channels at a time: chains of additions that hide their latency

template <int n>
using Size = std::integral_constant<int, n>;

// body(first channel, vectors, lanes of the last one), `vectors` known to the compiler.
template <class Body>
MYC_INLINE void for_channels(int64_t begin, int64_t end, const Body& body) {
  int64_t c = begin;
  for (; c + kVectors * kLanes <= end; c += kVectors * kLanes) body(c, Size<kVectors>(), int64_t{kLanes});
  for (; c + kLanes <= end; c += kLanes) body(c, Size<1>(), int64_t{kLanes});
  if (c < end) body(c, Size<1>(), end - c);
}

// Pixels of a window in order, as offsets of their first channel in the image.
int64_t list_pixels(const Pool& p, int64_t z, int64_t y, int64_t e, int64_t* offsets) {
  const Axis &az = p.axis[0], &ay = p.axis[1], &ae = p.axis[2];
  int64_t count = 0;
  for (int64_t i = az.first(z), iz = az.last(z); i < iz; i += az.dilation)
    for (int64_t j = ay.first(y), jy = ay.last(y); j < jy; j += ay.dilation)
      for (int64_t k = ae.first(e), ke = ae.last(e); k < ke; k += ae.dilation)
        offsets[count++] = ((i * ay.in + j) * ae.in + k) * p.channels;
  return count;
}

int64_t most_pixels(const Pool& p) { return p.axis[0].kernel * p.axis[1].kernel * p.axis[2].kernel; }

// Pixels of a window that lies inside of the image, as offsets from its first one; nothing if none does.
void list_inside(const Pool& p, int64_t* offsets) {
  const Axis &az = p.axis[0], &ay = p.axis[1], &ae = p.axis[2];
  for (const Axis& a : p.axis) {
    if ((a.kernel - 1) * a.dilation >= a.in) return;
  }
  for (int64_t i = 0; i < az.kernel; ++i)
    for (int64_t j = 0; j < ay.kernel; ++j)
      for (int64_t k = 0; k < ae.kernel; ++k)
        *offsets++ = ((i * az.dilation * ay.in + j * ay.dilation) * ae.in + k * ae.dilation) * p.channels;
}

bool is_inside(const Axis& a, int64_t at) { return a.begin(at) >= 0 && a.end(at) <= a.in; }

// Pixels of a window, as offsets of their first channel from `at` in the image.
struct Pixels {
  const int64_t* offsets;
  int64_t count, at;
};

// body(image, z, y, x, first channel, end channel, pixels) for every window; few rows of windows are cut by channels for
// the threads.
template <class Body>
MYC_INLINE int32_t for_windows(const myc_call* call, const Pool& p, const Body& body) {
  const Axis &deep = p.axis[0], &down = p.axis[1], &across = p.axis[2];
  const int64_t most = most_pixels(p);
  const int64_t rows = p.images * deep.out * down.out, width = across.out;
  if (rows == 0 || width == 0 || p.channels == 0) return MYC_OK;
  Scratch scratch(call);
  int64_t* lists = scratch.take<int64_t>((max_workers(call) + 1) * most);  // of windows at the border; then of all others
  if (!lists) return MYC_E_MEMORY;
  int64_t* whole = lists + max_workers(call) * most;
  list_inside(p, whole);
  int64_t first = 0, last = width;  // windows of a row that lie inside along it
  while (first < width && !is_inside(across, first)) ++first;
  while (last > first && !is_inside(across, last - 1)) --last;
  constexpr int64_t kCut = 64 * kLanes;  // channels
  const int64_t cuts = rows < 4 * max_workers(call) && max_workers(call) > 1 ? ceil_div(p.channels, kCut) : 1;
  const int64_t work = 8 * width * p.channels * (most + 1) / cuts;
  parallel_for_worker(call, rows * cuts, kMinParallelWork / (work + 1) + 1,
                      [&](int64_t begin, int64_t end, int32_t worker) {
                        int64_t* list = lists + worker * most;
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t row = i / cuts, cut = i % cuts, y = row % down.out;
                          const int64_t z = row / down.out % deep.out, image = row / down.out / deep.out;
                          const int64_t from = p.channels * cut / cuts, to = p.channels * (cut + 1) / cuts;
                          const bool inside = is_inside(deep, z) && is_inside(down, y);
                          const int64_t start = (deep.begin(z) * down.in + down.begin(y)) * across.in;
                          for (int64_t e = 0; e < width; ++e) {
                            if (inside && e >= first && e < last) {
                              body(image, z, y, e, from, to, Pixels{whole, most, (start + across.begin(e)) * p.channels});
                            } else {
                              body(image, z, y, e, from, to, Pixels{list, list_pixels(p, z, y, e, list), 0});
                            }
                          }
                        }
                      });
  return MYC_OK;
}

// Place of a window's first channel in y.
int64_t window_at(const Pool& p, int64_t image, int64_t z, int64_t y, int64_t e) {
  return (((image * p.axis[0].out + z) * p.axis[1].out + y) * p.axis[2].out + e) * p.channels;
}

// The windows that hold an element of an axis: [first, end).  For dilation 1.
struct Holders {
  int64_t first, end;
  Holders(const Axis& a, int64_t at)
      : first(max(int64_t{0}, ceil_div(max(at + a.before - a.kernel + 1, int64_t{0}), a.stride))),
        end(min(a.out, (at + a.before) / a.stride + 1)) {}
};

// dy of each channel is added to the first pixel of the window that holds the channel's largest element, if that is one
// of pixels [begin, end).
template <int kPixels>  // 0: `count` of them, not all in [begin, end)
void add_to_first(const float* x, float* dx, const int64_t* pixels, int64_t count, int64_t begin, int64_t end,
                  const float* dy, int64_t channels) {
  const auto vector = [&](int64_t c, int64_t lanes) __attribute__((always_inline)) {
    const f32v least = splat(-INFINITY), g = load_lanes(dy + c, lanes);
    f32v peak = least;
#pragma GCC unroll 9
    for (int64_t t = 0; t < (kPixels ? kPixels : count); ++t)
      peak = max_or_second(load_lanes(x + pixels[t] + c, lanes), peak);
    i32v open = ~i32v{};  // channels whose pixel is not found yet
#pragma GCC unroll 9
    for (int64_t t = 0; t < (kPixels ? kPixels : count); ++t) {
      const i32v hit = (max_or_second(load_lanes(x + pixels[t] + c, lanes), least) == peak) & open;
      open &= ~hit;
      if (!kPixels && (t < begin || t >= end)) continue;
      float* sum = dx + pixels[t] + c;
      store_lanes(sum, load_lanes(sum, lanes) + from_bits(bits(g) & hit), lanes);
    }
  };
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) vector(c, kLanes);
  if (c < channels) vector(c, channels - c);
}

using AddToFirst = void (*)(const float*, float*, const int64_t*, int64_t, int64_t, int64_t, const float*, int64_t);

}  // namespace

int32_t max_pool_last(const myc_call* call, const Pool& p, const float* x, float* y) {
  return for_windows(call, p, [&](int64_t image, int64_t z, int64_t r, int64_t e, int64_t begin, int64_t end, const Pixels& pixels) {
    const float* from = x + image * p.in_plane() * p.channels + pixels.at;
    float* to = y + window_at(p, image, z, r, e);
    for_channels(begin, end, [&](int64_t c, auto vectors, int64_t lanes) __attribute__((always_inline)) {
      f32v peak[vectors.value];
      for (int v = 0; v < vectors.value; ++v) peak[v] = splat(-INFINITY);
      for (int64_t t = 0; t < pixels.count; ++t)
        for (int v = 0; v < vectors.value; ++v)
          peak[v] = max_or_second(load_lanes(from + pixels.offsets[t] + c + v * kLanes, lanes), peak[v]);
      for (int v = 0; v < vectors.value; ++v) store_lanes(to + c + v * kLanes, peak[v], lanes);
    });
  });
}

// A task owns some rows of dx and looks at all windows that touch them.
int32_t max_pool_last_grad(const myc_call* call, const Pool& p, const float* x, const float* dy, float* dx) {
  const Axis &az = p.axis[0], &ay = p.axis[1], &ae = p.axis[2];
  const int64_t rows = az.in * ay.in, row = ae.in * p.channels, image_floats = rows * row;
  if (p.images == 0 || image_floats == 0) return MYC_OK;
  const int64_t threads = max_workers(call), most = most_pixels(p);
  const int64_t most_bands = threads > 1 ? ceil_div(rows, int64_t{8}) : 1;
  const int64_t bands = clamp(ceil_div(2 * threads, p.images), int64_t{1}, most_bands);
  Scratch scratch(call);
  int64_t* lists = scratch.take<int64_t>(threads * most);
  if (!lists) return MYC_E_MEMORY;
  const auto band = [&](int64_t task, int64_t* pixels) {
    const int64_t image = task / bands, begin = rows * (task % bands) / bands, end = rows * (task % bands + 1) / bands;
    const float* from = x + image * image_floats;
    float* to = dx + image * image_floats;
    int64_t cleared = begin;  // rows before it hold sums
    const auto clear = [&](int64_t until) {
      if (until > cleared) memset(to + cleared * row, 0, (until - cleared) * row * sizeof(float));
      cleared = max(cleared, until);
    };
    for (int64_t z = 0; z < az.out; ++z) {
      for (int64_t y = 0; y < ay.out; ++y) {
        const int64_t last = (az.last(z) - 1) * ay.in + ay.last(y);  // behind the last row of these windows
        if (last <= begin || az.first(z) * ay.in + ay.first(y) >= end) continue;
        clear(min(end, last));
        for (int64_t e = 0; e < ae.out; ++e) {
          const int64_t count = list_pixels(p, z, y, e, pixels);
          const float* g = dy + window_at(p, image, z, y, e);
          // Taps [from_tap, to_tap) lie in the band.
          int64_t from_tap = 0, to_tap = count;
          while (from_tap < to_tap && pixels[from_tap] < begin * row) ++from_tap;
          while (from_tap < to_tap && pixels[to_tap - 1] >= end * row) --to_tap;
          const bool whole = to_tap - from_tap == count;
          const AddToFirst add = whole && count == 9   ? add_to_first<9>
                                 : whole && count == 4 ? add_to_first<4>
                                                       : add_to_first<0>;
          add(from, to, pixels, count, from_tap, to_tap, g, p.channels);
        }
      }
    }
    clear(end);
  };
  const int64_t work = 24 * image_floats / bands;
  parallel_for_worker(call, p.images * bands, kMinParallelWork / (work + 1) + 1,
                      [&](int64_t begin, int64_t end, int32_t worker) {
                        for (int64_t i = begin; i < end; ++i) band(i, lists + worker * most);
                      });
  return MYC_OK;
}

int32_t avg_pool_last(const myc_call* call, const Pool& p, const Scale& scale, const float* x, float* y) {
  return for_windows(call, p, [&](int64_t image, int64_t z, int64_t r, int64_t e, int64_t begin, int64_t end, const Pixels& pixels) {
    const float* from = x + image * p.in_plane() * p.channels + pixels.at;
    float* to = y + window_at(p, image, z, r, e);
    const float factor = scale.of(p, z, r, e);
    for_channels(begin, end, [&](int64_t c, auto vectors, int64_t lanes) __attribute__((always_inline)) {
      f32v sum[vectors.value] = {};
      for (int64_t t = 0; t < pixels.count; ++t)
        for (int v = 0; v < vectors.value; ++v) sum[v] += load_lanes(from + pixels.offsets[t] + c + v * kLanes, lanes);
      for (int v = 0; v < vectors.value; ++v) store_lanes(to + c + v * kLanes, sum[v] * factor, lanes);
    });
  });
}

// A pixel of dx collects the windows that hold it.
int32_t avg_pool_last_grad(const myc_call* call, const Pool& p, const Scale& scale, const float* dy, float* dx) {
  const Axis &az = p.axis[0], &ay = p.axis[1], &ae = p.axis[2];
  const int64_t rows = p.images * az.in * ay.in;
  if (rows == 0 || ae.in == 0 || p.channels == 0) return MYC_OK;
  Scratch scratch(call);
  float* factors = scratch.take<float>(max(p.out_plane(), int64_t{1}));
  if (!factors) return MYC_E_MEMORY;
  for_each_window(p, 0, 1, [&](int64_t, int64_t window, int64_t z, int64_t y, int64_t e) {
    factors[window] = scale.of(p, z, y, e);
  });
  const int64_t work = 8 * ae.in * p.channels;
  parallel_rows(call, rows, work, [&](int64_t row) {
    const int64_t j = row % ay.in, i = row / ay.in % az.in, image = row / ay.in / az.in;
    const float* from = dy + image * p.out_plane() * p.channels;
    const Holders zs(az, i), ys(ay, j);
    for (int64_t k = 0; k < ae.in; ++k) {
      const Holders es(ae, k);
      float* to = dx + (row * ae.in + k) * p.channels;
      for_channels(0, p.channels, [&](int64_t c, auto vectors, int64_t lanes) __attribute__((always_inline)) {
        f32v sum[vectors.value] = {};
        for (int64_t z = zs.first; z < zs.end; ++z)
          for (int64_t y = ys.first; y < ys.end; ++y)
            for (int64_t e = es.first; e < es.end; ++e) {
              const int64_t window = (z * ay.out + y) * ae.out + e;
              for (int v = 0; v < vectors.value; ++v)
                sum[v] += load_lanes(from + window * p.channels + c + v * kLanes, lanes) * factors[window];
            }
        for (int v = 0; v < vectors.value; ++v) store_lanes(to + c + v * kLanes, sum[v], lanes);
      });
    }
  });
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
