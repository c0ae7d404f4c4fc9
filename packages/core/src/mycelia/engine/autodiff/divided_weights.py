"""Weights of which each process keeps a part (`Parameter.divided`), while a gradient is recorded.

Then they have the shape of the whole and no value, but where a Cell that uses them has gathered them
(`nn/gathered.py`): code that takes one elsewhere fails, instead of computing with a part of it.
"""

from __future__ import annotations

from mycelia.engine import _C
from mycelia.engine.ops.control_flow.control import stop_gradient
from mycelia.engine.tensors.divided import CLOSED


def part_of(weight: _C.Tensor) -> _C.Tensor:
    """The part of this process, whatever the Parameter shows now; in a capture its graph value."""
    if weight.own_part is not None:
        return weight.own_part
    stop_gradient(weight)  # within a capture it stands for an input of the graph from its first use on
    return weight._detach()


def close(weight: _C.Tensor) -> _C.Tensor | None:
    """Takes the value away, if the Parameter is a divided one that shows its part; gives that to `reopen`."""
    if not getattr(weight, "divided", False) or weight.own_part is not None:
        return None
    part = weight.own_part = part_of(weight)
    weight._assign(_C.make_traced(CLOSED, weight.dtype, weight.share.shape))
    return part


def reopen(weight: _C.Tensor, part: _C.Tensor) -> None:
    """The Parameter shows its part again."""
    weight.own_part = None
    weight._assign(part)


def whole_shape(tensor: _C.Tensor) -> tuple[int, ...]:
    """The shape of the whole, of a divided weight too."""
    return tensor.share.shape if getattr(tensor, "divided", False) else tensor.shape
