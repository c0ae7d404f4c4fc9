// 3x3 convolution by Winograd's F(2x2, 3x3), F(4x4, 3x3) and F(6x6, 3x3), channels last.
//
// A set of tiles at a time: transform the input (V), multiply each of the 16, 36 or 64 elements of a tile by its
// own matrix [c, o] (M), transform back and finish.  V of a set stays in the second- or third-level cache, M
// of some panels of output channels in the second.  Flops: 16 / 36 (36 / 144, 64 / 324) of the direct convolution's
// in the products, and about 4 (7, 10) a channel and element of V and M in the transforms.
//
// Tiles whose pixels must not be mixed (magnitude.h) are left to the direct form, whose weights the pack holds too, or which
// are packed when there is such a tile.
#include "convolution/channels_last/winograd.h"

#include <algorithm>

#include "convolution/channels_last/conv_last.h"
#include "gemm/rows.h"
#include "gemm/pack.h"
#include "simd/magnitude.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kSetFloats = 192 * 1024;     // of V
constexpr int64_t kProductFloats = 64 * 1024;  // of M
constexpr int64_t kSharedFloats = 320 * 1024;  // of weights that threads do not divide
constexpr int64_t kSkew =
    16;  // floats between the planes of V and M: planes a power of two apart would share cache sets

template <int m>
struct Tiling {
  static constexpr int kTile = m + 2, kPlanes = kTile * kTile;
  static constexpr int kReach = (m + kLanes - 1) / kLanes * kLanes;  // columns that whole vectors cover

  const ConvLast& s;
  const float* x;
  const float* packed;
  const float* direct;  // the direct form's pack, null: it is made of
  const float* rows;    // [o, 9 * c]
  int32_t limit;        // the largest magnitude that cannot overflow with these weights
  const ConvEpilogue& e;
  float* y;
  int64_t high, wide, tiles;  // tiles of an image; of all images
  int64_t sets, set;          // of tiles, nearly equal; the most tiles of one
  int64_t width;              // floats of a row of V
  int64_t v_plane, m_plane;
  int64_t blocks, group;  // column blocks, and how many of them at a time
  int64_t size_line;      // of a line of magnitudes
  bool shares_sets;       // threads do

  // Neither `out` nor the channels are empty.
  Tiling(const ConvLast& shape, const float* x_, const float* packed_, const myc_tensor* given,
         const ConvEpilogue& e_, float* y_, int64_t workers)
      : s(shape), x(x_), packed(packed_), e(e_), y(y_) {
    high = ceil_div(s.out[0], m), wide = ceil_div(s.out[1], m), tiles = s.n * high * wide;
    width = round_up(s.c, kLanes);
    const int64_t most = max<int64_t>(2 * kCutRows, kSetFloats / (kPlanes * width + 1));
    sets = ceil_div(tiles, most);
    shares_sets = workers > 1 && kPlanes * s.c * s.o <= kSharedFloats && tiles >= workers * 2 * kCutRows;
    if (shares_sets) sets = round_up(sets, workers);
    set = ceil_div(tiles, sets);
    v_plane = set * width + kSkew;
    blocks = ceil_div(s.o, kTileColumns);
    const int64_t fits = max<int64_t>(1, kProductFloats / (kPlanes * set * kTileColumns));
    group = ceil_div(blocks, ceil_div(blocks, fits));
    size_line = wide * m + 2 + kReach;
    const int64_t plane = ceil_div(s.o, kPackedColumns) * s.c * kPackedColumns;
    const float* end = packed + kPlanes * plane;
    const float* weights = given ? static_cast<const float*>(given->data) : end;
    const bool as_rows = given && given->rank == 2;
    direct = as_rows ? nullptr : weights;
    rows = as_rows ? weights : nullptr;
    limit = magnitude_bits(end[given ? 0 : 9 * plane]);
    m_plane = set * group * kTileColumns + kSkew;
  }

