// Convolution and its input gradient as matrix products over gathered columns: weights [rows, k] times
// columns [k, positions of all images], k = channels x taps.  Columns are gathered panel by panel, never
// stored as a whole.
//
// The input gradient is a sum of strided scatters; seen from x it is, for each remainder of the position by
// the stride (a phase), a gathering convolution of dy with the taps that reach this remainder.
#include "conv_shape.h"
#include "conv_source.h"
#include "conv_tile.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kDepth = 256;             // k of one pass: a B panel of 16 KB stays in L1 (AVX2)
constexpr int64_t kBlockFloats = 49152;     // gathered block of one worker: 192 KB of L2
constexpr int64_t kSourceFloats = 1 << 21;  // padded images at once: 8 MB of L3

// Where results go and where weights come from, beside the GatherSource.
struct Product {
  int64_t images, group, rows, channels;  // rows and source channels of a group
  // Weight of (group g, row i, channel c, tap): w[g * by_group + i * by_row + c * by_channel + tap index].
  const float* w;
  int64_t by_group, by_row, by_channel;
  int64_t tap_first[3], tap_by[3], kernel[3];
  const float* bias;  // [group * rows] or null
  // Position (z, y, x) goes to out[...][start + step * position].
  float* y;
  int64_t out[3], start[3], step[3];

  int64_t out_plane() const { return out[0] * out[1] * out[2]; }
};

// The weights of one group as row panels: panel by panel, k by k, the panel's rows side by side.
void pack_weights(const Product& p, const GatherSource& s, int64_t g, int64_t panel_index,
                  const RowPanels& panels, int64_t k, float* packed) {
  const int64_t row = panels.begin(panel_index), height = panels.height(panel_index);
  const float* w = p.w + g * p.by_group + row * p.by_row;
  float* to = packed + (g * p.rows + row) * k;
  for (int64_t c = 0; c < p.channels; ++c)
    for (int64_t a = 0; a < s.axis[0].taps; ++a)
      for (int64_t b = 0; b < s.axis[1].taps; ++b)
        for (int64_t e = 0; e < s.axis[2].taps; ++e, to += height) {
          const int64_t tap =
              ((p.tap_first[0] + a * p.tap_by[0]) * p.kernel[1] + p.tap_first[1] + b * p.tap_by[1]) *
                  p.kernel[2] +
              p.tap_first[2] + e * p.tap_by[2];
          const float* from = w + c * p.by_channel + tap;
          for (int64_t i = 0; i < height; ++i) to[i] = from[i * p.by_row];
        }
}

// One panel's columns: runs of positions that lie side by side in the source.
struct Runs {
  int count = 0;
  int64_t length[kTileColumns];
  const float* from[kTileColumns];  // of tap 0, channel 0
  int64_t to[kTileColumns];         // result offset of each column, row 0
  int columns = 0;
};

struct Position {
  int64_t image, z, y, x;
};

// Fills `runs` with the next kTileColumns positions, from `at` on, at most `left`.
void next_panel(const Product& p, const GatherSource& s, const float* source, int64_t image_stride,
                int64_t first_image, Position* at, int64_t left, Runs* runs) {
  runs->count = 0, runs->columns = 0;
  int64_t room = min<int64_t>(kTileColumns, left);
  while (room > 0) {
    const int64_t n = min(room, s.axis[2].positions - at->x);
    runs->from[runs->count] =
        source + (at->image - first_image) * image_stride + s.position_offset(at->z, at->y, at->x);
    runs->length[runs->count++] = n;
    const int64_t to =
        at->image * p.group * p.rows * p.out_plane() +
        ((p.start[0] + at->z * p.step[0]) * p.out[1] + p.start[1] + at->y * p.step[1]) * p.out[2] +
        p.start[2] + at->x * p.step[2];
    for (int64_t i = 0; i < n; ++i) runs->to[runs->columns++] = to + i * p.step[2];
    room -= n;
    at->x += n;
    if (at->x == s.axis[2].positions) {
      at->x = 0;
      if (++at->y == s.axis[1].positions) {
        at->y = 0;
        if (++at->z == s.axis[0].positions) at->z = 0, ++at->image;
      }
    }
  }
}

// b[q * kTileColumns + j] = value of column j at depth q; may write kLanes floats behind the panel.
void gather_panel(const Runs& runs, const int64_t* offset, int64_t depth, float* b) {
  if (runs.count == 1 && runs.columns == kTileColumns) {
    for (int64_t q = 0; q < depth; ++q, b += kTileColumns) {
      const float* from = runs.from[0] + offset[q];
      for (int v = 0; v < kTileVectors; ++v) store(b + v * kLanes, load(from + v * kLanes));
    }
    return;
  }
  if (runs.columns < kTileColumns) memset(b, 0, depth * kTileColumns * sizeof(float));
  for (int64_t q = 0; q < depth; ++q, b += kTileColumns) {
    float* to = b;
    for (int r = 0; r < runs.count; ++r) {
      const float* from = runs.from[r] + offset[q];
      int64_t n = runs.length[r];
      for (; n >= kLanes; n -= kLanes, from += kLanes, to += kLanes) store(to, load(from));
      if (n > 0) store(to, load_partial(from, n));  // what it clears behind is written next
      to += n;
    }
  }
}

