"""Inverses, determinants, powers of matrices and systems of equations; every op takes stacks of matrices."""

import numpy as np

from mycelia.engine.base.errors import shape_error
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays import axes as _axes
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.arrays.create import eye as _eye
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import logarithms as _logarithms
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.infer import broadcast_shapes
from mycelia.engine.ops.linalg import products as _linalg
from mycelia.engine.tensors.attach import attach


def _matrices(x):
    if len(x.shape) < 2:
        raise shape_error(f"the input must have at least 2 axes, but has shape {list(x.shape)}")
    if not (x.dtype.is_floating or x.dtype.is_complex):
        raise TypeError(f"the input must be floating or complex, but is {x.dtype.name}")
    return x.shape[:-2], *x.shape[-2:]


def _square(x):
    """The batch shape and side of square matrices; raises for others."""
    batch, m, n = _matrices(x)
    if m != n and UNKNOWN not in (m, n):
        raise shape_error(f"the matrices must be square, but the input has shape {list(x.shape)}")
    return batch, n


def _same_square(x, **attrs):
    _square(x)
    return x


def _in_float32(function, *arrays):
    """`function` of the arrays, computed in float32 where LAPACK has no half precision."""
    return function(*(a.astype(np.float32) if a.dtype == np.float16 else a for a in arrays))


def _of_finite(function, a):
    """`function` of matrices; NaN comes of those that hold NaN or infinity: LAPACK may never end on them."""
    finite = np.isfinite(a).all((-2, -1))
    found = function(a if finite.all() else np.where(finite[..., None, None], a, 0))
    for part in found if isinstance(found, tuple) else (found,):
        part[~finite] = np.nan
    return found


def _turn(x):
    return _axes.swapaxes(x, -1, -2)


def _mm(a, b, transpose_a=False, transpose_b=False):
    return _linalg.batch_matmul(a, b, transpose_a, transpose_b)


def _well_conditioned(rand, *batch, n=3):
    """Random matrices with a strong diagonal."""
    return (rand(*batch, n, n, low=-0.4, high=0.4) + np.diag(np.arange(1.0, n + 1))).astype(np.float32)


# ------------------------------------------------------------------------------- determinant and inverse


@op(infer=_same_square, mindir="MatrixInverse", mindir_attributes=True, method=True, batch=_batch.leading)
def inverse(input):
    """Inverse of each matrix. A singular one gives infinities or an error of LAPACK.

    Shapes: [.., n, n] -> same.  dtypes: floating, complex.  Errors: MYC-SHAPE unless square.
    """
    return _in_float32(np.linalg.inv, input)


@inverse.vjp
def inverse(ct, out):
    return _math.neg(_mm(_mm(out, ct, True, False), out, False, True))


@inverse.samples
def inverse(rand):
    yield _well_conditioned(rand)
    yield _well_conditioned(rand, 2, n=2)
    yield _well_conditioned(rand, n=1)
    yield rand(0, 2, 2)


@op(
    infer=lambda x: TensorType(x.dtype, _square(x)[0]),
    mindir="MatrixDeterminant",
    onnx="Det",
    method=True,
    batch=_batch.leading,
    primitive=True,
)
def det(input):
    """Determinant of each matrix.

    Shapes: [.., n, n] -> [..].  dtypes: floating, complex.  Errors: MYC-SHAPE unless square.
    """
    return _in_float32(np.linalg.det, input)


@det.vjp
def det(ct, input, out):
    return _math.mul(_shape.reshape(_math.mul(ct, out), (*out.shape, 1, 1)), _turn(inverse(input)))


@det.samples
def det(rand):
    yield _well_conditioned(rand)
    yield _well_conditioned(rand, 2, n=2)
    yield _well_conditioned(rand, n=1)
    yield rand(0, 2, 2)


def _slogdet_type(x):
    batch, _ = _square(x)
    return TensorType(x.dtype, batch), TensorType(x.dtype, batch)


