"""The files that `save_graphs` asks for: the text of a graph after each stage and pass."""

from __future__ import annotations

import itertools
import os
import re

from mycelia.engine.base import config, files
from mycelia.engine.communication import world
from mycelia.engine.compile import failures
from mycelia.engine.ir.graph import Graph
from mycelia.engine.ir.text import to_dot, to_text

_graph_numbers = itertools.count()
_serials = itertools.count(1)  # of all files that could be written
_SETTINGS = tuple(f"save_graphs{end}" for end in ("", "_path", "_interval", "_passes", "_format"))
_MAIN_STAGES = ("captured", "validate", "lowered", "placed")


def folder() -> str:
    """Where graphs are saved: `save_graphs_path`, of several processes that train together each its own."""
    path, place = config.get("save_graphs_path"), world.place()
    return os.path.join(path, f"rank_{place[0]}") if place is not None and place[1] > 1 else path


class GraphFiles:
    """Writes `<number>_<graph>_<k>_<stage>.ir` files when graphs are to be saved: level 1 the main stages,
    2 all, 3 with a picture each for Graphviz, `.dot`. Of these every n-th, and those of stages with a part
    of the name, where settings say so; their numbers stay as they would be without.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.count = 0
        config.read_again(*_SETTINGS)  # MindSpore reads the environment here, too
        self.level = config.get("save_graphs")
        self.directory = folder() if self.level else None
        self.prefix = ""

    def write(self, stage: str) -> None:
        failures.staged(stage, self.graph)
        if self.directory is None or (self.level == 1 and stage not in _MAIN_STAGES):
            return
        if not self.prefix:
            os.makedirs(self.directory, exist_ok=True)
            name = re.sub(r"\W+", "_", self.graph.name)
            self.prefix = f"{next(_graph_numbers):04d}_{name}"
        path = os.path.join(self.directory, f"{self.prefix}_{self.count:02d}_{stage}")
        self.count += 1
        chosen = [part for part in map(str.strip, config.get("save_graphs_passes").split(",")) if part]
        if next(_serials) % config.get("save_graphs_interval") or (
            chosen and not any(part in stage for part in chosen)
        ):
            return
        files.write(f"{path}.ir", [to_text(self.graph, config.get("save_graphs_format")), "\n"])
        if self.level == 3:
            files.write(f"{path}.dot", [to_dot(self.graph)])
