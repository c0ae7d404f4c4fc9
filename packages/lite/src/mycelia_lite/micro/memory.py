"""Places in one arena for values that live for a while, as low as a search finds.

A result may lie over an input that ends with the step, where the kernel reads far enough ahead of what it
writes: then `place of the input - place of the result` must be at least the pair's distance.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

ALIGNMENT = 8
_WORK = 600_000  # comparisons of a buffer with a placed one that a search may take


FREE = -math.inf  # a distance: the two may lie as they like


@dataclass(frozen=True)
class Buffer:
    """Memory for `bytes` in spans of steps, first and last; between them it may hold something else."""

    bytes: int
    spans: tuple[tuple[int, int], ...]

    def meets(self, other: Buffer) -> set[int]:
        """The steps in which both live."""
        found: set[int] = set()
        for first, last in self.spans:
            for begin, end in other.spans:
                found.update(range(max(first, begin), min(last, end) + 1))
        return found


@dataclass(frozen=True)
class Placement:
    """Places by number of the buffer, and how much memory they take together."""

    places: tuple[int, ...]
    arena_bytes: int
    live_bytes: int  # the most that lives at once, with results in place of inputs of the same kind
    least_bytes: int  # no plan of these steps is smaller


Distances = dict[tuple[int, int], tuple[int, float]]  # of (result, input): in which step, and how far


def _at_once(buffers: list[Buffer], distances: Distances, in_place: bool) -> int:
    """The most bytes that live during a step.

    `in_place`: where a result may take the place of one input; else where it may lie over all that it can.
    """
    steps = 1 + max((last for b in buffers for _, last in b.spans), default=-1)
    sums = [0] * steps
    for b in buffers:
        for first, last in b.spans:
            for s in range(first, last + 1):
                sums[s] += b.bytes
    saved: dict[tuple[int, int], int] = {}
    for (out, given), (step, distance) in distances.items():
        if in_place and distance > 0:
            continue
        o, i = buffers[out], buffers[given]
        together = max(o.bytes, int(max(distance, 0)) + i.bytes)
        key = (step, out)
        size = o.bytes + i.bytes - together
        saved[key] = max(saved.get(key, 0), size) if in_place else saved.get(key, 0) + size
    for (step, _), size in saved.items():
        sums[step] -= size
    return max(sums, default=0)


def _apart(
    buffers: list[Buffer], sizes: list[int], distances: Distances, x: int, p: int
) -> set[tuple[int, int]]:
    """How far below and above the place of p the buffer x must not lie."""
    found: set[tuple[int, int]] = set()
    for step in buffers[x].meets(buffers[p]):
        below, above = sizes[x], sizes[p]
        for pair in ((x, p), (p, x)):
            at, distance = distances.get(pair, (-1, 0.0))
            if at != step:
                continue
            if distance == FREE:
                below = above = 0
            elif pair[0] == x:
                below = min(below, _aligned(distance))
            else:
                above = min(above, _aligned(distance))
        if below > 0 or above > 0:
            found.add((below, above))
    return found


def plan(buffers: list[Buffer], distances: Distances) -> Placement:
    """Places such that no two buffers that live at once overlap but as their distance allows."""
    sizes = [(b.bytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT for b in buffers]
    beside = [
        [(p, *far) for p in range(len(buffers)) if p != x for far in _apart(buffers, sizes, distances, x, p)]
        for x in range(len(buffers))
    ]
    least = _at_once(buffers, distances, in_place=False)

    def placed(order: list[int]) -> tuple[int, list[int]]:
        places = [-1] * len(buffers)
        most = 0
        for x in order:
            taken = sorted(
                (places[p] - below, places[p] + above) for p, below, above in beside[x] if places[p] >= 0
            )
            at = 0
            for begin, end in taken:
                if begin < at < end:
                    at = end
            places[x] = at
            most = max(most, at + sizes[x])
        return most, places

    count = len(buffers)
    every = list(range(count))
    starts = [
        sorted(every, key=lambda i: (-sizes[i], -buffers[i].spans[0][0])),
        sorted(every, key=lambda i: (-sizes[i], buffers[i].spans[0][0])),
        sorted(every, key=lambda i: -sizes[i] * sum(last - first + 1 for first, last in buffers[i].spans)),
        sorted(every, key=lambda i: -buffers[i].spans[0][0]),
        every,
    ]
    best, order = min(((placed(o), o) for o in starts), key=lambda found: found[0][0])
    chance = random.Random(0)
    work = sum(map(len, beside)) + 1
    for _ in range(_WORK // work if count > 1 else 0):
        if best[0] <= least:
            break
        tried = list(order)
        top = [i for i in every if best[1][i] + sizes[i] == best[0]]
        moved = chance.choice(top) if chance.random() < 0.5 else chance.randrange(count)
        tried.remove(moved)
        tried.insert(chance.randrange(count), moved)
        found = placed(tried)
        if found[0] <= best[0]:
            best, order = found, tried
    return Placement(tuple(best[1]), best[0], _at_once(buffers, distances, in_place=True), least)


def _aligned(distance: float) -> int:
    return -(-int(distance) // ALIGNMENT) * ALIGNMENT
