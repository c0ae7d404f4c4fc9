"""What the machine can do: multiply-adds a second, and bytes a second by the size of the data."""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mycelia.engine.backends import registry
from mycelia.engine.compile.passes import inter_op

# Of what is copied, source and target together: for second and third cache, and memory.
_SIZES = (256 << 10, 4 << 20, 64 << 20)


class Peaks(NamedTuple):
    """Measured limits: `flops`, operations a second in float32, a multiply-add counting two; `bandwidth`,
    pairs (bytes read and written, bytes a second) of copies, smallest size first.
    """

    flops: float
    bandwidth: tuple[tuple[int, float], ...]

    def bytes_at(self, size: float) -> float:
        """Bytes a second that a copy reaches where `size` bytes are read and written: of the nearest size."""
        return min(self.bandwidth, key=lambda pair: abs(math.log(max(size, 1) / pair[0])))[1]

    def seconds(self, flops: float, traffic: float) -> float:
        """The least time for so many operations and bytes: the roofline of Williams, Waterman and Patterson
        2009, "Roofline: an insightful visual performance model".
        """
        compute = flops / self.flops if self.flops else 0.0
        return max(compute, traffic / self.bytes_at(traffic))


def peaks(threads: int | None = None) -> Peaks:
    """Peaks of the machine with as many threads as kernels may use, or `threads`; measured once, in 0.2 s.

    Without a backend that measures multiply-adds `flops` is 0.
    """
    return _measured(threads or inter_op.threads())


@functools.cache
def _measured(threads: int) -> Peaks:
    backend = registry.target().backend
    return Peaks(
        _best(lambda: backend.multiply_adds(1_000_000), threads, 8),
        tuple((size, _copy_rate(size, threads)) for size in _SIZES),
    )


def _copy_rate(size: int, threads: int) -> float:
    pairs = [(np.ones(size // 8, np.float32), np.zeros(size // 8, np.float32)) for _ in range(threads)]
    rounds = max(1, (4 << 20) // size)

    def copy() -> float:
        source, target = pairs.pop()
        for _ in range(rounds):
            np.negative(source, target)  # copyto is memcpy, which some processors do slowly
        pairs.append((source, target))
        return rounds * size

    return _best(copy, threads, 8 if size > 4 << 20 else 40)


def _best(work: Callable[[], float], threads: int, rounds: int) -> float:
    """The best rate over rounds of `work` on all threads at once; `work` tells how much it did.

    A thread's time is its CPU time, so that other processes on the machine change little.
    """
    best = 0.0
    for _ in range(rounds):
        rates: list[float] = []

        def run(rates=rates) -> None:
            start = time.thread_time()
            amount = work()
            rates.append(amount / max(time.thread_time() - start, 1e-9))

        others = [threading.Thread(target=run) for _ in range(threads - 1)]
        for each in others:
            each.start()
        run()
        for each in others:
            each.join()
        best = max(best, sum(rates))
    return best
