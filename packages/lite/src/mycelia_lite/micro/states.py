"""Variables: what they hold next is written where they lie, or copied there at the end of a run."""

from __future__ import annotations

from mycelia_lite.micro.lower import Call, Map
from mycelia_lite.micro.memory import FREE
from mycelia_lite.micro.program import Program, State


def settle_states(program: Program, items: list[Call | Map]) -> None:
    """Let what variables hold next be written where they lie, or copy it there at the end.

    Errors: NotImplementedError for variables that exchange what they hold.
    """
    copied: list[State] = []
    _sink_updates(program, items)
    for state in program.states:
        now, following = program.values[state.now], program.values[state.next]
        if (following.root, following.offset) == (now.root, now.offset):
            continue
        if _fits(program, state) and _is_free(program, items, state):
            program.move(following.root, state.now, 0)
        else:
            copied.append(state)
    for k, state in enumerate(copied):
        if any(_meet(program, later.next, state.now) for later in copied[k + 1 :]):
            raise NotImplementedError("Micro: variables that exchange what they hold")
    for state in copied:
        one = [1] * 8
        fields = {"size": one, "from": [0] * 8, "to": [0] * 8, "begin_from": 0, "begin_to": 0}
        fields["bytes"] = program.values[state.next].bytes
        items.append(
            Call(
                "micro_copy", "micro_move", fields, [state.next], [state.now], "", "SetState",
                distances={state.next: FREE},
            )
        )  # fmt: skip


def _fits(program: Program, state: State) -> bool:
    """Whether what the variable holds next has memory of its own, as much as the variable."""
    now, following = program.values[state.now], program.values[state.next]
    root = program.values[following.root]
    borders = {program.values[b.value].root for b in program.inputs + program.outputs}
    others = {program.values[s.next].root for s in program.states if s is not state}
    variables = {program.values[s.now].root for s in program.states}
    if following.root in borders | others | variables:
        return False
    return root.data is None and root.bytes == now.bytes == following.bytes and following.offset == 0


def _is_free(program: Program, items: list[Call | Map], state: State) -> bool:
    """Whether nobody reads the variable when what it holds next is made; who makes it may read ahead."""
    root = program.values[state.next].root
    makers = [t for t, item in enumerate(items) if any(program.values[v].root == root for v in item.outputs)]
    if not makers:
        return False
    for t, item in enumerate(items):
        views = {v for v in item.inputs if v >= 0 and _meet(program, v, state.now)}
        if not views or t < makers[0]:
            continue
        if t > makers[0] or len(item.outputs) > 1:
            return False
        out = program.values[item.outputs[0]]
        place = program.values[state.now].offset + out.offset
        if any(program.values[v].offset - place < item.distances.get(v, float("inf")) for v in views):
            return False
    return True


def _meet(program: Program, a: int, b: int) -> bool:
    """Whether two values share bytes."""
    x, y = program.values[a], program.values[b]
    return x.root == y.root and x.offset < y.offset + y.bytes and y.offset < x.offset + x.bytes


def _sink_updates(program: Program, items: list[Call | Map]) -> None:
    """Make what a variable holds next when all else has read what it is made of: that need not live on."""
    for state in program.states:
        root = program.values[state.next].root
        makers = [item for item in items if any(program.values[v].root == root for v in item.outputs)]
        read = any(program.values[v].root == root for item in items for v in item.inputs if v >= 0)
        borders = {program.values[b.value].root for b in program.outputs}
        if len(makers) != 1 or read or root in borders:
            continue
        sources = {program.values[v].root for v in makers[0].inputs if v >= 0}
        last = max(
            t
            for t, item in enumerate(items)
            if any(program.values[v].root in sources for v in item.inputs if v >= 0)
        )
        at = next(t for t, item in enumerate(items) if item is makers[0])
        items.insert(last, items.pop(at))