  struct Place {
    int64_t image, row, col;  // of the tile's first output
  };
  Place place(int64_t tile) const {
    const int64_t in_image = tile % (high * wide);
    return {tile / (high * wide), in_image / wide * m, in_image % wide * m};
  }

  // Lines of x, counted through all images, up to the last one that `tile` needs.
  int64_t lines_until(int64_t tile) const {
    const Place p = place(tile);
    return p.image * s.in[0] + clamp<int64_t>(p.row - s.pad[0] + kTile, 0, s.in[0]);
  }

  // Magnitudes of one line of x, with zeros around them for the padding and for what a vector reads too much.
  void measure(int64_t line, int32_t* size) const {
    int32_t* to = size + (1 + line) * size_line;
    memset(to, 0, size_line * sizeof(int32_t));
    magnitudes(x + line * s.in[1] * s.c, s.in[1], s.c, to + s.pad[1]);
  }

  // Whether the tile's pixels may be mixed. `size`: a line of zeros, then the magnitudes of each line.
  bool has_similar_magnitude(int64_t tile, const int32_t* size) const {
    const Place p = place(tile);
    const int64_t rows = min<int64_t>(m, s.out[0] - p.row), cols = min<int64_t>(m, s.out[1] - p.col);
    int32_t most[kReach], least[kReach];  // of the windows of a column of results
    for (int j = 0; j < m; j += kLanes) {
      i32v window[kTile];
      for (int64_t a = 0, row = p.row - s.pad[0]; a < kTile; ++a, ++row) {
        const int64_t line = row < 0 || row >= s.in[0] ? 0 : 1 + p.image * s.in[0] + row;
        const int32_t* from = size + line * size_line + p.col + j;
        window[a] = maximum(maximum(load(from), load(from + 1)), load(from + 2));
      }
      i32v top{}, bottom = splat(INT32_MAX);
      for (int64_t a = 0; a < rows; ++a) {
        const i32v largest = maximum(maximum(window[a], window[a + 1]), window[a + 2]);
        top = maximum(top, largest), bottom = minimum(bottom, largest);
      }
      store(most + j, top), store(least + j, bottom);
    }
    for (int64_t j = 1; j < cols; ++j) most[0] = max(most[0], most[j]), least[0] = min(least[0], least[j]);
    return most[0] <= limit && magnitude_of(most[0]) <= kKindredPixels * magnitude_of(least[0]);
  }

  // V of one tile: [plane][...][channel].
  void transform_input(int64_t tile, float* v) const {
    const Place p = place(tile);
    const int64_t row0 = p.row - s.pad[0], col0 = p.col - s.pad[1];
    const float* from = x + ((p.image * s.in[0] + row0) * s.in[1] + col0) * s.c;
    const int64_t row_step = s.in[1] * s.c;
    // Elements inside of the image.
    const int64_t top = clamp<int64_t>(-row0, 0, kTile), bottom = clamp<int64_t>(s.in[0] - row0, 0, kTile);
    const int64_t left = clamp<int64_t>(-col0, 0, kTile), right = clamp<int64_t>(s.in[1] - col0, 0, kTile);
    const bool inside = top == 0 && bottom == kTile && left == 0 && right == kTile;
    for (int64_t i = 0; i < s.c; i += kLanes) {
      const int64_t lanes = s.c - i;
      f32v d[kPlanes], t[kPlanes];
      if (inside && lanes >= kLanes) {
#pragma GCC unroll 8
        for (int a = 0; a < kTile; ++a) {
#pragma GCC unroll 8
          for (int b = 0; b < kTile; ++b) d[a * kTile + b] = load(from + a * row_step + b * s.c + i);
        }
      } else {
        for (int a = 0; a < kTile; ++a) {
          for (int b = 0; b < kTile; ++b) {
            const float* at = from + a * row_step + b * s.c + i;
            d[a * kTile + b] = a < top || a >= bottom || b < left || b >= right ? f32v{}
                               : lanes >= kLanes                                ? load(at)
                                                                                : load_partial(at, lanes);
          }
        }
      }
#pragma GCC unroll 8
      for (int b = 0; b < kTile; ++b) Filtering<m>::input(d + b, kTile, t + b, kTile);
#pragma GCC unroll 8
      for (int a = 0; a < kTile; ++a) {
        f32v o[kTile];
        Filtering<m>::input(t + a * kTile, 1, o, 1);
#pragma GCC unroll 8
        for (int b = 0; b < kTile; ++b) store(v + (a * kTile + b) * v_plane + i, o[b]);
      }
    }
  }

