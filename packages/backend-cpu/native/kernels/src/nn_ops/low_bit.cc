// Products and channels-last convolutions on weights of 1 to 8 bits, which stay as they are in memory.  A few rows are multiplied
// by fields in registers, at the rate at which memory brings them.  For more rows columns are decoded, as many as the
// second-level cache holds, and multiplied by the loops on packed floats: each number is that of a matrix of floats.
// Flops: 2 rows in out.  Bytes: x and y, bits / 8 for each weight.
#include "nn_ops/low_bit.h"

#include "convolution/channels_last/conv_last.h"
#include "simd/leave.h"

namespace mycelia::MYC_ISA {

extern const TileLoops kTileLoops;  // tile_loops.cc

namespace {

constexpr int64_t kFewRows = 3;               // above: to decode once costs less than to do so for each row
constexpr int64_t kDecoded = 128 * 1024;      // floats at once
constexpr int64_t kAhead = 8;                 // units of weights that are fetched ahead
constexpr int kSums = 4;                      // chains of additions

// Weights of k in [0, kUnit) of a panel's unit, as floats [kUnit][16].
template <int kBits>
MYC_INLINE void decode_unit(const int32_t* from, const f32v (&scale)[kPanelVectors], const f32v (&zero)[kPanelVectors],
                            const FieldTable<kBits>& table, float* to) {
#pragma GCC unroll 1
  for (int v = 0; v < kPanelVectors; ++v) {
    i32v word[kBits];
#pragma GCC unroll 8
    for (int w = 0; w < kBits; ++w) word[w] = load(from + w * kPackedColumns + v * kLanes);
#pragma GCC unroll 32
    for (int i = 0; i < kUnit; ++i) store(to + i * kPackedColumns + v * kLanes, (field_of(word, i, table) - zero[v]) * scale[v]);
  }
}

// A panel as floats [depth][16].
template <int kBits>
__attribute__((noinline)) void decode_panel(const LowBit& w, int64_t panel, float* to) {
  const FieldTable<kBits> table;
  const int32_t* from = w.packed + panel * w.panel_words();
  for (int64_t k = 0; k < w.depth; k += kUnit, from += kBits * kPackedColumns, to += kUnit * kPackedColumns) {
    f32v scale[kPanelVectors], zero[kPanelVectors] = {};
    for (int v = 0; v < kPanelVectors; ++v) {
      const int64_t column = panel * kPackedColumns + v * kLanes;
      scale[v] = row_of(w.scale, w.columns, k / w.group, column);
      if (w.zero) zero[v] = row_of(w.zero, w.columns, k / w.group, column);
    }
    if (k + kUnit <= w.depth) {
      decode_unit<kBits>(from, scale, zero, table, to);
    } else {
      alignas(64) float last[kUnit * kPackedColumns];
      decode_unit<kBits>(from, scale, zero, table, last);
      memcpy(to, last, (w.depth - k) * kPackedColumns * sizeof(float));
    }
  }
}

// A row of x, with zeros up to whole units, by a vector of columns of a panel. `x_sum`: of the row's elements of each group.
template <int kBits>
__attribute__((noinline)) f32v multiply_columns(const LowBit& w, int64_t column, const float* x, const float* x_sum) {
  const FieldTable<kBits> table;
  const int32_t* from = w.packed + column / kPackedColumns * w.panel_words() + column % kPackedColumns;
  f32v total = {};
  for (int64_t first = 0, row = 0; first < w.depth; first += w.group, ++row) {
    f32v sum[kSums] = {};
    const int64_t end = min(w.depth, first + w.group);
    for (int64_t k = first; k < end; k += kUnit, from += kBits * kPackedColumns) {
      i32v word[kBits];
#pragma GCC unroll 8
      for (int b = 0; b < kBits; ++b) {
        __builtin_prefetch(from + (kBits * kAhead + b) * kPackedColumns);
        word[b] = load(from + b * kPackedColumns);
      }
#pragma GCC unroll 32
      for (int i = 0; i < kUnit; ++i) {
        sum[i % kSums] = fma(splat(x[k + i]), field_of(word, i, table), sum[i % kSums]);
      }
    }
    f32v all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    if (w.zero) all -= splat(x_sum[row]) * row_of(w.zero, w.columns, row, column);
    total = fma(all, row_of(w.scale, w.columns, row, column), total);
  }
  return total;
}

struct Loops {
  void (*decode)(const LowBit& w, int64_t panel, float* to);
  f32v (*multiply)(const LowBit& w, int64_t column, const float* x, const float* x_sum);
};

template <int kBits = 8>
Loops loops_for(const LowBit& w) {
  if constexpr (kBits > 1) {
    if (w.bits < kBits) return loops_for<kBits - 1>(w);
  }
  return {decode_panel<kBits>, multiply_columns<kBits>};
}

struct Epilogue {
  const float *bias, *residual;  // may be null
  Activation activation;
};

// The sums of elements in each group of each row; false if one is not finite: then zeros cannot be subtracted behind the product.
bool group_sums(const LowBit& w, int64_t rows, const float* x, int64_t step, float* sums) {
  bool finite = true;
  for (int64_t r = 0; r < rows; ++r, x += step) {
    for (int64_t first = 0; first < w.depth; first += w.group) {
      f32v sum = {};
      int64_t k = first;
      const int64_t end = min(w.depth, first + w.group);
      for (; k + kLanes <= end; k += kLanes) sum += load(x + k);
      if (k < end) sum += load_partial(x + k, end - k);
      *sums = horizontal_sum(sum);
      finite &= *sums - *sums == 0;
      ++sums;
    }
  }
  return finite;
}

// Rows of x by fields in registers; MYC_E_UNSUPPORTED if that is not what the op means.
int32_t multiply_few(const myc_call* call, const LowBit& w, int64_t rows, const float* x, const Epilogue& e, float* y) {
  const Loops loops = loops_for(w);
  Scratch scratch(call);
  const int64_t step = w.units() * kUnit;
  if (step != w.depth) {
    float* whole = scratch.take<float>(rows * step);
    if (!whole) return MYC_E_MEMORY;
    for (int64_t r = 0; r < rows; ++r) {
      memcpy(whole + r * step, x + r * w.depth, w.depth * sizeof(float));
      memset(whole + r * step + w.depth, 0, (step - w.depth) * sizeof(float));
    }
    x = whole;
  }
  const int64_t groups = w.groups();
  const float* sums = nullptr;
  if (w.zero) {
    float* made = scratch.take<float>(rows * groups);
    if (!made) return MYC_E_MEMORY;
    if (!group_sums(w, rows, x, step, made)) return MYC_E_UNSUPPORTED;
    sums = made;
  }
  const bool bounded = e.activation == Activation::relu || e.activation == Activation::relu6;
  const f32v high = splat(e.activation == Activation::relu6 ? 6.0f : INFINITY);
  parallel_rows(call, w.panels(), rows * w.depth * kPackedColumns * 2, [&](int64_t panel) {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t first = panel * kPackedColumns, count = min(kPackedColumns, w.columns - first);
      for (int64_t j = first; j < first + count; j += kLanes) {
        const int64_t lanes = min<int64_t>(kLanes, w.columns - j), at = r * w.columns + j;
        f32v sum = loops.multiply(w, j, x + r * step, sums ? sums + r * groups : nullptr);
        if (e.bias) sum += load_partial(e.bias + j, lanes);
        if (e.residual) sum += load_partial(e.residual + at, lanes);
        store_partial(y + at, bounded ? clip(sum, f32v{}, high) : sum, lanes);
      }
      if (e.activation > Activation::relu6) (void)kTileLoops.activate(y + r * w.columns + first, count, e.activation);
    }
    leave_vectors();
  });
  return MYC_OK;
}

// Columns by columns, decoded.
int32_t multiply_decoded(const myc_call* call, const LowBit& w, ConvLast s, const float* x, const Epilogue& e, float* y) {
  const int64_t all = s.o, tile = kTileLoops.columns > kPackedColumns ? kTileLoops.columns : kPackedColumns;
  const int64_t chunk = min(all, max<int64_t>(1, kDecoded / (max<int64_t>(w.depth, 1) * tile)) * tile);
  if (chunk == 0) return MYC_OK;
  const Loops loops = loops_for(w);
  Scratch scratch(call);
  float* decoded = scratch.take<float>(round_up(chunk, kPackedColumns) * w.depth);
  if (!decoded && w.depth > 0) return MYC_E_MEMORY;
  for (int64_t first = 0; first < all; first += chunk) {
    s.o = min(chunk, all - first);
    const int64_t panel = first / kPackedColumns;
    parallel_rows(call, ceil_div(s.o, kPackedColumns), w.depth * kPackedColumns * 4, [&](int64_t i) {
      loops.decode(w, panel + i, decoded + i * kPackedColumns * w.depth);
      leave_vectors();
    });
    const ConvEpilogue part = {e.bias ? e.bias + first : nullptr, e.residual ? e.residual + first : nullptr, e.activation};
    if (const int32_t code = conv_last_direct(call, kTileLoops, s, x, decoded, part, y + first); code != MYC_OK) return code;
  }
  return MYC_OK;
}

// What both ops have in common: inputs x, packed w, scale, zero, bias, residual.
template <class Attrs>
LowBit weights_of(const myc_call* call, const Attrs& a, int64_t depth, int64_t group) {
  const int64_t whole = max(round_up(depth, kUnit), kUnit);
  return {a.bits, depth, a.channels, group == 0 ? whole : group, in<int32_t>(call, 1), in<float>(call, 2), in<float>(call, 3)};
}

template <class Attrs>
Epilogue epilogue_of(const myc_call* call, const Attrs& a) {
  return {in<float>(call, 4), in<float>(call, 5), static_cast<Activation>(a.activation)};
}

}  // namespace

