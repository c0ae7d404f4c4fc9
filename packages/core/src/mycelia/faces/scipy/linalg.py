"""Factorizations of matrices and the equations that they solve, under SciPy's names.

Integers are computed as float64. `overwrite_a`, `overwrite_b` and `check_finite` have no effect: inputs are
never changed, and numbers that are not finite spread. All functions have gradients.
"""

from __future__ import annotations

from functools import reduce

from mycelia import ops
from mycelia.engine.base import dtypes, errors, ignored
from mycelia.engine.ops.linalg import decomposition, factors, solvers
from mycelia.engine.tensors.tensor import Tensor
from mycelia.faces.scipy import _checks as check

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "eigh", "inv", "lstsq", "lu", "lu_factor",
    "solve_triangular",
]  # fmt: skip

_TURNS = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def solve_triangular(
    a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, debug=None, check_finite=True
):
    """The x of ``a @ x = b``, of which only the upper, or with `lower` the lower, triangle is read.

    `trans` 1 or "T": ``a.T @ x = b``; 2 or "C": with the conjugate transpose. `unit_diagonal` takes ones for
    the diagonal. A zero on it gives infinities. Shapes: [.., n, n], [.., n] or [.., n, k] -> that of b.
    dtypes: a number, both the same. Errors: TypeError for different dtypes, ValueError for shapes and
    `trans`.
    """
    del overwrite_b, debug, check_finite  # inputs stay, and are taken as they are
    owner = "solve_triangular"
    if trans not in _TURNS:
        raise errors.value_error(owner, f"trans must be 0, 1, 2, 'N', 'T' or 'C', but got {trans!r}")
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, Tensor):
            raise errors.type_error(owner, f"{name} must be a Tensor, but got {type(value).__name__}")
    if a.dtype is not b.dtype:
        raise errors.type_error(owner, f"a and b must have one dtype, but they have {a.dtype} and {b.dtype}")
    _matched(owner, a, b)
    if not (a.dtype.is_floating or a.dtype.is_complex):
        wide = dtypes.float64 if a.dtype is dtypes.int64 else dtypes.float32
        a, b = ops.cast(a, wide), ops.cast(b, wide)
    column = b.ndim == a.ndim - 1
    turn = _TURNS[trans]
    if turn == 1 and a.dtype.is_complex:
        a = ops.conj(a)  # the solver turns and conjugates
    found = solvers.triangular_matrix_solve(
        a, ops.expand_dims(b, -1) if column else b, bool(lower), turn > 0, bool(unit_diagonal)
    )
    return ops.squeeze(found, -1) if column else found


def _matched(owner, a, b, square=True):
    """ValueError unless `b` holds right-hand sides for the matrices `a`."""
    if a.ndim < 2:
        raise errors.value_error(owner, f"a must have at least 2 axes, but its shape is {tuple(a.shape)}")
    if square and a.shape[-1] != a.shape[-2]:
        raise errors.value_error(owner, f"the matrices a must be square, but their shape is {tuple(a.shape)}")
    rows = b.shape[-1:] if b.ndim == a.ndim - 1 else b.shape[-2:-1]
    batch = b.shape[: a.ndim - 2]
    if b.ndim not in (a.ndim, a.ndim - 1) or rows != a.shape[-2:-1] or batch != a.shape[:-2]:
        raise errors.value_error(
            owner,
            f"b must be [.., M] or [.., M, K] for a [.., M, N], got {tuple(a.shape)} and {tuple(b.shape)}",
        )


def block_diag(*arrs):
    """A matrix with the given ones along its diagonal and zeros elsewhere; numbers and vectors are rows.

    Shapes: [m, n] each -> [sum of m, sum of n]; nothing gives (1, 0).  dtypes: the common one.
    """
    if not arrs:
        return ops.zeros((1, 0), dtypes.float32)
    for a in arrs:
        if not isinstance(a, Tensor):
            raise errors.type_error("block_diag", f"expected Tensors, but got {type(a).__name__}")
        if a.ndim > 2:
            raise errors.value_error("block_diag", f"a matrix is needed, but got the shape {tuple(a.shape)}")
    blocks = [ops.reshape(a, (1, -1)) if a.ndim < 2 else a for a in arrs]
    dtype = reduce(dtypes.promote, (b.dtype for b in blocks))
    width, left, rows = sum(b.shape[1] for b in blocks), 0, []
    for block in blocks:
        right = width - left - block.shape[1]
        rows.append(ops.cast(ops.pad(block, (left, right)) if left or right else block, dtype))
        left += block.shape[1]
    return ops.concat(rows, 0)


