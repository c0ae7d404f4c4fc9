"""Products of tensors of 8 and 16 bits: exact sums, scaled to integers as TensorFlow Lite rounds them.

Sums are computed in float32, which has all whole numbers to 2^24. Where they may be larger, the product is
cut along the axis that is summed over, and the sums of the parts are added in int32, which computes all of
it where nothing can be cut. Integers of 16 bits are 256 times their upper byte and the lower one: their
products are as many, added up in int64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.errors import Code
from mycelia_lite.converter.importers.onnx.calls import cast, is_number, known, known_shape, scalar, shape_of
from mycelia_lite.converter.importers.tflite.calls import Call, Operator
from mycelia_lite.converter.importers.tflite.file import Quantization
from mycelia_lite.converter.importers.tflite.fixed_point import Factor, Scale
from mycelia_lite.converter.importers.tflite.integer_rules import limits
from mycelia_lite.converter.integer_ops import integer_products, rescale_columns

_EXACT = 1 << 24
_VECTOR = 8  # channels that a kernel by channels rounds at once
_FLAT = 16  # elements that one without channels does
_F = np.float32


class Kind(NamedTuple):
    """An operator: places of data and weights, its options, the axis of weights with the results' columns."""

    data: int
    weight: int
    options: str
    columns: int = 0


KINDS = {
    "CONV_2D": Kind(0, 1, "Conv2DOptions"),
    "DEPTHWISE_CONV_2D": Kind(0, 1, "DepthwiseConv2DOptions", 3),
    "FULLY_CONNECTED": Kind(0, 1, "FullyConnectedOptions"),
    "TRANSPOSE_CONV": Kind(2, 1, "TransposeConvOptions"),
    "BATCH_MATMUL": Kind(0, 1, "BatchMatMulOptions"),
}


class _Operand(NamedTuple):
    """Data or weights: `values` if they are known, the farthest from zero that they can be."""

    tensor: Any
    how: Quantization
    values: np.ndarray | None
    farthest: int
    axis: int  # that is summed over

    @staticmethod
    def of(call: Call, place: int, tensor: Any, axis: int) -> _Operand:
        info = call.inputs[place]
        limits_of, zero = np.iinfo(info.dtype.np), info.quantization.zero
        farthest = int(max(zero.max() - limits_of.min, limits_of.max - zero.min()))
        values = known(tensor)
        return _Operand(tensor, info.quantization, values, farthest, axis % len(shape_of(tensor)))

    def bytes(self) -> list[tuple[int, _Operand]]:
        """Of 16 bits the upper and the lower byte, each with what it counts; else what there is."""
        if self.tensor.dtype is not ms.int16:
            return [(1, self)]
        wide = cast(self.tensor, ms.int32)
        upper = ops.floor_div(wide, ms.Tensor(np.int32(256)))
        lower = ops.sub(wide, ops.mul(upper, ms.Tensor(np.int32(256))))
        return [
            (count, self._replace(tensor=v, values=known(v), farthest=most))
            for count, v, most in ((256, upper, 128), (1, lower, 255))
        ]

    def part(self, part: slice) -> Any:
        """The integers of a part of the axis."""
        return self.tensor if part == slice(None) else self.tensor[(slice(None),) * self.axis + (part,)]

    def numbers(self, part: slice, dtype: Any) -> Any:
        """The same without zero point."""
        x = self.part(part)
        wide = cast(x, dtype)
        if not self.how.zero.any():
            return wide
        shape = [1] * len(shape_of(x))
        if self.how.zero.size > 1:
            shape[self.how.axis] = -1
        return ops.sub(wide, ms.Tensor(self.how.zero.astype(dtype.np).reshape(shape)))


