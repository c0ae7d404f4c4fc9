"""mint functions of linear algebra: products, their sums, solving, distances."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.mint.signature_adapters import faces

_COMPUTE_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)

_FACES = {
    "bmm(input, mat2)": ops.bmm,
    "mv(input, vec)": ops.mv,
    "baddbmm(input, batch1, batch2, *, beta=1, alpha=1)": ops.baddbmm,
}
globals().update(faces(_FACES, __name__))


def dot(input, other):
    """Sum of the products of two vectors.

    Shapes: [n], [n] -> [].  dtypes: number.  Errors: ValueError for other ranks and lengths.
    """
    if input.ndim != 1 or input.shape != other.shape:
        raise errors.value_error(
            "dot", f"both must be vectors of one length, but the shapes are {input.shape} and {other.shape}"
        )
    return ops.matmul(input, other)


def vdot(input, other):
    """`dot` with the conjugate of a complex `input`.

    Shapes: [n], [n] -> [].  dtypes: number.
    """
    return dot(ops.conj(input) if input.dtype.is_complex else input, other)


def addr_(input, vec1, vec2, beta=1, alpha=1):
    """``input = beta * input + alpha * outer(vec1, vec2)``, in place.

    Shapes: input [n, m], vec1 [n], vec2 [m].  dtypes: floating.
    """
    return input.assign_value(ops.addr(input, vec1, vec2, beta=beta, alpha=alpha))


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """`p`-norms of the differences between all rows of `x1` and of `x2`.

    Shapes: [.., n, d], [.., m, d] -> [.., n, m].  dtypes: floating.
    `compute_mode` names how the other library may compute them; the result is the same.
    """
    if compute_mode not in _COMPUTE_MODES:
        raise errors.one_of(compute_mode, list(_COMPUTE_MODES), subject="cdist", what="compute_mode")
    return ops.cdist(x1, x2, float(p))


def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False):
    """``X`` with ``A X = b`` for a triangular `A`, and the triangle of `A` that was used.

    `transpose`: solve with ``A.T``; `unitriangular`: take the diagonal as ones.
    Shapes: b [.., n, k], A [.., n, n] -> [.., n, k], [.., n, n].  dtypes: floating.
    """
    triangle = ops.triu(A) if upper else ops.tril(A)
    if unitriangular:
        ones = ops.eye(A.shape[-1], A.shape[-1], A.dtype)
        triangle = ops.where(ones == 1, ones, triangle)
    matrix = ops.swapaxes(triangle, -1, -2) if transpose else triangle
    if not is_tensor(b) or b.shape[-2] != A.shape[-1]:
        raise errors.value_error("triangular_solve", f"b must be [.., {A.shape[-1]}, k], but got {b!r:.60}")
    return ops.matrix_solve(matrix, b), A
