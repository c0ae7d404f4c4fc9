// Colours: histogram, grey, saturation, hue.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "image.h"
#include "loops.h"

namespace mycelia::data {
namespace {

uint8_t grey_of(const uint8_t* p, const int* shares) {
  return static_cast<uint8_t>((p[0] * shares[0] + p[1] * shares[1] + p[2] * shares[2] + (1 << 14)) >> 15);
}

// Reciprocals in 12 bits: saturation by the value, hue by the difference of the channels.
struct Reciprocals {
  int by_value[256], by_difference[256];
  Reciprocals() {
    by_value[0] = by_difference[0] = 0;
    for (int i = 1; i < 256; ++i) {
      by_value[i] = static_cast<int>(std::nearbyint((255 << 12) / static_cast<double>(i)));
      by_difference[i] = static_cast<int>(std::nearbyint((256 << 12) / (6.0 * i)));
    }
  }
};

uint8_t byte(float v) { return static_cast<uint8_t>(std::clamp(static_cast<int>(std::lrint(v)), 0, 255)); }

}  // namespace

void histogram(const Pixels& in, int64_t* counts) {
  const int n = in.channels;
  std::memset(counts, 0, sizeof(int64_t) * 256 * n);
  for (int y = 0; y < in.rows; ++y) {
    const uint8_t* p = in.first + y * in.stride;
    for (int x = 0; x < in.columns; ++x)
      for (int c = 0; c < n; ++c) ++counts[c * 256 + *p++];
  }
}

void grey(const Pixels& in, const int* shares, uint8_t* out) {
  for (int y = 0; y < in.rows; ++y) {
    const uint8_t* p = in.first + y * in.stride;
    for (int x = 0; x < in.columns; ++x, p += in.channels) *out++ = grey_of(p, shares);
  }
}

void saturation(const Pixels& in, const int* shares, double factor, uint8_t* out) {
  std::vector<uint8_t> line(static_cast<size_t>(in.columns) * 3);
  for (int y = 0; y < in.rows; ++y) {
    const uint8_t* p = in.first + y * in.stride;
    for (int x = 0; x < in.columns; ++x) line[3 * x] = line[3 * x + 1] = line[3 * x + 2] = grey_of(p + 3 * x, shares);
    loops().blend(p, line.data(), static_cast<float>(factor), static_cast<float>(1 - factor), line.size(), out + y * line.size());
  }
}

void hue(const Pixels& in, int shift, uint8_t* out) {
  static const Reciprocals table;
  constexpr float kTurn = static_cast<float>(6.0 / 255), kUnit = static_cast<float>(1.0 / 255);
  for (int y = 0; y < in.rows; ++y) {
    const uint8_t* p = in.first + y * in.stride;
    for (int x = 0; x < in.columns; ++x, p += 3, out += 3) {
      const int r = p[0], g = p[1], b = p[2];
      const int high = std::max(std::max(r, g), b), difference = high - std::min(std::min(r, g), b);
      const int strong = (difference * table.by_value[high] + (1 << 11)) >> 12;
      int turn = high == r ? g - b : high == g ? b - r + 2 * difference : r - g + 4 * difference;
      turn = (turn * table.by_difference[difference] + (1 << 11)) >> 12;
      if (turn < 0) turn += 256;
      turn = (std::clamp(turn, 0, 255) + shift) & 255;
      const float h = turn * kTurn, s = std::clamp(strong, 0, 255) * kUnit, v = high * kUnit;
      const int sector = static_cast<int>(h);
      const float part = h - static_cast<float>(sector);
      const float low = v * (1 - s), fall = v * (1 - s * part), rise = v * (1 - s * (1 - part));
      const float parts[4] = {v, low, fall, rise};
      static const uint8_t which[6][3] = {{0, 3, 1}, {2, 0, 1}, {1, 0, 3}, {1, 2, 0}, {3, 1, 0}, {0, 1, 2}};
      for (int c = 0; c < 3; ++c) out[c] = byte(parts[which[sector % 6][c]] * 255);
    }
  }
}

}  // namespace mycelia::data
