// Recurrent layers over a sequence and their gradients, float32.  The inputs of all steps go through one matrix product;
// each step then costs one product with the recurrent weights, packed once, and one fused pass over the gates.  Sequences
// of a batch are independent, so threads take rows of the batch through all steps without meeting.
// Flops: 2 T B G (I + H) forward for G gate rows, twice that backward.
#include "gemm/gemm.h"
#include "gemm/micro.h"
#include "reductions/sums.h"
#include "simd/math.h"

namespace mycelia::MYC_ISA {

// Extents of a layer: G gate rows are 4H (LSTM), 3H (GRU) or H (plain).
struct Extents {
  int64_t steps, batch, inputs, hidden, gates;
  int64_t rows() const { return steps * batch; }
  // Floats between rows of the gates' gradients: with a power of two all rows would fight for the same cache sets.
  int64_t stride() const { return round_up(gates, 16) + 16; }
  bool empty() const { return steps == 0 || batch == 0 || inputs == 0 || hidden == 0; }
};

inline Extents extents_of(const myc_tensor& x, const myc_tensor& w_hh) {
  return {x.shape[0], x.shape[1], x.shape[2], w_hh.shape[1], w_hh.shape[0]};
}

// body(first row, rows) over parts of the batch.  Parts are whole blocks of the matrix kernel, so that a row is computed
// in the same way for any number of threads.
template <class Body>
MYC_INLINE void for_batch(const myc_call* call, const Extents& e, const Body& body) {
  const int64_t work = e.steps * e.gates * e.hidden * 8 * kBlockRows;  // flops times 4 of a block of sequences
  parallel_for(call, ceil_div(e.batch, kBlockRows), kMinParallelWork / (work + 1) + 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kBlockRows;
    body(first, min(e.batch, end * kBlockRows) - first);
  });
}

// f(i, lanes) for the vectors of [0, n).
template <class F>
MYC_INLINE void for_lanes(int64_t n, const F& f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, int64_t{kLanes});
  if (i < n) f(i, n - i);
}

// gates[T B, G] = x w_ih^T + bias.
int32_t input_products(const myc_call* call, const Extents& e, const float* x, const float* w_ih, const float* bias,
                       float* gates) {
  Epilogue epilogue;
  epilogue.column_bias = bias;
  return gemm(call->ctx, false, true, e.rows(), e.gates, e.inputs, x, e.inputs, w_ih, e.inputs, gates, e.gates, epilogue);
}

// Recurrent weights as the matrix B of h w_hh^T (forward) or d_gates w_hh (backward).
float* pack_recurrent(Scratch* scratch, const Extents& e, const float* w_hh, bool forward) {
  const int64_t k = forward ? e.hidden : e.gates, n = forward ? e.gates : e.hidden;
  float* packed = scratch->take<float>(packed_size(k, n));
  if (packed) pack_b(forward, k, n, w_hh, e.hidden, packed);
  return packed;
}

// The sum of both biases (each may be absent); null when there is none or, with *failed set, no memory.
const float* joint_bias(Scratch* scratch, int64_t gates, const float* b_ih, const float* b_hh, bool* failed) {
  *failed = false;
  if (!b_ih || !b_hh) return b_ih ? b_ih : b_hh;
  float* sum = scratch->take<float>(gates);
  *failed = sum == nullptr;
  if (sum) map(b_ih, b_hh, sum, gates, [](f32v a, f32v b) { return a + b; });
  return sum;
}

