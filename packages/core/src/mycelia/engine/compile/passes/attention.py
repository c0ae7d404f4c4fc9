"""Attention that was written out in a training step: forward and gradient without the scores in memory.

What is looked for hangs on a gradient of softmax:

    S = q k^T * c + mask          dP = dY v^T       dV = P^T dY
    P = softmax(S)                dS = softmax_grad(dP, P) * c
    Y = P v                       dQ = dS k         dK = dS^T q

with all users of S, P, dP and dS in this list; instead of a mask, `masked_fill` or `where` may hide keys. It
becomes `attention` and `attention_grad`, which compute the weights again, a tile at a time. That is worth it
where the weights are large: `LARGE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from mycelia.engine.backends.registry import LoadedBackend
from mycelia.engine.base import dtypes
from mycelia.engine.ir.graph import Builder, Graph, Node, Value
from mycelia.engine.ir.walk import substitute, users
from mycelia.engine.ops.define import find
from mycelia.engine.ops.infer import broadcast_shapes
from mycelia.engine.tensors.tensor import Tensor

PRODUCTS = ("mat_mul", "batch_matmul")
LARGE = 1 << 20  # elements of the weights from which on training steps do without them
SMALLEST = 1e-30  # factor of scores
HIDDEN = -1e4  # a score of at most this hides the key: its weight is 0, unless no score is much larger


class Hidden(NamedTuple):
    """A choice that sets scores of keys that a query may not see to `fill`: the node, the places of scores,
    condition and fill among its inputs, and whether keys are hidden where the condition holds."""

    node: Node
    places: tuple[int, int, int]
    where: bool
    fill: float

    @property
    def scores(self) -> Value:
        return self.node.inputs[self.places[0]]

    @property
    def condition(self) -> Value:
        return self.node.inputs[self.places[1]]

    def constant(self) -> np.ndarray | None:
        """Which keys are hidden, if that is known."""
        if not self.condition.is_constant:
            return None
        return self.condition.constant.asnumpy() == self.where


class Scores(NamedTuple):
    """``hidden(product * scale + mask)``: the parts; `scaled` is the node of the scale."""

    product: Node
    scale: float
    mask: Value | None
    scaled: Node | None
    hidden: Hidden | None
    causal: float | None  # what is added to, or replaces, the scores of keys behind each query; no mask then

    def made_mask(self, builder: Builder) -> Value | None:
        """The mask of `attention`."""
        if self.hidden is None or self.causal is not None:
            return self.mask
        fill = builder.constant(Tensor(np.float32(self.hidden.fill)))
        zero = builder.constant(Tensor(np.float32(0)))
        choices = [fill, zero] if self.hidden.where else [zero, fill]
        return builder.emit(find("where"), [self.hidden.condition, *choices])[0]

    def attributes(self) -> dict:
        """Those of `attention` and `attention_grad`."""
        found = {"scale": self.scale, "masking": "add" if self.hidden is None else "replace"}
        return found if self.causal is None else {**found, "is_causal": True, "hidden": self.causal}


def read_scores(value: Value, once: Callable[..., Node | None]) -> Scores | None:
    """How scores are made. `once(value, *ops)`: the node that makes a value that is read once."""
    whole, mask, scale, causal = value.type.shape, None, 1.0, None
    hidden = _hidden(once(value, "masked_fill", "where"))
    if hidden is not None:
        value = hidden.scores
        causal = hidden.fill if _is_causal(hidden.constant(), whole) else None
    masked = None if hidden is not None else once(value, "add")
    if masked is not None:
        value, mask = masked.inputs
        if not _is_scores(value):
            value, mask = mask, value
        if mask.is_constant:
            added = mask.constant.asnumpy()
            lowest = float(added.min(initial=0))
            if lowest <= HIDDEN and np.isin(added, (0, lowest)).all() and _is_causal(added != 0, whole):
                mask, causal = None, lowest
    scaled = once(value, "mul", "div")
    if scaled is not None:
        value, factor = scaled.inputs
        if scaled.op.name == "mul" and value.is_constant:
            value, factor = factor, value
        scale = _number(factor)
        if scale is None or scaled.op.name == "div" and scale == 0:
            return None
        scale = scale if scaled.op.name == "mul" else 1 / scale
        if not SMALLEST <= abs(scale) <= 1 / SMALLEST:  # products and quotients would differ beyond rounding
            return None
    product = once(value, *PRODUCTS)
    if product is None or product.outputs[0].type.shape != whole:
        return None
    return Scores(product, scale, mask, scaled, hidden, causal)


def _hidden(node: Node | None) -> Hidden | None:
    if node is None:
        return None
    if node.op.name == "masked_fill":
        places, where = (0, 1, 2), True
    else:
        where = node.inputs[1].is_constant
        places = (2, 0, 1) if where else (1, 0, 2)
    fill = _number(node.inputs[places[2]])
    return Hidden(node, places, where, fill) if fill is not None and fill <= HIDDEN else None


def _is_causal(hidden: np.ndarray | None, whole: tuple[int, ...]) -> bool:
    """Whether key j is hidden from query i where j > i, and no other."""
    if hidden is None or hidden.shape[-2:] != whole[-2:] or hidden.size != whole[-1] * whole[-2]:
        return False
    return bool((hidden == ~np.tri(*whole[-2:], dtype=bool)).all())


def fits(query: Value, key: Value, values: Value, how: Scores) -> bool:
    """Whether the kernel takes these."""
    mask = how.mask
    types = [v.type for v in (query, key, values)] + ([] if mask is None else [mask.type])
    if any(t.dtype is not dtypes.float32 or not t.is_static for t in types):
        return False
    shapes = [t.shape for t in types[:3]]
    if len({len(s) for s in shapes}) != 1 or len({s[:-2] for s in shapes}) != 1:
        return False
    over = mask if how.hidden is None else how.hidden.condition
    if over is None:
        return True
    shape, whole = over.type.shape, how.product.outputs[0].type.shape
    return over.type.is_static and len(shape) <= len(whole) and broadcast_shapes(shape, whole) == whole


def _same(a: Value, b: Value) -> bool:
    """One value, or two constants with the same content."""
    if a is b:
        return True
    return (
        a.is_constant
        and b.is_constant
        and a.type == b.type
        and (a.constant is b.constant or np.array_equal(a.constant.asnumpy(), b.constant.asnumpy()))
    )


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
        inputs = [found.query, found.key, found.value]
        how = found.scores.attributes()
        with self.before(found.forward) as builder:
            mask = found.scores.made_mask(builder)
            y, log_sum = builder.emit(find("attention"), [*inputs, mask, None], {**how, "unseen": "nan"})
        with self.before(found.first) as builder:
            saved = [found.ct, *inputs, y, log_sum, mask, None]
            gradients = builder.emit(find("attention_grad"), saved, how)
            replaced = {found.forward.outputs[0]: y}
            for value, (number, is_turned) in found.results.items():
                replaced[value] = gradients[number]
                if is_turned:
                    rank = len(value.type.shape)
                    dims = (*range(rank - 2), rank - 1, rank - 2)
                    replaced[value] = builder.emit(find("transpose"), [gradients[number]], {"dims": dims})[0]
        substitute(self.graph, replaced)
        return True

    @contextmanager
    def before(self, node: Node) -> Iterator[Builder]:
        """A builder whose nodes come right before `node`."""
        builder = Builder(self.graph, node.location)
        builder.added = []
        yield builder
        position = self.graph.nodes.index(node)
        self.graph.nodes[position:position] = builder.added

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
        if not fits(query, key, value, scores):
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
        d_scores: Value | None = gradient.outputs[0]
        if scores.hidden is not None:
            d_scores = self.unhidden(d_scores, scores.hidden)
        if scores.scaled is not None and d_scores is not None:
            d_scores = self.unscaled(d_scores, scores.scaled)
        if d_scores is None:
            return False
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

    def only_reader(self, value: Value) -> Node | None:
        readers = self.readers(value)
        return readers[0] if readers is not None and len(readers) == 1 else None

    def unhidden(self, d_scores: Value, hidden: Hidden) -> Value | None:
        """The gradient without that of hidden keys."""
        node = self.only_reader(d_scores)
        if node is None or node.op.name != hidden.node.op.name or len(node.inputs) != 3:
            return None
        scores, condition, fill = (node.inputs[i] for i in hidden.places)
        if scores is not d_scores or not _same(condition, hidden.condition):
            return None
        return node.outputs[0] if _number(fill) == 0 else None

    def unscaled(self, d_scores: Value, scaled: Node) -> Value | None:
        """The gradient times the scale, in the way the scores were scaled."""
        node = self.only_reader(d_scores)
        if node is None or node.op.name != scaled.op.name:
            return None
        if node.op.name == "div" and node.inputs[0] is not d_scores:
            return None
        factor = [v for v in node.inputs if v is not d_scores]
        same = len(factor) == 1 and _number(factor[0]) in [_number(v) for v in scaled.inputs]
        return node.outputs[0] if same and _number(factor[0]) is not None else None

    def key_gradient(self, turned: Value, results: dict) -> None:
        """The gradient of k^T, or of k if all that happens to it is that it is turned back."""
        reader = self.only_reader(turned)
        if turns_last_two(reader):
            results[reader.outputs[0]] = 1, False
        else:
            results[turned] = 1, True


def flags(product: Node) -> tuple[bool, bool]:
    return product.attrs["transpose_a"], product.attrs["transpose_b"]
