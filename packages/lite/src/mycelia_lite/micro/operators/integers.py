"""Layers of integers of 8 bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycelia_lite.micro.integers import DEPTHWISE
from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.operators.convolution import image_of, window_distance, window_fields
from mycelia_lite.micro.program import Step


def _scaling(b: Builder, step: Step, columns: int) -> dict[str, Any]:
    """The fields of `micro_scaling`."""
    (y,) = step.outputs
    fields = {"columns": columns, "zero": 0, "low": 0, "high": 0, "even": b.value(y).size, "way": 0}
    return fields | {name: step.attributes[name] for name in fields if name in step.attributes}


def _suffix(b: Builder, x: int, weight: int) -> str:
    """What the functions for data and weights of these types are called."""
    data, weights = b.value(x).dtype, b.value(weight).dtype
    return ("u8" if data == np.uint8 else "i8") + ("w" if weights == np.int16 else "")


@lowers("integer_linear")
def linear(b: Builder, step: Step) -> None:
    """Rows times weights [out, in]."""
    x, weight, _, _ = step.inputs
    outputs, depth = b.shape(weight)[0], math.prod(b.shape(weight)[1:])
    rows, item = b.value(x).size // depth, b.value(step.outputs[0]).dtype.itemsize
    distance = max((item * (r + 1) * outputs - r * depth for r in (0, rows - 1)), default=0)
    fields = {"rows": rows, "depth": depth, "outputs": outputs, "x_zero": step.attributes["x_zero"]}
    fields |= _scaling(b, step, outputs)
    function = f"micro_linear_{_suffix(b, x, weight)}"
    b.call(step, function, "micro_linear_integers", fields, distances={x: distance})


@lowers("integer_conv")
def conv(b: Builder, step: Step) -> None:
    """Images with the channels last; weights [O, kh, kw, I / group] or a matrix of that."""
    x, weight, bias, factors = step.inputs
    a = step.attributes
    result, (image, distances) = b.shape(step.outputs[0]), image_of(b, step)
    fields = window_fields(image, result, a, a["kernel"]) | {"x_zero": a["x_zero"]}
    fields |= _scaling(b, step, result[3])
    kind, inputs = "conv", [x, weight, bias, factors]
    if a.get("algorithm") == DEPTHWISE:
        kind, inputs[1] = "depthwise", b.program.constant(np.transpose(b.value(weight).data, (3, 1, 2, 0)))
    function = f"micro_{kind}_{_suffix(b, x, weight)}"
    b.call(step, function, "micro_conv_integers", fields, inputs, distances=distances)


@lowers("rescale_columns")
def rescale_columns(b: Builder, step: Step) -> None:
    """Whole numbers times the factors of their columns, where no layer of integers has them in it."""
    x, factors = step.inputs
    suffix = {"float32": "f32", "int32": "i32"}.get(b.value(x).dtype.name)
    b.require(suffix is not None, b.value(x).dtype.name)
    size, together = b.value(x).size, step.attributes["together"]
    fields = {"count": size} | _scaling(b, step, b.shape(factors)[1])
    fields["even"] = size // together * together if together else size
    b.call(step, f"micro_rescale_columns_{suffix}", "micro_columns", fields, distances={x: 0})


@lowers("integer_pool")
def pool(b: Builder, step: Step) -> None:
    """The largest elements or the means of windows."""
    (x,) = step.inputs
    a, image, result = step.attributes, b.shape(x), b.shape(step.outputs[0])
    dtype = b.value(x).dtype
    b.require(dtype == b.value(step.outputs[0]).dtype, f"{dtype.name} with a result of another type")
    fields = a | {
        "batch": image[0], "in_height": image[1], "in_width": image[2], "channels": image[3],
        "out_height": result[1], "out_width": result[2],
    }  # fmt: skip
    distance = window_distance(image, result, a["stride_height"], a["pad_top"], 1, 1)
    suffix = "u8" if dtype == np.uint8 else "i8"
    b.call(step, f"micro_pool_{suffix}", "micro_pool_integers", fields, distances={x: distance})


@lowers("dynamic_quantize")
def quantize_rows(b: Builder, step: Step) -> None:
    """Rows as integers by the largest number of each, or of all."""
    (x,) = step.inputs
    b.floats(step)
    depth = b.shape(x)[-1]
    fields = {
        "rows": b.value(x).size // max(1, depth),
        "depth": depth,
        "together": step.attributes["together"],
    }
    b.call(step, "micro_quantize_rows", "micro_ranges", fields)