// Gradients that need all steps: inputs and both weight matrices.  d_input and d_hidden are [T, B, G], rows `ld` apart.
int32_t weight_gradients(const myc_call* call, const Extents& e, const float* d_input, const float* d_hidden, int64_t ld,
                         const float* x, const float* w_ih, const float* h0, const float* y, float* d_x, float* d_w_ih,
                         float* d_w_hh) {
  Epilogue add;
  add.accumulate = true;
  int32_t status = gemm(call->ctx, false, false, e.rows(), e.inputs, e.gates, d_input, ld, w_ih, e.inputs, d_x, e.inputs);
  if (status == MYC_OK) {
    status = gemm(call->ctx, true, false, e.gates, e.inputs, e.rows(), d_input, ld, x, e.inputs, d_w_ih, e.inputs);
  }
  if (status == MYC_OK) {
    status = gemm(call->ctx, true, false, e.gates, e.hidden, e.batch, d_hidden, ld, h0, e.hidden, d_w_hh, e.hidden);
  }
  if (status == MYC_OK && e.steps > 1) {  // step t started from y[t - 1]
    status = gemm(call->ctx, true, false, e.gates, e.hidden, e.rows() - e.batch, d_hidden + e.batch * ld, ld, y, e.hidden,
                  d_w_hh, e.hidden, add);
  }
  return status;
}

constexpr int64_t kStretch = 128;

// sums[n] = column sums of a matrix whose rows are `ld` apart; eight vectors of a row at a time.
void column_sums(const float* a, int64_t ld, int64_t rows, int64_t n, float* sums) {
  int64_t i = 0;
  for (; i + 8 * kLanes <= n; i += 8 * kLanes) {
    f32v total[8] = {};
    for (int64_t first = 0; first < rows; first += kStretch) {  // partial sums keep digits that one long chain loses
      f32v s[8] = {};
      for (int64_t r = first; r < min(rows, first + kStretch); ++r) {
#pragma GCC unroll 8
        for (int v = 0; v < 8; ++v) s[v] += load(a + r * ld + i + v * kLanes);
      }
      for (int v = 0; v < 8; ++v) total[v] += s[v];
    }
    for (int v = 0; v < 8; ++v) store(sums + i + v * kLanes, total[v]);
  }
  for_lanes(n - i, [&](int64_t k, int64_t lanes) {
    f32v s = {};
    for (int64_t r = 0; r < rows; ++r) s += load_lanes(a + r * ld + i + k, lanes);
    store_lanes(sums + i + k, s, lanes);
  });
}

void copy_or_zero(float* to, const float* from, int64_t n) {
  if (from) {
    memcpy(to, from, sizeof(float) * n);
  } else {
    memset(to, 0, sizeof(float) * n);
  }
}

MYC_INLINE f32v slope_of_sigmoid(f32v y) { return y * (1.0f - y); }
MYC_INLINE f32v slope_of_tanh(f32v y) { return 1.0f - y * y; }

// ---- LSTM: gates i, f, g, o ----

// Activates the gates of one row in place and makes the new c and h.
void lstm_row(float* z, const float* c_before, float* c, float* h, int64_t n) {
  for_lanes(n, [&](int64_t k, int64_t lanes) {
    const f32v i = sigmoid(load_lanes(z + k, lanes)), f = sigmoid(load_lanes(z + n + k, lanes));
    const f32v g = tanh(load_lanes(z + 2 * n + k, lanes)), o = sigmoid(load_lanes(z + 3 * n + k, lanes));
    const f32v next = f * load_lanes(c_before + k, lanes) + i * g;
    store_lanes(z + k, i, lanes), store_lanes(z + n + k, f, lanes);
    store_lanes(z + 2 * n + k, g, lanes), store_lanes(z + 3 * n + k, o, lanes);
    store_lanes(c + k, next, lanes);
    store_lanes(h + k, o * tanh(next), lanes);
  });
}

