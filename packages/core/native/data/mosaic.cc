// Batches of images as one, for event files.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "data.h"
#include "loops.h"
#include "message.h"

namespace mycelia::data {
namespace {

// As NumPy converts: towards zero, the lowest byte of a whole number; 0 for what is none.
uint8_t byte_of(double value) { return std::fabs(value) < 2147483648.0 ? static_cast<uint8_t>(static_cast<int32_t>(value)) : 0; }

// Fills `out`, rows [rows of the grid * rows, across * columns, channels] that are `stride` bytes apart, but for the places without an image.
template <class T>
void mosaic(const T* images, size_t n, size_t channels, size_t rows, size_t columns, size_t across, size_t stride, uint8_t* out) {
  const size_t plane = rows * columns, all = n * channels * plane;
  // `fill(from, to)`: a line of one channel as bytes, side by side.
  const auto place_lines = [&](const auto& fill) {
    std::vector<uint8_t> line(columns);
    for (size_t i = 0; i < n; ++i) {
      uint8_t* corner = out + i / across * rows * stride + i % across * columns * channels;
      for (size_t c = 0; c < channels; ++c)
        for (size_t y = 0; y < rows; ++y) {
          const T* from = images + (i * channels + c) * plane + y * columns;
          uint8_t* to = corner + y * stride + c;
          fill(from, channels == 1 ? to : line.data());
          for (size_t x = 0; channels > 1 && x < columns; ++x) to[x * channels] = line[x];
        }
    }
  };
  const auto place = [&](const auto& byte) {
    place_lines([&](const T* from, uint8_t* to) {
      for (size_t x = 0; x < columns; ++x) to[x] = byte(from[x]);
    });
  };
  if constexpr (std::is_same_v<T, uint8_t>) {
    place([](uint8_t v) { return v; });
    return;
  }
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
  if (nans) place([](double v) { return byte_of(v * 255); });  // nothing is known of the range
  else if (low < 0 || high > 1) place([&](double v) { return byte_of((v - low) / (high - low + 1) * 255); });
  else if constexpr (std::is_same_v<T, float>) place_lines([&](const float* from, uint8_t* to) { loops().bytes(from, columns, to); });
  else place([](double v) { return static_cast<uint8_t>(static_cast<int32_t>(v * 255)); });
}

}  // namespace

template <class T>
void put_images(const T* images, size_t n, size_t channels, size_t rows, size_t columns, size_t across, std::string* out) {
  const size_t in_row = std::min(across, n), height = (n + across - 1) / across * rows, width = in_row * columns;
  const size_t stride = 1 + width * channels;
  std::vector<uint8_t> pixels(height * stride);
  mosaic(images, n, channels, rows, columns, in_row, stride, pixels.data() + 1);
  std::string image;
  put_png(pixels.data(), height, width, channels, &image);
  std::string message;
  put_number(0x08, height, &message), put_number(0x10, width, &message);
  put_number(0x18, 3, &message);  // colours, whatever the PNG has, as MindSpore says
  put_bytes(0x22, image, &message);
  put_bytes(0x22, message, out);
}

template void put_images<uint8_t>(const uint8_t*, size_t, size_t, size_t, size_t, size_t, std::string*);
template void put_images<float>(const float*, size_t, size_t, size_t, size_t, size_t, std::string*);
template void put_images<double>(const double*, size_t, size_t, size_t, size_t, size_t, std::string*);

}  // namespace mycelia::data
