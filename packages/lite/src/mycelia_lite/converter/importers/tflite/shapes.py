"""Arithmetic on shapes with open sizes: arrays of numbers and formulas, computed at the import."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia_lite.converter.importers.onnx.calls import is_number, known
from mycelia_lite.converter.importers.onnx.sizes import objects
from mycelia_lite.converter.importers.tflite.calls import Call


def sizes_value(array: np.ndarray) -> Any:
    """An array of objects as a value of the model: a tensor of int32 unless a size in it is open."""
    return ms.Tensor(array.astype(np.int32)) if all(map(is_number, array.flat)) else array


def fold(call: Call, inputs: Sequence[Any]) -> Any:
    """The results of a node with open sizes among its inputs, or None where it is not one of these."""
    function = _FOLDED.get(call.kind)
    if function is None or not any(isinstance(v, np.ndarray) for v in inputs):
        return None
    arrays = []
    for value in inputs:
        if not isinstance(value, np.ndarray):
            numbers = None if value is None else known(value)
            if numbers is None or numbers.dtype.kind not in "iu":
                return None
            value = objects([int(n) for n in numbers.flat], numbers.shape)
        arrays.append(value)
    result = function(call, *arrays)
    if result is None:
        return None
    if isinstance(result, list):
        return tuple(sizes_value(_array(r)) for r in result)
    return sizes_value(_array(result))


def _array(value: Any) -> np.ndarray:
    return value if isinstance(value, np.ndarray) else objects([value], ())


def _numbers(array: np.ndarray) -> list[int] | None:
    return [int(n) for n in array.flat] if all(map(is_number, array.flat)) else None


def strided(call: Call, x: Any, begin: Sequence, end: Sequence, stride: Sequence) -> tuple:
    """The parts that STRIDED_SLICE takes, as an index of Python's."""
    table = "StridedSliceOptions"
    masks = {
        name: call.get(table, f"{name}_mask")
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    if call.get(table, "offset"):
        end = [b + e for b, e in zip(begin, end)]
    if not len(begin) == len(end) == len(stride) or len(begin) > 32:
        raise call.fail(f"{len(begin)} begins, {len(end)} ends and {len(stride)} strides")
    parts: list[Any] = []
    for i, (first, last, step) in enumerate(zip(begin, end, stride)):
        bit = 1 << i
        if masks["ellipsis"] & bit:
            parts.append(Ellipsis)
        elif masks["new_axis"] & bit:
            parts.append(None)
        elif masks["shrink_axis"] & bit:
            parts.append(first)
        elif not step:
            raise call.fail("a stride of 0")
        else:
            parts.append(
                slice(None if masks["begin"] & bit else first, None if masks["end"] & bit else last, step)
            )
    if parts.count(Ellipsis) > 1:
        raise call.fail("several ellipses")
    return tuple(parts)


def _strided_slice(call: Call, x, begin, end, stride):
    lists = [_numbers(v) for v in (begin, end, stride)]
    return None if None in lists else x[strided(call, x, *lists)]


def _gather(call: Call, x, indices):
    table, places = "GatherOptions", _numbers(indices)
    if places is None or call.get(table, "batch_dims"):
        return None
    axis = call.get(table, "axis")
    return np.take(x, np.asarray(places, np.int64).reshape(indices.shape), axis)


def _pack(call: Call, *parts):
    call.get("PackOptions", "values_count")
    return np.stack(parts, call.get("PackOptions", "axis"))


def _unpack(call: Call, x):
    call.get("UnpackOptions", "num")
    return [_array(part) for part in np.moveaxis(x, call.get("UnpackOptions", "axis"), 0)]


def _concat(call: Call, *parts):
    if call.name_of("ConcatenationOptions", "fused_activation_function") != "NONE":
        return None
    return np.concatenate(parts, call.get("ConcatenationOptions", "axis"))


def _cast(call: Call, x):
    call.get("CastOptions", "in_data_type")
    call.get("CastOptions", "out_data_type")
    return x if call.outputs[0].kind in ("INT32", "INT64") else None


def _binary(table: str, function: Callable) -> Callable:
    def run(call: Call, a, b):
        if table != "FloorDivOptions" and call.name_of(table, "fused_activation_function") != "NONE":
            return None
        if table in ("AddOptions", "SubOptions"):
            call.get(table, "pot_scale_int16")
        return function(a, b)

    return run


def _divided(a, b):
    """Rounding down and to zero are the same where nothing is negative."""
    for entry in (*np.asarray(a, object).flat, *np.asarray(b, object).flat):
        if not (entry > 0 if is_number(entry) else entry.positive):
            return None
    return a // b


def _prod(call: Call, x, axes):
    keep = call.get("ReducerOptions", "keep_dims")
    if x.ndim != 1 or _numbers(axes) not in ([0], [-1]):
        return None
    product = math.prod(x.tolist())
    return objects([product]) if keep else product


def _reshape(call: Call, x, shape=None):
    wanted = call.get("ReshapeOptions", "new_shape")
    wanted = list(wanted) if shape is None else _numbers(shape)
    return None if wanted is None else x.reshape(wanted)


def _squeeze(call: Call, x):
    axes = call.get("SqueezeOptions", "squeeze_dims")
    return np.squeeze(x, tuple(axes) if len(axes) else None)


def _expand_dims(call: Call, x, axis):
    places = _numbers(axis)
    return None if places is None else np.expand_dims(x, tuple(places))


_FOLDED: dict[str, Callable] = {
    "STRIDED_SLICE": _strided_slice, "GATHER": _gather, "PACK": _pack, "UNPACK": _unpack,
    "CONCATENATION": _concat, "CAST": _cast, "REDUCE_PROD": _prod, "RESHAPE": _reshape,
    "SQUEEZE": _squeeze, "EXPAND_DIMS": _expand_dims,
    "ADD": _binary("AddOptions", lambda a, b: a + b), "SUB": _binary("SubOptions", lambda a, b: a - b),
    "MUL": _binary("MulOptions", lambda a, b: a * b), "DIV": _binary("DivOptions", _divided),
    "FLOOR_DIV": _binary("FloorDivOptions", _divided),
}  # fmt: skip
