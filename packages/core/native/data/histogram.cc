// Histograms of arrays as the fields of event files' messages.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "data.h"

namespace mycelia::data {
namespace {

template <class T>
bool finite(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isfinite(value);
  return true;
}

void put_varint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void put_double(char key, double value, std::string* out) {
  char bytes[8];
  std::memcpy(bytes, &value, 8);
  out->push_back(key);
  out->append(bytes, 8);
}

// A bucket: {1: left edge, 2: width, 3: count}, itself field 1. The bytes of its size are one: it has at most 29.
void put_bucket(double left, double width, uint64_t count, std::string* out) {
  out->push_back(0x0a);
  const size_t at = out->size();
  out->push_back(0);
  put_double(0x09, left, out);
  put_double(0x11, width, out);
  out->push_back(0x18);
  put_varint(count, out);
  (*out)[at] = static_cast<char>(out->size() - at - 1);
}

// Of finite values alone, by several lanes: these have shorter chains and smaller errors. False when a value is not finite.
template <class T>
bool finite_extent(const T* values, size_t n, T* low, T* high, double* sum) {
  constexpr size_t kLanes = 8;
  T lows[kLanes], highs[kLanes];
  double sums[kLanes] = {};
  std::fill_n(lows, kLanes, *low);
  std::fill_n(highs, kLanes, *high);
  const auto take = [&](size_t lane, T v) {
    lows[lane] = v < lows[lane] ? v : lows[lane];
    highs[lane] = v > highs[lane] ? v : highs[lane];
    sums[lane] += static_cast<double>(v);
  };
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) take(lane, values[i + lane]);
  for (size_t lane = 0; i < n; ++i, ++lane) take(lane, values[i]);
  *low = *std::min_element(lows, lows + kLanes);
  *high = *std::max_element(highs, highs + kLanes);
  *sum = std::accumulate(sums, sums + kLanes, 0.0);
  return std::isfinite(*sum);  // sums of finite values in double overflow for float64 alone, which then takes the careful way
}

template <class T>
Extent careful_extent(const T* values, size_t n) {
  Extent e;
  for (size_t i = 0; i < n; ++i) {
    const T v = values[i];
    if (!finite(v)) {
      if constexpr (std::is_floating_point_v<T>) ++(std::isnan(v) ? e.nan : v > 0 ? e.positive : e.negative);
      continue;
    }
    const double wide = static_cast<double>(v);
    e.low = e.finite ? std::min(e.low, wide) : wide;
    e.high = e.finite ? std::max(e.high, wide) : wide;
    e.sum += wide;
    ++e.finite;
  }
  return e;
}

}  // namespace

template <class T>
Extent extent(const T* values, size_t n) {
  T low = std::numeric_limits<T>::max(), high = std::numeric_limits<T>::lowest();
  Extent e;
  if (!n || !finite_extent(values, n, &low, &high, &e.sum)) return careful_extent(values, n);
  e.finite = n, e.low = static_cast<double>(low), e.high = static_cast<double>(high);
  return e;
}

template <class T>
std::string buckets(const T* values, size_t n, const T* edges, size_t count) {
  std::vector<uint64_t> counts(count, 0);
  const double first = static_cast<double>(edges[0]), range = static_cast<double>(edges[count]) - first;
  const double wanted = static_cast<double>(count) / range;
  const double scale = std::isfinite(wanted) ? wanted : 0;
  for (size_t i = 0; i < n; ++i) {
    const T v = values[i];
    if (!(v >= edges[0] && v <= edges[count])) continue;  // NaN, too
    // A guess by the equal widths; the edges themselves, which were rounded, decide.
    size_t k = static_cast<size_t>((static_cast<double>(v) - first) * scale);
    if (k >= count) k = count - 1;
    while (k > 0 && v < edges[k]) --k;
    while (k + 1 < count && v >= edges[k + 1]) ++k;
    ++counts[k];
  }
  std::string out;
  out.reserve(count * 24);
  for (size_t k = 0; k < count; ++k) {
    const T width = static_cast<T>(edges[k + 1] - edges[k]);
    put_bucket(static_cast<double>(edges[k]), static_cast<double>(width), counts[k], &out);
  }
  return out;
}

#define MYCELIA_HISTOGRAM(T)                        \
  template Extent extent<T>(const T*, size_t);      \
  template std::string buckets<T>(const T*, size_t, const T*, size_t);
MYCELIA_HISTOGRAM(int8_t)
MYCELIA_HISTOGRAM(int16_t)
MYCELIA_HISTOGRAM(int32_t)
MYCELIA_HISTOGRAM(int64_t)
MYCELIA_HISTOGRAM(uint8_t)
MYCELIA_HISTOGRAM(uint16_t)
MYCELIA_HISTOGRAM(uint32_t)
MYCELIA_HISTOGRAM(uint64_t)
MYCELIA_HISTOGRAM(float)
MYCELIA_HISTOGRAM(double)

}  // namespace mycelia::data
