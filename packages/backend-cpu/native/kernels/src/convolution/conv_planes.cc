// Convolution with few channels a group, depthwise above all: no matrices, the padded planes of one group are
// read row by row.  Bound by loads: one a multiplication.
#include "convolution/conv_shape.h"
#include "convolution/conv_source.h"
#include "simd/vec.h"

namespace mycelia::MYC_ISA {
namespace {

// y[r][e] = bias + sum over t < taps of w[t] * x[offset[t] + r * x_step + e] for R rows and V vectors.
template <int R, int V>
MYC_INLINE void row_block(const float* x, int64_t x_step, const int64_t* offset, const float* w, int64_t taps,
                          float bias, float* y, int64_t y_step) {
  f32v sum[R][V];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) sum[r][v] = f32v{} + bias;
  for (int64_t t = 0; t < taps; ++t) {
    const float* from = x + offset[t];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) sum[r][v] += w[t] * load(from + r * x_step + v * kLanes);
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) store(y + r * y_step + v * kLanes, sum[r][v]);
}

// R rows of `width` results.  Blocks that do not divide the width overlap; rows shorter than a vector go
// through memory.
template <int R>
void rows(const float* x, int64_t x_step, const int64_t* offset, const float* w, int64_t taps, float bias,
          float* y, int64_t y_step, int64_t width) {
  if (width < kLanes) {
    float short_rows[R][kLanes];
    row_block<R, 1>(x, x_step, offset, w, taps, bias, short_rows[0], kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) memcpy(y + r * y_step, short_rows[r], width * sizeof(float));
    return;
  }
  for (int64_t e = 0; e < width;) {
    if (width - e > kLanes && width >= 2 * kLanes) {
      if (e + 2 * kLanes > width) e = width - 2 * kLanes;
      row_block<R, 2>(x + e, x_step, offset, w, taps, bias, y + e, y_step);
      e += 2 * kLanes;
    } else {
      if (e + kLanes > width) e = width - kLanes;
      row_block<R, 1>(x + e, x_step, offset, w, taps, bias, y + e, y_step);
      e += kLanes;
    }
  }
}

// All positions of one output plane, [z][y][x] contiguous.
void plane(const GatherSource& s, const float* x, const int64_t* offset, const float* w, int64_t taps,
           float bias, float* y) {
  const int64_t height = s.axis[1].positions, width = s.axis[2].positions, step = s.axis[1].step * s.row;
  for (int64_t z = 0; z < s.axis[0].positions; ++z) {
    int64_t r = 0;
    for (; r + 4 <= height; r += 4, y += 4 * width)
      rows<4>(x + s.position_offset(z, r, 0), step, offset, w, taps, bias, y, width, width);
    for (; r < height; ++r, y += width)
      rows<1>(x + s.position_offset(z, r, 0), step, offset, w, taps, bias, y, width, width);
  }
}

// Where each (channel, tap) of a group begins in its padded planes.
void list_offsets(const GatherSource& s, int64_t channels, int64_t* to) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t a = 0; a < s.axis[0].taps; ++a)
      for (int64_t b = 0; b < s.axis[1].taps; ++b)
        for (int64_t e = 0; e < s.axis[2].taps; ++e) *to++ = c * s.plane + s.tap_offset(a, b, e);
}

// sum[t] = sum over the plane's positions of dy * x[offset[t] + position] for T taps.
template <int T>
void dot_taps(const GatherSource& s, const float* x, const int64_t* offset, const float* dy, float* sum) {
  f32v total[T] = {};
  const int64_t width = s.axis[2].positions;
  for (int64_t z = 0; z < s.axis[0].positions; ++z) {
    for (int64_t r = 0; r < s.axis[1].positions; ++r, dy += width) {
      const float* from = x + s.position_offset(z, r, 0);
      int64_t e = 0;
      for (; e + kLanes <= width; e += kLanes) {
        const f32v y = load(dy + e);
#pragma GCC unroll 9
        for (int t = 0; t < T; ++t) total[t] += y * load(from + offset[t] + e);
      }
      if (e < width) {
        const f32v y = load_partial(dy + e, width - e);
#pragma GCC unroll 9
        for (int t = 0; t < T; ++t) total[t] += y * load_partial(from + offset[t] + e, width - e);
      }
    }
  }
#pragma GCC unroll 12
  for (int t = 0; t < T; ++t) sum[t] += horizontal_sum(total[t]);
}