// A tile's result to scattered places.
void scatter(const float* t, int64_t rows, const Runs& runs, float* y, int64_t plane, TileStart start,
             const float* bias) {
  for (int64_t i = 0; i < rows; ++i, t += kTileColumns, y += plane) {
    if (start == TileStart::add) {
      for (int j = 0; j < runs.columns; ++j) y[runs.to[j]] += t[j];
    } else {
      const float base = bias ? bias[i] : 0.0f;
      for (int j = 0; j < runs.columns; ++j) y[runs.to[j]] = t[j] + base;
    }
  }
}

// Cost: 2 images x group x rows x positions x k flops.
int32_t run_product(const myc_call* call, const Product& p, const GatherSource& s, const float* source) {
  const int64_t positions = s.positions(), k = p.channels * s.taps(), channels = p.group * p.channels;
  if (p.images == 0 || positions == 0 || p.rows == 0) return MYC_OK;
  Scratch scratch(call);
  const RowPanels panels(p.rows);
  float* weights = scratch.take<float>(p.group * p.rows * k);
  int64_t* offsets = scratch.take<int64_t>(k);
  const int64_t source_plane = s.copies ? s.plane : s.axis[0].in * s.axis[1].in * s.axis[2].in;
  const int64_t images_at_once =
      s.copies ? clamp(kSourceFloats / max(int64_t{1}, channels * s.plane), int64_t{1}, p.images) : p.images;
  float* padded = s.copies ? scratch.take<float>(images_at_once * channels * s.plane + kLanes) : nullptr;

  const int64_t passes = ceil_div(k, kDepth), depth = ceil_div(k, passes);
  // Panels of a block: enough to amortize streaming the weights, few enough for L2, and work for every
  // thread.
  const int64_t all_panels = ceil_div(images_at_once * positions, int64_t{kTileColumns});
  int64_t block = clamp(kBlockFloats / (depth * kTileColumns), int64_t{1}, all_panels);
  const int64_t workers = max_workers(call);
  if (workers > 1) block = clamp(all_panels * p.group / (workers * 4), int64_t{1}, block);
  const int64_t block_floats = block * kTileColumns * depth + kLanes;
  float* blocks = scratch.take<float>(workers * round_up(block_floats, 16));
  Runs* runs = scratch.take<Runs>(workers * block);
  if (!weights || !offsets || !blocks || !runs || (s.copies && !padded)) return MYC_E_MEMORY;

  for (int64_t c = 0, q = 0; c < p.channels; ++c)
    for (int64_t a = 0; a < s.axis[0].taps; ++a)
      for (int64_t b = 0; b < s.axis[1].taps; ++b)
        for (int64_t e = 0; e < s.axis[2].taps; ++e) offsets[q++] = c * source_plane + s.tap_offset(a, b, e);
  parallel_rows(call, p.group * panels.count, kTileRows * k * 16, [&](int64_t i) {
    pack_weights(p, s, i / panels.count, i % panels.count, panels, k, weights);
  });
  // Tiles may go straight to y when positions lie there as they are numbered.
  const bool direct =
      s.axis[0].positions == p.out[0] && s.axis[1].positions == p.out[1] && s.axis[2].positions == p.out[2];

  for (int64_t first = 0; first < p.images; first += images_at_once) {
    const int64_t images = min(images_at_once, p.images - first);
    const float* from = source + first * channels * source_plane;
    if (s.copies) {
      const int64_t in_plane = s.axis[0].in * s.axis[1].in * s.axis[2].in;
      from = source + first * channels * in_plane;
      parallel_rows(call, images * channels, s.plane * 8,
                    [&](int64_t i) { fill_plane(s, from + i * in_plane, padded + i * s.plane); });
      from = padded;
    }
    const int64_t columns = images * positions;
    const int64_t count = ceil_div(ceil_div(columns, int64_t{kTileColumns}), block);  // blocks of a group
    const int64_t block_work = 8 * block * kTileColumns * k * p.rows;
    parallel_for_worker(
        call, count * p.group, kMinParallelWork / (block_work + 1) + 1,
        [&](int64_t begin, int64_t end, int32_t worker) {
          float* b = blocks + worker * round_up(block_floats, 16);
          Runs* r = runs + worker * block;
          alignas(64) float temporary[kTileRows * kTileColumns];
          for (int64_t job = begin; job < end; ++job) {
            const int64_t g = job / count, column = job % count * block * kTileColumns;
            const int64_t width = min(block * kTileColumns, columns - column);
            const int64_t n = ceil_div(width, int64_t{kTileColumns});
            int64_t rest = column;
            Position at;
            at.x = rest % s.axis[2].positions, rest /= s.axis[2].positions;
            at.y = rest % s.axis[1].positions, rest /= s.axis[1].positions;
            at.z = rest % s.axis[0].positions, at.image = first + rest / s.axis[0].positions;
            for (int64_t i = 0; i < n; ++i)
              next_panel(p, s, from + g * p.channels * source_plane, channels * source_plane, first, &at,
                         width - i * kTileColumns, &r[i]);
            float* y = p.y + g * p.rows * p.out_plane();
            for (int64_t q = 0; q < k; q += depth) {
              const int64_t d = min(depth, k - q);
              for (int64_t i = 0; i < n; ++i) gather_panel(r[i], offsets + q, d, b + i * kTileColumns * d);
              for (int64_t i = 0; i < n; ++i) {
                const Runs& run = r[i];
                const bool straight = direct && run.columns == kTileColumns &&
                                      run.to[kTileColumns - 1] - run.to[0] == kTileColumns - 1;
                for (int64_t t = 0; t < panels.count; ++t) {
                  const int64_t row = panels.begin(t), height = panels.height(t);
                  const float* a = weights + (g * p.rows + row) * k + q * height;
                  const float* bias = p.bias ? p.bias + g * p.rows + row : nullptr;
                  const TileStart start = q > 0 ? TileStart::add : bias ? TileStart::bias : TileStart::zero;
                  float* to = y + row * p.out_plane();
                  if (straight) {
                    tile_of(height)(d, a, b + i * kTileColumns * d, to + run.to[0], p.out_plane(), start,
                                    bias);
                  } else {
                    tile_of(height)(d, a, b + i * kTileColumns * d, temporary, kTileColumns, TileStart::zero,
                                    nullptr);
                    scatter(temporary, height, run, to, p.out_plane(), start, bias);
                  }
                }
              }
            }
          }
        });
  }
  return MYC_OK;
}

}  // namespace

