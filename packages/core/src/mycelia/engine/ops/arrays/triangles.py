"""Triangles and diagonals of matrices."""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.symint import SymInt, applied
from mycelia.engine.ir.types import UNKNOWN
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays.masks import _where
from mycelia.engine.ops.arrays.shape import (
    broadcast_to,
    constant,
    positive_axes,
    positive_axis,
    reshape,
    shaped_by,
)
from mycelia.engine.ops.define import op
from mycelia.engine.ops.late import ops


def _is_matrix(shape, diagonal):
    if len(shape) < 2:
        raise ValueError(f"the input must have at least 2 axes, but got shape {shape}")
    return shape


def nearest_diagonal(k: int, rows: int, columns: int) -> int:
    """Diagonal `k` of a matrix; of those beyond its corners the nearest, which keeps as much of it."""
    return max(-rows, min(k, columns))


def _triangle_samples(rand):
    yield rand(4, 5), dict(_dtypes=("int32", "bool", "float64", "float16"))
    yield rand(2, 3, 3), dict(diagonal=1)
    yield rand(5, 2), dict(diagonal=-2)
    yield rand(3, 3), dict(diagonal=-9)
    yield rand(3, 3), dict(diagonal=9)
    yield rand(3, 4), dict(diagonal=2**63 - 1)
    yield rand(4, 3), dict(diagonal=-(2**63))
    yield rand(0, 3)


@op(
    infer=shaped_by(_is_matrix),
    mindir="Tril",
    mindir_attributes=True,
    method=True,
    batch=_batch.leading,
    moves=True,
)
def tril(input, *, diagonal: "int" = 0):
    """The lower triangle of the last two axes, zero above the given diagonal.

    Shapes: [.., m, n] -> same.  dtypes: any.  Errors: ValueError for rank below 2.
    """
    return np.tril(input, nearest_diagonal(diagonal, *input.shape[-2:]))


@tril.vjp
def tril(ct, *, diagonal):
    return tril(ct, diagonal)


tril.samples(_triangle_samples)


@op(infer=shaped_by(_is_matrix), mindir="Triu", method=True, batch=_batch.leading, moves=True)
def triu(input, *, diagonal: "int" = 0):
    """The upper triangle of the last two axes, zero below the given diagonal.

    Shapes: [.., m, n] -> same.  dtypes: any.  Errors: ValueError for rank below 2.
    """
    return np.triu(input, nearest_diagonal(diagonal, *input.shape[-2:]))


@triu.vjp
def triu(ct, *, diagonal):
    return triu(ct, diagonal)


triu.samples(_triangle_samples)


def _diagonal_length(m, n, offset):
    return max(min(m, n - offset) if offset >= 0 else min(m + offset, n), 0)


def _diagonal_shape(shape, offset, dim1, dim2):
    if len(shape) < 2:
        raise ValueError(f"the input must have at least 2 axes, but got shape {shape}")
    i, j = positive_axes((dim1, dim2), len(shape), "dim1 and dim2")
    rest = (n for d, n in enumerate(shape) if d not in (i, j))
    return (*rest, _diagonal_length(shape[i], shape[j], offset))


@op(infer=shaped_by(_diagonal_shape), mindir="Diagonal", moves=True)
def diagonal(input, *, offset: "int" = 0, dim1: "int" = 0, dim2: "int" = 1):
    """The diagonal of the planes spanned by two axes, as the last axis of the result.

    Shapes: [m, n, R..] -> [R.., k], k = length of the diagonal `offset` steps above the main one.
    dtypes: any.
    """
    return np.diagonal(input, offset, dim1, dim2)


@diagonal.vjp
def diagonal(ct, input_shape, *, offset, dim1, dim2):
    return _diagonal_place(ct, input_shape, offset, dim1, dim2)


@diagonal.samples
def diagonal(rand):
    yield rand(3, 4), dict(_dtypes=("int32", "bool", "float64", "float16"))
    yield rand(3, 4), dict(offset=-1)
    yield rand(2, 3, 4), dict(offset=1, dim1=-2, dim2=-1)
    yield rand(2, 3, 4), dict(dim1=2, dim2=0)
    yield rand(3, 4), dict(offset=7)


@diagonal.batch
def diagonal(call):
    rank = call.rank()
    dims = {name: call.attrs[name] % rank + 1 for name in ("dim1", "dim2")}
    return call.run(call.operands, **dims)


def _diagonal_place_shape(given, shape, offset, dim1, dim2):
    rows, columns = shape[positive_axis(dim1, len(shape))], shape[positive_axis(dim2, len(shape))]
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    places = positive_axes((dim1, dim2), len(shape), "dim1 and dim2")
    expected = (*(n for axis, n in enumerate(shape) if axis not in places), length)
    if len(given) != len(expected) or any(n not in (m, UNKNOWN) for n, m in zip(given, expected)):
        raise ValueError(f"diagonal {offset} of {list(shape)} has shape {list(expected)}, not {list(given)}")
    return shape


