// Gradient of scaled dot-product attention, by tiles of scores as attention.cc has them; a head is one piece of work.
#include <float.h>

#include "nn_ops/attention_scores.h"

namespace mycelia::MYC_ISA {

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
