// Quantized layers: products and channels-last convolutions of 8-bit integers on packed weights, exact sums, the result
// scaled to 8 bits or float32.  Ops: 2 rows k columns.  Bytes: x, y and w once for some ten to hundred rows.
#include "nn_ops/int8.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kPairDepth = 384;           // pairs of k at once: a panel of this depth is 24 KB
constexpr int64_t kBlockPairs = 48 * 1024;    // of A in a block of rows: 192 KB of the second-level cache
constexpr int64_t kMostRows = 192;
constexpr int64_t kShare = 4 << 20;  // multiply-adds of 40 us: less is not worth a second thread

// What becomes of the sums: y = clamp(round((sum + bias) * scale) + zero, low, high), or (sum + bias) * scale.
struct Result {
  const int32_t* bias;
  const float* scale;
  int32_t zero, low, high;
  int32_t dtype;
  void* y;
};

// The layer as a product: rows of A are the pixels of y, k runs through the taps and their channels.
struct Layer {
  int64_t n, in[2], out[2], channels;  // of x
  int64_t kernel[2], stride[2], pad[2], dilation[2];
  const void* x;
  bool is_signed;
  int32_t x_zero;
  int64_t columns;
  const int32_t* packed;
  Result result;

  int64_t rows() const { return n * out[0] * out[1]; }
  int64_t depth() const { return kernel[0] * kernel[1] * channels; }
  int64_t pairs() const { return ceil_div(depth(), 2); }
  int64_t blocks() const { return ceil_div(columns, kPairTile); }
};

template <class T>
MYC_INLINE void widen(const T* from, int64_t count, int32_t zero, int16_t* to) {
  typedef T narrow __attribute__((vector_size(16)));
  typedef int16_t wide __attribute__((vector_size(32)));
  const wide less = wide{} + static_cast<int16_t>(zero);
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    narrow v;
    memcpy(&v, from + i, sizeof(v));
    const wide w = __builtin_convertvector(v, wide) - less;
    memcpy(to + i, &w, sizeof(w));
  }
  for (; i < count; ++i) to[i] = static_cast<int16_t>(from[i] - zero);
}

// Rows [first, first + count) of A: inputs less their zero point, zeros for padding and for an odd k.
template <class T>
void fill_rows(const Layer& g, int64_t first, int64_t count, int16_t* to) {
  const T* x = static_cast<const T*>(g.x);
  const int64_t depth = g.depth(), row = 2 * g.pairs();
  int64_t col = first % g.out[1], line = first / g.out[1];
  for (int64_t r = 0; r < count; ++r, to += row) {
    const int64_t image = line / g.out[0], top = line % g.out[0] * g.stride[0] - g.pad[0];
    const int64_t left = col * g.stride[1] - g.pad[1];
    int16_t* at = to;
    for (int64_t i = 0; i < g.kernel[0]; ++i) {
      const int64_t h = top + i * g.dilation[0];
      const bool inside = h >= 0 && h < g.in[0];
      const T* line_of_x = x + ((image * g.in[0] + h) * g.in[1] + left) * g.channels;
      // Neighbouring taps that are neighbours in x, too, are one stretch.
      const int64_t wide = g.dilation[1] == 1 ? g.kernel[1] : 1;
      for (int64_t j = 0; j < g.kernel[1]; j += wide, at += wide * g.channels) {
        const int64_t w = left + j * g.dilation[1];
        const int64_t begin = inside ? clamp<int64_t>(-w, 0, wide) : wide, end = clamp(g.in[1] - w, begin, wide);
        memset(at, 0, sizeof(int16_t) * begin * g.channels);
        widen(line_of_x + (j * g.dilation[1] + begin) * g.channels, (end - begin) * g.channels, g.x_zero,
              at + begin * g.channels);
        memset(at + end * g.channels, 0, sizeof(int16_t) * (wide - end) * g.channels);
      }
    }
    if (depth < row) to[depth] = 0;
    if (++col == g.out[1]) col = 0, ++line;
  }
}

// 8-bit numbers from a block's 32-bit ones, which are in range.
template <class T>
MYC_INLINE void narrow(i32v a, i32v b, T* to) {
#if MYC_VECTOR_BYTES == 64
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8((__m512i)a));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to + kLanes), _mm512_cvtepi32_epi8((__m512i)b));
#elif MYC_VECTOR_BYTES == 32
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32((__m256i)a, (__m256i)b), 0xd8);
  const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
  const __m128i bytes = static_cast<T>(-1) < 0 ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