def run(call: Call, entry: Operator, inputs: Sequence[Any]) -> Any:
    """The integers that the operator gives; `entry` computes sums of numbers."""
    kind = KINDS[call.kind]
    x, weight = inputs[kind.data], inputs[kind.weight]
    if call.kind == "FULLY_CONNECTED" and shape_of(x)[-1] != shape_of(weight)[-1]:
        x = ops.reshape(x, (-1, *known_shape(call, weight)[1:]))
    axes = _summed(call, x, weight)
    data, weights = (_Operand.of(call, *v) for v in zip((kind.data, kind.weight), (x, weight), axes))
    bias = inputs[-1] if len(inputs) > max(kind.data, kind.weight) + 1 else None
    call.scales = [*call.scales, np.ones(1, _F)]  # integers are stored as such
    call.sums = True
    if data.tensor.dtype is not ms.int16:
        return _scaled(call, kind, _sums(call, entry, inputs, kind, data, weights, bias))
    _check_wide(call, kind, bias, data.how, weights.how)
    total = None
    for of_data, upper in data.bytes():
        for of_weights, lower in weights.bytes():
            made = cast(_sums(call, entry, inputs, kind, upper, lower, None), ms.int64)
            count = of_data * of_weights
            made = made if count == 1 else ops.mul(made, ms.Tensor(np.int64(count)))
            total = made if total is None else ops.add(total, made)
    if bias is not None:
        total = ops.add(total, cast(bias, ms.int64))
    return _scaled_wide(call, kind, total, bias)


def _check_wide(call: Call, kind: Kind, bias: Any, *scales: Quantization) -> None:
    """Errors: ConversionError for products of 16 bits that no kernel of TensorFlow Lite takes."""
    if any(how.zero.any() for how in (*scales, call.outputs[0].quantization)):
        raise call.fail("zero points, for 16 bits they must be 0")
    if bias is None:
        if call.kind == "CONV_2D":
            raise call.fail("no bias, which data of 16 bits need")
    elif bias.dtype is ms.int32 and call.kind != "FULLY_CONNECTED":
        if call.kind == "DEPTHWISE_CONV_2D":
            raise call.fail("a bias of int32, beside data of 16 bits it must be int64")
        if call.name_of(kind.options, "quantized_bias_type") != "INT32":
            raise call.option("quantized_bias_type", "not INT32", "the bias is")


def _sums(
    call: Call,
    entry: Operator,
    inputs: Sequence[Any],
    kind: Kind,
    data: _Operand,
    weights: _Operand,
    bias: Any,
) -> Any:
    """The sums of products and the bias, in float32 or int32."""
    parts = _parts(call, kind, data, weights, bias)
    dtype = ms.int32 if parts is None else ms.float32
    together = parts == [slice(None)] and _fits(kind, data, weights, slice(None), bias)
    if parts is not None and _are_bytes(call, data, weights):
        call.exact = partial(_exact, data, weights)
    total = None
    for part in parts or [slice(None)]:
        given = list(inputs)
        for place, operand in ((kind.data, data), (kind.weight, weights)):
            given[place] = operand.numbers(part, dtype) if call.exact is None else operand.part(part)
        if len(given) > max(kind.data, kind.weight) + 1:
            given[-1] = None
        if bias is not None:
            of_bias = dtype if call.exact is None else ms.int32
            given[-1] = cast(bias, of_bias) if together or parts is None else None
        y = entry.function(call, *given)
        if not together:
            y = cast(y, ms.int32)
        total = y if total is None else ops.add(total, y)
    if bias is not None and not together and parts is not None:
        total = ops.add(total, cast(bias, ms.int32))
    return total


def _are_bytes(call: Call, data: _Operand, weights: _Operand) -> bool:
    """Whether kernels of 8 bits compute the product: of all channels, by constants."""
    if data.tensor.dtype not in (ms.int8, ms.uint8):
        return False
    sizes = shape_of(data.tensor)[1:3] if call.kind == "CONV_2D" else ()
    whole = call.kind == "FULLY_CONNECTED" or (call.kind == "CONV_2D" and not _is_grouped(call))
    return whole and weights.values is not None and weights.values.size > 0 and all(map(is_number, sizes))