constexpr int kDotTaps = 9;  // a 3 x 3 kernel in one pass: 9 sums and dy in registers

using DotFn = void (*)(const GatherSource&, const float*, const int64_t*, const float*, float*);

template <int T = kDotTaps>
DotFn dot_of(int64_t taps) {
  if constexpr (T > 1) {
    if (taps < T) return dot_of<T - 1>(taps);
  }
  return dot_taps<T>;
}

// Work of one (image, group) in the measure of parallel_rows.
int64_t group_work(const ConvShape& s) {
  return 8 * s.group_c() * (s.in_plane() + s.out_plane() * s.group_o() * s.taps());
}

}  // namespace

// Matrix tiles would be mostly empty with so few rows.
bool conv_planes_fits(const ConvShape& s) { return s.group > 1 && s.group_c() <= 3 && s.group_o() <= 3; }

int32_t conv_planes(const myc_call* call, const ConvShape& s, const float* x, const float* w,
                    const float* bias, float* y) {
  const GatherSource source = forward_source(s);
  const int64_t channels = s.group_c(), outputs = s.group_o(), k = channels * s.taps();
  const int64_t floats =
      round_up(channels * source.plane + 4 * kLanes, 16);  // blocks read behind the last row
  Scratch scratch(call);
  int64_t* offset = scratch.take<int64_t>(k);
  float* planes = scratch.take<float>(max_workers(call) * floats);
  if (!offset || !planes) return MYC_E_MEMORY;
  list_offsets(source, channels, offset);
  const int64_t grain = kMinParallelWork / (group_work(s) + 1) + 1;
  parallel_for_worker(call, s.n * s.group, grain, [&](int64_t begin, int64_t end, int32_t worker) {
    float* padded = planes + worker * floats;
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t c = 0; c < channels; ++c)
        fill_plane(source, x + (i * channels + c) * s.in_plane(), padded + c * source.plane);
      for (int64_t o = i % s.group * outputs, n = 0; n < outputs; ++n, ++o)
        plane(source, padded, offset, w + o * k, k, bias ? bias[o] : 0.0f,
              y + (i * outputs + n) * s.out_plane());
    }
  });
  return MYC_OK;
}

