"""ONNX products: MatMul, Gemm, Einsum."""

from __future__ import annotations

import mycelia as ms
from mycelia import ops
from mycelia.ops.define import find
from mycelia_lite.converter.importers.onnx.calls import (
    cast,
    operator,
    scalar,
    shape_of,
)

_mat_mul = find("mat_mul")


@operator("MatMul")
def _matmul(call, a, b):
    return ops.matmul(a, b)


@operator("Gemm")
def _gemm(call, a, b, c=None):
    """alpha a b + beta c, a and b turned if told to; c broadcasts."""
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    turned = bool(call.get("transA", 0)), bool(call.get("transB", 0))
    if call.version < 7 and c is not None and not call.get("broadcast", 0) and c.ndim != 2:
        raise call.fail("c does not have the shape of the result and the attribute 'broadcast' is not set")
    if a.ndim != 2 or b.ndim != 2:
        raise call.fail(f"a and b must have 2 axes, but have {a.ndim} and {b.ndim}")
    columns = shape_of(b)[0 if turned[1] else 1]
    if turned == (False, True) and alpha == beta == 1 and c is not None and shape_of(c) == (columns,):
        return ops.dense(a, b, c)
    product = _mat_mul(a, b, *turned)
    if alpha != 1:
        product = _times(product, alpha)
    if c is None or beta == 0:
        return product
    return ops.add(product, c if beta == 1 else _times(c, beta))


def _times(x, factor):
    """x times a float; integers are multiplied by one that is an integer."""
    return (
        ops.mul(x, scalar(factor, x))
        if x.dtype.is_floating or factor == int(factor)
        else cast(ops.mul(cast(x, ms.float64), scalar(factor, ms.Tensor(0.0, ms.float64))), x.dtype)
    )


@operator("Einsum")
def _einsum(call, *operands):
    return ops.einsum(call.need("equation"), *operands)
