"""Quantized layers: products and channels-last convolutions of 8-bit integers, summed up exactly in 32 bits.

A quantized number q stands for ``scale * (q - zero)``. Weights are packed once by `quantized_pack`; a pack
and the op that reads it run on the same backend. These forms are for converters and compilers: they have no
gradient, and no public name.
"""

import math
from functools import partial

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops.define import op
from mycelia.engine.ops.lowered.packed import padded
from mycelia.engine.ops.nn_ops.conv_geometry import full_attributes, output_size

_INPUTS = (dtypes.int8, dtypes.uint8)
_OUTPUTS = (dtypes.int8, dtypes.uint8, dtypes.float32)


def packed_size(channels, depth):
    """Elements of the pack of `depth` weights for each of `channels` outputs."""
    return (depth + depth % 2) * padded(channels)


def _np_unpacked(pack, channels, depth):
    """[depth, channels] of int64 from what the body of quantized_pack stored."""
    return pack.reshape(depth + depth % 2, padded(channels))[:depth, :channels].astype(np.int64)


def _np_result(sums, scale, b, y_zero, low, high, dtype):
    """Sums [..., channels] as the op gives them back: scaled in float32, rounded to even, clamped."""
    sums = sums if b is None else sums + b
    scaled = sums.astype(np.int32).astype(np.float32) * scale
    if dtype is dtypes.float32:
        return scaled
    scaled = np.where(np.isnan(scaled), low - y_zero, scaled)
    return (np.rint(np.clip(scaled, low - y_zero, high - y_zero)) + y_zero).astype(dtype.np)


def _check(x, w, scale, b, channels, depth, x_zero, y_zero, low, high, dtype):
    """TypeError or ValueError naming what does not fit."""
    if x.dtype not in _INPUTS:
        raise errors.dtype_error(f"x must be int8 or uint8, but is {x.dtype.name}")
    if dtype not in _OUTPUTS:
        raise errors.dtype_error(f"dtype must be int8, uint8 or float32, but is {dtype.name}")
    for name, t, wanted in (("w", w, dtypes.int16), ("scale", scale, dtypes.float32), ("b", b, dtypes.int32)):
        if t is not None and t.dtype is not wanted:
            raise errors.dtype_error(f"{name} must be {wanted.name}, but is {t.dtype.name}")
    size = packed_size(channels, depth)
    if w.shape != (size,):
        raise errors.value_error(
            f"w must be the pack of {channels} x {depth} weights: [{size}], got {list(w.shape)}"
        )
    for name, t in (("scale", scale), ("b", b)):
        if t is not None and t.shape != (channels,):
            raise errors.value_error(f"{name} must be [{channels}], got {list(t.shape)}")
    for name, zero, of in (("x_zero", x_zero, x.dtype), ("y_zero", y_zero, dtype)):
        limits = np.iinfo(of.np) if of in _INPUTS else None
        if limits and not limits.min <= zero <= limits.max:
            raise errors.value_error(f"{name} must be in [{limits.min}, {limits.max}], got {zero}")
    if dtype in _INPUTS:
        limits = np.iinfo(dtype.np)
        if not limits.min <= low <= high <= limits.max:
            raise errors.value_error(
                f"low and high must be in [{limits.min}, {limits.max}] and in this order, got {low}, {high}"
            )


def _scales(rand, channels, depth):
    return (rand.positive(channels) + np.float32(0.5)) / np.float32(64 * depth**0.5)


def _bytes(rand, *shape, signed=True):
    return rand.ints(-128, 128, shape, "int8") if signed else rand.ints(0, 256, shape, "uint8")


@op(name="quantized_pack", nondiff=True)
def quantized_pack(w, zero: "tensor?" = None):
    """Weights in the form that `quantized_matmul` and `quantized_conv` read, less their zero points.

    Shapes: w [O, I] or [O, I, kh, kw], zero [O] -> [depth * padded(O)] with depth ``kh * kw * I`` rounded up
    to an even number.  dtypes: w int8, zero int32 -> int16.  Errors: TypeError and ValueError for others.
    """
    columns = np.moveaxis(w, 1, -1).reshape(w.shape[0], -1).T.astype(np.int16)
    columns = columns if zero is None else columns - zero.astype(np.int16)
    pack = np.zeros((len(columns) + len(columns) % 2, padded(w.shape[0])), np.int16)
    pack[: len(columns), : w.shape[0]] = columns
    return pack.reshape(-1)


