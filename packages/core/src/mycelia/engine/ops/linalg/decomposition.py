"""Factorizations of matrices and what is solved with them; every op takes stacks of matrices.

The bodies call LAPACK through NumPy. Gradients follow Giles 2008 (An extended collection of matrix derivative
results for forward and reverse mode AD); those of svd and eigh hold for real matrices with distinct singular
values or eigenvalues.
"""

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.symint import applied
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays import joining as _joining
from mycelia.engine.ops.arrays import masks as _masks
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.arrays import triangles as _triangles
from mycelia.engine.ops.arrays.create import eye as _eye
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.linalg.determinants import (
    _in_float32,
    _matrices,
    _mm,
    _of_finite,
    _same_square,
    _square,
    _turn,
    _well_conditioned,
    inverse,
    matrix_solve,
)
from mycelia.engine.ops.reductions import extreme_values as _extreme_values
from mycelia.engine.ops.reductions import moments as _moments
from mycelia.engine.tensors.attach import attach


@op(infer=_same_square, mindir="Cholesky", batch=_batch.leading)
def _cholesky(input_x, *, upper: "bool" = False):
    """Triangular L with ``L @ L.T = input``, or with `upper` its transpose; reads one triangle of the input.

    Shapes: [.., n, n] -> same.  dtypes: floating.  Errors: RuntimeError unless positive definite.
    """
    try:
        lower = _in_float32(np.linalg.cholesky, input_x)
    except np.linalg.LinAlgError:
        raise RuntimeError("the input must be symmetric positive definite") from None
    return np.swapaxes(lower, -1, -2) if upper else lower


@_cholesky.vjp
def _cholesky(ct, out, *, upper):
    lower, ct = (_turn(out), _turn(ct)) if upper else (out, ct)
    # dA = L^-T phi(L^T dL) L^-1, made symmetric; phi: lower triangle, half of the diagonal.
    inner = _triangles.tril(_mm(lower, ct, True))
    inner = _math.sub(inner, _math.mul(_on_diagonal(inner), 0.5))
    inverted = inverse(lower)
    full = _mm(_mm(inverted, inner, True), inverted)
    return _math.mul(_math.add(full, _turn(full)), 0.5)


def _on_diagonal(x):
    """The matrix with all but its diagonal zero."""
    return _triangles.triu(_triangles.tril(x))


def _positive_definite(rand, *batch, n=3):
    """Symmetric matrices with eigenvalues above 1."""
    a = rand(*batch, n, n)
    return (a @ np.swapaxes(a, -1, -2) + np.diag(np.arange(1.0, n + 1))).astype(np.float32)


@_cholesky.samples
def _cholesky(rand):
    # The gradient is that among symmetric inputs, which single changed elements leave: checked in the tests.
    yield _positive_definite(rand), dict(_grad=False)
    yield _positive_definite(rand, 2, n=2), dict(upper=True, _grad=False)


def cholesky(input_x, upper=False):
    """Triangular L with ``L @ L.T = input_x``; with `upper` its transpose.

    Shapes: [.., n, n] -> same.  Errors: RuntimeError unless positive definite.
    """
    return _cholesky(input_x, upper)


def _rebuilt(factor, upper):
    return _mm(factor, factor, True) if upper else _mm(factor, factor, False, True)


def cholesky_inverse(input_x, upper=False):
    """Inverse of the matrix whose Cholesky factor is given. Shapes: [.., n, n] -> same."""
    return inverse(_rebuilt(input_x, upper))


def cholesky_solve(input, input2, upper=False):
    """The x of ``A @ x = input``, given the Cholesky factor `input2` of A. Shapes: [.., n, k], [.., n, n]."""
    halfway = matrix_solve(input2, input, upper)
    return matrix_solve(input2, halfway, not upper)


def _svd_type(x, *, full_matrices):
    batch, m, n = _matrices(x)
    k = UNKNOWN if UNKNOWN in (m, n) else applied(min, m, n)
    u, v = (m, n) if full_matrices else (k, k)
    return tuple(TensorType(x.dtype, (*batch, *s)) for s in ((k,), (m, u), (n, v)))


