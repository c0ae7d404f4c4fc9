"""Products of matrices: transposes become flags, steady weights are packed once, attention becomes one op.

* A transpose of the last two axes that only a product reads is a flag of the product.
* Where weights seldom change (inference), `dense`, `mat_mul` and `batch_matmul` with one matrix of weights
  work on a pack of them: `linear`, which what follows can join.
* ``softmax(q k^T * scale + mask) v`` is `attention`, without the scores in memory, where no gradient reads in
  between. A query that sees no key at all (a row of -inf) gives zeros there instead of NaN.

All of them add in another order than the ops they replace: results differ by rounding.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from mycelia import dtypes
from mycelia.backends.registry import LoadedBackend
from mycelia.ir.graph import Builder, Graph, Node, Value
from mycelia.ir.walk import users
from mycelia.ops.define import find
from mycelia.ops.infer import broadcast_shapes

_PRODUCTS = ("mat_mul", "batch_matmul")


def run(graph: Graph, backend: LoadedBackend, stable: Collection[int] = ()) -> int:
    """Returns how many products changed. `stable`: positions of parameters that seldom change."""
    if not any(node.op.name in (*_PRODUCTS, "dense") for node in graph.nodes):
        return 0
    return _Products(graph, backend, stable).run()


class _Products:
    def __init__(self, graph: Graph, backend: LoadedBackend, stable: Collection[int]) -> None:
        self.graph = graph
        self.uses = {value: len(found) for value, found in users(graph).items()}
        for value in graph.outputs:
            self.uses[value] = self.uses.get(value, 0) + 1
        has = {name: backend.kernel(name, ["f32"]) is not None for name in ("linear_pack", "linear")}
        self.packs = all(has.values())
        self.attends = backend.kernel("attention", ["f32", "f32", "f32", None, None]) is not None
        self.steady = {graph.parameters[i] for i in stable}
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
            if node.op.name in _PRODUCTS:
                self.absorb_transposes(node)
                result = self.attention(node) or self.linear(node, *node.inputs, None)
            elif node.op.name == "dense":
                result = self.linear(node, *node.inputs)
            elif node.op.definition.view and node.inputs[0] in self.steady:
                self.steady.update(node.outputs)
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
            rank = len(before.attrs["dims"])
            dims = [d % rank for d in before.attrs["dims"]]
            if rank >= 2 and dims == [*range(rank - 2), rank - 1, rank - 2]:
                node.inputs[index] = before.inputs[0]
                node.attrs = {**node.attrs, flag: not node.attrs[flag]}
                self.uses[before.inputs[0]] = self.uses.get(before.inputs[0], 0) + 1

    # ---- weights ----

    def linear(self, node: Node, x: Value, weight: Value, bias: Value | None) -> Value | None:
        if not self.packs or not (weight in self.steady or weight.is_constant):
            return None
        values = [v for v in (x, weight, bias) if v is not None]
        if len(weight.type.shape) != 2 or any(v.type.dtype is not dtypes.float32 for v in values):
            return None
        if not weight.type.is_static or node.attrs.get("transpose_a") or len(x.type.shape) < 1:
            return None
        turned = node.attrs.get("transpose_b", True)
        pack = self.emit("linear_pack", [weight], transpose_w=turned)[0]
        channels = weight.type.shape[0 if turned else 1]
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
        scores, mask, scale = softmax.inputs[0], None, 1.0
        masked = self.once(scores, "add")
        if masked is not None:
            inner, mask = masked.inputs
            if not _is_scores(inner):
                inner, mask = mask, inner
            scores = inner
        scaled = self.once(scores, "mul", "div")
        if scaled is not None:
            inner, factor = scaled.inputs
            if scaled.op.name == "mul" and inner.is_constant:
                inner, factor = factor, inner
            if not factor.is_constant or factor.type.size != 1:
                return None
            number = float(factor.constant.asnumpy().reshape(-1)[0])
            if scaled.op.name == "div" and number == 0:
                return None
            scores, scale = inner, number if scaled.op.name == "mul" else 1 / number
        product = self.once(scores, *_PRODUCTS)
        if product is None or product.attrs["transpose_a"] or not product.attrs["transpose_b"]:
            return None
        query, key = product.inputs
        if not self.fits(query, key, values, mask, scores):
            return None
        return self.emit("attention", [query, key, values, mask, None], scale=scale)[0]

    @staticmethod
    def fits(query: Value, key: Value, values: Value, mask: Value | None, scores: Value) -> bool:
        types = [v.type for v in (query, key, values)] + ([] if mask is None else [mask.type])
        if any(t.dtype is not dtypes.float32 or not t.is_static for t in types):
            return False
        shapes = [t.shape for t in types[:3]]
        if len({len(s) for s in shapes}) != 1 or len({s[:-2] for s in shapes}) != 1:
            return False
        if mask is None:
            return True
        whole = scores.type.shape
        return len(mask.type.shape) <= len(whole) and broadcast_shapes(mask.type.shape, whole) == whole


def _is_scores(value: Value) -> bool:
    """A product, or one that was scaled."""
    node = value.producer
    if node is not None and node.op.name in ("mul", "div"):
        node = next((v.producer for v in node.inputs if v.producer is not None), None)
    return node is not None and node.op.name in _PRODUCTS
