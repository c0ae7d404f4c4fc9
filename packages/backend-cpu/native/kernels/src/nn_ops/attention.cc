// Scaled dot-product attention and its gradient, float32, by tiles: scores exist only kRows x kColumns at a time
// (the online softmax of Milakov and Gimelshein 2018, tiles as in Dao et al. 2022).  A tile of queries of one head is
// one piece of work.  Flops: 2 T S (D + E) forward, 2 T S (3 D + 2 E) backward; traffic is that of the operands.
// Tiles give what the plain formula gives as long as results are finite and what they leave out has weights of 0.  Where
// that does not hold, queries are computed again by the formula, a whole row of weights at a time.
#include <float.h>

#include "nn_ops/attention_scores.h"

namespace mycelia::MYC_ISA {

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

}  // namespace mycelia::MYC_ISA
