"""ONNX normalizations."""

from __future__ import annotations

from typing import Any

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    along,
    cast,
    known_shape,
    operator,
    positive_axis,
    scalar,
    shape_of,
)


@operator("BatchNormalization")
def _batch_norm(call, x, scale, bias, mean, variance):
    epsilon = call.get("epsilon", 1e-5)
    momentum = call.get("momentum", 0.9)
    if call.version < 7:
        call.get("is_test")
        if not call.attributes.get("is_test", 0):
            raise call.attribute("is_test", "only inference can be converted")
    if call.get("training_mode", 0):
        axes = (0, *range(2, x.ndim))
        wide = cast(x, _wide(call, x.dtype))
        y, current, _ = normalized(wide, axes, epsilon)
        spread = ops.mean(ops.square(ops.sub(wide, current)), axes)
        y = ops.add(ops.mul(cast(y, x.dtype), along(scale, 1, x.ndim)), along(bias, 1, x.ndim))
        old, new = scalar(momentum, mean), scalar(1 - momentum, mean)
        current = cast(ops.reshape(current, (-1,)), mean.dtype)
        spread = cast(spread, variance.dtype)
        return (
            y, ops.add(ops.mul(mean, old), ops.mul(current, new)),
            ops.add(ops.mul(variance, old), ops.mul(spread, new)),
        )  # fmt: skip
    if any(map(call.wants, range(1, 5))):
        raise call.attribute("training_mode", "only inference can be converted")
    if not call.get("spatial", 1):
        raise call.attribute("spatial", "only 1, one mean for each channel, is imported")
    if {t.dtype for t in (x, scale, bias, mean, variance)} == {x.dtype} and x.ndim in (2, 4):
        return ops.batch_norm(x, mean, variance, scale, bias, False, 0.1, epsilon)
    dtype = x.dtype
    x, scale, bias, mean, variance = (cast(t, _wide(call, dtype)) for t in (x, scale, bias, mean, variance))
    factor = ops.div(scale, ops.sqrt(ops.add(variance, scalar(epsilon, variance))))
    shift = ops.sub(bias, ops.mul(mean, factor))
    y = ops.add(ops.mul(x, along(factor, 1, x.ndim)), along(shift, 1, x.ndim))
    return cast(y, dtype)


def _wide(call: Call, dtype: Any) -> Any:
    """The dtype in which a normalization computes: float32 for 16-bit floats."""
    if not dtype.is_floating:
        raise call.fail(f"a normalization of {dtype}")
    return dtype if dtype == ms.float64 else ms.float32


def normalized(x: Any, axes: tuple[int, ...], epsilon: float) -> tuple[Any, Any, Any]:
    """(x with mean 0 and variance 1 along axes, the mean, 1 / the standard deviation)."""
    mean = ops.mean(x, axes, True)
    centered = ops.sub(x, mean)
    variance = ops.mean(ops.square(centered), axes, True)
    inverse = ops.reciprocal(ops.sqrt(ops.add(variance, scalar(epsilon, x))))
    return ops.mul(centered, inverse), mean, inverse


def _stash(call: Call) -> None:
    """The dtype of the statistics: float32 is what is computed in."""
    call.choice("stash_type", 1, (1,))


@operator("LayerNormalization")
def _layer_norm(call, x, scale, bias=None):
    axis = positive_axis(call, call.get("axis", -1), x.ndim)
    epsilon = call.get("epsilon", 1e-5)
    _stash(call)
    shape = shape_of(x)[axis:]
    if all(type(n) is int for n in shape) and not call.wants(1) and not call.wants(2):
        if shape_of(scale) == shape and bias is not None and shape_of(bias) == shape:
            return ops.layer_norm(x, shape, scale, bias, epsilon)
    wide = cast(x, _wide(call, x.dtype))
    y, mean, inverse = normalized(wide, tuple(range(axis, x.ndim)), epsilon)
    y = ops.mul(cast(y, x.dtype), scale)
    return (y if bias is None else ops.add(y, bias)), mean, inverse


