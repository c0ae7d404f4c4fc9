// Depthwise convolution with the channels last and its input gradient: every channel has its own
// kernel, so lanes are channels and a vector of sums stays in registers over all taps.
//
// Common kernels (3 and 5 wide, stride 1 and 2) take blocks of neighbouring positions, whose windows share their
// pixels; rows above and below the image are read from a row of zeros.  Everything else, and the columns whose window
// leaves the image by more than a pixel, goes pixel by pixel through a list of taps.
// Cost: 2 n positions channels taps flops; x and y are touched once in memory, weights stay in L1.
#include "conv_last_depthwise.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int kPixels = 4;          // of a block
constexpr int64_t kMaxRows = 6;     // of x under a block
constexpr int64_t kNearFloats = 256 * 1024;  // of x; one MB

int64_t padded(int64_t channels) { return round_up(channels, kPackedColumns); }
// Distance of taps: rows of a multiple of 1 KB would all meet in few cache sets, together with the pixels.
int64_t tap_distance(int64_t channels) { return padded(channels) + (padded(channels) % 256 ? 0 : kPackedColumns); }

MYC_INLINE f32v load_lanes(const float* p, int64_t lanes) { return lanes == kLanes ? load(p) : load_partial(p, lanes); }
MYC_INLINE void store_lanes(float* p, f32v v, int64_t lanes) {
  if (lanes == kLanes) {
    store(p, v);
  } else {
    store_partial(p, v, lanes);
  }
}

// Channels and what happens to a sum; bias is never null here.
struct Lane {
  int64_t channels, tap;  // tap: distance of the weights of two taps
  const float* bias;
  f32v low, high;  // bounds of the result
  bool bounded;    // whether they are finite
  bool far;        // x is too large for the second-level cache

  MYC_INLINE f32v bound(f32v x) const { return clip(x, low, high); }
};

// kRows x kPixels positions; rows[r]: the first pixel under the block in row r of x; residual may be null, else it
// lies as y.  y_row: floats between rows of y.  With kLeft the first pixel, with kRight the last one lies outside of the
// image: it is zero.
template <int K, int S, int kRows, bool kLeft, bool kRight>
__attribute__((noinline)) void block(const Lane& l, const float* const* rows, const float* w, const float* residual,
                                     float* y, int64_t y_row) {
  constexpr int kUnder = K + S * (kRows - 1), kColumns = K + S * (kPixels - 1);
  const int64_t n = l.channels;
  const auto step = [&](int64_t c, int64_t lanes) __attribute__((always_inline)) {
    if (l.far && c % kPackedColumns == 0) {  // the next block's pixels, in rows that this is the first block to see
#pragma GCC unroll 4
      for (int r = kUnder - S * kRows; r < kUnder; ++r) {
#pragma GCC unroll 8
        for (int q = 0; q < S * kPixels; ++q) __builtin_prefetch(rows[r] + c + (kColumns + q) * n);
      }
    }
    f32v sum[kRows][kPixels];
    const f32v bias = load_lanes(l.bias + c, lanes);
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kPixels; ++j) sum[i][j] = bias;
#pragma GCC unroll 8
    for (int r = 0; r < kUnder; ++r) {
      const float* from = rows[r] + c;
      f32v x[kColumns];
#pragma GCC unroll 16
      for (int q = 0; q < kColumns; ++q) {
        const bool outside = (kLeft && q == 0) || (kRight && q == kColumns - 1);
        x[q] = outside ? f32v{} : load_lanes(from + q * n, lanes);
      }
#pragma GCC unroll 8
      for (int b = 0; b < K; ++b) {
#pragma GCC unroll 2
        for (int i = 0; i < kRows; ++i) {
          const int a = r - i * S;
          if (a < 0 || a >= K) continue;
          const f32v weight = load(w + (a * K + b) * l.tap + c);
#pragma GCC unroll 4
          for (int j = 0; j < kPixels; ++j) sum[i][j] += weight * x[j * S + b];
        }
      }
    }
    const auto put = [&](const auto& finish) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
        for (int j = 0; j < kPixels; ++j) {
          const int64_t at = i * y_row + j * n + c;
          store_lanes(y + at, finish(sum[i][j], at), lanes);
        }
      }
    };
    if (residual) {
      put([&](f32v v, int64_t at) { return l.bound(v + load_lanes(residual + at, lanes)); });
    } else if (l.bounded) {
      put([&](f32v v, int64_t) { return l.bound(v); });
    } else {
      put([](f32v v, int64_t) { return v; });
    }
  };
  int64_t c = 0;
  for (; c + kLanes <= n; c += kLanes) step(c, kLanes);
  if (c < n) step(c, n - c);
}