KERNEL_FN(lstm_layer, f32) {
  const Extents e = extents_of(input(call, 0), input(call, 4));
  if (e.empty()) return MYC_E_UNSUPPORTED;
  const float *x = in<float>(call, 0), *h0 = in<float>(call, 1), *c0 = in<float>(call, 2);
  float *y = out<float>(call, 0), *gates = out<float>(call, 3), *cells = out<float>(call, 4);
  const int64_t state = e.batch * e.hidden, step = e.batch * e.gates;
  Scratch scratch(call);
  bool failed;
  const float* bias = joint_bias(&scratch, e.gates, in<float>(call, 5), in<float>(call, 6), &failed);
  const float* packed = pack_recurrent(&scratch, e, in<float>(call, 4), true);
  if (failed || !packed) return MYC_E_MEMORY;
  if (const int32_t status = input_products(call, e, x, in<float>(call, 3), bias, gates)) return status;
  Epilogue add;
  add.accumulate = true;
  for_batch(call, e, [&](int64_t first, int64_t rows) {
    for (int64_t t = 0; t < e.steps; ++t) {
      const float* h = t ? y + (t - 1) * state : h0;
      const float* c = t ? cells + (t - 1) * state : c0;
      float* z = gates + t * step;
      gemm_packed(rows, e.gates, e.hidden, h + first * e.hidden, e.hidden, packed, z + first * e.gates, e.gates, add);
      for (int64_t b = first; b < first + rows; ++b) {
        const int64_t at = b * e.hidden;
        lstm_row(z + b * e.gates, c + at, cells + t * state + at, y + t * state + at, e.hidden);
      }
    }
  });
  memcpy(out<float>(call, 1), y + (e.steps - 1) * state, sizeof(float) * state);
  memcpy(out<float>(call, 2), cells + (e.steps - 1) * state, sizeof(float) * state);
  return MYC_OK;
}

// Gradients of lstm_row: from those of h and c to those of the gates' inputs (d) and of c before.
void lstm_grad_row(const float* z, const float* c_before, const float* c, const float* dh, float* dc, float* d, int64_t n) {
  for_lanes(n, [&](int64_t k, int64_t lanes) {
    const f32v i = load_lanes(z + k, lanes), f = load_lanes(z + n + k, lanes);
    const f32v g = load_lanes(z + 2 * n + k, lanes), o = load_lanes(z + 3 * n + k, lanes);
    const f32v squashed = tanh(load_lanes(c + k, lanes)), d_h = load_lanes(dh + k, lanes);
    const f32v d_c = load_lanes(dc + k, lanes) + d_h * o * slope_of_tanh(squashed);
    store_lanes(d + k, d_c * g * slope_of_sigmoid(i), lanes);
    store_lanes(d + n + k, d_c * load_lanes(c_before + k, lanes) * slope_of_sigmoid(f), lanes);
    store_lanes(d + 2 * n + k, d_c * i * slope_of_tanh(g), lanes);
    store_lanes(d + 3 * n + k, d_h * squashed * slope_of_sigmoid(o), lanes);
    store_lanes(dc + k, d_c * f, lanes);
  });
}

MYC_INLINE void add_rows(float* to, const float* from, int64_t n) {
  map(to, from, to, n, [](f32v a, f32v b) { return a + b; });
}

