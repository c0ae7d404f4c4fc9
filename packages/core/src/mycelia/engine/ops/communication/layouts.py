"""What is known of the division of a value: an op that changes nothing."""

import math

from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op

__all__: list[str] = []


def axes_of(counts, axes):
    """The axes of the grid that divide each axis of a tensor: ``counts[i]`` of `axes` for axis i."""
    ends = [sum(counts[: i + 1]) for i in range(len(counts))]
    return [tuple(axes[end - n : end]) for end, n in zip(ends, counts)]


@op(name="with_layout")
def _with_layout(x, *, matrix: "ints", counts: "ints", axes: "ints", owner: "str", said: "str"):
    """`x` itself, of which axis i is divided among ranks by ``counts[i]`` axes of the grid `matrix`: the
    next ones of `axes`. `owner` and `said` are for messages: whose layout it is, and how the user wrote it.

    The graphs of several ranks have it until they are divided (`engine/sharding`).
    Shapes: any -> same.  dtypes: any.  Errors: ShapeError if an axis is not divisible.
    """
    return x.copy()


@_with_layout.infer
def _with_layout(x, *, matrix, counts, axes, owner, said):
    if len(counts) != x.rank:
        raise errors.shape_error(
            owner, f"the layout {said} is of {len(counts)} axes, but the tensor has the shape {list(x.shape)}"
        )
    for axis, (size, group) in enumerate(zip(x.shape, axes_of(counts, axes))):
        parts = math.prod(matrix[a] for a in group)
        if type(size) is int and size >= 0 and size % parts:
            raise errors.shape_error(
                owner, f"axis {axis} of {size} cannot be cut into {parts} equal parts, as the layout "
                f"{said} of the "
                f"shape {list(x.shape)} says",
            )  # fmt: skip
    return TensorType(x.dtype, x.shape)


@_with_layout.vjp
def _with_layout(ct, *, matrix, counts, axes, owner, said):
    return _with_layout(ct, matrix=matrix, counts=counts, axes=axes, owner=owner, said=said)


@_with_layout.samples
def _with_layout(rand):
    yield rand(4, 3), dict(matrix=(2,), counts=(1, 0), axes=(0,), owner="MatMul", said="(2, 1)")
    yield rand(), dict(matrix=(2,), counts=(), axes=(), owner="Add", said="()")
