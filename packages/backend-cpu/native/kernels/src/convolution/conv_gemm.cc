// Convolution and its input gradient as matrix products over gathered columns: weights [rows, k] times
// columns [k, positions of all images], k = channels x taps.  Columns are gathered panel by panel, never
// stored as a whole.
//
// The input gradient is a sum of strided scatters; seen from x it is, for each remainder of the position by
// the stride (a phase), a gathering convolution of dy with the taps that reach this remainder.
#include "convolution/conv_shape.h"
#include "convolution/conv_source.h"
#include "convolution/conv_tile.h"
#include "simd/transpose.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kDepth = 256;             // k of one pass: a B panel of 16 KB stays in L1 (AVX2)
constexpr int64_t kBlockFloats = 49152;     // gathered block of one worker: 256 KB of L2
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
  // Whole vectors are stored; the next column overwrites what is too much, so they end before the last
  // columns.
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

// The weights of group g as row panels: panel by panel, k by k, the panel's rows side by side.
// When rows of w are in the order of k (the convolution itself), a job is a panel.
bool has_rows_of_k(const Product& p, const GatherSource& s) {
  return p.by_channel == s.taps() && p.tap_by[0] == 1 && p.tap_by[1] == 1 && p.tap_by[2] == 1;
}
void pack_panel_rows(const Product& p, int64_t g, const RowPanels& panels, int64_t panel, int64_t k,
                     float* packed) {
  const int64_t row = panels.begin(panel);
  interleave(p.w + g * p.by_group + row * p.by_row, p.by_row, panels.height(panel), k,
             packed + (g * p.rows + row) * k);
}

// Otherwise a job is a channel: w is read in its own order and written to all panels in turn.
// `rows` is a constant where it is inlined for full panels.
MYC_INLINE void pack_taps(const Product& p, const GatherSource& s, int64_t rows, const float* w, float* to) {
  const int64_t by_row = p.by_row, step = p.tap_by[2], taps = s.axis[2].taps;
  for (int64_t a = 0; a < s.axis[0].taps; ++a) {
    for (int64_t b = 0; b < s.axis[1].taps; ++b) {
      const int64_t z = p.tap_first[0] + a * p.tap_by[0], y = p.tap_first[1] + b * p.tap_by[1];
      const float* from = w + (z * p.kernel[1] + y) * p.kernel[2] + p.tap_first[2];
      for (int64_t e = 0; e < taps; ++e, from += step, to += rows)
        for (int64_t i = 0; i < rows; ++i) to[i] = from[i * by_row];
    }
  }
}

