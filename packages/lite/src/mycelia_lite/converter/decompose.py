"""Ops without a rule, as graphs of ops that have one."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.io.mindir.rules import decomposed
from mycelia.io.mindir.rules.table import traced
from mycelia.ir import Graph, Node, TensorType, Value
from mycelia.ir.graph import group_inputs
from mycelia.ir.walk import substitute


def _adaptive_avg_pool(x, *, size):
    """Means of windows that overlap where the sizes do not divide: products with matrices of weights."""
    for axis, out in ((3, size[1]), (2, size[0])):
        n = x.shape[axis]
        places = np.arange(out)
        begin, end = places * n // out, -(-(places + 1) * n // out)
        at = np.arange(n)
        inside = (at >= begin[:, None]) & (at < end[:, None])
        weights = (inside / inside.sum(1, keepdims=True)).astype(np.float32)
        x = ops.matmul(x, ms.Tensor(weights.T)) if axis == 3 else ops.matmul(ms.Tensor(weights), x)
    return x


def _sigmoid_cross_entropy(logits, label):
    return ops.relu(logits) - logits * label + ops.log1p(ops.exp(-ops.abs(logits)))


def _softplus(x, *, beta, threshold):
    scaled = x * beta
    soft = ops.log1p(ops.exp(ops.minimum(scaled, ms.Tensor(threshold, x.dtype)))) / beta
    return ops.where(scaled > threshold, x, soft)


_COMPOSED: dict[str, Callable] = {
    "adaptive_avg_pool": _adaptive_avg_pool,
    "fast_gelu": lambda x: x * ops.sigmoid(x * 1.702),
    "logsigmoid": lambda x: ops.minimum(x, ms.Tensor(0, x.dtype)) - ops.log1p(ops.exp(-ops.abs(x))),
    "masked_fill": lambda x, mask, value: ops.where(mask, value, x),
    "mish": lambda x: x * ops.tanh(_softplus(x, beta=1.0, threshold=20.0)),
    "sigmoid_cross_entropy_with_logits": _sigmoid_cross_entropy,
    "softplus": _softplus,
    "stop_gradient": lambda x: x,
}


def _composed(node: Node) -> Graph | None:
    function = _COMPOSED.get(node.op.name)
    if function is None:
        return decomposed(node)
    types = [None if v is None else v.type for v in node.inputs]
    return traced(node.op.name, lambda *x: function(*x, **node.attrs), types)


def _moved(node: Node) -> list[Value] | None:
    """Results of an op that only moves elements of constants, as constants; None if it is no such op."""
    given = [v for v in node.inputs if v is not None]
    if not node.op.definition.moves or not given or not all(v.is_constant for v in given):
        return None
    tensors = group_inputs(node.op, [None if v is None else v.constant for v in node.inputs])
    made = node.op(*tensors, *(node.attrs[a.name] for a in node.op.definition.attrs))
    made = made if isinstance(made, tuple) else (made,)
    return [Value(TensorType(t.dtype, t.shape), name=given[0].name, constant=t) for t in made]


def expand(graph: Graph, known: Collection[str]) -> list[str]:
    """Replace, in place, nodes of ops that are not known by what they are composed of; those of nothing."""
    missing = set()
    while True:
        nodes, results = [], {}
        for node in graph.nodes:
            node.inputs = [results.get(v, v) for v in node.inputs]
            if (moved := _moved(node)) is not None:
                results.update(zip(node.outputs, moved, strict=True))
                continue
            inner = None if node.op.name in known or node.op.name in missing else _composed(node)
            if inner is None:
                if node.op.name not in known:
                    missing.add(node.op.name)
                nodes.append(node)
                continue
            given = [v for v in node.inputs if v is not None]
            substitute(inner, dict(zip(inner.parameters, given, strict=True)))
            nodes += inner.nodes
            results.update(zip(node.outputs, inner.outputs, strict=True))
        graph.nodes = nodes
        if not results:
            return sorted(missing)
        substitute(graph, results)
