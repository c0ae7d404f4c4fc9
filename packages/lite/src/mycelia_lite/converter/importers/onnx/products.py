"""ONNX products: MatMul, Gemm, Einsum."""

from __future__ import annotations

import mycelia as ms
from mycelia import ops
from mycelia.ops.define import find
from mycelia_lite.converter.importers.onnx.calls import (
    cast,
    is_number,
    operator,
    same_size,
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
        raise call.misfit(f"a and b must have 2 axes, but have {a.ndim} and {b.ndim}")
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
    equation = call.need("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if "..." not in equation and arrow and len(terms) == len(operands):
        terms, operands = _alike(terms, operands)
    return ops.einsum(",".join(terms) + arrow + right, *operands)


def _alike(terms, operands):
    """Terms and operands in which a letter has one size: an axis of 1 where others are longer is left out,
    an open size is the known one of another operand.
    """
    sizes = {}
    for letter, n in ((c, n) for term, x in zip(terms, operands) for c, n in zip(term, shape_of(x))):
        if letter not in sizes or _is_one(sizes[letter]) or is_number(n) and n != 1:
            sizes[letter] = n
    made = []
    for term, x in zip(terms, operands):
        ones = [i for i, n in enumerate(shape_of(x)) if _is_one(n) and not _is_one(sizes[term[i]])]
        x = ops.squeeze(x, tuple(ones)) if ones else x
        term = "".join(c for i, c in enumerate(term) if i not in ones)
        if not all(is_number(n) or same_size(n, sizes[c]) for c, n in zip(term, shape_of(x))):
            x = ops.reshape(x, tuple(n if is_number(n) else sizes[c] for c, n in zip(term, shape_of(x))))
        made.append((term, x))
    return [list(part) for part in zip(*made)]


def _is_one(n):
    return is_number(n) and n == 1
