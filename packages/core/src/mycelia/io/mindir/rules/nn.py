"""Rules of activations, recurrent layers, attention, losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir import TensorType
from mycelia.engine.ops.nn_ops import gru, rnn
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.compositions import traced
from mycelia.io.mindir.rules.table import (
    Unsupported,
    attributes,
    require_static,
    result_type,
    rule,
    scalar,
    shaped,
)

# ---- activations ---------------------------------------------------------------------------------


@rule("softmax")
def _softmax(w, node, inputs):
    return w.op("Softmax", inputs[0], (node.attrs["axis"],), out=result_type(node))


@rule("gelu")
def _gelu(w, node, inputs):
    type = result_type(node)
    if node.attrs["approximate"] == "tanh":
        return w.op("GeLU", inputs[0], out=type)
    scaled = w.op("Mul", inputs[0], scalar(1 / math.sqrt(2), type.dtype), out=type)
    gate = w.op("Add", w.op("Erf", scaled, out=type), scalar(1, type.dtype), out=type)
    half = w.op("Mul", inputs[0], scalar(0.5, type.dtype), out=type)
    return w.op("Mul", half, gate, out=type)


@rule("leaky_relu")
def _leaky_relu(w, node, inputs):
    type, alpha = result_type(node), node.attrs["alpha"]
    scaled = w.op("Mul", inputs[0], scalar(alpha, type.dtype), out=type)
    return w.op("Maximum" if alpha <= 1 else "Minimum", inputs[0], scaled, out=type)


@rule("hardtanh")
def _hardtanh(w, node, inputs):
    type = result_type(node)
    name = w.op("Minimum", inputs[0], scalar(node.attrs["max_val"], type.dtype), out=type)
    return w.op("Maximum", name, scalar(node.attrs["min_val"], type.dtype), out=type)


@rule("softplus")
def _softplus(w, node, inputs):
    type, (beta, threshold) = result_type(node), attributes(node, "beta", "threshold")
    scaled = inputs[0] if beta == 1 else w.op("Mul", inputs[0], scalar(beta, type.dtype), out=type)
    smooth = w.primitive("Softplus", scaled, out=type)
    if beta != 1:
        smooth = w.op("Div", smooth, scalar(beta, type.dtype), out=type)
    large = w.op("Greater", scaled, scalar(threshold, type.dtype), out=TensorType(dtypes.bool_, type.shape))
    return w.op("Select", large, inputs[0], smooth, out=type)


@rule("logsigmoid")
def _logsigmoid(w, node, inputs):
    type = result_type(node)
    negative = w.op("Neg", inputs[0], out=type)
    return w.op("Neg", w.primitive("Softplus", negative, out=type), out=type)


@rule("threshold")
def _threshold(w, node, inputs):
    type, (limit, value) = result_type(node), attributes(node, "thr", "value")
    over = w.op("Greater", inputs[0], scalar(limit, type.dtype), out=TensorType(dtypes.bool_, type.shape))
    filler = w.op("Add", w.op("ZerosLike", inputs[0], out=type), scalar(value, type.dtype), out=type)
    return w.op("Select", over, inputs[0], filler, out=type)


# ---- sequences -----------------------------------------------------------------------------------


@rule("lstm_layer")
def _lstm_layer(w, node, inputs):
    """One LSTM operator; its weights are packed as W_ih, W_hh, b_ih + b_hh."""
    x, h0, c0, w_ih, w_hh, b_ih, b_hh = inputs
    types = [v.type if v is not None else None for v in node.inputs]
    y, h = (v.type for v in node.outputs[:2])
    if y.shape[0] < 0:
        raise Unsupported("lstm_layer with a number of steps that is not known")
    hidden, features = types[4].shape[1], types[0].shape[2]
    bias = b_hh if b_ih is None else b_ih
    if b_ih is not None and b_hh is not None:
        bias = w.op("Add", b_ih, b_hh, out=types[5])
    parts = [w.op("Reshape", n, (-1, 1, 1)) for n in (w_ih, w_hh, bias) if n is not None]
    packed = w.op("Concat", w.tuple(parts), 0)
    state = [w.op("ExpandDims", n, 0, out=shaped(h, (1, *h.shape))) for n in (h0, c0)]
    name = w.primitive(
        "LSTM", x, *state, packed, dropout=0.0, proj_size=0, has_bias=bias is not None, num_layers=1,
        hidden_size=hidden, bidirectional=False, input_size=features,
    )  # fmt: skip
    last = [w.op("Squeeze", w.item(name, i), (0,), out=h) for i in (1, 2)]
    return [w.item(name, 0, y), *last, None, None]


@rule("gru_layer", "rnn_layer")
def _unrolled_layer(w, node, inputs):
    """Step by step, as MindSpore writes these layers."""
    composition = {"gru_layer": gru._gru_composition, "rnn_layer": rnn._rnn_composition}[node.op.name]
    if node.inputs[0].type.shape[0] < 0:
        raise Unsupported(f"{node.op.name} with a number of steps that is not known")
    graph = traced(node.op.name, composition, [v and v.type for v in node.inputs], node.attrs.values())
    return [*w.inline(graph, inputs)[:2], *(None for _ in node.outputs[2:])]


@rule("attention")
def _attention(w, node, inputs):
    query, key, value, mask, _ = inputs
    q, k = (i.type for i in node.inputs[:2])
    scale, is_causal, p = attributes(node, "scale", "is_causal", "p")
    if p:
        raise Unsupported("attention with dropout")
    if attributes(node, "masking", "hidden", "unseen") != ("add", -np.inf, "zero"):
        raise Unsupported("attention in a form that only the compiler makes")
    scores = shaped(q, (*q.shape[:-1], k.shape[-2]))
    query = w.op("Mul", query, scalar(scale, q.dtype), out=q)
    name = w.op("BatchMatMul", query, key, False, True, out=scores)
    if is_causal:
        require_static(node, q, k)
        hidden = np.triu(np.full(scores.shape[-2:], -np.inf, np.float32), 1)
        name = w.op("Add", name, Tensor(hidden, q.dtype), out=scores)
    if mask is not None:
        type = node.inputs[3].type
        if type.dtype.is_bool:  # True: may be seen
            shown = w.op("LogicalNot", mask, out=type)
            name = w.op("MaskedFill", name, shown, scalar(-np.inf, q.dtype), out=scores)
        else:
            name = w.op("Add", name, mask, out=scores)
    weights = w.op("Softmax", name, (-1,), out=scores)
    out = node.outputs[0].type
    result = w.op("BatchMatMul", weights, value, False, False, out=out)
    if mask is not None and out.is_static:  # a query that sees no key gives zeros
        peak = shaped(scores, (*scores.shape[:-1], 1))
        best = w.op("ReduceMax", name, (-1,), True, out=peak)
        sees = w.op("Greater", best, scalar(-np.inf, q.dtype), out=TensorType(dtypes.bool_, peak.shape))
        sees = w.op("BroadcastTo", sees, out.shape, out=TensorType(dtypes.bool_, out.shape))
        result = w.op("Select", sees, result, w.op("ZerosLike", result, out=out), out=out)
    return [result, None]


# ---- losses --------------------------------------------------------------------------------------


def _reduced(w: Any, name: Any, type: TensorType, reduction: str, out: TensorType) -> Any:
    axes = tuple(range(type.rank))
    if reduction == "mean":
        return w.op("ReduceMean", name, axes, False, out=out)
    return w.op("ReduceSum", name, axes, False, False, out=out) if reduction == "sum" else name


@rule("squared_error")
def _squared_error(w, node, inputs):
    x = node.inputs[0].type
    square = w.op("Square", w.op("Sub", *inputs, out=x), out=x)
    return _reduced(w, square, x, node.attrs["reduction"], result_type(node))


@rule("softmax_cross_entropy_with_logits")
def _cross_entropy(w, node, inputs):
    pair = w.primitive("SoftmaxCrossEntropyWithLogits", *inputs)
    return [w.item(pair, 0, node.outputs[0].type), lambda: w.item(pair, 1, node.outputs[1].type)]


@rule("sparse_softmax_cross_entropy_with_logits")
def _sparse_cross_entropy(w, node, inputs):
    logits, labels = (v.type for v in node.inputs)
    reduction = node.attrs["reduction"]
    one, zero = scalar(1, logits.dtype), scalar(0, logits.dtype)
    picked = w.op("OneHot", inputs[1], logits.shape[-1], one, zero, -1, out=logits)
    chosen = w.op("Mul", picked, w.op("LogSoftmax", inputs[0], -1, out=logits), out=logits)
    loss = w.op("Neg", w.op("ReduceSum", chosen, (-1,), False, False))
    if reduction != "none":
        loss = w.op("ReduceSum", loss, tuple(range(labels.rank)), False, False)
    count = None
    if reduction == "mean":  # over the labels that are not ignored
        count = w.op("ReduceSum", picked, tuple(range(logits.rank)), False, False)
        count = w.op("Maximum", count, one)
        loss = w.op("Div", loss, count)

    def gradient() -> Any:
        counted = w.op("ReduceSum", picked, (-1,), True, False)  # 0 for what is ignored
        shares = w.op("Mul", w.op("Softmax", inputs[0], (-1,), out=logits), counted, out=logits)
        difference = w.op("Sub", shares, picked, out=logits)
        return difference if count is None else w.op("Div", difference, count, out=logits)

    return [loss, gradient]
