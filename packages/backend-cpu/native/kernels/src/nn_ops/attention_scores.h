// Scores of attention and their masks, for both directions: tiles of them, and rows by the formula.
#ifndef MYCELIA_ATTENTION_SCORES_H_
#define MYCELIA_ATTENTION_SCORES_H_

#include "gemm/gemm.h"
#include "random/philox.h"
#include "reductions/softmax_row.h"

namespace mycelia::MYC_ISA {

// The sum of products in float, as products of matrices have it.
inline float dot(const float* a, const float* b, int64_t n) {
  f32v sum = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t lanes = min(int64_t{kLanes}, n - i);
    sum += load_lanes(a + i, lanes) * load_lanes(b + i, lanes);
  }
  return horizontal_sum(sum);
}

// y += a * x
inline void add_scaled(float* y, const float* x, int64_t n, float a) {
  map(x, y, y, n, [=](f32v v, f32v onto) { return onto + v * a; });
}

constexpr int64_t kRows = 64, kColumns = 256;  // a tile of scores: 64 KiB, in L2 with the operands' panels

struct Heads {
  int64_t count, queries, keys, depth, width;  // leading axes together, T, S, D, E
};

inline Heads heads_of(const myc_tensor& query, const myc_tensor& key, const myc_tensor& value) {
  const int r = query.rank;
  return {extent(query, 0, r - 2), query.shape[r - 2], key.shape[r - 2], query.shape[r - 1], value.shape[r - 1]};
}

// A mask that broadcasts to the scores: where the row of a query begins, and whether keys advance in it.
struct Mask {
  const float* data = nullptr;
  int64_t head_stride[MYC_MAX_RANK] = {}, head_shape[MYC_MAX_RANK] = {};
  int head_rank = 0;
  int64_t row_stride = 0, column_stride = 0;

  Mask(const myc_call* call, int i, const myc_tensor& query) {
    data = in<float>(call, i);
    if (!data) return;
    const myc_tensor& m = input(call, i);
    const auto size = [&](int back) { return back <= m.rank ? m.shape[m.rank - back] : int64_t{1}; };
    int64_t running = 1;
    column_stride = size(1) > 1 ? 1 : 0, running *= size(1);
    row_stride = size(2) > 1 ? running : 0, running *= size(2);
    head_rank = query.rank - 2;
    for (int d = head_rank - 1; d >= 0; --d) {
      const int64_t n = size(query.rank - d);
      head_shape[d] = query.shape[d];
      head_stride[d] = n > 1 ? running : 0;
      running *= n;
    }
  }
  const float* row(int64_t head, int64_t query) const {
    const float* at = data + query * row_stride;
    for (int d = head_rank - 1; d >= 0; --d) at += head % head_shape[d] * head_stride[d], head /= head_shape[d];
    return at;
  }
};

// One head's keys and values in the order in which products read them, made once for all tiles of its queries.  Null
// where there are too few queries to gain by it.
struct Packs {
  float *keys = nullptr, *values = nullptr;          // transposed, for q k^T and dy v^T: [D, S], [E, S]
  float *key_rows = nullptr, *value_rows = nullptr;  // as they are, for dS k and P v: [S, D], [S, E]

  static bool pay(const Heads& h) { return h.queries >= kRows / 2; }
  static int64_t rows_size(const Heads& h, int64_t n) { return round_up(packed_size(h.keys, n), 16); }
  static int64_t turned_size(const Heads& h, int64_t n) { return round_up(packed_size(n, h.keys), 16); }
  static float* rows(const Heads& h, const float* from, int64_t n, float* to) {
    pack_b(false, h.keys, n, from, n, to);
    return to;
  }
  static float* turned(const Heads& h, const float* from, int64_t n, float* to) {
    pack_b(true, n, h.keys, from, n, to);
    return to;
  }
};

// s[rows, columns] = a[rows, n] times rows [j, j + columns) of b[S, n], transposed.
inline void multiply_turned(int64_t rows, int64_t columns, int64_t n, const float* a, const float* b, const float* packed,
                     int64_t j, float* s, const Epilogue& e, float* scratch) {
  if (packed) {
    gemm_packed(rows, columns, n, a, n, packed + j * n, s, kColumns, e);  // panels follow each other: j is a multiple
  } else {
    gemm_serial(false, true, rows, columns, n, a, n, b + j * n, n, s, kColumns, e, scratch);
  }
}

