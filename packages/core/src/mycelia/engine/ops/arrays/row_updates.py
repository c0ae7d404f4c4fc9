"""Rows, or slices along an axis, that are added, filled or replaced by index; copying and in-place forms."""

import math

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ops.arrays.gathering import gather
from mycelia.engine.ops.arrays.index import _linear_index, check_index_dtype, is_tensor, wrapped
from mycelia.engine.ops.arrays.scatter import _as_updates, _same_dtype, _store, _write
from mycelia.engine.ops.arrays.shape import as_ints, broadcast_to, constant, positive_axis, reshape
from mycelia.engine.ops.define import op


def _rows_fit(x, index, y, axis):
    check_index_dtype(index, "indices")
    _same_dtype(x, y, "y")
    at = positive_axis(axis, x.rank)
    if index.rank != 1:
        raise ValueError(f"indices must be a vector, but got shape {index.shape}")
    wanted = (*x.shape[:at], index.shape[0], *x.shape[at + 1 :])
    if y.shape != wanted:
        raise ValueError(
            f"y must have shape {wanted} for {index.shape[0]} indices on axis {axis}, but got {y.shape}"
        )
    return x


def _rows(x, index, axis, op_name):
    axis %= x.ndim
    return (slice(None),) * axis + (wrapped(index, x.shape[axis], axis, op_name),)


@op(infer=lambda x, index, y, axis: _rows_fit(x, index, y, axis))
def _index_add(x, index, y, *, axis: "int"):
    """`x` with the slices of `y` added along `axis` at the positions `index`.

    Shapes: x [.., n, ..], index [k], y [.., k, ..] -> shape of x.  dtypes: numbers, integer index.
    """
    return _write(x.copy(), _rows(x, index, axis, "index_add"), y, "add")


@_index_add.vjp
def _index_add(ct, index, needs, *, axis):
    return ct, None, gather(ct, index, axis) if needs[2] else None


@_index_add.samples
def _index_add(rand):
    yield rand(4, 3), rand.ints(0, 4, (6,)), rand(6, 3), dict(axis=0, _dtypes=("int32", "float64"))
    yield rand(2, 4, 3), rand.ints(-4, 4, (2,), "int64"), rand(2, 2, 3), dict(axis=1)
    yield rand(2, 3), rand.ints(0, 3, (0,)), rand(2, 0), dict(axis=-1)


@op(infer=lambda x, index, y, axis: _rows_fit(x, index, y, axis))
def _index_copy(x, index, y, *, axis: "int"):
    """`x` with its slices along `axis` at the positions `index` replaced by the slices of `y`.

    Shapes: x [.., n, ..], index [k], y [.., k, ..] -> shape of x.  dtypes: any, integer index.
    """
    return _write(x.copy(), _rows(x, index, axis, "index_copy"), y, "update")


@_index_copy.vjp
def _index_copy(ct, index, y_shape, needs, *, axis):
    zeros = broadcast_to(constant(0, ct.dtype), y_shape)
    return (
        _index_copy(ct, index, zeros, axis) if needs[0] else None,
        None,
        gather(ct, index, axis) if needs[2] else None,
    )


@_index_copy.samples
def _index_copy(rand):
    rows = np.argsort(rand(4))[:3].astype(np.int32)
    yield rand(4, 3), rows, rand(3, 3), dict(axis=0, _dtypes=("int32", "bool", "float64", "float16"))
    yield rand(2, 4, 3), rows - 4, rand(2, 3, 3), dict(axis=-2)
    yield rand(4, 3), rand.ints(0, 4, (9,), "int64"), rand(9, 3), dict(axis=0, _grad=False)
    yield rand(2, 3), rand.ints(0, 3, (0,)), rand(2, 0), dict(axis=-1)


def index_add(x, indices, y, axis, use_lock=True, check_index_bound=True):
    """`x` with the slices of `y` added along `axis` at the positions `indices`;
    a Parameter is updated in place.

    Shapes: x [.., n, ..], indices [k], y [.., k, ..].  `use_lock` has no effect; indices are always checked.
    """
    del use_lock, check_index_bound  # updates are whole and indices are checked, always
    result = _index_add(x, indices, _as_updates(x, y), axis)
    return _store(x, result) if x._is_parameter else result


def inplace_index_add(var, indices, updates, axis):
    """The Parameter `var` with the slices of `updates` added along `axis` at the positions `indices`; returns
    the new value."""
    return _store(var, _index_add(var, indices, _as_updates(var, updates), axis))


def index_fill(x, axis, index, value):
    """`x` with its slices along `axis` at the positions `index` set to `value`,
    a number or a tensor of rank 0.
    """
    axis = positive_axis(axis, x.ndim)
    index = constant(index) if isinstance(index, int) else index
    index = reshape(index, (-1,))
    shape = (*x.shape[:axis], index.shape[0], *x.shape[axis + 1 :])
    return _index_copy(x, index, broadcast_to(_as_updates(x, value), shape), axis)


def index_copy(x, axis, index, source):
    """`x` with its slices along `axis` at the positions `index` replaced by those of `source`."""
    return _index_copy(x, index, _as_updates(x, source), axis)


def index_put(input, indices, values, accumulate=False):
    """`input` with `values` at the positions ``(indices[0][i], indices[1][i], ...)``, replacing or
    (`accumulate`) added.

    Shapes: the index vectors broadcast to [I..]; values broadcast to [I.., R..].  dtypes: any.
    """
    count = len(indices)
    if not 0 < count <= input.ndim:
        raise errors.value_error(
            f"For 'index_put', between 1 and {input.ndim} index tensors are needed, but got {count}"
        )
    place = _linear_index(list(indices), input.shape[:count])
    rest = input.shape[count:]
    flat = reshape(input, (math.prod(input.shape[:count]), *rest))
    values = broadcast_to(_as_updates(input, values), place.shape + rest)
    values = reshape(values, (math.prod(place.shape), *rest))
    write = _index_add if accumulate else _index_copy
    return reshape(write(flat, reshape(place, (-1,)), values, 0), input.shape)


def _rows_of(indices):
    return constant(as_ints(indices, "indices")) if not is_tensor(indices) else reshape(indices, (-1,))


def inplace_update(x, v, indices):
    """`x` with its slices `indices` of the first axis replaced by those of `v`."""
    return _index_copy(x, _rows_of(indices), _as_updates(x, v), 0)


def inplace_add(x, v, indices):
    """`x` with the slices of `v` added at the positions `indices` of the first axis."""
    return _index_add(x, _rows_of(indices), _as_updates(x, v), 0)


def inplace_sub(x, v, indices):
    """`x` with the slices of `v` subtracted at the positions `indices` of the first axis."""
    return _index_add(x, _rows_of(indices), -_as_updates(x, v), 0)


__all__ = ["index_add", "inplace_index_add", "index_fill", "inplace_update", "inplace_add", "inplace_sub"]
