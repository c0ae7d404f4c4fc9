"""Tensors of integers that stand for real numbers, (q - zero) * scale.

Products (`finished`) add up the integers themselves, which float32 holds exactly up to 2^24, and scale the
sums once. Other operators compute with the numbers that the integers stand for; results are rounded. What
only moves elements moves the integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.errors import Code
from mycelia_lite.converter.importers.onnx.calls import along, cast, known, scalar, shape_of
from mycelia_lite.converter.importers.tflite import integer_products, integer_rules, shorts
from mycelia_lite.converter.importers.tflite.calls import Call, Operator, activated, operator
from mycelia_lite.converter.importers.tflite.file import Quantization, TensorInfo

_INTEGERS = ("INT4", "INT8", "UINT8", "INT16")


def is_quantized(info: TensorInfo | None) -> bool:
    return info is not None and info.quantization is not None and info.kind in _INTEGERS


def run(call: Call, entry: Operator, inputs: Sequence[Any]) -> Any:
    """The results of an operator on numbers, of which those of quantized tensors are integers."""
    tensors = [*call.inputs[: len(inputs)], *call.outputs]
    call.scales = [
        i.quantization.scale
        for i, v in zip(call.inputs, inputs)
        if is_quantized(i) and not i.is_variable and known(v) is not None
    ]
    if not any(is_quantized(t) for t in tensors):
        return entry.function(call, *inputs)
    of_shorts = shorts.concerns(tensors)
    made = shorts.run(call, inputs) if of_shorts else integer_rules.run(call, inputs)
    if made is not None:
        return made
    if entry.raw or (call.kind in _MOVES and _one_scale(tensors)):
        return entry.function(call, *inputs)
    if (kind := integer_products.KINDS.get(call.kind)) and is_quantized(call.inputs[kind.data]):
        return _product(call, entry, list(inputs), kind.data, kind.weight)
    if of_shorts and not (call.kind in shorts.CHOICES and _one_scale(tensors)):
        raise call.fail(
            "arithmetic on integers of 16 bits, which has no rule here that gives the kernel's integers"
        )
    results = entry.function(call, *numbers(call, inputs))
    results = results if isinstance(results, (tuple, list)) else (results,)
    return tuple(quantized(call, r, o) if is_quantized(o) else r for r, o in zip(results, call.outputs))


_MOVES = (
    "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "CONCATENATION", "PACK",
    "UNPACK", "SPLIT", "SPLIT_V", "GATHER", "GATHER_ND", "TILE", "REVERSE_V2", "BROADCAST_TO", "MIRROR_PAD",
    "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "BATCH_TO_SPACE_ND", "RESIZE_NEAREST_NEIGHBOR", "SHAPE", "RANK",
)  # fmt: skip


def _one_scale(tensors: Sequence[TensorInfo | None]) -> bool:
    found = [t.quantization for t in tensors if is_quantized(t)]
    return all(f.is_one and f == found[0] for f in found)


# ---- numbers and integers


def numbers(call: Call, inputs: Sequence[Any]) -> list[Any]:
    """The inputs of a node, those that are integers with scales as what they stand for."""
    return [
        dequantized(v, i.quantization) if v is not None and is_quantized(i) else v
        for v, i in zip(inputs, call.inputs)
    ]


def dequantized(x: Any, how: Quantization) -> Any:
    """(x - zero) * scale in float32."""
    wide = cast(x, ms.float32)
    if how.zero.any():
        wide = ops.sub(wide, _spread(how.zero, how, wide))
    return ops.mul(wide, _spread(how.scale, how, wide))


def _spread(values: np.ndarray, how: Quantization, x: Any) -> Any:
    made = ms.Tensor(values.astype(np.float32))
    return ops.reshape(made, ()) if how.is_one else along(made, how.axis, len(shape_of(x)))


def quantized(call: Call, x: Any, info: TensorInfo) -> Any:
    """x / scale rounded, plus zero, kept within the dtype of the tensor."""
    how = info.quantization
    if not x.dtype.is_floating:
        raise call.fail(f"a result of {x.dtype} for the quantized tensor '{info.name}'")
    y = ops.mul(cast(x, ms.float32), ms.Tensor(np.float32(1) / how.scale[0])) if how.is_one else None
    if y is None:
        raise call.fail(f"the computed tensor '{info.name}' has several scales")
    return _rounded(call, y, info)


def _rounded(call: Call, y: Any, info: TensorInfo, low: float = -np.inf, high: float = np.inf) -> Any:
    """The integers nearest to y, which is in steps of the tensor, plus zero; `low` and `high` too."""
    zero = int(info.quantization.zero[0])
    limits = np.iinfo(info.dtype.np)
    low, high = max(low + zero, limits.min), min(high + zero, limits.max)
    y = ops.add(ops.round(y), scalar(zero, y)) if zero else ops.round(y)
    y = ops.minimum(ops.maximum(y, scalar(low, y)), scalar(high, y))
    return cast(y, info.dtype)


# ---- products of integers


def _product(call: Call, entry: Operator, inputs: list[Any], data: int, weight: int) -> Any:
    of_data, of_weight = call.inputs[data].quantization, call.inputs[weight].quantization
    (out,) = call.outputs
    if not is_quantized(call.inputs[weight]) or not is_quantized(out):
        raise call.fail("a product of integers with numbers", Code.GRAPH_FILE_ERROR)
    if not of_data.is_one or not out.quantization.is_one:
        raise call.fail("several scales of data or a result")
    axis = 3 if call.kind == "DEPTHWISE_CONV_2D" else 0
    if not of_weight.is_one and of_weight.axis != axis:
        raise call.fail(f"scales along axis {of_weight.axis} of the weights")
    if out.kind in ("INT8", "UINT8", "INT16") and call.inputs[data].kind == out.kind:
        return integer_products.run(call, entry, inputs)
    if "INT16" in (out.kind, call.inputs[data].kind):
        raise call.fail(f"a product of {call.inputs[data].kind} as {out.kind}")
    for place, how in ((data, of_data), (weight, of_weight)):
        wide = cast(inputs[place], ms.float32)
        inputs[place] = ops.sub(wide, _spread(how.zero, how, wide)) if how.zero.any() else wide
    if len(inputs) > max(data, weight) + 1 and inputs[-1] is not None:
        inputs[-1] = cast(inputs[-1], ms.float32)
    scales = of_data.scale.astype(np.float64) * of_weight.scale / out.quantization.scale[0]
    call.multiplier = ms.Tensor(scales.astype(np.float32))
    call.scales = [*call.scales, call.multiplier.asnumpy()]  # a fusion may put it into the weights
    return entry.function(call, *inputs)


def finished(call: Call, table: str, y: Any) -> Any:
    """The result of a product with the channels last: activated, and of integers scaled and rounded."""
    if call.sums:
        return y
    if call.multiplier is None:
        return activated(call, table, y)
    kind = "NONE" if table == "BatchMatMulOptions" else call.name_of(table, "fused_activation_function")
    return _activated(call, ops.mul(y, call.multiplier), kind)


def _activated(call: Call, y: Any, kind: str) -> Any:
    """The integers nearest to y, which is in steps of the result, after an activation."""
    (out,) = call.outputs
    if kind not in _BOUNDS:
        raise call.option("fused_activation_function", kind, "is not imported for integers")
    low, high = (np.round(b / out.quantization.scale[0]) for b in _BOUNDS[kind])
    return _rounded(call, y, out, low, high)


def averaged(call: Call, table: str, x: Any, mean: Callable) -> Any:
    """Means of integers by ``mean(x)``: halves, which every second mean of two is, go away from 0 there."""
    (given,), (out,) = call.inputs, call.outputs
    kind = call.name_of(table, "fused_activation_function")
    if given.quantization != out.quantization:
        steps = dequantized(x, given.quantization)
        return quantized(call, activated(call, table, mean(steps)), out)
    y = mean(cast(x, ms.float32))
    whole = ops.mul(ops.floor(ops.add(ops.abs(y), scalar(0.5, y))), ops.sign(y))
    return _activated(call, ops.sub(whole, scalar(int(out.quantization.zero[0]), y)), kind)


_BOUNDS = {
    "NONE": (-np.inf, np.inf), "RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1),
}  # fmt: skip


# ---- operators


@operator("QUANTIZE", raw=True)
def _quantize(call, x):
    """Numbers to integers, or integers to others."""
    (given,), (out,) = call.inputs, call.outputs
    if not is_quantized(out):
        raise call.fail(f"a result of {out.kind} without scales")
    if is_quantized(given):
        x = dequantized(x, given.quantization)
    return quantized(call, x, out)


@operator("DEQUANTIZE", raw=True)
def _dequantize(call, x):
    """Integers to numbers, or 16-bit numbers to wider ones."""
    (given,), (out,) = call.inputs, call.outputs
    if given.quantization is None or x.dtype.is_floating:
        call.halves = known(x) is not None
        return cast(x, out.dtype)
    return cast(dequantized(x, given.quantization), out.dtype)


@operator("DENSIFY", raw=True)
def _densify(call, x):
    """Sparse constants are read as dense ones."""
    if known(x) is None:
        raise call.fail("its input is no constant")
    return x


@operator("FAKE_QUANT")
def _fake_quant(call, x):
    """x at the nearest of 2^bits numbers from min to max, moved so that 0 is one of them."""
    table = "FakeQuantOptions"
    low, high, bits = (call.get(table, name) for name in ("min", "max", "num_bits"))
    least = 1 if call.get(table, "narrow_range") else 0
    most = 2**bits - 1
    if not (2 <= bits <= 16 and low <= 0 <= high and low < high):
        raise call.fail(f"a range from {low} to {high} with {bits} bits", Code.INVALID_OP_ATTR)
    scale = np.float32((high - low) / (most - least))
    zero = np.clip(np.floor(least - low / scale + 0.5), least, most)
    first, last = np.float32((least - zero) * scale), np.float32((most - zero) * scale)
    kept = ops.maximum(ops.minimum(x, scalar(last, x)), scalar(first, x))
    steps = ops.floor(ops.add(ops.mul(ops.sub(kept, scalar(first, x)), scalar(1 / scale, x)), scalar(0.5, x)))
    return ops.add(ops.mul(steps, scalar(scale, x)), scalar(first, x))
