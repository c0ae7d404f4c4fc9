"""Vectors scaled down to a length."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import float32
from mycelia.nn.cell import Cell


def clipped(x, limit, axes):
    """x scaled down along `axes` where its Euclidean norm is above `limit`."""
    from mycelia.engine.ops.elementwise.clipping import maximum
    from mycelia.engine.ops.elementwise.powers import sqrt
    from mycelia.engine.ops.reductions.reduce import sum as total

    length = sqrt(total(x * x, axes, True))
    return x * limit / maximum(length, limit)


class ClipByNorm(Cell):
    """``x * clip_norm / max(norm(x), clip_norm)``, the norm over `axis` (all by default), in float32.

    Shapes: x any, clip_norm a scalar or broadcastable to x -> as x.
    """

    def __init__(self, axis=None):
        super().__init__()
        items = axis if isinstance(axis, tuple) else () if axis is None else (axis,)
        if any(isinstance(a, bool) or not isinstance(a, int) for a in items):
            raise errors.type_error(
                "ClipByNorm", f"axis must be None, an int or a tuple of ints, but got {axis!r}"
            )
        self.axis = axis

    def construct(self, x, clip_norm):
        from mycelia.engine.ops.elementwise.cast import cast

        axes = tuple(range(x.ndim)) if self.axis is None else self.axis
        return clipped(cast(x, float32), cast(clip_norm, float32), axes)
