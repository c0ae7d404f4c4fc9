"""Equations with triangular matrices, least squares, the logarithm of a matrix; all take stacks."""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.base.errors import shape_error
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays.axes import swapaxes
from mycelia.engine.ops.arrays.triangles import tril, triu
from mycelia.engine.ops.define import op
from mycelia.engine.ops.infer import broadcast_shapes, unbroadcast
from mycelia.engine.ops.late import ops
from mycelia.engine.ops.linalg.determinants import _in_float32, _square, matrix_solve
from mycelia.engine.ops.linalg.products import batch_matmul

__all__: list[str] = []


def _solution_type(matrix, rhs, **attrs):
    batch, n = _square(matrix)
    if matrix.dtype is not rhs.dtype:
        raise TypeError(f"matrix and rhs must have one dtype, got {matrix.dtype} and {rhs.dtype}")
    if rhs.rank < 2 or rhs.shape[-2] != n:
        raise shape_error(f"rhs must be [..., {n}, k] for matrices [{n}, {n}], but has shape {rhs.shape}")
    return TensorType(rhs.dtype, (*broadcast_shapes(batch, rhs.shape[:-2]), *rhs.shape[-2:]))


def _adjoint(x):
    return swapaxes(ops.conj(x) if x.dtype.is_complex else x, -1, -2)


def _np_substituted(triangle, rhs, lower, unit):
    """Row after row from the end where an equation has one unknown; a zero on the diagonal gives
    infinities.
    """
    n = triangle.shape[-1]
    batch = np.broadcast_shapes(triangle.shape[:-2], rhs.shape[:-2])
    found = np.array(np.broadcast_to(rhs, (*batch, *rhs.shape[-2:])))
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(n) if lower else reversed(range(n)):
            known = slice(0, i) if lower else slice(i + 1, n)
            row = found[..., i, :] - np.squeeze(triangle[..., i : i + 1, known] @ found[..., known, :], -2)
            found[..., i, :] = row if unit else row / triangle[..., i, i, None]
    return found


@op(infer=_solution_type, promote=("matrix", "rhs"), batch=_batch.leading)
def triangular_matrix_solve(
    matrix, rhs, *, lower: "bool" = True, adjoint: "bool" = False, unit: "bool" = False
):
    """X with ``matrix @ X = rhs``, of which only the lower or upper triangle is read; `adjoint` turns it.

    `unit` takes ones for the diagonal. Shapes: [..., n, n], [..., n, k] -> [..., n, k].
    dtypes: floating, complex.
    """
    triangle = np.swapaxes(matrix.conj(), -1, -2) if adjoint else matrix
    found = _in_float32(lambda a, b: _np_substituted(a, b, lower != adjoint, unit), triangle, rhs)
    return found.astype(rhs.dtype)


@triangular_matrix_solve.vjp
def triangular_matrix_solve(ct, out, matrix, matrix_shape, rhs_shape, *, lower, adjoint, unit):
    solved = triangular_matrix_solve(matrix, ct, lower, not adjoint, unit)
    d_matrix = batch_matmul(out, _adjoint(solved)) if adjoint else batch_matmul(solved, _adjoint(out))
    triangle = tril(-d_matrix, -int(unit)) if lower else triu(-d_matrix, int(unit))
    return unbroadcast(triangle, matrix_shape), unbroadcast(solved, rhs_shape)


@triangular_matrix_solve.samples
def triangular_matrix_solve(rand):
    big = 2 * np.eye(3, dtype=np.float32)
    for lower in (True, False):
        for adjoint in (True, False):
            yield rand(3, 3) + big, rand(3, 2), dict(lower=lower, adjoint=adjoint)
            yield rand(3, 3), rand(3, 1), dict(lower=lower, adjoint=adjoint, unit=True)
    yield rand(2, 3, 3) + big, rand(2, 3, 1)


_SMALL = 0.25  # of the distance to the unit matrix: 16 terms of the series are exact to 1e-17 then


def _np_logarithm(a):
    """By square roots until the matrix is near 1, then the series of artanh."""
    eye = np.eye(a.shape[-1], dtype=np.complex128)
    root, doublings = a.astype(np.complex128), 0
    while np.abs(root - eye).sum() > _SMALL and doublings < 60:
        y, z = root, eye  # Denman and Beavers 1976: y becomes the square root
        for _ in range(40):
            y, z, before = (y + np.linalg.inv(z)) / 2, (z + np.linalg.inv(y)) / 2, y
            if np.abs(y - before).max() <= 1e-15 * max(1.0, np.abs(y).max()):
                break
        root, doublings = y, doublings + 1
    ratio = np.linalg.solve(root + eye, root - eye)
    total, power = np.zeros_like(ratio), ratio
    for k in range(16):
        total += power / (2 * k + 1)
        power = power @ ratio @ ratio
    return 2.0 ** (doublings + 1) * total


def _complex_square(x):
    if not x.dtype.is_complex:
        raise TypeError(f"the input must be complex, but is {x.dtype.name}")
    _square(x)
    return x


@op(infer=_complex_square, nondiff=True, mindir="MatrixLogarithm", batch=_batch.leading)
def matrix_logarithm(x):
    """The matrix whose exponential is x, with eigenvalues between -pi and pi in their imaginary parts.

    Shapes: [..., n, n] -> same.  dtypes: complex.  Source: Higham 2008, Functions of Matrices, chapter 11.
    """
    flat = x.reshape(-1, *x.shape[-2:])
    return np.stack([_np_logarithm(m) for m in flat]).astype(x.dtype).reshape(x.shape) if len(flat) else x


@matrix_logarithm.samples
def matrix_logarithm(rand):
    yield np.array([[1 + 2j, 3 + 1j], [4 + 1j, 5 + 2j]], np.complex64)
    yield np.array([[[4, 1], [1, 3]], [[1, 0], [0, 1]]], np.complex128)


def least_squares(matrix, rhs, l2=0.0):
    """X with the least ``|matrix @ X - rhs|^2 + l2 |X|^2``, by the normal equations.

    Shapes: [..., m, n], [..., m, k] -> [..., n, k].
    """
    m, n = matrix.shape[-2:]
    if rhs.shape[-2] != m:
        raise errors.value_error(f"rhs must be [..., {m}, k], but its shape is {tuple(rhs.shape)}")
    turned = _adjoint(matrix)
    eye = ops.eye(min(m, n), min(m, n), matrix.dtype) * l2
    if m >= n:
        return matrix_solve(batch_matmul(turned, matrix) + eye, batch_matmul(turned, rhs))
    return batch_matmul(turned, matrix_solve(batch_matmul(matrix, turned) + eye, rhs))
