"""Dynamic quantization: weights of products are int8, and data become int8 by their own range as they run."""

from __future__ import annotations

from mycelia_lite.enums import DataType
from mycelia_lite.format import Table
from mycelia_lite.quant.integer_graph import (
    QUANT_DYNAMIC,
    Integers,
    Writer,
    drop_unread,
    replace,
    rounded_weights,
)
from mycelia_lite.quant.roles import PRODUCTS, Graph, Limits, Role, find
from mycelia_lite.quant.settings import DynamicQuantization
from mycelia_lite.quant.tables import check_finite, described, in_order, nothing_to_do
from mycelia_lite.quant.weights import Layer, check_names


def quantize_dynamic(model: Table, how: DynamicQuantization) -> list[Layer]:
    """Let products by constant matrices compute with int8, in place; inputs and outputs stay what they are.

    Errors: ValueError if a weight is NaN or infinite, a name in `skip` is that of no node, or nothing can be
    quantized; the model is then as it was.
    """
    check_names(model, how.skip)
    graph = Graph(model.copy())
    roles, left = find(graph, Limits(how.min_size, 0, how.skip, PRODUCTS))
    layers = {id(role.node): role for role in roles if role.is_layer}
    if not layers:
        raise nothing_to_do(left)
    check_finite(graph, layers.values())
    weights = rounded_weights(graph, list(layers.values()), {}, how.per_channel)
    made = {role.weights: described(graph, role, weights[role.weights]) for role in layers.values()}
    table = in_order(graph, made, left)
    writer = Writer(graph, Integers({}, weights, {}))
    narrow: dict[tuple[int, bool], int] = {}
    nodes: list[Table] = []
    for node in graph.nodes:
        if (role := layers.get(id(node))) is not None:
            data, rows = role.data[0], how.rows and _has_rows(graph, role)
            if (data, rows) not in narrow:
                narrow[data, rows] = _quantized(writer, data, rows, nodes)
            node.inputIndex = [narrow[data, rows], writer.weights(role.weights), *node.inputIndex[2:]]
            node.quantType = QUANT_DYNAMIC
        nodes.append(node)
    replace(graph.model, nodes, writer.tensors)
    drop_unread(graph.model)
    for name in ("nodes", "allTensors", "subGraph", "inputIndex", "outputIndex"):
        setattr(model, name, getattr(graph.model, name))
    return table


def _has_rows(graph: Graph, role: Role) -> bool:
    """Whether the last axis of the data is what a product sums over."""
    operator = role.node.primitive
    if operator.kind != "FullConnection":
        return True
    rank = len(graph.model.allTensors[role.data[0]].dims)
    axis = int(operator.axis) if operator.use_axis else 1
    return axis % rank == rank - 1 if rank else False


def _quantized(writer: Writer, data: int, rows: bool, nodes: list[Table]) -> int:
    """The integers of a tensor, made by a new node."""
    like = writer.tensors[data]
    made = writer.tensor(f"{like.name}/{'rows' if rows else 'int8'}", DataType.INT8, like)
    operator = Table("DynamicQuant", symmetric=True, dst_type=int(DataType.INT8), activation_channel=rows)
    node = Table("CNode", name=f"{writer.tensors[made].name}/DynamicQuant", primitive=operator)
    node.inputIndex, node.outputIndex, node.quantType = [data], [made], QUANT_DYNAMIC
    nodes.append(node)
    return made