KERNEL_FN(low_bit_pack, u8) {
  const auto& a = attrs<myc_low_bit_pack_attrs>(call);
  const LowBit w = {a.bits, a.depth, a.channels, kUnit, nullptr, nullptr, nullptr};
  const uint8_t* codes = in<uint8_t>(call);
  const uint32_t mask = (1u << a.bits) - 1, turn = a.is_signed ? 0 : 1u << (a.bits - 1);
  int32_t* to = out<int32_t>(call);
  parallel_rows(call, w.panels(), w.depth * kPackedColumns * 16, [&](int64_t panel) {
    auto* words = reinterpret_cast<uint32_t*>(to + panel * w.panel_words());
    memset(words, 0, w.panel_words() * sizeof(uint32_t));
    for (int64_t q = 0; q < min(kPackedColumns, w.columns - panel * kPackedColumns); ++q) {
      const int64_t j = panel * kPackedColumns + q;
      for (int64_t k = 0; k < w.depth; ++k) {
        const int64_t bit = (a.transpose_w ? j * w.depth + k : k * w.columns + j) * a.bits;
        uint32_t field = codes[bit / 8] >> (bit % 8);
        if (bit % 8 + a.bits > 8) field |= static_cast<uint32_t>(codes[bit / 8 + 1]) << (8 - bit % 8);
        field = (field & mask) ^ turn;
        const int64_t at = k % kUnit * a.bits;
        uint32_t* word = words + (k / kUnit * a.bits + at / 32) * kPackedColumns + q;
        *word |= field << (at % 32);
        if (at % 32 + a.bits > 32) word[kPackedColumns] |= field >> (32 - at % 32);
      }
    }
  });
  return MYC_OK;
}

