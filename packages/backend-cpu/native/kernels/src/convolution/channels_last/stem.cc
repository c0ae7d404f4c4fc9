// Convolution of images with few channels, given as planes, to channels last: what networks begin with.
//
// For one element of k the pixels of a tile are neighbours in a row of a plane, or in every second column of one. The rows
// under a row of y are copied with their padding, a row for each phase of the stride, into a ring, and tiles find the first
// pixel of every element of k by a pointer: no image is turned, and runs along k are as long as k, however small the kernel.
// Flops: 2 n out_h out_w taps c o, of tiles that overlap twice. Bytes: x and y once; copied rows and the weights lie in the
// first-level cache.
#include "convolution/channels_last/depthwise.h"
#include "gemm/rows.h"

namespace mycelia::MYC_ISA {

#if MYC_VECTOR_BYTES == 64
namespace {

constexpr int kTall = 12, kShort = 8;  // pixels of a tile: two heights fill most rows; those of one vector are short
constexpr int64_t kMostTaps = 256;     // of k
constexpr int64_t kAhead = 512;        // floats

// `kPixels` neighbouring pixels, kVectors * 16 columns, of which `columns` are written. at[i] + first: the first pixel's for
// element i of k.
template <int kPixels, int kVectors>
__attribute__((noinline)) void stem_tile(int64_t k, const float* const* at, int64_t first, const float* b, int64_t b_vector,
                                         const float* bias, float* y, int64_t y_pixel, int64_t columns, f32v low, f32v high) {
  for (int i = 0; i < kPixels; ++i) {
    __builtin_prefetch(y + i * y_pixel, 1);
    if (kVectors > 1) __builtin_prefetch(y + i * y_pixel + kLanes, 1);
  }
  f32v sum[kPixels][kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const int64_t lanes = min<int64_t>(columns - v * kLanes, kLanes);
    const f32v start = bias ? load_partial(bias + v * kLanes, lanes) : f32v{};
#pragma GCC unroll 12
    for (int i = 0; i < kPixels; ++i) sum[i][v] = start;
  }
  for (int64_t q = 0; q < k; ++q, b += kPackedColumns) {
    const float* pixels = at[q] + first;
    in_register(pixels);
    f32v w[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) w[v] = load(b + v * b_vector);
#pragma GCC unroll 12
    for (int i = 0; i < kPixels; ++i) {
      const f32v pixel = splat(pixels[i]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] = fma(pixel, w[v], sum[i][v]);
    }
  }
  const int64_t last = columns - (kVectors - 1) * kLanes;
  float* to = y;
#pragma GCC unroll 12
  for (int i = 0; i < kPixels; ++i, to += y_pixel) {
    in_register(to);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const f32v result = clip(sum[i][v], low, high);
      v + 1 < kVectors ? store(to + v * kLanes, result) : store_partial(to + v * kLanes, result, last);
    }
  }
}

// Even and odd elements of 32.
MYC_INLINE void halves(f32v a, f32v b, float* even, float* odd) {
  store(even, __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30));
  store(odd, __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31));
}

// Rows of planes as tiles read them. A row has `stride` phases of `length` floats: phase p has the columns p, p + stride, ...
// counted from the padding on.
struct PhaseRows {
  int64_t stride, pad, columns, length;

  int64_t floats() const { return stride * length; }

  // What comes behind it in memory is fetched meanwhile.
  __attribute__((noinline)) void fill(const float* row, float* to) const {
    const int64_t step = stride * kLanes, first = ceil_div(pad, stride);
    for (int64_t j = 0; j < first; ++j) to[j] = to[floats() - length + j] = 0;
    if (first * stride > pad) to[length + first - 1] = row[0];
    int64_t at = first * stride - pad;
    for (int64_t j = first; j + kLanes <= length; j += kLanes, at += step) {
      __builtin_prefetch(row + at + kAhead), __builtin_prefetch(row + at + kAhead + kLanes);
      const f32v a = part(row + at, columns - at), b = part(row + at + kLanes, columns - at - kLanes);
      if (stride == 1) {
        store(to + j, a);
      } else {
        halves(a, b, to + j, to + length + j);
      }
    }
  }

  // The next elements of a row that has `left`, zeros behind them.
  static MYC_INLINE f32v part(const float* p, int64_t left) { return load_partial(p, clamp<int64_t>(left, 0, kLanes)); }
};

// How many tall tiles a row of so many pixels begins with, for the fewest pixels and tiles together with short ones.
int64_t tall_tiles(int64_t width) {
  constexpr int64_t kBetween = 2;  // pixels that would take as long as what is between two tiles
  int64_t best = INT64_MAX, found = 0;
  for (int64_t tall = max<int64_t>(0, width / kTall - 2); tall <= ceil_div(width, kTall) && (tall == 0 || width >= kTall); ++tall) {
    const int64_t low = max<int64_t>(0, ceil_div(width - tall * kTall, kShort));
    const int64_t cost = tall * (kTall + kBetween) + low * (kShort + kBetween);
    if (cost < best) best = cost, found = tall;
  }
  return found;
}

