"""Rules of normalization, recurrent layers and attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.io.compositions import Unsupported
from mycelia.io.onnx.rules.elementwise import test
from mycelia.io.onnx.rules.indices import arange
from mycelia.io.onnx.rules.products import turned
from mycelia.io.onnx.rules.table import rule


def wide(w: Any, x: Any) -> Any:
    """`x` in the type in which statistics are computed: float32 for the 16-bit floats."""
    return w.cast(x, dtypes.float32) if x.dtype.itemsize < 4 else x


def _statistics(w: Any, x: Any, axes: list[int], epsilon: float) -> tuple[Any, Any, Any]:
    """x minus its mean, the mean, and the inverse deviation."""
    mean = w.reduce("ReduceMean", x, axes, True)
    shifted = w.op("Sub", x, mean)
    variance = w.reduce("ReduceMean", w.op("Mul", shifted, shifted), axes, True)
    deviation = w.op("Sqrt", w.op("Add", variance, w.scalar(epsilon, x)))
    return shifted, mean, w.op("Reciprocal", deviation)


@rule("batch_norm_infer")
def _batch_norm(w, node, x, *statistics):
    dtype = x.dtype
    values = [wide(w, v) for v in (x, *statistics)]
    last = node.attrs["data_format"] == "NHWC" and x.rank > 2
    if last:
        values[0] = w.op("Transpose", values[0], perm=[0, x.rank - 1, *range(1, x.rank - 1)])
    y = w.op("BatchNormalization", *values, epsilon=node.attrs["epsilon"])
    y = w.op("Transpose", y, perm=[0, *range(2, x.rank), 1]) if last else y
    return w.cast(y, dtype)


@rule("layer_norm")
def _layer_norm(w, node, x, gamma, beta):
    first, params = (node.attrs[n] % x.rank for n in ("begin_norm_axis", "begin_params_axis"))
    epsilon, axes = node.attrs["epsilon"], [*range(first, x.rank)]
    full = wide(w, x)

    def statistic(place: int) -> Any:
        return lambda: _statistics(w, full, axes, epsilon)[place]

    if gamma is not None and params == first and full.dtype is dtypes.float32:
        given = [wide(w, v) for v in (gamma, beta) if v is not None]
        y = w.op("LayerNormalization", full, *given, axis=first, epsilon=epsilon)
    else:
        shifted, _, inverse = _statistics(w, full, axes, epsilon)
        y = w.op("Mul", shifted, inverse)
        y = y if gamma is None else w.op("Mul", y, wide(w, gamma))
        y = y if beta is None else w.op("Add", y, wide(w, beta))
    return [w.cast(y, x.dtype), statistic(1), statistic(2)]


@rule("group_norm")
def _group_norm(w, node, x, weight, bias):
    groups, epsilon = node.attrs["num_groups"], node.attrs["eps"]
    if 0 in x.shape:
        return [x, None, None]
    rows = w.op("Reshape", wide(w, x), w.ints([0, groups, -1]))

    def statistic(place: int) -> Any:
        return lambda: w.squeeze(_statistics(w, rows, [2], epsilon)[place], [2])

    rows.shape = (x.shape[0], groups, -1)
    if rows.dtype is dtypes.float32:
        scale, shift = (w.constant(np.full(groups, n, np.float32)) for n in (1, 0))
        y = w.op("InstanceNormalization", rows, scale, shift, epsilon=epsilon)
    else:
        shifted, _, inverse = _statistics(w, rows, [2], epsilon)
        y = w.op("Mul", shifted, inverse)
    y = w.reshape_as(y, x)
    for kind, value in (("Mul", weight), ("Add", bias)):
        if value is not None:
            y = w.op(kind, y, w.unsqueeze(wide(w, value), [*range(1, x.rank - 1)]))
    return [w.cast(y, x.dtype), statistic(1), statistic(2)]


@rule("rms_norm")
def _rms_norm(w, node, x, gamma):
    full = wide(w, x)
    square = w.op("Mul", full, full)
    mean = w.reduce("ReduceMean", square, [*range(x.rank - gamma.rank, x.rank)], True)
    inverse = w.op("Reciprocal", w.op("Sqrt", w.op("Add", mean, w.scalar(node.attrs["epsilon"], full))))
    y = w.op("Mul", w.op("Mul", full, inverse), wide(w, gamma))
    return [w.cast(y, x.dtype), w.cast(inverse, node.outputs[1].type.dtype)]


# ---- sequences -------------------------------------------------------------------------------------


def _gates(w: Any, value: Any, order: tuple[int, ...]) -> Any:
    """The gates of a weight or bias in another order, with an axis for the direction."""
    count = len(order)
    if order != tuple(range(count)):
        size = value.shape[0] // count
        pieces = w.ops("Split", [value, w.ints((size,) * count)], (None,) * count, axis=0)
        value = w.op("Concat", *(pieces[i] for i in order), axis=0)
    return w.op("Unsqueeze", value, w.ints([0]))


def _recurrent(
    w: Any, kind: str, x: Any, states: list, weights: tuple, biases: tuple, order: tuple, **how: Any
) -> Any:
    """A recurrent operator in one direction: all results, then the last states."""
    bias = None
    if biases != (None, None):
        zeros = w.constant(np.zeros(weights[0].shape[0]), x.dtype)
        bias = w.op("Concat", *(_gates(w, zeros if b is None else b, order) for b in biases), axis=1)
    packed = [_gates(w, value, order) for value in weights]
    begin = [w.unsqueeze(s, [0]) for s in states]
    names = (None,) * (1 + len(states))
    made = w.ops(kind, [x, *packed, bias, None, *begin], names, hidden_size=weights[1].shape[1], **how)
    return [w.squeeze(made[0], [1]), *(w.squeeze(m, [0]) for m in made[1:])]


@rule("lstm_layer")
def _lstm(w, node, x, h, c, w_ih, w_hh, b_ih, b_hh):
    found = _recurrent(w, "LSTM", x, [h, c], (w_ih, w_hh), (b_ih, b_hh), (0, 3, 1, 2))  # i, o, f, g
    return [*found, None, None]


@rule("gru_layer")
def _gru(w, node, x, h, w_ih, w_hh, b_ih, b_hh):
    order = (1, 0, 2)  # z, r, n
    found = _recurrent(w, "GRU", x, [h], (w_ih, w_hh), (b_ih, b_hh), order, linear_before_reset=1)
    return [*found, None]


@rule("rnn_layer")
def _rnn(w, node, x, h, w_ih, w_hh, b_ih, b_hh):
    kind = {"tanh": "Tanh", "relu": "Relu"}[node.attrs["nonlinearity"]]
    return _recurrent(w, "RNN", x, [h], (w_ih, w_hh), (b_ih, b_hh), (0,), activations=[kind])


@rule("attention")
def _attention(w, node, query, key, value, mask, _):
    how = node.attrs
    if how["p"]:
        raise Unsupported("attention with dropout")
    if (how["masking"], how["hidden"], how["unseen"]) != ("add", -np.inf, "zero"):
        raise Unsupported("attention in a form that only the compiler makes")
    if 0 in (*query.shape, *key.shape):
        raise Unsupported("attention over nothing")
    hidden = w.scalar(-np.inf, query)
    scores = w.op("MatMul", w.op("Mul", query, w.scalar(how["scale"], query)), turned(w, key))
    if how["is_causal"]:
        rows = w.unsqueeze(arange(w, w.size_of(query, -2)), [1])
        later = test(w, "Greater", arange(w, w.size_of(key, -2)), rows)
        scores = w.op("Where", later, hidden, scores)
    if mask is not None and mask.dtype.is_bool:  # True: may be seen
        scores = w.op("Where", mask, scores, hidden)
    elif mask is not None:
        scores = w.op("Add", scores, w.cast(mask, scores.dtype))
    weights = w.op("Softmax", scores, axis=-1)
    if mask is not None:  # a query that sees no key gives zeros
        blind = test(w, "Equal", w.reduce("ReduceMax", scores, [-1], True), hidden)
        weights = w.op("Where", blind, w.scalar(0, weights), weights)

    def log_sum() -> Any:
        return w.reduce("ReduceLogSumExp", scores, [-1], False)

    return [w.op("MatMul", weights, value), log_sum]


# ---- losses ----------------------------------------------------------------------------------------


@rule("softmax_cross_entropy_with_logits")
def _cross_entropy(w, node, logits, labels):
    chosen = w.op("Mul", labels, w.op("LogSoftmax", logits, axis=-1))
    loss = w.op("Neg", w.reduce("ReduceSum", chosen, [-1], False))

    def gradient() -> Any:
        total = w.reduce("ReduceSum", labels, [-1], True)
        return w.op("Sub", w.op("Mul", w.op("Softmax", logits, axis=-1), total), labels)

    return [loss, gradient]


@rule("sparse_softmax_cross_entropy_with_logits")
def _sparse_cross_entropy(w, node, logits, labels):
    reduction, ignored = node.attrs["reduction"], node.attrs["ignore_index"]
    if logits.shape[1] < 0:
        raise Unsupported(f"{node.op.name} over classes whose number is left open")
    labels = w.cast(labels, dtypes.int64)
    counts = w.cast(test(w, "Not", test(w, "Equal", labels, w.scalar(ignored, labels))), logits.dtype)
    steps = w.constant(np.arange(logits.shape[1], dtype=np.int64))
    hit = w.cast(test(w, "Equal", w.unsqueeze(labels, [1]), steps), logits.dtype)
    hit = w.op("Mul", hit, w.unsqueeze(counts, [1]))
    chosen = w.op("Where", w.cast(hit, dtypes.bool_), w.op("LogSoftmax", logits, axis=-1), w.scalar(0, hit))
    loss, number = w.op("Neg", w.reduce("ReduceSum", chosen, [1], False)), None
    if reduction != "none":
        loss = w.reduce("ReduceSum", loss, [0], False)
    if reduction == "mean":  # over the labels that are not ignored
        number = w.op("Max", w.reduce("ReduceSum", counts, [0], False), w.scalar(1, loss))
        loss = w.op("Div", loss, number)

    def gradient() -> Any:
        shares = w.op("Mul", w.op("Softmax", logits, axis=-1), w.unsqueeze(counts, [1]))
        difference = w.op("Sub", shares, hit)
        return difference if number is None else w.op("Div", difference, number)

    return [loss, gradient]
