"""How an op works on images with the channels last: the option `layout` of a block.

An image tensor has rank 4, [N, C, H, W]; its NHWC value holds the same numbers as [N, H, W, C]. A rule says
which inputs and outputs of a node are images, and emits the node on NHWC values. Elementwise ops have one by
what they are. Other ops take a rule that follows from an attribute (`formatted`, `along`, `reduction`), or
say what their images are and set how they are rewritten by `@x.layout`: ``(rewriter, node) -> outputs``.

The rewriter (`compile/passes/layout.py`) has ``last(value)``: the NHWC value of an image; ``first(value)``: a
value as it was; ``aligned(value)``: an operand that broadcasts against NHWC values; ``emit(op, inputs,
attrs)``: a new node's outputs, which may be told to have ``types``, those that stand for the node's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mycelia.engine.base import dtypes

if TYPE_CHECKING:
    from mycelia.engine.ir.graph import Node, Value
    from mycelia.engine.ops.define import OpDef

#: Positions of the images among inputs and outputs.
Images = tuple[Sequence[int], Sequence[int]]

AXIS = {0: 0, 1: 3, 2: 1, 3: 2}  # axis of an image tensor -> axis of its NHWC value


class LayoutRule(NamedTuple):
    """`images` gives the positions of the images among inputs and outputs, or None if the node has no
    channels-last form; `emit` appends that form and returns what stands for the node's outputs: the NHWC
    values of images, other values as they were.
    """

    images: Callable[[Node], Images | None]
    emit: Callable[[Any, Node], Sequence[Value]] | None = None


def rule_of(definition: OpDef) -> LayoutRule | None:
    """The rule of an op: its own, that of elementwise ops if its block says so, else None."""
    if definition.layout_rule is not None:
        return definition.layout_rule
    return elementwise if definition.elementwise and not definition.effect else None


def nhwc_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of the NHWC value of an image tensor of this shape."""
    n, c, h, w = shape
    return n, h, w, c


def is_image(value: Value | None) -> bool:
    """Whether a value may be an image tensor: of rank 4, its sizes known."""
    return value is not None and len(value.type.shape) == 4 and value.type.is_static


def keeps_order(shape: Sequence[int]) -> bool:
    """Whether an image tensor of this shape (padded by ones) and its NHWC value hold their elements in the
    same order.
    """
    n, c, h, w = (1,) * (4 - len(shape)) + tuple(shape)
    return c == 1 or h * w == 1 or math.prod(shape) == 0


def same_attributes(rewriter: Any, node: Node, inputs: Sequence[Value | None], **changed: Any) -> list[Value]:
    """The node's op on other inputs, with its attributes but for those `changed`."""
    return rewriter.emit(node.op, inputs, {**node.attrs, **changed}, rewriter.types)


# ---- which values are images -------------------------------------------------------------------------------


def images(inputs: Sequence[int] | None = None, outputs: Sequence[int] | None = None) -> LayoutRule:
    """Images are at these positions (None: everywhere), if they all have rank 4."""

    def positions(node: Node) -> Images | None:
        chosen = inputs if inputs is not None else range(len(node.inputs))
        made = outputs if outputs is not None else range(len(node.outputs))
        if all(is_image(node.inputs[i]) for i in chosen) and all(is_image(node.outputs[i]) for i in made):
            return chosen, made
        return None

    return LayoutRule(positions)


def float32_images(inputs: Sequence[int], outputs: Sequence[int], *also: int) -> LayoutRule:
    """As `images`, of float32, and so are the inputs `also` and all outputs."""

    def positions(node: Node) -> Images | None:
        values = [node.inputs[i] for i in (*inputs, *also)] + node.outputs
        fits = all(is_image(v) and v.type.dtype is dtypes.float32 for v in values)
        return (inputs, outputs) if fits else None

    return LayoutRule(positions)


def where(holds: Callable[[Node], bool], rule: LayoutRule) -> LayoutRule:
    """`rule` for the nodes for which this holds."""
    return LayoutRule(lambda node: rule.images(node) if holds(node) else None, rule.emit)


# ---- rules that follow from what the op is, or from an attribute -------------------------------------------


def _elementwise_images(node: Node) -> Images | None:
    if len(node.outputs) != 1 or not is_image(node.outputs[0]):
        return None
    return [i for i, v in enumerate(node.inputs) if is_image(v)], (0,)


def _elementwise(rewriter: Any, node: Node) -> Sequence[Value]:
    return rewriter.emit(node.op, [rewriter.aligned(v) for v in node.inputs], node.attrs, rewriter.types)


elementwise = LayoutRule(_elementwise_images, _elementwise)


def formatted(inputs: Sequence[int], outputs: Sequence[int]) -> LayoutRule:
    """The op has an attribute `data_format`."""

    def emit(rewriter: Any, node: Node) -> Sequence[Value]:
        values = [rewriter.last(v) if i in inputs else rewriter.first(v) for i, v in enumerate(node.inputs)]
        return same_attributes(rewriter, node, values, data_format="NHWC")

    rule = images(inputs, outputs)._replace(emit=emit)
    return where(lambda node: node.attrs["data_format"] == "NCHW", rule)


def along(
    attribute: str, inputs: Sequence[int] | None = None, outputs: Sequence[int] | None = None
) -> LayoutRule:
    """The op works along the axis that an attribute names; `inputs` and `outputs` as for `images`."""

    def emit(rewriter: Any, node: Node) -> Sequence[Value]:
        axis = AXIS[node.attrs[attribute] % 4]
        values = [rewriter.last(v) if is_image(v) else rewriter.first(v) for v in node.inputs]
        return same_attributes(rewriter, node, values, **{attribute: axis})

    return images(inputs, outputs)._replace(emit=emit)


def reduction(axes: str, keep: str) -> LayoutRule:
    """The op reduces the axes that the attribute `axes` names; `keep` says whether they stay, of size 1."""

    def reduced(node: Node) -> tuple[int, ...]:
        given = node.attrs[axes]
        if isinstance(given, int):
            return (given % 4,)
        return tuple(a % 4 for a in given) if given else (0, 1, 2, 3)

    def positions(node: Node) -> Images | None:
        # The position of an extreme in the flat data depends on the layout: what gives one takes one axis.
        single = next(a.kind for a in node.op.definition.attrs if a.name == axes) == "int"
        if not is_image(node.inputs[0]) or single and node.attrs[axes] is None:
            return None
        if node.attrs[keep]:
            return (0,), (0,)
        left = [AXIS[a] for a in range(4) if a not in reduced(node)]
        return ((0,), ()) if left == sorted(left) else None

    def emit(rewriter: Any, node: Node) -> Sequence[Value]:
        given: Any = node.attrs[axes]
        if isinstance(given, int):
            given = AXIS[given % 4]
        elif given is not None:
            given = tuple(sorted(AXIS[a] for a in reduced(node)))
        return same_attributes(rewriter, node, [rewriter.last(node.inputs[0])], **{axes: given})

    return LayoutRule(positions, emit)