// y[rows, n] = s[rows, columns] times rows [j, j + columns) of b[S, n].
inline void multiply_rows(int64_t rows, int64_t columns, int64_t n, const float* s, const float* b, const float* packed,
                   int64_t keys, int64_t j, float* y, const Epilogue& e, float* scratch) {
  if (packed) {
    gemm_packed_part(rows, n, columns, s, kColumns, packed, keys, j, y, n, e);
  } else {
    gemm_serial(false, false, rows, n, columns, s, kColumns, b + j * n, n, y, n, e, scratch);
  }
}

// Whether all of x are finite and at most `limit` away from 0.
inline bool are_within(const float* x, int64_t n, float limit) {
  i32v outside = {};
  for (int64_t i = 0; i < n; i += kLanes) outside |= ~(i32v)(abs(load_lanes(x + i, min(int64_t{kLanes}, n - i))) <= limit);
  return !any(outside);
}

// Whether none of x is NaN or infinity; -infinity may be.
inline bool are_below_infinity(const float* x, int64_t n) {
  i32v above = {};
  for (int64_t i = 0; i < n; i += kLanes) above |= ~(i32v)(load_lanes(x + i, min(int64_t{kLanes}, n - i)) < INFINITY);
  return !any(above);
}

inline float largest(const float* x, int64_t n) {
  f32v peak = {};
  for (int64_t i = 0; i < n; i += kLanes) peak = max_or_second(abs(load_lanes(x + i, min(int64_t{kLanes}, n - i))), peak);
  return horizontal_max(peak);
}

// Products of two such numbers, summed up, stay far from infinity.
constexpr float kModerate = 0x1p50f;

// What both directions know about the scores.
struct Scores {
  Heads heads;
  Mask mask;
  float scale;
  bool causal, replaces;  // the mask, or `hidden`, takes the place of scores
  bool may_hide;          // no mask changes what `causal` hides
  float hidden;           // what `causal` adds
  PhiloxKey key;
  double p;

  // Whether weights of keys that `causal` hides are 0 and so is all that comes of them.  A query sees itself, so that
  // its peak is at least -bound.
  bool may_skip(const float* q, const float* k, const float* v) const {
    const Heads& h = heads;
    if (!may_hide || !are_within(q, h.queries * h.depth, kModerate) || !are_within(k, h.keys * h.depth, kModerate) ||
        !are_within(v, h.keys * h.width, kModerate))
      return false;
    const float bound = largest(q, h.queries * h.depth) * largest(k, h.keys * h.depth) * h.depth * fabsf(scale);
    return bound < 1e30f && hidden < -2 * bound - 110.0f;  // exp(-104) is 0
  }

  // Where row `query` of the mask, from key j on, replaces scores: f(keys from j, mask).
  template <class F>
  void at_replaced(int64_t head, int64_t query, int64_t j, int64_t columns, float* values, const F& f) const {
    const float* m = mask.row(head, query) + j * mask.column_stride;
    if (mask.column_stride) {
      map(values, m, values, columns, [&](f32v v, f32v fill) { return select((i32v)(fill != 0.0f), f(fill), v); });
    } else if (*m != 0.0f) {
      const f32v fill = f(splat(*m));
      map(values, values, columns, [&](f32v) { return fill; });
    }
  }

  // Masks a row of scores, for keys from j on.
  void mask_row(int64_t head, int64_t query, int64_t j, int64_t columns, float* row) const {
    if (mask.data && replaces) {
      at_replaced(head, query, j, columns, row, [](f32v fill) { return fill; });
    } else if (mask.data) {
      const float* m = mask.row(head, query) + j * mask.column_stride;
      if (mask.column_stride) {
        map(row, m, row, columns, [](f32v v, f32v add) { return v + add; });
      } else {
        const f32v add = splat(*m);
        map(row, row, columns, [=](f32v v) { return v + add; });
      }
    }
    if (causal)
      for (int64_t c = max(int64_t{0}, query + 1 - j); c < columns; ++c) row[c] = replaces ? hidden : row[c] + hidden;
  }

  // Sets to 0 the gradients of a row of scores that were replaced.
  void clear_replaced(int64_t head, int64_t query, int64_t j, int64_t columns, float* row) const {
    if (!replaces) return;
    if (mask.data) at_replaced(head, query, j, columns, row, [](f32v) { return f32v{}; });
    if (causal)
      for (int64_t c = max(int64_t{0}, query + 1 - j); c < columns; ++c) row[c] = 0.0f;
  }

