"""Passes that make one task of several ops; each can be switched off by its name (the setting `passes`).

A fusion is a tree of ops: each but the last has one reader, the next. It may begin with one op of the cube,
whose result then never leaves the accumulators. So does the device with its unified buffer (UB).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mycelia import dtypes
from mycelia.backends import Pass
from mycelia.ir import Graph, Node, Value, flat_parts
from mycelia.ops.define import find
from mycelia_backend_ascend_sim.fusion.op import Part
from mycelia_backend_ascend_sim.kernels import FLOATS, cube, supports, vector_kernels

ACTIVATIONS = frozenset("relu relu6 gelu sigmoid tanh leaky_relu silu elu hardswish".split())
MOST_PARTS = 8  # what the buffer holds operands of


@dataclass(frozen=True)
class Fusion:
    """A pass: `name`, the ops of the cube that it begins with, and those that may follow.

    Without `hosts` it joins elementwise ops alone.
    """

    name: str
    hosts: frozenset[str]
    followers: frozenset[str] | None = None

    def follows(self, node: Node) -> bool:
        """Whether `node` may be a part behind the first."""
        name = node.op.name
        if not _fits(node) or name in ("cast", "ub_fusion"):
            return False
        if self.followers is not None:
            return name in self.followers
        return bool(node.op.definition.elementwise) and name in vector_kernels()

    def begins(self, node: Node) -> bool:
        """Whether `node` may be the first part."""
        return node.op.name in self.hosts and _fits(node)


FUSIONS = (
    Fusion(
        "ub_conv_bn_relu",
        frozenset(("conv",)),
        frozenset(("batch_norm_infer", "bias_add", "add")) | ACTIVATIONS,
    ),
    Fusion(
        "ub_matmul_bias_activation",
        frozenset(("mat_mul", "batch_matmul", "dense")),
        frozenset(("bias_add", "add")) | ACTIVATIONS,
    ),
    Fusion("ub_elementwise", frozenset()),
)  # fmt: skip


def _fits(node: Node) -> bool:
    """Whether the device's kernel takes `node`, and its one result is floating or bool."""
    if len(node.outputs) != 1 or node.has_effect or node.regions:
        return False
    dtype = node.outputs[0].type.dtype
    if dtype not in FLOATS and dtype is not dtypes.bool_:
        return False
    types = [None if v is None else v.type for v in node.inputs]
    floating = all(t is None or t.dtype in FLOATS or t.dtype is dtypes.bool_ for t in types)
    return floating and supports(node.op.name, types, node.attrs)


def _readers(graph: Graph) -> Mapping[Value, list[Node]]:
    found: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None:
                found.setdefault(value, []).append(node)
    return found


def run(graph: Graph, fusion: Fusion) -> int:
    """Joins what `fusion` can; returns how many nodes joined another."""
    readers, outputs = _readers(graph), set(graph.outputs)
    groups: dict[Node, list[Node]] = {}  # the last node of a tree -> its nodes in order
    place = {node: i for i, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        if fusion.begins(node):
            groups[node] = [node]
            continue
        if not fusion.follows(node):
            continue
        members = [node]
        for value in dict.fromkeys(v for v in node.inputs if v is not None):
            source = value.producer
            tree = None if source is None else groups.get(source)
            alone = value not in outputs and len(readers[value]) == node.inputs.count(value)
            if source is None or tree is None or not alone or len(members) + len(tree) > MOST_PARTS:
                continue
            if (
                _hosts((*members, *tree)) > 1
                or _hosts(tree)
                and value.type.shape != node.outputs[0].type.shape
            ):
                continue
            members += tree
            del groups[source]
        if len(members) > 1 or not fusion.hosts:
            groups[node] = sorted(members, key=place.__getitem__)
    return _join(
        graph, fusion, {last: nodes for last, nodes in groups.items() if _useful(fusion, last, nodes)}
    )


def _hosts(nodes: Collection[Node]) -> int:
    return sum(node.op.name in cube.HOSTS for node in nodes)


def _useful(fusion: Fusion, last: Node, nodes: list[Node]) -> bool:
    return len(nodes) > 1 and last.outputs[0].type.dtype in FLOATS and (not fusion.hosts or _hosts(nodes) > 0)


def _join(graph: Graph, fusion: Fusion, groups: Mapping[Node, list[Node]]) -> int:
    """Puts one node in the place of each tree's last."""
    gone = {node for nodes in groups.values() for node in nodes}
    renamed: dict[Value, Value] = {}
    ordered: list[Node] = []
    for node in graph.nodes:
        if node in groups:
            made = _fused(fusion, groups[node])
            made.inputs = [v if v is None else renamed.get(v, v) for v in made.inputs]
            made.outputs[0].name = node.outputs[0].name
            renamed[node.outputs[0]] = made.outputs[0]
            ordered.append(made)
        elif node not in gone:
            node.inputs = [v if v is None else renamed.get(v, v) for v in node.inputs]
            ordered.append(node)
    graph.nodes = ordered
    graph.outputs = [renamed.get(v, v) for v in graph.outputs]
    return len(gone) - len(groups)


def _fused(fusion: Fusion, nodes: list[Node]) -> Node:
    number = {node.outputs[0]: -1 - i for i, node in enumerate(nodes)}
    inputs: dict[Value, int] = {}
    parts: list[Part] = []
    for node in nodes:
        places = tuple(
            None if v is None else number[v] if v in number else inputs.setdefault(v, len(inputs))
            for v in node.inputs
        )
        line = "" if node.location is None else str(node.location)
        parts.append((node.op.name, places, tuple(node.attrs.items()), line))
    last = nodes[-1]
    attrs = {"fusion": fusion.name, "parts": tuple(parts)}
    made = Node(find("ub_fusion"), list(inputs), attrs, [v.type for v in last.outputs], last.location)
    made.parts = flat_parts(nodes)
    return made


def passes() -> list[Pass]:
    """The passes of the backend, in order."""
    return [Pass(fusion.name, lambda graph, fusion=fusion: run(graph, fusion)) for fusion in FUSIONS]
