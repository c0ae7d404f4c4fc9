// Weight gradient: tiles of kernel elements x output channels, summed over all positions of all images.
//
// A tile's row is one (channel, tap): its values lie side by side in the padded source and are read in place.
// dy is transposed once into panels [position][kTileColumns of output channels].  The result is kept as
// [channel, tap][output channel] and turned around at the end.  Every tile has one owner, so that the sum's
// order, and with it the result, does not depend on the number of threads.
#include "convolution/conv_shape.h"
#include "convolution/conv_source.h"
#include "convolution/conv_tile.h"
#include "convolution/conv_transpose.h"
#include "gemm/steps.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kBlock = 256;  // positions of one pass: a panel of dy stays in L1 (16 KB on AVX2)
constexpr int64_t kImagesFloats = 1 << 21;  // padded images and dy panels at once: 8 MB each, of L3

// Positions side by side in the source.
struct Run {
  int64_t from, length;
};

// c[i][v] += sum over all positions of rows[i][position] * b[position][v].
template <int R, int V>
inline void sum_tile(const float* source, const int64_t* offset, const Run* runs, int64_t count,
                     const float* b, float* c, int64_t ldc) {
  f32v sum[R][V];
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < V; ++v) sum[i][v] = load(c + i * ldc + v * kLanes);
  const float* row[R];
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) row[i] = source + offset[i];
  for (int64_t r = 0; r < count; ++r) {
    const float* a[R];
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) a[i] = row[i] + runs[r].from;
    const int64_t n = runs[r].length;
#if MYC_STEPS
    if constexpr (has_steps(R, V)) {
      RowSteps x = {{}, b, n, reinterpret_cast<const char*>(b), 0, 0};
      for (int i = 0; i < 6; ++i) x.row[i] = a[min(i, R - 1)];
      add_steps(x, sum);
      b += n * kTileColumns;
      continue;
    }
#endif
    for (int64_t t = 0; t < n; ++t, b += kTileColumns) {
      f32v y[V];
      for (int v = 0; v < V; ++v) y[v] = load(b + v * kLanes);
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i)
        for (int v = 0; v < V; ++v) sum[i][v] += a[i][t] * y[v];
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < V; ++v) store(c + i * ldc + v * kLanes, sum[i][v]);
}

using SumTileFn = void (*)(const float*, const int64_t*, const Run*, int64_t, const float*, float*, int64_t);

template <int V>
SumTileFn sum_tile_of(int64_t rows) {
  switch (rows) {
    case 1: return sum_tile<1, V>;
    case 2: return sum_tile<2, V>;
    case 3: return sum_tile<3, V>;
    case 4: return sum_tile<4, V>;
    case 5: return sum_tile<5, V>;
#if defined(__AVX512F__) || defined(__aarch64__)
    case 6: return sum_tile<6, V>;
    case 7: return sum_tile<7, V>;
    case 8: return sum_tile<8, V>;
    case 9: return sum_tile<9, V>;
    case 10: return sum_tile<10, V>;
    case 11: return sum_tile<11, V>;
#endif
    default: return sum_tile<kTileRows, V>;
  }
}

// to[j * kTileColumns + i] = from[i * ld + j] for i < rows, zero for rows <= i < kTileColumns.
void transpose_rows(const float* from, int64_t ld, int64_t rows, int64_t columns, float* to) {
  f32v block[kLanes];
  for (int64_t i = 0; i < kTileColumns; i += kLanes) {
    int64_t j = 0;
    for (; j + kLanes <= columns; j += kLanes) {
      for (int e = 0; e < kLanes; ++e) block[e] = i + e < rows ? load(from + (i + e) * ld + j) : f32v{};
      transpose(block);
      for (int e = 0; e < kLanes; ++e) store(to + (j + e) * kTileColumns + i, block[e]);
    }
    for (; j < columns; ++j)
      for (int e = 0; e < kLanes; ++e)
        to[j * kTileColumns + i + e] = i + e < rows ? from[(i + e) * ld + j] : 0.0f;
  }
}

}  // namespace

