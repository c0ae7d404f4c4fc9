"""ONNX operators between numbers and their quantized form."""

from __future__ import annotations

from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx import small
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    along,
    cast,
    known,
    known_shape,
    operator,
    positive_axis,
    scalar,
    shape_of,
)
from mycelia_lite.converter.importers.onnx.file import dtype_of
from mycelia_lite.converter.importers.onnx.windows import convolved


def _spread(call: Call, x: Any, parameter: Any) -> Any:
    """A scale or zero point as one that broadcasts to x: one number, or one for each index of an axis."""
    axis = call.get("axis", 1)
    shape = shape_of(parameter)
    if block := call.get("block_size", 0):  # the same for each `block` elements along the axis
        axis = positive_axis(call, axis, x.ndim)
        count = known_shape(call, x, (axis,))[axis]
        if len(shape) != x.ndim or shape[axis] != -(-count // block):
            raise call.fail(f"scales of shape {list(shape)} for blocks of {block}")
        return ops.gather(parameter, ms.Tensor(np.arange(count) // block), axis)
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
    if known(x) is not None and known(scale) is not None:
        call.scales = [known(scale)]
    exact = ms.float32 if x.dtype.is_floating else ms.int32  # float8 is read as float32
    wide = cast(x, exact)
    if zero is not None:
        wide = ops.sub(wide, cast(_spread(call, x, zero), exact))
    return ops.mul(cast(wide, scale.dtype), _spread(call, x, scale))


@operator("QuantizeLinear")
def _quantize(call, x, scale, zero=None):
    """x / scale rounded to even, plus zero, kept within the type of zero (uint8 if there is none)."""
    saturate = bool(call.get("saturate", 1))
    call.choice("precision", 0, (0, 1))
    number = call.get("output_dtype", 0)
    small_kind = call.kinds[2] if zero is not None else number if number in small.KINDS else None
    if small_kind is not None:
        return _quantized_small(call, x, scale, zero, small_kind, saturate)
    dtype = zero.dtype if zero is not None else dtype_of(number, "the result") if number else ms.uint8
    if dtype.is_floating:
        raise call.fail(f"a quantized form of type {dtype}")
    if (scales := known(scale)) is not None and not np.isfinite(scales).all():
        raise call.fail(
            "its scale is not finite, so that all of its results are none: a tool has measured a mask of "
            "minus infinity; leave this node out when the model is quantized"
        )
    y = ops.div(cast(x, scale.dtype), _spread(call, x, scale))
    return rounded(y, None if zero is None else _spread(call, x, zero), dtype)


def _quantized_small(call: Call, x: Any, scale: Any, zero: Any, kind: int, saturate: bool) -> Any:
    """The same as numbers of float8 or of integers below 8 bits."""
    call.narrowed = kind
    y = ops.div(cast(x, scale.dtype), _spread(call, x, scale))
    spread = None if zero is None else _spread(call, x, zero)
    if kind in small.FLOATS:
        if zero is not None and (known(zero) is None or known(zero).any()):
            raise call.fail("a zero point of float8 other than 0")
        return small.nearest(call, y, kind, saturate)
    y = ops.round(y) if spread is None else ops.add(ops.round(y), cast(spread, y.dtype))
    low, high = (scalar(n, y) for n in small.LIMITS[kind])
    return cast(ops.maximum(ops.minimum(y, high), low), ms.uint8 if kind in (21, 25) else ms.int8)


def rounded(y: Any, zero: Any, dtype: Any) -> Any:
    """y rounded to even plus the zero point, kept within the integers of `dtype`."""
    limits = np.iinfo(dtype.np)
    y = ops.round(y)
    if zero is not None:
        y = ops.add(y, cast(zero, y.dtype))
    y = ops.maximum(ops.minimum(y, scalar(limits.max, y)), scalar(limits.min, y))
    return cast(y, dtype)


def dynamic(x: Any) -> tuple[Any, Any, Any]:
    """(x as uint8, the scale, the zero point), from the range of x with 0 in it."""
    axes = tuple(range(x.ndim))
    high = ops.maximum(ops.amax(x, axes), scalar(0, x))
    low = ops.minimum(ops.amin(x, axes), scalar(0, x))
    scale = ops.div(ops.sub(high, low), scalar(255, x))
    safe = ops.where(ops.equal(scale, scalar(0, scale)), scalar(1, scale), scale)
    zero = rounded(ops.div(ops.neg(low), safe), None, ms.uint8)
    return rounded(ops.div(x, safe), zero, ms.uint8), scale, zero


def to_8_bits(x: Any) -> Any:
    """x at the nearest of the 256 numbers that DynamicQuantizeLinear has for it."""
    q, scale, zero = dynamic(x)
    return ops.mul(ops.sub(cast(q, x.dtype), cast(zero, x.dtype)), scale)


@operator("DynamicQuantizeLinear")
def _dynamic(call, x):
    return dynamic(x)


def _centered(x: Any, zero: Any, axis: int | None) -> Any:
    """x - zero in int32; a vector of zeros lies along `axis`."""
    wide = cast(x, ms.int32)
    if zero is None:
        return wide
    shape, zero = shape_of(zero), cast(zero, ms.int32)
    if len(shape) == 1 and shape != (1,) and axis is not None:
        return ops.sub(wide, along(zero, axis, x.ndim))
    return ops.sub(wide, zero if len(shape) > 1 else ops.reshape(zero, ()))


def _note_integers(call: Call, weight: Any) -> None:
    if known(weight) is not None:
        call.scales = [np.ones(1, np.float32)]


def integer_product(call: Call, a: Any, b: Any, a_zero: Any, b_zero: Any) -> Any:
    """The exact product of matrices of 8-bit integers in int32; zeros are one or one a row or column."""
    _note_integers(call, b)
    left = _centered(a, a_zero, max(a.ndim - 2, 0))
    return ops.matmul(left, _centered(b, b_zero, b.ndim - 1))


@operator("MatMulInteger")
def _matmul_integer(call, a, b, a_zero=None, b_zero=None):
    return integer_product(call, a, b, a_zero, b_zero)


@operator("QLinearMatMul")
def _quantized_matmul(call, a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):
    product = cast(integer_product(call, a, b, a_zero, b_zero), ms.float32)
    left = _factor(a_scale, max(a.ndim - 2, 0), a.ndim)
    factor = ops.mul(left, _factor(b_scale, b.ndim - 1, b.ndim))
    y = ops.mul(product, ops.div(cast(factor, ms.float32), cast(y_scale, ms.float32)))
    return rounded(y, y_zero, y_zero.dtype)


def _factor(scale: Any, axis: int, rank: int) -> Any:
    """A scale as float32 that broadcasts: one number, or one for each index of an axis."""
    shape, scale = shape_of(scale), cast(scale, ms.float32)
    if shape in ((), (1,)):
        return ops.reshape(scale, ())
    return along(scale, axis, rank) if len(shape) == 1 else scale


@operator("ConvInteger")
def _conv_integer(call, x, w, x_zero=None, w_zero=None):
    """Sums of products of 8-bit integers, exact in int32."""
    return _convolved(call, x, x_zero, w, w_zero)


def _convolved(call: Call, x: Any, x_zero: Any, w: Any, w_zero: Any) -> Any:
    _note_integers(call, w)
    return convolved(call, _centered(x, x_zero, None), _centered(w, w_zero, 0))


@operator("QLinearConv")
def _quantized_conv(call, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias=None):
    sums = _convolved(call, x, x_zero, w, w_zero)
    if bias is not None:
        sums = ops.add(sums, along(bias, 1, x.ndim))
    factor = ops.div(ops.mul(x_scale, _factor(w_scale, 1, x.ndim)), y_scale)
    return rounded(ops.mul(cast(sums, ms.float32), factor), y_zero, y_zero.dtype)
