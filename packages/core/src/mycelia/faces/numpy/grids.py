"""Grids of coordinates, diagonals, triangles, windows."""

from __future__ import annotations

import numpy as np

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ops.arrays.shape import constant
from mycelia.engine.ops.arrays.triangles import nearest_diagonal, triangle_places
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.numpy._arguments import (
    an_int,
    as_shape,
    as_tensor,
    axes_of,
    checked_dtype,
    only_tensor,
    result_dtype,
    to_dtype,
)


def meshgrid(*xi, sparse=False, indexing="xy"):
    """Coordinates of a grid: one Tensor for each vector, which varies along its own axis only.

    Shapes: [n], [m], .. -> [m, n, ..] each ("ij": [n, m, ..]); with `sparse` the other axes have size 1.
    Errors: TypeError for other `indexing` and for what is no Tensor.
    """
    if indexing not in ("xy", "ij"):
        raise errors.type_error("meshgrid", f"indexing must be 'xy' or 'ij', but got {indexing!r}")
    vectors = [ops.reshape(only_tensor("meshgrid", x, "xi"), (-1,)) for x in xi]
    places = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        places[:2] = 1, 0
    rank = len(vectors)
    thin = [
        ops.reshape(x, tuple(x.shape[0] if axis == place else 1 for axis in range(rank)))
        for x, place in zip(vectors, places)
    ]
    if sparse:
        return thin
    shape = [0] * rank
    for x, place in zip(vectors, places):
        shape[place] = x.shape[0]
    return [ops.broadcast_to(x, tuple(shape)) for x in thin]


class _Grid:
    """Coordinates by slices: ``grid[0:2, 0:1:5j]``; an imaginary step is a number of points."""

    def __init__(self, sparse: bool):
        self._sparse = sparse

    def __getitem__(self, slices):
        several = isinstance(slices, tuple)
        lines = [_line(one) for one in (slices if several else (slices,))]
        if not several:
            return lines[0]
        grid = meshgrid(*lines, sparse=self._sparse, indexing="ij")
        if self._sparse:
            return grid
        float_ = any(x.dtype.is_floating for x in grid)
        return ops.stack([to_dtype(x, dtypes.float32 if float_ else None) for x in grid], 0)


def _line(one):
    if not isinstance(one, slice):
        raise errors.type_error("mgrid", f"takes slices, but got {one!r}")
    start, step = one.start or 0, 1 if one.step is None else one.step
    if isinstance(step, complex):
        return constant(np.linspace(start, one.stop, int(abs(step))), dtypes.float32)
    values = np.arange(start, one.stop, step)
    return constant(values, dtypes.float32 if values.dtype.kind == "f" else dtypes.int32)


mgrid, ogrid = _Grid(sparse=False), _Grid(sparse=True)


def indices(dimensions, dtype=dtypes.int32, sparse=False):
    """The index of every element of a grid, a Tensor for each axis.

    Shapes: as `dimensions`, or with `sparse` of size 1 along the other axes.
    Errors: TypeError unless dimensions is a tuple or list of ints.
    """
    if not isinstance(dimensions, (tuple, list)):
        raise errors.type_error("indices", f"dimensions must be a tuple of ints, but got {dimensions!r}")
    dtype = checked_dtype("indices", dtype)
    lines = [ops.arange(n, dtype=dtype) for n in as_shape("indices", dimensions)]
    return meshgrid(*lines, sparse=sparse, indexing="ij")


def ix_(*args):
    """Vectors as an open grid: the i-th varies along axis i.

    Shapes: [n], [m], .. -> [n, 1, ..], [1, m, ..], ..  Errors: TypeError for other things, ValueError for
    other ranks.
    """
    for x in args:
        if only_tensor("ix_", x, "args").ndim != 1:
            raise errors.value_error("ix_", f"takes vectors, but got shape {x.shape}")
    rank = len(args)
    return tuple(ops.reshape(x, (1,) * i + (x.shape[0],) + (1,) * (rank - 1 - i)) for i, x in enumerate(args))


# ---------------------------------------------------------------------------------- diagonals and triangles


def diag(v, k=0):
    """The `k`-th diagonal of a matrix, or the matrix with that diagonal.

    Shapes: [n, m] -> [d]; [n] -> [n + |k|, n + |k|].  Errors: ValueError for other ranks.
    """
    x = only_tensor("diag", v, "v")
    if x.ndim == 1:
        return ops.diagflat(x, k)
    if x.ndim != 2:
        raise errors.value_error("diag", f"v must be a vector or a matrix, but has shape {x.shape}")
    return diagonal(x, k)


def diagflat(v, k=0):
    """A matrix with all n elements of `v` on its `k`-th diagonal.  Shapes: any -> [n + |k|, n + |k|]."""
    return ops.diagflat(ops.reshape(only_tensor("diagflat", v, "v"), (-1,)), k)


def _matrix_axes(name, a, axis1, axis2):
    if not is_tensor(a):
        raise errors.error(
            errors.MyceliaAttributeError, name, f"a must be a Tensor, but got {type(a).__name__}"
        )
    return axes_of(name, (axis1, axis2), a.ndim)


def diagonal(a, offset=0, axis1=0, axis2=1):
    """Diagonals of the matrices that `axis1` and `axis2` span; empty beyond the corner.

    Shapes: [.., n, .., m, ..] -> [.., d].  Errors: ValueError for axes out of range or twice the same.
    """
    axis1, axis2 = _matrix_axes("diagonal", a, axis1, axis2)
    if not -a.shape[axis1] < offset < a.shape[axis2]:
        rest = tuple(n for i, n in enumerate(a.shape) if i not in (axis1, axis2))
        return ops.zeros((*rest, 0), a.dtype)
    return ops.diagonal(a, offset=offset, dim1=axis1, dim2=axis2)


def trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    """Sums of the diagonals.

    Shapes: [.., n, .., m, ..] -> [..].  dtypes: integers give int64, bool stays, or `dtype`.
    Errors: RuntimeError for less than two axes.
    """
    if is_tensor(a) and a.ndim < 2:
        raise errors.runtime_error("trace", f"a must have two axes at least, but has shape {a.shape}")
    parts = diagonal(a, offset, axis1, axis2)
    total = ops.sum(parts, -1)
    return to_dtype(total, result_dtype("trace", dtype) or (dtypes.bool_ if a.dtype.is_bool else total.dtype))


def diag_indices(n, ndim=2):
    """The indices of the main diagonal of a cube of `ndim` axes of size `n`: `ndim` times [n], int32."""
    line = ops.arange(an_int("diag_indices", n, "n"), dtype=dtypes.int32)
    return (line,) * an_int("diag_indices", ndim, "ndim")


def tri(N, M=None, k=0, dtype=dtypes.float32):
    """A matrix with ones on and below its `k`-th diagonal.  Shapes: [N, M], M = N by default."""
    dtype = checked_dtype("tri", dtype)
    if SymInt in (type(N), type(M), type(k)):
        columns = ops.arange(N if M is None else M)
        return to_dtype(columns - k <= ops.arange(N).reshape(-1, 1), dtype)
    return constant(np.tri(N, M, nearest_diagonal(k, N, N if M is None else M)), dtype)


def _triangle(name, function, m, k):
    x = as_tensor(name, m, "m")
    if x.ndim == 0:
        raise errors.value_error(name, "m must have one axis at least")
    if x.ndim == 1:
        x = ops.broadcast_to(x, (x.shape[0], x.shape[0]))
    return function(x, k)


def tril(m, k=0):
    """Matrices with zeros above the `k`-th diagonal; a vector is broadcast to a square matrix."""
    return _triangle("tril", ops.tril, m, k)


def triu(m, k=0):
    """Matrices with zeros below the `k`-th diagonal; a vector is broadcast to a square matrix."""
    return _triangle("triu", ops.triu, m, k)


def _triangle_indices(n, k, m, upper):
    return tuple(to_dtype(v, dtypes.int32) for v in triangle_places(n, n if m is None else m, k, upper))


def tril_indices(n, k=0, m=None):
    """The indices of the elements on and below the `k`-th diagonal of an n x m matrix: two vectors, int32."""
    return _triangle_indices(n, k, m, False)


def triu_indices(n, k=0, m=None):
    """The indices of the elements on and above the `k`-th diagonal of an n x m matrix: two vectors, int32."""
    return _triangle_indices(n, k, m, True)


def _of_matrix(name, function, arr, k):
    x = as_tensor(name, arr, "arr")
    if x.ndim != 2:
        raise errors.value_error(name, f"arr must be a matrix, but has shape {x.shape}")
    return function(x.shape[0], k, x.shape[1])


def tril_indices_from(arr, k=0):
    """`tril_indices` for the shape of the matrix `arr`."""
    return _of_matrix("tril_indices_from", tril_indices, arr, k)


def triu_indices_from(arr, k=0):
    """`triu_indices` for the shape of the matrix `arr`."""
    return _of_matrix("triu_indices_from", triu_indices, arr, k)


def vander(x, N=None, increasing=False):
    """Powers of the vector `x` in `N` columns, from ``N - 1`` down to 0, or up with `increasing`.

    Shapes: [n] -> [n, N]; without N, or with 0, N = n.  Errors: ValueError unless x is a vector.
    """
    x = as_tensor("vander", x)
    if x.ndim != 1:
        raise errors.value_error("vander", f"x must be a vector, but has shape {x.shape}")
    count = N or x.shape[0]
    exponents = ops.arange(count)
    exponents = to_dtype(exponents if increasing else count - 1 - exponents, x.dtype)
    return ops.pow(ops.reshape(x, (-1, 1)), ops.reshape(exponents, (1, -1)))


# --------------------------------------------------------------------------------------------------- windows


def _window(name: str, terms: tuple[float, ...]):
    def window(M):
        n = an_int(name, M, "M")
        if n < 2:
            return constant(np.ones(max(n, 0)), dtypes.float32)
        turns = 2 * np.pi * ops.arange(n, dtype=dtypes.float64) / (n - 1)
        values = sum(c * ops.cos(i * turns) for i, c in enumerate(terms))
        return to_dtype(values, dtypes.float32)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"""The {name.title()} window.  Shapes: [M], empty below 1.  dtypes: float32.

    Errors: TypeError unless M is an int.
    """
    return window


blackman = _window("blackman", (0.42, -0.5, 0.08))
hamming = _window("hamming", (0.54, -0.46))
hanning = _window("hanning", (0.5, -0.5))


def bartlett(M):
    """The Bartlett window, a triangle.  Shapes: [M], empty below 1.  dtypes: float32.

    Errors: TypeError unless M is an int.
    """
    n = an_int("bartlett", M, "M")
    if n < 2:
        return constant(np.ones(max(n, 0)), dtypes.float32)
    from_middle = ops.abs(2 * ops.arange(n, dtype=dtypes.float64) - (n - 1))
    return to_dtype(1 - from_middle / (n - 1), dtypes.float32)
