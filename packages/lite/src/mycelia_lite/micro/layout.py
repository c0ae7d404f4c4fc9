"""Where the values of a program lie in the arena, and how long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from mycelia_lite import picture
from mycelia_lite.micro import memory
from mycelia_lite.micro.lower import Call, Map
from mycelia_lite.micro.memory import Piece
from mycelia_lite.micro.program import Program


@dataclass(frozen=True)
class Layout:
    """Places of the values that have memory of their own, by number; scratch memory by number of the call."""

    places: dict[int, int]
    scratch: dict[int, int]
    placement: memory.Placement
    plan: picture.MemoryPlan

    def place(self, program: Program, value: int) -> int:
        """Bytes from the beginning of the arena to a value that is no constant."""
        v = program.values[value]
        return self.places[v.root] + v.offset


@dataclass(frozen=True)
class _Demand:
    """What calls need memory for: buffers of roots, then scratch memory by number of the call."""

    pieces: dict[int, list[Piece]]
    scratch: dict[int, int]
    buffers: list[memory.Buffer]
    distances: memory.Distances


def _demand(program: Program, items: list[Call | Map]) -> _Demand:
    pieces = _pieces(program, items)
    number = {root: i for i, root in enumerate(pieces)}
    widths = _alignments(program)
    buffers = [memory.Buffer(tuple(found), widths[r]) for r, found in pieces.items()]
    scratch = {}
    for t, item in enumerate(items):
        if item.scratch:
            scratch[t] = len(buffers)
            buffers.append(memory.Buffer((Piece(t, t, 0, item.scratch),)))
    distances = {}
    for t, item in enumerate(items):
        out = program.values[item.outputs[0]]
        if out.data is not None or all(p.first != t for p in pieces[out.root]):
            continue
        for root in {program.values[v].root for v in item.inputs if v >= 0}:
            if root == out.root or root not in pieces or all(p.last != t for p in pieces[root]):
                continue
            views = [v for v in item.inputs if v >= 0 and program.values[v].root == root]
            if all(v in item.distances for v in views):
                far = max(item.distances[v] + out.offset - program.values[v].offset for v in views)
                distances[number[out.root], number[root]] = (t, far)
    return _Demand(pieces, scratch, buffers, distances)


def least_bytes(program: Program, items: list[Call | Map]) -> int:
    """What no layout of these calls can go below."""
    demand = _demand(program, items)
    return max(memory.live_at(demand.buffers, demand.distances, in_place=False), default=0)


def layout(program: Program, items: list[Call | Map]) -> Layout:
    """Places for all that the calls read and write."""
    demand = _demand(program, items)
    placement = memory.plan(demand.buffers, demand.distances)
    places = dict(zip(demand.pieces, placement.places))
    last = max(0, len(items) - 1)
    drawn = tuple(
        picture.Value(
            places[r] + p.begin, p.end - p.begin, p.first, min(p.last, last),
            _label(program, r, p),
        )
        for r, pieces in demand.pieces.items()
        for p in pieces
    )  # fmt: skip
    steps = tuple(
        picture.Step(item.function if isinstance(item, Call) else "map", item.node, item.kind)
        for item in items
    )
    plan = picture.MemoryPlan(placement.arena_bytes, steps, drawn)
    return Layout(places, {t: placement.places[i] for t, i in demand.scratch.items()}, placement, plan)


def _label(program: Program, root: int, piece: Piece) -> str:
    value = program.values[root]
    part = "" if piece.end - piece.begin == value.bytes else "part of "
    return f"{part}{value.dtype.name}{list(value.shape)}"


def _alignments(program: Program) -> dict[int, int]:
    """Of each root the size of the largest elements that it is read as."""
    widths: dict[int, int] = defaultdict(lambda: 1)
    for v in program.values:
        widths[v.root] = max(widths[v.root], v.dtype.itemsize)
    return widths


def _pieces(program: Program, items: list[Call | Map]) -> dict[int, list[Piece]]:
    """Which bytes of each value with memory of its own hold something, and in which steps.

    Inputs are there from the first step on, outputs to the end, variables from one run to the next.
    """
    end = len(items)
    events: dict[int, list[tuple[int, bool, int, int]]] = defaultdict(
        list
    )  # (step, whether it writes, bytes)

    def note(step: int, writes: bool, values: Iterable[int]) -> None:
        for v in values:
            value = program.values[v] if v >= 0 else None
            if value is not None and program.values[value.root].data is None:
                events[value.root].append((step, writes, value.offset, value.offset + value.bytes))

    variables = [s.now for s in program.states]
    note(-1, True, [b.value for b in program.inputs] + variables)
    for t, item in enumerate(items):
        note(t, False, item.inputs)
        note(t, not item.continues, item.outputs)
    note(end, False, [b.value for b in program.outputs] + variables)
    return {root: _lives(found) for root, found in events.items()}


def _lives(events: list[tuple[int, bool, int, int]]) -> list[Piece]:
    """The pieces of a root with these events, which are in order; what is written stays until it is read."""
    edges = sorted({edge for _, _, begin, stop in events for edge in (begin, stop)})
    lives: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)  # bytes by (first, last)
    for begin, stop in zip(edges, edges[1:]):
        own: list[list[int]] = []
        for step, writes, first, last in events:
            if first > begin or last < stop:
                continue
            if writes:
                own.append([max(0, step), max(0, step)])
            elif own:
                own[-1][1] = step
        if not own:
            raise RuntimeError("a value is read that no call makes")
        for life in own:
            lives[life[0], life[1]].append((begin, stop))
    pieces = []
    for (first, last), ranges in lives.items():
        merged: list[list[int]] = []
        for begin, stop in ranges:
            if merged and merged[-1][1] == begin:
                merged[-1][1] = stop
            else:
                merged.append([begin, stop])
        pieces += [Piece(first, last, begin, stop) for begin, stop in merged]
    return sorted(pieces, key=lambda p: (p.first, p.begin)) or [Piece(0, 0, 0, 0)]
