"""`mint.linalg`: inverse, norms, QR."""

from __future__ import annotations

from mycelia import ops
from mycelia.mint._faces import faces

_FACES = {
    "inv(input)": ops.inverse,
    "matrix_norm(A, ord='fro', dim=(-2, -1), keepdim=False, *, dtype=None)": ops.matrix_norm,
    "norm(A, ord=None, dim=None, keepdim=False, *, dtype=None)": ops.norm,
    "qr(A, mode='reduced')": ops.qr,
    "vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None)": ops.vector_norm,
}
globals().update(faces(_FACES, __name__))

__all__ = ["inv", "matrix_norm", "norm", "qr", "vector_norm"]  # noqa: F822  (made by the table)