using Block = void (*)(const Lane&, const float* const*, const float*, const float*, float*, int64_t);

// The block kernels of a geometry, by what lies outside: nothing, the first pixel, the last one; none without one.
struct BlockKernel {
  Block run[3] = {}, run_one[3] = {};  // `rows` rows, one row
  int64_t rows = 1;
};

template <int K, int S, int kRows>
BlockKernel blocks_of() {
  return {{block<K, S, kRows, false, false>, block<K, S, kRows, true, false>, block<K, S, kRows, false, true>},
          {block<K, S, 1, false, false>, block<K, S, 1, true, false>, block<K, S, 1, false, true>},
          kRows};
}

BlockKernel block_of(const ConvLast& s) {
  if (s.kernel[0] != s.kernel[1] || s.stride[0] != s.stride[1] || s.dilation[0] != 1 || s.dilation[1] != 1) return {};
  if (s.kernel[0] == 3 && s.stride[0] == 1) return blocks_of<3, 1, 2>();
  if (s.kernel[0] == 3 && s.stride[0] == 2) return blocks_of<3, 2, 1>();
  if (s.kernel[0] == 5 && s.stride[0] == 1) return blocks_of<5, 1, 1>();
  if (s.kernel[0] == 5 && s.stride[0] == 2) return blocks_of<5, 2, 1>();
  return {};
}

// One pixel from a list of taps.
void pixel(const Lane& l, const DepthwiseTap* taps, int64_t count, const float* residual, float* y) {
  constexpr int kVectors = 4;  // chains of additions that hide their latency
  const int64_t n = l.channels;
  int64_t c = 0;
  for (; c + kVectors * kLanes <= n; c += kVectors * kLanes) {
    f32v sum[kVectors];
    for (int v = 0; v < kVectors; ++v) sum[v] = load(l.bias + c + v * kLanes);
    for (int64_t t = 0; t < count; ++t)
      for (int v = 0; v < kVectors; ++v)
        sum[v] += load(taps[t].x + c + v * kLanes) * load(taps[t].w + c + v * kLanes);
    for (int v = 0; v < kVectors; ++v) {
      if (residual) sum[v] += load(residual + c + v * kLanes);
      store(y + c + v * kLanes, l.bound(sum[v]));
    }
  }
  for (; c < n; c += kLanes) {
    const int64_t lanes = min<int64_t>(kLanes, n - c);
    f32v sum = load_lanes(l.bias + c, lanes);
    for (int64_t t = 0; t < count; ++t) sum += load_lanes(taps[t].x + c, lanes) * load(taps[t].w + c);
    if (residual) sum += load_lanes(residual + c, lanes);
    store_lanes(y + c, l.bound(sum), lanes);
  }
}

// Positions [first, last) of an axis have their whole window inside the image.
struct Inside {
  int64_t first, last;
  Inside(const ConvLast& s, int d) {
    const int64_t room = s.in[d] - 1 + s.pad[d] - (s.kernel[d] - 1) * s.dilation[d];
    first = min(s.out[d], ceil_div(max(s.pad[d], int64_t{0}), s.stride[d]));
    last = room < 0 ? first : max(first, min(s.out[d], room / s.stride[d] + 1));
  }
};

// body(first, count) for the blocks of kPixels positions that cover [first, last), the last one moved back over its
// neighbour; returns the first position that is left over.
template <class Body>
MYC_INLINE int64_t for_blocks(int64_t first, int64_t last, const Body& body) {
  const int64_t n = last - first;
  if (n < kPixels) return first;
  int64_t e = first;
  for (; e + kPixels <= last; e += kPixels) body(e);
  if (last - e > 1) {
    body(last - kPixels);
    e = last;
  }
  return e;
}

}  // namespace

