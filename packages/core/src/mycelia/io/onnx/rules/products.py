"""Rules of products of matrices and of fully connected layers."""

from __future__ import annotations

from typing import Any

from mycelia.io.onnx.rules.table import rule


def turned(w: Any, x: Any) -> Any:
    """`x` with its last two axes exchanged."""
    if x.rank < 2:
        return x
    return w.op("Transpose", x, perm=[*range(x.rank - 2), x.rank - 1, x.rank - 2])


@rule("mat_mul", "batch_matmul")
def _mat_mul(w, node, x, y):
    a, b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    if x.rank == y.rank == 2 and (a or b) and x.dtype.is_floating:
        return w.op("Gemm", x, y, transA=int(a), transB=int(b))
    return w.op("MatMul", turned(w, x) if a else x, turned(w, y) if b else y)


@rule("dense")
def _dense(w, node, x, weight, bias):
    if x.rank == 2 and x.dtype.is_floating:
        return w.op("Gemm", x, weight, bias, transB=1)
    product = w.op("MatMul", x, turned(w, weight))
    return product if bias is None else w.op("Add", product, bias)


@rule("bias_add")
def _bias_add(w, node, x, bias):
    if node.attrs["data_format"] != "NHWC" and x.rank > 2:
        bias = w.unsqueeze(bias, [*range(1, x.rank - 1)])
    return w.op("Add", x, bias)