KERNEL_FN(low_bit_linear, i32) {
  const auto& a = attrs<myc_low_bit_linear_attrs>(call);
  const myc_tensor& x = input(call);
  const int64_t rows = extent(x, 0, x.rank - 1), depth = x.shape[x.rank - 1];
  const Epilogue e = epilogue_of(call, a);
  if (!kTileLoops.has(e.activation)) return MYC_E_UNSUPPORTED;
  if (rows == 0 || a.channels == 0) return MYC_OK;
  const LowBit w = weights_of(call, a, depth, a.group);
  if (rows <= kFewRows) {
    const int32_t code = multiply_few(call, w, rows, in<float>(call), e, out<float>(call));
    if (code != MYC_E_UNSUPPORTED) return code;
  }
  const ConvLast s = {rows, depth, a.channels, 1, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, a.channels};
  return multiply_decoded(call, w, s, in<float>(call), e, out<float>(call));
}

KERNEL_FN(low_bit_conv_last, i32) {
  const auto& a = attrs<myc_low_bit_conv_last_attrs>(call);
  const myc_tensor &x = input(call), &y = output(call);
  const Epilogue e = epilogue_of(call, a);
  if (!kTileLoops.has(e.activation)) return MYC_E_UNSUPPORTED;
  ConvLast s = {x.shape[0], x.shape[3], a.channels, 1, {}, {}, {}, {}, {}, {}, y.shape[3]};
  for (int d = 0; d < 2; ++d) {
    s.in[d] = x.shape[1 + d], s.out[d] = y.shape[1 + d], s.kernel[d] = entry(a.kernel, d);
    s.stride[d] = entry(a.stride, d), s.dilation[d] = entry(a.dilation, d), s.pad[d] = entry(a.pad, d);
  }
  return multiply_decoded(call, weights_of(call, a, s.taps() * s.c, 0), s, in<float>(call), e, out<float>(call));
}

}  // namespace mycelia::MYC_ISA