@op(infer=_slogdet_type, outputs=2, mindir="LogMatrixDeterminant", method=True, batch=_batch.leading)
def slogdet(input):
    """Sign and logarithm of the absolute value of each determinant.

    Shapes: [.., n, n] -> [..] twice.  dtypes: floating.  Errors: MYC-SHAPE unless square.
    """
    return tuple(_in_float32(np.linalg.slogdet, input))


@slogdet.vjp
def slogdet(cts, input):
    if cts[1] is None:
        return None
    return _math.mul(_shape.reshape(cts[1], (*cts[1].shape, 1, 1)), _turn(inverse(input)))


@slogdet.samples
def slogdet(rand):
    yield _well_conditioned(rand)
    yield _well_conditioned(rand, 2, n=2)


def logdet(input):
    """Logarithm of each determinant, NaN for negative ones. Shapes: [.., n, n] -> [..]."""
    return _logarithms.log(det(input))


def matrix_determinant(input):
    """Determinant of each matrix: `det`."""
    return det(input)


def log_matrix_determinant(input):
    """Sign and logarithm of the absolute value of each determinant: `slogdet`."""
    return slogdet(input)


# ------------------------------------------------------------------------------------------- linear systems


def _matrix_solve_type(matrix, rhs, *, adjoint):
    batch, n = _square(matrix)
    rhs_batch, rows, columns = _matrices(rhs)
    if rows != n and UNKNOWN not in (rows, n):
        raise shape_error(
            f"matrix is {list(matrix.shape)}, so rhs must have {n} rows, but is {list(rhs.shape)}"
        )
    return TensorType(rhs.dtype, (*broadcast_shapes(batch, rhs_batch), n, columns))


@op(
    infer=_matrix_solve_type,
    promote=("matrix", "rhs"),
    mindir="MatrixSolve",
    mindir_attributes=True,
    batch=_batch.leading,
)
def matrix_solve(matrix, rhs, *, adjoint: "bool" = False):
    """The x of ``matrix @ x = rhs``; with `adjoint` of ``matrix.T @ x = rhs``.

    Shapes: [.., n, n], [.., n, k] -> [.., n, k].  dtypes: floating.
    Errors: MYC-SHAPE for other shapes; ValueError if a matrix is not invertible.
    """
    try:
        return _in_float32(np.linalg.solve, np.swapaxes(matrix, -1, -2).conj() if adjoint else matrix, rhs)
    except np.linalg.LinAlgError:
        raise ValueError("matrix is not invertible") from None


@matrix_solve.vjp
def matrix_solve(ct, matrix, out, matrix_shape, rhs_shape, *, adjoint):
    from mycelia.engine.ops.infer import unbroadcast

    d_rhs = matrix_solve(matrix, ct, not adjoint)
    d_matrix = _mm(out, d_rhs, False, True) if adjoint else _mm(d_rhs, out, False, True)
    return unbroadcast(_math.neg(d_matrix), matrix_shape), unbroadcast(d_rhs, rhs_shape)


@matrix_solve.samples
def matrix_solve(rand):
    yield _well_conditioned(rand), rand(3, 2)
    yield _well_conditioned(rand), rand(3, 1), dict(adjoint=True)
    yield _well_conditioned(rand, 2, n=2), rand(2, 2, 3)
    yield rand(0, 2, 2), rand(0, 2, 3)


def matrix_power(input, n):
    """Each matrix to the integer power `n`, by repeated squaring; negative powers of the inverse.

    Shapes: [.., m, m] -> same.
    """
    if n < 0:
        return matrix_power(inverse(input), -n)
    if n == 0:
        return _math.add(_math.mul(input, 0.0), _eye(input.shape[-1], dtype=input.dtype))
    result, square = None, input
    while n:
        if n & 1:
            result = square if result is None else _mm(result, square)
        n >>= 1
        square = _mm(square, square) if n else square
    return result


for _function in (logdet, log_matrix_determinant, matrix_determinant, matrix_power):
    attach(_function.__name__, _function)


__all__ = [
    "det", "inverse", "log_matrix_determinant", "logdet", "matrix_determinant", "matrix_power",
    "matrix_solve", "slogdet",
]  # fmt: skip
