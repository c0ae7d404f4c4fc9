// Weight gradient of 3x3 convolutions by Winograd's F(3x3, 4x4), channels last: a tile of 4x4 positions of dy and the
// 6x6 pixels of x under it, both transformed to 6x6 points, are multiplied point by point: 36 instead of 144 products.
// dw = A' (sum over tiles of (B' x B) * (G dy G')) A at the points 0, 1, -1, 2, -2 and infinity (Lavin and Gray 2016).
//
// Tiles are taken in blocks: both sides are transformed into panels [point][tile], then every pair of panels is a
// register tile for each of the 36 points, summed over the block, and goes back through A when the block is the last.
//
// Sums over points mix the pixels of a tile: where large ones cancel, their rounding errors stay. How much cancels is
// measured on the way back; beyond the usual, or where something is not finite, the result is of no use.
#include "simd/magnitude.h"
#include "convolution/channels_last/sum.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int kPoints = 36;
constexpr int kSums = kTileRows * kTileColumns;  // of a register tile
constexpr int64_t kMostTiles = 144;              // of a block: a panel of dy and one of x stay in L2
constexpr int64_t kLeastTiles = 48;
constexpr int64_t kBlockFloats = 1 << 21;  // of all panels: 8 MB, of L3

// B' along one axis, values `from_step` and `to_step` vectors apart.
struct TransformX {
  template <int from_step, int to_step>
  MYC_INLINE static void along(const f32v* d, f32v* t) {
    const f32v d1 = d[from_step], d2 = d[2 * from_step], d3 = d[3 * from_step], d4 = d[4 * from_step];
    const f32v a = d4 - 4.0f * d2, b = d3 - 4.0f * d1, c = d4 - d2, e = 2.0f * (d3 - d1);
    t[0] = 4.0f * d[0] - 5.0f * d2 + d4;
    t[to_step] = a + b;
    t[2 * to_step] = a - b;
    t[3 * to_step] = c + e;
    t[4 * to_step] = c - e;
    t[5 * to_step] = 4.0f * d1 - 5.0f * d3 + d[5 * from_step];
  }
};

// G, whose factors are applied with A.
struct TransformDy {
  template <int from_step, int to_step>
  MYC_INLINE static void along(const f32v* g, f32v* t) {
    const f32v g0 = g[0], g1 = g[from_step], g2 = g[2 * from_step], g3 = g[3 * from_step];
    const f32v a = g0 + g2, b = g1 + g3, c = g0 + 4.0f * g2, d = 2.0f * g1 + 8.0f * g3;
    t[0] = g0;
    t[to_step] = a + b;
    t[2 * to_step] = a - b;
    t[3 * to_step] = c + d;
    t[4 * to_step] = c - d;
    t[5 * to_step] = g3;
  }
};

// So many times the largest result of a tap the sum of what was added for one may be. It is 3 to 140 where pixels are
// alike.
constexpr float kMostCancelled = 1024;

template <int from_step, int to_step>
MYC_INLINE void transform_sums(const f32v* m, f32v* y) {
  const f32v m1 = m[from_step], m2 = m[2 * from_step], m3 = m[3 * from_step], m4 = m[4 * from_step];
  const f32v a = (m1 + m2) * (-1.0f / 6), b = (m1 - m2) * (-1.0f / 6);
  const f32v c = (m3 + m4) * (1.0f / 24), d = (m3 - m4) * (1.0f / 24);
  y[0] = 0.25f * m[0] + a + c;
  y[to_step] = b + 2.0f * d;
  y[2 * to_step] = a + 4.0f * c + m[5 * from_step];
}

// What was added for results: the same with the largest magnitudes of all points, none of which cancel.
MYC_INLINE void transform_sizes(const float* m, int from, float* y, int to) {
  const float a = (m[from] + m[2 * from]) * (1.0f / 6), c = (m[3 * from] + m[4 * from]) * (1.0f / 24);
  y[0] = 0.25f * m[0] + a + c;
  y[to] = a + 2.0f * c;
  y[2 * to] = a + 4.0f * c + m[5 * from];
}

// The largest magnitudes of the results at each tap and of the sums at each point, lanes apart.
struct Sizes {
  i32v result[9], point[kPoints];

  void operator+=(const Sizes& other) {
    for (int q = 0; q < 9; ++q) result[q] = maximum(result[q], other.result[q]);
    for (int p = 0; p < kPoints; ++p) point[p] = maximum(point[p], other.point[p]);
  }
  bool little_cancelled() const {
    float points[kPoints], half[18], added[9];
    for (int p = 0; p < kPoints; ++p) points[p] = horizontal_max(from_bits(point[p]));
    for (int j = 0; j < 6; ++j) transform_sizes(points + j, 6, half + j, 6);
    for (int j = 0; j < 3; ++j) transform_sizes(half + 6 * j, 1, added + 3 * j, 1);
    for (int q = 0; q < 9; ++q)
      if (!(added[q] < INFINITY && added[q] <= kMostCancelled * horizontal_max(from_bits(result[q])))) return false;
    return true;
  }
};