bool DepthwiseRows::make(Scratch& scratch, int64_t workers, const ConvLast& shape, const float* packed,
                         const ConvEpilogue& epilogue) {
  s = shape, e = epilogue;
  const int64_t n = s.c, width = padded(n);
  distance = tap_distance(n);
  group_rows = block_of(s).rows;
  const int64_t zero_floats = max(s.in[1] * n, width);
  float* empty = scratch.take<float>(zero_floats);
  taps = scratch.take<DepthwiseTap>(workers * s.taps());
  float* apart = distance == width ? nullptr : scratch.take<float>(s.taps() * distance);
  if (!empty || !taps || (distance != width && !apart)) return false;
  memset(empty, 0, zero_floats * sizeof(float));
  for (int64_t t = 0; apart && t < s.taps(); ++t)
    memcpy(apart + t * distance, packed + t * width, width * sizeof(float));
  zeros = empty, weights = apart ? apart : packed;
  return true;
}

void DepthwiseRows::run(const float* const* under, int64_t rows, const float* residual, float* to,
                        int64_t worker) const {
  const int64_t n = s.c, y_line = s.out[1] * n;
  const bool bounds = e.activation == Activation::relu || e.activation == Activation::relu6;
  Lane l = {n, distance, e.bias ? e.bias : zeros, splat(-INFINITY), splat(INFINITY), bounds,
            s.n * s.in[0] * s.in[1] * n > kNearFloats};
  if (bounds) l.low = f32v{};
  if (e.activation == Activation::relu6) l.high = splat(6.0f);
  const BlockKernel kernel = block_of(s);
  const Inside columns(s, 1);
  // Blocks also take the first and the last position where these miss one pixel only.
  const int64_t overhang = (s.out[1] - 1) * s.stride[1] - s.pad[1] + s.kernel[1] - s.in[1];
  const bool wide = s.out[1] >= 2 * kPixels;
  const bool left = wide && columns.first == 1 && s.pad[1] == 1;
  const bool right = wide && columns.last == s.out[1] - 1 && overhang == 1;
  const int64_t first = left ? 0 : columns.first, last = right ? s.out[1] : columns.last;
  int64_t done = first;  // positions from `first` on that blocks have computed
  if (kernel.run[0]) {
    const int64_t count = rows_under(rows);
    const float* here[kMaxRows];
    const Block* run = rows == kernel.rows ? kernel.run : kernel.run_one;
    done = for_blocks(first, last, [&](int64_t p) {
      const int64_t offset = (p * s.stride[1] - s.pad[1]) * n;
      for (int64_t r = 0; r < count; ++r) here[r] = under[r] ? under[r] + offset : zeros;
      const int outside = p == 0 && left ? 1 : p + kPixels == s.out[1] && right ? 2 : 0;
      run[outside](l, here, weights, residual ? residual + p * n : nullptr, to + p * n, y_line);
    });
  }
  DepthwiseTap* list = taps + worker * s.taps();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t p = 0; p < s.out[1]; ++p) {
      if (p == first) p = done;
      if (p == s.out[1]) break;
      int64_t count = 0;
      for (int64_t a = 0; a < s.kernel[0]; ++a) {
        const float* from = under[i * s.stride[0] + a * s.dilation[0]];
        if (!from) continue;
        for (int64_t b = 0; b < s.kernel[1]; ++b) {
          const int64_t q = p * s.stride[1] - s.pad[1] + b * s.dilation[1];
          if (q >= 0 && q < s.in[1]) list[count++] = {from + q * n, weights + (a * s.kernel[1] + b) * distance};
        }
      }
      const int64_t offset = i * y_line + p * n;
      pixel(l, list, count, residual ? residual + offset : nullptr, to + offset);
    }
  }
  if (!bounds && e.activation != Activation::none)
    map(to, to, rows * y_line, [&](f32v v) { return activate(v, e.activation); });
}

