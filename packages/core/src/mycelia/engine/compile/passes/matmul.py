"""Products of matrices: transposes become flags, frozen weights are packed once, attention becomes one op.

* A transpose of the last two axes that only a product reads is a flag of the product.
* Where weights seldom change (inference), `dense`, `mat_mul` and `batch_matmul` with one matrix of weights
  work on a pack of them: `linear`, which what follows can join.
* ``softmax(q k^T * scale + mask) v``, or with keys hidden by `masked_fill` or `where`, is `attention`, which
  does without the scores in memory, where no gradient reads in between; with its gradient, where the scores
  are large, see `attention.py`.

All of them add in another order than the ops they replace: results differ by rounding.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from mycelia.engine.backends.registry import LoadedBackend
from mycelia.engine.base import dtypes
from mycelia.engine.compile.passes import attention
from mycelia.engine.compile.passes.attention import PRODUCTS, fits, flags, read_scores, turns_last_two
from mycelia.engine.ir.graph import Builder, Graph, Node, Value
from mycelia.engine.ir.walk import users
from mycelia.engine.ops.define import find


def run(graph: Graph, backend: LoadedBackend, frozen: Collection[int] = ()) -> int:
    """Returns how many products changed. `frozen`: positions of parameters that seldom change."""
    if not any(node.op.name in (*PRODUCTS, "dense") for node in graph.nodes):
        return 0
    return attention.run(graph, backend) + _Products(graph, backend, frozen).run()


class _Products:
    def __init__(self, graph: Graph, backend: LoadedBackend, frozen: Collection[int]) -> None:
        self.graph = graph
        self.uses = {value: len(found) for value, found in users(graph).items()}
        for value in graph.outputs:
            self.uses[value] = self.uses.get(value, 0) + 1
        has = {name: backend.kernel(name, ["f32"]) is not None for name in ("linear_pack", "linear")}
        self.packs = all(has.values())
        self.attends = backend.kernel("attention", ["f32", "f32", "f32", None, None]) is not None
        self.frozen = {graph.parameters[i] for i in frozen}
        self.renamed: dict[Value, Value] = {}
        self.nodes: list[Node] = []
        self.builder = Builder(graph)
        self.builder.added = self.nodes

    def run(self) -> int:
        changed = 0
        for node in self.graph.nodes:
            node.inputs = [self.renamed.get(v, v) for v in node.inputs]
            self.builder.location = node.location
            result = None
            if node.op.name in PRODUCTS:
                self.absorb_transposes(node)
                result = self.attention(node) or self.linear(node, *node.inputs, None)
            elif node.op.name == "dense":
                result = self.linear(node, *node.inputs)
            elif (node.op.definition.view or node.op.name == "cast") and node.inputs[0] in self.frozen:
                self.frozen.update(node.outputs)
            if result is None:
                self.nodes.append(node)
                continue
            changed += 1
            result.name = node.outputs[0].name
            self.renamed[node.outputs[0]] = result
            self.uses[result] = self.uses.get(node.outputs[0], 0)
        self.graph.nodes = self.nodes
        self.graph.outputs = [self.renamed.get(v, v) for v in self.graph.outputs]
        return changed

    def emit(self, op: str, inputs: list[Value | None], **attrs: Any) -> list[Value]:
        return self.builder.emit(find(op), inputs, attrs)

    def once(self, value: Value, *ops: str) -> Node | None:
        """What makes `value`, if it is one of `ops` and nobody else reads the result."""
        node = value.producer
        return node if node is not None and node.op.name in ops and self.uses.get(value) == 1 else None

    def absorb_transposes(self, node: Node) -> None:
        for index, flag in enumerate(("transpose_a", "transpose_b")):
            before = self.once(node.inputs[index], "transpose")
            if before is None:
                continue
            if turns_last_two(before):
                node.inputs[index] = before.inputs[0]
                node.attrs = {**node.attrs, flag: not node.attrs[flag]}
                self.uses[before.inputs[0]] = self.uses.get(before.inputs[0], 0) + 1

    # ---- weights ----

    def linear(self, node: Node, x: Value, weight: Value, bias: Value | None) -> Value | None:
        if not self.packs or not (weight in self.frozen or weight.is_constant):
            return None
        values = [v for v in (x, weight, bias) if v is not None]
        if len(weight.type.shape) != 2 or any(v.type.dtype is not dtypes.float32 for v in values):
            return None
        if not weight.type.is_static or node.attrs.get("transpose_a") or len(x.type.shape) < 1:
            return None
        turned = node.attrs.get("transpose_b", True)
        channels = weight.type.shape[0 if turned else 1]
        pack = self.emit("linear_pack", [weight], transpose_w=turned)[0]
        return self.emit("linear", [x, pack, bias, None], channels=channels)[0]

    # ---- attention ----

    def attention(self, node: Node) -> Value | None:
        """`node` is the product of weights and values."""
        if not self.attends or node.attrs["transpose_a"] or node.attrs["transpose_b"]:
            return None
        weights, values = node.inputs
        softmax = self.once(weights, "softmax")
        if softmax is None or softmax.attrs["axis"] not in (-1, len(weights.type.shape) - 1):
            return None
        scores = read_scores(softmax.inputs[0], self.once)
        if scores is None or flags(scores.product) != (False, True):
            return None
        query, key = scores.product.inputs
        if not fits(query, key, values, scores):
            return None
        inputs = [query, key, values, scores.made_mask(self.builder), None]
        return self.emit("attention", inputs, **scores.attributes(), unseen="nan")[0]
