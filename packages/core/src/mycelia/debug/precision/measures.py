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

_TINY = np.finfo(np.float64).eps  # 2.2e-16: references smaller than this count as 0
_FLOOR = 1.1920929e-07  # of shares in the divergence, float32's epsilon

#: Columns of a comparison of tensors, and what computes each.
COLUMNS: dict[str, Callable[[np.ndarray, np.ndarray], float | str]] = {}
STRICT_COLUMNS = (
    "EuclideanDistance", "StrictRelativeEuclideanDistance", "OneThousandthErrorRatio",
    "FiveThousandthsErrorRatio", "MedianULP", "P99ULP", "MaxULP", "NonFinitePattern",
)  # fmt: skip


class Measured(NamedTuple):
    """`values`: by column, in order; `messages`: what a reader must know about them."""

    values: dict[str, float | str]
    messages: list[str]


def _column(name: str):
    def add(function):
        COLUMNS[name] = function
        return function

    return add


@_column("CosineSimilarity")
def cosine(x: np.ndarray, y: np.ndarray) -> float:
    """sum(x y) / (norm x norm y), at most 1; 1 if both are zeros or scalars, NaN if one is all zero."""
    if x.size == 1:
        return 1.0
    largest = [float(np.max(np.abs(v), initial=0.0)) for v in (x, y)]
    if not any(largest):
        return 1.0
    if not all(largest):
        return math.nan
    a, b = (v / scale for v, scale in zip((x, y), largest))  # squares of large numbers do not overflow
    return min(1.0, float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))))


@_column("MaxAbsoluteError")
def max_absolute(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.max(np.abs(x - y), initial=0.0))


def _relative(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """abs(x / y - 1), 0 where y is 0."""
    counts = np.abs(y) > _TINY
    found = np.zeros(x.shape)
    np.divide(x, y, out=found, where=counts)
    return np.where(counts, np.abs(found - 1.0), 0.0)


@_column("AccumulatedRelativeError")
def accumulated_relative(x: np.ndarray, y: np.ndarray) -> float:
    return float(_relative(x, y).sum())


@_column("RelativeEuclideanDistance")
def relative_euclidean(x: np.ndarray, y: np.ndarray) -> float:
    """norm(x - y) / norm(y); 0 where y is all zero."""
    norm = float(np.linalg.norm(y))
    return float(np.linalg.norm(x - y)) / norm if norm else 0.0


def _shares(x: np.ndarray) -> np.ndarray:
    """Shifted and scaled to [0, 1], with a floor, sums to 1; a constant tensor is flat."""
    low, high = float(x.min()), float(x.max())
    scaled = (x - low) / (high - low) if high > low else x
    raised = np.maximum(scaled, _FLOOR)
    return raised / raised.sum()


@_column("KullbackLeiblerDivergence")
def divergence(x: np.ndarray, y: np.ndarray) -> float:
    if not x.size:
        return 0.0
    p, q = _shares(x), _shares(y)
    found = float(np.sum(p * np.log(p / q)))
    return 0.0 if abs(found) < _TINY else found


@_column("StandardDeviation")
def deviations(x: np.ndarray, y: np.ndarray) -> str:
    """``(mean;std),(mean;std)`` with 3 digits, population deviations."""
    return ",".join(f"({_short(v.mean())};{_short(v.std())})" for v in (x, y)) if x.size else "(0;0),(0;0)"


def _short(value: float) -> str:
    return f"{value:.3f}" if abs(value) >= 0.001 else "0.000"


@_column("MeanAbsoluteError")
def mean_absolute(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.abs(x - y).mean()) if x.size else 0.0


@_column("RootMeanSquareError")
def root_mean_square(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.square(x - y).mean())) if x.size else 0.0


@_column("MaxRelativeError")
def max_relative(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.max(_relative(x, y), initial=0.0))


@_column("MeanRelativeError")
def mean_relative(x: np.ndarray, y: np.ndarray) -> float:
    return float(_relative(x, y).mean()) if x.size else 0.0


def measure(left: np.ndarray, right: np.ndarray, strict: bool = False) -> Measured:
    """All columns for two arrays of one number of elements.

    NaN on a side makes every number NaN, an infinity makes it inf. Errors: ValueError for other sizes.
    """
    if left.size != right.size:
        raise ValueError(f"{left.shape} and {right.shape} do not have the same number of elements")
    x, y = (wide(v) for v in (left, right))
    messages = _messages(x, y)
    whole = _nonfinite_value(x, y)
    with np.errstate(all="ignore"):
        values = {name: f(x, y) if whole is None else whole for name, f in COLUMNS.items()}
        if strict:
            values |= _strict(left, right, x, y)
    return Measured(values, messages)


def wide(array: np.ndarray) -> np.ndarray:
    """Flat and in float64; complex numbers as two."""
    flat = array.reshape(-1)
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    return flat.astype(np.float64)


def _messages(x: np.ndarray, y: np.ndarray) -> list[str]:
    if x.size == 1:
        return ["scalar"]
    zeros = [not v.any() for v in (x, y)]
    if x.size and all(zeros):
        return ["both all zero"]
    return [f"{side} all zero" for side, is_zero in zip(("left", "right"), zeros) if x.size and is_zero]


def _nonfinite_value(x: np.ndarray, y: np.ndarray) -> float | None:
    if np.isnan(x).any() or np.isnan(y).any():
        return math.nan
    return math.inf if np.isinf(x).any() or np.isinf(y).any() else None


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
