// Histograms of arrays as the fields of event files' messages.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "data.h"
#include "loops.h"
#include "message.h"

namespace mycelia::data {
namespace {

// What there is in an array: finite values, their least and greatest and their sum, 0 without any, and the others.
struct Extent {
  size_t finite = 0, nan = 0, positive = 0, negative = 0;
  double low = 0, high = 0, sum = 0;
};

template <class T>
bool finite(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isfinite(value);
  return true;
}

// How many buckets a histogram of n finite values has, as MindSpore counts.
size_t bucket_count(size_t n) {
  return n == 0 ? 1 : n <= 5 ? 2 : n <= 10 ? 3 : n <= 880 ? n / 10 + 1 : 90;
}

// A double as an edge of values of type T: whole for integers, within their range.
template <class T>
T edge_of(double value) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(value);
  value = std::floor(value);
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  return static_cast<T>(value);
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
  if constexpr (std::is_same_v<T, float>) {
    loops().extent(values, n, low, high, sum);
    return std::isfinite(*sum);
  }
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

template <class T>
Extent extent(const T* values, size_t n) {
  T low = std::numeric_limits<T>::max(), high = std::numeric_limits<T>::lowest();
  Extent e;
  if (!n || !finite_extent(values, n, &low, &high, &e.sum)) return careful_extent(values, n);
  e.finite = n, e.low = static_cast<double>(low), e.high = static_cast<double>(high);
  return e;
}

// Counts `value`, whose bucket is near `k`, by the edges themselves; values outside of them, and NaN, in none.
template <class T>
void count_by_edges(T value, size_t k, const T* edges, size_t count, uint64_t* counts) {
  if (!(value >= edges[0] && value <= edges[count])) return;
  while (k > 0 && value < edges[k]) --k;
  while (k + 1 < count && value >= edges[k + 1]) ++k;
  ++counts[k];
}

// How many values lie between each edge and the next one, of `count` buckets whose edges are about as far apart.
template <class T>
std::vector<uint64_t> counted(const T* values, size_t n, const T* edges, size_t count) {
  std::vector<uint64_t> counts(count, 0);
  const double first = static_cast<double>(edges[0]), end = static_cast<double>(edges[count]), last = static_cast<double>(count - 1);
  const double wanted = static_cast<double>(count) / (end - first), scale = std::isfinite(wanted) ? wanted : 0;
  const auto guess = [&](T value) {
    const double at = (static_cast<double>(value) - first) * scale;
    return static_cast<size_t>(at > 0 ? (at < last ? at : last) : 0.0);  // 0 for NaN
  };
  size_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    // Three roundings of a place below `count`; and edges are off by half a unit in the last place, as may be the first and the last.
    const double unit = std::numeric_limits<float>::epsilon(), greatest = std::max(std::fabs(first), std::fabs(end));
    const double margin = 2 * unit * static_cast<double>(count) + 4 * (greatest * unit + std::numeric_limits<float>::denorm_min()) * scale;
    const float times = static_cast<float>(scale);
    if (margin < 0.5 && std::isnormal(times)) {
      constexpr size_t kBlock = 512;  // values that may all be unsure
      uint32_t unsure[kBlock];
      std::vector<uint32_t> tables(kCountTables * count, 0);
      for (size_t size; i < n; i += size) {
        size = std::min(kBlock, n - i);
        const size_t left = loops().count(values + i, size, edges[0], times, static_cast<int>(count - 1), static_cast<float>(margin), tables.data(), unsure);
        for (size_t u = 0; u < left; ++u) count_by_edges(values[i + unsure[u]], guess(values[i + unsure[u]]), edges, count, counts.data());
        constexpr size_t kMost = size_t{1} << 31;  // that one place of a table is sure to hold
        if (i / kMost == (i + size) / kMost && i + size < n) continue;
        for (size_t k = 0; k < tables.size(); ++k) counts[k % count] += tables[k];
        std::fill(tables.begin(), tables.end(), 0u);
      }
      return counts;
    }
  }
  for (; i < n; ++i) count_by_edges(values[i], guess(values[i]), edges, count, counts.data());
  return counts;
}

template <class T>
std::string buckets(const T* values, size_t n, const T* edges, size_t count) {
  const std::vector<uint64_t> counts = counted(values, n, edges, count);
  std::string out;
  out.reserve(count * 24);
  for (size_t k = 0; k < count; ++k) {
    const T width = static_cast<T>(edges[k + 1] - edges[k]);
    put_bucket(static_cast<double>(edges[k]), static_cast<double>(width), counts[k], &out);
  }
  return out;
}

}  // namespace

template <class T>
void put_histogram(const T* values, size_t n, std::string* out) {
  const Extent e = extent(values, n);
  std::string message;
  if (e.finite) {
    const double left = e.low < e.high ? e.low : e.low - 0.5, right = e.low < e.high ? e.high : e.high + 0.5;
    const size_t count = bucket_count(e.finite);
    const double width = (right - left) / static_cast<double>(count);
    std::vector<T> edges(count + 1);
    for (size_t i = 0; i < count; ++i) edges[i] = edge_of<T>(static_cast<double>(i) * width + left);
    edges[count] = edge_of<T>(right);
    message = buckets(values, n, edges.data(), count);
  }
  put_number(0x10, e.nan, &message), put_number(0x18, e.positive, &message), put_number(0x20, e.negative, &message);
  put_double(0x29, e.high, &message), put_double(0x31, e.low, &message), put_double(0x39, e.sum, &message);
  put_number(0x40, n, &message);
  put_bytes(0x4a, message, out);
}

#define MYCELIA_HISTOGRAM(T) template void put_histogram<T>(const T*, size_t, std::string*);
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
