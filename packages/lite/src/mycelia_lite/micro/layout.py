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


def _root(program: Program, value: int) -> int:
    return program.values[value].root


def layout(program: Program, items: list[Call | Map]) -> Layout:
    """Places for all that the calls read and write."""
    end = len(items)
    life: dict[int, list[int]] = {}

    def used(value: int, step: int) -> None:
        root = _root(program, value)
        if program.values[root].data is None:
            span = life.setdefault(root, [step, step])
            span[1] = max(span[1], step)

    for border in program.inputs:
        used(border.value, 0)
    for state in program.states:
        used(state.now, 0)
        used(state.now, end)
    for t, item in enumerate(items):
        for v in [*item.inputs, *item.outputs]:
            if v >= 0:
                used(v, t)
    for border in program.outputs:
        used(border.value, end)
    roots = list(life)
    number = {root: i for i, root in enumerate(roots)}
    buffers = [memory.Buffer(program.values[r].bytes, *life[r]) for r in roots]
    scratch = {}
    for t, item in enumerate(items):
        if item.scratch:
            scratch[t] = len(buffers)
            buffers.append(memory.Buffer(item.scratch, t, t))
    distances = {}
    for t, item in enumerate(items):
        out = program.values[item.outputs[0]]
        if out.data is not None or life[out.root][0] != t:
            continue
        for v in {_root(program, v) for v in item.inputs if v >= 0}:
            if v == out.root or v not in life or life[v][1] != t:
                continue
            views = [i for i in item.inputs if i >= 0 and _root(program, i) == v]
            if all(i in item.distances for i in views):
                distance = max(item.distances[i] + out.offset - program.values[i].offset for i in views)
                distances[number[out.root], number[v]] = max(0, distance)
    placement = memory.plan(buffers, distances)
    places = {root: placement.places[i] for root, i in number.items()}
    drawn = tuple(
        picture.Value(
            placement.places[i], program.values[r].bytes, life[r][0], min(life[r][1], max(0, end - 1)),
            f"{program.values[r].dtype.name}{list(program.values[r].shape)}",
        )
        for r, i in number.items()
    )  # fmt: skip
    steps = tuple(
        picture.Step(item.function if isinstance(item, Call) else "map", item.node, item.kind)
        for item in items
    )
    plan = picture.MemoryPlan(placement.arena_bytes, steps, drawn)
    return Layout(places, {t: placement.places[i] for t, i in scratch.items()}, placement, plan)
