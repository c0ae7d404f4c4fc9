"""`mindspore.scipy.ops` and what lies beside it: primitives behind the functions of `mindspore.scipy`."""

from __future__ import annotations

from mycelia import ops
from mycelia.faces import scipy


def matrix_set_diag(input_x, diagonal, k=0, alignment="RIGHT_LEFT"):
    """`ops.matrix_set_diag` with an `alignment`."""
    return ops.matrix_set_diag(input_x, diagonal, k, alignment)


class Eigh:
    """Eigenvalues and eigenvectors of Hermitian matrices, of which one triangle is read.

    Shapes: [..., n, n] -> [..., n], and [..., n, n] unless `compute_eigenvectors` is False.
    """

    def __init__(self, compute_eigenvectors=True, lower=True) -> None:
        self.compute_eigenvectors, self.lower = compute_eigenvectors, lower

    def __call__(self, a):
        return scipy.linalg.eigh(a, lower=self.lower, eigvals_only=not self.compute_eigenvectors)


def Eig(compute_v=True):
    """Eigenvalues and, with `compute_v`, eigenvectors of square matrices."""
    return ops.Eig(compute_v=compute_v)


class LinearSumAssignment:
    """The cheapest pairing of rows and columns; `dimension_limit` columns count, the rest of the pairs is -1.

    Shapes: [n, m] -> [min(n, m)] of rows and as many columns.
    """

    def __call__(self, cost_matrix, dimension_limit, maximize):
        return scipy.optimize.linear_sum_assignment(cost_matrix, maximize, dimension_limit)


def _nd_transpose(a):
    """The last two axes swapped."""
    return ops.swapaxes(a, -1, -2)
