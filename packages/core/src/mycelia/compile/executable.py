"""From a graph to a program of the native core.

Each node becomes an instruction: a kernel or a reference body with its Plan, an inner program for a branch or
a loop body, or a Python callable where shapes are known only at run time. Intermediates lie in the arena
(`memory.py`); what Python code or an inner program may get to see has memory of its own. Views cost nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from mycelia import _C, config, dispatch, plugins
from mycelia.backends import registry
from mycelia.compile import hoist, memory, recompute, schedule, strands
from mycelia.compile.collector import resting
from mycelia.compile.passes import choice, is_off, lower
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.interpret import apply
from mycelia.ir.verify import verify
from mycelia.ops.define import LIST

_KERNEL, _VIEW, _REFERENCE = 0, 1, 2  # kinds of Plan

_live: weakref.WeakSet[_C.Program] = weakref.WeakSet()

#: Functions that get each program right after it was built, to profile or observe it.
built_listeners: list[Callable[[_C.Program], None]] = []


def live_programs() -> list[_C.Program]:
    """All programs that exist, inner ones of branches and loops and prologues included.

    `program.nodes[i]` is the graph node of instruction i, with op, types and the user's line.
    """
    return list(_live)


def program(
    graph: Graph, stable: Collection[int] = (), updates: Sequence[tuple[int, int]] = ()
) -> _C.Program:
    """The program of `graph` for the present device target and settings, built once.

    `program(*tensors)` gives a tuple of Tensors. `stable`: positions of parameters that seldom change; what
    depends on nothing else is computed when they do. `updates`: (position of an output, position of a
    parameter); the Tensor given as that parameter becomes the output when all went well, written where it
    lies if nobody else looks there, and the output is not returned.
    """
    target = registry.target()
    key = target, choice(), tuple(stable), tuple(updates), strands.threads()
    found = graph.cache.get(key)
    if found is None:
        changed = {p for _, p in updates}
        steady = [i for i in stable if i not in changed]
        with resting():
            found = graph.cache[key] = _build(lower(graph, target, steady), steady, updates)
    return found


def discard(graph: Graph, unwanted: _C.Program) -> None:
    """Forgets a program of `graph` that will not run any more."""
    for key in [k for k, v in graph.cache.items() if v is unwanted]:
        del graph.cache[key]


def _build(
    graph: Graph, stable: Collection[int] | None, updates: Sequence[tuple[int, int]] = ()
) -> _C.Program:
    """`stable` None: `graph` is a prologue itself."""
    parts = None if stable is None else hoist.split(graph, stable)
    made = _Builder(graph if parts is None else parts.main, len(graph.parameters), updates).build(parts)
    _live.add(made)
    _attach_observers(made)
    for listener in built_listeners:
        listener(made)
    return made


def _attach_observers(made: _C.Program) -> None:
    hook = plugins.manager().hook.mycelia_observers
    observers = [o for found in hook(program=made) for o in found]
    if not observers:
        return
    nodes = made.nodes

    def after(position: int, outputs: tuple) -> None:
        for observer in observers:
            observer.after(nodes[position], outputs)

    made.observe(after)


class _Builder:
    def __init__(self, graph: Graph, inputs: int, updates: Sequence[tuple[int, int]]) -> None:
        self.graph = graph
        self.inputs = graph.parameters[:inputs]  # the rest is hoisted
        self.updates = [(graph.outputs[o], graph.parameters[p]) for o, p in updates]
        taken = {o for o, _ in updates}
        self.outputs = [v for o, v in enumerate(graph.outputs) if o not in taken]
        self.positions = [p for _, p in updates]
        self.plans: dict[Node, _C.Plan | None] = {n: _plan(n) for n in graph.nodes}
        self.numbers: dict[Value, int] = {}
        self.constants: dict[int, Any] = {}

    def number(self, value: Value | None) -> int:
        if value is None:
            return -1
        found = self.numbers.get(value)
        if found is None:
            found = self.numbers[value] = len(self.numbers)
            if value.is_constant:
                self.constants[found] = value.constant
        return found

    def build(self, parts: hoist.Split | None) -> _C.Program:
        outside = self.outside()
        nodes, in_place = schedule.arrange(self.graph, self.plans, outside, self.updates)
        base = schedule.view_bases(nodes, self.plans)
        outside.update(u for u, _ in self.updates if u not in in_place)
        apart = {base.get(v, v) for v in outside} | in_place
        nodes, twins = self.recomputed(nodes, base, self.in_arena(nodes, base, apart), in_place)
        nodes, windows = strands.arrange(nodes, self.plans.get, outside, strands.threads())
        in_arena = self.in_arena(nodes, base, apart)
        offsets, report = memory.place(nodes, self.plans, base, in_arena, [(w.begin, w.end) for w in windows])
        report.recomputed = twins
        for value in self.graph.parameters:
            self.number(value)
        instructions, made_from = self.instructions(nodes, outside)
        for value in (*self.outputs, *(u for u, _ in self.updates)):
            self.number(value)
        self.add_frees(instructions, made_from, offsets, base)
        used = {v for node in nodes for v in node.inputs} | outside | {p for _, p in self.updates}
        places = [(self.numbers[base[v]],) if v in base else offsets.get(v) for v in self.numbers]
        made = _C.Program(
            tuple(v.type for v in self.numbers), tuple(places), [tuple(i) for i in instructions],
            tuple(self.numbers[v] if v in used else -1 for v in self.inputs),
            tuple(self.numbers[v] for v in self.outputs), self.constants, report.peak,
            tuple((self.numbers[u], p, u in in_place) for (u, _), p in zip(self.updates, self.positions)),
            None if parts is None else self.prologue(parts),
        )  # fmt: skip
        made.nodes = tuple(made_from)
        made.strands = tuple(_in_instructions(nodes, windows, made_from))
        made.info = report
        return made

    def in_arena(self, nodes: Sequence[Node], base: Collection[Value], apart: set[Value]) -> set[Value]:
        return {
            v
            for node in nodes
            for v in node.outputs
            if self.plans[node] is not None and v not in base and v not in apart and v.type.nbytes > 0
        }

    def recomputed(
        self, nodes: list[Node], base: dict[Value, Value], in_arena: set[Value], in_place: set[Value]
    ) -> tuple[list[Node], int]:
        """The order with values that are computed twice, and how many they are. Only a lowered graph, which
        nobody else has, may be changed.
        """
        if is_off("recompute") or is_off("lower"):
            return nodes, 0
        overwritten = {p: u for u, p in self.updates if u in in_place}
        order, twins = recompute.arrange(nodes, self.plans, base, in_arena, overwritten)
        if not twins:
            return nodes, 0
        self.plans.update((twin, self.plans[node]) for twin, node in twins.items())
        self.graph.nodes = order
        if config.get("check"):
            verify(self.graph)
        return order, len(twins)

    def prologue(self, parts: hoist.Split) -> tuple:
        return _build(parts.prologue, None), tuple(parts.inputs), tuple(self.numbers[v] for v in parts.values)

    def outside(self) -> set[Value]:
        """Values that Python code, inner programs or the caller get."""
        found = set(self.outputs)
        for node in self.graph.nodes:
            if self.plans[node] is None:
                found.update(v for v in (*node.inputs, *node.outputs) if v is not None)
        return found

    def instructions(self, nodes: Sequence[Node], outside: set[Value]) -> tuple[list[list], list[Node]]:
        instructions: list[list] = []
        made_from: list[Node] = []
        for node in nodes:
            plan = self.plans[node]
            used = tuple(self.number(v) for v in node.inputs)
            made = tuple(self.number(v) for v in node.outputs)
            special = _CONTROL.get(node.op.name)
            if special is not None:
                instruction = special(node, used, made)
            elif plan is None:
                instruction = ["python", _caller(node), used, made, ()]
            elif plan.kind != _VIEW:
                instruction = ["op", node.op, plan, used, made, ()]
            elif node.outputs[0] in outside:
                instruction = ["view", used, made, ()]
            else:
                continue
            instructions.append(instruction)
            made_from.append(node)
        return instructions, made_from

    def add_frees(
        self,
        instructions: list[list],
        made_from: list[Node],
        offsets: dict[Value, int],
        base: dict[Value, Value],
    ) -> None:
        """After its last use a value with memory of its own lets it go."""
        keep = {base.get(v, v) for v in (*self.outputs, *(u for u, _ in self.updates))}
        keep.update(self.graph.parameters)
        last: dict[Value, int] = {}
        for position, node in enumerate(made_from):
            for value in (*node.inputs, *node.outputs):
                if value is not None:
                    last[value] = position
        for value, position in list(last.items()):
            if value in base:
                last[base[value]] = max(last.get(base[value], 0), position)
        dying: dict[int, list[int]] = {}
        for value, position in last.items():
            root = base.get(value, value)
            if root not in keep and value not in keep and root not in offsets and not root.is_constant:
                dying.setdefault(position, []).append(self.numbers[value])
        for position, instruction in enumerate(instructions):
            instruction[-1] = tuple(dying.get(position, ()))


def _in_instructions(
    nodes: Sequence[Node], windows: Sequence[strands.Window], made_from: Sequence[Node]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The windows in instructions instead of nodes, of which views have none."""
    made = set(made_from)
    before = [0]  # instructions before each node
    for node in nodes:
        before.append(before[-1] + (node in made))
    for window in windows:
        begin, ends = before[window.begin], dict.fromkeys(before[end] for end in window.ends)
        ends.pop(begin, None)
        if len(ends) > 1:
            yield begin, tuple(ends)


