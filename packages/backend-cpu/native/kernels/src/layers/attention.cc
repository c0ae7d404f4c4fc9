// Scaled dot-product attention and its gradient, float32, by tiles: scores exist only kRows x kColumns at a time
// (the online softmax of Milakov and Gimelshein 2018, tiles as in Dao et al. 2022).  A tile of queries of one head is
// one piece of work.  Flops: 2 T S (D + E) forward, 2 T S (3 D + 2 E) backward; traffic is that of the operands.
#include "gemm/gemm.h"
#include "randomness/philox.h"
#include "reductions/softmax_row.h"

namespace mycelia::MYC_ISA {

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

// What both directions know about the scores.
struct Scores {
  Heads heads;
  Mask mask;
  float scale;
  bool causal;
  PhiloxKey key;
  double p;

  // Keys that the queries before `end` may see.
  int64_t visible(int64_t end) const { return causal ? min(heads.keys, end) : heads.keys; }

  // s[rows, columns] (leading dimension kColumns) = scale q k^T + mask for queries from i and keys from j.
  void tile(const float* q, const float* k, const Packs& packs, int64_t head, int64_t i, int64_t rows, int64_t j,
            int64_t columns, float* s, float* scratch) const {
    Epilogue scaled;
    scaled.scale = scale;
    multiply_turned(rows, columns, heads.depth, q + i * heads.depth, k, packs.keys, j, s, scaled, scratch);
    for (int64_t r = 0; r < rows; ++r) {
      float* row = s + r * kColumns;
      if (mask.data) {
        const float* m = mask.row(head, i + r) + j * mask.column_stride;
        if (mask.column_stride) {
          map(row, m, row, columns, [](f32v v, f32v add) { return v + add; });
        } else {
          const f32v add = splat(*m);
          map(row, row, columns, [=](f32v v) { return v + add; });
        }
      }
      if (causal)
        for (int64_t c = max(int64_t{0}, i + r + 1 - j); c < columns; ++c) row[c] = -INFINITY;
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
                 int64_t i, int64_t rows, float* y, float* log_sum, float* s, float* scratch) {
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
    const float total = state[r].sum, scale = total > 0 || total != total ? 1.0f / total : 0.0f;
    float* row = y + r * h.width;
    map(row, row, h.width, [=](f32v x) { return x * scale; });
    log_sum[r] = total > 0 || total != total ? state[r].peak + logf(total) : -INFINITY;
  }
}

// in: query key value mask rng_key; out: y log_sum
KERNEL_FN(attention, f32) {
  const auto& a = attrs<myc_attention_attrs>(call);
  const Heads h = heads_of(input(call, 0), input(call, 1), input(call, 2));
  if (h.count * h.queries * h.keys * h.depth * h.width == 0) return MYC_E_UNSUPPORTED;
  const float *q = in<float>(call, 0), *k = in<float>(call, 1), *v = in<float>(call, 2);
  float *y = out<float>(call, 0), *log_sum = out<float>(call, 1);
  const PhiloxKey key = has_input(call, 4) ? philox_key(in<int64_t>(call, 4)) : PhiloxKey{};
  const Scores sc = {h, Mask(call, 3, input(call, 0)), static_cast<float>(a.scale), a.is_causal != 0, key, a.p};
  const int64_t m[2] = {min(kRows, h.queries), h.queries % kRows ? h.queries % kRows : kRows};
  const int64_t c[2] = {min(kColumns, h.keys), h.keys % kColumns ? h.keys % kColumns : kColumns};
  const int64_t d[2] = {h.depth, h.depth}, w[2] = {h.width, h.width};
  const int64_t product = max(tile_scratch(false, true, m, c, d), tile_scratch(false, false, m, w, c));
  const bool pack = Packs::pay(h);
  const int64_t keys_size = pack ? Packs::turned_size(h, h.depth) : 0;
  const int64_t values_size = pack ? Packs::rows_size(h, h.width) : 0;
  const int64_t each = kRows * kColumns + product + keys_size + values_size, tiles = ceil_div(h.queries, kRows);
  Scratch scratch(call);
  float* memory = scratch.take<float>(max_workers(call) * each);
  if (!memory) return MYC_E_MEMORY;
  const int64_t work = kRows * h.keys * (h.depth + h.width) * 8;  // flops times 4
  parallel_for_worker(call, h.count * tiles, kMinParallelWork / (work + 1) + 1, [&](int64_t begin, int64_t end, int32_t worker) {
    float *s = memory + worker * each, *packed = s + kRows * kColumns + product;
    Packs packs;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t head = t / tiles, i = t % tiles * kRows, at = head * h.queries + i;
      const float *own_k = k + head * h.keys * h.depth, *own_v = v + head * h.keys * h.width;
      if (pack && (t == begin || i == 0)) {
        packs.keys = Packs::turned(h, own_k, h.depth, packed);
        packs.value_rows = Packs::rows(h, own_v, h.width, packed + keys_size);
      }
      attend_rows(sc, q + head * h.queries * h.depth, own_k, own_v, packs, head, i, min(kRows, h.queries - i),
                  y + at * h.width, log_sum + at, s, s + kRows * kColumns);
    }
  });
  return MYC_OK;
}

// ---- gradient ----

struct HeadGradient {
  const float *dy, *q, *k, *v, *y, *log_sum;
  float *dq, *dk, *dv;
};

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
  memset(g.dk, 0, sizeof(float) * h.keys * h.depth);
  memset(g.dv, 0, sizeof(float) * h.keys * h.width);
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
  const Scores sc = {h, Mask(call, 6, input(call, 1)), static_cast<float>(a.scale), a.is_causal != 0, key, a.p};
  const int64_t m[2] = {min(kRows, h.queries), h.queries % kRows ? h.queries % kRows : kRows};
  const int64_t c[2] = {min(kColumns, h.keys), h.keys % kColumns ? h.keys % kColumns : kColumns};
  const int64_t d[2] = {h.depth, h.depth}, w[2] = {h.width, h.width};
  int64_t product = max(tile_scratch(false, true, m, c, d), tile_scratch(false, true, m, c, w));
  product = max(product, max(tile_scratch(true, false, c, w, m), tile_scratch(true, false, c, d, m)));
  product = max(product, tile_scratch(false, false, m, d, c));
  const int64_t packs = !Packs::pay(h) ? 0
                                       : Packs::turned_size(h, h.depth) + Packs::turned_size(h, h.width) +
                                             Packs::rows_size(h, h.depth);
  const int64_t tile = kRows * kColumns, each = 3 * tile + product + packs;
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
      attention_grad_head(sc, g, head, s, s + tile, s + 2 * tile, packs ? s + 3 * tile + product : nullptr,
                          s + 3 * tile);
    }
  });
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
