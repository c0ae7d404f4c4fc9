"""A depthwise convolution and the 1x1 convolutions around it become one op that works row by row.

What lies between them is the largest of their tensors: where it would leave the second-level cache, the one
op keeps a few rows of it instead. The sums are the same, in the same order.
"""

from __future__ import annotations

from mycelia.engine.backends.registry import LoadedBackend
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ir.types import UNKNOWN
from mycelia.engine.ir.walk import users
from mycelia.engine.ops.define import find

_LEAST_BYTES = 512 << 10  # of the tensors between: fewer stay in the second-level cache anyway
_MOST_BYTES = 384 << 10  # of the rows at work: more would not stay there
_LEAST_WIDTH = 24  # pixels: shorter rows fill the tiles of a product badly
_DTYPES = ["f32"] * 8


def run(graph: Graph, backend: LoadedBackend) -> int:
    """Returns how many convolutions joined another."""
    if not any(_is_depthwise(node) for node in graph.nodes):
        return 0
    if backend.kernel("conv_last_separable", _DTYPES) is None:
        return 0
    uses = {value: len(found) for value, found in users(graph).items()}
    for value in graph.outputs:
        uses[value] = uses.get(value, 0) + 1
    renamed: dict[Value, Value] = {}
    gone: set[Node] = set()
    nodes: list[Node] = []
    for node in graph.nodes:
        node.inputs = [renamed.get(value, value) for value in node.inputs]
        deep = _read_once(node.inputs[0], uses) if _is_point(node) else None
        if deep is None or not _is_depthwise(deep) or deep.inputs[3] is not None:
            nodes.append(node)
            continue
        expand = _read_once(deep.inputs[0], uses)
        if expand is None or not _is_point(expand) or expand.inputs[3] is not None:
            expand = None
        if not _pays(deep, expand):
            nodes.append(node)
            continue
        new = _joined(expand, deep, node)
        gone.update((deep,) if expand is None else (expand, deep))
        renamed[node.outputs[0]] = new.outputs[0]
        nodes.append(new)
    if gone:
        graph.nodes = [node for node in nodes if node not in gone]
        graph.outputs = [renamed.get(value, value) for value in graph.outputs]
    return len(gone)


def _read_once(value: Value | None, uses: dict[Value, int]) -> Node | None:
    """The producer of `value` if nothing else reads it."""
    return value.producer if value is not None and uses.get(value) == 1 else None


def _is_depthwise(node: Node) -> bool:
    attrs = node.attrs
    return node.op.name == "conv_last" and attrs["algorithm"] == "depthwise" and set(attrs["dilation"]) == {1}


def _is_point(node: Node) -> bool:
    """Whether `node` multiplies pixel by pixel."""
    attrs = node.attrs
    return (
        node.op.name == "conv_last"
        and attrs["algorithm"] == "direct"
        and attrs["group"] == 1
        and {*attrs["kernel"], *attrs["stride"]} == {1}
        and not any(attrs["pad"])
    )


def _pays(deep: Node, expand: Node | None) -> bool:
    source, result = deep.inputs[0].type.shape, deep.outputs[0].type.shape
    if UNKNOWN in (*source, *result) or min(source[2], result[2]) < _LEAST_WIDTH:
        return False
    height = deep.attrs["kernel"][0] + deep.attrs["stride"][0]  # rows of a ring, at most
    rows = 2 * result[2] * result[3] + (0 if expand is None else height * source[2] * source[3])
    between = deep.outputs[0].type.size + (0 if expand is None else deep.inputs[0].type.size)
    return 4 * between >= _LEAST_BYTES and 4 * rows <= _MOST_BYTES


def _joined(expand: Node | None, deep: Node, project: Node) -> Node:
    """All of them in one node, in the place of `project`: there all it reads exists."""
    x, expand_w, expand_b = (deep.inputs[0], None, None) if expand is None else expand.inputs[:3]
    _, w, b, _ = deep.inputs
    _, project_w, project_b, residual = project.inputs
    attrs = {
        "hidden": deep.attrs["channels"],
        "channels": project.attrs["channels"],
        **{name: deep.attrs[name] for name in ("kernel", "stride", "pad")},
        "expand_activation": "none" if expand is None else expand.attrs["activation"],
        "hidden_activation": deep.attrs["activation"],
        "activation": project.attrs["activation"],
    }
    inputs = [x, w, project_w, b, project_b, residual, expand_w, expand_b]
    types = [value.type for value in project.outputs]
    new = Node(find("conv_last_separable"), inputs, attrs, types, project.location)
    new.outputs[0].name = project.outputs[0].name
    return new
