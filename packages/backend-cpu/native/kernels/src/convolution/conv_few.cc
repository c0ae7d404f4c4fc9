// Convolution of few channels to few, one group: no matrices. Vectors are neighbouring positions, read in place from
// the padded planes of an image; a tile keeps some outputs of two vectors in registers over all taps.
// Cost: 2 positions O I taps flops; the planes stay in the first-level cache.
#include "convolution/conv_shape.h"
#include "convolution/conv_source.h"
#include "convolution/conv_tile.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kMostTerms = 160;      // of a sum
constexpr int64_t kMostOutputs = 16;
constexpr int64_t kShortRow = kTileColumns * 3 / 4 + 1;  // its second vector has lanes to store
constexpr int64_t kSourceFloats = 8192;  // padded planes of an image: 32 KB

// y[o][e] = bias[o] + sum over t < terms of w[t][o] * x[offset[t] + e] for R outputs and e < columns <= kTileColumns.
template <int R>
MYC_INLINE void block(const float* x, const int64_t* offset, const float* w, int64_t terms, const float* bias, float* y,
                      int64_t y_plane, int64_t columns) {
  f32v sum[R][kTileVectors];
#pragma GCC unroll 12
  for (int o = 0; o < R; ++o)
    for (int v = 0; v < kTileVectors; ++v) sum[o][v] = splat(bias[o]);
  for (int64_t t = 0; t < terms; ++t, w += R) {
    f32v at[kTileVectors];
    for (int v = 0; v < kTileVectors; ++v) at[v] = load(x + offset[t] + v * kLanes);
#pragma GCC unroll 12
    for (int o = 0; o < R; ++o)
      for (int v = 0; v < kTileVectors; ++v) sum[o][v] = fma(splat(w[o]), at[v], sum[o][v]);
  }
#pragma GCC unroll 12
  for (int o = 0; o < R; ++o)
    for (int v = 0; v < kTileVectors; ++v) {
      float* to = y + o * y_plane + v * kLanes;
      if (columns - v * kLanes >= kLanes) {
        store(to, sum[o][v]);
      } else {
        store_partial(to, sum[o][v], columns - v * kLanes);
      }
    }
}

// R output planes of one image. Blocks that do not divide the width overlap; one that is wider reads what is behind it.
template <int R>
__attribute__((noinline)) void planes(const GatherSource& s, const float* x, const int64_t* offset, const float* w,
                                      int64_t terms, const float* bias, float* y) {
  const int64_t height = s.axis[1].positions, width = s.axis[2].positions, plane = s.positions();
  for (int64_t z = 0; z < s.axis[0].positions; ++z) {
    for (int64_t r = 0; r < height; ++r, y += width) {
      const float* from = x + s.position_offset(z, r, 0);
      for (int64_t e = 0; e < width; e += kTileColumns) {
        const int64_t at = max(int64_t{0}, min(e, width - kTileColumns));
        block<R>(from + at, offset, w, terms, bias, y + at, plane, width);
      }
    }
  }
}

using Planes = void (*)(const GatherSource&, const float*, const int64_t*, const float*, int64_t, const float*, float*);

template <int R = kTileRows>
Planes planes_of(int64_t outputs) {
  if constexpr (R > 1) {
    if (outputs < R) return planes_of<R - 1>(outputs);
  }
  return planes<R>;
}

}  // namespace

// Of a few images rows may be a little shorter than a tile; many have other ways to fill it.
bool conv_few_fits(const ConvShape& s) {
  return s.group == 1 && s.c > 0 && s.o > 0 && s.o <= kMostOutputs && s.c * s.taps() <= kMostTerms &&
         s.out[2] >= (s.n < kLanes ? kShortRow : kTileColumns) && s.c * forward_source(s).plane <= kSourceFloats;
}

int32_t conv_few(const myc_call* call, const ConvShape& s, const float* x, const float* w, const float* bias, float* y) {
  const GatherSource source = forward_source(s);
  const RowPanels panels(s.o);
  const int64_t terms = s.c * s.taps(), floats = round_up(s.c * source.plane + 2 * kLanes, 16);
  Scratch scratch(call);
  int64_t* offset = scratch.take<int64_t>(terms);
  float* packed = scratch.take<float>(s.o * (terms + 1));  // panels [t][outputs of the panel]; then the bias
  float* sources = scratch.take<float>(max_workers(call) * floats);
  if (!offset || !packed || !sources) return MYC_E_MEMORY;
  float* first = packed + s.o * terms;
  for (int64_t o = 0; o < s.o; ++o) first[o] = bias ? bias[o] : 0.0f;
  for (int64_t i = 0; i < panels.count; ++i) {
    const int64_t begin = panels.begin(i), rows = panels.height(i);
    for (int64_t o = 0; o < rows; ++o)
      for (int64_t t = 0; t < terms; ++t) packed[begin * terms + t * rows + o] = w[(begin + o) * terms + t];
  }
  int64_t* to = offset;
  for (int64_t c = 0; c < s.c; ++c)
    for (int64_t a = 0; a < s.kernel[0]; ++a)
      for (int64_t b = 0; b < s.kernel[1]; ++b)
        for (int64_t e = 0; e < s.kernel[2]; ++e) *to++ = c * source.plane + source.tap_offset(a, b, e);

  const int64_t work = 8 * s.o * terms * s.out_plane();
  parallel_for_worker(call, s.n, kMinParallelWork / (work + 1) + 1, [&](int64_t begin, int64_t end, int32_t worker) {
    float* padded = sources + worker * floats;
    memset(padded + s.c * source.plane, 0, (floats - s.c * source.plane) * sizeof(float));
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t c = 0; c < s.c; ++c)
        fill_plane(source, x + (i * s.c + c) * s.in_plane(), padded + c * source.plane);
      for (int64_t p = 0; p < panels.count; ++p) {
        const int64_t o = panels.begin(p);
        planes_of(panels.height(p))(source, padded, offset, packed + o * terms, terms, first + o,
                                    y + (i * s.o + o) * s.out_plane());
      }
    }
  });
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
