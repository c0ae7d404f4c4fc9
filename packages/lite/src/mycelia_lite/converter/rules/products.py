"""Products of matrices."""

from __future__ import annotations

from mycelia.ir import Node
from mycelia_lite.converter.rules.table import rule
from mycelia_lite.converter.writer import Writer
from mycelia_lite.format import Table


@rule("mat_mul", "batch_matmul")
def _product(w: Writer, node: Node) -> None:
    a, b = node.inputs
    primitive = Table(
        "MatMulFusion", transpose_a=node.attrs["transpose_a"], transpose_b=node.attrs["transpose_b"]
    )
    w.emit(node.outputs[0], primitive, [w.first(a), w.first(b)])


@rule("dense")
def _dense(w: Writer, node: Node) -> None:
    x, weight, bias = node.inputs
    inputs = [w.first(x), w.first(weight)] + ([] if bias is None else [w.first(bias)])
    w.emit(node.outputs[0], Table("MatMulFusion", transpose_b=True), inputs)
