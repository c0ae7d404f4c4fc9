"""The arithmetic of TensorFlow Lite's kernels of 8 bits: a real factor as an integer and a shift.

A factor is ``multiplier * 2**(shift - 31)`` with a multiplier from 2^30 to 2^31. Products with it are rounded
twice: to 31 bits with halves up, then by the shift with halves away from zero, or up too where the kernel
works by vectors. What an operator of one input
gives for each of the 256 integers is a table, computed here by the rule that its kernel follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mycelia_lite.converter.importers.tflite.file import Quantization
from mycelia_lite.converter.integer_ops import multiplied

_F = np.float32


class Factor(NamedTuple):
    """A real number; see the module."""

    multiplier: int
    shift: int

    @staticmethod
    def of(real: float) -> Factor:
        """The nearest one. A real below 2^-32 becomes 0."""
        fraction, shift = math.frexp(float(real))
        multiplier = int(math.copysign(math.floor(abs(fraction) * 2**31 + 0.5), fraction))
        if abs(multiplier) == 2**31:
            multiplier, shift = multiplier // 2, shift + 1
        return Factor(multiplier, shift) if shift >= -31 else Factor(0, 0)

    def times(self, x: np.ndarray, up: bool = False) -> np.ndarray:
        """int64, of integers of at most 32 bits; `up`: as vectors of ARM's kind round."""
        left, right = max(self.shift, 0), max(-self.shift, 0)
        return multiplied(x, abs(self.multiplier), left, right, up) * (-1 if self.multiplier < 0 else 1)


def nearest(x: np.ndarray) -> np.ndarray:
    """The nearest whole numbers, halves away from zero."""
    return np.trunc(x) + np.trunc(2 * (x - np.trunc(x)))


class Scale:
    """The one scale of a tensor of 8 bits: x = (integer - zero) * step."""

    def __init__(self, how: Quantization, dtype: np.dtype) -> None:
        self.step, self.zero = _F(how.scale[0]), int(how.zero[0])
        limits = np.iinfo(dtype)
        self.low, self.high, self.dtype = int(limits.min), int(limits.max), np.dtype(dtype)

    @property
    def all(self) -> np.ndarray:
        """The 256 integers in order, without zero point."""
        return np.arange(self.low, self.high + 1, dtype=np.int64) - self.zero

    def at(self, real: float) -> int:
        """The integer for a real number, which may be out of range."""
        with np.errstate(over="ignore"):
            steps = np.clip(nearest(_F(real) / self.step), -(2.0**31), 2.0**31 - 1)
        return self.zero + int(steps)

    def within(self, x: np.ndarray, low: int | None = None, high: int | None = None) -> np.ndarray:
        """Integers without zero point as those of the tensor, from `low` to `high`."""
        least, most = (
            self.low if low is None else max(self.low, low),
            self.high if high is None else min(self.high, high),
        )
        return np.clip(x + self.zero, least, most).astype(self.dtype)


def table_of(function: Callable[[np.ndarray], np.ndarray], x: Scale, y: Scale) -> np.ndarray:
    """What `function`, of float32 in float32, gives for each integer."""
    with np.errstate(all="ignore"):
        made = function((x.step * x.all.astype(_F)).astype(_F)).astype(_F)
        made = nearest((made * (_F(1) / y.step)).astype(_F))
    return y.within(np.clip(made, -(2.0**31), 2.0**31 - 256).astype(np.int64))


def requantized(
    x: Scale, y: Scale, low: float = -math.inf, high: float = math.inf, up: bool = False
) -> np.ndarray:
    """The same numbers as integers of another scale, between two real ones."""
    factor = Factor.of(float(x.step) / float(y.step))
    least, most = (None if math.isinf(b) else y.at(b) for b in (low, high))
    return y.within(factor.times(x.all, up), least, most)


def absolute(x: Scale, y: Scale) -> np.ndarray:
    values = np.abs(x.all)
    return y.within(values if x.step == y.step else Factor.of(_F(x.step / y.step)).times(values))


def leaky(x: Scale, y: Scale, alpha: float) -> np.ndarray:
    """Negative numbers times alpha."""
    positive, negative = Factor.of(_F(x.step / y.step)), Factor.of(_F(_F(x.step * _F(alpha)) / y.step))
    return y.within(np.where(x.all >= 0, positive.times(x.all), negative.times(x.all)))


def square_root(x: Scale, y: Scale) -> np.ndarray:
    """Rounded to zero; of negative numbers 0."""
    real = np.sqrt(np.maximum(x.step * x.all.astype(_F), 0).astype(_F))
    return y.within((real / y.step).astype(np.int64))


def hard_swish(x: Scale, y: Scale) -> np.ndarray:
    """x * min(max(x + 3, 0), 6) / 6 in 16 bits: x 128 times as fine, its gate in 2^-15."""
    fine = _F(_F(1 / 128) * x.step)
    outer, gate = Factor.of(_F(fine / y.step)), Factor.of(_F(fine / _F(3 / 32768)))
    values = x.all * 128
    scaled = _high(values, _short(outer.multiplier))
    opened = values
    if gate.shift > 0:
        opened = _saturated(opened << (gate.shift - 1))
    opened = _high(opened, _short(gate.multiplier))
    if gate.shift > 0:
        opened = _saturated(opened << 1)
    elif gate.shift < 0:
        opened = _shifted(opened, -gate.shift)
    opened = (opened + 2**15) >> 1
    product = np.trunc(opened * scaled / 2.0**15).astype(np.int64)
    return y.within(_shifted(product, -outer.shift))


def _short(multiplier: int) -> int:
    """A multiplier in 16 bits."""
    return 2**15 - 1 if multiplier >= 2**31 - 2**15 else (multiplier + 2**15) >> 16


def _saturated(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -(2**15), 2**15 - 1)


def _high(x: np.ndarray, y: int) -> np.ndarray:
    """x * y / 2^15 of 16 bits, rounded with halves up."""
    return _saturated((x * y + 2**14) >> 15)


def _shifted(x: np.ndarray, right: int) -> np.ndarray:
    """x / 2^right, halves away from zero."""
    return multiplied(x, 2**30, 1, right)
