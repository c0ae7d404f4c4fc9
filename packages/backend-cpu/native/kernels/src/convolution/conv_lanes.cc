// Convolution with few channels over many images: lanes of a vector are images.  Images are transposed to
// [channel, position][image], computed without any waste at borders or narrow rows, and transposed back row
// by row. The input gradient has the same form with the roles of the channels exchanged.
#include "convolution/conv_shape.h"
#include "convolution/conv_tile.h"
#include "convolution/conv_transpose.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kImages = kTileColumns;  // of one block

// Taps that reach one position along an axis: tap, tap + by, ... meeting source elements at, at + step, ...
struct Reach {
  int32_t count, tap, at;
};

struct Axis {
  int64_t source, positions, taps;
  int64_t tap_by, step;
  const Reach* reach;  // [positions]
};

struct Lanes {
  int64_t images, group, rows, channels;  // rows and source channels of a group
  Axis axis[3];
  const float* w;  // of (group g, row i, channel c, tap): w[g * by_group + i * by_row + c * by_channel + tap]
  int64_t by_group, by_row, by_channel;
  const float* bias;

  int64_t taps() const { return axis[0].taps * axis[1].taps * axis[2].taps; }
  int64_t source_plane() const { return axis[0].source * axis[1].source * axis[2].source; }
  int64_t plane() const { return axis[0].positions * axis[1].positions * axis[2].positions; }
};

// Taps along the innermost axis for one channel and one tap along the others: where they begin.
struct Segment {
  int32_t source, weight;  // in innermost source rows' elements; in taps of all channels
};

// The segments of all channels for one place along the outer axes, in the order of the packed weights.
int64_t list_segments(const Lanes& p, const Reach& z, const Reach& y, Segment* to) {
  const Axis *az = &p.axis[0], *ay = &p.axis[1], *ae = &p.axis[2];
  int64_t count = 0;
  for (int64_t c = 0; c < p.channels; ++c)
    for (int64_t a = 0; a < z.count; ++a)
      for (int64_t b = 0; b < y.count; ++b)
        to[count++] = {
            static_cast<int32_t>(((c * az->source + z.at + a * az->step) * ay->source + y.at + b * ay->step) *
                                 ae->source),
            static_cast<int32_t>(
                ((c * az->taps + z.tap + a * az->tap_by) * ay->taps + y.tap + b * ay->tap_by) * ae->taps)};
  return count;
}

// One position: y[i][image] for R rows.  `x` is the group's first channel, `w` the packed panel
// [channel][tap][R].
template <int R>
MYC_INLINE void position(const Segment* segments, int64_t count, int64_t taps, int64_t x_step, int64_t w_step,
                         const float* x, const float* w, const float* bias, float* to, int64_t to_ld) {
  f32v sum[R][kTileVectors];
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < kTileVectors; ++v) sum[i][v] = f32v{} + (bias ? bias[i] : 0.0f);
  for (int64_t s = 0; s < count; ++s) {
    const float* xs = x + segments[s].source * kImages;
    const float* ws = w + segments[s].weight * int64_t{R};
    for (int64_t t = 0; t < taps; ++t, xs += x_step, ws += w_step) {
      f32v v[kTileVectors];
      for (int j = 0; j < kTileVectors; ++j) v[j] = load(xs + j * kLanes);
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i)
        for (int j = 0; j < kTileVectors; ++j) sum[i][j] += ws[i] * v[j];
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < kTileVectors; ++v) store(to + i * to_ld + v * kLanes, sum[i][v]);
}

// All positions of one row along the innermost axis: y[i][position][image].
template <int R>
void row(const Axis& axis, const Segment* segments, int64_t count, const float* x, const float* w,
         const float* bias, float* to) {
  const int64_t n = axis.positions, x_step = axis.step * kImages, w_step = axis.tap_by * R;
  for (int64_t e = 0; e < n; ++e) {
    const Reach& r = axis.reach[e];
    position<R>(segments, count, r.count, x_step, w_step, x + r.at * kImages, w + r.tap * int64_t{R}, bias,
                to + e * kImages, n * kImages);
  }
}