@op(name="svd", infer=_svd_type, outputs=3, mindir="Svd", batch=_batch.leading)
def _svd(input, *, full_matrices: "bool" = False):
    """Singular values (descending) and vectors: ``input = u @ diag(s) @ v.T``.

    Shapes: [.., m, n] -> s [.., k], u [.., m, k], v [.., n, k], k = min(m, n); square with `full_matrices`.
    dtypes: floating.
    """
    u, s, vt = _in_float32(lambda a: _of_finite(lambda b: np.linalg.svd(b, full_matrices), a), input)
    return s, u, np.swapaxes(vt, -1, -2).conj()


def _inverse_differences(values):
    """``1 / (values[j] - values[i])`` at (i, j), 0 on the diagonal."""
    n = values.shape[-1]
    gaps = _math.sub(_shape.expand_dims(values, -2), _shape.expand_dims(values, -1))
    diagonal = _eye(n, dtype=values.dtype)
    return _math.sub(_math.true_div(1.0, _math.add(gaps, diagonal)), diagonal)


@_svd.vjp
def _svd(cts, outs, full_matrices):
    s, u, v = outs
    if full_matrices and (cts[1] is not None or cts[2] is not None) and u.shape[-1] != v.shape[-1]:
        raise ValueError(
            "svd has no gradient through the vectors of full_matrices=True; use full_matrices=False"
        )
    k = s.shape[-1]
    if full_matrices:
        u, v = u[..., :, :k], v[..., :, :k]
    column, row = _shape.expand_dims(s, -1), _shape.expand_dims(s, -2)
    core = None if cts[0] is None else _triangles.diag_embed(cts[0])
    outside = None
    gaps = _inverse_differences(_math.mul(s, s)) if cts[1] is not None or cts[2] is not None else None
    if cts[1] is not None:
        turn = _math.mul(gaps, _mm(u, cts[1], True))
        core = _plus(core, _math.mul(_math.add(turn, _turn(turn)), row))
        if u.shape[-2] > k:  # the part of du outside the span of u
            scaled = _math.true_div(cts[1], row)
            outside = _mm(_math.sub(scaled, _mm(u, _mm(u, scaled, True))), v, False, True)
    if cts[2] is not None:
        turn = _math.mul(gaps, _mm(v, cts[2], True))
        core = _plus(core, _math.mul(column, _math.add(turn, _turn(turn))))
        if v.shape[-2] > k:
            scaled = _math.true_div(cts[2], row)
            rest = _math.sub(scaled, _mm(v, _mm(v, scaled, True)))
            outside = _plus(outside, _mm(u, rest, False, True))
    return _plus(outside, _mm(_mm(u, core), v, False, True))


def _plus(a, b):
    return b if a is None else _math.add(a, b)


@_svd.samples
def _svd(rand):
    yield _well_conditioned(rand), dict(_second=False)
    yield rand(4, 2), dict(_second=False)
    yield rand(2, 2, 3), dict(_second=False)
    yield rand(3, 2), dict(full_matrices=True, _grad=False)


def svd(input, full_matrices=False, compute_uv=True):
    """Singular values, descending, and vectors: ``(s, u, v)`` with ``input = u @ diag(s) @ v.T``; or only s.

    Shapes: [.., m, n] -> s [.., k], u [.., m, k], v [.., n, k], k = min(m, n); square with `full_matrices`.
    """
    return _svd(input, full_matrices) if compute_uv else _svd(input)[0]


def pinv(x, *, atol=None, rtol=None, hermitian=False):
    """Pseudo-inverse (Moore-Penrose) by the singular values above ``max(atol, rtol * largest)``.

    `rtol` defaults to ``max(m, n) * eps`` when `atol` is not given. Shapes: [.., m, n] -> [.., n, m].
    """
    del hermitian  # singular values serve any matrix
    s, u, v = svd(x)
    if rtol is None:
        rtol = 0.0 if atol is not None else applied(max, *x.shape[-2:]) * float(np.finfo(x.dtype.np).eps)
    limit = _math.mul(_extreme_values.amax(s, -1, True), rtol * 1.0)
    keep = _comparison.greater(s, _clipping.maximum(limit, float(atol or 0.0)))
    inverted = _masks.where(keep, _math.true_div(1.0, _masks.where(keep, s, 1.0)), 0.0)
    return _mm(_math.mul(v, _shape.expand_dims(inverted, -2)), u, False, True)


@op(
    infer=lambda x: (TensorType(x.dtype, (*_square(x)[0], _square(x)[1])), x), outputs=2, batch=_batch.leading
)
def eigh(input):
    """Eigenvalues (ascending) and eigenvectors (columns) of symmetric matrices; reads the lower triangle.

    Shapes: [.., n, n] -> [.., n], [.., n, n].  dtypes: floating.
    """
    return tuple(_in_float32(lambda a: _of_finite(np.linalg.eigh, a), input))


