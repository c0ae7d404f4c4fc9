"""The files of a record: ``{MODULE}.{tag}[.{id}].{yyyymmddHHMMSS}_{serial}.{ending}``, as MindSpore's are."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Sequence
from typing import Any

from mycelia.debug.dump import files
from mycelia.debug.recorder.environment import environment
from mycelia.debug.recorder.last_operators import LastOperators
from mycelia.debug.statistics import statistics
from mycelia.engine.base import log
from mycelia.engine.compile import failures
from mycelia.engine.ir.graph import Graph
from mycelia.engine.ir.text import to_text

_STAGES = 64  # texts of graphs that are kept, of the latest compilations

_COLUMNS = (
    "Order", "Step", "Graph", "Op Type", "Op Name", "IO", "Slot", "Data Type", "Shape", "Max Value",
    "Min Value", "Avg Value", "L2Norm Value", "NaN Count", "Negative Inf Count", "Positive Inf Count",
    "Zero Count", "Error", "Source",
)  # fmt: skip


class Records:
    """What one process writes into `folder`."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.stages: deque[tuple[str, str, str]] = deque(maxlen=_STAGES)  # stage, graph, text

    def keep_stage(self, stage: str, graph: Graph) -> None:
        """Remember what `graph` is after `stage`; passes change it later."""
        self.stages.append((stage, graph.name, to_text(graph)))

    def write(self, last: LastOperators, error: BaseException | None, reason: str = "") -> None:
        """All that is known now. What cannot be written is told; the error that led here goes on."""
        try:
            _Writing(self.folder).write(self.stages, last, error, reason)
        except Exception as cause:  # whatever it is: the error that led here is told, and not this one
            log.logger(__name__).warning("the run recorder failed: %s: %s", type(cause).__name__, cause)


class _Writing:
    """One record."""

    def __init__(self, folder: str) -> None:
        self.folder, self.stamp = folder, time.strftime("%Y%m%d%H%M%S")
        self.serial = itertools.count()
        self.index: list[tuple[str, str]] = []  # names of files, and what is in them

    def put(self, name: str, ending: str, text: str, meaning: str) -> None:
        found = f"{name}.{self.stamp}_{next(self.serial)}.{ending}"
        files.write(os.path.join(self.folder, found), [text.rstrip("\n") + "\n"])
        self.index.append((found, meaning))

    def write(
        self, stages: Sequence[tuple[str, str, str]], last: LastOperators, error: BaseException | None,
        reason: str,
    ) -> None:  # fmt: skip
        os.makedirs(self.folder, exist_ok=True)
        bad = last.first_bad()
        if bad is not None:
            text = json.dumps(bad.as_dict(), indent=2)
            files.write(os.path.join(self.folder, "first_bad.json"), [text + "\n"])
        self.put("DEBUG.stack", "txt", _stacks(error), "Python stacks of the error and of all threads")
        self.put("DEBUG.last_operators", "csv", _table(last), f"the last {len(last.ring)} operators")
        self.put("DEBUG.environment", "json", json.dumps(environment(), indent=2), "versions, settings")
        for number, (stage, graph, text) in enumerate(stages):
            name = f"PIPELINE.{number:02d}_{stage}.{graph.replace(os.sep, '_')}"
            self.put(name, "ir", text, f"the graph {graph} after {stage}")
        for number, function in enumerate(sorted(failures.compiled, key=lambda f: f.graph.name)):
            self.function(number, function)
        self.readme(bad, last, error, reason)

    def function(self, number: int, function: Any) -> None:
        """What is known of a compiled function."""
        graph = function.graph
        self.put(f"SESSION.graph_build.{number}", "ir", to_text(graph), f"the graph of {graph.name}")
        program = function.program
        if program is None:
            return
        order = [f"{i:4} {node.op.name} {node.location or ''}" for i, node in enumerate(program.nodes)]
        self.put(f"SESSION.graph_exec_order.{number}", "txt", "\n".join(order), "its instructions in order")
        plan = program.info() if callable(program.info) else program.info
        self.put(f"RUNTIME_FRAMEWORK.mem_address_list.{number}", "txt", str(plan), "its memory plan")

    def readme(self, bad: Any, last: LastOperators, error: BaseException | None, reason: str) -> None:
        lines = [reason or "A run failed.", ""]
        if bad is not None:
            lines += [
                f"What failed first: {bad.seen.operator.name} ({bad.seen.operator.type}), step "
                f"{bad.seen.iteration}, output {bad.slot}: {bad.reason}",
                *(f"  at {place}" for place in bad.as_dict()["source"]),
                "",
            ]
        if error is not None:
            lines += ["".join(traceback.format_exception_only(error)).rstrip(), ""]
        if last.note:
            lines += [last.note, ""]
        lines += [f"{name}: {meaning}" for name, meaning in self.index]
        text = "\n".join(lines) + "\n"
        files.write(os.path.join(self.folder, "README.txt"), [text])


def _stacks(error: BaseException | None) -> str:
    parts = []
    if error is not None:
        parts.append("".join(traceback.format_exception(error)))
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        stack = "".join(traceback.format_stack(frame))
        parts.append(f"Thread {names.get(ident, ident)}:\n{stack}")
    return "\n".join(parts)


def _table(last: LastOperators) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for order, seen in enumerate(last.kept()):
        stack = seen.operator.stack
        source = f"{stack[0][0]}:{stack[0][1]}" if stack else ""
        error = "" if seen.error is None else f"{type(seen.error).__name__}: {seen.error}"
        head = [order, seen.iteration, seen.graph, seen.operator.type, seen.operator.name]
        for place, slot, tensor in seen.tensors():
            x = statistics(tensor)
            numbers = [f"{v:.9g}" for v in (x.max, x.min, x.mean, x.l2norm)]
            counts = [x.nan, x.negative_inf, x.positive_inf, x.zero]
            shape = "(" + ",".join(map(str, tensor.shape)) + ")"
            row = [*head, place, slot, tensor.dtype.name, shape, *numbers, *counts, error, source]
            writer.writerow(row)
    return text.getvalue()