using RowFn = void (*)(const Axis&, const Segment*, int64_t, const float*, const float*, const float*,
                       float*);

template <int R = kTileRows>
RowFn row_of(int64_t rows) {
  if constexpr (R > 1) {
    if (rows != R) return row_of<R - 1>(rows);
  }
  return row<R>;
}

// Cost: 2 images x rows x channels x taps flops for every position (taps that meet padding are left out).
int32_t run_lanes(const myc_call* call, const Lanes& p, const float* source, float* y) {
  const int64_t channels = p.group * p.channels, k = p.channels * p.taps(), rows = p.group * p.rows;
  const int64_t plane = p.plane(), source_plane = p.source_plane(), width = p.axis[2].positions;
  if (p.images == 0 || plane == 0 || rows == 0) return MYC_OK;
  Scratch scratch(call);
  const RowPanels panels(p.rows);
  const int64_t workers = max_workers(call);
  // Blocks of images at once: two a thread, for balance.
  const int64_t at_once = min(ceil_div(p.images, kImages), 2 * workers);
  float* weights = scratch.take<float>(rows * k);
  float* turned = scratch.take<float>(at_once * channels * source_plane * kImages);
  float* results = scratch.take<float>(workers * kTileRows * width * kImages);
  const int64_t most_segments = p.channels * p.axis[0].taps * p.axis[1].taps;
  Segment* lists = scratch.take<Segment>(workers * most_segments);
  if (!weights || !turned || !results || !lists) return MYC_E_MEMORY;

  for (int64_t g = 0; g < p.group; ++g) {
    for (int64_t t = 0; t < panels.count; ++t) {
      const int64_t height = panels.height(t), row = panels.begin(t);
      float* to = weights + (g * p.rows + row) * k;
      for (int64_t c = 0; c < p.channels; ++c)
        for (int64_t tap = 0; tap < p.taps(); ++tap)
          for (int64_t i = 0; i < height; ++i)
            *to++ = p.w[g * p.by_group + (row + i) * p.by_row + c * p.by_channel + tap];
    }
  }
  for (int64_t first = 0; first < p.images; first += at_once * kImages) {
    const int64_t blocks = min(at_once, ceil_div(p.images - first, kImages));
    const int64_t values = channels * source_plane;  // of an image
    // Long images are cut so that there is work for all threads.
    const int64_t cuts = min(values, 4 * workers), part = round_up(ceil_div(values, cuts), kLanes);
    parallel_rows(call, blocks * cuts, part * kImages * 8, [&](int64_t job) {
      const int64_t image = first + job / cuts * kImages, begin = job % cuts * part;
      const int64_t n = min(part, values - begin), images = min(kImages, p.images - image);
      if (n <= 0) return;
      float* to = turned + (job / cuts * values + begin) * kImages;
      if (images < kImages) memset(to, 0, n * kImages * sizeof(float));
      transpose_matrix(source + image * values + begin, values, images, n, to, kImages);
    });
    const int64_t lines = p.axis[0].positions * p.axis[1].positions;
    const int64_t work = 8 * kImages * width * rows * k;
    parallel_for_worker(
        call, blocks * lines, kMinParallelWork / (work + 1) + 1,
        [&](int64_t begin, int64_t end, int32_t worker) {
          float* result = results + worker * kTileRows * width * kImages;
          for (int64_t job = begin; job < end; ++job) {
            const int64_t block = job / lines, line = job % lines, image = first + block * kImages;
            const Reach& rz = p.axis[0].reach[line / p.axis[1].positions];
            const Reach& ry = p.axis[1].reach[line % p.axis[1].positions];
            const int64_t images = min(kImages, p.images - image);
            Segment* segments = lists + worker * most_segments;
            const int64_t count = list_segments(p, rz, ry, segments);
            for (int64_t t = 0; t < p.group * panels.count; ++t) {
              const int64_t g = t / panels.count, height = panels.height(t % panels.count);
              const int64_t row = g * p.rows + panels.begin(t % panels.count);
              row_of(height)(p.axis[2], segments, count,
                             turned + (block * channels + g * p.channels) * source_plane * kImages,
                             weights + row * k, p.bias ? p.bias + row : nullptr, result);
              for (int64_t i = 0; i < height; ++i)
                transpose_matrix(result + i * width * kImages, kImages, width, images,
                                 y + (image * rows + row + i) * plane + line * width, rows * plane);
            }
          }
        });
  }
  return MYC_OK;
}