int32_t conv_gemm(const myc_call* call, const ConvShape& s, const float* x, const float* w, const float* bias,
                  float* y) {
  GatherAxis axis[3];
  Product p = {};
  for (int d = 0; d < 3; ++d) {
    axis[d] = {s.in[d], s.out[d], s.stride[d], s.kernel[d], -s.pad[d], s.dilation[d]};
    p.tap_by[d] = 1, p.kernel[d] = s.kernel[d], p.out[d] = s.out[d], p.step[d] = 1;
  }
  p.images = s.n, p.group = s.group, p.rows = s.group_o(), p.channels = s.group_c();
  p.w = w, p.by_channel = s.taps(), p.by_row = s.group_c() * s.taps(), p.by_group = p.rows * p.by_row;
  p.bias = bias, p.y = y;
  return run_product(call, p, gather_source(axis), x);
}

int32_t conv_gemm_input_grad(const myc_call* call, const ConvShape& s, const float* dy, const float* w,
                             float* dx) {
  Product p = {};
  p.images = s.n, p.group = s.group, p.rows = s.group_c(), p.channels = s.group_o();
  p.w = w, p.by_row = s.taps(), p.by_channel = s.group_c() * s.taps(), p.by_group = p.channels * p.by_channel;
  p.y = dx;
  for (int d = 0; d < 3; ++d) p.kernel[d] = s.kernel[d], p.out[d] = s.in[d], p.step[d] = s.stride[d];

  GatherAxis phase[3];
  const auto plan = [&](int d, int64_t f) {
    const Phase found =
        input_grad_phase(s.in[d], s.out[d], s.kernel[d], s.stride[d], s.dilation[d], s.pad[d], f);
    phase[d] = found.axis;
    p.start[d] = f, p.tap_first[d] = found.tap, p.tap_by[d] = found.tap_by;
  };
  for (int64_t f0 = 0; f0 < s.stride[0]; ++f0) {
    plan(0, f0);
    for (int64_t f1 = 0; f1 < s.stride[1]; ++f1) {
      plan(1, f1);
      for (int64_t f2 = 0; f2 < s.stride[2]; ++f2) {
        plan(2, f2);
        if (phase[0].taps * phase[1].taps * phase[2].taps > 0) {
          const int32_t status = run_product(call, p, gather_source(phase), dy);
          if (status != MYC_OK) return status;
        } else {  // positions that no window touches
          const int64_t planes = s.n * s.c;
          for (int64_t i = 0; i < planes; ++i)
            for (int64_t z = f0; z < s.in[0]; z += s.stride[0])
              for (int64_t y = f1; y < s.in[1]; y += s.stride[1]) {
                float* row = dx + ((i * s.in[0] + z) * s.in[1] + y) * s.in[2];
                for (int64_t x = f2; x < s.in[2]; x += s.stride[2]) row[x] = 0;
              }
        }
      }
    }
  }
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
