"""Places in one arena for buffers of which parts hold something for a while, as low as a search finds.

A result may lie over an input that ends with the step, where the kernel reads far enough ahead of what it
writes: then `place of the input - place of the result` must be at least the pair's distance.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass

ALIGNMENT = 8
_WORK = 600_000  # comparisons of a buffer with a placed one that a search may take


FREE = -math.inf  # a distance: the two may lie as they like


@dataclass(frozen=True)
class Piece:
    """Bytes [begin, end) of a buffer, which hold something from step `first` to step `last`."""

    first: int
    last: int
    begin: int
    end: int


@dataclass(frozen=True)
class Buffer:
    """Memory that lies together; what of it holds nothing is for others."""

    pieces: tuple[Piece, ...]
    alignment: int = ALIGNMENT

    @property
    def bytes(self) -> int:
        """From its first byte to behind its last one."""
        return max((p.end for p in self.pieces), default=0)


@dataclass(frozen=True)
class Placement:
    """Places by number of the buffer, and how much memory they take together."""

    places: tuple[int, ...]
    arena_bytes: int
    live_bytes: int  # the most that lives at once, with results in place of inputs of the same kind
    least_bytes: int  # no plan of these steps is smaller


Distances = dict[tuple[int, int], tuple[int, float]]  # of (result, input): in which step, and how far


def live_at(buffers: list[Buffer], distances: Distances, in_place: bool) -> list[int]:
    """The bytes that live during each step.

    `in_place`: where a result may take the place of one input; else where it may lie over all that it can.
    """
    steps = 1 + max((p.last for b in buffers for p in b.pieces), default=-1)
    sums = [0] * (steps + 1)
    for piece in (p for b in buffers for p in b.pieces):
        sums[piece.first] += piece.end - piece.begin
        sums[piece.last + 1] -= piece.end - piece.begin
    for s in range(steps):
        sums[s + 1] += sums[s]
    for a, b in (pair for buffer in buffers for pair in itertools.combinations(buffer.pieces, 2)):
        for s in range(max(a.first, b.first), min(a.last, b.last) + 1):  # what a step renews in its place
            sums[s] -= max(0, min(a.end, b.end) - max(a.begin, b.begin))
    saved: dict[tuple[int, int], int] = {}
    for (out, given), (step, distance) in distances.items():
        size, whole = _shared(buffers[out], buffers[given], step, distance)
        key = (step, out)
        if not in_place:
            saved[key] = saved.get(key, 0) + size
        elif whole:
            saved[key] = max(saved.get(key, 0), size)
    for (step, _), size in saved.items():
        sums[step] -= size
    return sums[:steps]


def _shared(out: Buffer, given: Buffer, step: int, distance: float) -> tuple[int, bool]:
    """How many bytes of a result may lie over an input, and whether all of the smaller one may."""
    made = [p for p in out.pieces if p.first == step]
    read = [p for p in given.pieces if p.last == step]
    if not made or not read:
        return 0, False
    begin, end = min(p.begin for p in made), max(p.end for p in made)
    first, last = min(p.begin for p in read), max(p.end for p in read)
    most = min(sum(p.end - p.begin for p in pieces) for pieces in (made, read))
    if distance <= max(end - last, begin - first):
        return most, True
    return min(most, max(0, end - first - int(distance))), False


def _apart(
    buffers: list[Buffer], distances: Distances, x: int, p: int
) -> list[tuple[float, float]]:  # fmt: skip
    """Pairs (below, above): x must not lie between the place of p - below and that + above."""
    found: set[tuple[float, float]] = set()
    for a in buffers[x].pieces:
        for b in buffers[p].pieces:
            from_, to = max(a.first, b.first), min(a.last, b.last)
            if from_ > to:
                continue
            below, above = float(a.end - b.begin), float(b.end - a.begin)
            if from_ == to:
                step, distance = distances.get((x, p), (-1, 0.0))
                if step == to == a.first == b.last:
                    below = min(below, distance)
                step, distance = distances.get((p, x), (-1, 0.0))
                if step == to == b.first == a.last:
                    above = min(above, distance)
            if -below < above:
                found.add((below, above))
    return sorted(found)


def plan(buffers: list[Buffer], distances: Distances) -> Placement:
    """Places such that nothing that lives at once overlaps but as distances allow."""
    count = len(buffers)
    sizes = [b.bytes for b in buffers]
    beside = [
        [(p, *far) for p in range(count) if p != x for far in _apart(buffers, distances, x, p)]
        for x in range(count)
    ]
    least = max(live_at(buffers, distances, in_place=False), default=0)

    def placed(order: list[int]) -> tuple[int, list[int]]:
        places = [-1] * count
        most = 0
        for x in order:
            at, alignment = 0, buffers[x].alignment
            for begin, end in sorted(
                (places[p] - below, places[p] + above) for p, below, above in beside[x] if places[p] >= 0
            ):
                if begin >= at:
                    break
                if at < end:
                    at = -(-int(end) // alignment) * alignment
            places[x] = at
            most = max(most, at + sizes[x])
        return most, places

    every = list(range(count))
    begun = [min((p.first for p in b.pieces), default=0) for b in buffers]
    weight = [sum((p.last - p.first + 1) * (p.end - p.begin) for p in b.pieces) for b in buffers]
    starts = [
        sorted(every, key=lambda i: (-sizes[i], -begun[i])),
        sorted(every, key=lambda i: (-sizes[i], begun[i])),
        sorted(every, key=lambda i: -weight[i]),
        sorted(every, key=lambda i: -begun[i]),
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
    live = max(live_at(buffers, distances, in_place=True), default=0)
    return Placement(tuple(best[1]), -(-best[0] // ALIGNMENT) * ALIGNMENT, live, least)
