"""Reductions of tensors of 8 bits as TensorFlow Lite's kernels compute them, step by step in integers.

Products are scaled and wrap around in 32 bits after each factor; norms get a reciprocal square root in fixed
point by five steps of Newton's method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import cast, integers, known_shape, scalar, shape_of
from mycelia_lite.converter.importers.tflite.calls import Call, axes_of
from mycelia_lite.converter.importers.tflite.fixed_point import Factor, Scale

_MOST = 2048  # factors, each of which is six nodes
_LEAST, _LARGEST = -(2**31), 2**31 - 1


def product(call: Call, inputs: Sequence[Any], x: Scale, y: Scale) -> Any:
    """The product over axes, in the order of the elements."""
    keep = call.get("ReducerOptions", "keep_dims")
    shape = known_shape(call, inputs[0])
    axes = axes_of(call, integers(call, inputs[1], "axes"), len(shape))
    count = int(np.prod([shape[a] for a in axes]))
    if not axes or not count:
        return None
    if count > _MOST:
        raise call.fail(f"a product of {count} integers of 8 bits, {_MOST} are the most")
    others = [a for a in range(len(shape)) if a not in axes]
    kept = [1 if a in axes else n for a, n in enumerate(shape) if keep or a not in axes]
    sizes = (count, int(np.prod([shape[a] for a in others])))
    rows = ops.reshape(ops.transpose(inputs[0], (*axes, *others)), sizes)
    rows = ops.sub(cast(rows, ms.int64), _number(x.zero))
    factor = Factor.of(float(x.step) / float(y.step) ** (1 / count))
    total = rows[0]
    for i in range(1, count):
        total = _scaled(ops.mul(total, rows[i]), factor)
    total = _wrapped(ops.add(_scaled(total, factor), _number(y.zero)))
    return ops.reshape(cast(_between(total, y.low, y.high), call.outputs[0].dtype), tuple(kept))


def _scaled(x: Any, factor: Factor) -> Any:
    """x, int64, times a factor of 16 bits, halves up, as int32 holds it."""
    short = 2**15 - 1 if factor.multiplier >= 2**31 - 2**16 else (factor.multiplier + 2**15) >> 16
    right = 15 - factor.shift
    return _wrapped(_right(ops.add(ops.mul(x, _number(short)), _number(1 << (right - 1))), _number(right)))


def norm(call: Call, inputs: Sequence[Any], x: Scale, y: Scale) -> Any:
    """x over the root of the sum of squares along the last axis, in steps of 1 / 128; of uint8."""
    if x.low:
        return None
    kind = call.name_of("L2NormOptions", "fused_activation_function")
    if kind != "NONE":
        raise call.option("fused_activation_function", kind, "is not imported for integers")
    known_shape(call, inputs[0], (len(shape_of(inputs[0])) - 1,))
    values = ops.sub(cast(inputs[0], ms.int64), _number(x.zero))
    root, right = _inverse_root(ops.sum(ops.mul(values, values), (-1,), True))
    scaled = _doubled(ops.mul(values, _number(128)), root)
    shifts = ops.greater(right, scalar(0, right))
    half = ops.where(shifts, _left(_number(1), ops.sub(right, _number(1))), scalar(0, right))
    down = cast(ops.logical_and(shifts, ops.less(scaled, scalar(0, scaled))), ms.int64)
    made = _right(ops.sub(ops.add(scaled, half), down), right)
    return cast(_between(ops.add(made, _number(128)), 0, 255), ms.uint8)


def _inverse_root(total: Any) -> tuple[Any, Any]:
    """1 / sqrt(total) as a multiplier of 31 bits and a shift to the right; of 0 and 1 the largest one."""
    large = (ops.greater_equal(total, scalar(2**n, total)) for n in (29, 31))
    fours = ops.add(*(cast(v, ms.int64) for v in large))
    kept = _right(total, ops.mul(fours, _number(2)))
    limits = ms.Tensor(np.array([1 << (29 - 2 * k) for k in range(1, 15)], np.int64))
    pairs = ops.sum(cast(ops.less(kept, limits), ms.int64), (-1,), True)
    value = _right(_left(kept, ops.mul(pairs, _number(2))), _number(1))  # in steps of 2^-28
    half = ops.add(_right(value, _number(1)), ops.bitwise_and(value, _number(1)))
    x = ops.add(ops.mul(value, _number(0)), _number(1 << 28))
    for _ in range(5):
        cube = _saturated(_doubled(_doubled(x, x), x), 6)
        x = _saturated(ops.sub(_doubled(x, _number(3 << 27)), _doubled(half, cube)), 3)
    x = _doubled(x, _number(1518500250))  # the root of 1/2
    right = ops.sub(ops.add(fours, _number(11)), pairs)
    x = _left(x, ops.maximum(ops.neg(right), scalar(0, right)))
    small = ops.less_equal(total, scalar(1, total))
    right = ops.maximum(right, scalar(0, right))
    return ops.where(small, scalar(_LARGEST, x), x), ops.where(small, scalar(0, right), right)


def _number(value: int) -> ms.Tensor:
    return ms.Tensor(np.int64(value))


def _right(x: Any, bits: Any) -> Any:
    return ops.bitwise_right_shift(x, bits)


def _left(x: Any, bits: Any) -> Any:
    return ops.bitwise_left_shift(x, bits)


def _between(x: Any, low: int, high: int) -> Any:
    return ops.minimum(ops.maximum(x, scalar(low, x)), scalar(high, x))


def _saturated(x: Any, bits: int) -> Any:
    return _between(_left(x, _number(bits)), _LEAST, _LARGEST)


def _doubled(a: Any, b: Any) -> Any:
    """a * b / 2^31, halves up."""
    return _right(ops.add(ops.mul(a, b), _number(1 << 30)), _number(31))


def _wrapped(x: Any) -> Any:
    """What int32 keeps of x, int64."""
    return cast(cast(x, ms.int32), ms.int64)