int32_t conv_last_depthwise(const myc_call* call, const ConvLast& s, const float* x, const float* packed,
                            const ConvEpilogue& e, float* y) {
  const int64_t line = s.in[1] * s.c, y_line = s.out[1] * s.c;
  if (s.n == 0 || y_line == 0) return MYC_OK;
  Scratch scratch(call);
  DepthwiseRows depthwise;
  if (!depthwise.make(scratch, max_workers(call), s, packed, e)) return MYC_E_MEMORY;
  const int64_t most = depthwise.rows_under(depthwise.group_rows);
  const float** lists = scratch.take<const float*>(max_workers(call) * most);
  if (!lists) return MYC_E_MEMORY;
  const int64_t groups = ceil_div(s.out[0], depthwise.group_rows);  // of rows of an image
  const auto group = [&](int64_t task, int32_t worker) {
    const int64_t image = task / groups, first = task % groups * depthwise.group_rows;
    const int64_t rows = min(depthwise.group_rows, s.out[0] - first), at = (image * s.out[0] + first) * y_line;
    const float** under = lists + worker * most;
    for (int64_t i = 0; i < depthwise.rows_under(rows); ++i) {
      const int64_t r = first * s.stride[0] - s.pad[0] + i;
      under[i] = r < 0 || r >= s.in[0] ? nullptr : x + (image * s.in[0] + r) * line;
    }
    depthwise.run(under, rows, e.residual ? e.residual + at : nullptr, y + at, worker);
  };
  const int64_t work = 8 * s.taps() * depthwise.group_rows * y_line;
  parallel_for_worker(call, s.n * groups, kMinParallelWork / work + 1,
                      [&](int64_t begin, int64_t end, int32_t worker) {
                        for (int64_t i = begin; i < end; ++i) group(i, worker);
                      });
  return MYC_OK;
}

// A pixel of dx collects the positions whose windows hold it; the flipped pack has the taps in falling order.
int32_t conv_last_depthwise_input_grad(const myc_call* call, const ConvLast& s, const float* dy, const float* packed,
                                       float* dx) {
  const int64_t n = s.c, width = padded(n);
  if (s.n == 0 || n == 0) return MYC_OK;
  Scratch scratch(call);
  float* zeros = scratch.take<float>(width);
  DepthwiseTap* lists = scratch.take<DepthwiseTap>(max_workers(call) * s.taps());
  if (!zeros || !lists) return MYC_E_MEMORY;
  memset(zeros, 0, width * sizeof(float));
  const Lane l = {n, width, zeros, splat(-INFINITY), splat(INFINITY), false, false};

  // The position of which pixel p is tap t; -1 for none.
  const auto position = [&](int d, int64_t p, int64_t t) {
    const int64_t q = p + s.pad[d] - t * s.dilation[d];
    return q < 0 || q % s.stride[d] || q / s.stride[d] >= s.out[d] ? int64_t{-1} : q / s.stride[d];
  };
  const auto row = [&](int64_t task, DepthwiseTap* taps) {
    const int64_t image = task / s.in[0], r = task % s.in[0];
    float* to = dx + task * s.in[1] * n;
    for (int64_t p = 0; p < s.in[1]; ++p, to += n) {
      int64_t count = 0;
      for (int64_t a = 0; a < s.kernel[0]; ++a) {
        const int64_t y = position(0, r, a);
        if (y < 0) continue;
        for (int64_t b = 0; b < s.kernel[1]; ++b) {
          const int64_t e = position(1, p, b);
          if (e >= 0)
            taps[count++] = {dy + ((image * s.out[0] + y) * s.out[1] + e) * n,
                             packed + (s.taps() - 1 - a * s.kernel[1] - b) * width};
        }
      }
      pixel(l, taps, count, nullptr, to);
    }
  };
  const int64_t work = 8 * s.in[1] * n * (s.taps() / (s.stride[0] * s.stride[1]) + 1);
  parallel_for_worker(call, s.n * s.in[0], kMinParallelWork / work + 1,
                      [&](int64_t begin, int64_t end, int32_t worker) {
                        for (int64_t i = begin; i < end; ++i) row(i, lists + worker * s.taps());
                      });
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
