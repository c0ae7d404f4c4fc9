"""Products of matrices and vectors of fixed ranks, and sums with them."""

from mycelia.engine.base import errors
from mycelia.engine.ops.arrays import axes as _axes
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.linalg.contractions import adjoint, cross, dot, ger, inner, outer
from mycelia.engine.ops.linalg.products import _ranks, batch_matmul, mat_mul, matmul
from mycelia.engine.ops.reductions import reduce as _reduce
from mycelia.engine.tensors.attach import attach


def mm(input, mat2):
    """Product of two matrices. Shapes: [m, k] and [k, n] -> [m, n]. Errors: ValueError for other ranks."""
    _ranks("mm", 2, input=input, mat2=mat2)
    return mat_mul(input, mat2)


def bmm(input_x, mat2):
    """Products of the matrices in the last two axes. Shapes: [B.., m, k] and [B.., k, n] -> [B.., m, n]."""
    return batch_matmul(input_x, mat2)


def mv(mat, vec):
    """Matrix times vector. Shapes: [m, k] and [k] -> [m]. Errors: ValueError for other ranks."""
    _ranks("mv", 2, mat=mat)
    _ranks("mv", 1, vec=vec)
    return matmul(mat, vec)


def _weighted_sum(input, product, beta, alpha):
    """``beta * input + alpha * product`` without needless multiplications."""
    product = product if _is_one(alpha) else _math.mul(product, alpha)
    return _math.add(input if _is_one(beta) else _math.mul(input, beta), product)


def _is_one(factor):
    return isinstance(factor, (int, float)) and factor == 1


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """``beta * input + alpha * (mat1 @ mat2)``. Shapes: input like [m, n]; [m, k], [k, n] -> [m, n]."""
    _ranks("addmm", 2, mat1=mat1, mat2=mat2)
    return _weighted_sum(input, mat_mul(mat1, mat2), beta, alpha)


def addmv(input, mat, vec, *, beta=1, alpha=1):
    """``beta * input + alpha * (mat @ vec)``. Shapes: input like [m]; [m, k], [k] -> [m]."""
    return _weighted_sum(input, mv(mat, vec), beta, alpha)


def addr(x, vec1, vec2, *, beta=1, alpha=1):
    """``beta * x + alpha * outer(vec1, vec2)``. Shapes: x like [m, n]; [m], [n] -> [m, n]."""
    _ranks("addr", 1, vec1=vec1, vec2=vec2)
    return _weighted_sum(x, outer(vec1, vec2), beta, alpha)


def baddbmm(input, batch1, batch2, beta=1, alpha=1):
    """``beta * input + alpha * (batch1 @ batch2)`` by matrices. Shapes: [B, m, k], [B, k, n] -> [B, m, n]."""
    if len(batch1.shape) == 2:  # MindSpore takes single matrices as well
        return _weighted_sum(input, mm(batch1, batch2), beta, alpha)
    _ranks("baddbmm", 3, batch1=batch1, batch2=batch2)
    return _weighted_sum(input, batch_matmul(batch1, batch2), beta, alpha)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """``beta * input + alpha * sum over b of batch1[b] @ batch2[b]``. Shapes: [B, m, k], [B, k, n] -> [m, n].

    One product over the joined axes (b, k). Of single matrices the rows of the product are added.
    """
    if len(batch1.shape) == 2:
        return _weighted_sum(input, _reduce.sum(mm(batch1, batch2), 0), beta, alpha)
    _ranks("addbmm", 3, batch1=batch1, batch2=batch2)
    b, m, k = batch1.shape
    if batch2.shape[:2] != (b, k):
        raise errors.value_error(f"For 'addbmm', batch1 is {tuple(batch1.shape)}, "
                                 f"so batch2 must be ({b}, {k}, n), "
                         f"but is {tuple(batch2.shape)}")  # fmt: skip
    left = _shape.reshape(_axes.transpose(batch1, (1, 0, 2)), (m, b * k))
    return _weighted_sum(input, mat_mul(left, _shape.reshape(batch2, (b * k, batch2.shape[2]))), beta, alpha)


for _function in (
    addbmm,
    addmm,
    addmv,
    addr,
    adjoint,
    baddbmm,
    bmm,
    cross,
    dot,
    ger,
    inner,
    matmul,
    mm,
    outer,
):
    attach(_function.__name__, _function)


__all__ = ["addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "mm", "mv"]
