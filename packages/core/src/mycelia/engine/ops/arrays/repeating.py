"""Tensors repeated as a whole, and their elements."""

import math

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ops.arrays.shape import as_ints, broadcast_to, positive_axis, reshape, shaped_by
from mycelia.engine.ops.define import op


def _tiled(shape, dims):
    if any(d < 0 for d in dims):
        raise ValueError(f"dims cannot hold negative numbers, but got {dims}")
    rank = max(len(shape), len(dims))
    shape, dims = (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(dims)) + dims
    return (-1 if n == -1 else n * d for n, d in zip(shape, dims))


@op(infer=shaped_by(_tiled), mindir="Tile", primitive=True, moves=True)
def tile(input, *, dims: "ints"):
    """Repeat the whole tensor ``dims[i]`` times along axis i; missing leading entries count as 1.

    Shapes: [a, b] -> [a * d0, b * d1].  dtypes: any.
    """
    return np.tile(input, dims)


@tile.vjp
def tile(ct, input_shape, *, dims):
    if 0 in dims:  # the result is empty: nothing depends on the input
        from mycelia.engine.ops.arrays.create import full

        return full(input_shape, 0, dtype=ct.dtype)
    rank = max(len(input_shape), len(dims))
    sizes, dims = (1,) * (rank - len(input_shape)) + input_shape, (1,) * (rank - len(dims)) + dims
    before, after = 1, math.prod(n * d for n, d in zip(sizes, dims))
    for n, d in zip(sizes, dims):  # one axis at a time: all at once would need twice the rank
        after //= max(n * d, 1)
        if d != 1:
            ct = reshape(ct, (before, d, n * after)).sum(1)
        before *= n
    return reshape(ct, input_shape)


@tile.samples
def tile(rand):
    yield rand(2, 3), dict(dims=(2, 1), _dtypes=("int32", "bool", "float64", "float16"))
    yield rand(2, 3), dict(dims=(2, 3))
    yield rand(3), dict(dims=(2, 2))
    yield rand(2, 3, 1), dict(dims=(2,))
    yield rand(), dict(dims=(3,))
    yield rand(0, 2), dict(dims=(2, 2))
    yield rand(2, 2), dict(dims=(0, 2))


@tile.batch
def tile(call):
    dims = call.attrs["dims"]
    rank = max(len(dims), call.rank())
    dims = (1,) * (rank - len(dims)) + tuple(dims)
    return call.shaped(call.run(call.aligned(rank), dims=(1, *dims)))


def repeat_interleave(input, repeats, axis=None):
    """Repeat each element along `axis` (without: of the flattened input), `repeats` times or as
    often as each entry says.

    Shapes: [.., n, ..] -> [.., n * repeats, ..] or [.., sum(repeats), ..].  Errors: ValueError for negative
    numbers or a length of `repeats` that is neither 1 nor n.
    """
    if axis is None:
        input, axis = reshape(input, (-1,)), 0
    axis = positive_axis(axis, input.ndim)
    n = input.shape[axis]
    repeats = as_ints(repeats, "repeats")
    if min(repeats, default=0) < 0:
        raise errors.value_error(f"For 'repeat_interleave', repeats cannot be negative, but got {repeats}")
    if len(repeats) == 1:
        before, after = math.prod(input.shape[:axis]), math.prod(input.shape[axis + 1 :])
        repeated = broadcast_to(reshape(input, (before * n, 1, after)), (before * n, repeats[0], after))
        return reshape(repeated, (*input.shape[:axis], n * repeats[0], *input.shape[axis + 1 :]))
    if len(repeats) != n:
        raise errors.value_error(
            f"For 'repeat_interleave', {len(repeats)} repeats are given for an axis of size {n}"
        )
    from mycelia.engine.ops.arrays.gathering import take_constant

    return take_constant(input, np.repeat(np.arange(n), repeats), axis)


def repeat_elements(x, rep, axis=0):
    """Repeat each element `rep` times along `axis`."""
    if not isinstance(rep, int) or rep <= 0:
        raise errors.value_error(f"For 'repeat_elements', rep must be a positive int, but got {rep!r}")
    if x.ndim > 7:
        raise errors.value_error(
            f"For repeat_elements, the rank of x should be less than or equal to 7, but got {x.ndim}."
        )
    return repeat_interleave(x, rep, axis)


__all__ = ["tile", "repeat_interleave", "repeat_elements"]
