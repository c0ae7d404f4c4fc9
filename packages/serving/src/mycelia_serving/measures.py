"""Counters that are cheap enough for every request; `frontend.metrics` shows them to Prometheus.

They take no lock: whoever writes one holds a lock already, or is the only thread that writes.
"""

from __future__ import annotations

from bisect import bisect_left

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Histogram:
    """How many values fell under each bound, and their sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)  # the last: above all bounds
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def buckets(self) -> list[tuple[str, int]]:
        """(bound, how many up to it), as Prometheus wants them."""
        found, running = [], 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            running += count
            found.append(("+Inf" if bound == float("inf") else repr(float(bound)), running))
        return found


class MethodTimes:
    """What the master measures of one method of one version."""

    __slots__ = ("queue", "run", "sizes")

    def __init__(self) -> None:
        self.queue = Histogram()  # seconds from a request's arrival to its first instance at a worker
        self.run = Histogram()  # seconds at a worker
        self.sizes = Histogram(COUNTS)  # instances handed to a worker at once
