"""Layers of gated recurrent units."""

import numpy as np

from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import cost as _cost
from mycelia.engine.ops.arrays.joining import concat, stack, unstack
from mycelia.engine.ops.define import op
from mycelia.engine.ops.double_backward import double_backward
from mycelia.engine.ops.elementwise import activation as _activation
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.nn_ops.rnn import (
    _check_layer,
    _dense,
    _np_input_part,
    _np_recurrent_part,
    _np_sigmoid,
    _np_states_before,
    _np_weight_gradients,
    _one_step,
    _pieces,
)


@op(name="gru_layer", outputs=3, cost=_cost.recurrent(2, products=1))
def _gru_layer(x, h0, w_ih, w_hh, b_ih: "tensor?" = None, b_hh: "tensor?" = None):
    """Gated recurrent units over a sequence.

    ``r = sigmoid(a_r + u_r)``, ``z = sigmoid(a_z + u_z)``, ``n = tanh(a_n + r * u_n)``,
    ``h = n + z * (h - n)`` at each step, where ``a = w_ih x + b_ih`` and ``u = w_hh h + b_hh`` hold the
    three gates r, z, n.
    Shapes: x [T, B, I], h0 [B, H], w_ih [3H, I], w_hh [3H, H], biases [3H] -> all h [T, B, H],
    last h [B, H], and for the gradient r, z, n and u_n [T, B, 4H].  dtypes: floating.
    Errors: ValueError if shapes disagree.
    Source: Cho et al. 2014, the reset gate applied after the product as in cuDNN.
    """
    hidden = w_hh.shape[1]
    from_input = _np_input_part(x, w_ih, b_ih)
    y = np.empty((*x.shape[:2], hidden), x.dtype)
    gates = np.empty((*x.shape[:2], 4 * hidden), x.dtype)
    h = h0
    for t in range(len(x)):
        a_r, a_z, a_n = np.split(from_input[t], 3, axis=1)
        u_r, u_z, u_n = np.split(_np_recurrent_part(h, w_hh, b_hh), 3, axis=1)
        r, z = _np_sigmoid(a_r + u_r), _np_sigmoid(a_z + u_z)
        n = np.tanh(a_n + r * u_n)
        h = n + z * (h - n)
        y[t], gates[t] = h, np.concatenate([r, z, n, u_n], axis=1)
    return y, h, gates


@_gru_layer.infer
def _gru_layer(x, h0, w_ih, w_hh, b_ih, b_hh):
    steps, batch, hidden = _check_layer(3, x, h0, w_ih, w_hh, b_ih, b_hh)
    state = TensorType(x.dtype, (batch, hidden))
    return (
        TensorType(x.dtype, (steps, batch, hidden)), state, TensorType(x.dtype, (steps, batch, 4 * hidden)),
    )  # fmt: skip


@_gru_layer.vjp
def _gru_layer(cts, outs, x, h0, w_ih, w_hh, b_ih, b_hh):
    if cts[2] is not None:
        return double_backward(_gru_composition, cts, x, h0, w_ih, w_hh, b_ih, b_hh)
    d_x, d_h0, d_w_ih, d_w_hh, d_b_ih, d_b_hh = _gru_layer_grad(
        x, h0, w_ih, w_hh, outs[0], outs[2], b_ih, b_hh, cts[0], cts[1]
    )
    return d_x, d_h0, d_w_ih, d_w_hh, None if b_ih is None else d_b_ih, None if b_hh is None else d_b_hh


@_gru_layer.samples
def _gru_layer(rand):
    yield rand(3, 2, 4), rand(2, 3), rand(9, 4), rand(9, 3), rand(9), rand(9)
    yield rand(5, 1, 3), rand(1, 7), rand(21, 3), rand(21, 7)
    yield rand(1, 3, 2), rand(3, 1), rand(3, 2), rand(3, 1), rand(3), rand(3)
    yield rand(4, 5, 17), rand(5, 13), rand(39, 17), rand(39, 13), rand(39), rand(39)