@eigh.vjp
def eigh(cts, outs):
    w, v = outs
    core = None if cts[0] is None else _triangles.diag_embed(cts[0])
    if cts[1] is not None:
        core = _plus(core, _math.mul(_inverse_differences(w), _mm(v, cts[1], True)))
    full = _mm(_mm(v, core), v, False, True)
    return _math.mul(_math.add(full, _turn(full)), 0.5)


@eigh.samples
def eigh(rand):
    yield _positive_definite(rand), dict(_grad=False)
    yield _positive_definite(rand, 2, n=2), dict(_grad=False)


_COMPLEX = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}


def _eig_type(x):
    batch, n = _square(x)
    found = _COMPLEX.get(x.dtype, x.dtype)
    return TensorType(found, (*batch, n)), TensorType(found, (*batch, n, n))


@op(infer=_eig_type, outputs=2, nondiff=True, mindir="Eig", batch=_batch.leading)
def eig(A):
    """Eigenvalues and eigenvectors (columns) of square matrices, always complex.

    Shapes: [.., n, n] -> [.., n], [.., n, n].  dtypes: float32, float64, complex.
    """
    return tuple(_of_finite(np.linalg.eig, A))


@eig.samples
def eig(rand):
    yield _well_conditioned(rand)
    yield _well_conditioned(rand, 2, n=2)


def eigvals(A):
    """Eigenvalues of square matrices, always complex. Shapes: [.., n, n] -> [.., n]."""
    return eig(A)[0]


def _matrix_exp_body(a):
    """Scaling and squaring around a Taylor series to order 18, exact in double precision for norms to 1/2."""
    norm = np.abs(a).sum(-1).max(-1) if a.size else np.zeros(a.shape[:-2])
    doublings = int(max(np.ceil(np.log2(max(norm.max(), 1e-30))) + 1, 0)) if a.size else 0
    scaled = a / 2.0**doublings
    term = total = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    for i in range(1, 19):
        term = term @ scaled / i
        total = total + term
    for _ in range(doublings):
        total = total @ total
    return total


@op(infer=_same_square, mindir="MatrixExp", batch=_batch.leading, primitive=True)
def matrix_exp(input):
    """Matrix exponential: the sum of ``input^i / i!``.

    Shapes: [.., n, n] -> same.  dtypes: floating.  Errors: MYC-SHAPE unless square.
    """
    return _of_finite(_matrix_exp_body, input.astype(np.float64)).astype(input.dtype)


@matrix_exp.vjp
def matrix_exp(ct, input):
    # The derivative at A^T in direction ct is the upper right block of exp([[A^T, ct], [0, A^T]]).
    turned, n = _turn(input), input.shape[-1]
    top = _joining.concat((turned, ct), -1)
    bottom = _joining.concat((_math.mul(ct, 0.0), turned), -1)
    return matrix_exp(_joining.concat((top, bottom), -2))[..., :n, n:]


@matrix_exp.samples
def matrix_exp(rand):
    yield rand(3, 3)
    yield rand(2, 2, 2, low=-3, high=3)
    yield rand(1, 1)
    yield rand(0, 0), dict(_grad=False)


def cond(A, p=None):
    """Condition number: the norm of a matrix times that of its inverse; `p` as `matrix_norm`, None means 2.

    Shapes: [.., m, n] -> [..], square unless p is None, 2 or -2.  dtypes: floating.
    Errors: ValueError for another `p` and for matrices that are not square.
    """
    if p in (None, 2, -2):
        values = svd(A, compute_uv=False)
        large, small = values[..., 0], values[..., -1]
        return _math.true_div(small, large) if p == -2 else _math.true_div(large, small)
    return _math.mul(_moments.matrix_norm(A, p), _moments.matrix_norm(inverse(A), p))


for _function in (eigvals, cholesky, cholesky_inverse, cholesky_solve):
    attach(_function.__name__, _function)


def _svd_method(self, full_matrices=False, compute_uv=True):
    """`svd` of this Tensor."""
    return svd(self, full_matrices, compute_uv)


attach("svd", _svd_method)


__all__ = [
    "cholesky", "cholesky_inverse", "cholesky_solve", "cond", "eig", "eigvals", "matrix_exp", "pinv",
    "svd",
]  # fmt: skip