// in: x h0 c0 w_ih w_hh y gates cells b_ih b_hh d_y d_h d_c d_cells; out: d_x d_h0 d_c0 d_w_ih d_w_hh d_bias
KERNEL_FN(lstm_layer_grad, f32) {
  const Extents e = extents_of(input(call, 0), input(call, 4));
  if (e.empty()) return MYC_E_UNSUPPORTED;
  const float *x = in<float>(call, 0), *h0 = in<float>(call, 1), *c0 = in<float>(call, 2), *w_ih = in<float>(call, 3);
  const float *y = in<float>(call, 5), *gates = in<float>(call, 6), *cells = in<float>(call, 7);
  const float *d_y = in<float>(call, 10), *d_cells = in<float>(call, 13);
  float *dh = out<float>(call, 1), *dc = out<float>(call, 2);  // the running gradients end as those of h0 and c0
  const int64_t state = e.batch * e.hidden, step = e.batch * e.gates, ld = e.stride();
  Scratch scratch(call);
  float* d_gates = scratch.take<float>(e.rows() * ld);
  const float* packed = pack_recurrent(&scratch, e, in<float>(call, 4), false);
  if (!d_gates || !packed) return MYC_E_MEMORY;
  copy_or_zero(dh, in<float>(call, 11), state);
  copy_or_zero(dc, in<float>(call, 12), state);
  for_batch(call, e, [&](int64_t first, int64_t rows) {
    const int64_t offset = first * e.hidden, n = rows * e.hidden;
    for (int64_t t = e.steps - 1; t >= 0; --t) {
      if (d_y) add_rows(dh + offset, d_y + t * state + offset, n);
      if (d_cells) add_rows(dc + offset, d_cells + t * state + offset, n);
      const float* c_before = t ? cells + (t - 1) * state : c0;
      for (int64_t b = first; b < first + rows; ++b) {
        const int64_t at = b * e.hidden;
        lstm_grad_row(gates + t * step + b * e.gates, c_before + at, cells + t * state + at, dh + at, dc + at,
                      d_gates + (t * e.batch + b) * ld, e.hidden);
      }
      gemm_packed(rows, e.hidden, e.gates, d_gates + (t * e.batch + first) * ld, ld, packed, dh + offset, e.hidden, {});
    }
  });
  column_sums(d_gates, ld, e.rows(), e.gates, out<float>(call, 5));
  return weight_gradients(call, e, d_gates, d_gates, ld, x, w_ih, h0, y, out<float>(call, 0), out<float>(call, 3),
                          out<float>(call, 4));
}

// ---- GRU: gates r, z, n; saved are r, z, n and the recurrent part of n before the reset ----

void gru_row(const float* a, const float* u, const float* h_before, float* saved, float* h, int64_t m) {
  for_lanes(m, [&](int64_t k, int64_t lanes) {
    const f32v r = sigmoid(load_lanes(a + k, lanes) + load_lanes(u + k, lanes));
    const f32v z = sigmoid(load_lanes(a + m + k, lanes) + load_lanes(u + m + k, lanes));
    const f32v u_n = load_lanes(u + 2 * m + k, lanes);
    const f32v n = tanh(load_lanes(a + 2 * m + k, lanes) + r * u_n);
    store_lanes(saved + k, r, lanes), store_lanes(saved + m + k, z, lanes);
    store_lanes(saved + 2 * m + k, n, lanes), store_lanes(saved + 3 * m + k, u_n, lanes);
    store_lanes(h + k, n + z * (load_lanes(h_before + k, lanes) - n), lanes);
  });
}

KERNEL_FN(gru_layer, f32) {
  const Extents e = extents_of(input(call, 0), input(call, 3));
  if (e.empty()) return MYC_E_UNSUPPORTED;
  const float *x = in<float>(call, 0), *h0 = in<float>(call, 1), *b_hh = in<float>(call, 5);
  float *y = out<float>(call, 0), *gates = out<float>(call, 2);
  const int64_t state = e.batch * e.hidden, step = e.batch * e.gates, saved = e.batch * 4 * e.hidden;
  Scratch scratch(call);
  float *from_input = scratch.take<float>(e.steps * step), *from_state = scratch.take<float>(step);
  const float* packed = pack_recurrent(&scratch, e, in<float>(call, 3), true);
  if (!from_input || !from_state || !packed) return MYC_E_MEMORY;
  if (const int32_t status = input_products(call, e, x, in<float>(call, 2), in<float>(call, 4), from_input)) return status;
  Epilogue biased;
  biased.column_bias = b_hh;
  for_batch(call, e, [&](int64_t first, int64_t rows) {
    for (int64_t t = 0; t < e.steps; ++t) {
      const float* h = t ? y + (t - 1) * state : h0;
      gemm_packed(rows, e.gates, e.hidden, h + first * e.hidden, e.hidden, packed, from_state + first * e.gates, e.gates,
                  biased);
      for (int64_t b = first; b < first + rows; ++b) {
        gru_row(from_input + t * step + b * e.gates, from_state + b * e.gates, h + b * e.hidden,
                gates + t * saved + b * 4 * e.hidden, y + t * state + b * e.hidden, e.hidden);
      }
    }
  });
  memcpy(out<float>(call, 1), y + (e.steps - 1) * state, sizeof(float) * state);
  return MYC_OK;
}

