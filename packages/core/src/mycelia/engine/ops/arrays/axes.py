"""Axes in another order, elements along them reversed or shifted, all axes as one."""

import math

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays.shape import (
    as_ints,
    positive_axes,
    positive_axis,
    reshape,
    shaped_by,
)
from mycelia.engine.ops.define import op


def flatten(input, order="C", *, start_dim=1, end_dim=-1):
    """Merge the axes `start_dim` to `end_dim` into one; with `order` "F" all axes are reversed first.

    Shapes: [a, b, c] -> [a, b * c]; rank 0 and 1 -> rank 1.
    Errors: ValueError for axes out of range or order.
    """
    if order not in ("C", "F"):
        raise errors.value_error(f"For 'flatten', order must be 'C' or 'F', but got {order!r}")
    rank = input.ndim
    if rank == 0:
        return reshape(input, (1,))
    if rank == 1 and start_dim == 1:
        return input
    if order == "F":
        input = transpose(input, tuple(range(rank - 1, -1, -1)))
    first, last = positive_axis(start_dim, rank, "start_dim"), positive_axis(end_dim, rank, "end_dim")
    if first > last:
        raise errors.value_error(f"For 'flatten', start_dim {start_dim} lies behind end_dim {end_dim}")
    merged = input.shape[first : last + 1]
    merged = -1 if -1 in merged else math.prod(merged)
    return reshape(input, (*input.shape[:first], merged, *input.shape[last + 1 :]))


def ravel(input):
    """All elements in one axis."""
    return reshape(input, (-1,))


def _transposed(shape, dims):
    if len(dims) != len(shape):
        raise ValueError(f"dims {dims} must name every axis of an input of shape {shape}")
    return (shape[d] for d in positive_axes(dims, len(shape), "dims"))


@op(infer=shaped_by(_transposed), mindir="Transpose", primitive=True, moves=True)
def transpose(input, *, dims: "ints"):
    """Put the axes in the order `dims`: axis i of the result is axis ``dims[i]`` of the input.

    Shapes: a permutation.  dtypes: any.  Errors: ValueError if `dims` is not a permutation of the axes.
    """
    return np.transpose(input, dims)


@transpose.vjp
def transpose(ct, *, dims):
    rank = len(dims)
    inverse = sorted(range(rank), key=lambda i: dims[i] % rank)
    return transpose(ct, tuple(inverse))


@transpose.samples
def transpose(rand):
    yield rand(3, 5), dict(dims=(1, 0), _dtypes=("int32", "bool", "float64", "float16"))
    yield rand(2, 3, 4), dict(dims=(0, 2, 1))
    yield rand(2, 3, 4), dict(dims=(2, 0, 1))
    yield rand(2, 3, 4), dict(dims=(-1, -2, -3))
    yield rand(2, 3, 4, 5), dict(dims=(0, 2, 1, 3))
    yield rand(17, 1, 19), dict(dims=(2, 1, 0), _grad=False, _dtypes=("int8", "int64", "float16"))
    yield rand(40, 67), dict(dims=(1, 0), _grad=False, _dtypes=("int8", "int64", "float16"))
    yield rand(2, 3, 23, 25), dict(dims=(0, 2, 3, 1), _grad=False, _dtypes=("int32", "int64"))
    yield rand(2, 23, 25, 3), dict(dims=(0, 3, 1, 2), _grad=False, _dtypes=("int32", "int64"))
    yield rand(0, 3), dict(dims=(1, 0))
    yield rand(1), dict(dims=(0,))
    yield rand(), dict(dims=())


@transpose.batch
def transpose(call):
    dims = call.attrs["dims"]
    rank = call.rank()
    order = range(rank)[::-1] if dims is None else (d % rank for d in dims)
    return call.run(call.operands, dims=(0, *(d + 1 for d in order)))


def permute(input, axis):
    """`transpose` under its other name."""
    return transpose(input, as_ints(axis, "axis"))


def swapaxes(input, axis0, axis1):
    """Exchange two axes."""
    order = list(range(input.ndim))
    i, j = positive_axis(axis0, input.ndim), positive_axis(axis1, input.ndim)
    order[i], order[j] = j, i
    return transpose(input, tuple(order))


def swapdims(input, dim0, dim1):
    """Exchange two axes."""
    return swapaxes(input, dim0, dim1)


