"""How far one tensor is from another: MindSpore's columns, and the strict ones.

`left` is the run under test, `right` the trusted one; both flat, in float64. Formulas and their special cases
are those of MindStudio's comparison; what they hide (`RelativeEuclideanDistance` is 0 against a reference of
zeros) the strict columns show.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mycelia.debug.precision.sums import Sums, alike_kinds, flat, sums
from mycelia.debug.reading.arrays import native

#: Columns of a comparison of tensors, and what computes each.
COLUMNS: dict[str, Callable[[Sums], float | str]] = {
    "CosineSimilarity": lambda s: _cosine(s),
    "MaxAbsoluteError": lambda s: s.max_error,
    "AccumulatedRelativeError": lambda s: s.sum_relative,
    "RelativeEuclideanDistance": lambda s: s.distance / s.norm if s.norm else 0.0,
    "KullbackLeiblerDivergence": lambda s: s.divergence,
    "StandardDeviation": lambda s: ",".join(
        f"({_short(mean)};{_short(std)})" if s.count else "(0;0)" for mean, std in zip(s.means, s.deviations)
    ),
    "MeanAbsoluteError": lambda s: s.sum_error / s.count if s.count else 0.0,
    "RootMeanSquareError": lambda s: math.sqrt(s.squared_error / s.count) if s.count else 0.0,
    "MaxRelativeError": lambda s: s.max_relative,
    "MeanRelativeError": lambda s: s.sum_relative / s.count if s.count else 0.0,
}
STRICT_COLUMNS = (
    "EuclideanDistance", "StrictRelativeEuclideanDistance", "OneThousandthErrorRatio",
    "FiveThousandthsErrorRatio", "MedianULP", "P99ULP", "MaxULP", "NonFinitePattern",
)  # fmt: skip


class Measured(NamedTuple):
    """`values`: by column, in order; `messages`: what a reader must know about them; `sums`: what they are
    made of.
    """

    values: dict[str, float | str]
    messages: list[str]
    sums: Sums


def _cosine(s: Sums) -> float:
    """sum(x y) / (norm x norm y), at most 1; 1 if both are zeros or scalars, NaN if one is all zero."""
    if s.count == 1 or not any(s.largest):
        return 1.0
    if not all(s.largest):
        return math.nan
    return min(1.0, s.dot / (math.sqrt(s.xx) * math.sqrt(s.yy)))


def cosine(x: np.ndarray, y: np.ndarray) -> float:
    """The cosine similarity of two arrays of finite numbers."""
    return _cosine(sums(x, y))


def relative_euclidean(x: np.ndarray, y: np.ndarray) -> float:
    """norm(x - y) / norm(y); 0 where y is all zero."""
    return float(COLUMNS["RelativeEuclideanDistance"](sums(x, y)))


def _short(value: float) -> str:
    return f"{value:.3f}" if abs(value) >= 0.001 else "0.000"


def measure(left: np.ndarray, right: np.ndarray, strict: bool = False) -> Measured:
    """All columns for two arrays of one number of elements.

    NaN on a side makes every number NaN, an infinity makes it inf. Errors: ValueError for other sizes.
    """
    if left.size != right.size:
        raise ValueError(f"{left.shape} and {right.shape} do not have the same number of elements")
    left, right = alike_kinds(native(left), native(right))
    total = sums(left, right)
    whole = total.nonfinite
    with np.errstate(all="ignore"):
        values = {name: f(total) if whole is None else whole for name, f in COLUMNS.items()}
        if strict:
            values |= _strict(left, right, wide(left), wide(right))
    return Measured(values, _messages(total), total)


def wide(array: np.ndarray) -> np.ndarray:
    """Flat and in float64; complex numbers as two."""
    return flat(array).astype(np.float64)


def _messages(s: Sums) -> list[str]:
    if s.count == 1:
        return ["scalar"]
    if not s.count or s.nonfinite is not None:
        return []
    if not any(s.largest):
        return ["both all zero"]
    return [f"{side} all zero" for side, largest in zip(("left", "right"), s.largest) if not largest]


def _strict(left: np.ndarray, right: np.ndarray, x: np.ndarray, y: np.ndarray) -> dict[str, float | str]:
    """Columns that hide nothing: differences from zero count, and where numbers are not finite."""
    finite = np.isfinite(x) & np.isfinite(y)
    a, b = x[finite], y[finite]
    norm, distance = float(np.linalg.norm(b)), float(np.linalg.norm(a - b))
    error = np.where(
        np.abs(b) > 0, np.abs(a - b) / np.where(b == 0, 1, np.abs(b)), np.where(a == b, 0, np.inf)
    )
    apart = ulps(left.reshape(-1), right.reshape(-1))
    return {
        "EuclideanDistance": distance,
        "StrictRelativeEuclideanDistance": distance / norm if norm else (0.0 if not distance else math.inf),
        "OneThousandthErrorRatio": float((error < 0.001).mean()) if a.size else 1.0,
        "FiveThousandthsErrorRatio": float((error < 0.005).mean()) if a.size else 1.0,
        "MedianULP": float(np.median(apart)) if apart.size else 0.0,
        "P99ULP": float(np.percentile(apart, 99)) if apart.size else 0.0,
        "MaxULP": float(apart.max(initial=0)),
        "NonFinitePattern": "same" if same_pattern(x, y) else "different",
    }


def same_pattern(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether NaN and infinities are at the same places."""
    return bool((np.isnan(x) == np.isnan(y)).all() and (_infinities(x) == _infinities(y)).all())


def _infinities(x: np.ndarray) -> np.ndarray:
    return np.where(np.isinf(x), np.sign(x), 0)


def ulps(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """How many numbers of the narrower type of the two lie between each pair; of integers the difference.

    Pairs that are not both finite are left out.
    """
    kinds = {left.dtype.kind, right.dtype.kind}
    if "c" in kinds:
        left, right = (v.view(v.real.dtype) if v.dtype.kind == "c" else v for v in (left, right))
    if left.dtype.kind != "f" or right.dtype.kind != "f":
        return np.abs(left.astype(np.float64) - right.astype(np.float64))
    narrow = min(left.dtype, right.dtype, key=lambda t: t.itemsize)
    with np.errstate(over="ignore"):
        a, b = left.astype(narrow), right.astype(narrow)
    finite = np.isfinite(a) & np.isfinite(b)
    m, n = (_ordered(v[finite]) for v in (a, b))
    apart = np.abs(m.astype(np.float64) - n.astype(np.float64))
    return np.where((m < 0) == (n < 0), np.abs(m - n), apart)  # of one sign exact in 64 bits, too


def _ordered(x: np.ndarray) -> np.ndarray:
    """Numbers counted from 0 on, negative ones backwards, as int64: neighbours differ by 1."""
    bits = x.view(f"i{x.dtype.itemsize}").astype(np.int64)
    low = np.int64(-(1 << (8 * x.dtype.itemsize - 1)))
    return np.where(bits < 0, low - bits, bits)
