"""Layers of weights of 1 to 8 bits, which stay packed."""

from __future__ import annotations

import math

import numpy as np

from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.operators.convolution import image_of, window_fields
from mycelia_lite.micro.operators.product import limits, product_distance
from mycelia_lite.micro.program import Step

_WHOLE = 8


def _packed(b: Builder, step: Step, outputs: int, depth: int) -> tuple[int, int]:
    """Rows of fields of the weights [outputs, depth], each from a byte on, and how many bytes a row has."""
    bits = step.attributes["bits"]
    raw = b.value(step.inputs[1]).data.view(np.uint8)
    outputs_first, is_signed = b.value(step.inputs[5]).data
    if bits == _WHOLE:
        fields = raw[: outputs * depth] ^ np.uint8(128 if is_signed else 0)
    else:
        stream = np.unpackbits(raw, bitorder="little")[: outputs * depth * bits].reshape(-1, bits)
        fields = stream @ (1 << np.arange(bits))
    rows = fields.reshape(outputs, depth) if outputs_first else fields.reshape(depth, outputs).T
    if bits == _WHOLE:
        return b.program.constant(rows), depth
    split = (rows[..., None] >> np.arange(bits)).astype(np.uint8) & 1
    packed = np.packbits(split.reshape(outputs, depth * bits), axis=1, bitorder="little")
    return b.program.constant(packed), packed.shape[1]


@lowers("low_bit_linear")
def linear(b: Builder, step: Step) -> None:
    """x [..., in] by weights [out, in], which may share scales in groups along the rows."""
    x, _, scale, zero, bias, _ = step.inputs
    b.floats(step, 0)
    outputs, depth = step.attributes["channels"], b.shape(x)[-1]
    weights, row_bytes = _packed(b, step, outputs, depth)
    rows = math.prod(b.shape(x)[:-1])
    fields = {
        "rows": rows, "depth": depth, "outputs": outputs, "bits": step.attributes["bits"],
        "group": step.attributes["group"] or max(1, depth), "row_bytes": row_bytes, **limits(step),
    }  # fmt: skip
    distances = {x: product_distance(rows, depth, outputs)}
    inputs = [x, weights, scale, zero, bias]
    b.call(step, "micro_linear_bits", "micro_linear_packed", fields, inputs, distances=distances)


@lowers("low_bit_conv_last")
def conv(b: Builder, step: Step) -> None:
    """Images with the channels last."""
    x, _, scale, zero, bias, _ = step.inputs
    b.floats(step, 0)
    a, result, (image, distances) = step.attributes, b.shape(step.outputs[0]), image_of(b, step)
    weights, row_bytes = _packed(b, step, a["channels"], math.prod(a["kernel"]) * image[3])
    fields = window_fields(image, result, a, a["kernel"]) | limits(step)
    fields |= {"bits": a["bits"], "row_bytes": row_bytes}
    inputs = [x, weights, scale, zero, bias]
    b.call(step, "micro_conv_bits", "micro_conv_packed", fields, inputs, distances=distances)
