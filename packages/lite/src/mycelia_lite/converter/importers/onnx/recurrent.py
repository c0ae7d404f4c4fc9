"""ONNX's recurrent layers: LSTM, GRU and RNN.

The usual cell without lengths is one op of core for the whole sequence; any other one is written step by
step, or as a loop where the number of steps is open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mycelia as ms
from mycelia import ops
from mycelia.capture.trace import active
from mycelia.ops.define import find
from mycelia_lite.converter.importers import regions
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    cast,
    is_number,
    known,
    operator,
    shape_of,
)

_MOST_WRITTEN = 64  # steps that are written out; a loop has less nodes and more time for each
_lstm_layer, _gru_layer, _rnn_layer = (find(name) for name in ("lstm_layer", "gru_layer", "rnn_layer"))

# Activations of cells: the function of (x, alpha, beta), and the defaults of the two.
_ACTIVATIONS: dict[str, tuple[Callable, float, float]] = {
    "relu": (lambda x, a, b: ops.relu(x), 0, 0),
    "tanh": (lambda x, a, b: ops.tanh(x), 0, 0),
    "sigmoid": (lambda x, a, b: ops.sigmoid(x), 0, 0),
    "affine": (lambda x, a, b: x * a + b, 1.0, 0.0),
    "leakyrelu": (lambda x, a, b: ops.where(x < 0, x * a, x), 0.01, 0),
    "thresholdedrelu": (lambda x, a, b: ops.where(x > a, x, ops.zeros_like(x)), 1.0, 0),
    "scaledtanh": (lambda x, a, b: ops.tanh(x * b) * a, 1.0, 1.0),
    "hardsigmoid": (lambda x, a, b: ops.clip(x * a + b, 0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: ops.where(x < 0, ops.expm1(x) * a, x), 1.0, 0),
    "softsign": (lambda x, a, b: x / (ops.abs(x) + 1), 0, 0),
    "softplus": (lambda x, a, b: ops.relu(x) + ops.log1p(ops.exp(-ops.abs(x))), 0, 0),
}


class _Layer:
    """What the attributes of a recurrent layer say."""

    def __init__(self, call: Call, defaults: tuple[str, ...]) -> None:
        self.call = call
        self.direction = call.choice("direction", "forward", ("forward", "reverse", "bidirectional"))
        self.directions = 2 if self.direction == "bidirectional" else 1
        self.batch_first = bool(call.choice("layout", 0, (0, 1)))
        self.clip = call.get("clip")
        call.get("hidden_size")
        call.get("output_sequence")  # of version 6: all states are there in any case
        names = [n.lower() for n in call.get("activations", defaults * self.directions)]
        alphas, betas = list(call.get("activation_alpha", [])), list(call.get("activation_beta", []))
        if len(names) != len(defaults) * self.directions:
            raise call.attribute("activations", f"there must be {len(defaults) * self.directions}")
        self.plain = names == [n.lower() for n in defaults] * self.directions and self.clip is None
        self.names = names
        chosen = []
        for name in names:
            if name not in _ACTIVATIONS:
                raise call.attribute("activations", f"'{name}' is not one of {sorted(_ACTIVATIONS)}")
            function, alpha, beta = _ACTIVATIONS[name]
            # Numbers are given for the activations that take them, in their order.
            takes_alpha, takes_beta = name in _WITH_ALPHA, name in _WITH_BETA
            alpha = alphas.pop(0) if takes_alpha and alphas else alpha
            beta = betas.pop(0) if takes_beta and betas else beta
            chosen.append(lambda x, f=function, a=alpha, b=beta: f(x, a, b))
        count = len(defaults)
        self.activations = [chosen[d * count : (d + 1) * count] for d in range(self.directions)]

    def clipped(self, x: Any) -> Any:
        return x if self.clip is None else ops.clip(x, -self.clip, self.clip)

    def run(self, x: Any, lengths: Any, states: list[Any], layer: Callable) -> tuple[Any, ...]:
        """(all states, the last of each kind) of `layer(direction, x, lengths, states)` in all directions."""
        if self.batch_first:
            x = ops.transpose(x, (1, 0, 2))
            states = [None if s is None else ops.transpose(s, (1, 0, 2)) for s in states]
        steps, batch = shape_of(x)[:2]
        if lengths is not None and (known(lengths) == steps if is_number(steps) else False) is not False:
            if (known(lengths) == steps).all():
                lengths = None
        sequences, ends = [], []
        for d in range(self.directions):
            backward = self.direction == "reverse" or d == 1
            sequence = self._turned(x, lengths) if backward else x
            y, *last = layer(d, sequence, lengths, [None if s is None else s[d] for s in states])
            sequences.append(self._turned(y, lengths) if backward else y)
            ends.append(last)
        y = ops.stack(sequences, 1)  # [T, D, B, H]
        results = [ops.stack(list(each)) for each in zip(*ends)]
        if self.batch_first:
            y = ops.transpose(y, (2, 0, 1, 3))
            results = [ops.transpose(r, (1, 0, 2)) for r in results]
        return y, *results

    def _turned(self, x: Any, lengths: Any) -> Any:
        """A sequence from its end, each of a batch from the end of its own length; what follows stays."""
        if lengths is None:
            return ops.flip(x, (0,))
        nothing = ops.zeros_like(cast(x, ms.int64))
        times = ops.cumsum(nothing[:, :, :1] + 1, 0) - 1
        own = ops.reshape(cast(lengths, ms.int64), (1, shape_of(x)[1], 1))
        return ops.gather_elements(x, 0, ops.where(times < own, own - 1 - times, times) + nothing)

    def steps(self, x: Any, lengths: Any, states: list[Any], step: Callable) -> tuple[Any, ...]:
        """The same for one direction by `step(x_t, states) -> states`; the first state is the output."""

        def advance(t: Any, x_t: Any, states: list[Any]) -> tuple[Any, list[Any]]:
            new = step(x_t, states)
            if lengths is None:
                return new[0], new
            runs = ops.reshape(cast(lengths, ms.int64) > t, (batch, 1))
            new = [ops.where(runs, n, s) for n, s in zip(new, states)]
            return ops.where(runs, new[0], ops.zeros_like(new[0])), new

        count, batch = shape_of(x)[:2]
        states = [ops.reshape(s, (batch, *shape_of(s)[1:])) for s in states]
        if is_number(count) and count <= _MOST_WRITTEN:
            outputs = []
            for t in range(count):
                output, states = advance(t, x[t], states)
                outputs.append(output)
            return ops.stack(outputs), *states

        def body(region: Any, t: Any, going: Any, states: list[Any]) -> list[Any]:
            output, states = advance(t, ops.gather(x, t, 0), states)
            return [ms.Tensor(True), *states, output]

        trace = active()
        most = ms.Tensor(count, ms.int64) if is_number(count) else trace.sizes.number(count, trace)
        *states, rows = regions.counted_loop(
            self.call, trace, cast(most, ms.int64), ms.Tensor(True), states, body
        )
        return ops.reshape(rows, (count, *shape_of(rows)[1:])), *states


_WITH_ALPHA = {"affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"}
_WITH_BETA = {"affine", "scaledtanh", "hardsigmoid"}


def _initial(layer: _Layer, x: Any, state: Any, hidden: int) -> Any:
    if state is not None:
        return state
    batch = shape_of(x)[0 if layer.batch_first else 1]
    if not is_number(batch):
        rows = ops.zeros_like(ops.sum(x, (1, 2) if layer.batch_first else (0, 2)))
        zeros = ops.reshape(rows, (1, -1, 1)) + ops.zeros((layer.directions, 1, hidden), x.dtype)
    else:
        zeros = ops.zeros((layer.directions, batch, hidden), x.dtype)
    return ops.transpose(zeros, (1, 0, 2)) if layer.batch_first else zeros


def _blocks(value: Any, order: tuple[int, ...], hidden: int) -> Any:
    """Rows of gates in another order."""
    return ops.concat([value[k * hidden : (k + 1) * hidden] for k in order])


@operator("LSTM")
def _lstm(call, x, w, r, b=None, lengths=None, h=None, c=None, peepholes=None):
    return lstm(call, x, w, r, b, lengths, h, c, peepholes)


def lstm(call, x, w, r, b, lengths, h, c, peepholes, rounded=None):
    """Gates lie in the order input, output, forget, cell.

    `rounded`: what becomes of data and states before they are multiplied, None for nothing.
    """
    layer = _Layer(call, ("Sigmoid", "Tanh", "Tanh"))
    coupled = call.get("input_forget", 0)
    hidden = shape_of(r)[2]
    states = [_initial(layer, x, h, hidden), _initial(layer, x, c, hidden)]

    def run(d, sequence, lengths, state):
        bias = [None, None] if b is None else [b[d][: 4 * hidden], b[d][4 * hidden :]]
        if layer.plain and lengths is None and peepholes is None and not coupled and rounded is None:
            order = (0, 2, 3, 1)
            parts = [None if v is None else _blocks(v, order, hidden) for v in (w[d], r[d], *bias)]
            return _lstm_layer(sequence, *state, *parts)[:3]
        f, g, squash = layer.activations[d]
        p_i, p_o, p_f = (None,) * 3 if peepholes is None else ops.split(peepholes[d], hidden)
        from_input = ops.dense(sequence if rounded is None else rounded(sequence), w[d], bias[0])

        def step(x_t, state):
            h_t, c_t = state
            read = h_t if rounded is None else rounded(h_t)
            i, o, forget, cell = ops.split(x_t + ops.dense(read, r[d], bias[1]), hidden, -1)
            if peepholes is not None:
                i, forget = i + p_i * c_t, forget + p_f * c_t
            i = f(layer.clipped(i))
            forget = 1 - i if coupled else f(layer.clipped(forget))
            c_t = forget * c_t + i * g(layer.clipped(cell))
            if peepholes is not None:
                o = o + p_o * c_t
            return [f(layer.clipped(o)) * squash(c_t), c_t]

        return layer.steps(from_input, lengths, state, step)

    return layer.run(x, lengths, states, run)


@operator("GRU")
def _gru(call, x, w, r, b=None, lengths=None, h=None):
    """Gates lie in the order update, reset, hidden."""
    layer = _Layer(call, ("Sigmoid", "Tanh"))
    behind = call.get("linear_before_reset", 0)
    hidden = shape_of(r)[2]

    def run(d, sequence, lengths, state):
        bias = [None, None] if b is None else [b[d][: 3 * hidden], b[d][3 * hidden :]]
        if layer.plain and lengths is None and behind:
            parts = [None if v is None else _blocks(v, (1, 0, 2), hidden) for v in (w[d], r[d], *bias)]
            return _gru_layer(sequence, *state, *parts)[:2]
        f, g = layer.activations[d]
        from_input = ops.dense(sequence, w[d], bias[0])
        gates, new = r[d][: 2 * hidden], r[d][2 * hidden :]
        gates_bias, new_bias = (None, None) if b is None else (bias[1][: 2 * hidden], bias[1][2 * hidden :])

        def step(x_t, state):
            (h_t,) = state
            update, reset = ops.split(x_t[:, : 2 * hidden] + ops.dense(h_t, gates, gates_bias), hidden, -1)
            z, s = f(layer.clipped(update)), f(layer.clipped(reset))
            part = s * ops.dense(h_t, new, new_bias) if behind else ops.dense(s * h_t, new, new_bias)
            n = g(layer.clipped(x_t[:, 2 * hidden :] + part))
            return [(1 - z) * n + z * h_t]

        return layer.steps(from_input, lengths, state, step)

    return layer.run(x, lengths, [_initial(layer, x, h, hidden)], run)


@operator("RNN")
def _rnn(call, x, w, r, b=None, lengths=None, h=None):
    layer = _Layer(call, ("Tanh",))
    hidden = shape_of(r)[2]

    def run(d, sequence, lengths, state):
        bias = [None, None] if b is None else [b[d][:hidden], b[d][hidden:]]
        if layer.names[d] in ("tanh", "relu") and layer.clip is None and lengths is None:
            return _rnn_layer(sequence, *state, w[d], r[d], *bias, nonlinearity=layer.names[d])[:2]
        from_input = ops.dense(sequence, w[d], bias[0])
        (f,) = layer.activations[d]

        def step(x_t, state):
            return [f(layer.clipped(x_t + ops.dense(state[0], r[d], bias[1])))]

        return layer.steps(from_input, lengths, state, step)

    return layer.run(x, lengths, [_initial(layer, x, h, hidden)], run)