  // Products of `count` tiles with column blocks [begin, end).
  void multiply(const float* v, int64_t count, int64_t begin, int64_t end, float* product) const {
    const int64_t panel = s.c * kPackedColumns, plane = ceil_div(s.o, kPackedColumns) * panel;
    const int64_t ld = (end - begin) * kTileColumns;
    const Run run = {0, 0, s.c};
    int64_t v_row[kTileRows], row[kTileRows];
    for (int i = 0; i < kTileRows; ++i) v_row[i] = i * width, row[i] = i * ld;
    for (int k = 0; k < kPlanes; ++k) {
      for (int64_t q = begin; q < end; ++q) {
        PackedBlock b = packed_block(packed + k * plane, panel, q, s.o);
        b.columns =
            min<int64_t>(kTileColumns, round_up(s.o, kPackedColumns) - q * kTileColumns);  // M has room
        const bool turn = q + 1 == end;
        const PackedBlock next =
            packed_block(packed + (turn && k + 1 < kPlanes ? k + 1 : k) * plane, panel, turn ? begin : q + 1, s.o);
        const RowList rows = {
            v + k * v_plane, product + k * m_plane + (q - begin) * kTileColumns, v_row, row, width, ld};
        multiply_rows(count, rows, &run, 1, b, Finish{}, {next.b, panel});
      }
    }
  }

  // Results of one tile in columns [first, last) from M: [plane][...][column].
  void transform_output(int64_t tile, const float* product, int64_t first, int64_t last) const {
    const Place p = place(tile);
    const int64_t rows = min<int64_t>(m, s.out[0] - p.row), cols = min<int64_t>(m, s.out[1] - p.col);
    const int64_t offset = ((p.image * s.out[0] + p.row) * s.out[1] + p.col) * s.y_pixel;
    for (int64_t j = first; j < last; j += kLanes) {
      const int64_t lanes = min<int64_t>(kLanes, last - j);
      f32v d[kPlanes], t[m * kTile];
#pragma GCC unroll 64
      for (int k = 0; k < kPlanes; ++k) d[k] = load(product + k * m_plane + j - first);
#pragma GCC unroll 8
      for (int b = 0; b < kTile; ++b) Filtering<m>::output(d + b, kTile, t + b, kTile);
      const f32v bias = e.bias ? load_partial(e.bias + j, lanes) : f32v{};
      for (int64_t a = 0; a < rows; ++a) {
        f32v o[m];
        Filtering<m>::output(t + a * kTile, 1, o, 1);
        const int64_t at = offset + a * s.out[1] * s.y_pixel + j;
        const auto finish = [&](bool whole) __attribute__((always_inline)) {
#pragma GCC unroll 6
          for (int b = 0; b < m; ++b) {
            if (b >= cols) break;
            f32v r = o[b] + bias;
            if (e.residual) {
              const float* res = e.residual + at + b * s.y_pixel;
              r += whole ? load(res) : load_partial(res, lanes);
            }
            r = activate(r, e.activation);
            if (whole) {
              store(y + at + b * s.y_pixel, r);
            } else {
              store_partial(y + at + b * s.y_pixel, r, lanes);
            }
          }
        };
        if (lanes == kLanes) {
          finish(true);
        } else {
          finish(false);
        }
      }
    }
  }