// dh becomes the part of the gradient of h before that does not pass the recurrent weights.
void gru_grad_row(const float* saved, const float* h_before, float* dh, float* d_input, float* d_hidden, int64_t m) {
  for_lanes(m, [&](int64_t k, int64_t lanes) {
    const f32v r = load_lanes(saved + k, lanes), z = load_lanes(saved + m + k, lanes);
    const f32v n = load_lanes(saved + 2 * m + k, lanes), u_n = load_lanes(saved + 3 * m + k, lanes);
    const f32v d = load_lanes(dh + k, lanes);
    const f32v d_n = d * (1.0f - z) * slope_of_tanh(n);
    const f32v d_r = d_n * u_n * slope_of_sigmoid(r);
    const f32v d_z = d * (load_lanes(h_before + k, lanes) - n) * slope_of_sigmoid(z);
    store_lanes(d_input + k, d_r, lanes), store_lanes(d_hidden + k, d_r, lanes);
    store_lanes(d_input + m + k, d_z, lanes), store_lanes(d_hidden + m + k, d_z, lanes);
    store_lanes(d_input + 2 * m + k, d_n, lanes), store_lanes(d_hidden + 2 * m + k, d_n * r, lanes);
    store_lanes(dh + k, d * z, lanes);
  });
}

// in: x h0 w_ih w_hh y gates b_ih b_hh d_y d_h; out: d_x d_h0 d_w_ih d_w_hh d_b_ih d_b_hh
KERNEL_FN(gru_layer_grad, f32) {
  const Extents e = extents_of(input(call, 0), input(call, 3));
  if (e.empty()) return MYC_E_UNSUPPORTED;
  const float *x = in<float>(call, 0), *h0 = in<float>(call, 1), *w_ih = in<float>(call, 2);
  const float *y = in<float>(call, 4), *gates = in<float>(call, 5), *d_y = in<float>(call, 8);
  float* dh = out<float>(call, 1);
  const int64_t state = e.batch * e.hidden, ld = e.stride(), saved = e.batch * 4 * e.hidden;
  Scratch scratch(call);
  float *d_input = scratch.take<float>(e.rows() * ld), *d_hidden = scratch.take<float>(e.rows() * ld);
  const float* packed = pack_recurrent(&scratch, e, in<float>(call, 3), false);
  if (!d_input || !d_hidden || !packed) return MYC_E_MEMORY;
  copy_or_zero(dh, in<float>(call, 9), state);
  Epilogue add;
  add.accumulate = true;
  for_batch(call, e, [&](int64_t first, int64_t rows) {
    const int64_t offset = first * e.hidden;
    for (int64_t t = e.steps - 1; t >= 0; --t) {
      if (d_y) add_rows(dh + offset, d_y + t * state + offset, rows * e.hidden);
      const float* h_before = t ? y + (t - 1) * state : h0;
      for (int64_t b = first; b < first + rows; ++b) {
        const int64_t row = (t * e.batch + b) * ld;
        gru_grad_row(gates + t * saved + b * 4 * e.hidden, h_before + b * e.hidden, dh + b * e.hidden, d_input + row,
                     d_hidden + row, e.hidden);
      }
      gemm_packed(rows, e.hidden, e.gates, d_hidden + (t * e.batch + first) * ld, ld, packed, dh + offset, e.hidden, add);
    }
  });
  column_sums(d_input, ld, e.rows(), e.gates, out<float>(call, 4));
  column_sums(d_hidden, ld, e.rows(), e.gates, out<float>(call, 5));
  return weight_gradients(call, e, d_input, d_hidden, ld, x, w_ih, h0, y, out<float>(call, 0), out<float>(call, 2),
                          out<float>(call, 3));
}

