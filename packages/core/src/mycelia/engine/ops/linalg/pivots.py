"""What an LU factorization with pivots stands for, and equations solved by it."""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.arrays import triangles as _triangles
from mycelia.engine.ops.arrays.create import eye as _eye
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.linalg.determinants import _mm, matrix_solve
from mycelia.engine.tensors.attach import attach


def _permutation(pivots, m):
    """Row orders that LAPACK's 1-based row exchanges make. Shapes: [.., k] -> [.., m]."""
    flat = pivots.reshape(-1, pivots.shape[-1])
    orders = np.tile(np.arange(m), (len(flat), 1))
    for order, exchanges in zip(orders, flat):
        for i, p in enumerate(exchanges):
            order[[i, p - 1]] = order[[p - 1, i]]
    return orders.reshape(*pivots.shape[:-1], m)


@op(infer=lambda pivots, size, dtype: TensorType(dtype, (*pivots.shape[:-1], size, size)), nondiff=True)
def _pivot_matrix(pivots, *, size: "int", dtype: "dtype"):
    """Permutation matrices P of LAPACK's 1-based row exchanges, so that ``A = P @ L @ U``.

    Shapes: [.., k] -> [.., size, size].  dtypes: integers -> `dtype`.
    """
    order = _permutation(pivots, size)
    return np.swapaxes(order[..., :, None] == np.arange(size), -1, -2)


@_pivot_matrix.samples
def _pivot_matrix(rand):
    yield np.array([2, 3, 3], np.int32), dict(size=3, dtype="float32")
    yield np.array([[2, 2], [1, 2]], np.int32), dict(size=3, dtype="float64")


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """P, L and U from a packed LU factorization with 1-based pivots; parts that are not wanted are empty.

    Shapes: [.., m, n], [.., k] -> [.., m, m], [.., m, k], [.., k, n], k = min(m, n).
    """
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    nothing = LU_data[..., :0, :0]
    pivots = _pivot_matrix(LU_pivots, m, LU_data.dtype) if unpack_pivots else nothing
    if not unpack_data:
        return pivots, nothing, nothing
    unit = _eye(m, k, LU_data.dtype)
    return (
        pivots,
        _math.add(_triangles.tril(LU_data[..., :, :k], diagonal=-1), unit),
        _triangles.triu(LU_data[..., :k, :]),
    )


def lu_solve(b, LU_data, LU_pivots):
    """The x of ``A @ x = b``, given the packed LU factorization of A with 1-based pivots.

    Shapes: [.., n, k], [.., n, n], [.., n] -> [.., n, k].
    """
    if b.ndim < 2:
        raise errors.value_error(
            f"For 'lu_solve', b must have at least 2 axes, but has shape {tuple(b.shape)}"
        )
    p, lower, upper = lu_unpack(LU_data, LU_pivots)
    return matrix_solve(upper, matrix_solve(lower, _mm(p, b, True)))


attach("lu_solve", lu_solve)


__all__ = ["lu_solve", "lu_unpack"]
