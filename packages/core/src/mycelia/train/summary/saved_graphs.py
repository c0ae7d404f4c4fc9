"""What `save_graphs` writes beside the text after each stage: files by which MindSpore's tools find graphs.

``ms_output_before_opt_{id}.pb`` is a function's graph as it was captured, ``ms_output_after_opt_{id}.pb``
and ``ms_output_optimize.pb`` (of the latest function) as it was optimized, which is what is differentiated,
dumped and debugged; ``trace_code_graph_{serial}`` has its operators in order of execution.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

from mycelia.debug.dump.graph_files import text_of
from mycelia.engine.base import config, files
from mycelia.engine.base.wire import field
from mycelia.engine.compile import failures
from mycelia.engine.compile.passes.graph_files import folder, place_for
from mycelia.engine.ir.graph import Graph
from mycelia.engine.observing.observers import Watched
from mycelia.train.summary.graph import graph_message

_IR_VERSION = 1  # of a ModelProto


class SavedGraphs:
    """A listener of compilations. While `save_graphs` is 0 it writes nothing."""

    def __init__(self) -> None:
        self.ids = itertools.count()

    def staged(self, stage: str, graph: Graph) -> None:
        """A graph after a stage of its compilation.  Errors: OSError."""
        if not config.get("save_graphs") or stage not in ("captured", "validate"):
            return
        path = folder()
        os.makedirs(path, exist_ok=True)
        if "saved as" not in graph.cache:
            graph.cache["saved as"] = next(self.ids)
        number: int = graph.cache["saved as"]
        model = [field(1, _IR_VERSION) + field(4, graph_message(graph))]
        if stage == "captured":
            files.write(os.path.join(path, f"ms_output_before_opt_{number}.pb"), model)
            return
        files.write(os.path.join(path, f"ms_output_after_opt_{number}.pb"), model)
        files.write(os.path.join(path, "ms_output_optimize.pb"), model)
        trace = place_for("trace_code_graph")
        if trace is not None:
            files.write(trace, [text_of(Watched(graph.name, graph, number))])

    def failed(self, error: BaseException, function: Any, tensors: Sequence[Any]) -> None:
        """Nothing is written then."""


_saved = SavedGraphs()


def start() -> None:
    """Listen from now on."""
    if _saved not in failures.listeners:
        failures.listeners.append(_saved)