  // Column blocks [begin, end) of the results of tiles [first, first + count).
  void finish(int64_t first, int64_t count, const bool* plain, int64_t begin, int64_t end, const float* v,
              float* product) const {
    for (int64_t q = begin; q < end; q += group) {
      const int64_t stop = min(end, q + group), ld = (stop - q) * kTileColumns;
      multiply(v, count, q, stop, product);
      for (int64_t t = 0; t < count; ++t) {
        if (plain[first + t]) continue;
        transform_output(first + t, product + t * ld, q * kTileColumns, min(s.o, stop * kTileColumns));
      }
    }
  }

  // V of a tile, if its pixels may be mixed.
  void begin(int64_t tile, const int32_t* size, bool* plain, float* v) const {
    plain[tile] = !has_similar_magnitude(tile, size);
    if (!plain[tile]) transform_input(tile, v);
  }

  int64_t first_of(int64_t i) const { return tiles * i / sets; }

  static bool all(const bool* plain, int64_t count) {
    return std::all_of(plain, plain + count, [](bool p) { return p; });
  }

  // Threads share the sets, each with V of its own: for weights that stay in the cache of each.
  int32_t run_sets(const myc_call* call) const {
    Scratch scratch(call);
    const int64_t v_floats = kPlanes * v_plane, m_floats = kPlanes * m_plane;
    float* memory = scratch.take<float>((v_floats + m_floats) * max_workers(call));
    int32_t* size = scratch.take<int32_t>((1 + s.n * s.in[0]) * size_line);
    bool* plain = scratch.take<bool>(tiles);
    if (!memory || !size || !plain) return MYC_E_MEMORY;
    memset(size, 0, size_line * sizeof(int32_t));
    parallel_rows(call, s.n * s.in[0], s.in[1] * s.c * 4, [&](int64_t i) { measure(i, size); });
    parallel_for_worker(call, sets, 1, [&](int64_t from, int64_t to, int32_t worker) {
      float* v = memory + worker * (v_floats + m_floats);
      for (int64_t i = from; i < to; ++i) {
        const int64_t first = first_of(i), count = first_of(i + 1) - first;
        for (int64_t t = 0; t < count; ++t) begin(first + t, size, plain, v + t * width);
        if (!all(plain + first, count)) finish(first, count, plain, 0, blocks, v, v + v_floats);
      }
    });
    return run_plain(call, plain);
  }

  // Threads share the columns of each set, and so the weights.
  int32_t run_columns(const myc_call* call) const {
    Scratch scratch(call);
    float* v = scratch.take<float>(kPlanes * v_plane);
    float* products = scratch.take<float>(kPlanes * m_plane * max_workers(call));
    int32_t* size = scratch.take<int32_t>((1 + s.n * s.in[0]) * size_line);
    bool* plain = scratch.take<bool>(tiles);
    if (!v || !products || !size || !plain) return MYC_E_MEMORY;
    memset(size, 0, size_line * sizeof(int32_t));
    for (int64_t i = 0, seen = 0; i < sets; ++i) {
      const int64_t first = first_of(i), count = first_of(i + 1) - first, lines = lines_until(first + count - 1);
      parallel_rows(call, lines - seen, s.in[1] * s.c * 4, [&](int64_t j) { measure(seen + j, size); });
      seen = lines;
      parallel_rows(call, count, kPlanes * width * 8, [&](int64_t t) { begin(first + t, size, plain, v + t * width); });
      if (all(plain + first, count)) continue;
      // A share is one column block or more; where it is cut does not change a result.
      const int64_t work = kPlanes * count * s.c * kTileColumns;
      parallel_for_worker(call, blocks, (int64_t{1} << 20) / (work + 1) + 1,
                          [&](int64_t from, int64_t to, int32_t worker) {
                            finish(first, count, plain, from, to, v, products + worker * kPlanes * m_plane);
                          });
    }
    return run_plain(call, plain);
  }

  int32_t run(const myc_call* call) const { return shares_sets ? run_sets(call) : run_columns(call); }