void pack_channel(const Product& p, const GatherSource& s, int64_t g, const RowPanels& panels,
                  int64_t channel, int64_t k, float* packed) {
  const float* w = p.w + g * p.by_group + channel * p.by_channel;
  for (int64_t panel = 0; panel < panels.count; ++panel) {
    const int64_t row = panels.begin(panel), height = panels.height(panel);
    float* to = packed + (g * p.rows + row) * k + channel * s.taps() * height;
    if (height == kTileRows) {
      pack_taps(p, s, kTileRows, w + row * p.by_row, to);
    } else {
      pack_taps(p, s, height, w + row * p.by_row, to);
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

// One product as it runs: sizes, packed weights, and the buffers of all workers.
struct Job {
  const Product& p;
  const GatherSource& s;
  RowPanels panels;
  int64_t k;                            // channels x taps
  int64_t depth = 0;                    // of one pass
  int64_t source_plane = 0;             // elements of one channel as it is gathered
  int64_t block = 0, panel_floats = 0;  // panels of a block; floats from one to the next
  float* weights = nullptr;             // [group][row panel][k][row]
  int64_t* offsets = nullptr;           // [k] where (channel, tap) begins in the source
  float* blocks = nullptr;              // of each worker: [block][panel_floats]
  Runs* runs = nullptr;                 // of each worker: [block]
  Piece* pieces = nullptr;              // of each worker: [block * kTileColumns]
};

void list_offsets(const Job& job) {
  const GatherSource& s = job.s;
  int64_t* to = job.offsets;
  for (int64_t c = 0; c < job.p.channels; ++c)
    for (int64_t a = 0; a < s.axis[0].taps; ++a)
      for (int64_t b = 0; b < s.axis[1].taps; ++b)
        for (int64_t e = 0; e < s.axis[2].taps; ++e) *to++ = c * job.source_plane + s.tap_offset(a, b, e);
}

void pack_weights(const myc_call* call, const Job& job) {
  const Product& p = job.p;
  const int64_t count = job.panels.count;
  if (has_rows_of_k(p, job.s)) {
    parallel_rows(call, p.group * count, kTileRows * job.k * 16, [&](int64_t i) {
      pack_panel_rows(p, i / count, job.panels, i % count, job.k, job.weights);
    });
  } else {
    parallel_rows(call, p.group * p.channels, p.rows * job.s.taps() * 16, [&](int64_t i) {
      pack_channel(p, job.s, i / p.channels, job.panels, i % p.channels, job.k, job.weights);
    });
  }
}

// Results of group g for the positions [column, column + width), counted over the images from `first` on,
// whose source begins at `source`.
void multiply_block(const Job& job, int64_t g, int64_t first, int64_t column, int64_t width,
                    const float* source, float* block, Runs* runs, Piece* pieces) {
  const Product& p = job.p;
  const GatherSource& s = job.s;
  const int64_t plane = p.out_plane(), panels = ceil_div(width, int64_t{kTileColumns});
  Position at;
  int64_t rest = column, pieces_count = 0;
  at.x = rest % s.axis[2].positions, rest /= s.axis[2].positions;
  at.y = rest % s.axis[1].positions, rest /= s.axis[1].positions;
  at.z = rest % s.axis[0].positions, at.image = first + rest / s.axis[0].positions;
  for (int64_t i = 0; i < panels; ++i) {
    next_panel(p, s, source + g * p.channels * job.source_plane, p.group * p.channels * job.source_plane,
               first, &at, width - i * kTileColumns, &runs[i]);
    int64_t to = i * job.panel_floats;
    for (int r = 0; r < runs[i].count; to += runs[i].length[r++])
      pieces[pieces_count++] = {runs[i].from[r], to, runs[i].length[r]};
  }
  if (width % kTileColumns)
    memset(block + (panels - 1) * job.panel_floats, 0, job.panel_floats * sizeof(float));

  // Tiles may go straight to y when positions lie there as they are numbered.
  bool straight = true;
  for (int d = 0; d < 3; ++d) straight = straight && s.axis[d].positions == p.out[d];
  alignas(64) float result[kTileRows * kTileColumns];
  for (int64_t q = 0; q < job.k; q += job.depth) {
    const int64_t depth = min(job.depth, job.k - q);
    gather(pieces, pieces_count, job.offsets + q, depth, block);
    // Weights of a row panel stay in L1 while the block passes by.
    for (int64_t t = 0; t < job.panels.count; ++t) {
      const int64_t row = g * p.rows + job.panels.begin(t), height = job.panels.height(t);
      const float *a = job.weights + row * job.k + q * height, *bias = p.bias ? p.bias + row : nullptr;
      const TileStart start = q > 0 ? TileStart::add : bias ? TileStart::bias : TileStart::zero;
      const TileFn multiply = tile_of(height);
      float* y = p.y + row * plane;
      for (int64_t i = 0; i < panels; ++i) {
        const Runs& run = runs[i];
        const float* b = block + i * job.panel_floats;
        if (straight && run.columns == kTileColumns &&
            run.to[kTileColumns - 1] - run.to[0] == kTileColumns - 1) {
          multiply(depth, a, b, y + run.to[0], plane, start, bias);
        } else {
          multiply(depth, a, b, result, kTileColumns, TileStart::zero, nullptr);
          scatter(result, height, run, y, plane, start, bias);
        }
      }
    }
  }
}

// Without source channels only the bias is left.
void fill_with_bias(const Product& p) {
  float* y = p.y;
  for (int64_t i = 0; i < p.images; ++i)
    for (int64_t row = 0; row < p.group * p.rows; ++row)
      for (int64_t e = 0; e < p.out_plane(); ++e) *y++ = p.bias ? p.bias[row] : 0.0f;
}

// Cost: 2 images x group x rows x positions x k flops.
int32_t run_product(const myc_call* call, const Product& p, const GatherSource& s, const float* source) {
  const int64_t positions = s.positions(), k = p.channels * s.taps(), channels = p.group * p.channels;
  if (p.images == 0 || positions == 0 || p.rows == 0) return MYC_OK;
  if (k == 0) return fill_with_bias(p), MYC_OK;
  const int64_t in_plane = s.axis[0].in * s.axis[1].in * s.axis[2].in, workers = max_workers(call);
  const int64_t at_once =
      s.copies ? clamp(kSourceFloats / (channels * s.plane), int64_t{1}, p.images) : p.images;
  Job job = {p, s, RowPanels(p.rows), k};
  job.depth = ceil_div(k, ceil_div(k, kDepth));
  job.source_plane = s.copies ? s.plane : in_plane;
  // Panels of a block: enough to amortize streaming the weights, few enough for L2, and work for every
  // thread.
  const int64_t all_panels = ceil_div(at_once * positions, int64_t{kTileColumns});
  job.block = clamp(kBlockFloats / (job.depth * kTileColumns), int64_t{1}, all_panels);
  if (workers > 1) job.block = clamp(all_panels * p.group / (workers * 4), int64_t{1}, job.block);
  job.block = ceil_div(all_panels, ceil_div(all_panels, job.block));  // blocks of equal width
  // 16 more: for vectors that reach over a panel's end, and so that panels begin in different cache sets.
  job.panel_floats = job.depth * kTileColumns + 16;

  Scratch scratch(call);
  job.weights = scratch.take<float>(p.group * p.rows * k);
  job.offsets = scratch.take<int64_t>(k);
  job.blocks = scratch.take<float>(workers * job.block * job.panel_floats);
  job.runs = scratch.take<Runs>(workers * job.block);
  job.pieces = scratch.take<Piece>(workers * job.block * kTileColumns);
  float* padded = s.copies ? scratch.take<float>(at_once * channels * s.plane) : nullptr;
  if (!job.weights || !job.offsets || !job.blocks || !job.runs || !job.pieces || (s.copies && !padded))
    return MYC_E_MEMORY;
  list_offsets(job);
  pack_weights(call, job);

  for (int64_t first = 0; first < p.images; first += at_once) {
    const int64_t images = min(at_once, p.images - first), columns = images * positions;
    const float* from = source + first * channels * in_plane;
    if (s.copies) {
      parallel_rows(call, images * channels, s.plane * 8,
                    [&](int64_t i) { fill_plane(s, from + i * in_plane, padded + i * s.plane); });
      from = padded;
    }
    const int64_t width = job.block * kTileColumns, count = ceil_div(columns, width);
    const int64_t grain = kMinParallelWork / (8 * width * k * p.rows + 1) + 1;
    parallel_for_worker(call, count * p.group, grain, [&](int64_t begin, int64_t end, int32_t worker) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i % count * width;
        multiply_block(job, i / count, first, column, min(width, columns - column), from,
                       job.blocks + worker * job.block * job.panel_floats, job.runs + worker * job.block,
                       job.pieces + worker * job.block * kTileColumns);
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