@op(infer=shaped_by(_diagonal_place_shape))
def _diagonal_place(x, *, shape: "ints", offset: "int" = 0, dim1: "int" = 0, dim2: "int" = 1):
    """Zeros of `shape` with `x` on the diagonal that `diagonal` reads: its adjoint.

    Shapes: x [R.., k] -> `shape`.  dtypes: any.
    """
    y = np.zeros(shape, x.dtype)
    planes = np.moveaxis(y, (dim1, dim2), (-2, -1))
    k = np.arange(x.shape[-1])
    planes[..., k - min(offset, 0), k + max(offset, 0)] = x
    return y


@_diagonal_place.vjp
def _diagonal_place(ct, *, offset, dim1, dim2):
    return diagonal(ct, offset, dim1, dim2)


@_diagonal_place.samples
def _diagonal_place(rand):
    yield rand(3), dict(shape=(3, 4), _dtypes=("int32", "bool", "float64", "float16"))
    yield rand(2, 2), dict(shape=(2, 3, 4), offset=-1, dim1=1, dim2=2)
    yield rand(3, 2), dict(shape=(2, 3, 4), dim1=2, dim2=0)
    yield rand(0), dict(shape=(2, 2), offset=2)


@_diagonal_place.batch
def _diagonal_place(call):
    shape = call.attrs["shape"]
    dims = {name: call.attrs[name] % len(shape) + 1 for name in ("dim1", "dim2")}
    return call.run(call.operands, shape=(call.size, *shape), **dims)


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Matrices with the last axis of the input on a diagonal, zero elsewhere,
    spanned by the new axes dim1 and dim2.

    Shapes: [R.., n] -> [R.., n + |offset|, n + |offset|].  Errors: ValueError if dim1 equals dim2.
    """
    if input.ndim < 1:
        raise errors.value_error("For 'diag_embed', the input must have at least 1 axis, but got rank 0")
    rank = input.ndim + 1
    i, j = positive_axes((dim1, dim2), rank, "dim1 and dim2")
    side = input.shape[-1] + abs(offset)
    rest = iter(input.shape[:-1])
    shape = tuple(side if d in (i, j) else next(rest) for d in range(rank))
    return _diagonal_place(input, shape, offset, i, j)


def diagflat(input, offset=0):
    """A matrix with the elements of the input, flattened, on the given diagonal."""
    return diag_embed(reshape(input, (-1,)), offset)


def diag(input):
    """A tensor of twice the rank with the input on its diagonal: ``y[i, j, i, j] = x[i, j]``,
    zero elsewhere.
    """
    if input.ndim == 0:
        raise errors.value_error("For 'diag', the input must have at least 1 axis, but got rank 0")
    return reshape(diagflat(input), input.shape * 2)


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """`input` with `src` on the diagonal that `diagonal` reads."""
    place = dict(shape=input.shape, offset=offset, dim1=dim1, dim2=dim2)
    true = broadcast_to(constant(True), src.shape)
    return _where(_diagonal_place(true, **place), _diagonal_place(src, **place), input)


def tril_indices(row, col, offset=0, *, dtype=dtypes.int64):
    """The positions of the lower triangle of a `row` x `col` matrix: a row of rows, a row of columns."""
    return ops.cast(ops.stack(triangle_places(row, col, offset, False)), dtype=dtype)


def triu_indices(row, col, offset=0, *, dtype=dtypes.int64):
    """The positions of the upper triangle of a `row` x `col` matrix: a row of rows, a row of columns."""
    return ops.cast(ops.stack(triangle_places(row, col, offset, True)), dtype=dtype)


def triangle_places(rows, columns, offset, upper):
    """Rows and columns of the elements of a triangle, in row-major order: two vectors of int64."""
    if SymInt not in (type(rows), type(columns), type(offset)):
        find = np.triu_indices if upper else np.tril_indices
        places = find(rows, nearest_diagonal(offset, rows, columns), columns)
        return tuple(constant(place, dtypes.int64) for place in places)
    # Of each row, the columns from `first` to `end`.
    bound = ops.minimum(ops.maximum(ops.arange(rows) + (offset if upper else offset + 1), 0), columns)
    first, length = (bound, columns - bound) if upper else (bound * 0, bound)
    before = offset - 1 if upper else offset
    below = _staircase(rows + before, columns) - _staircase(before, columns)
    place = ops.arange(rows * columns - below if upper else below)
    ends = ops.cumsum(length, 0)
    row = ops.searchsorted(ends, place, right=True)
    return row, place - ops.gather(ends - length - first, row, 0)


def _staircase(n, most):
    """The sum of the numbers up to n, those above `most` counted as `most`, those below 0 as 0."""
    part = applied(max, applied(min, n, most), 0)
    return part * (part + 1) // 2 + most * applied(max, n - most, 0)


__all__ = [
    "tril", "triu", "diagonal", "diag_embed", "diagflat", "diag", "diagonal_scatter", "tril_indices",
    "triu_indices",
]  # fmt: skip