  // The direct form's pack of the rows; null without memory.
  const float* packed_rows(const myc_call* call, Scratch& scratch) const {
    const int64_t length = 9 * s.c;
    float* to = scratch.take<float>(round_up(s.o, kPackedColumns) * length);
    if (!to) return nullptr;
    parallel_rows(call, ceil_div(s.o, kPackedColumns), length * kPackedColumns * 8, [&](int64_t p) {
      const int64_t j = p * kPackedColumns;
      pack_transposed<kPackedColumns, kPackedColumns>(rows + j * length, length, min(kPackedColumns, s.o - j), length, to + j * length);
    });
    return to;
  }

  // Tiles that were left out, those side by side at once.
  int32_t run_plain(const myc_call* call, const bool* plain) const {
    if (std::none_of(plain, plain + tiles, [](bool p) { return p; })) return MYC_OK;
    Scratch scratch(call);
    const float* panels = direct ? direct : packed_rows(call, scratch);
    if (!panels) return MYC_E_MEMORY;
    for (int64_t tile = 0, end; tile < tiles; tile = end) {
      end = tile + 1;
      if (!plain[tile]) continue;
      while (end % wide != 0 && plain[end]) ++end;
      const Place p = place(tile);
      const ConvPart part = {p.image, {p.row, p.col}, {min<int64_t>(m, s.out[0] - p.row),
                                                       min((end - tile) * m, s.out[1] - p.col)}};
      const int32_t status = conv_last_direct_part(call, kTileLoops, s, part, x, panels, e, y);
      if (status != MYC_OK) return status;
    }
    return MYC_OK;
  }
};

// One panel [channel][16] in each of the planes, from the same panel [9][channel][16].  Planes lie a power of
// two apart as a rule, where lines written in turn would evict each other: a few channels at a time are
// gathered first.
template <int m>
void transform_taps(const float* direct, int64_t depth, float* to, int64_t plane) {
  constexpr int kTile = m + 2, kPlanes = kTile * kTile;
  constexpr int64_t kPiece = 8 * kPackedColumns;
  float gathered[kPlanes * kPiece];
  for (int64_t begin = 0; begin < depth * kPackedColumns; begin += kPiece) {
    const int64_t length = min(kPiece, depth * kPackedColumns - begin);
    for (int64_t i = 0; i < length; i += kLanes) {
      f32v g[9], t[kTile * 3];
#pragma GCC unroll 9
      for (int k = 0; k < 9; ++k) g[k] = load(direct + k * depth * kPackedColumns + begin + i);
#pragma GCC unroll 3
      for (int b = 0; b < 3; ++b) Filtering<m>::taps(g + b, 3, t + b, 3);
#pragma GCC unroll 8
      for (int a = 0; a < kTile; ++a) {
        f32v o[kTile];
        Filtering<m>::taps(t + a * 3, 1, o, 1);
#pragma GCC unroll 8
        for (int b = 0; b < kTile; ++b) store(gathered + (a * kTile + b) * kPiece + i, o[b]);
      }
    }
    for (int64_t k = 0; k < kPlanes; ++k) {
      memcpy(to + k * plane + begin, gathered + k * kPiece, static_cast<size_t>(length) * sizeof(float));
    }
  }
}

}  // namespace

KERNEL_PART(conv_winograd)(const myc_call* call, const ConvLast& s, int size, const float* x, const float* packed,
                           const myc_tensor* direct, const ConvEpilogue& e, float* y) {
  if (s.n == 0 || s.out[0] == 0 || s.out[1] == 0 || s.o == 0) return MYC_OK;
  switch (size) {
    case 2: return Tiling<2>(s, x, packed, direct, e, y, max_workers(call)).run(call);
    case 4: return Tiling<4>(s, x, packed, direct, e, y, max_workers(call)).run(call);
    default: return Tiling<6>(s, x, packed, direct, e, y, max_workers(call)).run(call);
  }
}

KERNEL_PART(winograd_taps)(int size, const float* direct, int64_t depth, float* to, int64_t plane) {
  switch (size) {
    case 2: transform_taps<2>(direct, depth, to, plane); break;
    case 4: transform_taps<4>(direct, depth, to, plane); break;
    default: transform_taps<6>(direct, depth, to, plane); break;
  }
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
