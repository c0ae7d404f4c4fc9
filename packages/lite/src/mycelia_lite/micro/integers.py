"""Layers of integers, which the runtime computes as sums and scales then, as one step each.

Sums that it computes in float32 are exact there, so integers give the same.
"""

from __future__ import annotations

import numpy as np

from mycelia_lite.micro.lower import readers
from mycelia_lite.micro.program import Program, Step

_OWN = {"quantized_conv": "integer_conv", "quantized_matmul": "integer_linear"}
_FLOAT = {"conv_last": "integer_conv", "linear": "integer_linear"}
DEPTHWISE = 3  # the algorithm of a convolution
_WIDEST = 1 << 15  # weights are integers of 16 bits at most


def join_integers(program: Program) -> None:
    """Let each scaling of sums and the layer that makes them be a step `integer_conv` or `integer_linear`.

    Their inputs: data, weights, a bias of int32 or none, factors [4, columns]; without these the sums are
    stored as float32.
    """
    reads = readers(program)
    maker = {v: s for s in program.steps for v in s.outputs}
    joined: dict[int, Step] = {}
    for step in program.steps:
        if step.op != "rescale_columns":
            continue
        host = maker.get(step.inputs[0])
        if (
            host is None
            or len(reads[step.inputs[0]]) > 1
            or program.values[step.inputs[0]].root != step.inputs[0]
        ):
            continue
        made = _joined(program, host, step, maker)
        if made is not None:
            joined[id(step)] = made
            joined[id(host)] = made
    kept = [s for s in program.steps if id(s) not in joined or s.op == "rescale_columns"]
    program.steps = [joined.get(id(s)) or _sums(program, s) for s in kept]


def _sums(program: Program, step: Step) -> Step:
    """A layer of integers that scales its sums itself, or not at all; the step itself if it is none."""
    if step.op not in (*_OWN, "integer_depthwise"):
        return step
    x, weight, scale, bias = (*step.inputs, -1)[:4]
    weights, scales = program.values[weight].data, program.values[scale].data
    result = program.values[step.outputs[0]]
    if weights is None or scales is None or (scales.size != result.shape[-1]):
        return step
    a = step.attributes
    if step.op == "integer_depthwise":  # weights [taps, channels]
        weights = weights.T.reshape(-1, *a["kernel"], 1)
        a = a | {"algorithm": DEPTHWISE}
    is_real = result.dtype == np.float32
    way = 3 if is_real and (scales == 1).all() else 2 if is_real else 1
    return Step(
        _OWN.get(step.op, "integer_conv"),
        [x, _weights(program, weights), bias, -1 if way == 3 else scale],
        step.outputs,
        a | {"zero": a.get("y_zero", a.get("zero")), "way": way},
        step.node,
        step.kind,
    )


def _weights(program: Program, weights: np.ndarray) -> int:
    fits = weights.min(initial=0) >= -128 and weights.max(initial=0) <= 127
    return program.constant(weights.astype(np.int8 if fits else np.int16))


def _joined(program: Program, host: Step, scaling: Step, maker: dict[int, Step]) -> Step | None:
    if host.op in _OWN:
        given = _of_integers(program, host)
    elif host.op in _FLOAT and "limits" not in host.attributes and not host.attributes.get("activation"):
        given = _of_floats(program, host, maker)
    else:
        given = None
    factors = program.values[scaling.inputs[1]].data
    if given is None or factors is None:
        return None
    x, zero, weights, bias = given
    result = program.values[scaling.outputs[0]]
    columns = result.shape[-1]
    inputs = [x, _weights(program, weights), bias, program.constant(factors[:, :columns])]
    a = scaling.attributes
    even = result.size // a["together"] * a["together"] if a["together"] else result.size
    attributes = host.attributes | {k: a[k] for k in ("zero", "low", "high")} | {"x_zero": zero, "even": even}
    kind = (_OWN | _FLOAT)[host.op]
    return Step(kind, inputs, scaling.outputs, attributes, scaling.node, scaling.kind)


def _of_integers(program: Program, host: Step) -> tuple | None:
    x, weight, scale, bias = (*host.inputs, -1)[:4]
    scales, weights = program.values[scale].data, program.values[weight].data
    if scales is None or (scales != 1).any() or program.values[host.outputs[0]].dtype != np.float32:
        return None
    return None if weights is None else (x, host.attributes["x_zero"], weights, bias)


def _of_floats(program: Program, host: Step, maker: dict[int, Step]) -> tuple | None:
    """Of a layer of float32 on integers less their zero point, with whole constants."""
    x, weight, bias = (*host.inputs, -1)[:3]
    zero = 0
    step = maker.get(x)
    if step is not None and step.op == "sub":
        number = program.values[step.inputs[1]].data
        if number is None or number.size != 1 or number.ravel()[0] != int(number.ravel()[0]):
            return None
        zero, step = int(number.ravel()[0]), maker.get(step.inputs[0])
    if step is None or step.op != "cast" or any(v >= 0 for v in host.inputs[3:]):
        return None
    weights, numbers = _data(program, weight), _data(program, bias)
    if bias >= 0 and numbers is None:
        return None
    for constant in (weights, numbers):
        if constant is not None and (constant != np.rint(constant)).any():
            return None
    data = program.values[step.inputs[0]]
    if weights is None or data.dtype not in (np.int8, np.uint8) or np.abs(weights).max(initial=0) >= _WIDEST:
        return None
    return (
        step.inputs[0], zero, weights, -1 if numbers is None else program.constant(numbers.astype(np.int32))
    )  # fmt: skip


def _data(program: Program, value: int) -> np.ndarray | None:
    return None if value < 0 else program.values[value].data
