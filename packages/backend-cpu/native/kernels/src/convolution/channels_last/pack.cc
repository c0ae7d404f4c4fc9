// Packed weights of channels-last convolutions; the formats are told in conv_last.h.  Bytes: w once, the pack
// once.
#include "convolution/channels_last/conv_last.h"

#include <cfloat>

#include "simd/magnitude.h"
#include "gemm/pack.h"
#include "simd/transpose.h"

namespace mycelia::MYC_ISA {
namespace {

// Weights seen from one group of the packed convolution: output column j, input channel i, tap t.
struct Weights {
  const float* data;
  int64_t columns, depth, taps;
  int64_t column_step, depth_step;  // floats; taps are neighbours
  bool flipped;                     // tap t of the pack is tap taps - 1 - t of w

  int64_t tap(int64_t t) const { return flipped ? taps - 1 - t : t; }
};

// Up to kLanes columns from column j on, into lanes [lane, lane + kLanes) of a panel [tap][channel][16].
void pack_lanes(const Weights& w, int64_t j, int64_t lane, float* panel) {
  const float* from = w.data + j * w.column_step;
  const int64_t count = clamp<int64_t>(w.columns - j, 0, kLanes);
  const auto put = [&](int64_t i, int64_t t, f32v v) {
    store(panel + (w.tap(t) * w.depth + i) * kPackedColumns + lane, v);
  };
  // What lies in one piece for a column: taps of one channel, or, when channels are neighbours too, all of
  // it.
  const bool whole = w.depth_step == w.taps;
  const int64_t length = whole ? w.depth * w.taps : w.taps, pieces = whole ? 1 : w.depth;
  for (int64_t piece = 0; piece < pieces; ++piece, from += w.depth_step) {
    int64_t q = 0, i = piece, t = 0;
    for (; q + kLanes <= length; q += kLanes) {
      f32v tile[kLanes];
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) tile[r] = r < count ? load(from + r * w.column_step + q) : f32v{};
      transpose(tile);
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) {
        put(i, t, tile[r]);
        if (++t == w.taps) t = 0, ++i;
      }
    }
    for (; q < length; ++q) {
      f32v v = {};
      if (w.column_step == 1) {
        v = load_partial(from + q, count);
      } else {
        for (int64_t r = 0; r < count; ++r) v[r] = from[r * w.column_step + q];
      }
      put(i, t, v);
      if (++t == w.taps) t = 0, ++i;
    }
  }
}

void pack_panel(const Weights& w, int64_t panel, float* to) {
  for (int64_t lane = 0; lane < kPackedColumns; lane += kLanes) {
    pack_lanes(w, panel * kPackedColumns + lane, lane, to);
  }
}

// The largest magnitude of pixels of `depth` channels for which no transform and no sum overflows, the largest weight
// being of magnitude `most`; -1 if a weight is not finite.  Transforms of x, weights and results multiply the largest
// element by the squares of 10, 1 and 19 at most for m = 4, of less for m = 2, of 15, 1.25 and 67 for m = 6.
float largest_pixel(int m, int64_t depth, float most) {
  if (!(most <= FLT_MAX / 4)) return -1;
  const double growth = static_cast<double>(depth) * (m == 6 ? 1 << 21 : 1 << 16);
  return static_cast<float>(min(FLT_MAX / 256.0, FLT_MAX / (growth * most)));
}

// Planes of `panels` panels of the direct form, of which `panel_of(panel, worker)` gives each; the largest pixel goes to
// `last`, 16 times.
template <class PanelOf>
int32_t transform_panels(const myc_call* call, ConvAlgorithm algorithm, int64_t panels, int64_t depth, float* to, float* last,
                         const PanelOf& panel_of) {
  constexpr int64_t kTaps = 9;
  Scratch scratch(call);
  int32_t *most = scratch.take<int32_t>(panels), *done = scratch.take<int32_t>(panels);
  if (!most || !done) return MYC_E_MEMORY;
  const int size = winograd_size(algorithm);
  const int64_t panel = depth * kPackedColumns;
  parallel_for_worker(call, panels, 1, [&](int64_t begin, int64_t end, int32_t worker) {
    for (int64_t p = begin; p < end; ++p) {
      const float* from = panel_of(p, worker);
      most[p] = magnitude(from, kTaps * panel);
      done[p] = MYC_PART(winograd_taps)(size, from, depth, to + p * panel, panels * panel);
    }
  });
  int32_t largest = 0;
  for (int64_t p = 0; p < panels; ++p) {
    if (done[p] != MYC_OK) return done[p];
    largest = max(largest, most[p]);
  }
  const float limit = largest_pixel(size, depth, magnitude_of(largest));
  for (int64_t i = 0; i < kPackedColumns; ++i) last[i] = limit;
  return MYC_OK;
}

}  // namespace

