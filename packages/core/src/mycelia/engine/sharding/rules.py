"""The rules of ops on parts: which one a node has, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable

from mycelia.engine.ir.graph import Node
from mycelia.engine.ops.part_rules import (
    Axes,
    Axis,
    Label,
    aligned,
    along,
    axes_of,
    broadcast,
    numbered,
    regrouped,
    shapes,
)
from mycelia.engine.ops.part_rules import PartRule as Rule
from mycelia.engine.sharding.mesh import Atoms, Mesh, Placed

__all__ = [
    "Axes", "Axis", "Division", "Label", "Rule", "aligned", "along", "axes_of", "broadcast", "numbered",
    "regrouped", "rule", "rule_of", "shapes",
]  # fmt: skip


class Division:
    """What is decided for a node: the atoms of each label."""

    def __init__(self, node: Node, rule: Rule, mesh: Mesh, atoms: dict[Label, Atoms]) -> None:
        self.node, self.rule, self.mesh, self._atoms = node, rule, mesh, atoms

    def atoms(self, *labels: Label) -> Atoms:
        """Those of all these labels."""
        return tuple(a for label in labels for a in self._atoms.get(label, ()))

    def parts(self, *labels: Label) -> int:
        """Into how many parts they are divided together."""
        return self.mesh.parts(self.atoms(*labels))

    def placed(self, axes: Axes) -> Placed:
        """Where an operand of these axes lies."""
        return Placed(tuple(self.atoms(*axis) for axis in axes))

    def result(self, index: int) -> Placed:
        """Where a result lies."""
        axes = self.rule.outputs[index]
        if self.rule.is_reduced:
            return self.placed(axes)
        has = {label for axis in axes for label in axis}
        partial = tuple(sorted(a for label, atoms in self._atoms.items() if label not in has for a in atoms))
        return Placed(tuple(self.atoms(*axis) for axis in axes), partial, self.rule.how)

    def shape(self, index: int = 0) -> tuple[int, ...]:
        """The sizes of a part of a result."""
        return self.mesh.shape(self.node.outputs[index].type.shape, self.result(index))

    @property
    def is_whole(self) -> bool:
        return not any(self._atoms.values())


_rules: dict[str, Callable[[Node], Rule | None]] = {}


def rule(*names: str) -> Callable[[Callable], Callable]:
    """Decorator of the rule of these ops: ``(node) -> Rule``, or None where it has none."""

    def keep(function: Callable) -> Callable:
        for name in names:
            if name in _rules:
                raise ValueError(f"two rules for {name}")
            _rules[name] = function
        return function

    return keep


def rule_of(node: Node) -> Rule | None:
    """The rule of a node; None: it runs on whole operands alone."""
    definition = node.op.definition
    made = definition.part_rule or _rules.get(definition.name)
    if made is not None:
        return made(node)
    attribute = getattr(definition.batch_rule, "attribute", None)
    if attribute is not None:
        return along(attribute)(node)
    return broadcast(node) if definition.elementwise else None
