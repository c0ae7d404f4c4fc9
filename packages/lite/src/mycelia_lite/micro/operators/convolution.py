"""Convolutions and pools."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycelia_lite.micro.integers import DEPTHWISE
from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.operators.product import NUMBERS, limits
from mycelia_lite.micro.program import Step


def window_distance(
    image: Sequence[int], result: Sequence[int], stride: int, pad: int, given: int, made: int
) -> int:
    """How far an image [N, H, W, C] must lie behind the result that is written over it, row by row.

    `given`, `made`: bytes of their elements.
    """
    row, out_row = (math.prod(shape[2:]) for shape in (image, result))
    most = 0
    for n in range(image[0]):
        for i in range(result[1]):
            written = (n * result[1] + i + 1) * out_row * made
            needed = (n * image[1] + max(0, min(i * stride - pad, image[1]))) * row * given
            most = max(most, written - needed)
    return most


def window_fields(
    image: Sequence[int], result: Sequence[int], a: dict[str, Any], kernel: Sequence[int]
) -> dict[str, int]:
    """The fields of `micro_conv` but the limits."""
    top, left = a["pad"][:2]
    dilation = a.get("dilation", [1, 1])
    return {
        "batch": image[0], "in_height": image[1], "in_width": image[2], "in_channels": image[3],
        "out_height": result[1], "out_width": result[2], "out_channels": result[3],
        "kernel_height": kernel[0], "kernel_width": kernel[1],
        "stride_height": a["stride"][0], "stride_width": a["stride"][1],
        "dilation_height": dilation[0], "dilation_width": dilation[1],
        "pad_top": top, "pad_left": left, "group": a.get("group", 1), "in_step": a.get("in_step", image[3]),
    }  # fmt: skip


def image_of(b: Builder, step: Step) -> tuple[Sequence[int], dict[int, float]]:
    """The sizes of the image that a convolution reads, and how far it must lie behind the result over it.

    Of a part of a larger image (`prepare`) the step has the sizes, and nothing may lie over it.
    """
    x, (y,), a = step.inputs[0], step.outputs, step.attributes
    if "image" in a:
        return a["image"], {}
    image, widths = b.shape(x), [b.value(v).dtype.itemsize for v in (x, y)]
    return image, {x: window_distance(image, b.shape(y), a["stride"][0], a["pad"][0], *widths)}


def volume_fields(
    image: Sequence[int], result: Sequence[int], kernel: Sequence[int], a: dict[str, Any]
) -> dict[str, Any]:
    """The fields of `micro_volume` but limits, of images with the channels first."""
    axes = len(image) - 2

    def three(numbers: Sequence[int], missing: int = 1) -> list[int]:
        numbers = list(numbers) if len(numbers) >= axes else list(numbers) * axes
        return [missing] * (3 - axes) + numbers[:axes]

    return {
        "batch": image[0], "channels": image[1], "outputs": result[1], "group": a.get("group", 1),
        "in": three(image[2:]), "out": three(result[2:]), "kernel": three(kernel),
        "stride": three(a["stride"]),
        "dilation": three(a.get("dilation", [1])), "pad": three(a["pad"], 0), "divisor": 0, "end": [0, 0, 0],
    }  # fmt: skip


@lowers("conv_last")
def conv(b: Builder, step: Step) -> None:
    """Images with the channels last; weights [O, kh, kw, I / group]."""
    x, weight, bias, residual = step.inputs[:4]
    b.floats(step)
    b.require(residual < 0, "a residual")
    a = step.attributes
    image, distances = image_of(b, step)
    fields = window_fields(image, b.shape(step.outputs[0]), a, a["kernel"]) | limits(step)
    if a["algorithm"] == DEPTHWISE:
        turned = np.transpose(b.value(weight).data, (3, 1, 2, 0))
        inputs = [x, b.program.constant(turned), bias]
        b.call(step, "micro_depthwise_f32", "micro_conv", fields, inputs, distances=distances)
    else:
        b.call(step, "micro_conv_f32", "micro_conv", fields, [x, weight, bias], distances=distances)


@lowers("conv_last_input_grad")
def conv_transpose(b: Builder, step: Step) -> None:
    """A transposed convolution; weights [I, kh, kw, O / group]."""
    x, weight = step.inputs
    b.floats(step)
    image, result = b.shape(x), b.shape(step.outputs[0])
    fields = window_fields(image, result, step.attributes, b.shape(weight)[1:3])
    b.call(step, "micro_conv_transpose_f32", "micro_conv", fields | {"low": -math.inf, "high": math.inf})


@lowers("conv")
def conv_first(b: Builder, step: Step) -> None:
    """Images with the channels first."""
    x, weight, bias = (*step.inputs, -1)[:3]
    a = dict(step.attributes)
    image, result, w = b.shape(x), b.shape(step.outputs[0]), b.shape(weight)
    spatial = len(image) - 2
    if spatial > 2 or b.value(x).dtype != np.float32:
        suffix = NUMBERS.get(b.value(x).dtype.name)
        b.require(suffix in ("f32", "f64", "i32"), b.value(x).dtype.name)
        fields = volume_fields(image, result, w[2:], a) | limits(step)
        b.call(step, f"micro_conv_volume_{suffix}", "micro_volume", fields, [x, weight, bias])
        return
    b.floats(step)
    b.require(b.value(weight).data is None or b.value(weight).size > 0, "no weights")
    if spatial == 1:
        image, result, w = ((*s[:2], 1, s[2]) for s in (image, result, w))
        a["stride"], a["dilation"] = [1, *a["stride"]], [1, *a["dilation"]]
        a["pad"] = [0, a["pad"][0], 0, a["pad"][1]]
    last = [(s[0], s[2], s[3], s[1]) for s in (image, result)]
    fields = window_fields(*last, a, w[2:]) | limits(step)
    b.call(step, "micro_conv_first_f32", "micro_conv", fields, [x, weight, bias])


@lowers("conv_input_grad")
def conv_first_transpose(b: Builder, step: Step) -> None:
    """A transposed convolution with the channels first; weights [I, O / group, ...]."""
    x, weight = step.inputs
    b.floats(step)
    fields = volume_fields(b.shape(x), b.shape(step.outputs[0]), b.shape(weight)[2:], step.attributes)
    fields |= {"low": -math.inf, "high": math.inf}
    b.call(step, "micro_conv_volume_transpose_f32", "micro_volume", fields)


@lowers("max_pool_index")
def pool_places(b: Builder, step: Step) -> None:
    """Where the largest elements of windows lie."""
    b.floats(step)
    volume_pool(b, step, "max_pool_place")


def volume_pool(b: Builder, step: Step, name: str) -> None:
    """A pool with the channels first along any axes."""
    (x,) = step.inputs
    a, image = step.attributes, b.shape(x)
    fields = volume_fields(image, b.shape(step.outputs[0]), a["kernel"], a)
    fields |= {"batch": image[0] * image[1], "low": 0.0, "high": 0.0, "divisor": _divisor(step)}
    axes = len(image) - 2
    fields["end"] = [1] * (3 - axes) + [n + p for n, p in zip(image[2:], a["pad"][axes:])]
    b.call(step, f"micro_{name}_f32", "micro_volume", fields)


def _divisor(step: Step) -> int:
    """What sums are divided by: a number, 0 for the elements of the window, -1 also for its padding."""
    if step.op != "avg_pool":
        return 0
    return step.attributes["divisor"] or (-1 if step.attributes["count_include_pad"] else 0)


@lowers("max_pool", "avg_pool")
def pool(b: Builder, step: Step) -> None:
    """The largest element or the mean of windows."""
    (x,) = step.inputs
    b.floats(step)
    a = step.attributes
    image, result = b.shape(x), b.shape(step.outputs[0])
    is_last = a["data_format"] == 1
    if len(image) == 3:
        b.require(not is_last, "windows along one axis")
        image, result = ((*s[:2], 1, s[2]) for s in (image, result))
        a = a | {
            "kernel": [1, *a["kernel"]],
            "stride": [1, *a["stride"]],
            "pad": [0, a["pad"][0], 0, a["pad"][1]],
        }
        a["dilation"] = [1, *a.get("dilation", [1])]
    if len(image) == 5:
        b.require(not is_last, "three axes with the channels last")
        volume_pool(b, step, f"{step.op}_volume")
        return
    if not is_last:
        image, result = ((s[0] * s[1], s[2], s[3], 1) for s in (image, result))
    fields = {"planes": image[0], "channels": image[3]}
    fields |= {
        k: v
        for k, v in window_fields(image, result, a, a["kernel"]).items()
        if k not in ("batch", "group", "in_channels", "out_channels")
    }
    top, left, bottom, right = a["pad"]
    fields |= {"divisor": _divisor(step), "bottom": image[1] + bottom, "right": image[2] + right}
    distance = window_distance(image, result, a["stride"][0], a["pad"][0], 4, 4)
    b.call(step, f"micro_{step.op}_f32", "micro_pool", fields, distances={x: distance})
