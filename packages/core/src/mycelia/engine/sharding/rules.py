"""How ops work on parts of their operands.

A rule names the axes of a node's operands and results by labels, as einsum does: axes of one label are
divided alike. An axis may have several labels, the slowest first (of a reshape), or none: then it must be
whole. A label that a result lacks is summed over, so that each rank has one of the operands of a reduction.
Rules are found by the name of the op, `rule("softmax")`; ops that work element by element have one by what
they are. An op without a rule runs on whole operands alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mycelia.engine.ir.graph import Node, Value
from mycelia.engine.sharding.mesh import Atoms, Mesh, Placed
from mycelia.engine.sharding.rewriter import Rewriter

Label = Any
Axis = tuple[Label, ...]
Axes = tuple[Axis, ...]
Shape = Sequence[int]


class Rule:
    """Labels of a node's operands (None: one that is not given) and results.

    `sizes`: of labels that are not alone on an axis; `how`: what reduces labels that results lack; `attrs`:
    what attributes the op has on parts, given a `Division`; `emit`: what stands for the op there,
    ``(rewriter, division, operands) -> results``; `only_whole`: labels that are never divided.
    """

    def __init__(
        self, inputs: Sequence[Axes | None], outputs: Sequence[Axes], *, sizes: dict[Label,
        int] | None = None,
        how: str = "sum", attrs: Callable[[Division], dict[str, Any]] | None = None,
        emit: Callable[[Rewriter, Division, list[Value | None]], Sequence[Value]] | None = None,
    ) -> None:  # fmt: skip
        self.inputs, self.outputs, self.sizes = list(inputs), list(outputs), dict(sizes or {})
        self.how, self.attrs, self.emit = how, attrs, emit


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
    made = _rules.get(definition.name)
    if made is not None:
        return made(node)
    return broadcast(node) if definition.elementwise else None


def has_rule(name: str) -> bool:
    return name in _rules


# ---- labels ------------------------------------------------------------------------------------------------


def numbered(rank: int, skip: Iterable[int] = ()) -> Axes:
    """A label for each axis but `skip`: its number."""
    skipped = set(skip)
    return tuple(() if i in skipped else (i,) for i in range(rank))


def aligned(shape: Shape, rank: int, sizes: Shape) -> Axes:
    """The axes of an operand that is broadcast to `sizes`, labelled by the axes of the result."""
    first = rank - len(shape)
    return tuple((first + i,) if n == sizes[first + i] else () for i, n in enumerate(shape))


def shapes(node: Node) -> list[Shape | None]:
    return [None if v is None else v.type.shape for v in node.inputs]


def axes_of(value: Any, rank: int) -> tuple[int, ...]:
    """Axes that an attribute names, as numbers from 0 on; None and () are all."""
    if value is None or value == ():
        return tuple(range(rank))
    return tuple(a % max(rank, 1) for a in ((value,) if isinstance(value, int) else value))


def broadcast(node: Node) -> Rule:
    """Each element of the result depends on those at its place."""
    sizes = node.outputs[0].type.shape
    operands = [None if s is None else aligned(s, len(sizes), sizes) for s in shapes(node)]
    return Rule(operands, [numbered(len(v.type.shape)) for v in node.outputs])


def along(attribute: str) -> Callable[[Node], Rule]:
    """The axis that an attribute names is whole; all operands and results have the other axes."""

    def made(node: Node) -> Rule:
        rank = node.inputs[0].type.rank  # type: ignore[union-attr]
        skip = axes_of(node.attrs[attribute], rank)
        axes = numbered(rank, skip)
        return Rule([None if v is None else axes for v in node.inputs], [axes for _ in node.outputs])

    return made


def regrouped(before: Shape, after: Shape) -> tuple[Axes, Axes, dict[Label, int]]:
    """Labels of the axes of a tensor and of the same elements in another shape: what is one axis here and
    several there has several labels. Where sizes have no such common parts axes are whole.
    """
    left: list[list[Label]] = [[] for _ in before]
    right: list[list[Label]] = [[] for _ in after]
    sizes: dict[Label, int] = {}
    if 0 in before:
        return tuple(() for _ in before), tuple(() for _ in after), {}
    i = j = 0
    a = before[0] if before else 1
    b = after[0] if after else 1
    while i < len(before) and j < len(after):
        if a == 1 or b == 1:
            if a == 1:
                i += 1
                a = before[i] if i < len(before) else 1
            if b == 1:
                j += 1
                b = after[j] if j < len(after) else 1
            continue
        small, large = min(a, b), max(a, b)
        if large % small:
            break
        label = f"{i}:{j}"
        left[i].append(label)
        right[j].append(label)
        sizes[label] = small
        a, b = a // small, b // small
    return tuple(map(tuple, left)), tuple(map(tuple, right)), sizes
