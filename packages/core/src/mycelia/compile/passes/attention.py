"""Attention that was written out in a training step: forward and gradient without the scores in memory.

What is looked for hangs on a gradient of softmax:

    S = q k^T * c + mask          dP = dY v^T       dV = P^T dY
    P = softmax(S)                dS = softmax_grad(dP, P) * c
    Y = P v                       dQ = dS k         dK = dS^T q

with all users of S, P, dP and dS in this list. It becomes `attention` and `attention_grad`, which compute the
weights again, a tile at a time. That is worth it where the weights are large: `LARGE`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mycelia import dtypes
from mycelia.backends.registry import LoadedBackend
from mycelia.ir.graph import Builder, Graph, Node, Value
from mycelia.ir.walk import substitute, users
from mycelia.ops.define import find
from mycelia.ops.infer import broadcast_shapes

PRODUCTS = ("mat_mul", "batch_matmul")
LARGE = 1 << 20  # elements of the weights from which on training steps do without them


class Scores(NamedTuple):
    """``product * scale + mask``, the nodes that make it, and the number of the scale as it stands there."""

    product: Node
    scale: float
    mask: Value | None
    factor: Value | None
    nodes: tuple[Node, ...]


def read_scores(scores: Value, once: Callable[..., Node | None]) -> Scores | None:
    """How `scores` are made. `once(value, *ops)`: the node that makes a value that is read once."""
    mask, scale, factor, nodes = None, 1.0, None, []
    masked = once(scores, "add")
    if masked is not None:
        nodes.append(masked)
        inner, mask = masked.inputs
        if not _is_scores(inner):
            inner, mask = mask, inner
        scores = inner
    scaled = once(scores, "mul", "div")
    if scaled is not None:
        nodes.append(scaled)
        inner, factor = scaled.inputs
        if scaled.op.name == "mul" and inner.is_constant:
            inner, factor = factor, inner
        scale = _number(factor)
        if scale is None or scaled.op.name == "div" and scale == 0:
            return None
        scores, scale = inner, scale if scaled.op.name == "mul" else 1 / scale
    product = once(scores, *PRODUCTS)
    return None if product is None else Scores(product, scale, mask, factor, (*nodes, product))


def fits(query: Value, key: Value, values: Value, mask: Value | None, scores: Value) -> bool:
    """Whether the kernel takes these."""
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


def _number(factor: Value) -> float | None:
    if not factor.is_constant or factor.type.size != 1:
        return None
    return float(factor.constant.asnumpy().reshape(-1)[0])


def _is_scores(value: Value) -> bool:
    """A product, or one that was scaled."""
    node = value.producer
    if node is not None and node.op.name in ("mul", "div"):
        node = next((v.producer for v in node.inputs if v.producer is not None), None)
    return node is not None and node.op.name in PRODUCTS


def turns_last_two(node: Node | None) -> bool:
    """A transpose of the last two axes."""
    if node is None or node.op.name != "transpose":
        return False
    rank = len(node.attrs["dims"])
    dims = [d % rank for d in node.attrs["dims"]]
    return rank >= 2 and dims == [*range(rank - 2), rank - 1, rank - 2]


# ---- training ----------------------------------------------------------------------------------------------


def run(graph: Graph, backend: LoadedBackend) -> int:
    """Returns how many written-out attentions with gradients were replaced."""
    gradients = [n for n in graph.nodes if n.op.name == "softmax_grad" and n.outputs[0].type.is_static]
    gradients = [n for n in gradients if n.outputs[0].type.size >= LARGE]
    floats = ["f32"] * 3
    if not gradients or any(
        backend.kernel(name, kinds) is None
        for name, kinds in (
            ("attention", [*floats, None, None]),
            ("attention_grad", [*floats, *floats, None, None]),
        )
    ):
        return 0
    return sum(_Training(graph).replace(node) for node in gradients)


class _Match(NamedTuple):
    scores: Scores
    query: Value
    key: Value
    value: Value
    ct: Value
    forward: Node  # Y
    first: Node  # of the gradient's nodes
    results: dict[Value, tuple[int, bool]]  # gradient -> number among those of the op, turned


class _Training:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.users = users(graph)
        self.order = {node: i for i, node in enumerate(graph.nodes)}

    def once(self, value: Value, *ops: str) -> Node | None:
        """What makes `value`, if it is one of `ops` and nobody else reads the result."""
        node = value.producer
        if node is None or node.op.name not in ops or value in self.graph.outputs:
            return None
        return node if len(self.users.get(value, ())) == 1 else None

    def readers(self, value: Value) -> list[Node] | None:
        """The nodes that read `value`; None if it leaves the graph, too."""
        return None if value in self.graph.outputs else [node for node, _ in self.users.get(value, ())]

    def replace(self, softmax_grad: Node) -> bool:
        found = self.match(softmax_grad)
        if found is None:
            return False
        scores = found.scores
        inputs = [found.query, found.key, found.value]
        y, log_sum = self.emit(found.forward, "attention", [*inputs, scores.mask, None], scores.scale)
        saved = [found.ct, *inputs, y, log_sum, scores.mask, None]
        gradients = self.emit(found.first, "attention_grad", saved, scores.scale)
        replaced = {found.forward.outputs[0]: y}
        for value, (number, turned) in found.results.items():
            replaced[value] = gradients[number]
            if turned:
                rank = len(value.type.shape)
                dims = (*range(rank - 2), rank - 1, rank - 2)
                replaced[value] = self.emit(found.first, "transpose", [gradients[number]], dims=dims)[0]
        substitute(self.graph, replaced)
        return True

    def emit(self, before: Node, op: str, inputs: list, scale: float | None = None, **attrs: Any) -> list:
        """A new node right before another one."""
        builder = Builder(self.graph, before.location)
        builder.added = []
        made = builder.emit(find(op), inputs, attrs if scale is None else {"scale": scale})
        position = self.graph.nodes.index(before)
        self.graph.nodes[position:position] = builder.added
        return made

    def match(self, gradient: Node) -> _Match | None:
        """All that hangs on a gradient of softmax."""
        d_weights, weights = gradient.inputs
        softmax = weights.producer
        rank = len(weights.type.shape)
        if softmax is None or softmax.op.name != "softmax" or rank < 2:
            return None
        if any(node.attrs["axis"] not in (-1, rank - 1) for node in (softmax, gradient)):
            return None
        scores = read_scores(softmax.inputs[0], self.once)
        back = self.once(d_weights, *PRODUCTS)
        if scores is None or back is None or flags(back) != (False, True):
            return None
        ct, value = back.inputs
        readers = self.readers(weights)
        if readers is None:
            return None
        forward, results = None, {}
        for node in readers:
            if node is gradient:
                continue
            if node.op.name in PRODUCTS and node.inputs == [weights, value] and flags(node) == (False,) * 2:
                forward = node
            elif node.op.name in PRODUCTS and node.inputs == [weights, ct] and flags(node) == (True, False):
                results[node.outputs[0]] = 2, False
            else:
                return None
        sides = self.sides(scores.product)
        if forward is None or sides is None:
            return None
        query, key, read = sides
        if not fits(query, key, value, scores.mask, softmax.inputs[0]):
            return None
        if not self.gradients(gradient, scores, query, read, results):
            return None
        made = [back, *(v.producer for v in results)]
        first = min(made, key=self.order.__getitem__)
        if self.order[first] < self.order[forward]:
            return None
        return _Match(scores, query, key, value, ct, forward, first, results)

    def sides(self, product: Node) -> tuple[Value, Value, Value] | None:
        """Query, key, and the key as the product reads it."""
        query, key = product.inputs
        if flags(product) == (False, True):
            return query, key, key
        if flags(product) == (False, False) and turns_last_two(key.producer):
            return query, key.producer.inputs[0], key
        return None

    def gradients(self, gradient: Node, scores: Scores, query: Value, key: Value, results: dict) -> bool:
        """Adds the gradients of query and key to `results`; False if anything else is computed of them."""
        d_scores = gradient.outputs[0]
        if scores.factor is not None:
            scaled = next((n for n, _ in self.users.get(d_scores, ())), None)
            kind = next(n for n in scores.nodes if n.op.name in ("mul", "div")).op.name
            if scaled is None or self.readers(d_scores) != [scaled] or scaled.op.name != kind:
                return False
            other = [v for v in scaled.inputs if v is not d_scores]
            if len(other) != 1 or _number(other[0]) != _number(scores.factor):
                return False
            if kind == "div" and scaled.inputs[0] is not d_scores:
                return False
            d_scores = scaled.outputs[0]
        readers = self.readers(d_scores)
        turned = flags(scores.product) == (False, False)
        for node in readers or ():
            if node.op.name not in PRODUCTS:
                return False
            if node.inputs == [d_scores, key] and flags(node) == (False, turned):
                results[node.outputs[0]] = 0, False
            elif turned and node.inputs == [query, d_scores] and flags(node) == (True, False):
                self.key_gradient(node.outputs[0], results)
            elif not turned and node.inputs == [d_scores, query] and flags(node) == (True, False):
                results[node.outputs[0]] = 1, False
            else:
                return False
        return readers is not None

    def key_gradient(self, turned: Value, results: dict) -> None:
        """The gradient of k^T, or of k if all that happens to it is that it is turned back."""
        readers = self.readers(turned)
        if readers is not None and len(readers) == 1 and turns_last_two(readers[0]):
            results[readers[0].outputs[0]] = 1, False
        else:
            results[turned] = 1, True


def flags(product: Node) -> tuple[bool, bool]:
    return product.attrs["transpose_a"], product.attrs["transpose_b"]