#else
  for (int v = 0; v < kLanes; ++v) to[v] = static_cast<T>(a[v]), to[kLanes + v] = static_cast<T>(b[v]);
#endif
}

// Results of a block from its sums.
template <class T>
void finish_block(const Layer& g, const int32_t* sums, int64_t first, int64_t rows, int64_t column) {
  const Result& e = g.result;
  const int64_t columns = min<int64_t>(kPairTile, g.columns - column);
  int32_t bias[kPairTile] = {};
  float scale[kPairTile] = {};
  if (e.bias) memcpy(bias, e.bias + column, sizeof(int32_t) * columns);
  memcpy(scale, e.scale + column, sizeof(float) * columns);
  const i32v bias0 = load(bias), bias1 = load(bias + kLanes), zero = splat(e.zero);
  const f32v scale0 = load(scale), scale1 = load(scale + kLanes);
  const f32v low = to_float(splat(e.low - e.zero)), high = to_float(splat(e.high - e.zero));
  const auto whole = [&](f32v x) {
    return to_int(round_even(min_or_second(high, max_or_second(x, low)))) + zero;  // NaN gives `low`
  };
  T* y = static_cast<T*>(e.y) + first * g.columns + column;
  for (int64_t r = 0; r < rows; ++r, sums += kPairTile, y += g.columns) {
    const f32v a = to_float(load(sums) + bias0) * scale0, b = to_float(load(sums + kLanes) + bias1) * scale1;
    T some[kPairTile];
    T* to = columns == kPairTile ? y : some;
    if constexpr (sizeof(T) == sizeof(float)) {
      store(to, a), store(to + kLanes, b);
    } else {
      narrow(whole(a), whole(b), to);
    }
    if (columns < kPairTile) memcpy(y, some, sizeof(T) * columns);
  }
}

// Rows [first, first + rows), already in `a`, against column blocks [begin, end).  sums: rows x kPairTile.
void multiply_block(const Layer& g, const int32_t* a, int64_t first, int64_t rows, int64_t begin, int64_t end,
                    int32_t* sums) {
  const int64_t pairs = g.pairs(), tiles = ceil_div(rows, kPairRows);
  for (int64_t q = begin; q < end; ++q) {
    const int64_t column = q * kPairTile;
    const int32_t* b = g.packed + column / kPairColumns * pairs * kPairColumns + column % kPairColumns;
    // The second vector of the last block may lie behind the last panel: then it is read from the first.
    const bool inside = kLanes < kPairColumns || column + kPairColumns < round_up(g.columns, kPairColumns);
    const int64_t b_vector = kLanes < kPairColumns ? kLanes : inside ? pairs * kPairColumns : 0;
    for (int64_t p = 0; p == 0 || p < pairs; p += kPairDepth) {
      const int64_t depth = min(kPairDepth, pairs - p);
      // The panel's next part comes while this one is used.
      const int32_t* next = b + (p + depth) * kPairColumns;
      const int64_t share = ceil_div(depth * kPairColumns, tiles);
      for (int64_t t = 0, i = 0; t < tiles; ++t, next += share) {
        for (int64_t f = 0; f < share; f += 16) __builtin_prefetch(next + f, 0, 2);
        const int64_t count = rows / tiles + (t < rows % tiles);
        pairs_micro_for(count)(depth, a + i * pairs + p, pairs, b + p * kPairColumns, b_vector, sums + i * kPairTile, p > 0);
        i += count;
      }
    }
    switch (g.result.dtype) {
      case MYC_I8:
        finish_block<int8_t>(g, sums, first, rows, column);
        break;
      case MYC_U8:
        finish_block<uint8_t>(g, sums, first, rows, column);
        break;
      default:
        finish_block<float>(g, sums, first, rows, column);
    }
  }
}