struct Tiles {
  int64_t rows, columns, count;
  explicit Tiles(const ConvLast& s)
      : rows(ceil_div(s.out[0], int64_t{4})), columns(ceil_div(s.out[1], int64_t{4})), count(s.n * rows * columns) {}
};

// N x N pixels of an image [height, width, channels] from (top, left) on; `zeros` stands for those outside.
template <int N>
struct Patch {
  const float* pixel[N][N];
  Patch(const float* image, const float* zeros, const int64_t (&size)[2], int64_t channels, int64_t top, int64_t left) {
    for (int64_t i = 0; i < N; ++i)
      for (int64_t j = 0; j < N; ++j) {
        const int64_t y = top + i, x = left + j;
        const bool inside = y >= 0 && y < size[0] && x >= 0 && x < size[1];
        pixel[i][j] = inside ? image + (y * size[1] + x) * channels : zeros;
      }
  }
};

// Both axes of a patch, channels [c, c + lanes): to(point, vector).
template <class Transform, bool kWhole, int N, class To>
MYC_INLINE void transform(const Patch<N>& patch, int64_t c, int64_t lanes, const To& to) {
  f32v half[6 * N];
#pragma GCC unroll 6
  for (int j = 0; j < N; ++j) {
    f32v d[N];
#pragma GCC unroll 6
    for (int i = 0; i < N; ++i) {
      const float* p = patch.pixel[i][j] + c;
      d[i] = kWhole ? load(p) : load_partial(p, lanes);
    }
    Transform::template along<1, N>(d, half + j);
  }
#pragma GCC unroll 6
  for (int j = 0; j < 6; ++j) {
    f32v t[6];
    Transform::template along<1, 1>(half + N * j, t);
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) to(6 * j + i, t[i]);
  }
}

// Panels of one side: element (point, tile) of panel i at i * panel + point * line + tile * width.
struct Side {
  int64_t count, width, line, panel;
  Side(int64_t count, int64_t width, int64_t tiles)
      : count(count), width(width), line(panel_stride(tiles * width + kCopies * kLanes)), panel(kPoints * line) {}
};

// Lanes behind a panel's channels are written too: the next tile's, which come later.  Not by the last tile of a
// thread's range: the next one belongs to another thread.
void pack_x(const ConvLast& s, const Side& side, const RowPanels& panels, const float* x, const float* zeros,
            int64_t image, int64_t row, int64_t column, bool last, float* to) {
  const Patch<6> patch(x + image * s.in[0] * s.in[1] * s.c, zeros, s.in, s.c, row * 4 - s.pad[0],
                       column * 4 - s.pad[1]);
  for (int64_t i = 0; i < side.count; ++i)
    for (int64_t c = panels.begin(i), end = panels.begin(i + 1); c < end; c += kLanes) {
      float* at = to + i * side.panel + c - panels.begin(i);
      const auto put = [&](int p, f32v v) __attribute__((always_inline)) {
        if (last && end - c < kLanes) {
          store_partial(at + p * side.line, v, end - c);
        } else {
          store(at + p * side.line, v);
        }
      };
      if (s.c - c >= kLanes) {
        transform<TransformX, true>(patch, c, kLanes, put);
      } else {
        transform<TransformX, false>(patch, c, s.c - c, put);
      }
    }
}

void pack_dy(const ConvLast& s, const Side& side, const float* dy, const float* zeros, int64_t image, int64_t row,
             int64_t column, float* to) {
  const Patch<4> patch(dy + image * s.out[0] * s.out[1] * s.o, zeros, s.out, s.o, row * 4, column * 4);
  for (int64_t c = 0; c < side.count * kTileColumns; c += kLanes) {
    float* at = to + c / kTileColumns * side.panel + c % kTileColumns;
    const auto put = [&](int p, f32v v) __attribute__((always_inline)) { store(at + p * side.line, v); };
    if (s.o - c >= kLanes) {
      transform<TransformDy, true>(patch, c, kLanes, put);
    } else {
      transform<TransformDy, false>(patch, c, max<int64_t>(s.o - c, 0), put);
    }
  }
}

