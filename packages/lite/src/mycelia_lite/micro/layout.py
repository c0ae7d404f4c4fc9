"""Where the values of a program lie in the arena, and how long."""

from __future__ import annotations

from dataclasses import dataclass

from mycelia_lite import picture
from mycelia_lite.micro import memory
from mycelia_lite.micro.lower import Call, Map
from mycelia_lite.micro.program import Program, Step


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


def settle_states(program: Program, items: list[Call | Map]) -> None:
    """Let what variables hold next be written where they lie, or copy it there at the end.

    Errors: NotImplementedError for variables that exchange what they hold.
    """
    copied: list[tuple[int, int]] = []
    _sink_updates(program, items)
    for state in program.states:
        now, root = state.now, program.values[state.next].root
        if root == now:
            continue
        readers = [
            t for t, item in enumerate(items) if any(_root(program, v) == now for v in item.inputs if v >= 0)
        ]
        makers = [t for t, item in enumerate(items) if any(_root(program, v) == root for v in item.outputs)]
        own = {_root(program, b.value) for b in program.inputs + program.outputs} | {
            s.now for s in program.states
        }
        others = [s for s in program.states if s is not state and _root(program, s.next) in (now, root)]
        fits = program.values[root].bytes == program.values[now].bytes and program.values[root].data is None
        if makers and fits and root not in own and not others and max(readers, default=-1) < min(makers):
            for value in program.values:
                if value.root == root:
                    value.root = now
            continue
        copied.append((state.next, now))
    for k, (_, now) in enumerate(copied):
        if any(_root(program, later) == now for later, _ in copied[k + 1 :]):
            raise NotImplementedError("Micro: variables that exchange what they hold")
    for value, now in copied:
        step = Step("copy", [value], [now], {}, "", "SetState")
        size = program.values[value].bytes
        fields = {"count": 1, "bytes": size}
        items.append(Call("micro_fill", "micro_filling", fields, [value], [now], step.node, step.kind))


def _sink_updates(program: Program, items: list[Call | Map]) -> None:
    """Make what a variable holds next when all else has read what it is made of: that need not live on."""
    for state in program.states:
        root = _root(program, state.next)
        makers = [item for item in items if any(_root(program, v) == root for v in item.outputs)]
        read = any(_root(program, v) == root for item in items for v in item.inputs if v >= 0)
        if len(makers) != 1 or read or root in {_root(program, b.value) for b in program.outputs}:
            continue
        sources = {_root(program, v) for v in makers[0].inputs if v >= 0}
        last = max(
            t
            for t, item in enumerate(items)
            if any(_root(program, v) in sources for v in item.inputs if v >= 0)
        )
        at = next(t for t, item in enumerate(items) if item is makers[0])
        items.insert(last, items.pop(at))


def _root(program: Program, value: int) -> int:
    return program.values[value].root


def layout(program: Program, items: list[Call | Map]) -> Layout:
    """Places for all that the calls read and write."""
    end = len(items)
    spans = _spans(program, items)
    roots = list(spans)
    number = {root: i for i, root in enumerate(roots)}
    buffers = [memory.Buffer(program.values[r].bytes, tuple(spans[r])) for r in roots]
    scratch = {}
    for t, item in enumerate(items):
        if item.scratch:
            scratch[t] = len(buffers)
            buffers.append(memory.Buffer(item.scratch, ((t, t),)))
    distances = {}
    for t, item in enumerate(items):
        out = program.values[item.outputs[0]]
        if out.data is not None or all(first != t for first, _ in spans[out.root]):
            continue
        for v in {_root(program, v) for v in item.inputs if v >= 0}:
            if v == out.root or v not in spans or all(last != t for _, last in spans[v]):
                continue
            views = [i for i in item.inputs if i >= 0 and _root(program, i) == v]
            if all(i in item.distances for i in views):
                far = max(item.distances[i] + out.offset - program.values[i].offset for i in views)
                distances[number[out.root], number[v]] = (t, far if far == memory.FREE else max(0, far))
    placement = memory.plan(buffers, distances)
    places = {root: placement.places[i] for root, i in number.items()}
    drawn = tuple(
        picture.Value(
            placement.places[i], program.values[r].bytes, first, min(last, max(0, end - 1)),
            f"{program.values[r].dtype.name}{list(program.values[r].shape)}",
        )
        for r, i in number.items()
        for first, last in spans[r]
    )  # fmt: skip
    steps = tuple(
        picture.Step(item.function if isinstance(item, Call) else "map", item.node, item.kind)
        for item in items
    )
    plan = picture.MemoryPlan(placement.arena_bytes, steps, drawn)
    return Layout(places, {t: placement.places[i] for t, i in scratch.items()}, placement, plan)


def _spans(program: Program, items: list[Call | Map]) -> dict[int, list[tuple[int, int]]]:
    """The steps in which each value with memory of its own holds something; inputs from the first one on."""
    reads: dict[int, list[int]] = {}
    writes: dict[int, list[int]] = {}
    for found, step, values in [
        (writes, 0, [b.value for b in program.inputs] + [s.now for s in program.states]),
        *((reads, t, item.inputs) for t, item in enumerate(items)),
        *((writes, t, item.outputs) for t, item in enumerate(items)),
        (reads, len(items), [b.value for b in program.outputs] + [s.now for s in program.states]),
    ]:
        for v in values:
            if v >= 0 and program.values[_root(program, v)].data is None:
                found.setdefault(_root(program, v), []).append(step)
    variables = {s.now for s in program.states}
    spans = {}
    for root, begun in writes.items():
        ends = reads.get(root, [])
        last = max(begun + ends)
        spans[root] = [(min(begun), last)]
        renewed = [t for t in begun if t > 0]
        before = max((t for t in ends if t < len(items)), default=0)
        if root in variables and renewed and before < min(renewed):
            spans[root] = [(0, before), (min(renewed), last)]
    return spans
