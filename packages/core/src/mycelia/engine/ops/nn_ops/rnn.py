"""Recurrent layers over a whole sequence (one layer, one direction) and single cells.

Sequences are time-major, ``[T, B, I]``. Gates are stacked along the rows of the weights in the order
of the field: LSTM input, forget, cell, output; GRU reset, update, new. The layer ops return what
their gradient ops read again.
"""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import cost as _cost
from mycelia.engine.ops.arrays.axes import transpose
from mycelia.engine.ops.arrays.joining import concat, split, stack, unstack
from mycelia.engine.ops.arrays.shape import reshape
from mycelia.engine.ops.define import op
from mycelia.engine.ops.double_backward import double_backward
from mycelia.engine.ops.elementwise import activation as _activation
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise import rectifiers as _rectifiers
from mycelia.engine.ops.infer import need_floating
from mycelia.engine.ops.linalg import products as _linalg


def _np_sigmoid(x):
    e = np.exp(-np.abs(x))  # never overflows
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _check_layer(gates, x, h0, w_ih, w_hh, b_ih, b_hh):
    """Checks the shapes that all layers share; returns time steps, batch and hidden size."""
    need_floating(x=x, h0=h0, w_ih=w_ih, w_hh=w_hh)
    if x.rank != 3 or h0.rank != 2 or w_ih.rank != 2 or w_hh.rank != 2:
        raise errors.value_error(
            f"x must be [T, B, I], h0 [B, H], w_ih [{gates}H, I], w_hh [{gates}H, H],"
            f" got {x.shape}, {h0.shape}, {w_ih.shape}, {w_hh.shape}"
        )
    steps, batch, inputs = x.shape
    hidden = w_hh.shape[1]
    wanted = [
        ("h0", h0, (batch, hidden)),
        ("w_ih", w_ih, (gates * hidden, inputs)),
        ("w_hh", w_hh, (gates * hidden, hidden)),
        ("b_ih", b_ih, (gates * hidden,)),
        ("b_hh", b_hh, (gates * hidden,)),
    ]
    for name, found, shape in wanted:
        if found is not None and len(found.shape) == len(shape) and all(
            a == b or -1 in (a, b) for a, b in zip(found.shape, shape)
        ):  # fmt: skip
            continue
        if found is not None:
            raise errors.value_error(
                f"{name} must have shape {shape} for x {x.shape} and {hidden} units, got {found.shape}"
            )
    return steps, batch, hidden


def _np_input_part(x, w_ih, b_ih):
    """Contribution of the inputs to the gates of all steps: one matrix product."""
    gates = x @ w_ih.T
    return gates if b_ih is None else gates + b_ih


def _np_recurrent_part(h, w_hh, b_hh):
    gates = h @ w_hh.T
    return gates if b_hh is None else gates + b_hh


def _dense(x, weight, bias):
    y = _linalg.matmul(x, transpose(weight, (1, 0)))
    return y if bias is None else y + bias