// dw of `channels` channels and `outputs` outputs from the sums of their panels.
void finish(const float* sums, int64_t channels, int64_t outputs, float* dw, int64_t k, Sizes& sizes) {
  float rows[kTileRows * 9 * kTileColumns];
  for (int64_t i = 0; i < channels; ++i)
    for (int v = 0; v < kTileVectors && v * kLanes < outputs; ++v) {
      f32v m[kPoints], half[18], y[9];
      for (int p = 0; p < kPoints; ++p) m[p] = load(sums + p * kSums + i * kTileColumns + v * kLanes);
      for (int j = 0; j < 6; ++j) transform_sums<6, 6>(m + j, half + j);
      for (int j = 0; j < 3; ++j) transform_sums<1, 1>(half + 6 * j, y + 3 * j);
      for (int q = 0; q < 9; ++q) store(rows + (i * 9 + q) * kTileColumns + v * kLanes, y[q]);
      for (int p = 0; p < kPoints; ++p) sizes.point[p] = maximum(sizes.point[p], bits(abs(m[p])));
      for (int q = 0; q < 9; ++q) sizes.result[q] = maximum(sizes.result[q], bits(abs(y[q])));
    }
  store_turned(channels * 9, outputs, dw, k, [&](int64_t q, int64_t o) { return load(rows + q * kTileColumns + o); });
}

}  // namespace

bool winograd_weight_grad_pays(const ConvLast& s) {
  // Tiles that hang over the edge, and the transforms, must not eat what the products save.
  const int64_t tiles = Tiles(s).count, positions = s.n * s.out[0] * s.out[1];
  return min(s.c, s.o) >= 16 && tiles >= 16 && tiles * 16 <= 2 * positions;
}

int32_t winograd_weight_grad(const myc_call* call, const ConvLast& s, const float* x, const float* dy, float* dw,
                             bool& done) {
  const Tiles tiles(s);
  const RowPanels panels(s.c);
  const int64_t y_panels = ceil_div(s.o, int64_t{kTileColumns}), pairs = panels.count * y_panels;
  const int64_t most = clamp(kBlockFloats / (kPoints * (s.c + s.o)), kLeastTiles, kMostTiles);
  const int64_t blocks = ceil_div(tiles.count, most), each = ceil_div(tiles.count, blocks);
  const Side xs(panels.count, kTileRows, each), ys(y_panels, kTileColumns, each);
  Scratch scratch(call);
  float* x_points = scratch.take<float>(xs.count * xs.panel);
  float* y_points = scratch.take<float>(ys.count * ys.panel);
  float* sums = scratch.take<float>((blocks > 1 ? pairs : max_workers(call)) * kPoints * kSums);
  float* zeros = scratch.take<float>(max(s.c, ys.count * kTileColumns));
  Sizes* sizes = scratch.take<Sizes>(max_workers(call));
  if (!x_points || !y_points || !sums || !zeros || !sizes) return MYC_E_MEMORY;
  memset(sizes, 0, max_workers(call) * sizeof(Sizes));
  memset(zeros, 0, max(s.c, ys.count * kTileColumns) * sizeof(float));

  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = block * each, count = min(each, tiles.count - first);
    // Neighbouring tiles share cache lines of the panels: ranges of a thread are long.
    parallel_for(call, count, max(int64_t{8}, kMinParallelWork / (600 * (s.c + s.o))),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t t = begin; t < end; ++t) {
                     const int64_t tile = first + t, column = tile % tiles.columns,
                                   row = tile / tiles.columns % tiles.rows, image = tile / tiles.columns / tiles.rows;
                     pack_x(s, xs, panels, x, zeros, image, row, column, t + 1 == end, x_points + t * xs.width);
                     pack_dy(s, ys, dy, zeros, image, row, column, y_points + t * ys.width);
                   }
                 });
    const int64_t run = 0;
    const int64_t work = 8 * kPoints * kSums * count;
    parallel_for_worker(call, pairs, kMinParallelWork / work + 1, [&](int64_t begin, int64_t end, int32_t worker) {
      for (int64_t pair = begin; pair < end; ++pair) {
        const int64_t i = pair % panels.count, o = pair / panels.count, outputs = s.o - o * kTileColumns;
        float* c = sums + (blocks > 1 ? pair : worker) * kPoints * kSums;
        const int64_t height = panels.height(i);
        const SumTile tile = outputs <= kLanes ? sum_tile_of<1>(height) : sum_tile_of<kTileVectors>(height);
        for (int p = 0; p < kPoints; ++p)
          tile(x_points + i * xs.panel + p * xs.line, &run, 1, count, xs.width, y_points + o * ys.panel + p * ys.line,
               c + p * kSums, block > 0);
        if (block + 1 == blocks)
          finish(c, height, min<int64_t>(kTileColumns, outputs),
                 dw + (o * kTileColumns * s.c + panels.begin(i)) * 9, s.c * 9, sizes[worker]);
      }
    });
  }
  for (int32_t worker = 1; worker < max_workers(call); ++worker) sizes[0] += sizes[worker];
  done = sizes[0].little_cancelled();
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