// ---- plain RNN ----

KERNEL_FN(rnn_layer, f32) {
  const Extents e = extents_of(input(call, 0), input(call, 3));
  if (e.empty()) return MYC_E_UNSUPPORTED;
  const bool relu = attrs<myc_rnn_layer_attrs>(call).nonlinearity;
  const float *x = in<float>(call, 0), *h0 = in<float>(call, 1);
  float* y = out<float>(call, 0);
  const int64_t state = e.batch * e.hidden;
  Scratch scratch(call);
  bool failed;
  const float* bias = joint_bias(&scratch, e.gates, in<float>(call, 4), in<float>(call, 5), &failed);
  const float* packed = pack_recurrent(&scratch, e, in<float>(call, 3), true);
  if (failed || !packed) return MYC_E_MEMORY;
  if (const int32_t status = input_products(call, e, x, in<float>(call, 2), bias, y)) return status;
  Epilogue epilogue;
  epilogue.accumulate = true;
  if (relu) epilogue.low = 0;
  for_batch(call, e, [&](int64_t first, int64_t rows) {
    const int64_t offset = first * e.hidden;
    for (int64_t t = 0; t < e.steps; ++t) {
      const float* h = t ? y + (t - 1) * state : h0;
      float* z = y + t * state + offset;
      gemm_packed(rows, e.hidden, e.hidden, h + offset, e.hidden, packed, z, e.hidden, epilogue);
      if (!relu) map(z, z, rows * e.hidden, [](f32v v) { return tanh(v); });
    }
  });
  memcpy(out<float>(call, 1), y + (e.steps - 1) * state, sizeof(float) * state);
  return MYC_OK;
}

// in: x h0 w_ih w_hh y b_ih b_hh d_y d_h; out: d_x d_h0 d_w_ih d_w_hh d_bias
KERNEL_FN(rnn_layer_grad, f32) {
  const Extents e = extents_of(input(call, 0), input(call, 3));
  if (e.empty()) return MYC_E_UNSUPPORTED;
  const bool relu = attrs<myc_rnn_layer_grad_attrs>(call).nonlinearity;
  const float *x = in<float>(call, 0), *h0 = in<float>(call, 1), *w_ih = in<float>(call, 2);
  const float *y = in<float>(call, 4), *d_y = in<float>(call, 7);
  float* dh = out<float>(call, 1);
  const int64_t state = e.batch * e.hidden;
  Scratch scratch(call);
  float* d_gates = scratch.take<float>(e.steps * state);
  const float* packed = pack_recurrent(&scratch, e, in<float>(call, 3), false);
  if (!d_gates || !packed) return MYC_E_MEMORY;
  copy_or_zero(dh, in<float>(call, 8), state);
  for_batch(call, e, [&](int64_t first, int64_t rows) {
    const int64_t offset = first * e.hidden, n = rows * e.hidden;
    for (int64_t t = e.steps - 1; t >= 0; --t) {
      if (d_y) add_rows(dh + offset, d_y + t * state + offset, n);
      float* d = d_gates + t * state + offset;
      map(dh + offset, y + t * state + offset, d, n, [=](f32v g, f32v h) {
        return relu ? select(h > 0.0f, g, f32v{}) : g * slope_of_tanh(h);
      });
      gemm_packed(rows, e.hidden, e.hidden, d, e.hidden, packed, dh + offset, e.hidden, {});
    }
  });
  column_sums(d_gates, e.gates, e.rows(), e.gates, out<float>(call, 4));
  return weight_gradients(call, e, d_gates, d_gates, e.gates, x, w_ih, h0, y, out<float>(call, 0), out<float>(call, 2),
                          out<float>(call, 3));
}

}  // namespace mycelia::MYC_ISA