// Cost: 2 n o positions k flops, k = channels of a group x taps.
int32_t conv_tiles_weight_grad(const myc_call* call, const ConvShape& s, const float* x, const float* dy,
                               float* dw) {
  const int64_t channels = s.group_c(), outputs = s.group_o(), k = channels * s.taps(),
                positions = s.out_plane();
  memset(dw, 0, s.o * k * sizeof(float));
  if (s.n == 0 || positions == 0 || s.o == 0 || k == 0) return MYC_OK;
  GatherAxis axis[3];
  for (int d = 0; d < 3; ++d)
    axis[d] = {s.in[d], s.out[d], s.stride[d], s.kernel[d], -s.pad[d], s.dilation[d]};
  const GatherSource source = gather_source(axis);
  const int64_t in_plane = s.in_plane(), plane = source.copies ? source.plane : in_plane;

  Scratch scratch(call);
  const int64_t o_panels = ceil_div(outputs, int64_t{kTileColumns}), width = o_panels * kTileColumns;
  const RowPanels panels(k);
  const int64_t image_floats = max(source.copies ? s.c * plane : 0, s.group * width * positions);
  const int64_t at_once = clamp(kImagesFloats / image_floats, int64_t{1}, s.n);
  float* padded = source.copies ? scratch.take<float>(at_once * s.c * plane) : nullptr;
  float* turned =
      scratch.take<float>(at_once * s.group * width * positions);  // [group][o panel][position][column]
  float* result = scratch.take<float>(s.group * k * width);        // [group][k][o]
  int64_t* offsets = scratch.take<int64_t>(k);
  Run* runs = scratch.take<Run>(at_once * positions);
  int64_t* block_runs = scratch.take<int64_t>(ceil_div(at_once * positions, kBlock) + 1);
  if ((source.copies && !padded) || !turned || !result || !offsets || !runs || !block_runs)
    return MYC_E_MEMORY;

  memset(result, 0, s.group * k * width * sizeof(float));
  for (int64_t c = 0, q = 0; c < channels; ++c)
    for (int64_t a = 0; a < s.kernel[0]; ++a)
      for (int64_t b = 0; b < s.kernel[1]; ++b)
        for (int64_t e = 0; e < s.kernel[2]; ++e) offsets[q++] = c * plane + source.tap_offset(a, b, e);

  for (int64_t first = 0; first < s.n; first += at_once) {
    const int64_t images = min(at_once, s.n - first), columns = images * positions;
    const float* from = x + first * s.c * in_plane;
    if (source.copies) {
      parallel_rows(call, images * s.c, plane * 8,
                    [&](int64_t i) { fill_plane(source, from + i * in_plane, padded + i * plane); });
    }
    const float* values = source.copies ? padded : from;
    // dy of (image, group, panel) into its place in [group][panel][image, position][column].
    parallel_rows(call, images * s.group * o_panels, positions * kTileColumns * 8, [&](int64_t i) {
      const int64_t panel = i % o_panels, g = i / o_panels % s.group, image = i / o_panels / s.group;
      const int64_t o = panel * kTileColumns, n = min<int64_t>(kTileColumns, outputs - o);
      float* to = turned + ((g * o_panels + panel) * columns + image * positions) * kTileColumns;
      transpose_rows(dy + ((first + image) * s.o + g * outputs + o) * positions, positions, n, positions, to);
    });
    // Runs of each block of positions, neighbours joined.
    const int64_t blocks = ceil_div(columns, kBlock);
    int64_t count = 0, room = 0, block = 0;
    for (int64_t image = 0; image < images; ++image)
      for (int64_t z = 0; z < s.out[0]; ++z)
        for (int64_t y = 0; y < s.out[1]; ++y)
          for (int64_t e = 0; e < s.out[2];) {
            if (room == 0) block_runs[block++] = count, room = kBlock;
            const int64_t n = min(room, s.out[2] - e),
                          at = image * s.c * plane + source.position_offset(z, y, e);
            if (count > block_runs[block - 1] && runs[count - 1].from + runs[count - 1].length == at)
              runs[count - 1].length += n;
            else
              runs[count++] = {at, n};
            e += n, room -= n;
          }
    block_runs[blocks] = count;

    const int64_t tile_work = 8 * kTileRows * width * columns;
    parallel_for(
        call, s.group * panels.count, kMinParallelWork / tile_work + 1, [&](int64_t begin, int64_t end) {
          while (begin < end) {
            const int64_t g = begin / panels.count, stop = min(end, (g + 1) * panels.count);
            for (int64_t b = 0; b < blocks; ++b) {
              const Run* r = runs + block_runs[b];
              for (int64_t o = 0; o < o_panels; ++o) {
                const float* y = turned + ((g * o_panels + o) * columns + b * kBlock) * kTileColumns;
                const bool narrow = outputs - o * kTileColumns <= kLanes;
                for (int64_t p = begin; p < stop; ++p) {
                  const int64_t row = panels.begin(p % panels.count),
                                height = panels.height(p % panels.count);
                  (narrow ? sum_tile_of<1>(height) : sum_tile_of<kTileVectors>(height))(
                      values + g * channels * plane, offsets + row, r, block_runs[b + 1] - block_runs[b], y,
                      result + (g * k + row) * width + o * kTileColumns, width);
                }
              }
            }
            begin = stop;
          }
        });
  }
  parallel_rows(call, s.group * o_panels, k * kTileColumns * 8, [&](int64_t i) {
    const int64_t g = i / o_panels, o = i % o_panels * kTileColumns,
                  n = min<int64_t>(kTileColumns, outputs - o);
    transpose_matrix(result + g * k * width + o, width, k, n, dw + (g * outputs + o) * k, k);
  });
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
