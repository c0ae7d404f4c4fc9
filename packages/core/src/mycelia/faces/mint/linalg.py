"""`mint.linalg`: inverse, norms, QR."""

from __future__ import annotations

from mycelia import ops
from mycelia.faces.mint.signature_adapters import faces

_FACES = {
    "inv(input)": ops.inverse,
    "matrix_norm(A, ord='fro', dim=(-2, -1), keepdim=False, *, dtype=None)": ops.matrix_norm,
    "norm(A, ord=None, dim=None, keepdim=False, *, dtype=None)": ops.norm,
    "qr(A, mode='reduced')": ops.qr,
    "vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None)": ops.vector_norm,
}
_made = faces(_FACES, __name__)
globals().update(_made)

__all__ = [*_made]
