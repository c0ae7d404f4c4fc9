"""Recurrent networks."""

import math

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.ops.nn_ops.rnn import _lstm_layer
from mycelia.ops.primitives.checks import boolean, natural, positive, real, within
from mycelia.ops.primitives.define import primitive


def _split(flat, shapes):
    parts, begin = [], 0
    for shape in shapes:
        end = begin + math.prod(shape)
        parts.append(ops.reshape(flat[begin:end], shape))
        begin = end
    return parts


def _projected_lstm(x, h, c, w_ih, w_hh, w_out, bias=None):
    """An LSTM layer whose outputs go through a matrix before the next step sees them."""
    from_input, outputs = ops.dense(x, w_ih, bias), []
    for t in range(x.shape[0]):
        i, f, g, o = ops.split(from_input[t] + ops.dense(h, w_hh), w_hh.shape[0] // 4, 1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        h = ops.dense(ops.sigmoid(o) * ops.tanh(c), w_out)
        outputs.append(h)
    return ops.stack(outputs), h, c


@primitive
def LSTM(
    input, h, c, w,
    *, input_size: positive, hidden_size: positive, num_layers: positive, has_bias: boolean,
    bidirectional: boolean, dropout: within(real, 0.0, 1.0), proj_size: natural = 0,
):  # fmt: skip
    """Long short-term memory over sequences, the weights of all layers in one tensor.

    `w` holds the weights [4H, in] of each layer and direction (gates input, forget, cell, output), then those
    of [4H, P], then with a `proj_size` those of [P, H] that bring the output to the size P (else P is H),
    then, with `has_bias`, the biases [4H]; what follows is not used.
    Shapes: input [T, N, in], h [layers * directions, N, P], c [layers * directions, N, H], w [size, 1, 1] ->
    output [T, N, directions * P], h's, c's, and two tensors [1] that only other targets use.
    """
    if input.ndim != 3 or input.shape[2] != input_size:
        raise errors.value_error(
            "LSTM", f"input must be [T, N, {input_size}], but its shape is {tuple(input.shape)}"
        )
    directions, gates = 1 + bidirectional, 4 * hidden_size
    count = num_layers * directions
    width = proj_size or hidden_size
    widths = [input_size] * directions + [directions * width] * (count - directions)
    sizes = [(gates, n) for n in widths] + [(gates, width)] * count
    sizes += [(width, hidden_size)] * (count if proj_size else 0) + [(gates,)] * (has_bias * count)
    parts = _split(ops.reshape(w, (-1,)), sizes)
    hidden, cells, x = [], [], input
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            weights = parts[k::count]
            sequence = ops.flip(x, (0,)) if direction else x
            if proj_size:
                y, last, cell = _projected_lstm(sequence, h[k], c[k], *weights)
            else:
                if has_bias:
                    weights.append(ops.zeros_like(weights[-1]))
                y, last, cell = _lstm_layer(sequence, h[k], c[k], *weights)[:3]
            outputs.append(ops.flip(y, (0,)) if direction else y)
            hidden.append(last)
            cells.append(cell)
        x = outputs[0] if directions == 1 else ops.concat(tuple(outputs), -1)
        if dropout and layer + 1 < num_layers:
            x = ops.dropout(x, dropout)
    nothing = ops.zeros((1,), input.dtype)
    return x, ops.stack(hidden), ops.stack(cells), nothing, nothing


# ---- gated recurrent units, the reset gate applied before the product ----------------------------------


def _gru(owner, x, h, w, *, input_size, hidden_size, num_layers, has_bias, bidirectional):
    directions, gates = 1 + bidirectional, 3 * hidden_size
    if x.ndim != 3 or x.shape[2] != input_size:
        raise errors.value_error(owner, f"x must be [T, N, {input_size}], but its shape is {tuple(x.shape)}")
    if num_layers > 1 and input_size != directions * hidden_size:
        raise errors.runtime_error(
            owner, f"several layers need an input_size of {directions * hidden_size}, but it is {input_size}"
        )
    count = num_layers * directions
    sizes = [(gates, input_size)] * count + [(gates, hidden_size)] * count + [(gates,)] * (has_bias * count)
    parts, hidden = _split(ops.reshape(w, (-1,)), sizes), []
    for layer in range(num_layers):
        outputs = []
        for k in range(layer * directions, (layer + 1) * directions):
            sequence = ops.flip(x, (0,)) if k % directions else x
            y = _gru_layer(sequence, h[k], *parts[k::count])
            hidden.append(y[-1])
            outputs.append(ops.flip(y, (0,)) if k % directions else y)
        x = outputs[0] if directions == 1 else ops.concat(tuple(outputs), -1)
    return x, ops.stack(hidden)


def _gru_layer(x, h, w_ih, w_hh, bias=None):
    from_input, outputs, hidden = ops.dense(x, w_ih, bias), [], h.shape[1]
    for t in range(x.shape[0]):
        u = ops.dense(h, w_hh[: 2 * hidden])
        z = ops.sigmoid(from_input[t][:, :hidden] + u[:, :hidden])
        r = ops.sigmoid(from_input[t][:, hidden : 2 * hidden] + u[:, hidden:])
        n = ops.tanh(from_input[t][:, 2 * hidden :] + ops.dense(r * h, w_hh[2 * hidden :]))
        h = n + z * (h - n)
        outputs.append(h)
    return ops.stack(outputs)


@primitive
def GRUV2(
    x, hx, w, seq_lengths, *, input_size: positive, hidden_size: positive, num_layers: positive,
    has_bias: boolean, bidirectional: boolean, dropout: within(real, 0.0, 1.0), is_train: boolean = True,
):  # fmt: skip
    """Gated recurrent units over sequences, the weights of all layers in one tensor; lengths do not matter.

    `w` holds the weights [3H, in] of each layer and direction (gates update, reset, new), then those of
    [3H, H], then, with `has_bias`, the biases [3H]; what follows is not used.
    Shapes: x [T, N, in], hx [layers * directions, N, H], w [size, 1, 1] -> output [T, N, directions * H],
    h's, and two tensors [1, 1] that only other targets use.
    """
    y, last = _gru(
        "GRUV2", x, hx, w, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers,
        has_bias=has_bias, bidirectional=bidirectional,
    )  # fmt: skip
    nothing = ops.zeros((1, 1), x.dtype)
    return y, last, nothing, nothing


@primitive
def GRUV2Grad(
    x, hx, w, seq_length, y, hy, dy, dhy, reserve,
    *, input_size: positive, hidden_size: positive, num_layers: positive, has_bias: boolean,
    bidirectional: boolean, dropout: within(real, 0.0, 1.0),
):  # fmt: skip
    """Gradients of `GRUV2` for x, hx and the weights that it used."""
    from mycelia.engine.autodiff.jacobian_products import vjp

    sizes = dict(
        input_size=input_size, hidden_size=hidden_size, num_layers=num_layers, has_bias=has_bias,
        bidirectional=bidirectional,
    )  # fmt: skip
    used = 3 * hidden_size * (input_size + hidden_size + has_bias) * num_layers * (1 + bidirectional)
    _, gradients = vjp(lambda x, hx, w: _gru("GRUV2Grad", x, hx, w, **sizes), x, hx, w[:used])
    return gradients(dy, dhy)
