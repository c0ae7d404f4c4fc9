# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.faces.scipy.linalg import cho_factor as cho_factor, eigh as eigh, lu as lu

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "eigh", "inv", "lstsq", "lu", "lu_factor",
    "solve_triangular",
]


def block_diag(*arrs) -> Tensor:
    """A matrix with the given ones along its diagonal and zeros elsewhere; numbers and vectors are rows."""

def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True) -> Tensor:
    """The x of ``a @ x = b``, from what `cho_factor` gives for a. Shapes: b [n] or [n, k] -> same."""

def cholesky(a, lower=False, overwrite_a=False, check_finite=True) -> Tensor:
    """Triangular U with ``U.T @ U = a``, with `lower` L with ``L @ L.T = a``."""

def inv(a, overwrite_a=False, check_finite=True) -> Tensor:
    """Inverse of a matrix. Shapes: [n, n] -> same. Errors: ValueError unless square."""

def lstsq(A, B, rcond=None, driver=None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Least squares: X with the least ``|A @ X - B|``, the shortest if there are many."""

def lu_factor(a, overwrite_a=False, check_finite=True) -> tuple[Tensor, Tensor]:
    """What `lu_solve` takes: L (its unit diagonal left out) and U in one matrix, and the exchanges of rows."""

def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, debug=None, check_finite=True) -> Tensor:
    """The x of ``a @ x = b``, of which only the upper, or with `lower` the lower, triangle is read."""