int32_t conv_planes_input_grad(const myc_call* call, const ConvShape& s, const float* dy, const float* w,
                               float* dx) {
  const int64_t channels = s.group_c(), outputs = s.group_o(), taps = s.taps();
  const bool phases = s.stride[0] * s.stride[1] * s.stride[2] > 1;
  for (int64_t f0 = 0; f0 < s.stride[0]; ++f0) {
    for (int64_t f1 = 0; f1 < s.stride[1]; ++f1) {
      for (int64_t f2 = 0; f2 < s.stride[2]; ++f2) {
        const int64_t f[3] = {f0, f1, f2};
        GatherAxis axis[3];
        Phase phase[3];
        for (int d = 0; d < 3; ++d) {
          phase[d] =
              input_grad_phase(s.in[d], s.out[d], s.kernel[d], s.stride[d], s.dilation[d], s.pad[d], f[d]);
          axis[d] = phase[d].axis;
        }
        if (axis[0].positions * axis[1].positions * axis[2].positions == 0) continue;
        const GatherSource source = gather_source(axis);
        const int64_t reached = source.taps(), k = outputs * reached, positions = source.positions();
        const int64_t floats = round_up(outputs * source.plane + 4 * kLanes, 16);
        Scratch scratch(call);
        int64_t* offset = scratch.take<int64_t>(k);
        float* weights = scratch.take<float>(s.group * channels * k);
        float* planes = scratch.take<float>(max_workers(call) * floats);
        float* results = phases ? scratch.take<float>(max_workers(call) * round_up(positions, 16)) : nullptr;
        if (!offset || !weights || !planes || (phases && !results)) return MYC_E_MEMORY;
        list_offsets(source, outputs, offset);
        float* to = weights;
        for (int64_t g = 0; g < s.group; ++g)
          for (int64_t c = 0; c < channels; ++c)
            for (int64_t o = 0; o < outputs; ++o)
              for (int64_t a = 0; a < axis[0].taps; ++a)
                for (int64_t b = 0; b < axis[1].taps; ++b)
                  for (int64_t e = 0; e < axis[2].taps; ++e) {
                    const int64_t t0 = phase[0].tap + a * phase[0].tap_by,
                                  t1 = phase[1].tap + b * phase[1].tap_by;
                    const int64_t t2 = phase[2].tap + e * phase[2].tap_by;
                    *to++ = w[((g * outputs + o) * channels + c) * taps +
                              (t0 * s.kernel[1] + t1) * s.kernel[2] + t2];
                  }
        const int64_t grain = kMinParallelWork / (group_work(s) + 1) + 1;
        parallel_for_worker(call, s.n * s.group, grain, [&](int64_t begin, int64_t end, int32_t worker) {
          float* padded = planes + worker * floats;
          for (int64_t i = begin; i < end; ++i) {
            for (int64_t o = 0; o < outputs; ++o)
              fill_plane(source, dy + (i * outputs + o) * s.out_plane(), padded + o * source.plane);
            for (int64_t c = 0; c < channels; ++c) {
              float* y = dx + (i * channels + c) * s.in_plane();
              const float* own = weights + (i % s.group * channels + c) * k;
              if (!phases) {
                plane(source, padded, offset, own, k, 0.0f, y);
                continue;
              }
              float* result = results + worker * round_up(positions, 16);
              plane(source, padded, offset, own, k, 0.0f, result);
              for (int64_t z = f0; z < s.in[0]; z += s.stride[0])
                for (int64_t r = f1; r < s.in[1]; r += s.stride[1]) {
                  float* row = y + (z * s.in[1] + r) * s.in[2];
                  for (int64_t e = f2; e < s.in[2]; e += s.stride[2]) row[e] = *result++;
                }
            }
          }
        });
      }
    }
  }
  return MYC_OK;
}

int32_t conv_planes_weight_grad(const myc_call* call, const ConvShape& s, const float* x, const float* dy,
                                float* dw) {
  const GatherSource source = forward_source(s);
  const int64_t channels = s.group_c(), outputs = s.group_o(), k = channels * s.taps();
  const int64_t floats = round_up(channels * source.plane + 4 * kLanes, 16);
  Scratch scratch(call);
  int64_t* offset = scratch.take<int64_t>(k);
  float* planes = scratch.take<float>(max_workers(call) * floats);
  if (!offset || !planes) return MYC_E_MEMORY;
  list_offsets(source, channels, offset);
  memset(dw, 0, s.o * k * sizeof(float));
  // A group has one owner, which adds the images in order.
  const int64_t grain = kMinParallelWork / (s.n * group_work(s) + 1) + 1;
  parallel_for_worker(call, s.group, grain, [&](int64_t begin, int64_t end, int32_t worker) {
    float* padded = planes + worker * floats;
    for (int64_t g = begin; g < end; ++g)
      for (int64_t image = 0; image < s.n; ++image) {
        const int64_t i = image * s.group + g;
        for (int64_t c = 0; c < channels; ++c)
          fill_plane(source, x + (i * channels + c) * s.in_plane(), padded + c * source.plane);
        for (int64_t o = 0; o < outputs; ++o)
          for (int64_t t = 0; t < k; t += kDotTaps)
            dot_of(min<int64_t>(kDotTaps, k - t))(source, padded, offset + t,
                                                  dy + (i * outputs + o) * s.out_plane(),
                                                  dw + (g * outputs + o) * k + t);
      }
  });
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
