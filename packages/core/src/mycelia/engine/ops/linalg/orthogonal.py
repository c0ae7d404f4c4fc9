"""QR factorizations, and products with what they are stored as."""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.symint import applied
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.arrays import triangles as _triangles
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.infer import same
from mycelia.engine.ops.linalg.decomposition import _on_diagonal, _plus
from mycelia.engine.ops.linalg.determinants import (
    _in_float32,
    _matrices,
    _mm,
    _turn,
    _well_conditioned,
    matrix_solve,
)
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


def _qr_type(x, *, complete):
    batch, m, n = _matrices(x)
    k = m if complete else UNKNOWN if UNKNOWN in (m, n) else applied(min, m, n)
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
    lower = _triangles.tril(inner, diagonal=-1)
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


for _function in (lstsq, ormqr):
    attach(_function.__name__, _function)
attach("geqrf", geqrf)
attach("orgqr", orgqr)


def _qr_method(self, some=True):
    """`qr` of this Tensor; `some` False: complete."""
    return _qr(self, not some)


attach("qr", _qr_method)


__all__ = ["geqrf", "lstsq", "orgqr", "ormqr", "qr"]