@quantized_pack.infer
def quantized_pack(w, zero):
    if w.dtype is not dtypes.int8 or (zero is not None and zero.dtype is not dtypes.int32):
        raise errors.dtype_error(f"w must be int8 and zero int32, got {w} and {zero}")
    if w.rank not in (2, 4):
        raise errors.value_error(f"w must be [O, I] or [O, I, kh, kw], got {list(w.shape)}")
    if zero is not None and zero.shape != w.shape[:1]:
        raise errors.value_error(f"zero must be [{w.shape[0]}], got {list(zero.shape)}")
    return TensorType(dtypes.int16, (packed_size(w.shape[0], math.prod(w.shape[1:])),))


@quantized_pack.samples
def quantized_pack(rand):
    # What a pack holds is compared through the ops that read it: packs of two backends differ.
    yield _bytes(rand, 5, 3), dict(_value=False)
    yield _bytes(rand, 17, 3, 2, 3), rand.ints(-9, 9, (17,)), dict(_value=False)


@op(name="quantized_matmul", nondiff=True)
def quantized_matmul(
    x, w, scale, b: "tensor?" = None,
    *, channels: "int", x_zero: "int" = 0, y_zero: "int" = 0, low: "int" = -128, high: "int" = 127,
    dtype: "dtype" = dtypes.int8,
):  # fmt: skip
    """Fully connected layer of 8-bit integers: ``((x - x_zero) @ w.T + b) * scale + y_zero``.

    The sums are exact, then scaled in float32, rounded to even and clamped to [low, high]; with `dtype`
    float32 the result is only scaled. Sums must fit int32.
    Shapes: x [..., in], w what `quantized_pack` made, scale [out], b [out] -> [..., out] with out `channels`.
    dtypes: x int8 or uint8, scale float32, b int32 -> `dtype`: int8, uint8 or float32.
    Errors: TypeError for other dtypes; ValueError if the pack, sizes, zero points or limits do not fit.
    """
    sums = (x.astype(np.int64) - x_zero) @ _np_unpacked(w, channels, x.shape[-1])
    return _np_result(sums, scale, b, y_zero, low, high, dtype)


@quantized_matmul.infer
def quantized_matmul(x, w, scale, b, *, channels, x_zero, y_zero, low, high, dtype):
    if x.rank < 1 or x.shape[-1] == UNKNOWN or channels < 0:
        raise errors.value_error(f"x must be [..., in] with a known in, got {x}, and channels {channels}")
    _check(x, w, scale, b, channels, x.shape[-1], x_zero, y_zero, low, high, dtype)
    return TensorType(dtype, (*x.shape[:-1], channels))


_UNSIGNED = dict(dtype=dtypes.uint8, low=0, high=255)
_PACKED = dict(_prepare={1: quantized_pack})


@quantized_matmul.samples
def quantized_matmul(rand):
    def sample(rows, depth, channels, signed=True, b=True, **how):
        x = _bytes(rand, *rows, depth, signed=signed)
        bias = rand.ints(-999, 999, (channels,)) if b else None
        w, scale = _bytes(rand, channels, depth), _scales(rand, channels, max(1, depth))
        return x, w, scale, bias, dict(channels=channels, **how, **_PACKED)

    yield sample((2,), 3, 5)
    yield sample((2, 3), 7, 17, signed=False, x_zero=131, y_zero=-7)
    yield sample((), 33, 10, b=False, x_zero=-5, dtype=dtypes.float32)
    yield sample((67,), 801, 35, signed=False, x_zero=128, y_zero=120, **_UNSIGNED)
    yield sample((13,), 64, 64, x_zero=-128, low=0, high=100)
    yield sample((1,), 1, 1)
    yield sample((0,), 4, 3)
    yield sample((3,), 0, 4)
    extreme = np.full((2, 2000), -128, np.int8), np.full((3, 2000), -128, np.int8)
    yield *extreme, np.full(3, 4e-6, np.float32), dict(channels=3, x_zero=127, **_PACKED)


