"""ONNX operators between numbers and their quantized form."""

from __future__ import annotations

from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    along,
    cast,
    operator,
    positive_axis,
    scalar,
    shape_of,
)
from mycelia_lite.converter.importers.onnx.file import dtype_of


def _spread(call: Call, x: Any, parameter: Any) -> Any:
    """A scale or zero point as one that broadcasts to x: one number, or one for each index of an axis."""
    axis = call.get("axis", 1)
    if call.get("block_size", 0):
        raise call.attribute("block_size", "scales of blocks cannot be imported")
    shape = shape_of(parameter)
    if shape in ((), (1,)):
        return ops.reshape(parameter, ())
    if len(shape) != 1:
        raise call.fail(f"scales of shape {list(shape)}, a number or a vector is imported")
    return along(parameter, positive_axis(call, axis, x.ndim), x.ndim)


@operator("DequantizeLinear")
def _dequantize(call, x, scale, zero=None):
    """(x - zero) * scale, in the type of the scale."""
    if call.get("output_dtype", 0):
        raise call.attribute("output_dtype", "only the type of the scale is imported")
    wide = cast(x, ms.int32)
    if zero is not None:
        wide = ops.sub(wide, cast(_spread(call, x, zero), ms.int32))
    return ops.mul(cast(wide, scale.dtype), _spread(call, x, scale))


@operator("QuantizeLinear")
def _quantize(call, x, scale, zero=None):
    """x / scale rounded to even, plus zero, kept within the type of zero (uint8 if there is none)."""
    call.get("saturate")
    call.choice("precision", 0, (0, 1))
    number = call.get("output_dtype", 0)
    dtype = zero.dtype if zero is not None else dtype_of(number, "the result") if number else ms.uint8
    if dtype.is_floating:
        raise call.fail(f"a quantized form of type {dtype}")
    limits = np.iinfo(dtype.np)
    y = ops.round(ops.div(cast(x, scale.dtype), _spread(call, x, scale)))
    if zero is not None:
        y = ops.add(y, cast(_spread(call, x, zero), y.dtype))
    y = ops.maximum(ops.minimum(y, scalar(limits.max, y)), scalar(limits.min, y))
    return cast(y, dtype)