def inv(a, overwrite_a=False, check_finite=True):
    """Inverse of a matrix. Shapes: [n, n] -> same.  Errors: ValueError unless square."""
    check.flags("inv", overwrite_a=overwrite_a, check_finite=check_finite)
    return ops.inverse(check.square("inv", a))


def _factor(owner, a, lower, **settings):
    check.flags(owner, lower=lower, **settings)
    return ops.cholesky(check.square(owner, a), not lower)


def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    """Triangular U with ``U.T @ U = a``, with `lower` L with ``L @ L.T = a``.

    Shapes: [n, n] -> same.  Errors: ValueError unless square, RuntimeError unless positive definite.
    """
    return _factor("cholesky", a, lower, overwrite_a=overwrite_a, check_finite=check_finite)


def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """What `cho_solve` takes: the factor of `cholesky`, and `lower`."""
    return _factor("cho_factor", a, lower, overwrite_a=overwrite_a, check_finite=check_finite), lower


def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    """The x of ``a @ x = b``, from what `cho_factor` gives for a. Shapes: b [n] or [n, k] -> same."""
    c, lower = c_and_lower
    check.flags("cho_solve", lower=lower, overwrite_b=overwrite_b, check_finite=check_finite)
    c, b = check.equations("cho_solve", c, b, "c")
    first, second = (0, 1) if lower else (1, 0)
    return solve_triangular(c, solve_triangular(c, b, first, lower), second, lower)


def eigh(
    a, b=None, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, turbo=True, eigvals=None,
    type=1, check_finite=True,
):  # fmt: skip
    """Eigenvalues, ascending, and eigenvectors (columns) of a symmetric or Hermitian matrix.

    Only its lower triangle is read, or the upper one. Shapes: [n, n] -> [n], [n, n]; with `eigvals_only`
    only the first. Errors: ValueError unless square, and for `b` and `eigvals`, which must be None.
    """
    check.flags(
        "eigh", lower=lower, eigvals_only=eigvals_only, overwrite_a=overwrite_a, overwrite_b=overwrite_b,
        turbo=turbo, check_finite=check_finite,
    )  # fmt: skip
    if not isinstance(type, int) or isinstance(type, bool):
        raise errors.type_error("eigh", f"type must be an int, but got {type!r}")
    a = check.square("eigh", a, allowed=check.REAL + check.COMPLEX)
    for name, value in (("b", b), ("eigvals", eigvals)):
        if value is not None:
            raise errors.value_error("eigh", f"{name} must be None, but got {value!r}")
    half, rest = (ops.tril(a), ops.tril(a, -1)) if lower else (ops.triu(a), ops.triu(a, 1))
    other = ops.swapaxes(rest, 0, 1)
    values, vectors = decomposition.eigh(half + (ops.conj(other) if a.dtype.is_complex else other))
    return values if eigvals_only else (values, vectors)


def lu_factor(a, overwrite_a=False, check_finite=True):
    """What `lu_solve` takes: L (its unit diagonal left out) and U in one matrix, and the exchanges of rows.

    Shapes: [n, n] -> same, [n].  dtypes: the exchanges int32, from 0.
    """
    check.flags("lu_factor", overwrite_a=overwrite_a, check_finite=check_finite)
    packed, pivots, _ = factors.lu(check.square("lu_factor", a))
    return packed, pivots


def lu(a, permute_l=False, overwrite_a=False, check_finite=True):
    """P, L and U with ``a = P @ L @ U``: a permutation, lower with unit diagonal, upper; or P @ L and U.

    Shapes: [m, n], m <= n -> [m, m], [m, m], [m, n].  dtypes: P int32.
    """
    check.flags("lu", permute_l=permute_l, overwrite_a=overwrite_a, check_finite=check_finite)
    a = check.matrix("lu", a)
    m, n = a.shape
    if m > n:
        raise errors.value_error("lu", f"a must not have more rows than columns, but its shape is {(m, n)}")
    packed, _, order = factors.lu(a)
    lower = ops.tril(packed, -1)[:, :m] + ops.eye(m, m, a.dtype)
    permutation = ops.transpose(ops.one_hot(order, m, 1, 0), (1, 0))
    upper = ops.triu(packed)
    if permute_l:
        return ops.matmul(ops.cast(permutation, a.dtype), lower), upper
    return ops.cast(permutation, dtypes.int32), lower, upper


