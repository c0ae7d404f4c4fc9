"""The table of rules, and what they share."""

from __future__ import annotations

from collections.abc import Callable

from mycelia.ir import Node, Value
from mycelia_lite.converter.writer import LAST_AXIS, Writer
from mycelia_lite.format import Table

RULES: dict[str, Callable[[Writer, Node], None]] = {}


def rule(*names: str) -> Callable:
    """Decorator: the function writes the ops of these names."""

    def enter(function: Callable) -> Callable:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def along(w: Writer, node: Node, kind: str, axis: Callable[[int], object], **more) -> None:
    """An operator along one axis; images that are all written with the channels last stay so."""
    last = all(w.is_last(v) for v in node.inputs)
    given = node.attrs["axis"] % node.inputs[0].type.rank
    primitive = Table(kind, axis=axis(LAST_AXIS[given] if last else given), **more)
    w.emit_all(node.outputs, primitive, [w.last(v) if last else w.first(v) for v in node.inputs], last)


def in_layout(w: Writer, x: Value) -> tuple[int, bool]:
    """The tensor of a value in a layout that it has, and whether the channels are last."""
    return (w.last(x), True) if w.is_last(x) else (w.first(x), False)