// For Winograd's forms w may be the direct form's pack, too, as [panels, 9 * channels, 16], or [outputs, 9 * channels]: then
// the pack has the planes and the largest pixel alone, and conv_last reads both, pack and w.
KERNEL_FN(conv_pack, f32) {
  const auto& a = attrs<myc_conv_pack_attrs>(call);
  const myc_tensor& w = input(call);
  const auto algorithm = static_cast<ConvAlgorithm>(a.algorithm);
  const int64_t tile = winograd_size(algorithm) + 2, planes = tile * tile;
  if (w.rank != 4) {
    const int64_t count = w.rank == 3 ? w.shape[0] : ceil_div(w.shape[0], kPackedColumns), length = w.shape[1];
    const float* weights = in<float>(call);
    float* to = out<float>(call);
    Scratch scratch(call);
    float* made = w.rank == 2 ? scratch.take<float>(max_workers(call) * length * kPackedColumns) : nullptr;
    if (w.rank == 2 && !made) return MYC_E_MEMORY;
    return transform_panels(call, algorithm, count, length / 9, to, to + planes * count * (length / 9) * kPackedColumns,
                            [&](int64_t p, int32_t worker) {
                              if (!made) return weights + p * length * kPackedColumns;
                              const int64_t j = p * kPackedColumns;
                              float* panel = made + worker * length * kPackedColumns;
                              pack_transposed<kPackedColumns, kPackedColumns>(weights + j * length, length,
                                                                              min(kPackedColumns, w.shape[0] - j), length, panel);
                              return static_cast<const float*>(panel);
                            });
  }
  const bool planes_first = algorithm == ConvAlgorithm::planes;  // then channels are like taps
  const int64_t group = a.group, taps = (planes_first ? w.shape[1] : 1) * w.shape[2] * w.shape[3], per_group = planes_first ? 1 : w.shape[1];
  const int64_t group_o = w.shape[0] / group, matrix = group_o * per_group * taps;
  const float* from = in<float>(call);
  float* to = out<float>(call);
  if (algorithm == ConvAlgorithm::depthwise) {
    // One matrix of a column per group, whichever way it is turned.
    const Weights all = {from, group, 1, taps, taps, taps, a.transposed != 0};
    for (int64_t p = 0; p < ceil_div(group, kPackedColumns); ++p) pack_panel(all, p, to + p * taps * kPackedColumns);
    return MYC_OK;
  }
  const auto weights = [&](int64_t g) {
    const float* at = from + g * matrix;
    return a.transposed ? Weights{at, per_group, group_o, taps, taps, per_group * taps, true}
                        : Weights{at, group_o, per_group, taps, per_group * taps, taps, false};
  };
  const Weights one = weights(0);
  const int64_t panels = ceil_div(one.columns, kPackedColumns), panel = one.depth * kPackedColumns;
  if (algorithm == ConvAlgorithm::direct || planes_first) {
    parallel_rows(call, group * panels, taps * panel * 8,
                  [&](int64_t p) { pack_panel(weights(p / panels), p % panels, to + p * taps * panel); });
    return MYC_OK;
  }
  float* all = to + planes * panels * panel;
  return transform_panels(call, algorithm, panels, one.depth, to, all + panels * taps * panel, [&](int64_t p, int32_t) {
    pack_panel(one, p, all + p * taps * panel);
    return static_cast<const float*>(all + p * taps * panel);
  });
}

}  // namespace mycelia::MYC_ISA
