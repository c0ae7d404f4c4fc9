"""How much parameters of runs tell of a target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

BUCKETS = 5
NOT_NUMBERS, TOO_FEW, NOT_A_NUMBER = 1, 2, 3  # MindInsight's reasons for no importance
_FEWEST = 3
_SHUFFLES = 20


def numbers(values: Sequence[Any]) -> np.ndarray | None:
    """Values as float64, NaN where one is missing; None if one is no number."""
    if any(isinstance(value, (str, bool)) for value in values if value is not None):
        return None
    return np.array([math.nan if value is None else _real(value) for value in values])


def _real(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond float64
        return math.inf if value > 0 else -math.inf


def buckets(values: np.ndarray) -> list[list[float]]:
    """[left, width, count] of 5 parts of equal width of the finite values' range; of one number around it."""
    finite = values[np.isfinite(values)]
    shrunk = 1 / 64 if np.abs(finite).max(initial=0) > 1e307 else 1.0  # so that the range is a number
    finite = finite * shrunk
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    most = max(abs(low), abs(high))
    if high - low <= max(1e-12 * most, 1e-300):  # floats have no 5 parts between them
        around = max(0.5 * shrunk, 1e-9 * most)
        end = np.finfo(np.float64).max * shrunk
        low, high = max(low - around, -end), min(high + around, end)
    counts, edges = np.histogram(finite, BUCKETS, (low, high))
    return [
        [float(left / shrunk), float((right - left) / shrunk), int(count)]
        for left, right, count in zip(edges, edges[1:], counts, strict=False)
    ]


def pearson(parameter: np.ndarray, target: np.ndarray) -> tuple[float, int]:
    """(absolute correlation, 0), or (0, the reason why there is none)."""
    both = ~(np.isnan(parameter) | np.isnan(target))
    x, y = parameter[both], target[both]
    if len(x) < _FEWEST:
        return 0.0, TOO_FEW
    with np.errstate(all="ignore"):
        x, y = x - x.mean(), y - y.mean()
        # Scaled first, so that squares neither vanish nor overflow.
        x, y = x / np.abs(x).max(), y / np.abs(y).max()
        found = (
            abs(float(x @ y) / math.sqrt(float(x @ x) * float(y @ y))) if x.any() and y.any() else math.nan
        )
    return (min(found, 1.0), 0) if math.isfinite(found) else (0.0, NOT_A_NUMBER)


def information(parameter: Sequence[Any], target: np.ndarray) -> tuple[float, int]:
    """(adjusted mutual information of 0 to 1, 0), or (0, the reason); the parameter may be texts.

    Numbers are put into parts with equally many runs each. What chance alone gives, the mean over 20 orders
    of the runs, is subtracted: many values over few runs tell nothing. 1: one is a function of the other.
    """
    have = [i for i, value in enumerate(parameter) if value is not None and math.isfinite(target[i])]
    given = numbers([parameter[i] for i in have])
    if given is not None:
        have = [i for i, finite in zip(have, np.isfinite(given), strict=True) if finite]
    if len(have) < _FEWEST:
        return 0.0, TOO_FEW
    x = _parts(given[np.isfinite(given)]) if given is not None else _classes([parameter[i] for i in have])
    y = _parts(target[have])
    most = min(_entropy(np.bincount(x)), _entropy(np.bincount(y)))
    if most == 0:
        return 0.0, NOT_A_NUMBER
    rng = np.random.default_rng(0)
    chance = float(np.mean([_shared(x, rng.permutation(y)) for _ in range(_SHUFFLES)]))
    if most - chance < 1e-12:
        return 0.0, TOO_FEW
    return min(1.0, max(0.0, (_shared(x, y) - chance) / (most - chance))), 0


def _classes(values: Sequence[Any]) -> np.ndarray:
    return np.unique([str(value) for value in values], return_inverse=True)[1]


def _parts(values: np.ndarray) -> np.ndarray:
    """Numbers of parts: the values themselves if they are few, else quantiles."""
    count = min(10, max(2, round(math.sqrt(len(values)))))
    distinct, found = np.unique(values, return_inverse=True)
    if len(distinct) <= count:
        return found
    edges = np.unique(np.quantile(values, np.arange(1, count) / count))
    return np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)[1]


def _entropy(counts: np.ndarray) -> float:
    share = counts[counts > 0] / counts.sum()
    return max(0.0, float(-(share * np.log(share)).sum()))


def _shared(x: np.ndarray, y: np.ndarray) -> float:
    width = int(y.max()) + 1
    return _entropy(np.bincount(x)) + _entropy(np.bincount(y)) - _entropy(np.bincount(x * width + y))