def movedim(x, source, destination):
    """Move the axes `source` to the positions `destination`; the others keep their order."""
    source = positive_axes(as_ints(source, "source"), x.ndim, "source")
    destination = positive_axes(as_ints(destination, "destination"), x.ndim, "destination")
    if len(source) != len(destination):
        raise errors.value_error(
            f"For 'movedim', {len(source)} source axes go to {len(destination)} destinations"
        )
    order = [axis for axis in range(x.ndim) if axis not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return transpose(x, tuple(order))


def moveaxis(x, source, destination):
    """`movedim` under its NumPy name."""
    return movedim(x, source, destination)


def t(input):
    """The transpose of a matrix; tensors of rank 0 and 1 as they are."""
    if input.ndim > 2:
        raise errors.value_error(f"For 't', the input must have at most 2 axes, but got shape {input.shape}")
    return transpose(input, (1, 0)) if input.ndim == 2 else input


def _flipped(shape, dims):
    positive_axes(dims, len(shape), "dims")
    return shape


@op(infer=shaped_by(_flipped), mindir="ReverseV2", batch=_batch.along("dims", empty_is_all=False), moves=True)
def flip(input, *, dims: "ints"):
    """Reverse the order of the elements along `dims`.

    Shapes: any -> same.  dtypes: any.  Errors: ValueError if an axis is out of range or named twice.
    """
    return np.flip(input, dims)


@flip.vjp
def flip(ct, *, dims):
    return flip(ct, dims)


@flip.samples
def flip(rand):
    yield rand(7), dict(dims=0, _dtypes=("int32", "bool", "float64", "float16"))
    yield rand(3, 4), dict(dims=(0,))
    yield rand(3, 4, 2), dict(dims=(-1, 0))
    yield rand(3, 1), dict(dims=())
    yield rand(0, 2), dict(dims=(0, 1))


def reverse(x, axis):
    """`flip` under its older name."""
    return flip(x, axis)


def fliplr(input):
    """Reverse the second axis."""
    if input.ndim < 2:
        raise errors.value_error(
            f"For 'fliplr', the input must have at least 2 axes, but got shape {input.shape}"
        )
    return flip(input, (1,))


def flipud(input):
    """Reverse the first axis."""
    if input.ndim < 1:
        raise errors.value_error("For 'flipud', the input must have at least 1 axis, but got rank 0")
    return flip(input, (0,))


def rot90(input, k, dims):
    """Rotate by ``k * 90`` degrees in the plane of the two axes `dims`, from the first towards the second."""
    first, second = positive_axes(dims, input.ndim, "dims")
    k %= 4
    if k == 2:
        return flip(input, (first, second))
    if k == 1:
        return swapaxes(flip(input, (second,)), first, second)
    return flip(swapaxes(input, first, second), (second,)) if k == 3 else input


def _rolled(shape, shifts, dims):
    if len(shifts) != len(dims):
        raise ValueError(f"shifts {shifts} and dims {dims} must have the same length")
    for axis in dims:
        positive_axis(axis, len(shape), "dims")
    return shape


@op(infer=shaped_by(_rolled), mindir="Roll", moves=True)
def _roll(input, *, shifts: "ints", dims: "ints"):
    """Shift the elements along each of `dims` by `shifts` places; what leaves at one end enters at the other.

    Shapes: any -> same.  dtypes: any.
    """
    return np.roll(input, shifts, dims)


@_roll.vjp
def _roll(ct, *, shifts, dims):
    return _roll(ct, tuple(-s for s in shifts), dims)


@_roll.samples
def _roll(rand):
    yield rand(7), dict(shifts=2, dims=0, _dtypes=("int32", "bool", "float64", "float16"))
    yield rand(3, 4), dict(shifts=(1, -1), dims=(0, -1))
    yield rand(3, 4), dict(shifts=(5, 2), dims=(1, 1))
    yield rand(3, 4), dict(shifts=(0,), dims=(0,))
    yield rand(0, 2), dict(shifts=(1,), dims=(0,))


@_roll.batch
def _roll(call):
    dims = call.attrs["dims"]
    rank = call.rank()
    if not dims:
        flat = _batch.reshaped(call.operands[0], (call.size, -1))
        return call.shaped(call.run([flat], dims=(1,)))
    return call.shaped(call.run(call.operands, dims=tuple(d % rank + 1 for d in dims)))


def roll(input, shifts, dims=None):
    """Shift the elements along `dims` by `shifts` places, around the end;
    without `dims` in row-major order.
    """
    if dims is None:
        shifts = as_ints(shifts, "shifts")
        return reshape(_roll(reshape(input, (-1,)), shifts, (0,) * len(shifts)), input.shape)
    return _roll(input, shifts, dims)


__all__ = [
    "flatten", "ravel", "transpose", "permute", "swapaxes", "swapdims", "movedim", "moveaxis", "t",
    "flip", "reverse", "fliplr", "flipud", "rot90", "roll",
]  # fmt: skip
