"""Arithmetic on shapes with open sizes: arrays of numbers and formulas, computed while the model is imported.

`fold` does what it can there; everything else goes on as a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia.io.onnx.types import DTYPES
from mycelia_lite.converter.importers.onnx.calls import Call, Sizes, is_number, known, larger, smaller

_FOLDED: dict[str, Callable] = {}


def _folded(*names: str) -> Callable:
    def enter(function: Callable) -> Callable:
        _FOLDED.update(dict.fromkeys(names, function))
        return function

    return enter


def value_of(array: np.ndarray, dtype: Any = ms.int64) -> Any:
    """An array of objects as a value of the model: a Tensor unless a size in it is open."""
    if all(map(is_number, array.flat)):
        return ms.Tensor(array.astype(dtype.np))
    return Sizes(array, dtype)


def fold(call: Call, inputs: Sequence[Any]) -> Any:
    """The result of a node with open sizes among its inputs, or None where it is not known yet."""
    function = _FOLDED.get(call.kind)
    if function is None or not any(isinstance(v, Sizes) for v in inputs):
        return None
    arrays = []
    for value in inputs:
        if value is None or isinstance(value, Sizes):
            arrays.append(None if value is None else np.asarray(value))
            continue
        numbers = known(value)
        if numbers is None or numbers.dtype.kind not in "iub":
            return None
        arrays.append(_plain(numbers))
    dtype = next(v.kind for v in reversed(inputs) if isinstance(v, Sizes))
    result = function(call, *arrays)
    if result is None:
        return None
    if call.kind == "Cast":
        dtype = DTYPES[call.need("to")]
    return ms.Tensor(_plain(result).astype(bool)) if call.kind == "Equal" else value_of(_plain(result), dtype)


def objects(entries: Sequence[Any], shape: Sequence[int] | None = None) -> np.ndarray:
    """An array of Python ints and formulas; a formula must not become an array, which would fix its size."""
    made = np.empty(len(entries), dtype=object)
    for i, entry in enumerate(entries):
        made[i] = int(entry) if isinstance(entry, (np.integer, bool, np.bool_)) else entry
    return made if shape is None else made.reshape(shape)


def _plain(values: Any) -> np.ndarray:
    """What a function gave, an array, a list or one number, as such an array."""
    if isinstance(values, np.ndarray):
        return objects(list(values.flat), values.shape)
    return objects(values) if isinstance(values, list) else objects([values], ())


@_folded("Identity")
def _identity(call, x):
    return x


@_folded("Cast")
def _cast(call, x):
    call.get("saturate"), call.get("round_mode")
    return x if call.get("to") in (6, 7) else None


@_folded("Gather")
def _gather(call, x, indices):
    places = np.array(indices.tolist(), np.int64)
    axis = call.get("axis", 0)
    if isinstance(indices, np.ndarray) and not all(map(is_number, indices.flat)):
        return None
    if places.size and not (-x.shape[axis] <= places.min() and places.max() < x.shape[axis]):
        raise call.misfit(f"indices {places.tolist()} do not lie in an axis of {x.shape[axis]}")
    return np.take(x, places, axis)


@_folded("Concat")
def _concat(call, *parts):
    return np.concatenate(parts, call.need("axis"))


@_folded("Slice")
def _slice(call, x, starts=None, ends=None, axes=None, steps=None):
    if starts is None:
        starts, ends, axes = call.need("starts"), call.need("ends"), call.get("axes")
    starts, ends = list(starts), list(ends)
    axes = range(len(starts)) if axes is None else list(axes)
    steps = [1] * len(starts) if steps is None else list(steps)
    if not all(map(is_number, (*starts, *ends, *axes, *steps))):
        return None
    parts = [slice(None)] * x.ndim
    for axis, *limits in zip(axes, starts, ends, steps):
        if limits[2] < 0:
            limits[0] = max(limits[0], -x.shape[axis])  # see `arrays`
        parts[axis] = slice(*limits)
    return x[tuple(parts)]


@_folded("Squeeze")
def _squeeze(call, x, axes=None):
    axes = call.get("axes") if axes is None else axes.tolist()
    return np.squeeze(x, None if axes is None else tuple(axes))


@_folded("Unsqueeze")
def _unsqueeze(call, x, axes=None):
    axes = call.get("axes") if axes is None else axes.tolist()
    return np.expand_dims(x, tuple(axes))


@_folded("Reshape")
def _reshape(call, x, shape):
    shape = shape.tolist()
    call.get("allowzero")
    return x.reshape(shape) if all(map(is_number, shape)) and 0 not in shape else None


@_folded("Add")
def _add(call, a, b):
    return a + b


@_folded("Sub")
def _sub(call, a, b):
    return a - b


@_folded("Mul")
def _mul(call, a, b):
    return a * b


@_folded("Div")
def _div(call, a, b):
    """Division of integers rounds to zero, which of sizes is the same as rounding down."""
    for entry in (*a.flat, *b.flat):
        if (entry < 0 if is_number(entry) else not entry.positive) or is_number(entry) and entry == 0:
            return None
    return a // b


@_folded("Mod")
def _mod(call, a, b):
    if call.get("fmod"):
        return None
    for entry in (*a.flat, *b.flat):
        if not _never_negative(entry) or (is_number(entry) and entry == 0):
            return None
    return a % b


@_folded("Neg")
def _neg(call, x):
    return 0 - x


@_folded("Min", "Max")
def _extreme(call, *parts):
    choose = smaller if call.kind == "Min" else larger
    parts = np.broadcast_arrays(*parts)
    made = np.empty(parts[0].shape, object)
    for place in np.ndindex(made.shape):
        numbers = [p[place] for p in parts]
        made[place] = numbers[0]
        for other in numbers[1:]:
            made[place] = choose(made[place], other)
    return made


@_folded("ReduceProd")
def _reduce_prod(call, x, axes=None):
    if axes is not None or call.get("axes") not in (None, [0]) or x.ndim != 1:
        return None
    product = math.prod(x.tolist())
    return [product] if call.get("keepdims", 1) else product


@_folded("Equal")
def _equal(call, a, b):
    """Only what is the same for all sizes, such as that no size is -1."""
    a, b = np.broadcast_arrays(a, b)
    result = np.zeros(a.shape, np.int64)
    for place in np.ndindex(a.shape):
        left, right = a[place], b[place]
        if left is right:
            result[place] = 1
        elif is_number(left) and is_number(right):
            result[place] = left == right
        elif not (_never_negative(left) and _negative(right) or _never_negative(right) and _negative(left)):
            return None
    return result


def _never_negative(entry: Any) -> bool:
    return entry >= 0 if is_number(entry) else entry.positive


def _negative(entry: Any) -> bool:
    return is_number(entry) and entry < 0


@_folded("Where")
def _where(call, condition, a, b):
    if not all(map(is_number, condition.flat)):
        return None
    return np.where(condition.astype(bool), a, b)