@op(name="quantized_conv", nondiff=True)
def quantized_conv(
    x, w, scale, b: "tensor?" = None,
    *, channels: "int", kernel: "ints", stride: "ints" = (1, 1), pad: "ints" = (0, 0, 0, 0),
    dilation: "ints" = (1, 1), x_zero: "int" = 0, y_zero: "int" = 0, low: "int" = -128, high: "int" = 127,
    dtype: "dtype" = dtypes.int8,
):  # fmt: skip
    """Channels-last convolution of 8-bit integers, padded with `x_zero`; the result as of `quantized_matmul`.

    Shapes: x [N, H, W, I], w what `quantized_pack` made, scale [O], b [O] -> [N, H', W', O], O `channels`;
    `pad` lists all begins, then all ends.
    dtypes: x int8 or uint8, scale float32, b int32 -> `dtype`: int8, uint8 or float32.
    Errors: TypeError for other dtypes; ValueError if the pack, sizes, zero points or limits do not fit.
    """
    kernel, stride, pad, dilation = full_attributes(2, kernel, stride, pad, dilation)
    lines = np.pad(x.astype(np.int64) - x_zero, ((0, 0), (pad[0], pad[2]), (pad[1], pad[3]), (0, 0)))
    weights = _np_unpacked(w, channels, math.prod(kernel) * x.shape[3]).reshape(*kernel, x.shape[3], channels)
    size = output_size(x.shape[1:3], kernel, stride, pad, dilation)
    sums = np.zeros((x.shape[0], *size, channels), np.int64)
    for i, j in np.ndindex(*kernel):
        top, left = i * dilation[0], j * dilation[1]
        bottom, right = top + size[0] * stride[0], left + size[1] * stride[1]
        sums += lines[:, top : bottom : stride[0], left : right : stride[1]] @ weights[i, j]
    return _np_result(sums, scale, b, y_zero, low, high, dtype)


@quantized_conv.infer
def quantized_conv(
    x, w, scale, b, *, channels, kernel, stride, pad, dilation, x_zero, y_zero, low, high, dtype
):  # fmt: skip
    if x.rank != 4 or x.shape[3] == UNKNOWN or channels < 0:
        raise errors.value_error(f"x must be [N, H, W, I] with a known I, got {x}, and channels {channels}")
    kernel, stride, pad, dilation = full_attributes(2, kernel, stride, pad, dilation)
    depth = math.prod(kernel) * x.shape[3]
    _check(x, w, scale, b, channels, depth, x_zero, y_zero, low, high, dtype)
    size = output_size(x.shape[1:3], kernel, stride, pad, dilation)
    return TensorType(dtype, (x.shape[0], *size, channels))


@quantized_conv.samples
def quantized_conv(rand):
    def sample(x, channels, kernel, signed=True, zeros=False, **how):
        depth = math.prod(kernel) * x[-1]
        prepare = quantized_pack
        if zeros:
            prepare = partial(_packed_with, rand.ints(-20, 20, (channels,)))
        arrays = _bytes(rand, *x, signed=signed), _bytes(rand, channels, x[-1], *kernel)
        bias = rand.ints(-999, 999, (channels,))
        attrs = dict(channels=channels, kernel=kernel, _prepare={1: prepare}, **how)
        return *arrays, _scales(rand, channels, depth), bias, attrs

    same = dict(pad=(1, 1, 1, 1))
    yield sample((1, 5, 6, 3), 7, (3, 3), x_zero=3, **same)
    yield sample((2, 7, 5, 8), 33, (3, 2), signed=False, x_zero=7, y_zero=3, stride=(2, 1), pad=(1, 0, 2, 1))
    yield sample((1, 9, 9, 5), 16, (1, 1), zeros=True, stride=(2, 2), dtype=dtypes.float32)
    yield sample((1, 9, 8, 4), 6, (3, 3), signed=False, zeros=True, dilation=(2, 1), **same, **_UNSIGNED)
    yield sample((3, 14, 14, 32), 48, (3, 3), x_zero=-128, low=-100, **same)
    yield sample((0, 5, 5, 2), 3, (3, 3))


def _packed_with(zero, w):
    """The pack of w with the zero points of `zero`, an array."""
    from mycelia.engine.tensors.tensor import Tensor  # tensors are built upon the ops

    return quantized_pack(w, Tensor(zero))


__all__ = []
