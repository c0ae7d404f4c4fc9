// Batches of images as one, for event files.
#include <algorithm>
#include <cmath>

#include "data.h"

namespace mycelia::data {
namespace {

// As NumPy converts: towards zero, the lowest byte of a whole number; 0 for what is none.
uint8_t byte_of(double value) { return std::fabs(value) < 2147483648.0 ? static_cast<uint8_t>(static_cast<int32_t>(value)) : 0; }

}  // namespace

template <class T>
void mosaic(const T* images, size_t n, size_t channels, size_t rows, size_t columns, size_t across, uint8_t* out) {
  const size_t plane = rows * columns, all = n * channels * plane, width = across * columns * channels;
  constexpr size_t kLanes = 16;  // chains of comparisons side by side
  T lows[kLanes], highs[kLanes];
  std::fill_n(lows, kLanes, all ? images[0] : T{});
  std::fill_n(highs, kLanes, lows[0]);
  size_t nans = 0;
  for (size_t i = 0; i < all; i += kLanes)
    for (size_t lane = 0; lane < std::min(kLanes, all - i); ++lane) {
      const T v = images[i + lane];
      lows[lane] = v < lows[lane] ? v : lows[lane], highs[lane] = v > highs[lane] ? v : highs[lane], nans += v != v;
    }
  const double low = static_cast<double>(*std::min_element(lows, lows + kLanes)), high = static_cast<double>(*std::max_element(highs, highs + kLanes));
  const auto place = [&](const auto& byte) {
    for (size_t i = 0; i < n; ++i) {
      uint8_t* corner = out + i / across * rows * width + i % across * columns * channels;
      for (size_t c = 0; c < channels; ++c)
        for (size_t y = 0; y < rows; ++y) {
          const T* from = images + (i * channels + c) * plane + y * columns;
          uint8_t* to = corner + y * width + c;
          if (channels == 1) {
            for (size_t x = 0; x < columns; ++x) to[x] = byte(static_cast<double>(from[x]));
          } else {
            for (size_t x = 0; x < columns; ++x) to[x * channels] = byte(static_cast<double>(from[x]));
          }
        }
    }
  };
  if (nans) place([](double v) { return byte_of(v * 255); });  // nothing is known of the range
  else if (low < 0 || high > 1) place([&](double v) { return byte_of((v - low) / (high - low + 1) * 255); });
  else place([](double v) { return static_cast<uint8_t>(static_cast<int32_t>(v * 255)); });
}

template void mosaic<float>(const float*, size_t, size_t, size_t, size_t, size_t, uint8_t*);
template void mosaic<double>(const double*, size_t, size_t, size_t, size_t, size_t, uint8_t*);

}  // namespace mycelia::data