  // The scores of one query and all keys, by the formula.
  void row(const float* q, const float* k, int64_t head, int64_t query, float* s) const {
    for (int64_t j = 0; j < heads.keys; ++j) s[j] = dot(q, k + j * heads.depth, heads.depth) * scale;
    mask_row(head, query, 0, heads.keys, s);
  }

  // Keys that the queries before `end` may see.
  int64_t visible(int64_t end) const { return causal ? min(heads.keys, end) : heads.keys; }

  // s[rows, columns] (leading dimension kColumns) = scale q k^T + mask for queries from i and keys from j.
  void tile(const float* q, const float* k, const Packs& packs, int64_t head, int64_t i, int64_t rows, int64_t j,
            int64_t columns, float* s, float* scratch) const {
    Epilogue scaled;
    scaled.scale = scale;
    multiply_turned(rows, columns, heads.depth, q + i * heads.depth, k, packs.keys, j, s, scaled, scratch);
    for (int64_t r = 0; r < rows; ++r) {
      mask_row(head, i + r, j, columns, s + r * kColumns);
    }
  }

  // out = values times the dropout factors of the weights of one query and the keys from j (a multiple of 4).
  void drop(int64_t head, int64_t query, int64_t j, int64_t columns, const float* values, float* out) const {
    const uint64_t blocks = static_cast<uint64_t>(ceil_div(heads.keys, int64_t{4}));
    const uint64_t first = static_cast<uint64_t>(head * heads.queries + query) * blocks + static_cast<uint64_t>(j / 4);
    const u32v threshold = u32v{} + drop_threshold(p);
    const f32v scale_up = splat(static_cast<float>(1 / (1 - p)));
    for (int64_t c = 0; c < columns; c += kPhiloxGroup) {
      uint32_t words[kPhiloxGroup];
      philox_group(key, first + static_cast<uint64_t>(c / 4), words);
      for (int64_t v = 0; v < kPhiloxGroup && c + v < columns; v += kLanes) {
        const int64_t lanes = min(int64_t{kLanes}, columns - c - v);
        u32v w;
        memcpy(&w, words + v, sizeof(w));
        const f32v x = load_lanes(values + c + v, lanes);
        store_lanes(out + c + v, select((i32v)(w >= threshold), x * scale_up, f32v{}), lanes);
      }
    }
  }
};

// Scratch floats of gemm_serial over all tile sizes that occur: full ones and those at the end.
inline int64_t tile_scratch(bool transpose_a, bool transpose_b, const int64_t (&m)[2], const int64_t (&n)[2],
                     const int64_t (&k)[2]) {
  int64_t most = 0;
  for (const int64_t a : m)
    for (const int64_t b : n)
      for (const int64_t c : k) most = max(most, gemm_scratch(transpose_a, transpose_b, a, b, c));
  return round_up(most, 16);
}

// ---- by the formula ----

enum class Unseen { kZero, kNan };  // weights of a query that sees no key

// Scores of one query to weights; returns the logarithm of their sum.
inline float weigh_row(float* s, int64_t n, Unseen unseen) {
  const float peak = row_max(s, n), shift = unseen == Unseen::kZero && peak == -INFINITY ? 0.0f : peak;
  const float total = row_exp_sum<true>(s, s, n, shift);
  if (total == 0.0f) return -INFINITY;
  const float scale = 1.0f / total;
  map(s, s, n, [=](f32v v) { return v * scale; });
  return shift + logf(total);
}

// Floats of a tile of scores, or a row of them.
inline int64_t tile_size(const Heads& h) { return max(kRows * kColumns, round_up(h.keys, 16)); }

template <class Attributes>
Scores scores_of(const myc_call* call, const Attributes& a, const Heads& h, int mask, const myc_tensor& query,
                 const PhiloxKey& key) {
  const bool causal = a.is_causal != 0;
  bool may_hide = true;
  if (causal && has_input(call, mask)) {
    const myc_tensor& m = input(call, mask);
    may_hide = a.hidden == -INFINITY && are_below_infinity(in<float>(call, mask), m.size);
  }
  const auto number = [](double x) { return static_cast<float>(x); };
  return {h, Mask(call, mask, query), number(a.scale), causal, a.masking == 1, may_hide, number(a.hidden), key, a.p};
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_ATTENTION_SCORES_H_
