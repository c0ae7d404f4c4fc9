"""Distributions of values: of messages and tensors, buckets that steps share, quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mycelia_insight.records import tensors
from mycelia_insight.records.wire import BYTES, VARINT, WIDE, Broken, fields, numbers
from mycelia_insight.runs.kinds import Dialect

MOST_BYTES = 1 << 20  # of a message: 90 buckets have 2 kB
QUANTILES = (0, 0.0668, 0.1587, 0.3085, 0.5, 0.6915, 0.8413, 0.9332, 1)  # of a normal one: steps of sigma / 2
_MOST_BUCKETS = 30


@dataclass(frozen=True)
class Distribution:
    """Buckets by their left and right ends and counts, float64 [n], and counts of what is not finite."""

    left: np.ndarray
    right: np.ndarray
    counts: np.ndarray
    nan: int = 0
    positive: int = 0
    negative: int = 0


def decode(message: bytes, dialect: Dialect) -> Distribution:
    """Errors: Broken."""
    if dialect != Dialect.TENSORBOARD:
        return _mindspore(message)
    first = next(fields(message), None)
    # TensorBoard's older histograms begin with a double, its newer ones are tensors [n, 3].
    return _tensorboard(message) if first is None or first[1] == WIDE else _of_tensor(message)


def of_values(values: np.ndarray, few: bool = False) -> Distribution:
    """Of a tensor's values, by the rule that SummaryRecord has for their number of buckets.

    few: by the one that MindInsight has for what it shows, at most 30.
    """
    with np.errstate(invalid="ignore"):  # NaN that signal
        wide = values.reshape(-1).astype(np.float64)
    finite = wide[np.isfinite(wide)]
    rest = int(np.isnan(wide).sum()), int(np.isposinf(wide).sum()), int(np.isneginf(wide).sum())
    if not finite.size:
        return Distribution(np.empty(0), np.empty(0), np.empty(0), *rest)
    low, high = float(finite.min()), float(finite.max())
    edges = _edges(low, high, _shown_count(finite.size) if few else _bucket_count(finite.size, 90))
    counts, _ = np.histogram(finite, edges)
    return Distribution(edges[:-1], edges[1:], counts.astype(np.float64), *rest)


def shared(found: Sequence[Distribution], bins: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Edges [bins + 1] over all distributions, and counts [n, bins] of each between them.

    bins: 0 for MindInsight's rule, at most 30. A bucket that lies across an edge is shared evenly.
    """
    held = [one for one in found if one.counts.sum() > 0]
    if not held:
        return np.array([-0.5, 0.5]), np.zeros((len(found), 1))
    low = min(float(one.left[one.counts > 0].min()) for one in held)
    high = max(float(one.right[one.counts > 0].max()) for one in held)
    most = max(int(min(one.counts.sum(), 1e9)) for one in held)
    edges = _edges(low, high, bins or _shown_count(most))
    return edges, np.stack([_between(one, edges) for one in found])


def quantiles(one: Distribution) -> np.ndarray | None:
    """Values at QUANTILES, each bucket taken as even; None without finite values."""
    total = one.counts.sum()
    if not total > 0:
        return None
    kept = one.counts > 0
    below = np.concatenate([[0], np.cumsum(one.counts[kept])]) / total
    ends = np.concatenate([one.left[kept][:1], one.right[kept]])
    return np.interp(QUANTILES, below, ends)


def _between(one: Distribution, edges: np.ndarray) -> np.ndarray:
    total = one.counts.sum()
    if not total > 0:
        return np.zeros(len(edges) - 1)
    # Cumulative counts at all ends of buckets; where there are gaps between buckets nothing is added.
    ends = np.stack([one.left, one.right], 1).reshape(-1)
    after = np.cumsum(one.counts)
    below = np.stack([after - one.counts, after], 1).reshape(-1)
    at = np.interp(edges, np.maximum.accumulate(ends), below)
    at[0], at[-1] = 0, total
    return np.diff(at)


def _edges(low: float, high: float, bins: int) -> np.ndarray:
    if low == high:
        around = max(0.5, 1e-9 * abs(low))  # which large numbers are not too coarse for
        low, high = low - around, high + around
    if not np.isfinite(high - low) or low >= high:
        raise Broken(f"values from {low:g} to {high:g} have no buckets")
    return np.linspace(low, high, bins + 1)


def _bucket_count(n: int, most: int) -> int:
    if n <= 10:
        return 1 if n == 0 else 2 if n <= 5 else 3
    return min(most, n // 10 + 1) if n <= 880 else most


def _shown_count(n: int) -> int:
    """Of what is shown: about ten values in a bucket."""
    return _bucket_count(n, 90) if n <= 10 else min(_MOST_BUCKETS, -(-n // 10) + 1)


def _made(left: np.ndarray, right: np.ndarray, counts: np.ndarray, *rest: int) -> Distribution:
    if not (np.isfinite(left).all() and np.isfinite(right).all() and np.isfinite(counts).all()):
        raise Broken("buckets of a histogram are not finite")
    if (counts < 0).any() or (right < left).any():
        raise Broken("buckets of a histogram are less than empty")
    order = np.argsort(left, kind="stable")
    return Distribution(left[order], right[order], counts[order], *rest)


def _mindspore(message: bytes) -> Distribution:
    buckets: list[tuple[float, float, float]] = []
    rest = {2: 0, 3: 0, 4: 0}
    for number, kind, value in fields(message):
        if number == 1 and kind == BYTES:
            left = width = np.zeros(1)
            count = 0
            for inner, kind_, part in fields(value):
                if inner == 1 and kind_ == WIDE:
                    left = numbers([part], "<f8")
                elif inner == 2 and kind_ == WIDE:
                    width = numbers([part], "<f8")
                elif inner == 3 and kind_ == VARINT:
                    count = part
            buckets.append((left[0], left[0] + width[0], count))
        elif number in rest and kind == VARINT:
            rest[number] = value
    table = np.array(buckets, np.float64).reshape(-1, 3)
    return _made(table[:, 0], table[:, 1], table[:, 2], *rest.values())


def _tensorboard(message: bytes) -> Distribution:
    ends: dict[int, float] = {1: 0.0, 2: 0.0}
    parts: dict[int, list] = {6: [], 7: []}
    for number, kind, value in fields(message):
        if number in ends and kind == WIDE:
            ends[number] = float(numbers([value], "<f8")[0])
        elif number in parts:
            parts[number].append(value)
    limits, counts = numbers(parts[6], "<f8"), numbers(parts[7], "<f8")
    if len(limits) != len(counts):
        raise Broken(f"a histogram has {len(limits)} limits of buckets and {len(counts)} counts")
    if not all(np.isfinite(end) for end in ends.values()):
        return Distribution(np.empty(0), np.empty(0), np.empty(0), nan=int(max(0, min(counts.sum(), 2**53))))
    bounds = np.clip(np.concatenate([[ends[1]], limits]), ends[1], max(ends[1], ends[2]))
    return _made(bounds[:-1], bounds[1:], counts)


def _of_tensor(message: bytes) -> Distribution:
    table = tensors.decode(message, Dialect.TENSORBOARD).values
    if table.ndim != 2 or table.shape[1] != 3:
        raise Broken(f"a histogram is a tensor of shape [n, 3], got {list(table.shape)}")
    return _made(*table.astype(np.float64).T)
