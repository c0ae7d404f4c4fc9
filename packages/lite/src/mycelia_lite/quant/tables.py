"""What became of layers of integers, and why others were left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from mycelia_lite.format import Table
from mycelia_lite.quant.integer_graph import Weights
from mycelia_lite.quant.measure import Departure
from mycelia_lite.quant.roles import Graph, Role
from mycelia_lite.quant.weights import Layer

Left = Mapping[int, tuple[Table, str]]


def nothing_to_do(left: Left) -> ValueError:
    """The error of a model without a layer that can be quantized."""
    reasons = "; ".join(f"'{node.name}': {why}" for node, why in list(left.values())[:5])
    return ValueError(f"the model has no layers to quantize{': ' if reasons else ''}{reasons}")


def check_finite(graph: Graph, layers: Iterable[Role]) -> None:
    """Errors: ValueError for weights and biases that are NaN or infinite."""
    for role in layers:
        for tensor in (role.weights, role.bias):
            if tensor >= 0 and not np.isfinite(array := graph.floats(tensor)).all():
                kind = "NaN" if np.isnan(array).any() else "infinite"
                raise ValueError(
                    f"the weights '{graph.model.allTensors[tensor].name}' of node '{role.node.name}' have "
                    f"elements that are {kind}"
                )


def described(graph: Graph, role: Role, weights: Weights) -> Layer:
    """A layer whose weights are integers."""
    table = graph.model.allTensors[role.weights]
    was = graph.floats(role.weights).astype(np.float64)
    spread = [1] * was.ndim
    if len(weights.scale) > 1:
        spread[role.axis] = -1
    now = weights.q * weights.scale.astype(np.float64).reshape(spread)
    departure = Departure()
    departure.see(was, now)
    nothing = np.zeros(len(weights.scale), np.float32)
    return Layer(
        role.node.name, role.kind, table.name, was.shape, 8, "", len(weights.scale), was.size,
        departure.error, departure.cosine, (weights.scale, nothing, nothing), now,
    )  # fmt: skip


def in_order(graph: Graph, made: Mapping[int, Layer], left: Left) -> list[Layer]:
    """Layers by their weights, in the order of execution, with those that were left."""
    found = dict(made)
    for tensor, (node, why) in left.items():
        table = graph.model.allTensors[tensor]
        shape = tuple(int(n) for n in table.dims)
        found.setdefault(tensor, Layer(node.name, node.primitive.kind, table.name, shape, why=why))
    order = {id(n): i for i, n in enumerate(graph.nodes)}
    return [found[t] for t in sorted(found, key=lambda t: min(order.get(id(n), 0) for n, _ in graph.uses[t]))]
