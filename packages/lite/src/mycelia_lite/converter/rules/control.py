"""Control flow: regions become subgraphs that nodes call."""

from __future__ import annotations

import numpy as np

import mycelia as ms
from mycelia.ir import Node, TensorType
from mycelia_lite.converter.rules.customs import custom
from mycelia_lite.converter.rules.table import rule
from mycelia_lite.converter.writer import Writer
from mycelia_lite.format import Table


@rule("cond")
def _cond(w: Writer, node: Node) -> None:
    """Call(Switch(condition, PartialFusion, PartialFusion)), as MindSpore Lite has it."""
    *inputs, predicate = node.inputs
    condition = _bool(w, w.first(predicate), predicate.type)
    arguments = [w.first(v) for v in inputs]
    parts = []
    for region in (node.attrs["then"], node.attrs["otherwise"]):
        part = Table("PartialFusion", sub_graph_index=w.subgraph(region))
        parts.append(w.step(part, arguments, np.int32, []))
    chosen = w.step(Table("Switch"), [condition, *parts], np.int32, [])
    w.emit_all(node.outputs, Table("Call", is_tail_call=False), [chosen])


@rule("file_loop")
def _loop(w: Writer, node: Node) -> None:
    body, carried = node.attrs["body"], node.attrs["carried"]
    inputs = [w.first(v) for v in node.inputs]
    w.emit_all(node.outputs, custom("Loop", body=w.subgraph(body), carried=carried), inputs)


@rule("while_loop")
def _while(w: Writer, node: Node) -> None:
    """The Custom node Loop: its body ends with the test of the next round."""
    test, body, carried = (node.attrs[name] for name in ("test", "body", "carried"))
    number, condition = w.subgraph(test), test.outputs[0].type

    def tested(arguments: list[int]) -> int:
        part = w.step(Table("PartialFusion", sub_graph_index=number), arguments, np.int32, [])
        return _bool(
            w, w.step(Table("Call", is_tail_call=False), [part], condition, condition.shape), condition
        )

    def round_end(arguments: list[int], results: list[int]) -> list[int]:
        return [tested([*results, *arguments[carried:]]), *results]

    inputs = [w.first(v) for v in node.inputs]
    most = w.constant(np.asarray(np.iinfo(np.int64).max))
    leading = [TensorType(ms.int64, ()), TensorType(ms.bool_, ())]
    loop = custom("Loop", body=w.subgraph(body, leading, round_end), carried=carried)
    w.emit_all(node.outputs, loop, [most, tested(inputs), *inputs])


@rule("require")
def _require(w: Writer, node: Node) -> None:
    condition = w.first(node.inputs[0])
    w.emit(node.outputs[0], custom("require"), [condition, condition])


def _bool(w: Writer, tensor: int, type: TensorType) -> int:
    return tensor if type.dtype is ms.bool_ else w.step_to(tensor, np.bool_, type.shape)