// A row of y: tiles from left to right, the first `tiles` of them tall, of which the last one may overlap the one before.
void stem_row(const ConvLast& s, int64_t tiles, int64_t k, const float* const* at, const float* packed,
              const float* bias, float* y, f32v low, f32v high) {
  for (int64_t column = 0; column < s.o; column += 2 * kLanes) {
    const int64_t columns = min<int64_t>(s.o - column, 2 * kLanes), panel = k * kPackedColumns;
    const bool two = columns > kLanes;
    for (int64_t i = 0, p = 0; p < s.out[1]; ++i) {
      const bool tall = two && i < tiles;
      const int64_t pixels = tall ? kTall : kShort, first = min(p, s.out[1] - pixels);
      const auto run = tall ? stem_tile<kTall, 2> : two ? stem_tile<kShort, 2> : stem_tile<kShort, 1>;
      run(k, at, first, packed + column / kPackedColumns * panel, panel, bias ? bias + column : nullptr,
                  y + first * s.y_pixel + column, s.y_pixel, columns, low, high);
      p += pixels;
    }
  }
}

}  // namespace
#endif

KERNEL_PART(conv_stem)(const myc_call* call, const ConvLast& s, const float* x, const float* packed, const ConvEpilogue& e, float* y) {
#if MYC_VECTOR_BYTES == 64
  const int64_t k = s.c * s.taps(), panels = ceil_div(s.o, kPackedColumns);
  const bool fits = s.group == 1 && s.dilation[0] == 1 && s.dilation[1] == 1 && s.stride[1] >= 1 && s.stride[1] <= 2 && s.pad[1] >= 0 &&
                    s.pad[1] < s.in[1] && s.out[1] >= kShort && s.in[0] > 0 && k > 0 && k <= kMostTaps && !e.residual;
  if (!fits || !depthwise_finite(packed, panels * k * kPackedColumns)) return MYC_E_UNSUPPORTED;
  const int64_t reach = s.out[1] + (s.kernel[1] - 1) / s.stride[1] + 1;  // of a phase
  const int64_t inside = ceil_div(s.in[1] + s.pad[1], s.stride[1]);
  const PhaseRows phases = {s.stride[1], s.pad[1], s.in[1], round_up(max(reach, inside), int64_t{kLanes}) + kLanes};
  const int64_t tiles = tall_tiles(s.out[1]);
  const int64_t line = phases.floats(), ring = s.kernel[0], own = (s.c * ring + 1) * line;  // the last one is a row of zeros
  Scratch scratch(call);
  float* memory = scratch.take<float>(max_workers(call) * own);
  if (!memory) return MYC_E_MEMORY;
  int64_t tap[kMostTaps];  // of a kernel row: where its first pixel lies in a row
  for (int64_t j = 0; j < s.kernel[1]; ++j) tap[j] = j % phases.stride * phases.length + j / phases.stride;
  const bool bounds = e.activation == Activation::relu || e.activation == Activation::relu6;
  const f32v low = splat(bounds ? 0.0f : -INFINITY), high = splat(e.activation == Activation::relu6 ? 6.0f : INFINITY);
  const int64_t work = 8 * s.out[1] * s.o * k;
  parallel_for_worker(call, s.n * s.out[0], kMinParallelWork / (work + 1) + 1, [&](int64_t begin, int64_t end, int32_t worker) {
    float *rows = memory + worker * own, *zeros = rows + s.c * ring * line;
    memset(zeros, 0, line * sizeof(float));
    const float* at[kMostTaps];
    int64_t filled = 0;  // rows of the image before this one have been in the ring
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / s.out[0], top = task % s.out[0] * s.stride[0] - s.pad[0];
      if (task == begin || task % s.out[0] == 0) filled = 0;
      for (int64_t i = 0; i < s.kernel[0]; ++i) {
        const int64_t r = top + i;
        const bool is_inside = r >= 0 && r < s.in[0];
        for (int64_t c = 0; c < s.c; ++c) {
          float* row = is_inside ? rows + (c * ring + r % ring) * line : zeros;
          if (is_inside && r >= filled) phases.fill(x + ((image * s.c + c) * s.in[0] + r) * s.in[1], row);
          const float** to = at + (c * s.kernel[0] + i) * s.kernel[1];
          for (int64_t j = 0; j < s.kernel[1]; ++j) to[j] = row + tap[j];
        }
      }
      filled = max(filled, top + s.kernel[0]);
      float* to = y + task * s.out[1] * s.y_pixel;
      stem_row(s, tiles, k, at, packed, e.bias, to, low, high);
      if (bounds || e.activation == Activation::none) continue;
      const int64_t begins = 0;
      activate_rows(s.out[1], {nullptr, to, &begins, &begins, 0, s.y_pixel}, s.o, e.activation);
    }
  });
  return MYC_OK;
#else
  (void)call, (void)s, (void)x, (void)packed, (void)e, (void)y;
  return MYC_E_UNSUPPORTED;
#endif
}

}  // namespace mycelia::MYC_ISA
