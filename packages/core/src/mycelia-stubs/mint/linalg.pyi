# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from typing import Any as Any

__all__ = [
    "inv", "matrix_norm", "norm", "qr", "vector_norm",
]


def inv(input) -> Tensor:
    """Inverse of each matrix. A singular one gives infinities or an error of LAPACK."""

def matrix_norm(A, ord='fro', dim=(-2, -1), keepdim=False, *, dtype=None) -> Any:
    """Norm of matrices over two axes."""

def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None) -> Any:
    """Vector norm over one axis or the flattened tensor; matrix norm over two axes or, with `ord`, of one."""

def qr(A, mode='reduced') -> tuple[Tensor, Tensor]:
    """Orthogonal q and upper triangular r with ``input = q @ r``; `mode` "reduced" or "complete"."""

def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None) -> Tensor:
    """Vector norm over `axis`: ``sum(|x|**ord) ** (1 / ord)``; `ord` may be 0 (nonzero count), inf or -inf."""
