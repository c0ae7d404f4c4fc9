"""Factorizations of matrices and what is solved with them; every op takes stacks of matrices.

The bodies call LAPACK through NumPy. Gradients follow Giles 2008 (An extended collection of matrix derivative
results for forward and reverse mode AD); those of svd and eigh hold for real matrices with distinct singular
values or eigenvalues.
"""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays import joining as _joining
from mycelia.engine.ops.arrays import masks as _masks
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.arrays.create import eye as _eye
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import logic as _logic
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.cast import cast as _cast
from mycelia.engine.ops.infer import same
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
from mycelia.engine.ops.reductions import moments as _moments
from mycelia.engine.ops.reductions import reduce as _reduce
from mycelia.engine.tensors.attach import attach


def lstsq(input, A):
    """Least squares: the x that minimizes ``|input @ x - A|``, the shortest one if there are many.

    Shapes: input [m, k] of full rank, A [m, n] or [m] -> [k, n] or [k, 1].  dtypes: floating.
    """
    right = _shape.expand_dims(A, 1) if A.ndim == 1 else A
    if input.shape[0] >= input.shape[1]:
        q, r = qr(input)
        return matrix_solve(r, _mm(q, right, True))
    q, r = qr(_turn(input))
    return _mm(q, matrix_solve(r, right, True))


# -------------------------------------------------------------------------------------------------- cholesky


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
    inner = _masks.tril(_mm(lower, ct, True))
    inner = _math.sub(inner, _math.mul(_on_diagonal(inner), 0.5))
    inverted = inverse(lower)
    full = _mm(_mm(inverted, inner, True), inverted)
    return _math.mul(_math.add(full, _turn(full)), 0.5)


def _on_diagonal(x):
    """The matrix with all but its diagonal zero."""
    return _masks.triu(_masks.tril(x))


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


# ----------------------------------------------------------------------------------------------- svd and qr


def _svd_type(x, *, full_matrices):
    batch, m, n = _matrices(x)
    k = UNKNOWN if UNKNOWN in (m, n) else min(m, n)
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
    core = None if cts[0] is None else _masks.diag_embed(cts[0])
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
        rtol = 0.0 if atol is not None else max(x.shape[-2:]) * float(np.finfo(x.dtype.np).eps)
    limit = _math.mul(_reduce.amax(s, -1, True), float(rtol))
    keep = _logic.greater(s, _clipping.maximum(limit, float(atol or 0.0)))
    inverted = _masks.where(keep, _math.true_div(1.0, _masks.where(keep, s, 1.0)), 0.0)
    return _mm(_math.mul(v, _shape.expand_dims(inverted, -2)), u, False, True)


def _qr_type(x, *, complete):
    batch, m, n = _matrices(x)
    k = m if complete else UNKNOWN if UNKNOWN in (m, n) else min(m, n)
    return TensorType(x.dtype, (*batch, m, k)), TensorType(x.dtype, (*batch, k, n))


@op(name="qr", infer=_qr_type, outputs=2, mindir="Qr", batch=_batch.leading)
def _qr(input, *, complete: "bool" = False):
    """Orthogonal q and upper triangular r with ``input = q @ r``.

    Shapes: [.., m, n] -> [.., m, k], [.., k, n]; k = min(m, n), or m with `complete`.  dtypes: floating.
    """
    return tuple(_in_float32(lambda a: np.linalg.qr(a, "complete" if complete else "reduced"), input))


@_qr.vjp
def _qr(cts, outs, *, complete):
    q, r = outs
    if r.shape[-2] != r.shape[-1]:
        raise ValueError(f"qr has a gradient for m >= n in reduced mode only, but r is {list(r.shape)}")
    inner = None if cts[1] is None else _mm(r, cts[1], False, True)
    if cts[0] is not None:
        inner = _plus(inner, _math.neg(_mm(cts[0], q, True)))
    # The lower triangle, mirrored to the upper one.
    lower = _masks.tril(inner, diagonal=-1)
    mirrored = _math.add(_math.add(lower, _turn(lower)), _on_diagonal(inner))
    total = _mm(q, mirrored)
    return _turn(matrix_solve(r, _turn(_plus(cts[0], total))))


@_qr.samples
def _qr(rand):
    yield _well_conditioned(rand)
    yield rand(4, 2)
    yield rand(2, 3, 2)
    yield rand(2, 3), dict(_grad=False)
    yield rand(3, 2), dict(complete=True, _grad=False)


def qr(input, mode="reduced"):
    """Orthogonal q and upper triangular r with ``input = q @ r``; `mode` "reduced" or "complete".

    Shapes: [.., m, n] -> [.., m, k], [.., k, n]; k = min(m, n), or m if complete.
    """
    if mode not in ("reduced", "complete"):
        raise errors.value_error(f"For 'qr', mode must be 'reduced' or 'complete', but got {mode!r}")
    return _qr(input, mode == "complete")


# ----------------------------------------------------------------------------------------------- eigenvalues


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
    core = None if cts[0] is None else _masks.diag_embed(cts[0])
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


# ------------------------------------------------------------------------- parts of LU and QR factorizations


