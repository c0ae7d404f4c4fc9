"""The files that `save_graphs` asks for, by MindSpore's names: the text of a graph after stages and passes.

``{stage}_{name}_{serial}.ir``
    stages that MindSpore has as well, with its numbers: ``01_type_inference``, the function as it was
    captured, and ``21_validate``, as it is differentiated and lowered
``opt_pass_{n}_{pass}_{serial}.ir``
    after the n-th pass of the stage "optimize", if it changed something
``hwopt_{backend}_{before|after}_lower_graph_{id}_{serial}.ir``, ``hwopt_{backend}_after_place_graph_...``
    before and after a copy was lowered for a backend, and with its copies between devices
``verbose_ir_files/hwopt_{lower|order}_pm_{n}_{pass}_{serial}.ir``
    after passes of these stages that changed something, from level 2 on
``graph_build_{id}_{serial}.ir``
    what a program is made of, in order of execution
``actor_set/final_actor_set_kernel_graph_{id}.ir``
    the instructions of the program, what runs each, and where its results lie

Level 3 draws each, too: ``.dot`` for Graphviz. A serial is taken whether or not the file is written.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable

from mycelia.engine.base import config, files
from mycelia.engine.communication import world
from mycelia.engine.compile import failures
from mycelia.engine.ir.graph import Graph
from mycelia.engine.ir.text import to_dot, to_text

_serials = itertools.count()  # of all files that could be written
_numbers = itertools.count()  # of programs
_NUMBER = "number of the program"
_SETTINGS = tuple(f"save_graphs{end}" for end in ("", "_path", "_interval", "_passes", "_format"))
_STAGES = {"captured": "01_type_inference", "validate": "21_validate"}
_VERBOSE = "verbose_ir_files"


def folder() -> str:
    """Where graphs are saved: `save_graphs_path`, of several processes that train together each its own."""
    path, place = config.get("save_graphs_path"), world.place()
    return os.path.join(path, f"rank_{place[0]}") if place is not None and place[1] > 1 else path


def number_of(graph: Graph) -> int:
    """The number in the names of files about one program."""
    if _NUMBER not in graph.cache:
        graph.cache[_NUMBER] = next(_numbers)
    return graph.cache[_NUMBER]


def is_part_of(part: Graph, graph: Graph) -> None:
    """Gives `part`, of which the program of `graph` is built, its number, if that has one."""
    if _NUMBER in graph.cache:
        part.cache[_NUMBER] = number_of(graph)


def place_for(name: str) -> str | None:
    """The path of the next file, without its ending; None if settings leave it out: of all files every n-th
    is written, and of those that have a part of the name.
    """
    serial = next(_serials)
    name = f"{name}_{serial:04d}"
    chosen = [part for part in map(str.strip, config.get("save_graphs_passes").split(",")) if part]
    if (serial + 1) % config.get("save_graphs_interval"):
        return None
    if chosen and not any(part in os.path.basename(name) for part in chosen):
        return None
    path = os.path.join(folder(), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


class GraphFiles:
    """Writes the files of one graph when graphs are to be saved, and tells listeners of its stages."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        config.read_again(*_SETTINGS)  # MindSpore reads the environment here, too
        self.level = config.get("save_graphs")

    def stage(self, name: str) -> None:
        """The graph is "captured", or has been optimized: "validate"."""
        self._write(name, _STAGES[name])

    def opt_pass(self, number: int, name: str) -> None:
        """The `number`-th pass of the stage "optimize" has changed it."""
        self._write(name, f"opt_pass_{number}_{name}")

    def before(self, backend: str) -> None:
        """It is about to be lowered for a backend."""
        if self.level:
            self._save(f"hwopt_{backend}_before_lower_graph_{number_of(self.graph)}")

    def after(self, backend: str, step: str, stage: str) -> None:
        """It was lowered, or placed; listeners know that as `stage`."""
        self._write(stage, f"hwopt_{backend}_after_{step}_graph_{number_of(self.graph)}")

    def device_pass(self, stage: str, number: int, name: str) -> None:
        """The `number`-th pass of the stage "lower" or "order" has changed it."""
        self._write(f"{stage}_{name}", os.path.join(_VERBOSE, f"hwopt_{stage}_pm_{number}_{name}"), 2)

    def ordered(self) -> None:
        """Its nodes are in the order in which they will run."""
        if self.level:
            self._save(f"graph_build_{number_of(self.graph)}")

    def built(self, text: Callable[[], str]) -> None:
        """A program was made of it, which `text` describes."""
        if self.level:
            path = os.path.join(folder(), "actor_set")
            os.makedirs(path, exist_ok=True)
            name = f"final_actor_set_kernel_graph_{number_of(self.graph)}.ir"
            files.write(os.path.join(path, name), [text()])

    def _write(self, stage: str, name: str, level: int = 1) -> None:
        failures.staged(stage, self.graph)
        if self.level >= level:
            self._save(name)

    def _save(self, name: str) -> None:
        path = place_for(name)
        if path is None:
            return
        files.write(f"{path}.ir", [to_text(self.graph, config.get("save_graphs_format")), "\n"])
        if self.level == 3:
            files.write(f"{path}.dot", [to_dot(self.graph)])
