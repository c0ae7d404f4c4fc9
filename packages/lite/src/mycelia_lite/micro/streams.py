"""Variables that are windows of a stream: what a Concat puts a new end to, and of which the end is kept.

Such a variable lies at the beginning of the whole, and what is kept is moved there at the end of a run. Or it
lies at the end of the whole, and is moved to the beginning before the new end is made: then nothing is moved
behind. The first way needs memory for the new end behind the variable, the second one in front of it: two
variables that lie beside one another share it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mycelia_lite.micro.lower import readers
from mycelia_lite.micro.program import Program, Step


@dataclass(frozen=True)
class Window:
    """A variable by number, the step that joins it and the one that cuts it, how many bytes are new."""

    state: int
    join: Step
    cut: Step
    new: int


def windows(program: Program) -> list[Window]:
    """The variables that may lie at the end, those first to which least is new."""
    reads = readers(program)
    maker = {v: s for s in program.steps for v in s.outputs}
    fixed = {program.values[v].root for s in program.states for v in (s.now, s.next)}
    fixed |= {program.values[b.value].root for b in program.inputs + program.outputs}
    found = []
    for number, state in enumerate(program.states):
        now, cut = program.values[state.now], maker.get(state.next)
        if now.root != state.now or len(reads[state.now]) != 1 or reads[state.now][0] < 0:
            continue
        join = program.steps[reads[state.now][0]]
        if join.op != "concat" or join.inputs[0] != state.now or cut is None or cut.op != "strided_slice":
            continue
        (y,) = join.outputs
        whole = program.values[y]
        axis = join.attributes["axis"] % len(whole.shape)
        begin = [n if d == axis else 0 for d, n in enumerate(whole.shape)]
        begin[axis] -= now.shape[axis]
        parts = [program.values[v] for v in join.inputs[1:]]
        if (
            cut.inputs == [y]
            and math.prod(whole.shape[:axis]) == 1
            and list(cut.attributes["begin"]) == begin
            and set(cut.attributes["stride"]) == {1}
            and program.values[state.next].root == state.next
            and whole.root == y
            and y not in fixed
            and all(
                p.data is None and p.root not in fixed and p.bytes == program.values[p.root].bytes
                for p in parts
            )
            and len({p.root for p in parts}) == len(parts)
        ):
            found.append(Window(number, join, cut, whole.bytes - now.bytes))
    return sorted(found, key=lambda w: w.new)


def lay_at_end(program: Program, window: Window) -> None:
    """Let the variable lie at the end of the whole between two runs."""
    state, (y,) = program.states[window.state], window.join.outputs
    begin = program.view(y, program.values[state.now].shape, 0)
    at = program.values[state.now].bytes
    roots = set()
    for v in window.join.inputs[1:]:
        root = program.values[v].root
        roots.add(root)
        size = program.values[v].bytes
        program.move(root, y, at)
        at += size
    first = next(
        i
        for i, s in enumerate(program.steps)
        if any(v in roots or program.values[v].root == y for v in s.outputs)
    )
    rank = len(program.values[state.now].shape)
    attributes = {"begin": [0] * rank, "stride": [1] * rank}
    shift = Step("strided_slice", [state.now], [begin], attributes, window.cut.node, window.cut.kind)
    program.steps.insert(first, shift)
    program.steps = [s for s in program.steps if s is not window.cut]
    window.join.inputs[0] = begin
    program.move(state.now, y, window.new)
    program.move(state.next, y, window.new)
