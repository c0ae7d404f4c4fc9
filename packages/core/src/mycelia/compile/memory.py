"""The arena plan: where in one block of memory each intermediate of a program lies.

Values that are never alive at the same time may share a place. Places are given to the largest values
first, each at the lowest offset where it fits among those whose lifetimes overlap: Pisarchyk and Lee 2020,
"Efficient memory management for deep neural net inference", greedy by size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ALIGNMENT = 64  # bytes: a cache line, and the widest vector


@dataclass(frozen=True, slots=True)
class Interval:
    """A value's need: `size` bytes from instruction `first`, which writes it,
    to `last`, which reads it last.
    """

    size: int
    first: int
    last: int


def plan_offsets(intervals: Sequence[Interval]) -> tuple[list[int], int]:
    """An offset for each interval, and the bytes of the arena."""
    count = len(intervals)
    sizes = np.array([-(-i.size // ALIGNMENT) * ALIGNMENT for i in intervals], np.int64)
    first, last = (
        np.array([i.first for i in intervals], np.int64),
        np.array([i.last for i in intervals], np.int64),
    )
    order = np.lexsort((first, -sizes))
    offsets = np.zeros(count, np.int64)
    # Columns of the intervals placed so far, in order of placement.
    starts, ends, begins, finishes = (np.empty(count, np.int64) for _ in range(4))
    for number, index in enumerate(order):
        together = np.flatnonzero((begins[:number] <= last[index]) & (finishes[:number] >= first[index]))
        offset = 0
        if len(together):
            together = together[np.argsort(starts[together], kind="stable")]
            covered = np.maximum.accumulate(ends[together])  # up to where memory is taken, going upwards
            gaps = np.concatenate((starts[together], [np.iinfo(np.int64).max])) - np.concatenate(
                ([0], covered)
            )
            hole = int(np.argmax(gaps >= sizes[index]))
            offset = 0 if hole == 0 else covered[hole - 1]
        offsets[index] = offset
        starts[number], ends[number] = offset, offset + sizes[index]
        begins[number], finishes[number] = first[index], last[index]
    return offsets.tolist(), int((offsets + sizes).max(initial=0))