int32_t multiply(const myc_call* call, const Layer& g) {
  const int64_t rows = g.rows(), blocks = g.blocks(), pairs = g.pairs();
  if (rows == 0 || blocks == 0) return MYC_OK;
  const int64_t most = clamp(kBlockPairs / (pairs + 1), int64_t{9} * kPairRows, kMostRows);
  const int64_t row_blocks = ceil_div(rows, most), in_block = ceil_div(rows, row_blocks);
  const int64_t own = round_up(in_block * (pairs + kPairTile), 16);
  Scratch scratch(call);
  int32_t* memory = scratch.take<int32_t>(own * max_workers(call));
  if (!memory) return MYC_E_MEMORY;
  parallel_for_worker(call, row_blocks * blocks, kShare / (in_block * pairs * 2 * kPairTile + 1) + 1,
                      [&](int64_t begin, int64_t end, int32_t worker) {
                        int32_t *a = memory + worker * own, *sums = a + in_block * pairs;
                        while (begin < end) {
                          const int64_t first = begin / blocks * in_block, q = begin % blocks;
                          const int64_t count = min(in_block, rows - first), some = min(end - begin, blocks - q);
                          int16_t* to = reinterpret_cast<int16_t*>(a);
                          g.is_signed ? fill_rows<int8_t>(g, first, count, to) : fill_rows<uint8_t>(g, first, count, to);
                          multiply_block(g, a, first, count, q, q + some, sums);
                          begin += some;
                        }
                      });
  return MYC_OK;
}

// What both ops have in common: inputs x, packed w, scale, bias.
template <class Attrs>
Layer layer_of(const myc_call* call, const Attrs& a) {
  Layer g = {};
  g.x = input(call, 0).data, g.is_signed = input(call, 0).dtype == MYC_I8, g.x_zero = static_cast<int32_t>(a.x_zero);
  g.columns = a.channels, g.packed = reinterpret_cast<const int32_t*>(in<int16_t>(call, 1));
  g.result = {in<int32_t>(call, 3), in<float>(call, 2), static_cast<int32_t>(a.y_zero), static_cast<int32_t>(a.low),
              static_cast<int32_t>(a.high), output(call).dtype, output(call).data};
  for (int d = 0; d < 2; ++d) g.kernel[d] = g.stride[d] = g.dilation[d] = g.in[d] = g.out[d] = 1;
  return g;
}

int32_t pack(const myc_call* call, const int32_t* zero) {
  const myc_tensor& w = input(call);
  const int64_t columns = w.shape[0], channels = w.rank > 1 ? w.shape[1] : 1, taps = extent(w, 2, w.rank);
  const int64_t depth = channels * taps, pairs = ceil_div(depth, 2);
  const int8_t* from = in<int8_t>(call);
  int16_t* to = out<int16_t>(call);
  parallel_rows(call, ceil_div(columns, kPairColumns), depth * kPairColumns * 8, [&](int64_t panel) {
    int16_t* at = to + panel * pairs * 2 * kPairColumns;
    memset(at, 0, sizeof(int16_t) * pairs * 2 * kPairColumns);
    for (int64_t q = 0; q < min(kPairColumns, columns - panel * kPairColumns); ++q) {
      const int64_t j = panel * kPairColumns + q;
      const int32_t own = zero ? zero[j] : 0;
      for (int64_t t = 0; t < taps; ++t) {
        for (int64_t i = 0; i < channels; ++i) {
          const int64_t k = t * channels + i;
          at[(k / 2 * kPairColumns + q) * 2 + k % 2] = static_cast<int16_t>(from[(j * channels + i) * taps + t] - own);
        }
      }
    }
  });
  return MYC_OK;
}

int32_t matmul(const myc_call* call) {
  Layer g = layer_of(call, attrs<myc_quantized_matmul_attrs>(call));
  const myc_tensor& x = input(call);
  g.n = extent(x, 0, x.rank - 1), g.channels = x.shape[x.rank - 1];
  return multiply(call, g);
}

int32_t conv(const myc_call* call) {
  const auto& a = attrs<myc_quantized_conv_attrs>(call);
  const auto entry = [](const myc_ints& list, int d) { return list.v[list.n == 1 ? 0 : d]; };
  Layer g = layer_of(call, a);
  const myc_tensor &x = input(call), &y = output(call);
  g.n = x.shape[0], g.channels = x.shape[3];
  for (int d = 0; d < 2; ++d) {
    g.in[d] = x.shape[1 + d], g.out[d] = y.shape[1 + d], g.kernel[d] = entry(a.kernel, d);
    g.stride[d] = entry(a.stride, d), g.dilation[d] = entry(a.dilation, d), g.pad[d] = entry(a.pad, d);
  }
  return multiply(call, g);
}

}  // namespace

KERNEL_FN(quantized_pack, i8_i32) { return pack(call, in<int32_t>(call, 1)); }
KERNEL_FN(quantized_matmul, i8) { return matmul(call); }
KERNEL_FN(quantized_matmul, u8) { return matmul(call); }
KERNEL_FN(quantized_conv, i8) { return conv(call); }
KERNEL_FN(quantized_conv, u8) { return conv(call); }

}  // namespace mycelia::MYC_ISA
