"""Layouts that operators without one take from those around them (`search_mode="sharding_propagation"`).

The layouts that the user wrote go forwards, as they do where nothing is searched, and Parameters lie as the
first operator at which they are divided needs them. Then they go backwards: what makes an operand makes it
as its user needs it, if nothing else is known of it, so that it need not be cut or gathered in between. Both
take turns until nothing changes. What has no rule for parts gets whole operands.
"""

from __future__ import annotations

from collections.abc import Iterator

from mycelia.engine.base.origins import GRADIENTS, ROOT
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.sharding.mesh import Placed, whole
from mycelia.engine.sharding.partition import Known, Partition, is_branch, is_layout
from mycelia.engine.sharding.rules import Division, rule_of


def partition(graph: Graph, size: int, rank: int, known: Known, propagates: bool) -> Partition:
    """The division of a graph; `propagates`: layouts go backwards, too. Errors: as `Partition` has."""
    return (Propagated if propagates else Partition)(graph, size, rank, known)


class Propagated(Partition):
    """A division for which operators take layouts from those behind them, too."""

    def _settle(self) -> bool:
        if self._take_parameters() or self._go_back():
            return True
        rest = {value: whole(value.type.rank) for value in self.free - self.fixed.keys()}
        self.fixed.update(rest)
        return False

    def _refuse(self, node: Node) -> None:
        """Whole operands serve."""

    def _forward(self) -> Iterator[Node]:
        """Nodes of the network and its loss that have operands to divide."""
        for node in self.whole.nodes:
            if is_layout(node) or is_branch(node) or node.op.definition.updates:
                continue
            if not getattr(node.location, "scope", ROOT).startswith(GRADIENTS):
                yield node

    def _needs(self, node: Node, division: Division) -> Iterator[tuple[Value, Placed]]:
        """The operands that a division cuts, and how."""
        for axes, value in zip(division.rule.inputs, node.inputs):
            if axes is not None and value is not None:
                needed = division.placed(axes)
                if not needed.is_whole:
                    yield value, needed

    def _take_parameters(self) -> bool:
        """Whether Parameters were found to be divided where they are used."""
        found = False
        for node in self._forward():
            division = self.divisions.get(node)
            for value, needed in () if division is None else self._needs(node, division):
                if value in self.free and value not in self.fixed:
                    self.fixed[value], found = needed, True
        return found

    def _go_back(self) -> bool:
        """Whether operands were found that had better be made divided."""
        found = False
        for node in reversed(list(self._forward())):
            rule = rule_of(node) if not node.regions else None
            if rule is None or not (self.divisions.get(node) or self._hinted(node)):
                continue
            division = Division(node, rule, self.mesh, self._chosen(node, rule))
            for value, needed in self._needs(node, division):
                is_made = value.producer is not None and not is_layout(value.producer)
                if is_made and value not in self.hints and self._kept(value).is_whole:
                    self.hints[value], found = needed, True
        return found
