"""How ops work on parts of their operands: rules by which graphs are divided among ranks (`engine/sharding`).

A rule names the axes of a node's operands and results by labels, as einsum does: axes of one label are
divided alike. An axis may have several labels, the slowest first (of a reshape), or none: then it must be
whole. A label that a result lacks is summed over, so that each rank has one of the operands of a reduction.
A block sets its rule by `@x.parts`: ``(node) -> PartRule``. Ops that work element by element, and those that
work along an axis (`batch=_batch.along(...)`), have one by what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mycelia.engine.ir.graph import Node

Label = Any
Axis = tuple[Label, ...]
Axes = tuple[Axis, ...]
Shape = Sequence[int]


class PartRule:
    """Labels of a node's operands (None: one that is not given) and results.

    `sizes`: of labels that are not alone on an axis; `how`: what reduces labels that results lack; `attrs`:
    what attributes the op has on parts, given a `Division`; `emit`: what stands for the op there,
    ``(rewriter, division, operands) -> results``; `is_reduced`: what `emit` gives is reduced over labels that
    results lack.
    """

    def __init__(
        self, inputs: Sequence[Axes | None], outputs: Sequence[Axes], *, sizes: dict[Label,
        int] | None = None,
        how: str = "sum", attrs: Callable[[Any], dict[str, Any]] | None = None,
        emit: Callable[[Any, Any, list], Sequence] | None = None, is_reduced: bool = False,
    ) -> None:  # fmt: skip
        self.inputs, self.outputs, self.sizes = list(inputs), list(outputs), dict(sizes or {})
        self.how, self.attrs, self.emit, self.is_reduced = how, attrs, emit, is_reduced


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


def broadcast(node: Node) -> PartRule:
    """Each element of the result depends on those at its place."""
    sizes = node.outputs[0].type.shape
    operands = [None if s is None else aligned(s, len(sizes), sizes) for s in shapes(node)]
    return PartRule(operands, [numbered(len(v.type.shape)) for v in node.outputs])


def along(attribute: str) -> Callable[[Node], PartRule]:
    """The axes that an attribute names are whole, others are those of all operands and results; a result may
    lack what was reduced, and operands may be shorter where they are not divided.
    """

    def made(node: Node) -> PartRule:
        first = node.inputs[0].type.shape  # type: ignore[union-attr]
        rank = len(first)
        skip = set(axes_of(node.attrs[attribute], rank))
        for v in node.inputs:
            shape = first if v is None else v.type.shape
            skip |= (
                {i for i, (m, n) in enumerate(zip(first, shape)) if m != n}
                if len(shape) == rank
                else set(range(rank))
            )
        axes = numbered(rank, skip)
        left = tuple(axis for i, axis in enumerate(axes) if i not in axes_of(node.attrs[attribute], rank))
        results = [axes if v.type.rank == rank else left for v in node.outputs]
        if any(len(own) != v.type.rank for own, v in zip(results, node.outputs)):
            axes, results = ((),) * rank, [((),) * v.type.rank for v in node.outputs]
        return PartRule([None if v is None else ((),) * v.type.rank if v.type.rank != rank else axes
                         for v in node.inputs], results)  # fmt: skip

    return made


def each_element(node: Node) -> PartRule:
    """Steps that overwrite their first operands: each element alone; hyperparameters are numbers."""
    shape = node.inputs[0].type.shape  # type: ignore[union-attr]
    axes = numbered(len(shape))
    operands = [None if s is None else axes if s == shape else ((),) * len(s) for s in shapes(node)]
    results = [axes if v.type.shape == shape else ((),) * v.type.rank for v in node.outputs]
    return PartRule(operands, results)


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
