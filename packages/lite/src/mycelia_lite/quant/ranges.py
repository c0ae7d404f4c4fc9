"""Ranges of data from what calibration saw of it, and the integers of 8 bits that stand for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: How ranges follow from data: its extremes, the threshold of least divergence, quantiles.
METHODS = ("MAX_MIN", "KL", "REMOVAL_OUTLIER")
_BINS = 2048  # of a histogram
_FINE = 8  # bins of a range's histogram for one of those
_OUTLIERS = 1e-4  # share of the elements on a side
_LEVELS = 128  # of magnitudes that an int8 has
_NEAR, _PEAK = 8, 4  # bins beside a bin, and how many times their mean it may have
_STEP = 8  # bins from one threshold to the next


@dataclass(frozen=True)
class Grid:
    """int8 as numbers: (q - zero) * scale."""

    scale: float
    zero: int

    @staticmethod
    def of(low: float, high: float) -> Grid:
        """The one with 0 and the range from low to high, which are finite."""
        low, high = min(low, 0.0), max(high, 0.0)
        scale = float(np.float32((high - low) / 255)) or 1.0
        if scale < np.finfo(np.float32).tiny:
            return Grid(1.0, 0)
        return Grid(scale, int(np.clip(round(-128 - low / scale), -128, 127)))

    def integers(self, numbers: np.ndarray) -> np.ndarray:
        """The nearest integers, as the runtime rounds. int8."""
        scaled = numbers.astype(np.float32) / np.float32(self.scale)
        return (np.rint(np.clip(scaled, -128 - self.zero, 127 - self.zero)) + self.zero).astype(np.int8)

    def numbers(self, integers: np.ndarray) -> np.ndarray:
        """What integers stand for. float32."""
        return (integers.astype(np.float32) - np.float32(self.zero)) * np.float32(self.scale)

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest number."""
        return (-128 - self.zero) * self.scale, (127 - self.zero) * self.scale


class Range:
    """Extremes of a tensor, then, in a second pass over the data, a histogram of what lies between them."""

    def __init__(self) -> None:
        self.low, self.high = np.inf, -np.inf
        self._counts = np.zeros(_BINS * _FINE, np.int64)

    def see(self, numbers: np.ndarray) -> None:
        """Extend the range. Errors: ValueError for numbers that are not finite."""
        if not numbers.size:
            return
        low, high = float(numbers.min()), float(numbers.max())
        if not np.isfinite([low, high]).all():
            raise ValueError("NaN" if np.isnan([low, high]).any() else "infinite")
        self.low, self.high = min(self.low, low), max(self.high, high)

    def count(self, numbers: np.ndarray) -> None:
        """Enter numbers that `see` had."""
        if self.high > self.low:
            self._counts += np.histogram(numbers, len(self._counts), (self.low, self.high))[0]

    def limits(self, method: str) -> tuple[float, float]:
        """The range that integers shall have; (0, 0) if nothing was seen."""
        if not self.low <= self.high:
            return 0.0, 0.0
        if method == "MAX_MIN" or not self._counts.any():
            return self.low, self.high
        return self._quantiles() if method == "REMOVAL_OUTLIER" else self._least_divergence()

    def _edges(self) -> np.ndarray:
        return np.linspace(self.low, self.high, len(self._counts) + 1)

    def _quantiles(self) -> tuple[float, float]:
        share = np.concatenate([[0], np.cumsum(self._counts)]) / self._counts.sum()
        low, high = np.interp([_OUTLIERS, 1 - _OUTLIERS], share, self._edges())
        return float(low), float(high)

    def _least_divergence(self) -> tuple[float, float]:
        """By a threshold of magnitudes: the one whose histogram 128 levels keep best."""
        largest = max(-self.low, self.high)
        edges = self._edges()
        middles = np.abs((edges[1:] + edges[:-1]) / 2)
        counts = np.histogram(middles, _BINS, (0, largest), weights=self._counts)[0].astype(np.float64)
        counts = _without_peaks(counts)
        levels = _LEVELS if self.low < 0 < self.high else 2 * _LEVELS
        best, least = _BINS, np.inf
        for end in range(levels, _BINS + 1, _STEP):
            divergence = _divergence(counts, end, levels)
            if divergence < least:
                best, least = end, divergence
        threshold = best / _BINS * largest
        return max(self.low, -threshold), min(self.high, threshold)


def _without_peaks(counts: np.ndarray) -> np.ndarray:
    """A number that comes again and again, as the zeros of a ReLU or a background, is as near in every range:
    it counts as its neighbours do."""
    window = np.ones(2 * _NEAR + 1)
    seen = np.convolve(counts, window, "same") - counts
    neighbours = np.convolve(np.ones_like(counts), window, "same") - 1
    return np.minimum(counts, _PEAK * np.maximum(seen / neighbours, 1))


def _divergence(counts: np.ndarray, end: int, levels: int) -> float:
    """Of the histogram up to `end`, with all beyond at its end, from the same in `levels` levels."""
    kept = counts[:end]
    given = kept.copy()
    given[-1] += counts[end:].sum()
    starts = np.arange(levels) * end // levels
    full = kept > 0
    sums = np.add.reduceat(kept, starts)
    filled = np.maximum(np.add.reduceat(full.astype(np.float64), starts), 1)
    widths = np.diff(np.append(starts, end))
    made = np.repeat(sums / filled, widths) * full
    seen = given > 0
    if not made.any():
        return np.inf
    p, q = given / given.sum(), made / made.sum()
    nearest = np.maximum(q[seen], 1e-4 / end)  # what the levels lost is far, not infinitely far
    return float((p[seen] * np.log(p[seen] / nearest)).sum())
