"""What the columns of a comparison are made of, in passes over blocks: memory does not grow with the tensors.

Four reads of both arrays, which may be memory-mapped: extremes and what is not finite; sums of products,
differences and relative differences; deviations from the means; the divergence. A block stays in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

# Elements of a block: ten float64 arrays of it fit into a core's second cache, and OpenBLAS computes products
# of vectors beyond 10,000 in several threads, which costs more than it brings.
_BLOCK = 1 << 13
_TINY = np.finfo(np.float64).eps  # 2.2e-16: references smaller than this count as 0
_FLOOR = 1.1920929e-07  # of shares in the divergence, float32's epsilon


@dataclass(slots=True)
class Sums:
    """Of `left` (x) and `right` (y), flat and in float64.

    `nonfinite`: NaN or inf if a side has one, and then the rest is 0. `dot`, `xx`, `yy`: of x / largest[0]
    and y / largest[1], whose squares do not overflow. `relative`: of abs(x / y - 1) where y is not 0.
    """

    count: int
    nonfinite: float | None = None
    largest: tuple[float, float] = (0.0, 0.0)
    dot: float = 0.0
    xx: float = 0.0
    yy: float = 0.0
    max_error: float = 0.0
    sum_error: float = 0.0
    squared_error: float = 0.0
    sum_relative: float = 0.0
    max_relative: float = 0.0
    means: tuple[float, float] = (0.0, 0.0)
    deviations: tuple[float, float] = (0.0, 0.0)
    divergence: float = 0.0

    @property
    def distance(self) -> float:
        """norm(x - y)"""
        return math.sqrt(self.squared_error)

    @property
    def norm(self) -> float:
        """norm(y)"""
        return math.sqrt(self.yy) * self.largest[1]


def flat(array: np.ndarray) -> np.ndarray:
    """One axis, complex numbers as two; no copy of what is contiguous."""
    found = array.reshape(-1)
    return found.view(found.real.dtype) if found.dtype.kind == "c" else found


def alike_kinds(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both complex if one is."""
    kinds = left.dtype.kind, right.dtype.kind
    if "c" not in kinds or kinds[0] == kinds[1]:
        return left, right
    dtype = np.result_type(left, right)
    return left.astype(dtype, copy=False), right.astype(dtype, copy=False)


def sums(left: np.ndarray, right: np.ndarray) -> Sums:
    """Of two arrays of one number of elements."""
    a, b = map(flat, alike_kinds(left, right))
    ranges = [extremes(v) for v in (a, b)]
    found = Sums(a.size, _nonfinite(ranges))
    if found.nonfinite is not None or not a.size:
        return found
    found.largest = tuple(max(abs(low), abs(high)) for low, high in ranges)  # type: ignore[assignment]
    with np.errstate(all="ignore"):
        _products(found, a, b)
        _spread(found, a, b, ranges)
    return found


def _blocks(*arrays: np.ndarray) -> Iterator[list[np.ndarray]]:
    for start in range(0, arrays[0].size, _BLOCK):
        yield [v[start : start + _BLOCK].astype(np.float64) for v in arrays]


def extremes(x: np.ndarray) -> tuple[float, float]:
    """Least and greatest of a flat array; NaN for both if there is one."""
    low = high = 0.0
    for start in range(0, x.size, 16 * _BLOCK):
        part = x[start : start + 16 * _BLOCK]
        least, most = float(part.min()), float(part.max())
        if math.isnan(least) or math.isnan(most):
            return math.nan, math.nan
        low, high = (least, most) if not start else (min(low, least), max(high, most))
    return low, high


def _nonfinite(ranges: list[tuple[float, float]]) -> float | None:
    ends = [end for pair in ranges for end in pair]
    if any(map(math.isnan, ends)):
        return math.nan
    return math.inf if any(map(math.isinf, ends)) else None


def _products(found: Sums, left: np.ndarray, right: np.ndarray) -> None:
    scales = [v or 1.0 for v in found.largest]
    large = max(scales) > 1e100 or min(scales) < 1e-100  # else squares neither overflow nor vanish
    factors = [1.0 / v if large else 1.0 for v in scales]
    total = [0.0, 0.0]
    for x, y in _blocks(left, right):
        total[0] += float(x.sum())
        total[1] += float(y.sum())
        error = x - y
        found.squared_error += float(np.dot(error, error))
        np.abs(error, out=error)
        found.max_error = max(found.max_error, float(error.max()))
        found.sum_error += float(error.sum())
        size = np.abs(y)
        if size.min() > _TINY:
            np.divide(error, size, out=error)
        else:
            counts = size > _TINY
            error = np.divide(error, size, out=np.zeros_like(error), where=counts)
        found.sum_relative += float(error.sum())
        found.max_relative = max(found.max_relative, float(error.max()))
        if large:
            x *= factors[0]
            y *= factors[1]
        found.dot += float(np.dot(x, y))
        found.xx += float(np.dot(x, x))
        found.yy += float(np.dot(y, y))
    if not large:  # as the names say: of x / largest
        found.xx, found.yy = found.xx / scales[0] ** 2, found.yy / scales[1] ** 2
        found.dot /= scales[0] * scales[1]
    found.means = total[0] / left.size, total[1] / left.size


def _spread(found: Sums, left: np.ndarray, right: np.ndarray, ranges: list[tuple[float, float]]) -> None:
    """Deviations, and the divergence of both shifted and scaled to [0, 1], with a floor, as shares.

    With u and v before they are divided by their sums U and V it is sum(u (ln u - ln v)) / U + ln(V / U).
    """
    squares, totals, logarithms = [0.0, 0.0], [0.0, 0.0], 0.0
    for pair in _blocks(left, right):
        raised = []
        for side, x in enumerate(pair):
            centered = x - found.means[side]
            squares[side] += float(np.dot(centered, centered))
            low, high = ranges[side]
            scaled = (x - low) / (high - low) if high > low else x
            raised.append(np.maximum(scaled, _FLOOR))
            totals[side] += float(raised[side].sum())
        logarithms += float(np.dot(raised[0], np.log(raised[0] / raised[1])))
    found.deviations = tuple(math.sqrt(s / left.size) for s in squares)  # type: ignore[assignment]
    divergence = logarithms / totals[0] + math.log(totals[1] / totals[0])
    found.divergence = 0.0 if abs(divergence) < _TINY else divergence
