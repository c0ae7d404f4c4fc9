"""Open sizes of a captured graph: those that an op only keeps need not be computed."""

from __future__ import annotations

from typing import Any

from mycelia.engine.capture.open_sizes import forget_sizes
from mycelia.engine.ir import Graph, Node
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ir.types import agree
from mycelia.engine.ir.walk import all_graphs


def settle_sizes(graph: Graph) -> None:
    """Writes -1 for sizes of parts and of broadcasts that are those of the input; then types forget them."""
    for region in all_graphs(graph):
        for node in region.nodes:
            if node.op.name == "sized" and node.attrs["op"].name in _KEPT:
                name = _KEPT[node.attrs["op"].name]
                attrs = node.attrs["attrs"]
                node.attrs = {**node.attrs, "attrs": {**attrs, name: _kept(node, attrs[name], attrs)}}
    forget_sizes(graph)


_KEPT = {"strided_slice": "size", "broadcast_to": "shape"}  # op -> the attribute with sizes of the result


def _kept(node: Node, sizes: tuple, attrs: dict[str, Any]) -> tuple:
    given = node.inputs[0].type.shape
    lead = len(sizes) - len(given)
    made = []
    for axis, n in enumerate(sizes):
        whole = "begin" not in attrs or (
            attrs["stride"][axis] == 1 and agree(attrs["begin"][axis], 0) is True
        )
        stays = type(n) is SymInt and axis >= lead and whole and agree(n, given[axis - lead]) is True
        made.append(-1 if stays else n)
    return tuple(made)
