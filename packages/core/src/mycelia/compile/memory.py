"""The arena plan: where in one block of memory each intermediate of a program lies.

Values that are never alive at the same time may share a place. Places are given to the largest values first, each at the
lowest offset where it fits among those whose lifetimes overlap: Pisarchyk and Lee 2020, "Efficient memory management for
deep neural net inference", greedy by size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64  # bytes: a cache line, and the widest vector


@dataclass(frozen=True, slots=True)
class Interval:
    """A value's need: `size` bytes from instruction `first`, which writes it, to `last`, which reads it last."""

    size: int
    first: int
    last: int


def plan_offsets(intervals: Sequence[Interval]) -> tuple[list[int], int]:
    """An offset for each interval, and the bytes of the arena."""
    offsets = [0] * len(intervals)
    placed: list[int] = []
    total = 0
    for index in sorted(range(len(intervals)), key=lambda i: (-intervals[i].size, intervals[i].first)):
        wanted = intervals[index]
        size = -(-wanted.size // ALIGNMENT) * ALIGNMENT
        busy = sorted(
            (offsets[i], offsets[i] + -(-intervals[i].size // ALIGNMENT) * ALIGNMENT)
            for i in placed
            if intervals[i].first <= wanted.last and wanted.first <= intervals[i].last
        )
        offset = 0
        for start, end in busy:
            if offset + size <= start:
                break
            offset = max(offset, end)
        offsets[index] = offset
        placed.append(index)
        total = max(total, offset + size)
    return offsets, total
