"""Layers of integers of 8 bits."""

from __future__ import annotations

import math

import numpy as np

from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.operators.convolution import DEPTHWISE, window_distance, window_fields
from mycelia_lite.micro.program import Step


def _limits(step: Step) -> dict[str, int]:
    return {name: step.attributes[name] for name in ("x_zero", "zero", "low", "high")}


@lowers("integer_linear")
def linear(b: Builder, step: Step) -> None:
    """Rows times weights [out, in]."""
    x, weight, _, _ = step.inputs
    outputs, depth = b.shape(weight)[0], math.prod(b.shape(weight)[1:])
    rows = b.value(x).size // depth
    distance = max((r + 1) * outputs - r * depth for r in (0, rows - 1))
    fields = {"rows": rows, "depth": depth, "outputs": outputs, **_limits(step)}
    b.call(step, "micro_linear_i8", "micro_linear_integers", fields, distances={x: distance})


@lowers("integer_conv")
def conv(b: Builder, step: Step) -> None:
    """Images with the channels last; weights [O, kh, kw, I / group] or a matrix of that."""
    x, weight, bias, factors = step.inputs
    a = step.attributes
    image, result = b.shape(x), b.shape(step.outputs[0])
    fields = window_fields(image, result, a, a["kernel"]) | _limits(step)
    distances = {x: window_distance(image, result, a["stride"][0], a["pad"][0], 1, 1)}
    if a.get("algorithm") == DEPTHWISE:
        turned = b.program.constant(np.transpose(b.value(weight).data, (3, 1, 2, 0)))
        inputs = [x, turned, bias, factors]
        b.call(step, "micro_depthwise_i8", "micro_conv_integers", fields, inputs, distances=distances)
    else:
        b.call(step, "micro_conv_i8", "micro_conv_integers", fields, distances=distances)


@lowers("rescale_columns")
def rescale_columns(b: Builder, step: Step) -> None:
    """Whole numbers times the factors of their columns, where no layer of integers has them in it."""
    x, factors = step.inputs
    b.require(not step.attributes["together"], "sums of which the last ones are rounded in another way")
    b.floats(step, 0)
    fields = {"count": b.value(x).size, "columns": b.shape(factors)[1]}
    fields |= {name: step.attributes[name] for name in ("zero", "low", "high")}
    b.call(step, "micro_rescale_columns_f32", "micro_columns", fields, distances={x: 0})
