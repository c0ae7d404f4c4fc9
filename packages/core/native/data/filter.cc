// Filters and warps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "image.h"
#include "loops.h"

namespace mycelia::data {
namespace {

// Half up, clipped.
template <class T>
uint8_t half_up(T v) {
  v += static_cast<T>(0.5);
  const int whole = static_cast<int>(v) - (v < static_cast<T>(static_cast<int>(v)));
  return static_cast<uint8_t>(std::clamp(whole, 0, 255));
}

// The place that a place outside is the mirror image of, again and again where the kernel is longer than the image.
int mirrored(int i, int size) {
  if (size == 1) return 0;
  const int period = 2 * (size - 1);
  i = std::abs(i) % period;
  return i < size ? i : period - i;
}

}  // namespace

void sharpness(const Pixels& in, double factor, uint8_t* out) {
  const int n = in.channels, count = in.columns * n;
  std::vector<uint8_t> smooth(count);
  for (int y = 0; y < in.rows; ++y) {
    const uint8_t* p = in.first + y * in.stride;
    std::copy(p, p + count, smooth.begin());
    if (y > 0 && y < in.rows - 1 && in.columns > 2) {
      const uint8_t *a = p - in.stride, *b = p + in.stride;
      for (int i = n; i < count - n; ++i) {
        const int total = a[i - n] + a[i] + a[i + n] + p[i - n] + 5 * p[i] + p[i + n] + b[i - n] + b[i] + b[i + n];
        smooth[i] = static_cast<uint8_t>((2 * total + 13) / 26);  // to the nearest; 13 is odd: no ties
      }
    }
    loops().blend(p, smooth.data(), static_cast<float>(factor), static_cast<float>(1 - factor), count, out + static_cast<size_t>(y) * count);
  }
}

void blur(const Pixels& in, const double* across, int wide, const double* down, int high, uint8_t* out) {
  const int n = in.channels, count = in.columns * n, side = wide / 2, reach = high / 2;
  const Loops& l = loops();
  // Lines that were filtered along the row: each is needed by `high` rows of the result, so all of them are kept.
  std::vector<double> lines(static_cast<size_t>(in.rows) * count), padded(static_cast<size_t>(in.columns + 2 * side) * n), sum(count);
  std::vector<const double*> taps(std::max(wide, high));
  for (int y = 0; y < in.rows; ++y) {
    const uint8_t* p = in.first + y * in.stride;
    for (int x = -side; x < in.columns + side; ++x)
      for (int c = 0; c < n; ++c) padded[(x + side) * n + c] = p[mirrored(x, in.columns) * n + c];
    for (int k = 0; k < wide; ++k) taps[k] = padded.data() + k * n;
    l.weighted(taps.data(), across, wide, count, lines.data() + static_cast<size_t>(y) * count);
  }
  for (int y = 0; y < in.rows; ++y) {
    for (int k = 0; k < high; ++k) taps[k] = lines.data() + static_cast<size_t>(mirrored(y + k - reach, in.rows)) * count;
    l.weighted(taps.data(), down, high, count, sum.data());
    for (int i = 0; i < count; ++i) *out++ = half_up(sum[i]);
  }
}

namespace {

// Rounded to even; what no image reaches is somewhere far outside.
int64_t rounded(double v) {
  constexpr double kFar = 1e15;
  return v > -kFar && v < kFar ? std::llrint(v) : std::numeric_limits<int64_t>::min() / 4;
}

// One pixel of the result, from a place in 5 bits of fraction (whole pixels with one tap).
template <int kTaps>
inline void sample(const Pixels& in, const Warp& how, int64_t x, int64_t y, uint8_t* out) {
  const int n = in.channels;
  const auto inside = [&](int64_t px, int64_t py) { return px >= 0 && px < in.columns && py >= 0 && py < in.rows; };
  if constexpr (kTaps == 1) {
    const uint8_t* p = inside(x, y) ? in.first + y * in.stride + x * n : how.fill;
    for (int c = 0; c < n; ++c) out[c] = p[c];
  } else {
    const int64_t x0 = (x >> 5) - (kTaps == 4), y0 = (y >> 5) - (kTaps == 4);
    const float *across = how.weights + (x & 31) * kTaps, *down = how.weights + (y & 31) * kTaps;
    const bool within = inside(x0, y0) && inside(x0 + kTaps - 1, y0 + kTaps - 1);
    const uint8_t* from[kTaps * kTaps];
    float weight[kTaps * kTaps];
    for (int i = 0; i < kTaps; ++i)
      for (int j = 0; j < kTaps; ++j) {
        const bool there = within || inside(x0 + j, y0 + i);
        from[i * kTaps + j] = there ? in.first + (y0 + i) * in.stride + (x0 + j) * n : how.fill;
        weight[i * kTaps + j] = down[i] * across[j];
      }
    for (int c = 0; c < n; ++c) {
      float total = 0;
      for (int k = 0; k < kTaps * kTaps; ++k) total += weight[k] * from[k][c];
      out[c] = half_up(total);
    }
  }
}

template <int kTaps>
void warp_taps(const Pixels& in, const Warp& how, uint8_t* out) {
  const double* m = how.inverse;
  const int n = in.channels;
  if (how.perspective) {
    for (int y = 0; y < how.rows; ++y)
      for (int x = 0; x < how.columns; ++x, out += n) {
        const double depth = m[6] * x + m[7] * y + m[8];
        const double scale = depth != 0 ? (kTaps == 1 ? 1 : 32) / depth : 0;
        sample<kTaps>(in, how, rounded((m[0] * x + m[1] * y + m[2]) * scale), rounded((m[3] * x + m[4] * y + m[5]) * scale), out);
      }
    return;
  }
  constexpr int kHalf = kTaps == 1 ? 512 : 16, kShift = kTaps == 1 ? 10 : 5;
  std::vector<int64_t> by_x(how.columns), by_y(how.columns);
  for (int x = 0; x < how.columns; ++x) {
    by_x[x] = rounded(m[0] * x * 1024);
    by_y[x] = rounded(m[3] * x * 1024);
  }
  for (int y = 0; y < how.rows; ++y) {
    const int64_t x0 = rounded((m[1] * y + m[2]) * 1024) + kHalf, y0 = rounded((m[4] * y + m[5]) * 1024) + kHalf;
    for (int x = 0; x < how.columns; ++x, out += n)
      sample<kTaps>(in, how, (x0 + by_x[x]) >> kShift, (y0 + by_y[x]) >> kShift, out);
  }
}

}  // namespace

void warp(const Pixels& in, const Warp& how, uint8_t* out) {
  if (how.taps == 1) return warp_taps<1>(in, how, out);
  if (how.taps == 2) return warp_taps<2>(in, how, out);
  warp_taps<4>(in, how, out);
}

}  // namespace mycelia::data
