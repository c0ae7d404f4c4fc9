"""The observer that writes a data dump: a folder a graph and step, a file a tensor, as
`docs/debugging.md` shows.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from mycelia.debug.dump import config as settings
from mycelia.debug.dump import files, graph_files
from mycelia.debug.dump.config import DumpConfig
from mycelia.debug.statistics import Statistics, array_of, is_finite, statistics
from mycelia.engine.base import config, log
from mycelia.engine.base.origins import Origin
from mycelia.engine.observing import NOTHING, VALUES, Observer, Operator, Run
from mycelia.engine.tensors.tensor import Tensor

_PARAMETER = "Parameter"


class _Record(NamedTuple):
    """A tensor that is to be written."""

    kind: str
    name: str
    stamp: str
    io: str
    slot: int
    tensor: Tensor


class DumpObserver(Observer):
    """Writes what `found` asks for, below ``{path}/rank_{rank}``.

    A disk that takes no more ends the dump with one warning; the run that is watched goes on.
    """

    def __init__(self, found: DumpConfig) -> None:
        self.config = found
        self.rank = config.get("rank")
        self.root = os.path.join(found.path, f"rank_{self.rank}")
        self.clock = files.Clock()
        self.is_broken = False
        self.known_graphs: set[int] = set()
        self.overflows = 0
        self.asked = not found.signal  # by a signal, where one is set

    def ask(self, *_: Any) -> None:
        """The next step is dumped, where a signal is what asks for steps. Serves as a handler of signals."""
        self.asked = True

    # ---- what is wanted

    def wants(self, run: Run) -> int:
        found = self.config
        if self.is_broken or (found.ranks is not None and self.rank not in found.ranks):
            return NOTHING
        if not self.asked or not found.has_iteration(self.number(run)):
            return NOTHING
        return VALUES

    def number(self, run: Run) -> int:
        return run.iteration + self.config.initial_iteration

    def is_chosen(self, operator: Operator) -> bool:
        if self.config.dump_mode == settings.DUMP_KERNELS:
            return self.config.kernels.matches(operator.type, operator.name)
        if self.config.dump_mode == settings.DUMP_TARGETS:
            return isinstance(operator.origin, Origin) and bool(operator.origin.dumped)
        return True

    # ---- what is seen

    def begin(self, run: Run) -> None:
        run.notes[self] = _Step(self.folder(run))
        if self.config.op_debug_mode or self.config.dump_mode != settings.DUMP_ALL:
            return
        for name, tensor, _ in run.named_arguments():
            self.take(run, _Record(_PARAMETER, name, self.clock.stamp(), "output", 0, tensor._detach()))

    def seen(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> None:
        step: _Step = run.notes[self]
        if run.of.graph is None:
            step.calls.append((operator, list(inputs), list(outputs)))
        if self.config.op_debug_mode == settings.EXCEPTION or not self.is_chosen(operator):
            return
        if self.config.op_debug_mode == settings.OVERFLOW:
            limit = self.config.overflow_number
            if (limit and self.overflows >= limit) or all(map(is_finite, outputs)):
                return
            self.overflows += 1
        if self.config.input_output != settings.OUTPUTS:
            self.take_all(run, operator, "input", inputs)
        if self.config.input_output != settings.INPUTS:
            self.take_all(run, operator, "output", outputs)

    def failed(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], error: BaseException
    ) -> None:
        if self.config.op_debug_mode == settings.EXCEPTION and self.is_chosen(operator):
            self.take_all(run, operator, "input", inputs)

    def end(self, run: Run, error: BaseException | None) -> None:
        step: _Step = run.notes.pop(self)
        self.guarded(self.finish, run, step)
        if self.config.signal:
            self.asked = False

    def take_all(self, run: Run, operator: Operator, io: str, tensors: Sequence[Tensor | None]) -> None:
        for slot, tensor in enumerate(tensors):
            if tensor is not None:
                record = _Record(operator.type, operator.name, self.clock.stamp(), io, slot, tensor)
                self.take(run, record)

    def take(self, run: Run, record: _Record) -> None:
        if not record.tensor.size and config.get("dump_ignore_useless_output"):
            return
        self.guarded(self.write, run.notes[self], record)

    # ---- what is written

    def folder(self, run: Run) -> str:
        if self.config.layout == "bin":
            device = f"device_{config.get('device_id')}"
            return os.path.join(
                self.config.path, self.config.net_name, device, f"iteration_{self.number(run)}"
            )
        return os.path.join(self.root, self.config.net_name, str(run.of.number), str(self.number(run)))

    def guarded(self, write: Any, *args: Any) -> None:
        """Writes unless that failed before; a failure ends the dump, and nothing else."""
        if self.is_broken:
            return
        try:
            write(*args)
        except OSError as cause:
            self.is_broken = True
            log.logger(__name__).warning(
                "the data dump ends here, %s cannot be written: %s", self.config.path, cause
            )

    def write(self, step: _Step, record: _Record) -> None:
        if not step.is_made:
            os.makedirs(step.folder, exist_ok=True)
            step.is_made = True
        array = array_of(record.tensor)
        if self.config.saved_data != "statistic":
            dtype = files.dtype_name(record.tensor.dtype)
            if self.config.layout == "bin":
                name = files.old_file_name(record.name, record.io, record.slot, record.tensor.shape, dtype)
            else:
                name = files.file_name(record.kind, record.name, record.stamp, record.io, record.slot, dtype)
            path = os.path.join(step.folder, files.fitting(step.folder, name))
            files.write_array(path, array, raw=self.config.layout == "bin")
        if self.config.saved_data != "tensor":
            step.rows.append(self.row(record, array, statistics(record.tensor)))

    def row(self, record: _Record, array: Any, numbers: Statistics) -> list[str]:
        shape = ",".join(map(str, record.tensor.shape))
        head = [record.kind, files.op_name(record.name), "0", "0", record.stamp, record.io, str(record.slot)]
        head += [str(array.nbytes), record.tensor.dtype.name, f"({shape})"]
        return head + [_cell(column, numbers, array) for column in self.config.columns]

    def finish(self, run: Run, step: _Step) -> None:
        """What is known at the end of a step."""
        if run.of.graph is not None and run.of.number not in self.known_graphs:
            self.known_graphs.add(run.of.number)
            self.describe()
            graph_files.write_graph(self.root, run.of)
            self.write_constants(run)
        elif run.of.graph is None:
            self.describe()
            graph_files.write_calls(self.root, run.of.number, step.calls)
        if step.is_made:
            graph_files.note_run(self.root, run.of.number, self.number(run))
        if step.rows:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow([*_COLUMNS, *self.config.columns])
            writer.writerows(step.rows)
            files.write(os.path.join(step.folder, "statistic.csv"), [text.getvalue()])

    def describe(self) -> None:
        """``.dump_metadata``: who wrote this, and asked by what."""
        folder = os.path.join(self.root, ".dump_metadata")
        if os.path.exists(os.path.join(folder, "config.json")):
            return
        from importlib.metadata import version

        os.makedirs(folder, exist_ok=True)
        about = {
            "device_target": config.get("device_target"),
            "ms_version": "2.10.0",
            "mycelia_version": version("mycelia-core"),
        }
        files.write(os.path.join(folder, "data_dump.json"), [self.config.text])
        files.write(os.path.join(folder, "config.json"), [json.dumps(about)])

    def write_constants(self, run: Run) -> None:
        assert run.of.graph is not None
        found = graph_files.constants(run.of.graph)
        if not found or self.config.layout == "bin" or self.config.saved_data == "statistic":
            return
        folder = os.path.join(self.root, self.config.net_name, str(run.of.number), "constants")
        os.makedirs(folder, exist_ok=True)
        for number, tensor in enumerate(found):
            dtype = files.dtype_name(tensor.dtype)
            name = files.file_name(_PARAMETER, f"data-{number}", self.clock.stamp(), "output", 0, dtype)
            files.write_array(os.path.join(folder, name), array_of(tensor))


class _Step:
    """What is known of a step while it runs."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.is_made = False
        self.rows: list[list[str]] = []
        self.calls: list[graph_files.Call] = []  # of eager operators


_COLUMNS = (
    "Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size", "Data Type",
    "Shape",
)  # fmt: skip


def _cell(column: str, numbers: Statistics, array: Any) -> str:
    if column in ("MD5", "SHA1"):
        return hashlib.new(column.lower(), array.tobytes()).hexdigest()
    value = getattr(numbers, _FIELDS[column])
    return str(value) if isinstance(value, int) else f"{value:.9g}"


_FIELDS = {
    "Max Value": "max",
    "Min Value": "min",
    "Avg Value": "mean",
    "Count": "count",
    "Negative Zero Count": "negative",
    "Positive Zero Count": "positive",
    "NaN Count": "nan",
    "Negative Inf Count": "negative_inf",
    "Positive Inf Count": "positive_inf",
    "Zero Count": "zero",
    "L2Norm Value": "l2norm",
}