@operator("RMSNormalization")
def _rms_norm(call, x, scale):
    axis = positive_axis(call, call.get("axis", -1), x.ndim)
    epsilon = call.get("epsilon", 1e-5)
    _stash(call)
    wide = cast(x, _wide(call, x.dtype))
    mean = ops.mean(ops.square(wide), tuple(range(axis, x.ndim)), True)
    y = ops.mul(wide, ops.reciprocal(ops.sqrt(ops.add(mean, scalar(epsilon, wide)))))
    return ops.mul(cast(y, x.dtype), scale)


@operator("InstanceNormalization")
def _instance_norm(call, x, scale, bias):
    wide = cast(x, _wide(call, x.dtype))
    y, *_ = normalized(wide, tuple(range(2, x.ndim)), call.get("epsilon", 1e-5))
    y = cast(y, x.dtype)
    return ops.add(ops.mul(y, along(scale, 1, x.ndim)), along(bias, 1, x.ndim))


@operator("GroupNormalization")
def _group_norm(call, x, scale, bias):
    """Scale and bias are those of groups before version 21, of channels from then on."""
    groups, epsilon = call.need("num_groups"), call.get("epsilon", 1e-5)
    if call.version >= 21:
        _stash(call)
    n, c, *size = known_shape(call, x, range(1, x.ndim))
    if c % groups:
        raise call.attribute("num_groups", f"there are {c} channels")
    wide = ops.reshape(cast(x, _wide(call, x.dtype)), (n, groups, c // groups, *size))
    y, *_ = normalized(wide, tuple(range(2, wide.ndim)), epsilon)
    y = cast(y, x.dtype)
    if call.version < 21:
        y = ops.add(ops.mul(y, along(scale, 1, y.ndim)), along(bias, 1, y.ndim))
        return ops.reshape(y, shape_of(x))
    y = ops.reshape(y, shape_of(x))
    return ops.add(ops.mul(y, along(scale, 1, y.ndim)), along(bias, 1, y.ndim))


@operator("MeanVarianceNormalization")
def _mean_variance_norm(call, x):
    axes = tuple(positive_axis(call, a, x.ndim) for a in call.get("axes", [0, 2, 3]))
    centered = ops.sub(x, ops.mean(x, axes, True))
    deviation = ops.sqrt(ops.mean(ops.square(centered), axes, True))
    return ops.div(centered, ops.add(deviation, scalar(1e-9, x)))


@operator("LpNormalization")
def _lp_norm(call, x):
    """x over its norm along the axis; where that is 0 the result is 0."""
    axis = positive_axis(call, call.get("axis", -1), x.ndim)
    if call.choice("p", 2, (1, 2)) == 1:
        norm = ops.sum(ops.abs(x), axis, True)
    else:
        norm = ops.sqrt(ops.sum(ops.square(x), axis, True))
    zero = ops.equal(norm, scalar(0, x))
    return ops.where(zero, scalar(0, x), ops.div(x, ops.where(zero, scalar(1, x), norm)))


@operator("LRN")
def _lrn(call, x):
    """x / (bias + alpha / size * sum of squares of the `size` channels around) ** beta."""
    size = call.need("size")
    alpha, beta, bias = call.get("alpha", 1e-4), call.get("beta", 0.75), call.get("bias", 1.0)
    if x.ndim == 4 and size % 2 and x.dtype in (ms.float32, ms.float16):
        return ops.lrn(x, size // 2, bias, alpha / size, beta)
    channels = known_shape(call, x, (1,))[1]
    before = (size - 1) // 2
    padding = [0, 0] * (x.ndim - 2) + [before, size - 1 - before, 0, 0]
    squares = ops.pad(ops.square(x), padding)
    total = None
    for first in range(size):
        part = squares[:, first : first + channels]
        total = part if total is None else ops.add(total, part)
    base = ops.add(ops.mul(total, scalar(alpha / size, x)), scalar(bias, x))
    return ops.div(x, ops.pow(base, scalar(beta, x)))
