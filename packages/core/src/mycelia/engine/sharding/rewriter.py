"""Writes the nodes of one rank's graph: ops on parts, and the collectives that bring a value into another
layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.engine.communication import world
from mycelia.engine.ir.graph import Builder, Graph, Value
from mycelia.engine.ops.arrays.slicing import _strided_slice
from mycelia.engine.ops.define import find
from mycelia.engine.sharding.mesh import Atoms, Mesh, Placed


class Rewriter:
    """Appends to `graph`. Values are those of this rank."""

    def __init__(self, graph: Graph, mesh: Mesh) -> None:
        self.graph, self.mesh = graph, mesh
        self.builder = Builder(graph)
        self._moved: dict[tuple[Value, Placed, Placed], Value] = {}
        self._groups: dict[tuple[int, ...], str] = {}

    def emit(self, name: Any, inputs: Sequence[Value | None], **attrs: Any) -> list[Value]:
        """The results of an op, given by its name or itself."""
        return self.builder.emit(find(name) if isinstance(name, str) else name, inputs, attrs)

    def one(self, name: Any, inputs: Sequence[Value | None], **attrs: Any) -> Value:
        """The result of an op that has one."""
        return self.emit(name, inputs, **attrs)[0]

    def number(self, value: Any, dtype: Any) -> Value:
        """A constant []."""
        from mycelia.engine.capture.trace import number_tensor

        return self.builder.constant(number_tensor(value, dtype))

    def group(self, atoms: Atoms) -> str:
        """The name of the group of ranks that differ in `atoms`, which is made if it is not there."""
        ranks = tuple(self.mesh.members(atoms))
        if ranks == tuple(range(self.mesh.size)):
            return world.WORLDS[0]
        name = self._groups.get(ranks)
        if name is None:
            name = self._groups[ranks] = "layout:" + ",".join(map(str, ranks))
            here = world.current()
            if here is not None and here.ranks(name) is None:
                here.create(name, ranks)
        return name

    # ---- layouts -------------------------------------------------------------------------------------------

    def moved(self, value: Value, now: Placed, then: Placed) -> Value:
        """`value`, which lies as `now` says, as `then` says, which has nothing to be reduced."""
        if now == then:
            return value
        key = value, now, then
        found = self._moved.get(key)
        if found is None:
            found = self._moved[key] = self._move(value, now, then)
        return found

    def _move(self, value: Value, now: Placed, then: Placed) -> Value:
        if now.partial:
            value, now = self._reduced(value, now, then)
        dims = list(now.dims)
        for axis, (given, wanted) in enumerate(zip(now.dims, then.dims)):
            kept = _common(given, wanted)
            if kept != given:
                value = self.gathered(value, axis, given[len(kept) :])
                dims[axis] = kept
        return self._sliced(value, tuple(w[len(d) :] for d, w in zip(dims, then.dims)))

    def _reduced(self, value: Value, now: Placed, then: Placed) -> tuple[Value, Placed]:
        """The operands of a reduction combined: to all, or to each rank its part where that is what is
        wanted.
        """
        for axis, (given, wanted) in enumerate(zip(now.dims, then.dims)):
            together = given + now.partial
            if now.how == "sum" and wanted[: len(together)] == together:
                dims = (*now.dims[:axis], together, *now.dims[axis + 1 :])
                return self._scattered(value, axis, now.partial), Placed(dims)
        group = self.group(now.partial)
        if now.how == "sum":
            value = self.one("all_reduce_sum", [value], reduction="sum", group=group)
        else:
            value = self.one("all_reduce_pick", [value], reduction=now.how, group=group)
        return value, Placed(now.dims)

    def gathered(self, value: Value, axis: int, atoms: Atoms) -> Value:
        """The parts of an axis joined."""
        size, group = self.mesh.parts(atoms), self.group(atoms)
        value = self._first(value, axis)
        return self._back(self.one("gather_all", [value], size=size, group=group), axis)

    def _scattered(self, value: Value, axis: int, atoms: Atoms) -> Value:
        size, group = self.mesh.parts(atoms), self.group(atoms)
        value = self._first(value, axis)
        return self._back(
            self.one("reduce_scatter_sum", [value], size=size, reduction="sum", group=group), axis
        )

    def _first(self, value: Value, axis: int) -> Value:
        """`axis` in front, where collectives join and cut."""
        rest = [d for d in range(value.type.rank) if d != axis]
        return self.one("transpose", [value], dims=(axis, *rest)) if axis else value

    def _back(self, value: Value, axis: int) -> Value:
        order = [*range(1, axis + 1), 0, *range(axis + 1, value.type.rank)]
        return self.one("transpose", [value], dims=tuple(order)) if axis else value

    def _sliced(self, value: Value, atoms: Sequence[Atoms]) -> Value:
        """This rank's part of each axis."""
        if not any(atoms):
            return value
        size = tuple(n // self.mesh.parts(a) for n, a in zip(value.type.shape, atoms))
        begin = tuple(n * self.mesh.index(a) for n, a in zip(size, atoms))
        return self.one(_strided_slice, [value], begin=begin, size=size, stride=(1,) * len(size), shape=size)


def _common(a: Atoms, b: Atoms) -> Atoms:
    """What both begin with."""
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return a[:n]
