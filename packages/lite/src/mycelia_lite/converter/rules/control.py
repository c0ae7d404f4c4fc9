"""Control flow: regions become subgraphs that nodes call."""

from __future__ import annotations

import numpy as np

import mycelia as ms
from mycelia.ir import Node
from mycelia_lite.converter.rules.customs import custom
from mycelia_lite.converter.rules.table import rule
from mycelia_lite.converter.writer import Writer
from mycelia_lite.format import Table


@rule("cond")
def _cond(w: Writer, node: Node) -> None:
    """Call(Switch(condition, PartialFusion, PartialFusion)), as MindSpore Lite has it."""
    *inputs, predicate = node.inputs
    condition = w.first(predicate)
    if predicate.type.dtype is not ms.bool_:
        condition = w.step_to(condition, np.bool_, predicate.type.shape)
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
