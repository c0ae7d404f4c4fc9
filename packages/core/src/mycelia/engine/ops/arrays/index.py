"""Ops that pick elements by position: slices and gathers, with what writes a slice.

`indexing.py` builds NumPy-style ``x[...]`` from these. What chooses by a condition is in `masks.py`, what
writes by position in `scatter.py`, what orders elements in `order.py`.
"""

import builtins

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op
from mycelia.engine.ops.infer import broadcast_shapes


def wrapped(index, n, axis, op_name):
    """`index` with negative entries counted from the end; IndexError if one is not in [-n, n)."""
    bad = (index < -n) | (index >= n)
    if bad.any():
        raise errors.index_error(
            f"{op_name}: index {index[bad].flat[0]} is out of bounds for axis {axis} with size {n}"
        )
    return np.where(index < 0, index + n, index)


def check_index_dtype(index, name="index"):
    if not index.dtype.is_integer:
        raise errors.type_error(f"{name} must hold integers, but got {index.dtype.name}")


def is_tensor(obj):
    """True if `obj` is a Tensor."""
    return isinstance(obj, _C.Tensor)


def _grid(index, axis):
    """Index arrays that name, for each entry of `index`, the element with this position along `axis`."""
    grid = list(np.ogrid[tuple(builtins.slice(0, n) for n in index.shape)])
    grid[axis] = index
    return tuple(grid)


def positions_nd(indices, shape, op_name):
    """The columns of `indices` as one index array an axis, negative entries counted from the end."""
    return tuple(wrapped(indices[..., i], shape[i], i, op_name) for i in range(indices.shape[-1]))


def _linear(indices, dims):
    for index in indices:
        check_index_dtype(index)
    return TensorType(dtypes.int64, broadcast_shapes(*(index.shape for index in indices)))


@op(infer=lambda indices, dims: _linear(indices, dims), nondiff=True)
def _linear_index(indices: "tensors", *, dims: "ints"):
    """Positions in row-major order of the elements named by one index tensor an axis,
    which broadcast to each other.

    Shapes: broadcast.  dtypes: integer -> int64.  Errors: IndexError for an index not in [-n, n) of its axis.
    """
    linear = np.zeros((), np.int64)
    for axis, (index, n) in enumerate(zip(indices, dims)):
        linear = linear * n + wrapped(index, n, axis, "index").astype(np.int64)
    return linear


@_linear_index.samples
def _linear_index(rand):
    yield [rand.ints(-3, 3, (4,)), rand.ints(0, 5, (2, 1))], dict(dims=(3, 5))
    yield [rand.ints(0, 3, ()), rand.ints(-5, 5, (3,)), rand.ints(0, 2, (3,))], dict(dims=(3, 5, 2))
    yield [rand.ints(0, 3, (0,), "int64")], dict(dims=(3,))


__all__ = ["is_tensor"]
