"""From a graph to a program of the native core.

Each node becomes an instruction: a kernel or a reference body with its Plan, an inner program for a branch or
a loop body, or a Python callable where shapes are known only at run time. Intermediates lie in the arena
(`memory.py`); what Python code or an inner program may get to see has memory of its own. Views cost nothing.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from mycelia.engine import _C, dispatch
from mycelia.engine.backends import registry
from mycelia.engine.backends.reference import compiled_function
from mycelia.engine.base import config, log, plugins
from mycelia.engine.compile import hoist, memory, placement, program_text
from mycelia.engine.compile.draft import Draft, Window, view_bases
from mycelia.engine.compile.gc_pause import gc_paused
from mycelia.engine.compile.passes import choice, cse, inter_op, lower, order, unfolded
from mycelia.engine.compile.passes.graph_files import GraphFiles, is_part_of
from mycelia.engine.compile.timing import Timing
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ir.interpret import apply
from mycelia.engine.ir.text import to_text
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import LIST

_VIEW, _COMPOSE = 1, 3  # kinds of Plan

_live: weakref.WeakSet[_C.Program] = weakref.WeakSet()

#: Functions that get each program right after it was built, to profile or observe it.
built_listeners: list[Callable[[_C.Program], None]] = []


def live_programs() -> list[_C.Program]:
    """All programs that exist, inner ones of branches and loops and prologues included.

    `program.nodes[i]` is the graph node of instruction i, with op, types and the user's line.
    """
    return list(_live)


def program(
    graph: Graph,
    frozen: Collection[int] = (),
    updates: Sequence[tuple[int, int]] = (),
    tensors: Mapping[int, Any] | None = None,
) -> _C.Program:
    """The program of `graph` for the present device target and settings, built once.

    `program(*tensors)` gives a tuple of Tensors. `frozen`: positions of parameters that seldom change; what
    depends on nothing else is computed when they do. `updates`: (position of an output, position of a
    parameter); the Tensor given as that parameter becomes the output when all went well, written where it
    lies if nobody else looks there, and the output is not returned. `tensors`: the Tensors that are always
    given as parameters at some positions; what depends on them alone is shared with other programs.
    """
    key = variant_key(frozen, updates)
    found = graph.cache.get(key)
    if found is None:
        with gc_paused():
            found = graph.cache[key] = _build(graph, frozen, updates, tensors or {})
    return found


def variant_key(frozen: Collection[int], updates: Sequence[tuple[int, int]]) -> tuple:
    """What a program depends on besides its graph."""
    return registry.target(), choice(), tuple(frozen), tuple(updates), inter_op.side_by_side()


def discard(graph: Graph, unwanted: _C.Program) -> None:
    """Forgets a program of `graph` that will not run any more."""
    for key in [k for k, v in graph.cache.items() if v is unwanted]:
        del graph.cache[key]


def _build(
    graph: Graph, frozen: Collection[int], updates: Sequence[tuple[int, int]], tensors: Mapping[int, Any]
) -> _C.Program:
    frozen = frozen_of(frozen, updates)
    return Builder(lower(graph, registry.target(), frozen), updates, frozen, tensors).build()


def frozen_of(frozen: Collection[int], updates: Sequence[tuple[int, int]]) -> list[int]:
    """The positions of `frozen` that are not updated."""
    changed = {p for _, p in updates}
    return [i for i in frozen if i not in changed]


def announce(made: _C.Program, graph: Graph) -> None:
    """Makes the new program of a lowered graph known to those who observe programs."""
    _live.add(made)
    _show_program(made, graph)
    _attach_observers(made)
    for listener in built_listeners:
        listener(made)


def _attach_observers(made: _C.Program) -> None:
    hook = plugins.manager().hook.mycelia_observers
    observers = [o for found in hook(program=made) for o in found]
    if config.get("debug") >= 2:
        observers.append(_Times(made))
    if not observers:
        return
    nodes = made.nodes

    def after(position: int, outputs: tuple) -> None:
        for observer in observers:
            observer.after(nodes[position], outputs)

    made.observe(after)


class _Times:
    """Tells of each instruction of a program and its time."""

    def __init__(self, made: _C.Program) -> None:
        self.made = weakref.ref(made)
        Timing(made)  # as long as the program lives
        self.places = {node: place for place, node in enumerate(made.nodes)}
        self.before = [0] * len(self.places)

    def after(self, node: Node, outputs: tuple) -> None:
        made, place = self.made(), self.places[node]
        if made is None:
            return
        total = made.timings()[place][1]
        spent, self.before[place] = total - self.before[place], total
        log.show(__name__, f"{node.op.name}({_types(node.inputs)}): {spent / 1e3:.1f} us")


def _show_program(made: _C.Program, graph: Graph) -> None:
    wanted, logger = log.wants(12901, debug=1), log.logger(__name__)
    if wanted or logger.isEnabledFor(logging.INFO):
        report = made.info() if callable(made.info) else made.info
        text = f"{graph.name} is compiled: {len(made.nodes)} instructions, {report.peak} bytes of arena"
        if wanted:
            log.show(__name__, text, 12901)
        else:
            logger.info(text)
    if log.wants(12902, debug=4):
        lines = [f"  {place:4} {node.op.name}({_types(node.inputs)}) -> {_types(node.outputs)}"
                 for place, node in enumerate(made.nodes)]  # fmt: skip
        log.show(__name__, "\n".join([f"{to_text(graph)}\nits program:", *lines]), 12902)


def _types(values: Sequence[Value | None]) -> str:
    return ", ".join("none" if v is None else str(v.type) for v in values)


# ---- shared values -----------------------------------------------------------------------------------------

#: What is computed from Parameters alone, by what is computed from which of them.
_shared: weakref.WeakValueDictionary[Any, _C.Hoisted] = weakref.WeakValueDictionary()


def _hoisted(part: hoist.Part, tensors: Mapping[int, Any]) -> _C.Hoisted:
    """The values of `part`, shared with other programs that need them of the same Tensors."""
    given = [tensors.get(i) for i in part.inputs]
    key = None if any(t is None for t in given) else _prologue_key(part.prologue, given)
    found = None if key is None else _shared.get(key)
    if found is not None and all(known() is t for known, t in zip(found.info, given)):
        return found
    found = _C.Hoisted(Builder(part.prologue).build())
    if key is not None:
        found.info = tuple(map(weakref.ref, given))
        _shared[key] = found
    return found


def _prologue_key(prologue: Graph, tensors: Sequence[Any]) -> Any:
    """The same for graphs that compute the same of these Tensors under the present settings."""
    names: dict[Value | None, Any] = {v: ("tensor", id(t)) for v, t in zip(prologue.parameters, tensors)}
    nodes = []
    for node in prologue.nodes:
        inputs = tuple(names[v] if v in names else cse.value_key(v) for v in node.inputs)
        attrs = tuple((k, cse.hashable(a)) for k, a in node.attrs.items())
        nodes.append((node.op.name, inputs, attrs, tuple(v.type for v in node.outputs)))
        names.update((v, (len(nodes), i)) for i, v in enumerate(node.outputs))
    return registry.target(), inter_op.side_by_side(), tuple(nodes), tuple(names[v] for v in prologue.outputs)


# ---- building ----------------------------------------------------------------------------------------------


class Builder:
    """The program of a lowered graph, which nobody else has, or of a prologue (`frozen` None)."""

    def __init__(
        self,
        graph: Graph,
        updates: Sequence[tuple[int, int]] = (),
        frozen: Collection[int] | None = None,
        tensors: Mapping[int, Any] | None = None,
    ) -> None:
        parts = None if frozen is None else hoist.split(graph, frozen)
        self.graph = graph if parts is None else parts.main
        is_part_of(self.graph, graph)
        self.parts = [] if parts is None else parts.parts
        self.tensors = tensors or {}
        self.inputs = graph.parameters  # without what is hoisted
        self.updates = [(graph.outputs[o], graph.parameters[p]) for o, p in updates]
        taken = {o for o, _ in updates}
        self.outputs = [v for o, v in enumerate(graph.outputs) if o not in taken]
        self.positions = [p for _, p in updates]
        self.plans: dict[Node, _C.Plan | None] = {n: self.plan(n) for n in self.graph.nodes}
        self.home = registry.target().device
        apart = self.home or any(plan and plan.device != self.home for plan in self.plans.values())
        self.devices = self.placed() if apart else {}  # devices of values that do not lie at home
        self.numbers: dict[Value, int] = {}
        self.constants: dict[int, Any] = {}

    def placed(self) -> dict[Value, int]:
        """Puts copies into the graph of the program, and gives the devices of values that lie on others."""
        before = {u: o for o, u in enumerate(self.graph.outputs)}
        devices = placement.place(self.graph, self.plans, self.home)
        GraphFiles(self.graph).after(registry.target().backend.name, "place", "placed")
        now = {u: self.graph.outputs[o] for u, o in before.items()}
        self.outputs = [now[v] for v in self.outputs]
        self.updates = [(now[u], p) for u, p in self.updates]
        self.plans = {n: self.plans[n] if n in self.plans else self.plan(n) for n in self.graph.nodes}
        return devices

    def number(self, value: Value | None) -> int:
        if value is None:
            return -1
        found = self.numbers.get(value)
        if found is None:
            found = self.numbers[value] = len(self.numbers)
            if value.is_constant:
                self.constants[found] = value.constant
        return found

    def build(self) -> _C.Program:
        hoisted = {v for part in self.parts for v in part.values}
        off_device = self.devices.keys()
        draft = Draft(self.plans, self.outside(), self.updates, hoisted, self.estimating, off_device)
        order(self.graph, registry.target(), draft)
        nodes, outside = self.graph.nodes, draft.seen()
        base = view_bases(nodes, self.plans)
        in_arena = draft.in_arena(nodes, base)
        windows = [(w.begin, w.end) for w in draft.windows]
        self.places = memory.place(nodes, self.plans, base, in_arena, windows)
        for value in self.graph.parameters:
            self.number(value)
        self.order, self.frees = self.instructions(nodes, outside), {}
        for value in (*self.outputs, *(u for u, _ in self.updates)):
            self.number(value)
        self.add_frees(base)
        used = {v for node in nodes for v in node.inputs} | outside | {p for _, p in self.updates}
        offsets = self.places.offsets
        report = self.places.report(recomputed=len(draft.clones))
        made = _C.Program(
            tuple(self.type(v) for v in self.numbers),
            tuple((self.numbers[base[v]],) if v in base else offsets.get(v) for v in self.numbers),
            [self.instruction(i) for i in range(len(self.order))],
            tuple(self.numbers[v] if v in used else -1 for v in self.inputs),
            tuple(self.numbers[v] for v in self.outputs), self.constants, report.peak,
            tuple(
                (self.numbers[u], p, u in draft.in_place) for (u, _), p in zip(self.updates, self.positions)
            ),
            tuple(
                (self.hoisted(part), tuple(part.inputs), tuple(self.numbers[v] for v in part.values))
                for part in self.parts
            ),
            self.home, {self.numbers[v]: d for v, d in self.devices.items() if v in self.numbers},
        )  # fmt: skip
        made.nodes = tuple(node for node, *_ in self.order)
        made.task_groups = tuple(_in_instructions(nodes, draft.windows, made.nodes))
        made.info = report
        GraphFiles(self.graph).built(
            lambda: program_text.to_text(
                made, self.graph, self.order, self.plans, self.numbers, self.places, self.frees
            )
        )
        announce(made, self.graph)
        return made

    # What differs for graphs with open sizes (`resizable.py`).

    def type(self, value: Value) -> TensorType:
        return value.type

    def plan(self, node: Node) -> _C.Plan | None:
        """What runs the node, or None for control flow, for what shows only at run time and for
        compositions."""
        inputs, outputs = tuple(v and v.type for v in node.inputs), tuple(v.type for v in node.outputs)
        return plan_of(node, inputs, outputs, node.attrs)

    def hoisted(self, part: hoist.Part) -> _C.Hoisted:
        return _hoisted(part, self.tensors)

    def inner(self, region: Graph, frozen: Collection[int] = ()) -> _C.Program:
        with unfolded():
            return program(region, frozen)

    def attributes(self, node: Node) -> dict[str, Any]:
        return node.attrs

    def estimating(self) -> AbstractContextManager:
        """A context for comparisons whose outcome no program depends on."""
        return contextlib.nullcontext()

    def outside(self) -> set[Value]:
        """Values that Python code, inner programs or the caller get."""
        found = set(self.outputs)
        for node in self.graph.nodes:
            if self.plans[node] is None:
                found.update(v for v in (*node.inputs, *node.outputs) if v is not None)
        return found

    def instructions(
        self, nodes: Sequence[Node], outside: set[Value]
    ) -> list[tuple[Node, tuple[int, ...], tuple[int, ...]]]:
        """Nodes that become instructions, with the numbers of what they read and make."""
        order = []
        for node in nodes:
            plan = self.plans[node]
            used = tuple(self.number(v) for v in node.inputs)
            made = tuple(self.number(v) for v in node.outputs)
            if plan is None or plan.kind != _VIEW or node.outputs[0] in outside:
                order.append((node, used, made))
        return order

    def instruction(self, position: int) -> tuple:
        """As `_C.Program` takes it."""
        node, used, made = self.order[position]
        frees = self.frees.get(position, ())
        special = _CONTROL.get(node.op.name)
        if special is not None:
            return (*special(self, node, used, made), frees)
        plan = self.plans[node]
        if plan is None:
            return "python", _caller(node.op, self.attributes(node)), used, made, frees
        if plan.kind == _VIEW:
            return "view", used, made, frees
        return "op", node.op, plan, used, made, frees

    def add_frees(self, base: dict[Value, Value]) -> None:
        """After its last use a value with memory of its own lets it go."""
        keep = {base.get(v, v) for v in (*self.outputs, *(u for u, _ in self.updates))}
        keep.update(self.graph.parameters)
        last: dict[Value, int] = {}
        for position, (node, _, _) in enumerate(self.order):
            for value in (*node.inputs, *node.outputs):
                if value is not None:
                    last[value] = position
        for value, position in list(last.items()):
            if value in base:
                last[base[value]] = max(last.get(base[value], 0), position)
        for value, position in last.items():
            root = base.get(value, value)
            if (
                root not in keep
                and value not in keep
                and root not in self.places.offsets
                and not root.is_constant
            ):
                self.frees[position] = (*self.frees.get(position, ()), self.numbers[value])


def _in_instructions(
    nodes: Sequence[Node], windows: Sequence[Window], made_from: Sequence[Node]
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


def plan_of(node: Node, inputs: tuple, outputs: tuple, attrs: Mapping[str, Any]) -> _C.Plan | None:
    """What runs `node` with inputs and outputs of these types, or None (see `Builder.plan`)."""
    if node.op.name in _CONTROL or not all(
        v is None or v.type.is_static for v in (*node.inputs, *node.outputs)
    ):
        return None
    values = tuple(attrs[a.name] for a in node.op.definition.attrs)
    plan = dispatch.resolve(node.op, inputs, values, dispatch.counts_of(node.op, len(inputs)), outputs)
    return None if plan.kind == _COMPOSE else plan


def _caller(op: Any, attrs: Mapping[str, Any]) -> Callable:
    definition = op.definition
    if definition.composed and definition.on_host and len(definition.params) == 1:
        # It does something with the Tensors themselves, of whatever types: nothing is to be looked up.
        function = functools.partial(definition.decomposition, **attrs)
        is_list = definition.params[0][1] == LIST
        return (lambda *inputs: function(inputs)) if is_list else function

    def call(*inputs: Any) -> tuple:
        return tuple(apply(op, inputs, attrs))

    return call


# ---- control flow ------------------------------------------------------------------------------------------


def _if(builder: Builder, node: Node, used: Sequence[int], made: Sequence[int]) -> tuple:
    then, otherwise = (builder.inner(node.attrs[name]) for name in ("then", "otherwise"))
    return "if", used[-1], then, otherwise, tuple(used[:-1]), made


def _while(builder: Builder, node: Node, used: Sequence[int], made: Sequence[int]) -> tuple:
    test, body = _loop(builder, node.attrs["test"], node), _loop(builder, node.attrs["body"], node)
    kind = "history" if node.op.name == "while_history" else "while"
    return kind, test, body, node.attrs["carried"], tuple(used), made


def _scan(builder: Builder, node: Node, used: Sequence[int], made: Sequence[int]) -> tuple:
    body, attrs = _loop(builder, node.attrs["body"], node), node.attrs
    return "scan", body, attrs["carried"], attrs["scanned"], attrs["reverse"], tuple(used), made


def _loop(builder: Builder, region: Graph, node: Node) -> _C.Program:
    """A program that is run round after round: what does not change from round to round is computed once."""
    first = node.attrs["carried"] + node.attrs.get("scanned", 0)
    return builder.inner(region, range(first, len(region.parameters)))


def _call(builder: Builder, node: Node, used: Sequence[int], made: Sequence[int]) -> tuple:
    return "python", builder.inner(node.attrs["graph"]), tuple(used), made


def _subgraph(builder: Builder, node: Node, used: Sequence[int], made: Sequence[int]) -> tuple:
    backend, graph = registry.load(node.attrs["backend"]).backend, node.attrs["graph"]
    return "python", compiled_function(backend, graph), tuple(used), made


_CONTROL = {
    "cond": _if, "while_loop": _while, "while_history": _while, "scan": _scan, "custom_call": _call,
    "subgraph": _subgraph,
}  # fmt: skip
