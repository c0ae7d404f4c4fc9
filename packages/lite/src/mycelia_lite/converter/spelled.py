"""Shapes as the source spells them, so that a Reshape holds for other sizes than those of the conversion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


class Spelled(tuple):
    """The sizes of a Reshape; `text`: as the source has them, where 0 keeps a size and -1 is what is left."""

    text: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Iterable[Any], text: Sequence[int]) -> Spelled:
        made = cls(sizes)
        made.text = tuple(text)
        return made

    def __eq__(self, other: object) -> bool:  # nodes that are spelled otherwise are not equal
        return super().__eq__(other) and self.text == getattr(other, "text", None)

    def __hash__(self) -> int:
        return hash((tuple(self), self.text))


def spell(y: Any, text: Sequence[Any]) -> Any:
    """The result of a reshape, whose node now has what the source spells."""
    value = getattr(y, "traced", None)
    node = getattr(value, "producer", None)
    if node is None or not all(type(n) is int for n in text) or not {0, -1} & set(text):
        return y
    attrs = node.attrs if node.op.name == "reshape" else node.attrs.get("attrs")
    if isinstance(attrs, dict) and "shape" in attrs:
        attrs["shape"] = Spelled.of(attrs["shape"], text)
    return y
