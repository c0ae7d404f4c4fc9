// Recurrent layers.
#include <algorithm>

#include "custom.h"

namespace mycelia::lite {

using namespace schema;

namespace {

// Blocks of rows of a [.., rows, ..] value along its first axis, in another order.
int reordered(Planner& p, int value, const std::vector<int>& order) {
  if (!p.ok()) return 0;
  const Type type = p.type(value);
  const int64_t rows = type.shape[0] / static_cast<int64_t>(order.size());
  std::vector<int> blocks;
  for (const int block : order) blocks.push_back(sliced_along(p, value, 0, block * rows, rows));
  return p.emit("concat", blocks, myc_concat_attrs{0}, type);
}

// One of the slices of a value along its first axis, without that axis.
int slice_of(Planner& p, int value, int64_t index) {
  if (!p.ok()) return 0;
  const Type type = p.type(value);
  return p.view(sliced_along(p, value, 0, index, 1), {type.shape.begin() + 1, type.shape.end()});
}

bool is(Planner& p, int value, const std::vector<int64_t>& shape, const char* what) {
  if (p.ok() && p.type(value).shape != shape)
    p.fail(kInferFailed, std::string(what) + " " + text_of(p.type(value)) + " must be " + text_of({p.type(value).dtype, shape}));
  return p.ok();
}

// Sets the results of a layer: sequences [T, 1, B, H] and states [1, B, H] of the directions.
void join_directions(Planner& p, const std::vector<int>* outputs, size_t count) {
  for (size_t k = 0; k < std::min(count, p.node().outputs.size()) && p.ok(); ++k) {
    const int64_t axis = k ? 0 : 1;
    Type out = p.type(outputs[k][0]);
    out.shape[axis] = static_cast<int64_t>(outputs[k].size());
    p.set_output(k, outputs[k].size() == 1 ? outputs[k][0] : p.emit("concat", outputs[k], myc_concat_attrs{axis}, out));
  }
}

int reversed(Planner& p, int x) { return p.emit("flip", {x}, myc_flip_attrs{ints({0})}, p.type(x)); }

// A layer of `gates` blocks of rows: checks x [T, B, I], h0 [B, H], w_ih [G H, I], w_hh [G H, H]; H, or 0 after a fault.
int64_t hidden_of(Planner& p, int gates, int x, int h0, int w_ih, int w_hh) {
  const Type type = p.type(x), state = p.type(h0);
  if (type.rank() != 3 || state.rank() != 2) p.fail(kInferFailed, "a sequence " + text_of(type) + " and a state " + text_of(state));
  if (!p.ok()) return 0;
  const int64_t hidden = state.shape[1];
  is(p, h0, {type.shape[1], hidden}, "the state");
  is(p, w_ih, {gates * hidden, type.shape[2]}, "the weights of the input");
  is(p, w_hh, {gates * hidden, hidden}, "the weights of the state");
  if (p.ok() && !(element_count(type.shape) > 0 && hidden > 0)) p.fail(kInferFailed, "an empty sequence " + text_of(type));
  return p.ok() ? hidden : 0;
}

}  // namespace

// Inputs x [T, B, I], w_ih [D, 4 H, I], w_hh [D, 4 H, H], bias [D, 8 H], h [D, B, H], c [D, B, H] with the gates in the order
// input, output, forget, cell; results [T, D, B, H], [D, B, H] and [D, B, H]. D: directions, the second one from the end.
OPERATOR(LSTM) {
  const Table& a = p.node().attributes;
  const int64_t directions = a.get<uint8_t>(kLSTM_bidirectional) ? 2 : 1;
  if (p.node().inputs.size() != 6) {
    p.fail(kNotSupported, "an LSTM of " + std::to_string(p.node().inputs.size()) + " inputs");
    return;
  }
  if (a.get<float>(kLSTM_zoneout_cell) != 0 || a.get<float>(kLSTM_zoneout_hidden) != 0) p.fail(kNotSupported, "zoneout");
  if (a.get<int64_t>(kLSTM_proj_size) != 0) p.fail(kNotSupported, "proj_size");
  const int x = p.input(0), w_ih = p.input(1), w_hh = p.input(2), bias = p.input(3), h0 = p.input(4), c0 = p.input(5);
  const Type type = p.type(x), state = p.type(h0);
  if (type.rank() != 3 || state.rank() != 3) p.fail(kInferFailed, "a sequence " + text_of(type) + " and a state " + text_of(state));
  if (!p.ok()) return;
  const int64_t steps = type.shape[0], batch = type.shape[1], inputs = type.shape[2], hidden = state.shape[2];
  is(p, h0, {directions, batch, hidden}, "the state");
  is(p, c0, {directions, batch, hidden}, "the cells");
  is(p, w_ih, {directions, 4 * hidden, inputs}, "the weights of the input");
  is(p, w_hh, {directions, 4 * hidden, hidden}, "the weights of the state");
  is(p, bias, {directions, 8 * hidden}, "the bias");
  if (!p.ok()) return;
  const std::vector<int> order{0, 2, 3, 1};
  const Type sequence{type.dtype, {steps, batch, hidden}}, last{type.dtype, {batch, hidden}};
  const Type gates{type.dtype, {steps, batch, 4 * hidden}};
  std::vector<int> outputs[3];
  for (int64_t d = 0; d < directions; ++d) {
    const int both = slice_of(p, bias, d);
    const int from = d ? reversed(p, x) : x;
    const int wi = reordered(p, slice_of(p, w_ih, d), order), wh = reordered(p, slice_of(p, w_hh, d), order);
    const int bi = reordered(p, sliced_along(p, both, 0, 0, 4 * hidden), order);
    const int bh = reordered(p, sliced_along(p, both, 0, 4 * hidden, 4 * hidden), order);
    const int h = slice_of(p, h0, d), c = slice_of(p, c0, d);
    if (!hidden_of(p, 4, from, h, wi, wh)) return;
    std::vector<int> made = p.emit_all("lstm_layer", {from, h, c, wi, wh, bi, bh}, std::vector<uint8_t>(),
                                       {sequence, last, last, gates, sequence});
    if (d) made[0] = reversed(p, made[0]);
    outputs[0].push_back(p.view(made[0], {steps, 1, batch, hidden}));
    for (int k : {1, 2}) outputs[k].push_back(p.view(made[k], {1, batch, hidden}));
  }
  join_directions(p, outputs, 3);
}

// Inputs x [T, B, I], w_ih [D, 3 H, I], w_hh [D, 3 H, H], bias [D, 6 H], h [D, B, H] with the gates in the order update, reset, new, the
// reset in front of the product; results [T, D, B, H] and [D, B, H].
OPERATOR(GRU) {
  const int64_t directions = p.node().attributes.get<uint8_t>(kGRU_bidirectional) ? 2 : 1;
  if (p.node().inputs.size() != 5) {
    p.fail(kNotSupported, "a GRU of " + std::to_string(p.node().inputs.size()) + " inputs");
    return;
  }
  const int x = p.input(0), w_ih = p.input(1), w_hh = p.input(2), bias = p.input(3), h0 = p.input(4);
  const Type type = p.type(x), state = p.type(h0);
  if (type.rank() != 3 || state.rank() != 3) p.fail(kInferFailed, "a sequence " + text_of(type) + " and a state " + text_of(state));
  if (!p.ok()) return;
  const int64_t steps = type.shape[0], batch = type.shape[1], inputs = type.shape[2], hidden = state.shape[2];
  is(p, h0, {directions, batch, hidden}, "the state");
  is(p, w_ih, {directions, 3 * hidden, inputs}, "the weights of the input");
  is(p, w_hh, {directions, 3 * hidden, hidden}, "the weights of the state");
  is(p, bias, {directions, 6 * hidden}, "the bias");
  if (p.ok() && !(element_count(type.shape) > 0 && hidden > 0)) p.fail(kInferFailed, "an empty sequence " + text_of(type));
  if (!p.ok()) return;
  std::vector<int> outputs[2];
  const Type gates{type.dtype, {steps * batch, 3 * hidden}};
  for (int64_t d = 0; d < directions; ++d) {
    const int both = slice_of(p, bias, d), from = d ? reversed(p, x) : x;
    const int product = p.emit("mat_mul", {p.view(from, {steps * batch, inputs}), slice_of(p, w_ih, d)}, myc_mat_mul_attrs{0, 1}, gates);
    const int sums = p.emit("add", {product, sliced_along(p, both, 0, 0, 3 * hidden)}, gates);
    std::vector<int> made = p.emit_all(
        "gru_before", {p.view(sums, {steps, batch, 3 * hidden}), slice_of(p, w_hh, d), sliced_along(p, both, 0, 3 * hidden, 3 * hidden), slice_of(p, h0, d)},
        std::vector<uint8_t>(), {Type{type.dtype, {steps, batch, hidden}}, Type{type.dtype, {batch, hidden}}});
    if (!p.ok()) return;
    if (d) made[0] = reversed(p, made[0]);
    outputs[0].push_back(p.view(made[0], {steps, 1, batch, hidden}));
    outputs[1].push_back(p.view(made[1], {1, batch, hidden}));
  }
  join_directions(p, outputs, 2);
}

CUSTOM(gru_layer) {  // x, h0, w_ih, w_hh, the biases of both; gates reset, update, new, the reset behind the product
  const int x = p.input(0), h0 = p.input(1), w_ih = p.input(2), w_hh = p.input(3), b_ih = p.optional_input(4), b_hh = p.optional_input(5);
  const int64_t hidden = hidden_of(p, 3, x, h0, w_ih, w_hh);
  for (const int bias : {b_ih, b_hh}) check_bias(p, bias, 3 * hidden);
  if (!p.ok()) return;
  const Type type = p.type(x);
  const Type sequence{type.dtype, {type.shape[0], type.shape[1], hidden}};
  const Type saved{type.dtype, {type.shape[0], type.shape[1], 4 * hidden}};
  const std::vector<int> made =
      p.emit_all("gru_layer", {x, h0, w_ih, w_hh, b_ih, b_hh}, std::vector<uint8_t>(), {sequence, p.type(h0), saved});
  for (size_t i = 0; i < std::min<size_t>(2, p.node().outputs.size()); ++i) p.set_output(i, made[i]);
}

CUSTOM(rnn_layer) {  // x, h0, w_ih, w_hh, the biases of both
  const int x = p.input(0), h0 = p.input(1), w_ih = p.input(2), w_hh = p.input(3), b_ih = p.optional_input(4), b_hh = p.optional_input(5);
  const int64_t relu = custom_int(p, "nonlinearity", 0, 1);
  const int64_t hidden = hidden_of(p, 1, x, h0, w_ih, w_hh);
  for (const int bias : {b_ih, b_hh}) check_bias(p, bias, hidden);
  if (!p.ok()) return;
  const Type type = p.type(x);
  const Type sequence{type.dtype, {type.shape[0], type.shape[1], hidden}};
  const std::vector<int> made = p.emit_all("rnn_layer", {x, h0, w_ih, w_hh, b_ih, b_hh}, myc_rnn_layer_attrs{relu}, {sequence, p.type(h0)});
  for (size_t i = 0; i < std::min<size_t>(2, p.node().outputs.size()); ++i) p.set_output(i, made[i]);
}

}  // namespace mycelia::lite
