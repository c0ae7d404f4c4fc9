"""ONNX operators on places of images: grids, regions, deformed windows, windows put back."""

from __future__ import annotations

import math
from typing import Any

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import (
    as_tensor,
    cast,
    integers,
    is_number,
    known,
    known_shape,
    operator,
    positive_axis,
    shape_of,
)
from mycelia_lite.converter.runtime_op import OPEN, custom

_MODES = {"nearest": 0, "bilinear": 1, "linear": 1, "bicubic": 2, "cubic": 2}


def _numbers(value: Any, count: int) -> list[int]:
    """The numbers of a vector, open ones if it is data."""
    found = known(value)
    return [OPEN] * count if found is None else [int(n) for n in found.reshape(-1)]


@operator("GridSample", first=16)
def _grid_sample(call, x, grid):
    mode = _MODES[call.choice("mode", "linear" if call.version >= 20 else "bilinear", _MODES)]
    paddings = ("zeros", "border", "reflection")
    padding = paddings.index(call.choice("padding_mode", "zeros", paddings))
    corners = call.choice("align_corners", 0, (0, 1))
    if x.ndim != grid.ndim:
        raise call.misfit(f"images of {x.ndim} axes and a grid of {grid.ndim}")
    if not 3 <= x.ndim <= 5:
        raise call.fail(f"images of {x.ndim} axes, 3 to 5 are imported")
    shape = (*shape_of(x)[:2], *shape_of(grid)[1:-1])
    attributes = dict(mode=mode, padding=padding, corners=corners)
    return custom("grid_sample", [x, cast(grid, x.dtype)], [(x.dtype, shape)], **attributes)


@operator("RoiAlign")
def _roi_align(call, x, boxes, images):
    modes = ("half_pixel", "output_half_pixel")
    default = "half_pixel" if call.version >= 16 else "output_half_pixel"
    half = call.choice("coordinate_transformation_mode", default, modes) == "half_pixel"
    largest = call.choice("mode", "avg", ("avg", "max")) == "max"
    pooled = [call.get("output_height", 1), call.get("output_width", 1)]
    shape = (shape_of(boxes)[0], shape_of(x)[1], *pooled)
    return custom(
        "roi_align", [x, cast(boxes, x.dtype), cast(images, ms.int64)], [(x.dtype, shape)],
        largest=int(largest), half_pixel=int(half), samples=call.get("sampling_ratio", 0),
        scale=float(call.get("spatial_scale", 1.0)), pooled=pooled,
    )  # fmt: skip


@operator("DeformConv")
def _deform_conv(call, x, weight, offset, bias=None, mask=None):
    if x.ndim != 4:
        raise call.fail(f"images of {x.ndim - 2} spatial dimensions, 2 are imported")
    kernel = known_shape(call, weight)[2:]
    if tuple(call.get("kernel_shape") or kernel) != kernel:
        raise call.attribute("kernel_shape", f"the weights have {list(kernel)}")
    given = [v for v in (bias, mask) if v is not None]
    shape = (shape_of(x)[0], shape_of(weight)[0], *shape_of(offset)[2:])
    return custom(
        "deform_conv", [x, weight, offset, *given], [(x.dtype, shape)],
        stride=list(call.get("strides") or (1, 1)), dilation=list(call.get("dilations") or (1, 1)),
        pad=list(call.get("pads") or (0,) * 4), group=call.get("group", 1),
        offset_group=call.get("offset_group", 1), **{"with": [int(v is not None) for v in (bias, mask)]},
    )  # fmt: skip


@operator("AffineGrid")
def _affine_grid(call, theta, size):
    rank = known_shape(call, theta, (1,))[1]
    if theta.dtype != ms.float32:
        raise call.fail(f"matrices of {theta.dtype}, float32 is imported")
    sizes = _numbers(size, rank + 2)
    corners = call.choice("align_corners", 0, (0, 1))
    types = [(theta.dtype, (shape_of(theta)[0], *sizes[2:], rank))]
    return custom("affine_grid", [theta, size], types, corners=corners)


@operator("CenterCropPad", sizes=(1,))
def _center_crop_pad(call, x, shape):
    axes = call.get("axes")
    axes = [positive_axis(call, a, x.ndim) for a in (range(x.ndim) if axes is None else axes)]
    wanted = dict(zip(axes, _numbers(shape, len(axes))))
    types = [(x.dtype, [wanted.get(d, n) for d, n in enumerate(shape_of(x))])]
    return custom("center_crop_pad", [x, as_tensor(shape)], types, axes=axes)


@operator("Col2Im")
def _col2im(call, x, image, block):
    rank = known_shape(call, image)[0]
    kernel, channels = known(block), shape_of(x)[1]
    if kernel is not None and is_number(channels):
        channels //= math.prod(int(n) for n in kernel.reshape(-1))
    else:
        channels = OPEN
    types = [(x.dtype, (shape_of(x)[0], channels, *_numbers(image, rank)))]
    return custom(
        "col2im", [x, image, block], types, stride=list(call.get("strides") or (1,) * rank),
        dilation=list(call.get("dilations") or (1,) * rank), pad=list(call.get("pads") or (0,) * (2 * rank)),
    )  # fmt: skip


@operator("MaxUnpool", sizes=(2,))
def _max_unpool(call, x, places, output_shape=None):
    """x at places of an image that is 0 elsewhere; places count in the image that the windows reach."""
    shape = known_shape(call, x)
    kernel = call.need("kernel_shape")
    rank = len(kernel)
    strides, pads = call.get("strides") or [1] * rank, call.get("pads") or [0] * (2 * rank)
    size = [
        (n - 1) * s - pads[d] - pads[d + rank] + k
        for d, (n, s, k) in enumerate(zip(shape[2:], strides, kernel))
    ]
    whole = [*shape[:2], *size]
    count = math.prod(whole)
    flat = ops.tensor_scatter_elements(
        ops.zeros((count,), x.dtype), ops.reshape(places, (-1,)), ops.reshape(x, (-1,)), 0, "none"
    )
    y = ops.reshape(flat, tuple(whole))
    if output_shape is None:
        return y
    wanted = integers(call, output_shape, "output_shape") if known(output_shape) is not None else None
    types = [(x.dtype, wanted or [OPEN] * x.ndim)]
    return custom("pad_to", [y, as_tensor(output_shape)], types)
