"""LSTM of TensorFlow Lite on int8 with a cell state of int16, as full integer quantization makes it.

What enters a gate, leaves it, and the states are rounded where TensorFlow Lite rounds them: gates to 2^-12,
what sigmoid and tanh give to 2^-15, the cell to its own scale. In between it is computed in float32, so that
a result may be one step off where TensorFlow Lite's tables and shifts round the other way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import cast, is_number, known, shape_of
from mycelia_lite.converter.importers.tflite.calls import Call
from mycelia_lite.converter.importers.tflite.file import TensorInfo
from mycelia_lite.converter.importers.tflite.graphs import assign, value_of

_GATE, _UNIT = 2.0**12, 2.0**15  # steps of what enters a gate, of what leaves it
_EXTRAS = {  # inputs behind the first one: those of other kinds of cells
    "peepholes": range(8, 11), "a projection": range(15, 17), "normalized gates": range(19, 23),
}  # fmt: skip


def run(call: Call, table: str, x: Any, inputs: Sequence[Any]) -> Any:
    """All outputs [T, B, H] of x [T, B, I], int8; `inputs`: those of the node behind the first one.

    Errors: ConversionError for cells with peepholes, a projection or normalized gates, coupled ones, other
    activations than tanh, and other types.
    """
    name = call.name_of(table, "fused_activation_function")
    if name != "TANH":
        raise call.option("fused_activation_function", name, "is not imported for integers")
    call.get(table, "proj_clip")
    call.get(table, "asymmetric_quantize_inputs")
    clip = call.get(table, "cell_clip")
    for what, places in _EXTRAS.items():
        if any(inputs[i] is not None for i in places):
            raise call.fail(f"a cell of integers with {what}")
    infos = [*call.inputs[1:], *[None] * (23 - len(call.inputs[1:]))]
    if any(inputs[i] is None for i in (*range(8), *range(11, 15))):
        raise call.fail("a cell of integers of which a gate has no weights or no bias")
    of_x, of_h, of_c = call.inputs[0], infos[17], infos[18]
    kinds = [i.kind for i in (of_x, *infos[:8], of_h)], of_c.kind, call.outputs[0].kind
    if kinds != (["INT8"] * 10, "INT16", "INT8") or of_h.quantization != call.outputs[0].quantization:
        raise call.fail("a cell of integers of other types than int8 with a cell state of int16")
    if len(call.intermediates) == 5 and call.intermediates[4].quantization != of_h.quantization:
        raise call.fail("a cell of integers whose hidden state has another scale than its output")

    step_x, step_h, step_c = (float(_one(call, i).scale[0]) for i in (of_x, of_h, of_c))
    zero_x, zero_h = (float(_one(call, i).zero[0]) for i in (of_x, of_h))
    w, from_x = _weights(call, inputs[0:4], infos[0:4], step_x)
    r, from_h = _weights(call, inputs[4:8], infos[4:8], step_h)
    bias = cast(ops.concat(tuple(inputs[11:15])), ms.float32)
    entering = _steps(ops.mul(ops.dense(cast(x, ms.float32) - zero_x, w, bias), from_x))

    h = cast(value_of(call, inputs[17]), ms.float32) - zero_h
    c = cast(value_of(call, inputs[18]), ms.float32)
    count, hidden = shape_of(x)[0], shape_of(inputs[4])[0]
    if not is_number(count):
        raise call.fail("a cell of integers over a sequence of open length: give inputShape")
    made = []
    for t in range(count):
        gates = _steps(entering[t] + _steps(ops.mul(ops.dense(h, r, None), from_h)))
        i, f, g, o = ops.split(gates / _GATE, hidden, -1)
        put = ops.round(_unit(ops.sigmoid(i)) * _unit(ops.tanh(g)) / step_c)
        c = _steps(ops.round(_unit(ops.sigmoid(f)) * c) + put)
        if clip > 0:
            limit = min(round(clip / step_c), 2**15 - 1)
            c = ops.clip(c, -limit, limit)
        y = ops.round(_unit(ops.sigmoid(o)) * _unit(ops.tanh(c * step_c)) / step_h)
        h = ops.clip(y, -128 - zero_h, 127 - zero_h)
        made.append(h)
    assign(call, inputs[17], cast(h + zero_h, ms.int8))
    assign(call, inputs[18], cast(c, ms.int16))
    return cast(ops.stack(made) + zero_h, ms.int8)


def _one(call: Call, info: TensorInfo) -> Any:
    if info.quantization is None or not info.quantization.is_one:
        raise call.fail(f"the tensor '{info.name}' of a cell of integers without one scale")
    return info.quantization


def _weights(call: Call, values: Sequence[Any], infos: Sequence[TensorInfo], step: float) -> tuple[Any, Any]:
    """The integers of four gates one below the other, and the steps of a gate that one of their sums is."""
    if any(known(v) is None or _one(call, i).zero[0] for v, i in zip(values, infos)):
        raise call.fail("weights of a cell of integers that are no constants around zero")
    scales = [
        np.full(shape_of(v)[0], i.quantization.scale[0] * np.float64(step) * _GATE)
        for v, i in zip(values, infos)
    ]
    return cast(ops.concat(tuple(values)), ms.float32), ms.Tensor(np.concatenate(scales).astype(np.float32))


def _steps(x: Any) -> Any:
    """x rounded to what int16 holds."""
    return ops.clip(ops.round(x), -(2.0**15), 2.0**15 - 1)


def _unit(x: Any) -> Any:
    """x, from -1 to 1, rounded to 2^-15."""
    return ops.clip(ops.round(x * _UNIT), -_UNIT, _UNIT - 1) / _UNIT
