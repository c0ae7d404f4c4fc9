"""Places in one arena for values that live for a while, as low as a search finds.

A result may lie over an input that ends with the step, where the kernel reads far enough ahead of what it
writes: then `place of the input - place of the result` must be at least the pair's distance.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

ALIGNMENT = 8
_WORK = 600_000  # comparisons of a buffer with a placed one that a search may take


@dataclass(frozen=True)
class Buffer:
    """Memory for `bytes` from step `first` to step `last`."""

    bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Placement:
    """Places by number of the buffer, and how much memory they take together."""

    places: tuple[int, ...]
    arena_bytes: int
    live_bytes: int  # the most that lives at once, with results in place of inputs of the same kind
    least_bytes: int  # no plan of these steps is smaller


Distances = dict[tuple[int, int], int]  # of (result, input)


def _at_once(buffers: list[Buffer], distances: Distances, most: int | None) -> int:
    """The most bytes that live during a step; `most`: the largest distance that counts as in place."""
    steps = max((b.last for b in buffers), default=-1) + 1
    sums = [0] * steps
    for b in buffers:
        for s in range(b.first, b.last + 1):
            sums[s] += b.bytes
    saved: dict[int, int] = {}
    for (out, given), distance in distances.items():
        if most is not None and distance > most:
            continue
        o, i = buffers[out], buffers[given]
        together = max(o.bytes, max(distance, 0) + i.bytes)
        saved[out] = max(saved.get(out, 0), o.bytes + i.bytes - together)
    for out, size in saved.items():
        sums[buffers[out].first] -= size
    return max(sums, default=0)


def plan(buffers: list[Buffer], distances: Distances) -> Placement:
    """Places such that no two buffers that live at once overlap but as their distance allows."""
    sizes = [(b.bytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT for b in buffers]
    beside: list[list[tuple[int, int, int]]] = [[] for _ in buffers]  # (other, below, above): no place there
    for x, a in enumerate(buffers):
        for p, b in enumerate(buffers):
            if x == p or a.last < b.first or b.last < a.first:
                continue
            below, above = sizes[x], sizes[p]
            if (x, p) in distances:
                below = min(below, _aligned(distances[x, p]))
            elif (p, x) in distances:
                above = min(above, _aligned(distances[p, x]))
            beside[x].append((p, below, above))
    least = _at_once(buffers, distances, None)

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
        sorted(every, key=lambda i: (-sizes[i], -buffers[i].first)),
        sorted(every, key=lambda i: (-sizes[i], buffers[i].first)),
        sorted(every, key=lambda i: -sizes[i] * (buffers[i].last - buffers[i].first + 1)),
        sorted(every, key=lambda i: -buffers[i].first),
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
    return Placement(tuple(best[1]), best[0], _at_once(buffers, distances, 0), least)


def _aligned(distance: int) -> int:
    return -(-distance // ALIGNMENT) * ALIGNMENT