// Reach of the convolution itself: position p meets element p * stride + tap * dilation - pad.
void forward_reach(const ConvShape& s, int d, Axis* axis, Reach* reach) {
  *axis = {s.in[d], s.out[d], s.kernel[d], 1, s.dilation[d], reach};
  for (int64_t p = 0; p < s.out[d]; ++p) {
    const int64_t at = p * s.stride[d] - s.pad[d], dilation = s.dilation[d];
    const int64_t tap = at < 0 ? ceil_div(-at, dilation) : 0;
    const int64_t end = at < s.in[d] ? min(s.kernel[d], ceil_div(s.in[d] - at, dilation)) : 0;
    reach[p] = {static_cast<int32_t>(max(int64_t{0}, end - tap)), static_cast<int32_t>(tap),
                static_cast<int32_t>(at + tap * dilation)};
  }
}

// Reach of its transpose: position p meets element (p + pad - tap * dilation) / stride where that is whole.
void backward_reach(const ConvShape& s, int d, Axis* axis, Reach* reach) {
  const int64_t stride = s.stride[d], dilation = s.dilation[d];
  int64_t every = 1;  // taps between two that meet an element
  while (every * dilation % stride != 0) ++every;
  const int64_t step = every * dilation / stride;
  *axis = {s.out[d], s.in[d], s.kernel[d], every, -step, reach};
  for (int64_t p = 0; p < s.in[d]; ++p) {
    int32_t count = 0, first = 0, at = 0;
    for (int64_t tap = 0; tap < s.kernel[d]; ++tap) {
      const int64_t from = p + s.pad[d] - tap * dilation;
      if (from < 0 || from % stride != 0 || from / stride >= s.out[d]) continue;
      if (count++ == 0) first = static_cast<int32_t>(tap), at = static_cast<int32_t>(from / stride);
    }
    reach[p] = {count, first, at};
  }
}

}  // namespace

// Worth it where gathering columns for matrix tiles would cost as much as the few rows that use them.
bool conv_lanes_fits(const ConvShape& s) {
  return s.n >= kLanes && s.c > 0 && s.o > 0 && s.group_o() <= 32 && s.group_c() <= 32 &&
         s.group_o() * s.group_c() <= 256 && s.taps() <= 49 && s.in_plane() <= 64 * 64;
}

int32_t conv_lanes(const myc_call* call, const ConvShape& s, const float* x, const float* w,
                   const float* bias, float* y) {
  Scratch scratch(call);
  Lanes p = {s.n,
             s.group,
             s.group_o(),
             s.group_c(),
             {},
             w,
             s.group_o() * s.group_c() * s.taps(),
             s.group_c() * s.taps(),
             s.taps(),
             bias};
  for (int d = 0; d < 3; ++d) {
    Reach* reach = scratch.take<Reach>(s.out[d]);
    if (!reach) return MYC_E_MEMORY;
    forward_reach(s, d, &p.axis[d], reach);
  }
  return run_lanes(call, p, x, y);
}

int32_t conv_lanes_input_grad(const myc_call* call, const ConvShape& s, const float* dy, const float* w,
                              float* dx) {
  Scratch scratch(call);
  Lanes p = {s.n,
             s.group,
             s.group_c(),
             s.group_o(),
             {},
             w,
             s.group_o() * s.group_c() * s.taps(),
             s.taps(),
             s.group_c() * s.taps(),
             nullptr};
  for (int d = 0; d < 3; ++d) {
    Reach* reach = scratch.take<Reach>(s.in[d]);
    if (!reach) return MYC_E_MEMORY;
    backward_reach(s, d, &p.axis[d], reach);
  }
  return run_lanes(call, p, dy, dx);
}

}  // namespace mycelia::MYC_ISA
