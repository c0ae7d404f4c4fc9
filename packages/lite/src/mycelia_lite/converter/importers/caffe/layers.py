"""Caffe's layers that are no windows: products, normalizations, activations, shapes."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.errors import Code
from mycelia_lite.converter.importers.caffe.calls import Call, layer
from mycelia_lite.converter.importers.onnx.calls import along, cast, known_shape, scalar, shape_of

# ---- activations


def _plain(kind: str, op: Any) -> None:
    layer(kind)(lambda call, x: op(x))


for _kind, _op in {
    "ReLU6": ops.relu6, "Sigmoid": ops.sigmoid, "TanH": ops.tanh, "AbsVal": ops.abs, "Dropout": lambda x: x,
}.items():  # fmt: skip
    _plain(_kind, _op)


@layer("ReLU")
def _relu(call, x):
    slope = call.get("relu_param", "negative_slope")
    if not slope:
        return ops.relu(x)
    if 0 <= slope <= 1:
        return ops.leaky_relu(x, slope)
    return ops.where(ops.less(x, scalar(0, x)), ops.mul(x, scalar(slope, x)), x)


@layer("PReLU")
def _prelu(call, x):
    (slope,) = call.weights(1)
    slope = ops.reshape(slope, (-1,))
    count = 1 if call.get("prelu_param", "channel_shared") else known_shape(call, x, (1,))[1]
    if shape_of(slope) != (count,):
        raise call.fail(f"{shape_of(slope)[0]} slopes for {count} channels", Code.GRAPH_FILE_ERROR)
    return ops.prelu(x, slope)


@layer("ELU", "Elu")
def _elu(call, x):
    alpha = call.get("elu_param", "alpha")
    below = ops.elu(x, 1.0)
    return below if alpha == 1 else ops.where(ops.less(x, scalar(0, x)), ops.mul(below, scalar(alpha, x)), x)


@layer("Softmax")
def _softmax(call, x):
    return ops.softmax(x, call.axis("softmax_param", x))


@layer("Power")
def _power(call, x):
    """(shift + scale x) ^ power"""
    power, scale, shift = (call.get("power_param", name) for name in ("power", "scale", "shift"))
    x = x if scale == 1 else ops.mul(x, scalar(scale, x))
    x = x if shift == 0 else ops.add(x, scalar(shift, x))
    return x if power == 1 else ops.square(x) if power == 2 else ops.pow(x, scalar(power, x))


def _exponent(call: Call, block: str) -> float:
    """The natural logarithm of the base, which -1 stands for e."""
    base = call.get(block, "base")
    if base != -1 and base <= 0:
        raise call.parameter("base", base, "but must be positive")
    return 1.0 if base == -1 else math.log(base)


@layer("Exp")
def _exp(call, x):
    """base ^ (shift + scale x)"""
    log = _exponent(call, "exp_param")
    scale, shift = call.get("exp_param", "scale") * log, call.get("exp_param", "shift") * log
    x = x if scale == 1 else ops.mul(x, scalar(scale, x))
    return ops.exp(x if shift == 0 else ops.add(x, scalar(shift, x)))


@layer("Log")
def _log(call, x):
    """The logarithm of shift + scale x"""
    log = _exponent(call, "log_param")
    scale, shift = call.get("log_param", "scale"), call.get("log_param", "shift")
    x = x if scale == 1 else ops.mul(x, scalar(scale, x))
    y = ops.log(x if shift == 0 else ops.add(x, scalar(shift, x)))
    return y if log == 1 else ops.mul(y, scalar(1 / log, y))


# ---- products and normalizations


@layer("InnerProduct")
def _inner_product(call, x):
    """The axes from `axis` on are one; weights [O, I], or turned."""
    block = "inner_product_param"
    outputs, turned = call.get(block, "num_output"), call.get(block, "transpose")
    weight, *bias = call.weights(1 + call.get(block, "bias_term"))
    axis = call.axis(block, x)
    shape = shape_of(x)
    inputs = math.prod(known_shape(call, x, range(axis, len(shape)))[axis:])
    if math.prod(shape_of(weight)) != outputs * inputs or bias and math.prod(shape_of(bias[0])) != outputs:
        raise call.fail(
            f"weights of shape {list(shape_of(weight))} for {inputs} inputs and {outputs} outputs",
            Code.GRAPH_FILE_ERROR,
        )
    weight = ops.reshape(weight, (inputs, outputs) if turned else (outputs, inputs))
    weight = ops.transpose(weight, (1, 0)) if turned else weight
    x = x if len(shape) == axis + 1 else ops.reshape(x, (*shape[:axis], inputs))
    return ops.dense(x, weight, ops.reshape(bias[0], (outputs,)) if bias else None)


@layer("BatchNorm")
def _batch_norm(call, x):
    """Blobs: means, variances, both times the number that is the third."""
    block = "batch_norm_param"
    call.get(block, "moving_average_fraction")
    if call.has(block, "use_global_stats") and not call.get(block, "use_global_stats"):
        raise call.parameter("use_global_stats", False, "statistics of a batch are not imported")
    mean, variance, factor = (b.asnumpy().reshape(-1).astype(np.float64) for b in call.weights(3))
    channels = known_shape(call, x, (1,))[1]
    if mean.size != channels or variance.size != channels or factor.size != 1:
        raise call.fail(f"{mean.size} means for {channels} channels", Code.GRAPH_FILE_ERROR)
    factor = 1 / factor[0] if factor[0] else 0.0
    one = np.ones(channels, np.float32)
    given = (one, 0 * one, (mean * factor).astype(np.float32), (variance * factor).astype(np.float32))
    return _infer(x, *map(ms.Tensor, given), call.get(block, "eps"))


def _infer(x: Any, scale: Any, bias: Any, mean: Any, variance: Any, epsilon: float) -> Any:
    rank = len(shape_of(x))
    if rank in (2, 4):
        return ops.batch_norm(x, mean, variance, scale, bias, training=False, eps=epsilon)
    factor = 1 / np.sqrt(variance.asnumpy() + np.float32(epsilon))
    x = ops.sub(x, along(mean, 1, rank))
    return ops.mul(x, along(ms.Tensor(factor.astype(np.float32)), 1, rank))


def _spread(call: Call, block: str, x: Any, vector: Any) -> Any:
    """A blob as one that broadcasts to x: its axes are those from `axis` on."""
    axis, count = call.axis(block, x), call.get(block, "num_axes")
    shape = known_shape(call, x, range(axis, len(shape_of(x))))
    part = shape[axis:] if count == -1 else shape[axis : axis + count]
    if math.prod(part) != math.prod(shape_of(vector)):
        raise call.fail(f"a factor of shape {list(shape_of(vector))} for {list(part)}", Code.GRAPH_FILE_ERROR)
    return ops.reshape(vector, (1,) * axis + tuple(part) + (1,) * (len(shape) - axis - len(part)))


@layer("Scale")
def _scale(call, x, factor=None):
    """x times a blob or the second input, whose axes are those of x from `axis` on, plus a blob."""
    block = "scale_param"
    blobs = call.weights((factor is None) + call.get(block, "bias_term"))
    if factor is None:
        factor = _spread(call, block, x, blobs.pop(0))
    else:
        axis, shape = call.axis(block, x), shape_of(factor)
        call.get(block, "num_axes")
        factor = ops.reshape(factor, (1,) * axis + shape + (1,) * (len(shape_of(x)) - axis - len(shape)))
    y = ops.mul(x, factor)
    return ops.add(y, _spread(call, block, y, blobs[0])) if blobs else y


@layer("Bias")
def _bias(call, x):
    (bias,) = call.weights(1)
    return ops.add(x, _spread(call, "bias_param", x, bias))


@layer("LRN")
def _lrn(call, x):
    """x / (k + alpha / size * sum of squares of the channels around) ** beta."""
    size, alpha, beta, k = (call.get("lrn_param", n) for n in ("local_size", "alpha", "beta", "k"))
    if call.choice("lrn_param", "norm_region") != "ACROSS_CHANNELS":
        raise call.parameter("norm_region", "WITHIN_CHANNEL", "only ACROSS_CHANNELS is imported")
    if not size % 2 or len(shape_of(x)) != 4:
        raise call.parameter("local_size", size, "but must be odd")
    return ops.lrn(x, size // 2, k, alpha / size, beta)


@layer("Eltwise")
def _eltwise(call, *inputs):
    operation, factors = call.choice("eltwise_param", "operation"), call.get("eltwise_param", "coeff")
    if len({shape_of(x) for x in inputs}) != 1:
        raise call.fail(f"inputs of shapes {[list(shape_of(x)) for x in inputs]}")
    if factors and (operation != "SUM" or len(factors) != len(inputs)):
        raise call.parameter("coeff", factors, f"for {operation} of {len(inputs)} inputs")
    if factors:
        inputs = [x if f == 1 else ops.mul(x, scalar(f, x)) for f, x in zip(factors, inputs)]
    return functools.reduce({"SUM": ops.add, "PROD": ops.mul, "MAX": ops.maximum}[operation], inputs)


@layer("Reduction")
def _reduction(call, x):
    """The axes from `axis` on become one number, times `coeff`."""
    block = "reduction_param"
    axis, factor = call.axis(block, x), call.get(block, "coeff")
    axes = tuple(range(axis, len(shape_of(x))))
    operation = call.choice(block, "operation")
    x = {"ASUM": ops.abs, "SUMSQ": ops.square}.get(operation, lambda v: v)(x)
    y = ops.mean(x, axes, False) if operation == "MEAN" else ops.sum(x, axes, False)
    return y if factor == 1 else ops.mul(y, scalar(factor, y))


@layer("ArgMax")
def _argmax(call, x):
    """Places of the `top_k` largest, as floats; with `out_max_val` along an axis the elements themselves."""
    block = "argmax_param"
    count, values = call.get(block, "top_k"), call.get(block, "out_max_val")
    along_axis = call.has(block, "axis")
    shape = known_shape(call, x, range(1, len(shape_of(x))))
    axis = call.axis(block, x) if along_axis else 1
    rows = x if along_axis else ops.reshape(x, (shape[0], math.prod(shape[1:])))
    n = shape_of(rows)[axis]
    if not 1 <= count <= n:
        raise call.parameter("top_k", count, f"of {n} elements")
    largest, places = ops.topk(rows, count, axis)
    places = cast(places, x.dtype)
    if along_axis:
        return largest if values else places
    return ops.stack([places, largest], 1) if values else ops.expand_dims(places, 1)


# ---- shapes


@layer("Concat")
def _concat(call, *inputs):
    block = "concat_param"
    axis = call.axis(block, inputs[0], "concat_dim" if call.has(block, "concat_dim") else "axis")
    return ops.concat(list(inputs), axis) if len(inputs) > 1 else inputs[0]


@layer("Slice")
def _slice(call, x):
    """Parts that begin at the points, or that are equal."""
    block = "slice_param"
    axis = call.axis(block, x, "slice_dim" if call.has(block, "slice_dim") else "axis")
    n, count, points = (
        known_shape(call, x, (axis,))[axis],
        len(call.message.top),
        call.get(block, "slice_point"),
    )
    if not points:
        if n % count:
            raise call.fail(f"{count} equal parts of {n}")
        points = [n // count * i for i in range(1, count)]
    sizes = [b - a for a, b in zip([0, *points], [*points, n])]
    if len(sizes) != count or min(sizes) < 1:
        raise call.parameter("slice_point", points, f"for {count} parts of {n}")
    return tuple(ops.split(x, sizes, axis)) if count > 1 else (x,)


@layer("Split")
def _split(call, x):
    """One input under several names."""
    return (x,) * len(call.message.top)


@layer("Crop")
def _crop(call, x, like):
    """The part of x from the offsets on that has the sizes of the second input, from an axis on."""
    axis, offsets = call.axis("crop_param", x), call.get("crop_param", "offset")
    shape, wanted = known_shape(call, x), known_shape(call, like)
    count = len(shape) - axis
    if len(offsets) not in (0, 1, count) or len(wanted) != len(shape):
        raise call.parameter("offset", offsets, f"for {count} axes")
    offsets = (offsets or [0]) * count if len(offsets) < 2 else offsets
    parts = [slice(None)] * axis
    for first, n, size in zip(offsets, shape[axis:], wanted[axis:]):
        if first + size > n:
            raise call.parameter("offset", offsets, f"{size} elements from {first} on of {n}")
        parts.append(slice(first, first + size))
    return x[tuple(parts)]


@layer("Flatten")
def _flatten(call, x):
    first, last = call.axis("flatten_param", x), call.axis("flatten_param", x, "end_axis")
    if last < first:
        raise call.parameter("end_axis", last, f"before axis {first}")
    shape = known_shape(call, x, range(1, len(shape_of(x))))
    return ops.reshape(x, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


@layer("Reshape")
def _reshape(call, x):
    """0 keeps a size, -1 stands for what is left; of the axes from `axis` on, `num_axes` of them."""
    block = "reshape_param"
    wanted, shape = list(call.get(block, "shape").dim), known_shape(call, x)
    axis, count = call.axis(block, x, extra=1), call.get(block, "num_axes")
    end = len(shape) if count == -1 else axis + count
    if not axis <= end <= len(shape) or wanted.count(-1) > 1 or min(wanted, default=0) < -1:
        raise call.parameter("shape", wanted, f"for axes {axis} to {end} of {list(shape)}")
    if any(n == 0 and axis + i >= len(shape) for i, n in enumerate(wanted)):
        raise call.parameter("shape", wanted, f"which keeps a size that {list(shape)} does not have")
    sizes = [shape[axis + i] if n == 0 else n for i, n in enumerate(wanted)]
    sizes = [*shape[:axis], *sizes, *shape[end:]]
    if -1 in sizes:
        rest = math.prod(n for n in sizes if n != -1)
        if not rest or math.prod(shape) % rest:
            raise call.parameter("shape", wanted, f"which {list(shape)} cannot get")
        sizes[sizes.index(-1)] = math.prod(shape) // rest
    return ops.reshape(x, tuple(sizes))


@layer("Permute")
def _permute(call, x):
    order, rank = call.get("permute_param", "order"), len(shape_of(x))
    order += [a for a in range(rank) if a not in order]
    if sorted(order) != list(range(rank)):
        raise call.parameter("order", order, f"for {rank} axes")
    return ops.transpose(x, tuple(order))


@layer("Tile")
def _tile(call, x):
    axis, count = call.axis("tile_param", x), call.get("tile_param", "tiles")
    if not 1 <= count <= 1 << 20:
        raise call.parameter("tiles", count, "which is not imported")
    return ops.tile(x, tuple(count if i == axis else 1 for i in range(len(shape_of(x)))))
