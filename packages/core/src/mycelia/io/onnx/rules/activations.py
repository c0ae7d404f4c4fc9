"""Rules of activations and clipping."""

from __future__ import annotations

import math

from mycelia.engine.base import dtypes
from mycelia.engine.ops.elementwise.clipping import _bound
from mycelia.io.onnx.rules.elementwise import test
from mycelia.io.onnx.rules.table import rule


@rule("clip", "hardtanh")
def _clip(w, node, x):
    names = ("min", "max") if node.op.name == "clip" else ("min_val", "max_val")
    for kind, name in zip(("Max", "Min"), names):
        bound = node.attrs[name]
        if bound is not None:
            bound = bound if x.dtype.is_floating else _bound(bound, x.dtype.np)
            x = w.op(kind, x, w.scalar(bound, x))
    return x


@rule("relu6")
def _relu6(w, node, x):
    return w.op("Min", w.op("Max", x, w.scalar(0, x)), w.scalar(6, x))


@rule("hardsigmoid", "hardswish")
def _hard(w, node, x):
    dtype = x.dtype
    if not dtype.is_floating:  # the fraction is cut off
        x = w.cast(x, dtypes.float64 if dtype.itemsize > 2 else dtypes.float32)
    shifted = w.op("Add", x, w.scalar(3, x))
    inside = w.op("Min", w.op("Max", shifted, w.scalar(0, x)), w.scalar(6, x))
    if node.op.name == "hardswish":
        inside = w.op("Mul", x, inside)
    return w.cast(w.op("Div", inside, w.scalar(6, x)), dtype)


@rule("hardshrink")
def _hardshrink(w, node, x):
    outside = test(w, "Greater", w.op("Abs", x), w.scalar(node.attrs["lambd"], x))
    return w.op("Where", outside, x, w.scalar(0, x))


@rule("softshrink")
def _softshrink(w, node, x):
    edge = w.scalar(node.attrs["lambd"], x)
    below = test(w, "Less", x, w.op("Neg", edge))
    inside = w.op("Where", below, w.op("Add", x, edge), w.scalar(0, x))
    return w.op("Where", test(w, "Greater", x, edge), w.op("Sub", x, edge), inside)


@rule("threshold")
def _threshold(w, node, x):
    over = test(w, "Greater", x, w.scalar(node.attrs["thr"], x))
    return w.op("Where", over, x, w.scalar(node.attrs["value"], x))


@rule("celu")
def _celu(w, node, x):
    alpha = node.attrs["alpha"]
    if alpha == 1:
        return w.op("Elu", x, alpha=1.0)
    scaled = w.op("Elu", w.op("Div", x, w.scalar(alpha, x)), alpha=1.0)
    return w.op("Mul", scaled, w.scalar(alpha, x))


@rule("prelu")
def _prelu(w, node, x, weight):
    if x.rank == 0:
        weight = w.squeeze(weight, [0])
    elif x.rank > 2 and weight.shape != (1,):
        weight = w.reshape(weight, (-1, *(1 for _ in range(x.rank - 2))))
    return w.op("PRelu", x, weight)


@rule("softplus")
def _softplus(w, node, x):
    beta, threshold = node.attrs["beta"], node.attrs["threshold"]
    scaled = x if beta == 1 else w.op("Mul", x, w.scalar(beta, x))
    soft = w.op("Softplus", scaled)
    soft = soft if beta == 1 else w.op("Div", soft, w.scalar(beta, x))
    return w.op("Where", test(w, "Greater", scaled, w.scalar(threshold, x)), x, soft)


@rule("logsigmoid")
def _logsigmoid(w, node, x):
    return w.op("Neg", w.op("Softplus", w.op("Neg", x)))


@rule("silu")
def _silu(w, node, x):
    return w.op("Mul", x, w.op("Sigmoid", x))


@rule("gelu")
def _gelu(w, node, x):
    tanh = node.attrs["approximate"] == "tanh"
    if w.model.opset >= 20:
        return w.op("Gelu", x, approximate="tanh" if tanh else "none")
    if tanh:
        cube = w.op("Mul", w.op("Mul", w.op("Mul", x, x), x), w.scalar(0.044715, x))
        part = w.op("Tanh", w.op("Mul", w.op("Add", x, cube), w.scalar(math.sqrt(2 / math.pi), x)))
    else:
        part = w.op("Erf", w.op("Mul", x, w.scalar(math.sqrt(0.5), x)))
    half = w.op("Mul", x, w.scalar(0.5, x))
    return w.op("Mul", half, w.op("Add", part, w.scalar(1, x)))
