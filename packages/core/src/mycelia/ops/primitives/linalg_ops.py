"""Products of matrices, factorizations, equations, Fourier transforms."""

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.ops.linalg import solvers as _solvers
from mycelia.engine.ops.linalg.products import batch_matmul, mat_mul
from mycelia.ops.primitives.checks import (
    Misfit,
    anything,
    boolean,
    choice,
    integer,
    integers,
    positive,
    within,
)  # fmt: skip
from mycelia.ops.primitives.define import primitive, table

table(ops, {"Geqrf": "geqrf", "Orgqr": "orgqr"})


def _check_one_dtype(owner, x, y):
    if x.dtype is not y.dtype:
        raise errors.type_error(owner, f"both inputs must have one dtype, but got {x.dtype} and {y.dtype}")


@primitive
def MatMul(input, mat2, *, transpose_a: anything = False, transpose_b: anything = False):
    """Product of two matrices, either turned first."""
    _check_one_dtype("MatMul", input, mat2)
    return mat_mul(input, mat2, bool(transpose_a), bool(transpose_b))


@primitive
def BatchMatMul(x, y, *, transpose_a: anything = False, transpose_b: anything = False):
    """Products of stacks of matrices of equal batch axes, either turned first."""
    _check_one_dtype("BatchMatMul", x, y)
    if x.ndim != y.ndim:
        raise errors.value_error(
            "BatchMatMul", f"x and y must have equal ranks, but got {tuple(x.shape)} and {tuple(y.shape)}"
        )
    return batch_matmul(x, y, bool(transpose_a), bool(transpose_b))


# ----------------------------------------------------------------------------------------- factorizations


@primitive
def Cholesky(input_x, *, upper: anything = False):
    """Triangular factor of symmetric positive definite matrices, see `ops.cholesky`."""
    return ops.cholesky(input_x, bool(upper))


@primitive
def CholeskyInverse(input_x, *, upper: anything = False):
    """Inverse of a matrix from its triangular factor."""
    return ops.cholesky_inverse(input_x, bool(upper))


@primitive
def CholeskySolve(x1, x2, *, upper: boolean = False):
    """Solution of equations from the triangular factor `x2` of their matrix."""
    if x1.ndim not in (2, 3):
        raise errors.value_error("CholeskySolve", f"x1 must have rank 2 or 3, but its shape is {x1.shape}")
    return ops.cholesky_solve(x1, x2, upper)


@primitive
def Svd(input, *, full_matrices: anything = False, compute_uv: anything = True):
    """Singular values and vectors: s, u, v; zeros in place of the vectors if they are not computed."""
    if compute_uv:
        return ops.svd(input, bool(full_matrices), True)
    nothing = ops.zeros((1,), input.dtype)
    return ops.svd(input, bool(full_matrices), False), nothing, nothing


@primitive
def Qr(x, *, full_matrices: anything = False):
    """Orthogonal and triangular factors."""
    return ops.qr(x, "complete" if full_matrices else "reduced")


@primitive
def Eig(x, *, compute_v: anything = False):
    """Complex eigenvalues and eigenvectors; a zero in place of the vectors if they are not asked for."""
    values, vectors = ops.eig(x)
    return values, vectors if compute_v else ops.zeros((), values.dtype)


@primitive
def Ormqr(x, tau, other, *, left: boolean = True, transpose: boolean = False):
    """Product with the orthogonal factor that reflectors describe."""
    return ops.ormqr(x, tau, other, left, transpose)


@primitive
def LuUnpack(LU_data, LU_pivots, *, unpack_data: boolean = True, unpack_pivots: boolean = True):
    """Permutation, lower and upper matrix of a packed factorization."""
    return ops.lu_unpack(LU_data, LU_pivots, True, True)


@primitive
def LuSolve(x, lu_data, lu_pivots):
    """Solution of equations from a packed factorization of their matrix."""
    return ops.lu_solve(x, lu_data, lu_pivots)


# ----------------------------------------------------------------------------------------- matrices


@primitive
def MatrixInverse(x, *, adjoint: boolean = False):
    """Inverse of square matrices, `adjoint`: of their conjugate transposes."""
    result = ops.inverse(x)
    return _solvers._adjoint(result) if adjoint else result


@primitive
def LogMatrixDeterminant(input_x):
    """Sign and logarithm of the absolute value of determinants."""
    return ops.slogdet(input_x)


@primitive
def MatrixPower(x, *, n: integer):
    """Square matrices to an integer power; negative ones of the inverse."""
    return ops.matrix_power(x, n)


@primitive
def MatrixSolve(matrix, rhs, *, adjoint: boolean = False):
    """X with ``matrix @ X = rhs``, `adjoint`: with the conjugate transpose of `matrix`."""
    if matrix.ndim != rhs.ndim or matrix.shape[:-2] != rhs.shape[:-2]:
        raise errors.value_error(
            "MatrixSolve", f"the batch axes differ: {tuple(matrix.shape)} and {tuple(rhs.shape)}"
        )
    return _solvers.matrix_solve(matrix, rhs, adjoint)


