// Hot loops, in several versions of one source (loops.inc); the machine decides. No other headers in here: what a version
// inlines must not end up in code that every machine runs.
#pragma once
#include <cstddef>
#include <cstdint>

namespace mycelia::data {

// Neighbours that fall into one bucket do not wait for each other.
constexpr size_t kCountTables = 4;

struct Loops {
  // Linear weights across a row: (in[left + c] * w0 + in[left + step + c] * w1) >> 4 for each pixel and channel; `left` in
  // bytes, weights in pairs of 11 bits. Of the first `safe` pixels 8 bytes from `left` on may be read; `out` has room for 8 elements more.
  void (*across)(const uint8_t* in, const int* left, const int16_t* weights, int count, int safe, int channels, int step,
                 int16_t* out);
  // Two such lines as pixels.
  void (*down)(const int16_t* a, const int16_t* b, int wa, int wb, int count, uint8_t* out);
  // Cubic weights: `at` and `weights` have four elements for each pixel, or for a line of pixels.
  void (*across4)(const uint8_t* in, const int* at, const int* weights, int count, int channels, int32_t* out);
  void (*down4)(const int32_t* const* lines, const int* weights, int count, uint8_t* out);
  // Pixels of three channels through a float table [3, 256], channels apart; `back`: the first pixel last.
  void (*planes3)(const uint8_t* in, int count, const float* table, bool back, float* r, float* g, float* b);
  // (in - mean) / std, with `period` means and stds that repeat.
  void (*normalize)(const float* in, const float* mean, const float* std, int period, size_t count, float* out);
  // Weighted sums of lines, as float64: for filters that go down; and along a padded line.
  void (*weighted)(const double* const* lines, const double* weights, int lines_count, int count, double* out);
  // a * wa + b * wb, rounded half to even, clipped.
  void (*blend)(const uint8_t* a, const uint8_t* b, float wa, float wb, size_t count, uint8_t* out);
  // The least and the greatest of `values` and what is there before, NaN apart, and the sum.
  void (*extent)(const float* values, size_t n, float* low, float* high, double* sum);
  // Counts values by buckets of width 1 / scale from `first` on, `last` being the greatest, into kCountTables tables [last + 1] that
  // are to be added. Left out are values that lie nearer to an edge than `margin` widths, or in no bucket: where they stand
  // goes to `unsure`, which has room for all, and how many they are is the answer.
  size_t (*count)(const float* in, size_t n, float first, float scale, int last, float margin, uint32_t* tables, uint32_t* unsure);
  // Values within 0..1 as 0..255, towards zero.
  void (*bytes)(const float* in, size_t n, uint8_t* out);
};

extern const Loops loops_base;
#if defined(MYCELIA_DATA_AVX2)
extern const Loops loops_avx2;
#endif

inline const Loops& loops() {
#if defined(MYCELIA_DATA_AVX2)
  static const bool wide = __builtin_cpu_supports("avx2");
  if (wide) return loops_avx2;
#endif
  return loops_base;
}

}  // namespace mycelia::data
