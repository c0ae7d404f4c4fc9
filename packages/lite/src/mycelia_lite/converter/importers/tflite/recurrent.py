"""Recurrent cells of TensorFlow Lite, whose states are tensors that keep their values from run to run.

Float arithmetic; weights of 8 bits are computed with the numbers that they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycelia import ops
from mycelia.ops.define import find
from mycelia_lite.converter.importers.onnx.calls import is_number, shape_of
from mycelia_lite.converter.importers.tflite import integer_lstm, integer_svdf
from mycelia_lite.converter.importers.tflite.calls import Call, operator, relu
from mycelia_lite.converter.importers.tflite.graphs import assign, value_of
from mycelia_lite.converter.importers.tflite.quantized import is_quantized, numbers

_lstm_layer, _rnn_layer = find("lstm_layer"), find("rnn_layer")
_ACTIVATIONS = {"NONE": lambda x: x, "RELU": relu, "RELU6": ops.relu6, "TANH": ops.tanh}
_NORM_EPSILON = 1e-8  # of the gates of an LSTM, as in TensorFlow Lite


def _options(call: Call, table: str) -> tuple[str, Callable]:
    """The name of the activation, and its function. How 8-bit weights are multiplied makes no difference."""
    name = call.name_of(table, "fused_activation_function")
    if name not in _ACTIVATIONS:
        raise call.option("fused_activation_function", name, "is not imported")
    call.get(table, "asymmetric_quantize_inputs")
    if is_quantized(call.inputs[0]):
        raise call.fail("a recurrent cell of integers")
    return name, _ACTIVATIONS[name]


def _written_out(call: Call, x: Any, states: Sequence[Any], step: Callable) -> tuple[Any, list[Any]]:
    """``step(x_t, states) -> (output, states)`` along the first axis: all outputs, the last states."""
    count = shape_of(x)[0]
    if not is_number(count):
        raise call.fail("a cell of this kind over a sequence of open length: give inputShape")
    outputs = []
    for t in range(count):
        made, states = step(x[t], states)
        outputs.append(made)
    return ops.stack(outputs), list(states)


def _sequence(call: Call, x: Any, time_major: bool) -> Any:
    """x [T, B, I]."""
    if len(shape_of(x)) != 3:
        raise call.fail(f"a sequence of {len(shape_of(x))} axes, 3 are needed")
    return x if time_major else ops.transpose(x, (1, 0, 2))


def _back(y: Any, time_major: bool) -> Any:
    return y if time_major else ops.transpose(y, (1, 0, 2))


# ---- simple cells ----------------------------------------------------------------------------------------


def _rnn(call: Call, x: Any, weights: Sequence[Any], state: Any, activation: tuple[str, Callable]) -> Any:
    """All states of x [T, B, I]; `weights`: of the input, of the state, bias."""
    name, function = activation
    w, r, b = weights
    h = value_of(call, state)
    if name in ("TANH", "RELU"):
        y, last = _rnn_layer(x, h, w, r, b, None, nonlinearity=name.lower())[:2]
    else:

        def step(x_t, states):
            h = function(x_t + ops.dense(states[0], r, None))
            return h, [h]

        y, (last,) = _written_out(call, ops.dense(x, w, b), [h], step)
    assign(call, state, last)
    return y


@operator("RNN")
def _rnn_of_one(call, x, w, r, b, state):
    activation = _options(call, "RNNOptions")
    return _rnn(call, ops.expand_dims(x, 0), (w, r, b), state, activation)[0]


@operator("UNIDIRECTIONAL_SEQUENCE_RNN")
def _sequence_rnn(call, x, w, r, b, state):
    activation = _options(call, "SequenceRNNOptions")
    time_major = call.get("SequenceRNNOptions", "time_major")
    return _back(_rnn(call, _sequence(call, x, time_major), (w, r, b), state, activation), time_major)


@operator("BIDIRECTIONAL_SEQUENCE_RNN")
def _bidirectional_rnn(
    call, x, w, r, b, state, back_w, back_r, back_b, back_state, more=None, more_w=None, more_back_w=None
):
    table = "BidirectionalSequenceRNNOptions"
    activation, time_major = _options(call, table), call.get(table, "time_major")
    if more is not None or more_w is not None or more_back_w is not None:
        raise call.fail("an auxiliary input")
    x = _sequence(call, x, time_major)
    forward = _rnn(call, x, (w, r, b), state, activation)
    backward = _rnn(call, ops.flip(x, (0,)), (back_w, back_r, back_b), back_state, activation)
    return _both(call, table, forward, ops.flip(backward, (0,)), time_major)


def _both(call: Call, table: str, forward: Any, backward: Any, time_major: bool) -> Any:
    if call.get(table, "merge_outputs"):
        return _back(ops.concat((forward, backward), -1), time_major)
    return _back(forward, time_major), _back(backward, time_major)


@operator("SVDF", raw=True)
def _svdf(call, x, features, times, bias=None, state=None):
    """A filter of each feature over the last runs: `times` [features, runs], the oldest first."""
    if is_quantized(call.inputs[0]):
        return integer_svdf.run(call, x, features, times, bias, state)
    x, features, times, bias, state = numbers(call, (x, features, times, bias, state))
    function = _options(call, "SVDFOptions")[1]
    rank = call.get("SVDFOptions", "rank")
    count, memory = shape_of(times)
    if rank < 1 or count % rank:
        raise call.option("rank", rank, f"does not divide {count} features")
    batch = shape_of(x)[0]
    before = ops.reshape(value_of(call, state), (batch, count, memory))
    now = ops.expand_dims(ops.dense(x, features, None), 2)
    kept = ops.concat((before[:, :, 1:], now), 2) if memory > 1 else now
    assign(call, state, ops.reshape(kept, (batch, count * memory)))
    y = ops.sum(ops.mul(kept, times), (2,))
    y = ops.sum(ops.reshape(y, (batch, count // rank, rank)), (2,))
    return function(y if bias is None else ops.add(y, bias))


# ---- LSTM ------------------------------------------------------------------------------------------------


class _Lstm:
    """One direction. Gates come in the order input, forget, cell, output; what is None is left out."""

    def __init__(self, call: Call, table: str, parts: Sequence[Any], norms: Sequence[Any] = (None,) * 4):
        self.call = call
        self.name, self.activation = _options(call, table)
        self.cell_clip, self.projection_clip = call.get(table, "cell_clip"), call.get(table, "proj_clip")
        self.w, self.r, self.peepholes = parts[0:4], parts[4:8], parts[8:11]
        self.bias, (self.projection, self.projection_bias) = parts[11:15], parts[15:17]
        self.norms = norms
        if any(v is None for v in (*self.w[1:], *self.r[1:], *self.bias[1:])):
            raise call.fail("weights or biases of a gate are left out")
        self.coupled = self.w[0] is None

    def run(self, x: Any, output: Any, cell: Any) -> Any:
        """All outputs of x [T, B, I]; the states are variables."""
        h, c = value_of(self.call, output), value_of(self.call, cell)
        extras = (*self.peepholes, *self.norms, self.projection)
        plain = self.name == "TANH" and not self.coupled and not self.cell_clip
        if plain and all(v is None for v in extras):
            joined = (ops.concat(tuple(v)) for v in (self.w, self.r, self.bias))
            y, h, c = _lstm_layer(x, h, c, *joined, None)[:3]
        else:
            y, (h, c) = _written_out(self.call, x, [h, c], self._step)
        assign(self.call, output, h)
        assign(self.call, cell, c)
        return y

    def _step(self, x: Any, states: Sequence[Any]) -> tuple[Any, list[Any]]:
        h, c = states
        forget = ops.sigmoid(self._gate(1, x, h, c))
        put = 1 - forget if self.coupled else ops.sigmoid(self._gate(0, x, h, c))
        c = forget * c + put * self.activation(self._gate(2, x, h, None))
        c = _clipped(c, self.cell_clip)
        y = ops.sigmoid(self._gate(3, x, h, c)) * self.activation(c)
        if self.projection is not None:
            y = _clipped(ops.dense(y, self.projection, self.projection_bias), self.projection_clip)
        return y, [y, c]

    def _gate(self, k: int, x: Any, h: Any, c: Any) -> Any:
        y = ops.dense(x, self.w[k], None) + ops.dense(h, self.r[k], None)
        peephole = None if k == 2 else self.peepholes[2 if k == 3 else k]
        if peephole is not None:
            y = y + c * peephole
        if self.norms[k] is not None:
            y = y - ops.mean(y, -1, True)
            y = y / ops.sqrt(ops.mean(y * y, -1, True) + _NORM_EPSILON) * self.norms[k]
        return y + self.bias[k]


def _clipped(x: Any, limit: float) -> Any:
    return ops.clip(x, -limit, limit) if limit > 0 else x


def _padded(inputs: Sequence[Any], count: int) -> list[Any]:
    return [*inputs, *[None] * (count - len(inputs))]


@operator("LSTM", raw=True)
def _lstm_of_one(call, *inputs):
    kind = call.name_of("LSTMOptions", "kernel_type")
    if kind != "FULL":
        raise call.option("kernel_type", kind, "is not imported")
    if len(call.outputs) != 1:
        raise call.fail(f"a cell with {len(call.outputs)} results, of which some are no results")
    if is_quantized(call.inputs[0]):
        x = ops.expand_dims(inputs[0], 0)
        return integer_lstm.run(call, "LSTMOptions", x, _padded(inputs[1:], 23))[0]
    x, *inputs = numbers(call, inputs)
    inputs = _padded(inputs, 23)
    layer = _Lstm(call, "LSTMOptions", inputs[:17], inputs[19:23])
    return layer.run(ops.expand_dims(x, 0), *inputs[17:19])[0]


@operator("UNIDIRECTIONAL_SEQUENCE_LSTM", raw=True)
def _sequence_lstm(call, *inputs):
    table = "UnidirectionalSequenceLSTMOptions"
    if call.get(table, "diagonal_recurrent_tensors"):
        raise call.option("diagonal_recurrent_tensors", True, "is not imported")
    time_major = call.get(table, "time_major")
    if is_quantized(call.inputs[0]):
        x = _sequence(call, inputs[0], time_major)
        return _back(integer_lstm.run(call, table, x, _padded(inputs[1:], 23)), time_major)
    x, *inputs = numbers(call, inputs)
    inputs = _padded(inputs, 23)
    layer = _Lstm(call, table, inputs[:17], inputs[19:23])
    return _back(layer.run(_sequence(call, x, time_major), *inputs[17:19]), time_major)


@operator("BIDIRECTIONAL_SEQUENCE_LSTM")
def _bidirectional_lstm(call, x, *inputs):
    table = "BidirectionalSequenceLSTMOptions"
    time_major, inputs = call.get(table, "time_major"), _padded(inputs, 47)
    if any(v is not None for v in inputs[38:]):
        raise call.fail("an auxiliary input")
    x = _sequence(call, x, time_major)
    forward = _Lstm(call, table, inputs[:17]).run(x, *inputs[34:36])
    backward = _Lstm(call, table, inputs[17:34]).run(ops.flip(x, (0,)), *inputs[36:38])
    return _both(call, table, forward, ops.flip(backward, (0,)), time_major)
