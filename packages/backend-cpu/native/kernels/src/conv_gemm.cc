// Convolution and its input gradient as matrix products over gathered columns: weights [rows, k] times
// columns [k, positions of all images], k = channels x taps.  Columns are gathered panel by panel, never
// stored as a whole.
//
// The input gradient is a sum of strided scatters; seen from x it is, for each remainder of the position by
// the stride (a phase), a gathering convolution of dy with the taps that reach this remainder.
#include "conv_shape.h"
#include "conv_source.h"
#include "conv_tile.h"
#include "simd/transpose.h"

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

// to[j * rows + i] = from[i * ld + j] for i < rows <= kTileRows, j < columns.
void interleave(const float* from, int64_t ld, int64_t rows, int64_t columns, float* to) {
  constexpr int64_t kGroups = ceil_div(kTileRows, kLanes);
  f32v block[kGroups][kLanes];
  int64_t j = 0;
  // Whole vectors are stored, and what is too much is overwritten by the next column: so not up to the very
  // end.
  for (; (j + kLanes) * rows + (kGroups * kLanes - rows) <= columns * rows; j += kLanes) {
    for (int64_t g = 0; g < kGroups; ++g) {
      for (int64_t i = 0; i < kLanes; ++i) {
        const int64_t row = g * kLanes + i;
        block[g][i] = row < rows ? load(from + row * ld + j) : f32v{};
      }
      transpose(block[g]);
    }
    for (int64_t i = 0; i < kLanes; ++i)
      for (int64_t g = 0; g < kGroups; ++g) store(to + (j + i) * rows + g * kLanes, block[g][i]);
  }
  for (; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) to[j * rows + i] = from[i * ld + j];
}

// The weights of one row panel: k by k, the panel's rows side by side.
void pack_weights(const Product& p, const GatherSource& s, int64_t g, int64_t panel_index,
                  const RowPanels& panels, int64_t k, float* packed) {
  const int64_t row = panels.begin(panel_index), height = panels.height(panel_index);
  const float* w = p.w + g * p.by_group + row * p.by_row;
  float* to = packed + (g * p.rows + row) * k;
  // A row's weights in the order of k: the convolution itself.
  if (p.by_channel == s.taps() && p.tap_by[0] == 1 && p.tap_by[1] == 1 && p.tap_by[2] == 1)
    return interleave(w, p.by_row, height, k, to);
  const int64_t n0 = s.axis[0].taps, n1 = s.axis[1].taps, n2 = s.axis[2].taps;
  for (int64_t c = 0; c < p.channels; ++c) {
    for (int64_t a = 0; a < n0; ++a) {
      for (int64_t b = 0; b < n1; ++b) {
        const float* from =
            w + c * p.by_channel +
            ((p.tap_first[0] + a * p.tap_by[0]) * p.kernel[1] + p.tap_first[1] + b * p.tap_by[1]) *
                p.kernel[2] +
            p.tap_first[2];
        for (int64_t e = 0; e < n2; ++e, to += height)
          for (int64_t i = 0; i < height; ++i) to[i] = from[e * p.tap_by[2] + i * p.by_row];
      }
    }
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
    const float* from =
        source + (at->image - first_image) * image_stride + s.position_offset(at->z, at->y, at->x);
    if (runs->count > 0 && runs->from[runs->count - 1] + runs->length[runs->count - 1] == from) {
      runs->length[runs->count - 1] += n;
    } else {
      runs->from[runs->count] = from;
      runs->length[runs->count++] = n;
    }
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

// Part of a run that lies in one panel, and where it goes in the block of gathered panels.
struct Piece {
  const float* from;
  int64_t to, length;
};

// block[panel * panel_floats + q * kTileColumns + j] = value of the panel's column j at depth q.
// Depth by depth over all panels, so that the source is read in long runs.  Whole vectors are stored: what
// they put behind a piece is written later, or lies between two panels.
void gather(const Piece* pieces, int64_t count, const int64_t* offset, int64_t depth, float* block) {
  for (int64_t q = 0; q < depth; ++q, block += kTileColumns) {
    const int64_t at = offset[q];
    for (int64_t i = 0; i < count; ++i) {
      const Piece& piece = pieces[i];
      const float* from = piece.from + at;
      float* to = block + piece.to;
      if (piece.length == kTileColumns) {
        for (int v = 0; v < kTileVectors; ++v) store(to + v * kLanes, load(from + v * kLanes));
        continue;
      }
      int64_t n = piece.length;
      for (; n >= kLanes; n -= kLanes, from += kLanes, to += kLanes) store(to, load(from));
      if (n > 0) store(to, load_partial(from, n));
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
  block = ceil_div(all_panels, ceil_div(all_panels, block));  // blocks of equal width
  const int64_t panel_floats =
      depth * kTileColumns + 16;  // 16: vectors that reach over the end; other cache sets
  const int64_t block_floats = block * panel_floats;
  float* blocks = scratch.take<float>(workers * block_floats);
  Runs* runs = scratch.take<Runs>(workers * block);
  Piece* pieces = scratch.take<Piece>(workers * block * kTileColumns);
  if (!weights || !offsets || !blocks || !runs || !pieces || (s.copies && !padded)) return MYC_E_MEMORY;

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
          float* b = blocks + worker * block_floats;
          Runs* r = runs + worker * block;
          Piece* piece = pieces + worker * block * kTileColumns;
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
            int64_t piece_count = 0;
            for (int64_t i = 0; i < n; ++i) {
              next_panel(p, s, from + g * p.channels * source_plane, channels * source_plane, first, &at,
                         width - i * kTileColumns, &r[i]);
              int64_t to = i * panel_floats;
              for (int j = 0; j < r[i].count; to += r[i].length[j++])
                piece[piece_count++] = {r[i].from[j], to, r[i].length[j]};
            }
            if (width % kTileColumns) memset(b + (n - 1) * panel_floats, 0, panel_floats * sizeof(float));
            float* y = p.y + g * p.rows * p.out_plane();
            for (int64_t q = 0; q < k; q += depth) {
              const int64_t d = min(depth, k - q);
              gather(piece, piece_count, offsets + q, d, b);
              const auto multiply = [&](int64_t i, int64_t t) {
                const Runs& run = r[i];
                const int64_t row = panels.begin(t), height = panels.height(t);
                const float* a = weights + (g * p.rows + row) * k + q * height;
                const float* bias = p.bias ? p.bias + g * p.rows + row : nullptr;
                const TileStart start = q > 0 ? TileStart::add : bias ? TileStart::bias : TileStart::zero;
                float* to = y + row * p.out_plane();
                if (direct && run.columns == kTileColumns &&
                    run.to[kTileColumns - 1] - run.to[0] == kTileColumns - 1) {
                  tile_of(height)(d, a, b + i * panel_floats, to + run.to[0], p.out_plane(), start, bias);
                } else {
                  tile_of(height)(d, a, b + i * panel_floats, temporary, kTileColumns, TileStart::zero,
                                  nullptr);
                  scatter(temporary, height, run, to, p.out_plane(), start, bias);
                }
              };
              for (int64_t t = 0; t < panels.count; ++t)
                for (int64_t i = 0; i < n; ++i) multiply(i, t);
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
