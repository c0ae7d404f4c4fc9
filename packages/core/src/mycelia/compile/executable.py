"""From a graph to a program of the native core.

Each node becomes an instruction: a kernel, a view or a reference body with its Plan, an inner program for a
branch or a loop body, or a Python callable where shapes are known only at run time. Intermediates of kernels
lie in the arena (`memory.py`); what Python code or an inner program may get to see has memory of its own.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from mycelia import _C, dispatch
from mycelia.backends import registry
from mycelia.compile.memory import Interval, plan_offsets
from mycelia.compile.passes import choice, lower
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.interpret import apply
from mycelia.ops import control
from mycelia.ops.define import LIST

_KERNEL, _VIEW, _REFERENCE = 0, 1, 2  # kinds of Plan


def program(graph: Graph) -> _C.Program:
    """The program of `graph` for the present device target and settings, built once: `program(*tensors)`
    gives a tuple of Tensors.
    """
    target = registry.target()
    key = target, choice()
    found = graph.cache.get(key)
    if found is None:
        found = graph.cache[key] = _Builder(lower(graph, target)).build()
        _live.add(found)
        for listener in built_listeners:
            listener(found)
    return found


_live: weakref.WeakSet[_C.Program] = weakref.WeakSet()

#: Functions that get each program right after it was built, to profile or observe it.
built_listeners: list[Callable[[_C.Program], None]] = []


def live_programs() -> list[_C.Program]:
    """All programs that exist, inner ones of branches and loops included.

    `program.nodes[i]` is the graph node of instruction i, with op, types and the user's line.
    """
    return list(_live)


class _Builder:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.slots: dict[Value, int] = {}
        self.constants: dict[int, Any] = {}
        self.instructions: list[list] = []
        self.base: dict[Value, Value] = {}  # a view -> the value whose memory it is
        self.in_arena: list[tuple[Value, int, int]] = []  # value, instruction, output position
        self.own_memory: set[Value] = set()  # values that others may keep
        self.last_use: dict[Value, int] = {}

    def slot(self, value: Value | None) -> int:
        if value is None:
            return -1
        found = self.slots.get(value)
        if found is None:
            found = self.slots[value] = len(self.slots)
            if value.is_constant:
                self.constants[found] = value.constant
        return found

    def memory(self, value: Value) -> Value:
        while value in self.base:
            value = self.base[value]
        return value

    def build(self) -> _C.Program:
        inputs = tuple(self.slot(v) for v in self.graph.parameters)
        for position, node in enumerate(self.graph.nodes):
            self.add(position, node)
        outputs = tuple(self.slot(v) for v in self.graph.outputs)
        self.own_memory.update(self.memory(v) for v in self.graph.outputs)
        arena = self.place()
        self.add_frees()
        made = _C.Program(
            len(self.slots), [tuple(i) for i in self.instructions], inputs, outputs, self.constants, arena
        )
        made.nodes = tuple(self.graph.nodes)
        return made

    def add(self, position: int, node: Node) -> None:
        for value in node.inputs:
            if value is not None:
                self.last_use[value] = position
                memory = self.memory(value)
                self.last_use[memory] = max(self.last_use.get(memory, position), position)
        used = tuple(self.slot(v) for v in node.inputs)
        made = tuple(self.slot(v) for v in node.outputs)
        special = _CONTROL.get(node.op.name)
        if special is not None:
            self.keep(node)
            self.instructions.append(special(node, used, made))
            return
        plan = _plan(node)
        if plan is None:
            self.keep(node)
            self.instructions.append(["python", _caller(node), used, made, ()])
            return
        if plan.kind == _VIEW:
            self.base[node.outputs[0]] = node.inputs[0]
        elif plan.kind == _KERNEL:
            self.in_arena += [(v, position, k) for k, v in enumerate(node.outputs)]
        self.instructions.append(["op", node.op, plan, used, made, [-1] * len(made), ()])

    def keep(self, node: Node) -> None:
        self.own_memory.update(self.memory(v) for v in node.inputs if v is not None)

    def place(self) -> int:
        """Gives arena offsets to the intermediates that may have one; returns the arena's size."""
        for value, memory in [(v, self.memory(v)) for v in self.base]:
            self.last_use[memory] = max(self.last_use.get(memory, 0), self.last_use.get(value, 0))
        chosen = [(v, at, k) for v, at, k in self.in_arena if v not in self.own_memory and v.type.nbytes > 0]
        intervals = [Interval(v.type.nbytes, at, self.last_use.get(v, at)) for v, at, _ in chosen]
        offsets, total = plan_offsets(intervals)
        for (_, at, k), offset in zip(chosen, offsets):
            self.instructions[at][5][k] = offset
        for instruction in self.instructions:
            if instruction[0] == "op":
                instruction[5] = tuple(instruction[5])
        return total

    def add_frees(self) -> None:
        """After its last use a slot is emptied, so that memory of its own goes back at once."""
        keep = set(self.graph.outputs)
        dying: dict[int, list[int]] = {}
        for position, node in enumerate(self.graph.nodes):
            for value in node.outputs:
                self.last_use.setdefault(value, position)
        for value, position in self.last_use.items():
            if value not in keep and not value.is_constant and value in self.slots:
                dying.setdefault(position, []).append(self.slots[value])
        for position, instruction in enumerate(self.instructions):
            instruction[-1] = tuple(dying.get(position, ()))


def _counts(node: Node) -> tuple[int, ...]:
    params = node.op.definition.params
    if params and params[0][1] == LIST:
        return (len(node.inputs) - len(params) + 1, *(1 for _ in params[1:]))
    return tuple(1 for _ in params)


def _plan(node: Node) -> _C.Plan | None:
    """What runs the node, or None if that shows only at run time or is a composition of other ops."""
    if not all(v is None or v.type.is_static for v in (*node.inputs, *node.outputs)):
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
    test, body, carried = node.attrs["test"], node.attrs["body"], node.attrs["carried"]
    unchanged = len(used) - carried
    if unchanged:  # the native loop hands all inputs on from round to round
        whole = Graph(body.name)
        whole.parameters, whole.nodes = body.parameters, body.nodes
        whole.outputs = [*body.outputs, *body.parameters[carried:]]
        body = whole
    return ["while", program(test), program(body), tuple(used), (*made, *([-1] * unchanged)), ()]


def _history(node: Node, used: Sequence[int], made: Sequence[int]) -> list:
    test, body = program(node.attrs["test"]), program(node.attrs["body"])
    types = node.attrs["body"].parameter_types[: node.attrs["carried"]]

    def call(*inputs: Any) -> tuple:
        return control.run_while_history(inputs, test, body, types)

    return ["python", call, tuple(used), made, ()]


def _scan(node: Node, used: Sequence[int], made: Sequence[int]) -> list:
    attrs = node.attrs
    body = program(attrs["body"])
    row_types = attrs["body"].output_types[attrs["carried"] :]

    def call(*inputs: Any) -> tuple:
        return control.run_scan(inputs, body, attrs["carried"], attrs["scanned"], attrs["reverse"], row_types)

    return ["python", call, tuple(used), made, ()]


def _call(node: Node, used: Sequence[int], made: Sequence[int]) -> list:
    return ["python", program(node.attrs["graph"]), tuple(used), made, ()]


_CONTROL = {"cond": _if, "while_loop": _while, "while_history": _history, "scan": _scan, "custom_call": _call}
