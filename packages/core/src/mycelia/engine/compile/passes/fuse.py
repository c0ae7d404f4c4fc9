"""Fusion: connected elementwise nodes of one iteration space become one `fused_map`, one pass over memory.

Reductions join the nodes that make what they reduce: of everything, of leading axes (columns), or of trailing
axes (rows), and what follows from a row's result joins too. What may be fused, the blocks of ops say
(`ops/fusion.py`).

Each node gets a stage, a number that never falls along an edge and rises on every edge that cannot lie within
a group: into another space, or out of a node that is not fused. Groups are the connected nodes of one space
and stage, so no path leaves a group and comes back. All steps are linear in the size of the graph.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mycelia.engine.backends.registry import LoadedBackend
from mycelia.engine.base import dtypes
from mycelia.engine.ir.graph import Graph, Node, Value, flat_parts
from mycelia.engine.ir.sizes import key_of
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ir.walk import order, substitute
from mycelia.engine.ops.define import find
from mycelia.engine.ops.fusion import KINDS
from mycelia.engine.ops.infer import broadcast_shapes, normalize_axes
from mycelia.engine.ops.lowered import fused_steps
from mycelia.engine.ops.lowered.fused_program import Program

_SUMS = {"sum": ("dim", "keepdim"), "mean": ("axis", "keep_dims")}
_EXTREMES = {"reduce_max": "max_row", "reduce_min": "min_row"}
_VIEWS = ("reshape", "expand_dims")
_ELEMENTWISE, _REDUCE, _ALIAS = range(3)


@dataclass(slots=True)
class _Member:
    """How a node takes part in a group."""

    node: Node
    role: int
    space: tuple[int, ...]
    width: int = fused_steps.FULL  # of what it gives: FULL, ROW, ALL, COLUMN
    kept: int = 0  # reduced axes that stay with size 1
    primitive: str = ""
    divisor: float = 1.0
    stage: int = 0
    reduced: Value | None = None  # what a reduction reduces: its input, or what that is a reshape of

    @property
    def reads(self) -> list[Value]:
        return self.node.inputs if self.reduced is None else [self.reduced]


def run(graph: Graph, backend: LoadedBackend) -> int:
    """Fuses in place where `backend` has the kernel; returns the number of groups."""
    if backend.kernel("fused_map", []) is None:
        return 0
    plan = _Plan(graph)
    plan.find_members()
    plan.delay()
    changed = sum(plan.emit(group) for group in plan.groups())
    if changed:
        plan.apply()
    return changed


class _Plan:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.members: dict[Node, _Member] = {}
        self.stage: dict[Node, int] = {}
        self.axes: dict[tuple, int] = {}  # space -> trailing axes of its rows, the same in all groups
        self.users: dict[Value, list[Node]] = {}
        self.outputs = set(graph.outputs)
        self.numbers: dict[Value, float | int | None] = {}
        self.replaced: dict[Value, Value] = {}
        self.gone: set[Node] = set()
        self.added: dict[Node, Node] = {}  # last node of a group -> the fused one

    # ---- who takes part ----

    def find_members(self) -> None:
        floor = 0  # groups do not reach across an effect
        for node in self.graph.nodes:
            for value in node.inputs:
                if value is not None:
                    self.users.setdefault(value, []).append(node)
            member = self._member(node)
            stage = floor
            for value in node.inputs if member is None else member.reads:
                producer = value.producer if value is not None else None
                if producer is None or producer not in self.stage:
                    continue
                stage = max(stage, self.stage[producer] + self._step(value, member))
            self.stage[node] = stage
            if member is not None:
                self.members[node] = member
                member.stage = stage
            if node.has_effect:
                floor = stage + 1

    def _step(self, value: Value, member: _Member | None) -> int:
        """By how much the stage rises from the producer of `value` to a node that reads it."""
        if member is None:
            return 0
        source = self.members.get(value.producer)
        return int(source is None or not _same(source, member) or not self._joins(value, source, member))

    def _joins(self, value: Value, source: _Member, member: _Member) -> bool:
        """Whether `member` may read `value`, of the same space, within a group.

        Results of rows lie along the leading axes of the space. A reader takes them there only if the reduced
        axes were kept: else broadcasting lines them up with other axes, be their sizes equal or not.
        """
        if source.width == fused_steps.ROW and member.role != _ALIAS:
            return value.type.shape == self._row_shape(source.space)
        return source.width in (fused_steps.FULL, fused_steps.ROW)

    def _member(self, node: Node) -> _Member | None:
        if len(node.outputs) != 1 or not node.outputs[0].type.is_static:
            return None
        if any(v is None or not v.type.is_static for v in node.inputs):
            return None
        name, out = node.op.name, node.outputs[0].type
        if name in _SUMS or name in _EXTREMES or name == "sum_to":
            return self._reduction(node)
        if out.size == 0:
            return None
        if name in _VIEWS:
            source = self._row_of(node.inputs[0])
            if source is not None and out.shape == self._row_shape(source.space):
                return _Member(node, _ALIAS, source.space, fused_steps.ROW)
            return None
        fusion = node.op.definition.fusion
        if fusion is None or not fusion.fits(tuple(v.type.dtype for v in node.inputs), out.dtype):
            return None
        for value in node.inputs:
            source = self._row_of(value)
            if source is None or out.shape == source.space or out.shape != self._row_shape(source.space):
                continue
            if value.type.shape == out.shape and all(_is_whole(v, out.shape) for v in node.inputs):
                return _Member(node, _ELEMENTWISE, source.space, fused_steps.ROW)
        return _Member(node, _ELEMENTWISE, out.shape)

    def _row_of(self, value: Value) -> _Member | None:
        source = self.members.get(value.producer) if value.producer is not None else None
        return source if source is not None and source.width == fused_steps.ROW else None

    def _row_shape(self, space: tuple) -> tuple:
        axes = self.axes[key_of(space)]
        return space[: len(space) - axes] + (1,) * axes

    def _reduction(self, node: Node) -> _Member | None:
        """A reduction in one of the three ways there are; but for that of rows, whose result may come back to
        the same space, of a value that a member makes: else its own kernel is as good.
        """
        (source,) = node.inputs
        reduced = source
        while reduced.producer is not None and reduced.producer.op.name == "reshape":
            reduced = reduced.producer.inputs[0]
        maker = self.members.get(reduced.producer) if reduced.producer is not None else None
        if maker is None:
            reduced = source
        elif maker.width != fused_steps.FULL or reduced.type.shape != maker.space:
            return None
        space, out = source.type.shape, node.outputs[0].type
        if source.type.dtype is not dtypes.float32 or out.dtype is not dtypes.float32 or not space:
            return None
        name, attrs, rank = node.op.name, node.attrs, len(space)
        if name == "sum_to":
            lead = rank - len(out.shape)
            axes = tuple(d for d in range(rank) if d < lead or out.shape[d - lead] == 1 and space[d] != 1)
            kept = sum(d >= lead for d in axes)
        else:
            axis, keep = _SUMS.get(name, ("axis", "keepdims"))
            axes = normalize_axes(attrs[axis], rank)
            kept = len(axes) if attrs[keep] else 0
        if not axes:
            return None
        count = math.prod(space[d] for d in axes)
        if out.size == 0 or count == 0:
            return None
        if name == "mean" and type(count) is SymInt:  # the divisor is a number of the program
            return None
        divisor = float(count) if name == "mean" else 1.0
        member = _Member(node, _REDUCE, space, fused_steps.ALL, kept, "sum_all", divisor, reduced=reduced)
        if name in _EXTREMES:
            member.primitive = _EXTREMES[name]
        if len(axes) == rank:
            member.space = reduced.type.shape
            return None if name in _EXTREMES or maker is None else member
        if axes == tuple(range(len(axes))) and maker is not None:
            left = rank - len(axes)
            member.space = reduced.type.shape
            if name in _EXTREMES or member.space[-left:] != space[-left:]:
                return None
            if self.axes.setdefault(key_of(member.space), left) != left:
                return None
            member.width, member.primitive = fused_steps.COLUMN, "sum_columns"
            return member
        member.reduced = source
        if axes == tuple(range(rank - len(axes), rank)) and count <= fused_steps.MAX_ROW:
            if kept not in (0, len(axes)) or self.axes.setdefault(key_of(space), len(axes)) != len(axes):
                return None
            member.width = fused_steps.ROW
            member.primitive = _EXTREMES.get(name, "sum_row")
            return member
        return None

    def number(self, value: Value) -> float | int | None:
        """The number that all elements of a constant are, if they are one."""
        if not value.is_constant or value.type.dtype not in KINDS or value.type.size == 0:
            return None
        if value not in self.numbers:
            elements = value.constant.asnumpy().reshape(-1)
            bits = elements.view(f"i{elements.itemsize}")
            self.numbers[value] = elements[0].item() if (bits == bits[0]).all() else None
        return self.numbers[value]

    # ---- stages and groups ----

    def delay(self) -> None:
        """Moves nodes to the stage of their only consumers, so that a chain is not cut where another input
        of the consumer comes late.
        """
        for node in reversed(self.graph.nodes):
            member = self.members.get(node)
            if member is None or member.width != fused_steps.FULL or node.outputs[0] in self.outputs:
                continue
            latest = None
            for user in self.users.get(node.outputs[0], ()):
                follower = self.members.get(user)
                if follower is None or not _same(follower, member):
                    latest = None
                    break
                latest = follower.stage if latest is None else min(latest, follower.stage)
            if latest is not None:
                member.stage = self.stage[node] = max(latest, member.stage)

    def groups(self) -> list[list[_Member]]:
        """Members connected by edges within one space and stage, in order of execution."""
        parent: dict[Node, Node] = {node: node for node in self.members}

        def root(node: Node) -> Node:
            while parent[node] is not node:
                parent[node] = parent[parent[node]]
                node = parent[node]
            return node

        for node, member in self.members.items():
            for value in member.reads:
                source = self.members.get(value.producer) if value.producer is not None else None
                if source is not None and source.stage == member.stage and not self._step(value, member):
                    parent[root(node)] = root(source.node)
        found: dict[Node, list[_Member]] = {}
        for node, member in self.members.items():
            found.setdefault(root(node), []).append(member)
        return list(found.values())

    # ---- programs ----

    def emit(self, group: list[_Member]) -> int:
        """Replaces the nodes of `group` by a fused one, or by two and more where limits are passed."""
        if sum(m.role != _ALIAS for m in group) < 2:
            return 0
        made = _Writer(self, group).node()
        if made is not None:
            node, outputs = made
            for member in group:
                self.gone.add(member.node)
            self.replaced.update(zip(outputs, node.outputs))
            self.added[group[-1].node] = node
            return 1
        half = len(group) // 2
        return self.emit(group[:half]) + self.emit(group[half:])

    def apply(self) -> None:
        nodes = []
        for node in self.graph.nodes:
            if node not in self.gone:
                nodes.append(node)
            if node in self.added:
                nodes.append(self.added[node])
        self.graph.nodes = nodes
        substitute(self.graph, self.replaced)
        self.graph.nodes = order(self.graph)
        _drop_unused(self.graph)


class _Writer:
    """The program of one group."""

    def __init__(self, plan: _Plan, group: list[_Member]) -> None:
        self.plan, self.group = plan, group
        self.space = group[0].space
        self.nodes = {m.node for m in group}
        self.inside = {m.node.outputs[0] for m in group}
        axes = plan.axes.get(key_of(self.space), 0)
        rows = any(m.width == fused_steps.ROW for m in group)
        columns = any(m.width == fused_steps.COLUMN for m in group)
        self.row_shape = self.space[: len(self.space) - axes] + (1,) * axes
        self.program = Program(axes if rows else 0, axes if columns else 0)
        self.inputs: list[Value] = []
        self.given: dict[tuple[Value, int], int] = {}  # input and width -> value of the program
        self.values: dict[Value, int] = {}

    def node(self) -> tuple[Node, list[Value]] | None:
        """The fused node and which values its outputs stand for; None if the group cannot be one."""
        outside = {v for m in self.group for v in m.reads if v not in self.inside}
        shapes = [_seen_through(v).type.shape for v in outside if self.plan.number(v) is None]
        self.see_through = broadcast_shapes(*shapes) == self.space
        if not self.see_through and broadcast_shapes(*(v.type.shape for v in outside)) != self.space:
            return None
        for member in self.group:
            self.write(member)
        outputs = []
        for member in self.group:
            value = member.node.outputs[0]
            if not self.is_needed(value):
                continue
            is_kept = member.width == fused_steps.ROW and member.role != _REDUCE
            kept = self.plan.axes[key_of(self.space)] if is_kept else member.kept
            self.program.output(self.values[value], member.width, kept, value.type.dtype)
            outputs.append(value)
        if not outputs:
            return None
        code = self.program.code()
        if code is None:
            return None
        types: list[TensorType] = [v.type for v in outputs]
        node = Node(find("fused_map"), self.inputs, {"code": code}, types, self.group[-1].node.location)
        node.parts = flat_parts(m.node for m in self.group)
        return node, outputs

    def is_needed(self, value: Value) -> bool:
        """Whether others than the group use `value` or a reshape of it."""
        if value in self.plan.outputs:
            return True
        for user in self.plan.users.get(value, ()):
            if user in self.nodes:
                continue
            if user.op.name != "reshape" or self.is_needed(user.outputs[0]):
                return True
        return False

    def write(self, member: _Member) -> None:
        p, node = self.program, member.node
        if member.role == _ALIAS:
            found = self.read(node.inputs[0], member.width)
        elif member.role == _ELEMENTWISE:
            values = [self.read(v, member.width) for v in node.inputs]
            found = node.op.definition.fusion.emit(p, *values, **node.attrs)
        else:
            source = self.read(member.reads[0], fused_steps.FULL)
            if member.width == fused_steps.ROW:
                found = p.step(member.primitive, source)
                if member.divisor != 1.0:
                    found = p.step("div", found, p.constant(member.divisor))
            else:
                found = p.step(member.primitive, source, p.constant(member.divisor))
        self.values[node.outputs[0]] = found

    def read(self, value: Value, width: int) -> int:
        if value in self.inside:
            return self.values[value]
        number = self.plan.number(value)
        if number is not None and (self.see_through or value.type.size == 1):
            return self.program.constant(number, KINDS[value.type.dtype])
        source = _seen_through(value) if self.see_through else value
        if width == fused_steps.FULL or _is_whole(source, self.row_shape):
            value = source
        key = value, width
        found = self.given.get(key)
        if found is None:
            found = self.given[key] = self.program.input(value.type.dtype, width)
            self.inputs.append(value)
        return found


def _same(a: _Member, b: _Member) -> bool:
    """Whether two members have one space: by the formulas of open sizes, on which it hangs what rows are."""
    return key_of(a.space) == key_of(b.space)


def _is_whole(value: Value, shape: tuple[int, ...]) -> bool:
    """Whether `value` has an element for each of `shape`, or one for all."""
    return value.type.shape == shape or value.type.size == 1


def _seen_through(value: Value) -> Value:
    """What a broadcast repeats: a fused node broadcasts by itself."""
    while value.producer is not None and value.producer.op.name == "broadcast_to":
        value = value.producer.inputs[0]
    return value


def _drop_unused(graph: Graph) -> None:
    """Without the broadcasts and reshapes that groups looked through."""
    used = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if node.op.name not in ("broadcast_to", "reshape") or node.outputs[0] in used:
            kept.append(node)
            used.update(v for v in node.inputs if v is not None)
    graph.nodes = kept[::-1]
