"""ATen ops that ONNX has an operator for, as which they are imported: windows, sampling, sides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers.nodes import entry_of
from mycelia_lite.converter.importers.onnx.calls import OPERATORS as ONNX
from mycelia_lite.converter.importers.onnx.calls import Call as OnnxCall
from mycelia_lite.converter.importers.onnx.calls import as_tensor as onnx_tensor
from mycelia_lite.converter.importers.torch.calls import Call, as_tensor, aten, cast, shape_of

_VERSION = 20  # of the operators' definitions
_MODES = ("linear", "nearest", "cubic")  # torch's numbers of them
_SIDES = ("zeros", "border", "reflection")


class _OnnxCall(OnnxCall):
    """A node as the operator of ONNX that means the same; errors name the node itself."""

    def __init__(self, call: Call, kind: str, attributes: dict[str, Any]) -> None:
        super().__init__(kind, call.name, _VERSION, attributes, [call.name])
        self.source = call

    def fail(self, why: str, code: Code = Code.NOT_SUPPORT) -> ConversionError:
        return self.source.fail(why, code)


def as_onnx(call: Call, kind: str, inputs: Sequence[Any], **attributes: Any) -> Any:
    """The first result of a node as the operator `kind`; attributes that are None are left out."""
    made = _OnnxCall(call, kind, {k: v for k, v in attributes.items() if v is not None})
    given = list(inputs)
    entry = entry_of(made, given, ONNX)
    result = entry.function(made, *entry.arguments(given, onnx_tensor))
    call.fixed = call.fixed or made.fixed
    return result[0] if isinstance(result, tuple | list) else result


def _numbers(values: Sequence[int] | int, count: int, default: Sequence[int] = ()) -> list[int]:
    """One number for each of `count` axes; one alone is for all."""
    values = [values] if isinstance(values, int) else list(values) or list(default)
    return values * count if len(values) == 1 else values


# ---- windows


def _with_batch(x):
    """A volume as a batch of one, and what turns a result back."""
    if len(shape_of(x)) == 5:
        return x, lambda y: y
    return ops.expand_dims(x, 0), lambda y: ops.squeeze(y, 0)


@aten("max_pool3d_with_indices")
def _max_pool(call, x, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    if any(user.args[1:2] == (1,) for user in call.node.users):
        raise call.fail("the indices of the largest elements are not imported")
    kernel, pads = _numbers(kernel_size, 3), _numbers(padding, 3)
    how = dict(strides=_numbers(stride, 3, kernel), dilations=_numbers(dilation, 3), ceil_mode=int(ceil_mode))
    x, back = _with_batch(x)
    return [back(as_onnx(call, "MaxPool", [x], kernel_shape=kernel, pads=pads * 2, **how)), None]


@aten("avg_pool3d")
def _avg_pool(
    call, x, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    call.need("divisor_override", divisor_override, None)
    kernel, pads = _numbers(kernel_size, 3), _numbers(padding, 3)
    how = dict(strides=_numbers(stride, 3, kernel), ceil_mode=int(ceil_mode))
    how["count_include_pad"] = int(count_include_pad)
    x, back = _with_batch(x)
    return back(as_onnx(call, "AveragePool", [x], kernel_shape=kernel, pads=pads * 2, **how))


@aten("_adaptive_avg_pool3d")
def _adaptive_avg_pool(call, x, output_size):
    sizes = shape_of(x)[-3:]
    if list(output_size) == [1, 1, 1]:
        return ops.mean(x, (-3, -2, -1), True)
    if any(type(n) is not int or n % wanted for n, wanted in zip(sizes, output_size)):
        raise call.fail(f"{list(output_size)} windows over {list(sizes)} elements are not all of one size")
    kernel = [n // wanted for n, wanted in zip(sizes, output_size)]
    x, back = _with_batch(x)
    return back(as_onnx(call, "AveragePool", [x], kernel_shape=kernel, strides=kernel))


@aten("col2im")
def _col2im(call, x, output_size, kernel_size, dilation, padding, stride):
    inputs = [x, *(ms.Tensor(np.asarray(list(n), np.int64)) for n in (output_size, kernel_size))]
    pads = list(padding) * 2
    return as_onnx(call, "Col2Im", inputs, dilations=list(dilation), pads=pads, strides=list(stride))


# ---- sampling


def _resize(call, x, output_size, scale_factors, mode, place, **how):
    rank = len(shape_of(x))
    if output_size is None and place == "align_corners":  # torch's places follow from sizes, not from scales
        sizes = shape_of(x)[2:]
        if not all(type(n) is int or f == int(f) for n, f in zip(sizes, scale_factors)):
            raise call.fail("corners are aligned by a scale with a fraction, and the size is open")
        if all(type(n) is int for n in sizes):
            output_size = [math.floor(n * f) for n, f in zip(sizes, scale_factors)]
    if output_size is None:
        scales = ms.Tensor(np.asarray([1.0, 1.0, *scale_factors], np.float32))
        return as_onnx(
            call, "Resize", [x, None, scales], mode=mode, coordinate_transformation_mode=place, **how
        )
    if not all(type(n) is int for n in output_size):
        raise call.fail("its size follows from an open size")
    sizes = ms.Tensor(np.asarray(list(output_size), np.int64))
    how |= dict(coordinate_transformation_mode=place, axes=list(range(2, rank)))
    return as_onnx(call, "Resize", [x, None, None, sizes], mode=mode, **how)


@aten("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec")
def _nearest(call, x, output_size, scale_factors):
    return _resize(call, x, output_size, scale_factors, "nearest", "asymmetric", nearest_mode="floor")


@aten("upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec")
def _linear(call, x, output_size, align_corners, scale_factors):
    place = "align_corners" if align_corners else "half_pixel"
    return _resize(call, x, output_size, scale_factors, "linear", place)


@aten("upsample_bicubic2d.vec")
def _cubic(call, x, output_size, align_corners, scale_factors):
    place = "align_corners" if align_corners else "half_pixel"
    return _resize(call, x, output_size, scale_factors, "cubic", place, cubic_coeff_a=-0.75)


@aten("grid_sampler_2d", "grid_sampler_3d")
def _grid_sample(call, x, grid, interpolation_mode, padding_mode, align_corners):
    how = dict(mode=_MODES[interpolation_mode], padding_mode=_SIDES[padding_mode])
    return as_onnx(call, "GridSample", [x, grid], align_corners=int(align_corners), **how)


# ---- sides


def _padded(call, x, padding, mode):
    rank, count = len(shape_of(x)), len(padding) // 2
    begins, ends = ([0] * (rank - count) + list(padding[side::2])[::-1] for side in (0, 1))
    return as_onnx(call, "Pad", [x, ms.Tensor(np.asarray(begins + ends, np.int64))], mode=mode)


@aten("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def _reflection_pad(call, x, padding):
    return _padded(call, x, padding, "reflect")


@aten("replication_pad1d", "replication_pad2d", "replication_pad3d")
def _replication_pad(call, x, padding):
    return _padded(call, x, padding, "edge")


# ---- scattered elements

_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def _scattered(call, x, dim, index, source, reduction="none"):
    wanted = shape_of(index)
    if not all(type(n) is int for n in wanted):
        raise call.fail("the shape of its indices is open, but must be known")
    if shape_of(source) != wanted:  # torch takes the part of the source that the indices cover
        source = source[tuple(slice(0, n) for n in wanted)]
    return as_onnx(call, "ScatterElements", [x, index, cast(source, x.dtype)], axis=dim, reduction=reduction)


@aten("scatter.src")
def _scatter(call, x, dim, index, src):
    return _scattered(call, x, dim, index, src)


@aten("scatter.value")
def _scatter_value(call, x, dim, index, value):
    return _scattered(call, x, dim, index, ops.broadcast_to(as_tensor(value, x.dtype), shape_of(index)))


@aten("scatter_add")
def _scatter_add(call, x, dim, index, src):
    return _scattered(call, x, dim, index, src, "add")


@aten("scatter_reduce.two")
def _scatter_reduce(call, x, dim, index, src, reduce, include_self=True):
    call.need("include_self", include_self, True)
    call.need("reduce", reduce, *_REDUCTIONS)
    return _scattered(call, x, dim, index, src, _REDUCTIONS[reduce])
