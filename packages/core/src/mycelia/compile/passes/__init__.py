"""Passes over graphs and the pipeline that runs them.

A pass is a function `(graph) -> number of changes` on one graph; the pipeline runs it on the regions
first. With the setting `check` every pass is followed by the verifier; with `save_graphs` the text after
each stage is written to `save_graphs_path`.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mycelia import config
from mycelia.ir.graph import Graph
from mycelia.ir.text import to_text
from mycelia.ir.verify import verify
from mycelia.ir.walk import all_graphs, clone

_graph_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Pass:
    """A named step of the pipeline."""

    name: str
    run: Callable[[Graph], int]


def pipeline() -> list[Pass]:
    """The passes that every compiled graph goes through, in order."""
    from mycelia.compile.passes import cse, dce, fold, inline, simplify

    return [
        Pass("fold", fold.run),
        Pass("inline", inline.run),
        Pass("simplify", simplify.run),
        Pass("cse", cse.run),
        Pass("dce", dce.run),
    ]


def optimize(graph: Graph, passes: Sequence[Pass] | None = None) -> None:
    """Runs `passes` (default: the pipeline) on `graph` and its regions, in place."""
    own_regions(graph)
    stages = _Stages(graph)
    stages.write("captured")
    for step in pipeline() if passes is None else passes:
        changes = sum(step.run(part) for part in list(all_graphs(graph)))
        if config.get("check"):
            verify(graph)
        if changes:
            stages.write(step.name)


def own_regions(graph: Graph) -> None:
    """Gives nodes copies of regions that others hold as well:
    gradients are kept with the region they belong to.
    """
    for node in graph.nodes:
        for name, attr in list(node.attrs.items()):
            if isinstance(attr, Graph):
                node.attrs = {**node.attrs, name: clone(attr)}
        for region in node.regions:
            own_regions(region)


class _Stages:
    """Writes `<number>_<graph>_<k>_<stage>.ir` files when graphs are to be saved."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.count = 0
        self.directory = config.get("save_graphs_path") if config.get("save_graphs") else None
        if self.directory is not None:
            os.makedirs(self.directory, exist_ok=True)
            name = re.sub(r"\W+", "_", graph.name)
            self.prefix = f"{next(_graph_numbers):04d}_{name}"

    def write(self, stage: str) -> None:
        if self.directory is None:
            return
        path = os.path.join(self.directory, f"{self.prefix}_{self.count:02d}_{stage}.ir")
        self.count += 1
        with open(path, "w", encoding="utf-8") as file:
            file.write(to_text(self.graph) + "\n")