def _counts(node: Node) -> tuple[int, ...]:
    params = node.op.definition.params
    if params and params[0][1] == LIST:
        return (len(node.inputs) - len(params) + 1, *(1 for _ in params[1:]))
    return tuple(1 for _ in params)


def _plan(node: Node) -> _C.Plan | None:
    """What runs the node, or None for control flow, for what shows only at run time and for compositions."""
    if node.op.name in _CONTROL or not all(
        v is None or v.type.is_static for v in (*node.inputs, *node.outputs)
    ):
        return None
    types = tuple(v and v.type for v in node.inputs)
    attrs = tuple(node.attrs[a.name] for a in node.op.definition.attrs)
    plan = dispatch.resolve(node.op, types, attrs, _counts(node))
    return plan if plan.kind in (_KERNEL, _VIEW, _REFERENCE) else None


def _caller(node: Node) -> Callable:
    op, attrs = node.op, node.attrs

    def call(*inputs: Any) -> tuple:
        return tuple(apply(op, inputs, attrs))

    return call


# ---- control flow ------------------------------------------------------------------------------------------


def _if(node: Node, used: Sequence[int], made: Sequence[int]) -> list:
    then, otherwise = program(node.attrs["then"]), program(node.attrs["otherwise"])
    return ["if", used[-1], then, otherwise, tuple(used[:-1]), made, ()]


def _while(node: Node, used: Sequence[int], made: Sequence[int]) -> list:
    test, body = _loop(node.attrs["test"], node), _loop(node.attrs["body"], node)
    kind = "history" if node.op.name == "while_history" else "while"
    return [kind, test, body, node.attrs["carried"], tuple(used), made, ()]


def _scan(node: Node, used: Sequence[int], made: Sequence[int]) -> list:
    body, attrs = _loop(node.attrs["body"], node), node.attrs
    return ["scan", body, attrs["carried"], attrs["scanned"], attrs["reverse"], tuple(used), made, ()]


def _loop(region: Graph, node: Node) -> _C.Program:
    """A program that is run round after round: what does not change from round to round is computed once."""
    first = node.attrs["carried"] + node.attrs.get("scanned", 0)
    return program(region, stable=range(first, len(region.parameters)))


def _call(node: Node, used: Sequence[int], made: Sequence[int]) -> list:
    return ["python", program(node.attrs["graph"]), tuple(used), made, ()]


_CONTROL = {"cond": _if, "while_loop": _while, "while_history": _while, "scan": _scan, "custom_call": _call}
