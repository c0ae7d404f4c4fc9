"""A function compiled for one signature: its graph, the tensors from outside that it reads and changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia.compile import differentiate
from mycelia.ir.graph import Graph
from mycelia.tensor import Tensor


class Compiled:
    """One function for one signature."""

    __slots__ = ("graph", "inputs", "targets", "count", "build", "guards", "kept")

    def __init__(
        self, graph: Graph, inputs: list[Tensor], targets: list[Tensor], count: int, build: Callable
    ) -> None:
        self.graph = graph
        self.inputs = inputs  # tensors from outside that the graph reads, after its arguments
        self.targets = targets  # tensors from outside that take the last results
        self.count = count  # results that the function returns
        self.build = build
        self.guards: list[tuple[dict, bool]] = []
        self.kept: list[Any] = []

    def is_valid(self) -> bool:
        """False if a Cell that took part has changed between training and inference."""
        return all(state["training"] is training for state, training in self.guards)

    def __call__(self, tensors: list[Tensor]) -> Any:
        results = differentiate.run(self.graph, tensors + self.inputs)
        for target, value in zip(self.targets, results[self.count :]):
            target._assign(value._detach())
        return self.build(results)