def _pieces(x, count):
    """`x` cut into `count` equal pieces along the last axis."""
    return split(x, x.shape[-1] // count, -1)


def _np_states_before(h0, y):
    """The state that each step started from."""
    return np.concatenate([h0[None], y[:-1]])[: len(y)]


def _np_weight_gradients(d_input, d_hidden, x, before):
    """Gradients of w_ih, w_hh and b_ih from those of the gates of all steps: one matrix product each."""
    from_input, from_hidden = d_input.reshape(-1, d_input.shape[-1]), d_hidden.reshape(-1, d_hidden.shape[-1])
    return (
        from_input.T @ x.reshape(-1, x.shape[-1]), from_hidden.T @ before.reshape(-1, before.shape[-1]),
        from_input.sum(0),
    )  # fmt: skip


@op(name="lstm_layer", outputs=5, cost=_cost.recurrent(3, products=1))
def _lstm_layer(x, h0, c0, w_ih, w_hh, b_ih: "tensor?" = None, b_hh: "tensor?" = None):
    """Long short-term memory over a sequence.

    ``i, f, g, o = w_ih x + b_ih + w_hh h + b_hh``, then ``c = sigmoid(f) c + sigmoid(i) tanh(g)`` and
    ``h = sigmoid(o) tanh(c)`` at each step.
    Shapes: x [T, B, I], h0 and c0 [B, H], w_ih [4H, I], w_hh [4H, H], biases [4H] -> all h [T, B, H], last h
    and last c [B, H], and for the gradient the activated gates [T, B, 4H] and all c [T, B, H].
    dtypes: floating.  Errors: ValueError if shapes disagree.
    Source: Hochreiter and Schmidhuber 1997, Gers et al. 1999.
    """
    gates = _np_input_part(x, w_ih, b_ih)
    hidden = w_hh.shape[1]
    y = np.empty((*x.shape[:2], hidden), x.dtype)
    cells = np.empty_like(y)
    h, c = h0, c0
    for t in range(len(x)):
        z = gates[t] + _np_recurrent_part(h, w_hh, b_hh)
        i, f, o = (_np_sigmoid(z[:, k * hidden : (k + 1) * hidden]) for k in (0, 1, 3))
        g = np.tanh(z[:, 2 * hidden : 3 * hidden])
        c = f * c + i * g
        h = o * np.tanh(c)
        gates[t] = np.concatenate([i, f, g, o], axis=1)
        y[t], cells[t] = h, c
    return y, h, c, gates, cells


@_lstm_layer.infer
def _lstm_layer(x, h0, c0, w_ih, w_hh, b_ih, b_hh):
    steps, batch, hidden = _check_layer(4, x, h0, w_ih, w_hh, b_ih, b_hh)
    if c0.shape != h0.shape and -1 not in c0.shape + h0.shape:
        raise ValueError(f"c0 must have the shape of h0 {h0.shape}, got {c0.shape}")
    sequence, state = TensorType(x.dtype, (steps, batch, hidden)), TensorType(x.dtype, (batch, hidden))
    return sequence, state, state, TensorType(x.dtype, (steps, batch, 4 * hidden)), sequence


@_lstm_layer.vjp
def _lstm_layer(cts, outs, x, h0, c0, w_ih, w_hh, b_ih, b_hh):
    if cts[3] is not None:
        return double_backward(_lstm_composition, cts, x, h0, c0, w_ih, w_hh, b_ih, b_hh)
    d_x, d_h0, d_c0, d_w_ih, d_w_hh, d_bias = _lstm_layer_grad(
        x, h0, c0, w_ih, w_hh, outs[0], outs[3], outs[4], b_ih, b_hh, cts[0], cts[1], cts[2], cts[4]
    )
    return d_x, d_h0, d_c0, d_w_ih, d_w_hh, None if b_ih is None else d_bias, None if b_hh is None else d_bias


@_lstm_layer.samples
def _lstm_layer(rand):
    yield rand(3, 2, 4), rand(2, 3), rand(2, 3), rand(12, 4), rand(12, 3), rand(12), rand(12)
    yield rand(5, 1, 3), rand(1, 7), rand(1, 7), rand(28, 3), rand(28, 7)
    yield rand(1, 3, 2), rand(3, 1), rand(3, 1), rand(4, 2), rand(4, 1), rand(4), rand(4)
    yield rand(4, 5, 17), rand(5, 13), rand(5, 13), rand(52, 17), rand(52, 13), rand(52), rand(52)


@op(name="lstm_layer_grad", outputs=6, cost=_cost.recurrent(3, products=2))
def _lstm_layer_grad(
    x, h0, c0, w_ih, w_hh, y, gates, cells, b_ih: "tensor?" = None, b_hh: "tensor?" = None,
    d_y: "tensor?" = None, d_h: "tensor?" = None, d_c: "tensor?" = None, d_cells: "tensor?" = None,
):  # fmt: skip
    """Gradients of lstm_layer with respect to x, h0, c0, w_ih, w_hh and the biases, which share theirs.

    `y`, `gates` and `cells` are what the forward pass gave, functions of the other inputs; `d_y`, `d_h`,
    `d_c` and `d_cells` are the gradients of all h, the last h, the last c and all c (absent = zero).
    Shapes: as lstm_layer -> x's, h0's, c0's, w_ih's, w_hh's, [4H].  dtypes: floating.
    """
    d_gates = np.empty_like(gates)
    dh = np.zeros_like(h0) if d_h is None else d_h
    dc = np.zeros_like(c0) if d_c is None else d_c
    for t in reversed(range(len(x))):
        i, f, g, o = np.split(gates[t], 4, axis=1)
        dh = dh if d_y is None else dh + d_y[t]
        dc = dc if d_cells is None else dc + d_cells[t]
        tanh_c = np.tanh(cells[t])
        dc = dc + dh * o * (1 - tanh_c * tanh_c)
        c_before = cells[t - 1] if t else c0
        d_gates[t] = np.concatenate(
            [
                dc * g * i * (1 - i),
                dc * c_before * f * (1 - f),
                dc * i * (1 - g * g),
                dh * tanh_c * o * (1 - o),
            ],
            axis=1,
        )
        dc = dc * f
        dh = d_gates[t] @ w_hh
    return d_gates @ w_ih, dh, dc, *_np_weight_gradients(d_gates, d_gates, x, _np_states_before(h0, y))


@_lstm_layer_grad.infer
def _lstm_layer_grad(x, h0, c0, w_ih, w_hh, *others):
    return x, h0, c0, w_ih, w_hh, TensorType(x.dtype, w_ih.shape[:1])


@_lstm_layer_grad.vjp
def _lstm_layer_grad(cts, x, h0, c0, w_ih, w_hh, b_ih, b_hh, d_y, d_h, d_c, d_cells):
    def gradient(x, h0, c0, w_ih, w_hh, b_ih, b_hh, d_y, d_h, d_c, d_cells):
        flows = d_y, d_h, d_c, None, d_cells
        found = double_backward(_lstm_composition, flows, x, h0, c0, w_ih, w_hh, b_ih, b_hh)
        return (*found[:5], found[5] if b_ih is not None else found[6])

    found = double_backward(gradient, cts, x, h0, c0, w_ih, w_hh, b_ih, b_hh, d_y, d_h, d_c, d_cells)
    return (*found[:5], None, None, None, *found[5:])


def _lstm_composition(x, h0, c0, w_ih, w_hh, b_ih, b_hh):
    """lstm_layer out of public ops, step by step."""
    h, c, states, gates, cells = h0, c0, [], [], []
    for from_input in unstack(_dense(x, w_ih, b_ih), 0):
        i, f, g, o = _pieces(from_input + _dense(h, w_hh, b_hh), 4)
        i, f, g, o = _activation.sigmoid(i), _activation.sigmoid(f), _math.tanh(g), _activation.sigmoid(o)
        c = f * c + i * g
        h = o * _math.tanh(c)
        states.append(h)
        gates.append(concat((i, f, g, o), -1))
        cells.append(c)
    return stack(states, 0), h, c, stack(gates, 0), stack(cells, 0)


@_lstm_layer_grad.samples
def _lstm_layer_grad(rand):
    # What the forward pass gave is not independent of the inputs, so finite differences do not apply here.
    def saved(steps, batch, hidden):
        return (
            rand(steps, batch, hidden),
            rand(steps, batch, 4 * hidden, low=0.1, high=0.9),
            rand(steps, batch, hidden),
        )

    def biases(hidden):
        return rand(4 * hidden), rand(4 * hidden)

    x, states, weights = rand(3, 2, 4), (rand(2, 3), rand(2, 3)), (rand(12, 4), rand(12, 3))
    yield x, *states, *weights, *saved(3, 2, 3), *biases(3), rand(3, 2, 3), dict(_grad=False)
    yield (
        x,
        *states,
        *weights,
        *saved(3, 2, 3),
        *biases(3),
        rand(3, 2, 3),
        rand(2, 3),
        rand(2, 3),
        dict(_grad=False),
    )
    x, states, weights = rand(4, 5, 17), (rand(5, 13), rand(5, 13)), (rand(52, 17), rand(52, 13))
    d = rand(4, 5, 13), rand(5, 13), rand(5, 13), rand(4, 5, 13)
    yield x, *states, *weights, *saved(4, 5, 13), *biases(13), *d, dict(_grad=False)


@op(name="rnn_layer", outputs=2, cost=_cost.recurrent(2, products=1))
def _rnn_layer(
    x, h0, w_ih, w_hh, b_ih: "tensor?" = None, b_hh: "tensor?" = None, *, nonlinearity: "tanh|relu" = "tanh"
):
    """Elman network over a sequence: ``h = f(w_ih x + b_ih + w_hh h + b_hh)`` at each step, f tanh or relu.

    Shapes: x [T, B, I], h0 [B, H], w_ih [H, I], w_hh [H, H], biases [H] -> all h [T, B, H], last h [B, H].
    dtypes: floating.  Errors: ValueError if shapes disagree.
    """
    y = _np_input_part(x, w_ih, b_ih)
    h = h0
    for t in range(len(x)):
        z = y[t] + _np_recurrent_part(h, w_hh, b_hh)
        y[t] = h = np.tanh(z) if nonlinearity == "tanh" else np.maximum(z, 0)
    return y, h


@_rnn_layer.infer
def _rnn_layer(x, h0, w_ih, w_hh, b_ih, b_hh, *, nonlinearity):
    steps, batch, hidden = _check_layer(1, x, h0, w_ih, w_hh, b_ih, b_hh)
    return TensorType(x.dtype, (steps, batch, hidden)), TensorType(x.dtype, (batch, hidden))


@_rnn_layer.vjp
def _rnn_layer(cts, outs, x, h0, w_ih, w_hh, b_ih, b_hh, *, nonlinearity):
    d_x, d_h0, d_w_ih, d_w_hh, d_bias = _rnn_layer_grad(
        x, h0, w_ih, w_hh, outs[0], b_ih, b_hh, cts[0], cts[1], nonlinearity=nonlinearity
    )
    return d_x, d_h0, d_w_ih, d_w_hh, None if b_ih is None else d_bias, None if b_hh is None else d_bias


@_rnn_layer.samples
def _rnn_layer(rand):
    yield rand(3, 2, 4), rand(2, 3), rand(3, 4), rand(3, 3), rand(3), rand(3)
    yield rand(5, 1, 3), rand(1, 7), rand(7, 3), rand(7, 7), dict(nonlinearity="relu")
    yield rand(4, 5, 17), rand(5, 13), rand(13, 17), rand(13, 13), rand(13), rand(13)


@op(name="rnn_layer_grad", outputs=5, cost=_cost.recurrent(2, products=2))
def _rnn_layer_grad(
    x, h0, w_ih, w_hh, y, b_ih: "tensor?" = None, b_hh: "tensor?" = None,
    d_y: "tensor?" = None, d_h: "tensor?" = None, *, nonlinearity: "tanh|relu" = "tanh",
):  # fmt: skip
    """Gradients of rnn_layer with respect to x, h0, w_ih, w_hh and the biases, which share theirs.

    `y` is what the forward pass gave; `d_y` and `d_h` are the gradients of all h and
    the last h (absent = zero).
    Shapes: as rnn_layer -> x's, h0's, w_ih's, w_hh's, [H].  dtypes: floating.
    """
    d_gates = np.empty_like(y)
    dh = np.zeros_like(h0) if d_h is None else d_h
    for t in reversed(range(len(x))):
        dh = dh if d_y is None else dh + d_y[t]
        d_gates[t] = dh * (1 - y[t] * y[t]) if nonlinearity == "tanh" else dh * (y[t] > 0)
        dh = d_gates[t] @ w_hh
    return d_gates @ w_ih, dh, *_np_weight_gradients(d_gates, d_gates, x, _np_states_before(h0, y))


@_rnn_layer_grad.infer
def _rnn_layer_grad(x, h0, w_ih, w_hh, *others, nonlinearity):
    return x, h0, w_ih, w_hh, TensorType(x.dtype, w_ih.shape[:1])


@_rnn_layer_grad.vjp
def _rnn_layer_grad(cts, x, h0, w_ih, w_hh, b_ih, b_hh, d_y, d_h, *, nonlinearity):
    def forward(*inputs):
        return _rnn_composition(*inputs, nonlinearity)

    def gradient(x, h0, w_ih, w_hh, b_ih, b_hh, d_y, d_h):
        found = double_backward(forward, (d_y, d_h), x, h0, w_ih, w_hh, b_ih, b_hh)
        return (*found[:4], found[4] if b_ih is not None else found[5])

    found = double_backward(gradient, cts, x, h0, w_ih, w_hh, b_ih, b_hh, d_y, d_h)
    return (*found[:4], None, *found[4:])


def _rnn_composition(x, h0, w_ih, w_hh, b_ih, b_hh, nonlinearity):
    """rnn_layer out of public ops, step by step."""
    function = _math.tanh if nonlinearity == "tanh" else _rectifiers.relu
    h, states = h0, []
    for from_input in unstack(_dense(x, w_ih, b_ih), 0):
        h = function(from_input + _dense(h, w_hh, b_hh))
        states.append(h)
    return stack(states, 0), h


@_rnn_layer_grad.samples
def _rnn_layer_grad(rand):
    small = rand(3, 2, 4), rand(2, 3), rand(3, 4), rand(3, 3), rand(3, 2, 3), rand(3), rand(3)
    yield *small, rand(3, 2, 3), dict(_grad=False)
    yield *small, rand(3, 2, 3), rand(2, 3), dict(nonlinearity="relu", _grad=False)


def _one_step(x):
    return reshape(x, (1, *x.shape))


def _lstm_cell(x, h, c, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of lstm_layer: the new h and c.  Shapes: x [B, I], h and c [B, H] -> [B, H], [B, H]."""
    return _lstm_layer(_one_step(x), h, c, w_ih, w_hh, b_ih, b_hh)[1:3]


def _rnn_cell(x, h, w_ih, w_hh, b_ih=None, b_hh=None, nonlinearity="tanh"):
    """One step of rnn_layer: the new h.  Shapes: x [B, I], h [B, H] -> [B, H]."""
    return _rnn_layer(_one_step(x), h, w_ih, w_hh, b_ih, b_hh, nonlinearity=nonlinearity)[1]


__all__ = []