@op(name="gru_layer_grad", outputs=6, cost=_cost.recurrent(2, products=2))
def _gru_layer_grad(
    x, h0, w_ih, w_hh, y, gates, b_ih: "tensor?" = None, b_hh: "tensor?" = None,
    d_y: "tensor?" = None, d_h: "tensor?" = None,
):  # fmt: skip
    """Gradients of gru_layer with respect to x, h0, w_ih, w_hh, b_ih and b_hh.

    `y` and `gates` are what the forward pass gave, functions of the other inputs; `d_y` and `d_h` are the
    gradients of all h and the last h (absent = zero).
    Shapes: as gru_layer -> x's, h0's, w_ih's, w_hh's, [3H], [3H].  dtypes: floating.
    """
    d_input = np.empty((*y.shape[:2], w_ih.shape[0]), x.dtype)
    d_hidden = np.empty_like(d_input)
    before = _np_states_before(h0, y)
    dh = np.zeros_like(h0) if d_h is None else d_h
    for t in reversed(range(len(x))):
        r, z, n, u_n = np.split(gates[t], 4, axis=1)
        dh = dh if d_y is None else dh + d_y[t]
        d_n = dh * (1 - z) * (1 - n * n)
        d_r = d_n * u_n * r * (1 - r)
        d_z = dh * (before[t] - n) * z * (1 - z)
        d_input[t] = np.concatenate([d_r, d_z, d_n], axis=1)
        d_hidden[t] = np.concatenate([d_r, d_z, d_n * r], axis=1)
        dh = dh * z + d_hidden[t] @ w_hh
    d_w_ih, d_w_hh, d_b_ih = _np_weight_gradients(d_input, d_hidden, x, before)
    return d_input @ w_ih, dh, d_w_ih, d_w_hh, d_b_ih, d_hidden.sum((0, 1))


@_gru_layer_grad.infer
def _gru_layer_grad(x, h0, w_ih, w_hh, *others):
    bias = TensorType(x.dtype, w_ih.shape[:1])
    return x, h0, w_ih, w_hh, bias, bias


@_gru_layer_grad.vjp
def _gru_layer_grad(cts, x, h0, w_ih, w_hh, b_ih, b_hh, d_y, d_h):
    def gradient(x, h0, w_ih, w_hh, b_ih, b_hh, d_y, d_h):
        return tuple(double_backward(_gru_composition, (d_y, d_h, None), x, h0, w_ih, w_hh, b_ih, b_hh))

    found = double_backward(gradient, cts, x, h0, w_ih, w_hh, b_ih, b_hh, d_y, d_h)
    return (*found[:4], None, None, *found[4:])


def _gru_composition(x, h0, w_ih, w_hh, b_ih, b_hh):
    """gru_layer out of public ops, step by step."""
    h, states, gates = h0, [], []
    for from_input in unstack(_dense(x, w_ih, b_ih), 0):
        a_r, a_z, a_n = _pieces(from_input, 3)
        u_r, u_z, u_n = _pieces(_dense(h, w_hh, b_hh), 3)
        r, z = _activation.sigmoid(a_r + u_r), _activation.sigmoid(a_z + u_z)
        n = _math.tanh(a_n + r * u_n)
        h = n + z * (h - n)
        states.append(h)
        gates.append(concat((r, z, n, u_n), -1))
    return stack(states, 0), h, stack(gates, 0)


@_gru_layer_grad.samples
def _gru_layer_grad(rand):
    def saved(steps, batch, hidden):
        return rand(steps, batch, hidden), rand(steps, batch, 4 * hidden, low=0.1, high=0.9)

    weights = rand(9, 4), rand(9, 3)
    yield (
        rand(3, 2, 4),
        rand(2, 3),
        *weights,
        *saved(3, 2, 3),
        rand(9),
        rand(9),
        rand(3, 2, 3),
        dict(_grad=False),
    )
    weights, biases = (rand(39, 17), rand(39, 13)), (rand(39), rand(39))
    d = rand(4, 5, 13), rand(5, 13)
    yield rand(4, 5, 17), rand(5, 13), *weights, *saved(4, 5, 13), *biases, *d, dict(_grad=False)


def _gru_cell(x, h, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of gru_layer: the new h.  Shapes: x [B, I], h [B, H] -> [B, H]."""
    return _gru_layer(_one_step(x), h, w_ih, w_hh, b_ih, b_hh)[1]


__all__ = []
