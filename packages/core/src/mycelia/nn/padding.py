"""Layers that pad: constant, reflected, replicated values, and MindSpore's general `Pad`."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.engine.ops.arrays.padding import pad
from mycelia.nn.cell import Cell


class Pad(Cell):
    """Pads every dimension by ``paddings[i] = (before, after)``;
    `mode` CONSTANT (zeros), REFLECT or SYMMETRIC.
    """

    def __init__(self, paddings, mode: str = "CONSTANT"):
        super().__init__()
        if not isinstance(paddings, tuple) or any(not isinstance(p, tuple) or len(p) != 2 for p in paddings):
            raise errors.type_error("Pad", f"paddings must be a tuple of pairs, but got {paddings!r}")
        if len(paddings) > 4:
            raise errors.value_error("Pad", f"paddings must have at most 4 pairs, but has {len(paddings)}")
        if mode not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
            raise errors.one_of(mode, ["CONSTANT", "REFLECT", "SYMMETRIC"], subject="Pad", what="mode")
        self.paddings, self.mode = paddings, mode

    def construct(self, x):
        if len(self.paddings) != x.ndim:
            raise errors.value_error(
                "Pad", f"paddings has {len(self.paddings)} pairs, but x has rank {x.ndim}"
            )
        flat = [n for pair in reversed(self.paddings) for n in pair]
        if min(flat, default=0) < 0:
            raise errors.value_error("Pad", f"paddings must be 0 or more, but they are {self.paddings}")
        return pad(x, flat, self.mode.lower())


def _spread(owner: str, padding, rank: int) -> tuple[int, ...]:
    """(left, right[, top, bottom[, front, back]]) from one int or that tuple."""
    flat = (
        (padding,) * (2 * rank)
        if isinstance(padding, int) and not isinstance(padding, bool)
        else tuple(padding)
    )
    if any(isinstance(n, bool) or not isinstance(n, int) for n in flat):
        raise errors.type_error(owner, f"padding must be an int or a tuple of int, but got {padding!r}")
    if len(flat) != 2 * rank:
        raise errors.value_error(owner, f"padding must be an int or {2 * rank} ints, but got {padding!r}")
    return flat


class _Padding(Cell):
    _rank, _mode = 1, "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = _spread(type(self).__name__, padding, self._rank)

    def construct(self, x):
        return pad(x, list(self.padding), self._mode)


def _layer(name: str, rank: int, mode: str, what: str) -> type[Cell]:
    axes = f"the last {rank} dimension{'s' if rank > 1 else ''}"
    doc = f"Pads {axes} with {what}; `padding`: one int, or before and after, last first."
    return type(
        name,
        (_Padding,),
        {"_rank": rank, "_mode": mode, "__doc__": doc, "__module__": __name__, "__qualname__": name},
    )


ReflectionPad1d = _layer("ReflectionPad1d", 1, "reflect", "the mirrored content")
ReflectionPad2d = _layer("ReflectionPad2d", 2, "reflect", "the mirrored content")
ReflectionPad3d = _layer("ReflectionPad3d", 3, "reflect", "the mirrored content")
ReplicationPad1d = _layer("ReplicationPad1d", 1, "replicate", "the border value")
ReplicationPad2d = _layer("ReplicationPad2d", 2, "replicate", "the border value")
ReplicationPad3d = _layer("ReplicationPad3d", 3, "replicate", "the border value")
ZeroPad2d = _layer("ZeroPad2d", 2, "constant", "zeros")


class _ConstantPad(_Padding):
    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def construct(self, x):
        return pad(x, list(self.padding), "constant", self.value)


class ConstantPad1d(_ConstantPad):
    """Pads the last dimension with `value`."""


class ConstantPad2d(_ConstantPad):
    """Pads the last 2 dimensions with `value`."""

    _rank = 2


class ConstantPad3d(_ConstantPad):
    """Pads the last 3 dimensions with `value`."""

    _rank = 3
