"""Rules of normalization, by statistics and by groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycelia.engine.base.dtypes import DType
from mycelia.engine.ir import Node
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.mindir.rules.table import (
    Unsupported,
    attributes,
    require_static,
    result_type,
    rule,
    scalar,
    shaped,
)


def _only_first(w: Any, node: Node, name: Any) -> list:
    """The outputs of an op whose statistics beyond the first only gradients use: those have no name."""
    return [w.item(name, 0, node.outputs[0].type), *(None for _ in node.outputs[1:])]


@rule("batch_norm_infer")
def _batch_norm(w, node, inputs):
    x, out = node.inputs[0].type, result_type(node)
    names = list(inputs)
    if node.attrs["data_format"] == "NHWC":
        return _normalized(w, node, names)
    middle = x
    if x.rank not in (2, 4):
        middle = shaped(x, (x.shape[0], x.shape[1], math.prod(x.shape[2:]) if x.rank > 2 else 1, 1))
        if sum(n < 0 for n in x.shape) > 1 or any(n < 0 for n in x.shape[1:]):
            raise Unsupported("batch normalization with image sizes that are not known")
        names[0] = w.op("Reshape", names[0], middle.shape, out=middle)
    name = w.op("BatchNorm", *names, False, node.attrs["epsilon"], 0.1, 0)
    name = w.item(name, 0, middle)
    return name if middle is x else w.op("Reshape", name, x.shape, out=out)


def _normalized(w: Any, node: Node, names: list) -> Any:
    """Batch normalization over the last dimension, out of elementwise operators."""
    x, scale, bias, mean, variance = names
    vector, out = node.inputs[1].type, result_type(node)
    shifted = w.op("Add", variance, scalar(node.attrs["epsilon"], vector.dtype), out=vector)
    factor = w.op("Mul", scale, w.op("Rsqrt", shifted, out=vector), out=vector)
    return w.op("Add", w.op("Mul", w.op("Sub", x, mean, out=out), factor, out=out), bias, out=out)


@rule("batch_norm_train")
def _batch_norm_train(w, node, inputs):
    """Out of elementwise operators; the moved statistics are results, which the caller assigns."""
    old_mean, old_variance, x, scale, bias = inputs
    type, vector = node.inputs[2].type, node.inputs[3].type
    require_static(node, type)
    channel = 1 if node.attrs["data_format"] == "NCHW" else type.rank - 1
    axes = tuple(d for d in range(type.rank) if d != channel)
    spread = shaped(type, [n if d == channel else 1 for d, n in enumerate(type.shape)])
    mean = w.op("ReduceMean", x, axes, True, out=spread)
    shifted = w.op("Sub", x, mean, out=type)
    variance = w.op("ReduceMean", w.op("Square", shifted, out=type), axes, True, out=spread)
    inverse = w.op(
        "Rsqrt", w.op("Add", variance, scalar(node.attrs["epsilon"], type.dtype), out=spread), out=spread
    )
    factor = w.op("Mul", inverse, w.op("Reshape", scale, spread.shape, out=spread), out=spread)
    y = w.op(
        "Add",
        w.op("Mul", shifted, factor, out=type),
        w.op("Reshape", bias, spread.shape, out=spread),
        out=type,
    )
    count = type.size // type.shape[channel]
    moved = []
    for old, new, unbiased in ((old_mean, mean, 1.0), (old_variance, variance, count / max(count - 1, 1))):
        new = w.op(
            "Mul", w.op("Reshape", new, vector.shape, out=vector), scalar(unbiased, vector.dtype), out=vector
        )
        step = w.op(
            "Mul", w.op("Sub", new, old, out=vector), scalar(node.attrs["momentum"], vector.dtype), out=vector
        )
        moved.append(w.op("Add", old, step, out=vector))
    statistics = [w.op("Reshape", n, vector.shape, out=vector) for n in (mean, inverse)]
    return [*moved, y, *statistics]


def _vector(w: Any, name: Any, value: float, shape: Sequence[int], dtype: DType) -> Any:
    """A weight, or a constant one where the op has none."""
    return Tensor(np.full(shape, value, np.float32), dtype) if name is None else name


@rule("l2_normalize")
def _l2_normalize(w, node, inputs):
    type, (axis, epsilon) = result_type(node), attributes(node, "axis", "epsilon")
    total = w.op("SumExt", w.op("Square", inputs[0], out=type), axis, True, None)
    factor = w.op("Rsqrt", w.op("Maximum", total, scalar(epsilon, type.dtype)))
    return w.op("Mul", inputs[0], factor, out=type)


@rule("layer_norm")
def _layer_norm(w, node, inputs):
    x = node.inputs[0].type
    axis = node.attrs["begin_norm_axis"] % x.rank
    gamma = _vector(w, inputs[1], 1, x.shape[axis:], x.dtype)
    beta = _vector(w, inputs[2], 0, x.shape[axis:], x.dtype)
    name = w.op("LayerNorm", inputs[0], gamma, beta, axis, axis, node.attrs["epsilon"])
    y, mean, inverse = (v.type for v in node.outputs)

    def inverse_deviation() -> Any:
        variance = w.item(name, 2, inverse)
        return w.op("Rsqrt", w.op("Add", variance, scalar(node.attrs["epsilon"], inverse.dtype)), out=inverse)

    return [w.item(name, 0, y), lambda: w.item(name, 1, mean), inverse_deviation]


@rule("group_norm")
def _group_norm(w, node, inputs):
    x = node.inputs[0].type
    gamma = _vector(w, inputs[1], 1, x.shape[1:2], x.dtype)
    beta = _vector(w, inputs[2], 0, x.shape[1:2], x.dtype)
    name = w.op("GroupNorm", inputs[0], node.attrs["num_groups"], gamma, beta, node.attrs["eps"])
    return _only_first(w, node, name)


@rule("rms_norm")
def _rms_norm(w, node, inputs):
    x, gamma = (v.type for v in node.inputs)
    axes = tuple(range(x.rank - gamma.rank, x.rank))
    spread = node.outputs[1].type
    mean = w.op("ReduceMean", w.op("Square", inputs[0], out=x), axes, True, out=spread)
    factor = w.op("Rsqrt", w.op("Add", mean, scalar(node.attrs["epsilon"], x.dtype), out=spread), out=spread)
    return [w.op("Mul", w.op("Mul", inputs[0], factor, out=x), inputs[1], out=x), factor]
