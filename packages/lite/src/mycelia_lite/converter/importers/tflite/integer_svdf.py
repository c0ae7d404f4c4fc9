"""SVDF of TensorFlow Lite on int8 with a state of int16: the integers of its kernel.

Sums of products are exact, and rounded twice: into the state, and into the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import cast, shape_of
from mycelia_lite.converter.importers.tflite.calls import Call
from mycelia_lite.converter.importers.tflite.fixed_point import Factor
from mycelia_lite.converter.importers.tflite.graphs import assign, value_of
from mycelia_lite.converter.importers.tflite.integer_rules import rescaled

_F = np.float32
_EXACT = 512  # products of int8s of which float32 holds any sum
_TYPES = ("INT8", "INT8", "INT16", "INT16", "INT8")  # of data, both weights, the state, the result


def run(call: Call, x: Any, features: Any, times: Any, bias: Any, state: Any) -> Any:
    """The result [B, units] of x [B, I]. The activation is what the limits of int8 make of it, as there.

    Errors: ConversionError for other types, weights around another number than 0, and several scales.
    """
    call.get("SVDFOptions", "asymmetric_quantize_inputs")
    call.name_of("SVDFOptions", "fused_activation_function")
    rank = call.get("SVDFOptions", "rank")
    infos = (*call.inputs[:3], call.inputs[4], call.outputs[0])
    if tuple(i.kind for i in infos) != _TYPES:
        raise call.fail("a filter of integers of other types than int8 with times and a state of int16")
    scales = [i.quantization for i in infos]
    if any(q is None or not q.is_one for q in scales) or any(q.zero[0] for q in scales[1:4]):
        raise call.fail(
            "a filter of integers without one scale for each tensor, of weights and states around 0"
        )
    of_x, of_features, of_times, of_state, of_y = (_F(q.scale[0]) for q in scales)
    count, memory = shape_of(times)
    if rank < 1 or count % rank:
        raise call.option("rank", rank, f"does not divide {count} features")

    batch, width = shape_of(x)
    exact = ms.float32 if width <= _EXACT else ms.int32
    given = ops.sub(cast(x, exact), ms.Tensor(int(scales[0].zero[0]), exact))
    now = cast(ops.matmul(given, ops.transpose(cast(features, exact), (1, 0))), ms.int32)
    now = rescaled(now, Factor.of(_F(_F(of_x * of_features) / of_state)), 0, -(2**15), 2**15 - 1, "int32")
    before = cast(ops.reshape(value_of(call, state), (batch, count, memory)), ms.int32)
    now = ops.expand_dims(now, 2)
    kept = ops.concat((before[:, :, 1:], now), 2) if memory > 1 else now
    assign(call, state, cast(ops.reshape(kept, (batch, count * memory)), ms.int16))
    y = ops.mul(kept, ops.expand_dims(cast(times, ms.int32), 0))
    y = ops.sum(ops.reshape(y, (batch, count // rank, rank * memory)), (2,), dtype=ms.int32)
    y = y if bias is None else ops.add(y, bias)
    factor = Factor.of(_F(_F(of_state * of_times) / of_y))
    return rescaled(y, factor, int(scales[4].zero[0]), -128, 127, "int8")