def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    """The x of ``a @ x = b`` from what `lu_factor` gives for a; `trans` 1 or 2: of ``a.T @ x = b``.

    Shapes: b [n] or [n, k] -> same.
    """
    packed, pivots = lu_and_piv
    check.flags("lu_solve", overwrite_b=overwrite_b, check_finite=check_finite)
    packed, b = check.equations("lu_solve", packed, b, "lu_matrix")
    if not isinstance(pivots, Tensor) or pivots.dtype is not dtypes.int32:
        raise errors.type_error("lu_solve", "the exchanges of rows must be an int32 Tensor")
    if pivots.shape != packed.shape[:1]:
        raise errors.value_error(
            "lu_solve", f"the exchanges have shape {tuple(pivots.shape)}, the matrix {tuple(packed.shape)}"
        )
    if trans not in (0, 1, 2):
        raise errors.value_error("lu_solve", f"trans must be 0, 1 or 2, but got {trans!r}")
    order = factors.row_order(pivots)
    if not trans:
        half = solve_triangular(packed, ops.gather(b, order, 0), 0, True, True)
        return solve_triangular(packed, half)
    half = solve_triangular(packed, solve_triangular(packed, b, 1), 1, True, True)
    return ops.gather(half, ops.argsort(order), 0)


def det(a, overwrite_a=False, check_finite=True):
    """Determinant; of sides 2 and 3 by the rule of Sarrus, else by the LU factorization.

    Shapes: [n, n] -> [].
    """
    check.flags("det", overwrite_a=overwrite_a, check_finite=check_finite)
    a = check.square("det", a)
    n = a.shape[0]
    if n == 2:
        return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    if n == 3:
        down = [a[0, i] * a[1, (i + 1) % 3] * a[2, (i + 2) % 3] for i in range(3)]
        up = [a[0, i] * a[1, (i + 2) % 3] * a[2, (i + 1) % 3] for i in (2, 1, 0)]
        return down[0] + down[1] + down[2] - up[0] - up[1] - up[2]
    return ops.det(a)


_DRIVERS = (None, "gels", "gelsy", "gelss", "gelsd")


@ignored.arguments(rcond="singular values below the dtype's precision count as zero")
def lstsq(A, B, rcond=None, driver=None):
    """Least squares: X with the least ``|A @ X - B|``, the shortest if there are many.

    Also the squared distances of its columns (drivers gels, gelss, gelsd, for m > n), the rank (all but
    gels) and the singular values (gelss, gelsd) of A; what a driver does not tell has no element. The
    default is gelsy. Shapes: [.., m, n], [.., m] or [.., m, k] -> [.., n, k], [.., k], [..], [.., min(m, n)].
    dtypes: floating or complex, both the same. Errors: TypeError for different dtypes, ValueError for shapes.
    """
    for name, value in (("A", A), ("B", B)):
        if not isinstance(value, Tensor):
            raise errors.type_error("lstsq", f"{name} must be a Tensor, but got {type(value).__name__}")
    if A.dtype is not B.dtype or not (A.dtype.is_floating or A.dtype.is_complex):
        raise errors.type_error(
            "lstsq", f"A and B must be floating or complex of one dtype, but are {A.dtype} and {B.dtype}"
        )
    if driver not in _DRIVERS:
        raise errors.value_error("lstsq", f"driver must be one of {_DRIVERS}, but got {driver!r}")
    _matched("lstsq", A, B, square=False)
    m, n = A.shape[-2:]
    column = B.ndim == A.ndim - 1
    right = ops.expand_dims(B, -1) if column else B
    solution = ops.matmul(factors.pseudo_inverse(A), right)
    values = factors.singular_values(A)
    nothing = ops.zeros((0,), values.dtype)
    residual, rank = nothing, ops.zeros((0,), dtypes.int64)
    if driver in ("gels", "gelss", "gelsd") and m > n:
        gap = ops.abs(ops.matmul(A, solution) - right)
        residual = ops.cast(ops.sum(gap * gap, -2), values.dtype)
    if driver != "gels":
        limit = values[..., :1] * (factors.eps(values.dtype) * max(m, n))
        rank = ops.sum(ops.cast(values > limit, dtypes.int64), -1)
    solution = ops.squeeze(solution, -1) if column else solution
    return solution, residual, rank, values if driver in ("gelss", "gelsd") else nothing