def _exact(data: _Operand, weights: _Operand, x: Any, weight: Any, bias: Any, **places: Any) -> Any:
    """The sums of products of integers as they are stored."""
    values, zeros = known(weight), weights.how.zero
    if values.dtype == np.uint8:
        values, zeros = (values.astype(np.int16) - 128).astype(np.int8), zeros - 128
    columns = np.broadcast_to(zeros, values.shape[0]).astype(np.int32)
    zero = ms.Tensor(columns) if columns.any() else None
    return integer_products(x, ms.Tensor(values), zero, bias, x_zero=int(data.how.zero[0]), **places)


def _summed(call: Call, x: Any, weight: Any) -> tuple[int, int]:
    """The axes of data and weights that are summed over last."""
    if call.kind != "BATCH_MATMUL":
        return -1, -1
    table = KINDS[call.kind].options
    return -2 if call.get(table, "adj_x") else -1, -1 if call.get(table, "adj_y") else -2


def _parts(call: Call, kind: Kind, data: _Operand, weights: _Operand, bias: Any) -> list[slice] | None:
    """Cuts of the axes that are summed over, for which sums are exact in float32; None if there are none."""
    depth, same = shape_of(weights.tensor)[weights.axis], shape_of(data.tensor)[data.axis]
    whole = [slice(None)]
    if _fits(kind, data, weights, whole[0], None):
        return whole
    if call.kind == "DEPTHWISE_CONV_2D" or not is_number(depth) or depth != same:  # of groups, too
        return None
    count = 2
    while count <= depth:
        edges = [depth * i // count for i in range(count + 1)]
        parts = [slice(a, b) for a, b in zip(edges, edges[1:])]
        if all(_fits(kind, data, weights, part, None) for part in parts):
            return parts
        count *= 2
    return None


def _fits(kind: Kind, data: _Operand, weights: _Operand, part: slice, bias: Any) -> bool:
    """Whether all sums of a part, and the bias if there is one, are within what float32 has exactly."""
    of_matrices = kind.options == "BatchMatMulOptions"
    rank = len(shape_of(weights.tensor))
    axes = (weights.axis,) if of_matrices else tuple(i for i in range(rank) if i != kind.columns)
    if weights.values is None:
        sizes = [shape_of(weights.tensor)[i] for i in axes if part == slice(None) or i != weights.axis]
        if not all(map(is_number, sizes)):
            return False
        depth = 1 if part == slice(None) else part.stop - part.start
        largest = np.asarray(weights.farthest * depth * math.prod(sizes) * data.farthest)
    else:
        spread = [1] * rank
        if weights.how.zero.size > 1:
            spread[weights.how.axis] = -1
        sizes = np.abs(weights.values.astype(np.int64) - weights.how.zero.reshape(spread))
        largest = sizes[(slice(None),) * weights.axis + (part,)].sum(axes) * data.farthest
    if bias is not None:
        numbers = known(bias)
        if numbers is None:
            return False
        largest = largest + np.abs(numbers.astype(np.int64))
    return bool((largest < _EXACT).all())


# ---- scaling


def _factors(call: Call, kind: Kind, total: Any, largest: int) -> list[Factor]:
    """Of each column; none may be 2^largest or more."""
    (columns,) = known_shape(call, total, (-1,))[-1:]
    reals = _reals(call, kind, call.outputs[0].quantization)
    factors = [Factor.of(r) for r in np.broadcast_to(reals, columns if reals.size == 1 else reals.size)]
    if len(factors) != columns:
        raise call.fail(f"{len(factors)} scales of weights for {columns} columns", Code.GRAPH_FILE_ERROR)
    if any(f.multiplier < 0 or f.shift > largest for f in factors):
        raise call.fail(f"scales from {reals.min()} to {reals.max()} times that of its result")
    return factors


def _within(call: Call, kind: Kind, y: Scale) -> tuple[int, int]:
    low, high = (None, None) if call.kind == "BATCH_MATMUL" else limits(call, kind.options, y)
    return y.low if low is None else max(low, y.low), y.high if high is None else min(y.high, high)


def _scaled_wide(call: Call, kind: Kind, total: Any, bias: Any) -> Any:
    """int64 times factors of 16 bits, rounded once with halves up; of a bias of int32 as in 32 bits."""
    y = Scale(call.outputs[0].quantization, np.dtype(np.int16))
    low, high = _within(call, kind, y)
    factors = _factors(call, kind, total, 7)
    if (bias is None and call.kind == "FULLY_CONNECTED") or (bias is not None and bias.dtype is ms.int32):
        total = cast(cast(total, ms.int32), ms.int64)  # kernels add up in 32 bits then
        made = _twice_rounded(total, *np.array(factors, np.int64).T)
    else:
        short = [0x7FFF if f.multiplier >= 0x7FFF0000 else (f.multiplier + (1 << 15)) >> 16 for f in factors]
        right = np.array([15 - f.shift for f in factors], np.int64)
        wide = ops.mul(total, ms.Tensor(np.array(short, np.int64)))
        made = ops.bitwise_right_shift(ops.add(wide, ms.Tensor(np.int64(1) << (right - 1))), ms.Tensor(right))
    made = ops.minimum(ops.maximum(made, scalar(low, made)), scalar(high, made))
    return cast(made, ms.int16)


def _twice_rounded(x: Any, multipliers: np.ndarray, shifts: np.ndarray) -> Any:
    """x, what int32 holds, times factors: to 31 bits with halves up, then with halves away from zero."""
    right = np.maximum(-shifts, 0)
    high = ops.mul(x, ms.Tensor(multipliers << np.maximum(shifts, 0)))
    high = ops.bitwise_right_shift(ops.add(high, ms.Tensor(np.int64(1 << 30))), ms.Tensor(np.int64(31)))
    half = ms.Tensor(np.where(right > 0, np.int64(1) << np.maximum(right - 1, 0), 0))
    down = ops.mul(cast(ops.less(high, scalar(0, high)), ms.int64), ms.Tensor((right > 0).astype(np.int64)))
    return ops.bitwise_right_shift(ops.sub(ops.add(high, half), down), ms.Tensor(right))


def _scaled(call: Call, kind: Kind, total: Any) -> Any:
    (out,) = call.outputs
    y = Scale(out.quantization, out.dtype.np)
    factors = _factors(call, kind, total, 31)
    columns = len(factors)
    ups = _rounded_up(call, columns, grouped=kind.options == "Conv2DOptions" and _is_grouped(call))
    table = np.array([*zip(*factors), ups], np.int32).reshape(3, columns)
    low, high = _within(call, kind, y)
    flat = call.kind == "TRANSPOSE_CONV" and out.kind == "UINT8"
    return rescale_columns(
        total,
        ms.Tensor(table),
        together=_FLAT if flat else 0,
        zero=y.zero,
        low=low,
        high=high,
        to=y.dtype.name,
    )


def _reals(call: Call, kind: Kind, out: Quantization) -> np.ndarray:
    """What a step of each column's sums is in steps of the result, float64."""
    x, weight = call.inputs[kind.data], call.inputs[kind.weight]
    step, steps = x.quantization.scale[0], weight.quantization.scale
    by_channel = call.kind != "BATCH_MATMUL" and x.kind in ("INT8", "INT16")
    if by_channel and (call.kind != "FULLY_CONNECTED" or steps.size > 1):
        products = np.float64(step) * steps.astype(np.float64)
    else:
        products = (_F(step) * steps.astype(_F)).astype(np.float64)
    return products / np.float64(out.scale[0])


def _is_grouped(call: Call) -> bool:
    image, weight = (call.inputs[i].table.shape for i in (0, 1))
    return image[-1] != weight[-1]


def _rounded_up(call: Call, columns: int, grouped: bool) -> np.ndarray:
    """Whether halves of a column go up at the second rounding, as vectors do, or away from zero."""
    is_signed = call.outputs[0].kind == "INT8"
    if (
        call.kind == "FULLY_CONNECTED"
        or (call.kind == "CONV_2D" and not grouped)
        or (call.kind == "TRANSPOSE_CONV" and not is_signed)
    ):
        return np.ones(columns, np.int32)
    if call.kind == "BATCH_MATMUL" or grouped or not is_signed:
        return np.zeros(columns, np.int32)
    return (np.arange(columns) < columns // _VECTOR * _VECTOR).astype(np.int32)