@op(
    infer=lambda x: (x, TensorType(x.dtype, (*_matrices(x)[0], min(x.shape[-2:])))),
    outputs=2,
    nondiff=True,
    batch=_batch.leading,
)
def geqrf(input):
    """QR factorization as LAPACK keeps it: r and the reflectors in one matrix, and their factors tau.

    Shapes: [.., m, n] -> [.., m, n], [.., min(m, n)].  dtypes: floating.
    """
    packed, tau = np.linalg.qr(input, "raw")
    return np.swapaxes(packed, -1, -2), tau


@geqrf.samples
def geqrf(rand):
    yield rand(3, 2)
    yield rand(2, 2, 3)


def _reflect(packed, tau, target, transpose):
    """Q (or its transpose) times `target`, Q given by reflectors below the diagonal of `packed` and `tau`."""
    m, k = packed.shape[-2], tau.shape[-1]
    result = np.array(np.broadcast_to(target, (*packed.shape[:-2], *target.shape[-2:])))
    for i in range(k) if transpose else reversed(range(k)):
        v = np.where(np.arange(m) == i, 1, np.where(np.arange(m) > i, packed[..., :, i], 0))
        projected = np.einsum("...m,...mn->...n", v.conj(), result)
        factor = tau[..., i, None, None]
        result -= (factor.conj() if transpose else factor) * v[..., :, None] * projected[..., None, :]
    return result


@op(infer=same(), nondiff=True)
def orgqr(input, input2):
    """The first columns of Q from reflectors `input` and factors `input2`, as `geqrf` gives them.

    Shapes: [.., m, n], [.., k] -> [.., m, n].  dtypes: floating.
    """
    return _reflect(input, input2, np.eye(*input.shape[-2:], dtype=input.dtype), False)


@orgqr.samples
def orgqr(rand):
    yield tuple(np.ascontiguousarray(a) for a in (np.linalg.qr(rand(4, 2), "raw")[0].T, rand(2, low=0.5)))


@op(infer=lambda input, tau, other, left, transpose: other, nondiff=True)
def _ormqr(input, tau, other, *, left: "bool" = True, transpose: "bool" = False):
    """``Q @ other``, Q from reflectors and factors as `geqrf` gives them; `left` False: ``other @ Q``.

    Shapes: [.., m, k], [.., k], [.., m, n] -> the last one's.  dtypes: floating.
    """
    if left:
        return _reflect(input, tau, other, transpose)
    return np.swapaxes(_reflect(input, tau, np.swapaxes(other, -1, -2), not transpose), -1, -2)


@_ormqr.samples
def _ormqr(rand):
    yield rand(3, 2), rand(2), rand(3, 4)
    yield rand(3, 2), rand(2), rand(3, 4), dict(transpose=True)
    yield rand(3, 2), rand(2), rand(4, 3), dict(left=False)


def ormqr(input, tau, other, left=True, transpose=False):
    """``Q @ other`` (or ``other @ Q``) with Q, or its transpose, from reflectors as `geqrf` gives them."""
    return _ormqr(input, tau, other, left, transpose)


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
        _math.add(_masks.tril(LU_data[..., :, :k], diagonal=-1), unit),
        _masks.triu(LU_data[..., :k, :]),
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


# ------------------------------------------------------------------------------------- distances and norms


def cdist(x1, x2, p=2.0):
    """Distances between rows: `p`-norms of differences. Shapes: [.., m, d], [.., n, d] -> [.., m, n]."""
    difference = _math.sub(_shape.expand_dims(x1, -2), _shape.expand_dims(x2, -3))
    return _moments.vector_norm(difference, p, -1)


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


def renorm(input, p, axis, maxnorm):
    """Scale every slice along `axis` whose `p`-norm exceeds `maxnorm` down to it. Shapes: any -> same."""
    if not isinstance(p, int):
        raise errors.type_error(f"For 'renorm', p must be an int, but got {type(p).__name__}")
    axis = _shape.positive_axis(axis, input.ndim)
    others = tuple(d for d in range(input.ndim) if d != axis)
    norm = _moments.vector_norm(input, p, others, True)
    scale = _masks.where(_logic.greater(norm, maxnorm), _math.true_div(maxnorm, _math.add(norm, 1e-7)), 1.0)
    return _math.mul(input, _cast(scale, input.dtype))


for _function in (
    eigvals, cholesky, cholesky_inverse, cholesky_solve, lstsq, lu_solve, ormqr, renorm,
):  # fmt: skip
    attach(_function.__name__, _function)
attach("geqrf", geqrf)
attach("orgqr", orgqr)


def _qr_method(self, some=True):
    """`qr` of this Tensor; `some` False: complete."""
    return _qr(self, not some)


def _svd_method(self, full_matrices=False, compute_uv=True):
    """`svd` of this Tensor."""
    return svd(self, full_matrices, compute_uv)


attach("qr", _qr_method)
attach("svd", _svd_method)


__all__ = [
    "cdist", "cholesky", "cholesky_inverse", "cholesky_solve", "cond", "eig", "eigvals", "geqrf", "lstsq",
    "lu_solve", "lu_unpack", "matrix_exp", "orgqr", "ormqr", "pinv", "qr", "renorm", "svd",
]  # fmt: skip