@primitive
def MatrixTriangularSolve(matrix, rhs, *, lower: boolean = True, adjoint: boolean = False):
    """X with ``matrix @ X = rhs``, of which only one triangle is read."""
    return _solvers.triangular_matrix_solve(matrix, rhs, lower, adjoint)


@primitive
def MatrixLogarithm(x):
    """The matrix whose exponential is x. dtypes: complex."""
    return _solvers.matrix_logarithm(x)


@primitive
def MatrixSolveLs(matrix, rhs, l2_regularizer, *, fast: boolean = True):
    """X with the least ``|matrix @ X - rhs|^2 + l2_regularizer * |X|^2``."""
    return _solvers.least_squares(matrix, rhs, float(l2_regularizer))


def _only(wanted):
    def checked(value):
        if value is not wanted and value != wanted:
            raise Misfit(TypeError, f"{wanted}")
        return value

    return checked


@primitive
def Lstsq(x, a, *, fast: _only(True) = True, l2_regularizer: _only(0.0) = 0.0):
    """Least squares, or for less rows than columns the solution of least length. Shapes: [m, n], [m, k]."""
    return ops.lstsq(x, a if a.ndim == 2 else ops.expand_dims(a, -1))


@primitive
def TridiagonalMatMul(superdiag, maindiag, subdiag, rhs):
    """Product of tridiagonal matrices and `rhs`.

    Shapes: diagonals [..., 1, m], rhs [..., m, n] -> rhs's. The last of `superdiag` and the first of
    `subdiag` are not used.
    """
    for name, diagonal in (("superdiag", superdiag), ("maindiag", maindiag), ("subdiag", subdiag)):
        if diagonal.ndim < 2 or diagonal.shape[-2:] != (1, rhs.shape[-2]):
            raise errors.value_error(
                "TridiagonalMatMul",
                f"{name} must be [..., 1, {rhs.shape[-2]}], but its shape is {tuple(diagonal.shape)}",
            )
    above, main, below = (ops.swapaxes(d, -1, -2) for d in (superdiag, maindiag, subdiag))
    row = ops.zeros_like(rhs[..., :1, :])
    after = ops.concat((rhs[..., 1:, :], row), -2)
    before = ops.concat((row, rhs[..., :-1, :]), -2)
    return above * after + main * rhs + below * before


@primitive
def NuclearNorm(x, *, dim: anything = None, keepdim: boolean = False):
    """Sum of the singular values of matrices, of all or over two axes."""
    first, second = (0, 1) if dim is None else (d % x.ndim for d in dim)
    if dim is None and x.ndim != 2:
        raise errors.value_error("NuclearNorm", f"without dim x must be a matrix, got shape {tuple(x.shape)}")
    rest = tuple(d for d in range(x.ndim) if d not in (first, second))
    total = ops.sum(ops.svd(ops.transpose(x, (*rest, first, second)), False, False), -1)
    if keepdim:
        for d in sorted((first, second)):
            total = ops.expand_dims(total, d)
    return total


# ----------------------------------------------------------------------------------------- Fourier


@primitive
def FFTWithSize(
    x, *, signal_ndim: within(integer, 1), inverse: boolean, real: boolean,
    norm: choice("backward", "ortho", "forward") = "backward", onesided: boolean = True,
    signal_sizes: integers = (),
):  # fmt: skip
    """Discrete Fourier transform over the last `signal_ndim` axes.

    `real`: of real data, or with `inverse` to such, where `onesided` spectra hold half of the last axis and
    `signal_sizes` says how long the data are.
    """
    axes = tuple(range(-signal_ndim, 0))
    if real and inverse and onesided and x.shape[-1] == 1 and not signal_sizes:
        raise errors.value_error(
            "For 'FFTWithSize', the last dimension of the input cannot be 1 where `signal_sizes` is not given"
        )
    if not real:
        return (ops.ifftn if inverse else ops.fftn)(x, None, axes, norm)
    if not inverse:
        return (ops.rfftn if onesided else ops.fftn)(x, None, axes, norm)
    if not onesided:
        return ops.real(ops.ifftn(x, None, axes, norm))
    return ops.irfftn(x, signal_sizes or None, axes, norm)


@primitive
def STFT(
    x, window, *, n_fft: positive, hop_length: positive, win_length: positive, normalized: boolean,
    onesided: boolean, return_complex: boolean,
):  # fmt: skip
    """Spectra of windows along a signal, see `ops.stft`."""
    return ops.stft(
        x, n_fft, hop_length, win_length, window, center=False, normalized=normalized, onesided=onesided,
        return_complex=return_complex,
    )  # fmt: skip
