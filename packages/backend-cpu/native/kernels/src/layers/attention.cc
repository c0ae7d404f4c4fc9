// Scaled dot-product attention and its gradient, float32, by tiles: scores exist only kRows x kColumns at a time
// (the online softmax of Milakov and Gimelshein 2018, tiles as in Dao et al. 2022).  A tile of queries of one head is
// one piece of work.  Flops: 2 T S (D + E) forward, 2 T S (3 D + 2 E) backward; traffic is that of the operands.
// Tiles give what the plain formula gives as long as results are finite and what they leave out has weights of 0.  Where
// that does not hold, queries are computed again by the formula, a whole row of weights at a time.
#include <float.h>

#include "gemm/gemm.h"
#include "randomness/philox.h"
#include "reductions/softmax_row.h"

namespace mycelia::MYC_ISA {

// The sum of products in float, as products of matrices have it.
float dot(const float* a, const float* b, int64_t n) {
  f32v sum = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t lanes = min(int64_t{kLanes}, n - i);
    sum += load_lanes(a + i, lanes) * load_lanes(b + i, lanes);
  }
  return horizontal_sum(sum);
}

// y += a * x
void add_scaled(float* y, const float* x, int64_t n, float a) {
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
void multiply_turned(int64_t rows, int64_t columns, int64_t n, const float* a, const float* b, const float* packed,
                     int64_t j, float* s, const Epilogue& e, float* scratch) {
  if (packed) {
    gemm_packed(rows, columns, n, a, n, packed + j * n, s, kColumns, e);  // panels follow each other: j is a multiple
  } else {
    gemm_serial(false, true, rows, columns, n, a, n, b + j * n, n, s, kColumns, e, scratch);
  }
}

// y[rows, n] = s[rows, columns] times rows [j, j + columns) of b[S, n].
void multiply_rows(int64_t rows, int64_t columns, int64_t n, const float* s, const float* b, const float* packed,
                   int64_t keys, int64_t j, float* y, const Epilogue& e, float* scratch) {
  if (packed) {
    gemm_packed_part(rows, n, columns, s, kColumns, packed, keys, j, y, n, e);
  } else {
    gemm_serial(false, false, rows, n, columns, s, kColumns, b + j * n, n, y, n, e, scratch);
  }
}

// Whether all of x are finite and at most `limit` away from 0.
bool are_within(const float* x, int64_t n, float limit) {
  i32v outside = {};
  for (int64_t i = 0; i < n; i += kLanes) outside |= ~(i32v)(abs(load_lanes(x + i, min(int64_t{kLanes}, n - i))) <= limit);
  return !any(outside);
}

// Whether none of x is NaN or infinity; -infinity may be.
bool are_below_infinity(const float* x, int64_t n) {
  i32v above = {};
  for (int64_t i = 0; i < n; i += kLanes) above |= ~(i32v)(load_lanes(x + i, min(int64_t{kLanes}, n - i)) < INFINITY);
  return !any(above);
}

float largest(const float* x, int64_t n) {
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
int64_t tile_scratch(bool transpose_a, bool transpose_b, const int64_t (&m)[2], const int64_t (&n)[2],
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
float weigh_row(float* s, int64_t n, Unseen unseen) {
  const float peak = row_max(s, n), shift = unseen == Unseen::kZero && peak == -INFINITY ? 0.0f : peak;
  const float total = row_exp_sum<true>(s, s, n, shift);
  if (total == 0.0f) return -INFINITY;
  const float scale = 1.0f / total;
  map(s, s, n, [=](f32v v) { return v * scale; });
  return shift + logf(total);
}

// One query against all keys.  s: a float for each key.
void attend_row(const Scores& sc, const float* q, const float* k, const float* v, int64_t head, int64_t i, float* y,
                float* log_sum, Unseen unseen, float* s) {
  const Heads& h = sc.heads;
  sc.row(q + i * h.depth, k, head, i, s);
  *log_sum = weigh_row(s, h.keys, unseen);
  if (sc.p > 0) sc.drop(head, i, 0, h.keys, s, s);
  memset(y, 0, sizeof(float) * h.width);
  for (int64_t j = 0; j < h.keys; ++j) add_scaled(y, v + j * h.width, h.width, s[j]);
}

// ---- forward ----

// Running softmax of a query: the peak and the sum of exponentials so far.
struct Running {
  float peak, sum;
};

// Turns a row of scores into weights relative to the new peak; returns what the sums so far shrink by.
float advance(Running* state, float* s, int64_t n) {
  const float peak = max(state->peak, row_max(s, n));
  const float shift = peak == -INFINITY ? 0.0f : peak;  // all hidden: exp(-inf) = 0
  const float shrink = state->peak == -INFINITY ? 0.0f : expf(state->peak - shift);
  state->sum = state->sum * shrink + row_exp_sum<true>(s, s, n, shift);
  state->peak = peak;
  return shrink;
}

// One tile of queries against all keys that they may see.  s: kRows * kColumns floats.
void attend_rows(const Scores& sc, const float* q, const float* k, const float* v, const Packs& packs, int64_t head,
                 int64_t i, int64_t rows, float* y, float* log_sum, Unseen unseen, float* s, float* scratch) {
  const Heads& h = sc.heads;
  Running state[kRows];
  for (int64_t r = 0; r < rows; ++r) state[r] = {-INFINITY, 0.0f};
  Epilogue epilogue;
  const int64_t end = sc.visible(i + rows);
  for (int64_t j = 0; j < end; j += kColumns) {
    const int64_t columns = min(kColumns, end - j);
    sc.tile(q, k, packs, head, i, rows, j, columns, s, scratch);
    for (int64_t r = 0; r < rows; ++r) {
      const float shrink = advance(&state[r], s + r * kColumns, columns);
      if (sc.p > 0) sc.drop(head, i + r, j, columns, s + r * kColumns, s + r * kColumns);
      float* row = y + r * h.width;
      if (j > 0 && shrink != 1.0f) map(row, row, h.width, [=](f32v x) { return x * shrink; });
    }
    epilogue.accumulate = j > 0;
    multiply_rows(rows, columns, h.width, s, v, packs.value_rows, h.keys, j, y, epilogue, scratch);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const float total = state[r].sum, scale = total == 0 && unseen == Unseen::kZero ? 0.0f : 1.0f / total;
    float* row = y + r * h.width;
    map(row, row, h.width, [=](f32v x) { return x * scale; });
    log_sum[r] = total == 0 ? -INFINITY : state[r].peak + logf(total);
    if (!are_within(row, h.width, FLT_MAX)) attend_row(sc, q, k, v, head, i + r, row, log_sum + r, unseen, s);
  }
}

// Floats of a tile of scores, or a row of them.
int64_t tile_size(const Heads& h) { return max(kRows * kColumns, round_up(h.keys, 16)); }

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

// in: query key value mask rng_key; out: y log_sum
KERNEL_FN(attention, f32) {
  const auto& a = attrs<myc_attention_attrs>(call);
  const Heads h = heads_of(input(call, 0), input(call, 1), input(call, 2));
  if (h.count * h.queries * h.keys * h.depth * h.width == 0) return MYC_E_UNSUPPORTED;
  const float *q = in<float>(call, 0), *k = in<float>(call, 1), *v = in<float>(call, 2);
  float *y = out<float>(call, 0), *log_sum = out<float>(call, 1);
  const PhiloxKey key = has_input(call, 4) ? philox_key(in<int64_t>(call, 4)) : PhiloxKey{};
  const Unseen unseen = static_cast<Unseen>(a.unseen);
  const Scores sc = scores_of(call, a, h, 3, input(call, 0), key);
  const int64_t m[2] = {min(kRows, h.queries), h.queries % kRows ? h.queries % kRows : kRows};
  const int64_t c[2] = {min(kColumns, h.keys), h.keys % kColumns ? h.keys % kColumns : kColumns};
  const int64_t d[2] = {h.depth, h.depth}, w[2] = {h.width, h.width};
  const int64_t product = max(tile_scratch(false, true, m, c, d), tile_scratch(false, false, m, w, c));
  const bool pack = Packs::pay(h);
  const int64_t keys_size = pack ? Packs::turned_size(h, h.depth) : 0;
  const int64_t values_size = pack ? Packs::rows_size(h, h.width) : 0;
  const int64_t tile = tile_size(h), each = tile + product + keys_size + values_size;
  const int64_t tiles = ceil_div(h.queries, kRows);
  Scratch scratch(call);
  float* memory = scratch.take<float>(max_workers(call) * each);
  if (!memory) return MYC_E_MEMORY;
  const int64_t work = kRows * h.keys * (h.depth + h.width) * 8;  // flops times 4
  parallel_for_worker(call, h.count * tiles, kMinParallelWork / (work + 1) + 1, [&](int64_t begin, int64_t end, int32_t worker) {
    float *s = memory + worker * each, *packed = s + tile + product;
    Packs packs;
    bool by_tiles = true;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t head = t / tiles, i = t % tiles * kRows, at = head * h.queries + i;
      const float *own_k = k + head * h.keys * h.depth, *own_v = v + head * h.keys * h.width;
      const float* own_q = q + head * h.queries * h.depth;
      if (sc.causal && (t == begin || i == 0)) by_tiles = sc.may_skip(own_q, own_k, own_v);
      if (!by_tiles) {
        for (int64_t r = i; r < min(i + kRows, h.queries); ++r)
          attend_row(sc, own_q, own_k, own_v, head, r, y + (at + r - i) * h.width, log_sum + at + r - i, unseen, s);
        continue;
      }
      if (pack && (t == begin || i == 0)) {
        packs.keys = Packs::turned(h, own_k, h.depth, packed);
        packs.value_rows = Packs::rows(h, own_v, h.width, packed + keys_size);
      }
      attend_rows(sc, own_q, own_k, own_v, packs, head, i, min(kRows, h.queries - i), y + at * h.width, log_sum + at,
                  unseen, s, s + tile);
    }
  });
  return MYC_OK;
}

// ---- gradient ----

struct HeadGradient {
  const float *dy, *q, *k, *v, *y, *log_sum;
  float *dq, *dk, *dv;
};

// What one query adds to the gradients, by the formula.  p, ds, kept: a float for each key.
void attention_grad_row(const Scores& sc, const HeadGradient& g, int64_t head, int64_t i, float* p, float* ds,
                        float* kept) {
  const Heads& h = sc.heads;
  const float *dy = g.dy + i * h.width, *q = g.q + i * h.depth;
  float* dq = g.dq + i * h.depth;
  sc.row(q, g.k, head, i, p);
  weigh_row(p, h.keys, g.log_sum[i] == -INFINITY ? Unseen::kZero : Unseen::kNan);
  for (int64_t j = 0; j < h.keys; ++j) ds[j] = dot(dy, g.v + j * h.width, h.width);
  if (sc.p > 0) {
    sc.drop(head, i, 0, h.keys, p, kept);
    sc.drop(head, i, 0, h.keys, ds, ds);
  }
  const float* weights = sc.p > 0 ? kept : p;
  const f32v center = splat(dot(ds, p, h.keys));
  map(ds, p, ds, h.keys, [=](f32v d, f32v weight) { return (d - center) * weight; });
  sc.clear_replaced(head, i, 0, h.keys, ds);
  map(ds, ds, h.keys, [&](f32v d) { return d * sc.scale; });
  memset(dq, 0, sizeof(float) * h.depth);
  for (int64_t j = 0; j < h.keys; ++j) {
    add_scaled(dq, g.k + j * h.depth, h.depth, ds[j]);
    add_scaled(g.dk + j * h.depth, q, h.depth, ds[j]);
    add_scaled(g.dv + j * h.width, dy, h.width, weights[j]);
  }
}

// Whether log_sum, a rounded number, still gives weights to four digits or more.
bool is_precise(float log_sum) { return log_sum == -INFINITY || fabsf(log_sum) <= 256.0f; }

// All tiles of one head.  s, ds, kept: kRows * kColumns floats each; packed: for the packs, or null.
//   P = exp(S - log_sum), dV += P^T dY, dP = dY V^T, dS = P (dP - rowsum(dY Y)) scale, dQ += dS K, dK += dS^T Q
void attention_grad_head(const Scores& sc, const HeadGradient& g, int64_t head, float* s, float* ds, float* kept,
                         float* packed, float* scratch) {
  const Heads& h = sc.heads;
  Packs packs;
  if (packed) {
    packs.keys = Packs::turned(h, g.k, h.depth, packed);
    packed += Packs::turned_size(h, h.depth);
    packs.values = Packs::turned(h, g.v, h.width, packed);
    packed += Packs::turned_size(h, h.width);
    packs.key_rows = Packs::rows(h, g.k, h.depth, packed);
  }
  Epilogue add;
  add.accumulate = true;
  for (int64_t i = 0; i < h.queries; i += kRows) {
    const int64_t rows = min(kRows, h.queries - i), end = sc.visible(i + rows);
    const float* dy = g.dy + i * h.width;
    float* dq = g.dq + i * h.depth;
    float dot[kRows];
    for (int64_t r = 0; r < rows; ++r)
      dot[r] = static_cast<float>(sum_of_products_about(dy + r * h.width, g.y + (i + r) * h.width, h.width, 0.0f));
    for (int64_t j = 0; j < end; j += kColumns) {
      const int64_t columns = min(kColumns, end - j);
      sc.tile(g.q, g.k, packs, head, i, rows, j, columns, s, scratch);
      multiply_turned(rows, columns, h.width, dy, g.v, packs.values, j, ds, {}, scratch);
      for (int64_t r = 0; r < rows; ++r) {
        float *p = s + r * kColumns, *d = ds + r * kColumns;
        const float log_sum = g.log_sum[i + r];
        const f32v shift = splat(log_sum == -INFINITY ? 0.0f : log_sum), center = splat(dot[r]), scale = splat(sc.scale);
        map(p, p, columns, [=](f32v x) { return exp(x - shift); });
        if (sc.p > 0) {
          sc.drop(head, i + r, j, columns, p, kept + r * kColumns);
          sc.drop(head, i + r, j, columns, d, d);
        }
        map(p, d, d, columns, [=](f32v weight, f32v x) { return weight * (x - center) * scale; });
        sc.clear_replaced(head, i + r, j, columns, d);
        if (!is_precise(log_sum)) {  // it comes on its own
          memset(p, 0, sizeof(float) * columns);
          memset(d, 0, sizeof(float) * columns);
          if (sc.p > 0) memset(kept + r * kColumns, 0, sizeof(float) * columns);
        }
      }
      const float* weights = sc.p > 0 ? kept : s;
      gemm_serial(true, false, columns, h.width, rows, weights, kColumns, dy, h.width, g.dv + j * h.width, h.width, add,
                  scratch);
      Epilogue onto;
      onto.accumulate = j > 0;
      multiply_rows(rows, columns, h.depth, ds, g.k, packs.key_rows, h.keys, j, dq, onto, scratch);
      gemm_serial(true, false, columns, h.depth, rows, ds, kColumns, g.q + i * h.depth, h.depth, g.dk + j * h.depth,
                  h.depth, add, scratch);
    }
  }
}

// in: dy query key value y log_sum mask rng_key; out: d_query d_key d_value
KERNEL_FN(attention_grad, f32) {
  const auto& a = attrs<myc_attention_grad_attrs>(call);
  const Heads h = heads_of(input(call, 1), input(call, 2), input(call, 3));
  if (h.count * h.queries * h.keys * h.depth * h.width == 0) return MYC_E_UNSUPPORTED;
  const PhiloxKey key = has_input(call, 7) ? philox_key(in<int64_t>(call, 7)) : PhiloxKey{};
  const Scores sc = scores_of(call, a, h, 6, input(call, 1), key);
  const int64_t m[2] = {min(kRows, h.queries), h.queries % kRows ? h.queries % kRows : kRows};
  const int64_t c[2] = {min(kColumns, h.keys), h.keys % kColumns ? h.keys % kColumns : kColumns};
  const int64_t d[2] = {h.depth, h.depth}, w[2] = {h.width, h.width};
  int64_t product = max(tile_scratch(false, true, m, c, d), tile_scratch(false, true, m, c, w));
  product = max(product, max(tile_scratch(true, false, c, w, m), tile_scratch(true, false, c, d, m)));
  product = max(product, tile_scratch(false, false, m, d, c));
  const int64_t packs = !Packs::pay(h) ? 0
                                       : Packs::turned_size(h, h.depth) + Packs::turned_size(h, h.width) +
                                             Packs::rows_size(h, h.depth);
  const int64_t tile = tile_size(h), each = 3 * tile + product + packs;
  Scratch scratch(call);
  float* memory = scratch.take<float>(max_workers(call) * each);
  if (!memory) return MYC_E_MEMORY;
  parallel_for_worker(call, h.count, 1, [&](int64_t begin, int64_t end, int32_t worker) {
    float* s = memory + worker * each;
    for (int64_t head = begin; head < end; ++head) {
      const int64_t rows = head * h.queries, columns = head * h.keys;
      const HeadGradient g = {in<float>(call, 0) + rows * h.width,    in<float>(call, 1) + rows * h.depth,
                              in<float>(call, 2) + columns * h.depth, in<float>(call, 3) + columns * h.width,
                              in<float>(call, 4) + rows * h.width,    in<float>(call, 5) + rows,
                              out<float>(call, 0) + rows * h.depth,   out<float>(call, 1) + columns * h.depth,
                              out<float>(call, 2) + columns * h.width};
      bool by_tiles = !sc.causal || (sc.may_skip(g.q, g.k, g.v) && are_within(g.dy, h.queries * h.width, kModerate));
      const auto clear = [&] {
        memset(g.dk, 0, sizeof(float) * h.keys * h.depth);
        memset(g.dv, 0, sizeof(float) * h.keys * h.width);
      };
      const auto add_row = [&](int64_t i) { attention_grad_row(sc, g, head, i, s, s + tile, s + 2 * tile); };
      clear();
      if (by_tiles) {
        attention_grad_head(sc, g, head, s, s + tile, s + 2 * tile, packs ? s + 3 * tile + product : nullptr,
                            s + 3 * tile);
        for (int64_t i = 0; i < h.queries; ++i)
          if (!is_precise(g.log_sum[i])) add_row(i);
        by_tiles = are_within(g.dq, h.queries * h.depth, FLT_MAX) && are_within(g.dk, h.keys * h.depth, FLT_MAX) &&
                   are_within(g.dv, h.keys * h.width, FLT_MAX);
      }
      if (!by_tiles) {
        clear();
        for (int64_t i = 0; i < h.queries; ++i) add_row(i);
      }
    }
  });
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
