// Input gradient of a depthwise convolution of stride 2 with 3x3 or 5x5 taps, channels last: a row.
//
// Every second column has the even taps, those between the odd ones; two neighbours share their elements of dy. All
// channels of two columns take their turn, so that memory is read and written as it lies.
// Flops and bytes: as the gradient; weights come from the first-level cache for every two columns.
#include "convolution/channels_last/depthwise.h"
#include "simd/vec.h"

namespace mycelia::MYC_ISA {
namespace {

// What the taps of kRows rows add to two columns of dx, the first of which has the even taps. dy: of each row and every
// position that they share, the first one first. Weights have the taps in falling order.
template <int K, int kRows>
__attribute__((noinline)) void two_columns(int64_t n, int64_t panel, const float* const* w, const float* const* dy,
                                           float* even, float* odd) {
  constexpr int kPositions = K / 2 + 1;
  const auto some = [&](int64_t c, const auto& get, const auto& put) __attribute__((always_inline)) {
    f32v at_even = {}, at_odd = {};
#pragma GCC unroll 3
    for (int r = 0; r < kRows; ++r) {
      const float* weights = w[r] + c / kPackedColumns * panel + c % kPackedColumns;
#pragma GCC unroll 3
      for (int t = 0; t < kPositions; ++t) {
        const f32v d = get(dy[r * kPositions + t] + c);
        at_even = fma(d, load(weights + 2 * t * kPackedColumns), at_even);
        if (t > 0) at_odd = fma(d, load(weights + (2 * t - 1) * kPackedColumns), at_odd);
      }
    }
    put(even + c, at_even), put(odd + c, at_odd);
  };
  int64_t c = 0;
  for (; c + kLanes <= n; c += kLanes)
    some(c, [](const float* p) { return load(p); }, [](float* p, f32v v) { store(p, v); });
  if (c < n)
    some(c, [&](const float* p) { return load_partial(p, n - c); },
         [&](float* p, f32v v) { store_partial(p, v, n - c); });
}

template <int K>
void row(const ConvLast& s, const DepthwiseTap* rows, int64_t count, const float* zeros, float* spare, float* dx) {
  constexpr int kPositions = K / 2 + 1;
  constexpr decltype(&two_columns<K, 1>) kRun[] = {two_columns<K, 0>, two_columns<K, 1>, two_columns<K, 2>,
                                                   two_columns<K, 3>};
  const int64_t n = s.c;
  const float *w[3], *dy[3 * kPositions];
  for (int64_t r = 0; r < count; ++r) w[r] = rows[r].w;
  for (int64_t q = -(s.pad[1] % 2); q < s.in[1]; q += 2) {
    const int64_t first = (q + s.pad[1] - (K - 1)) / 2;  // position of the last tap
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t t = 0; t < kPositions; ++t) {
        const int64_t p = first + t;
        dy[r * kPositions + t] = p < 0 || p >= s.out[1] ? zeros : rows[r].x + p * n;
      }
    }
    kRun[count](n, s.taps() * kPackedColumns, w, dy, q < 0 ? spare : dx + q * n,
                q + 1 < s.in[1] ? dx + (q + 1) * n : spare);
  }
}

}  // namespace

bool depthwise_doubles(const ConvLast& s) {
  return s.kernel[0] == s.kernel[1] && (s.kernel[0] == 3 || s.kernel[0] == 5) && s.stride[0] == 2 &&
         s.stride[1] == 2 && s.dilation[0] == 1 && s.dilation[1] == 1 && s.pad[0] >= 0 && s.pad[1] >= 0;
}

void depthwise_double(const ConvLast& s, const DepthwiseTap* rows, int64_t count, const float* zeros, float* spare,
                      float* dx) {
  if (s.kernel[1] == 3) {
    row<3>(s, rows, count, zeros, spare, dx);
  } else {
    row<5>(s, rows, count, zeros, spare, dx);
  }
}

}  // namespace mycelia::MYC_ISA
