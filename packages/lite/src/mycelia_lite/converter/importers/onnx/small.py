"""Numbers of ONNX of 8 bits and fewer that core has no dtype for: what they stand for, exactly.

A float of 8 bits is a float32, an integer of 4 or 2 bits one of 8. What computes with them rounds and
saturates as their own types do, so only operators that move or widen numbers may read them (`Narrow`);
casts to float8 and bfloat16 and quantization make them (`nearest`, `LIMITS`).
Encodings: the chapters "Float stored in 8 bits", "4 bit integer types" and "2 bit integer types" of ONNX's
documentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.bits import reinterpreted
from mycelia_lite.converter.importers.onnx.calls import Call, cast, scalar


@dataclass(frozen=True)
class Float8:
    """A sign, an exponent with this bias, a mantissa of so many bits.

    `infinite`: the largest exponent has infinity and NaN, as in IEEE 754; `one_zero`: the pattern of -0 is
    the only NaN. Without either the pattern of all ones is NaN.
    """

    mantissa: int
    bias: int
    infinite: bool = False
    one_zero: bool = False

    def numbers(self) -> np.ndarray:
        """The float32 that each of the 256 patterns stands for."""
        pattern = np.arange(256)
        exponent, part = (pattern & 127) >> self.mantissa, pattern & ((1 << self.mantissa) - 1)
        whole = np.where(exponent > 0, 1 << self.mantissa, 0) + part
        power = np.maximum(exponent, 1) - self.bias - self.mantissa
        found = np.where(pattern & 128, -1.0, 1.0) * np.ldexp(whole.astype(np.float64), power)
        if self.one_zero:
            found[128] = np.nan
        elif self.infinite:
            top = exponent == exponent.max()
            found[top] = np.where(part[top] > 0, np.nan, np.copysign(np.inf, found[top]))
        else:
            found[[127, 255]] = np.nan
        return found.astype(np.float32)


FLOATS = {
    17: Float8(3, 7), 18: Float8(3, 8, one_zero=True), 19: Float8(2, 15, infinite=True),
    20: Float8(2, 16, one_zero=True),
}  # fmt: skip
BFLOAT16 = 16
INTEGERS = {21: (4, np.uint8), 22: (4, np.int8), 25: (2, np.uint8), 26: (2, np.int8)}  # bits, held in
KINDS = frozenset((*FLOATS, *INTEGERS))
LIMITS = {21: (0, 15), 22: (-8, 7), 25: (0, 3), 26: (-2, 1)}  # the least and the largest integer


def bytes_of(kind: int, count: int) -> int:
    """Bytes of so many numbers: those below 8 bits lie side by side, the first in the lowest bits."""
    bits = INTEGERS[kind][0] if kind in INTEGERS else 8
    return -(-count * bits // 8)


def numbers(kind: int, data: np.ndarray, count: int) -> np.ndarray:
    """The first `count` numbers of these bytes."""
    if kind in FLOATS:
        return FLOATS[kind].numbers()[data]
    bits, held = INTEGERS[kind]
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    found = (data[:, None] >> shifts).reshape(-1)[:count] & np.uint8((1 << bits) - 1)
    if held is np.uint8:
        return found
    top = np.uint8(1 << (bits - 1))
    return ((found ^ top) - top).view(np.int8)


def nearest(call: Call, x: Any, kind: int, saturate: bool) -> Any:
    """x as the nearest number of a float of 8 bits or bfloat16, halves to even, in float32.

    Beyond the largest one stands that with `saturate`, else infinity, or NaN where there is none.
    """
    x = cast(x, ms.float32)
    if kind == BFLOAT16:
        return ops.where(ops.isnan(x), x, _with_mantissa(call, x, 7))
    form = FLOATS[kind]
    size = ops.abs(x)
    made = _with_mantissa(call, size, form.mantissa)
    least = 2.0 ** (1 - form.bias)  # below it steps are those of the least exponent
    step = least * 2.0**-form.mantissa
    fine = ops.mul(ops.round(ops.mul(size, scalar(1 / step, x))), scalar(step, x))
    made = ops.where(ops.less(size, scalar(least, x)), fine, made)
    numbers = form.numbers()
    largest = scalar(float(numbers[np.isfinite(numbers)].max()), x)
    beyond = ops.greater(made, largest)
    instead = largest if saturate else scalar(np.inf if form.infinite else np.nan, x)
    made = ops.where(beyond, instead, made)
    made = ops.where(ops.less(_sign(call, x), scalar(0, x)), ops.neg(made), made)
    if form.one_zero:
        made = ops.where(ops.equal(made, scalar(0, x)), scalar(0, x), made)
    return ops.where(ops.isnan(x), x, made)


def _sign(call: Call, x: Any) -> Any:
    """1 or -1, of zeros, too."""
    bits = reinterpreted(call, x, ms.int32)
    return ops.where(ops.less(bits, scalar(0, bits)), scalar(-1, x), scalar(1, x))


def _with_mantissa(call: Call, x: Any, count: int) -> Any:
    """x, float32, with so many bits of its mantissa, the exponent of which has no limit."""
    bits, left = reinterpreted(call, x, ms.int32), 23 - count
    even = ops.bitwise_and(ops.bitwise_right_shift(bits, scalar(left, bits)), scalar(1, bits))
    up = ops.add(ops.add(bits, scalar((1 << (left - 1)) - 1, bits)), even)
    return reinterpreted(call, ops.bitwise_and(up, scalar(-(1 << left), bits)), ms.float32)


_WIDEN = ("DequantizeLinear", "com.microsoft.DequantizeLinear", "Cast")
_MOVE = (
    "Constant", "ConstantOfShape", "Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten",
    "Gather", "Slice", "Split", "Expand", "Tile",
)  # fmt: skip


class Narrow:
    """Which values of a model have such a type in the file."""

    def __init__(self) -> None:
        # With its type, by identity; held, so that no other value gets the number.
        self._held: dict[int, tuple[Any, int]] = {}

    def add(self, value: Any, kind: int) -> None:
        self._held[id(value)] = value, kind

    def kind(self, value: Any) -> int | None:
        """The number of the type; None of values of other ones."""
        return self._held[id(value)][1] if value in self else None

    def __contains__(self, value: Any) -> bool:
        return id(value) in self._held

    def follow(self, call: Call, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        """Notes the results of a node that moves such numbers. Errors: ConversionError if it computes."""
        if call.narrowed is not None:
            self.add(results[0], call.narrowed)
        if not self._held or call.kind in _WIDEN or call.narrowed is not None:
            return
        for value in (*inputs, *call.attributes.values()):
            if value in self:
                if call.kind not in _MOVE:
                    raise call.fail(
                        "numbers of float8, bfloat16 or below 8 bits can be moved, dequantized and cast only"
                    )
                for made in results:
                    self.add(made, self.kind(value))
