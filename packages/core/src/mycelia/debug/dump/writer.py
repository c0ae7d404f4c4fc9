"""Steps of a data dump on their way to the disk: a folder each, a file a tensor, and what is said of
graphs.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mycelia.debug.device_statistics import device_statistics
from mycelia.debug.dump import files, graph_files
from mycelia.debug.dump.config import DumpConfig
from mycelia.debug.dump.step_folder import StepFolder
from mycelia.debug.messages.graphs import Call
from mycelia.debug.statistics import COLUMNS, Statistics, array_of, statistics
from mycelia.engine.base import config, log
from mycelia.engine.base.dtypes import DType
from mycelia.engine.observing import Operator
from mycelia.engine.observing.observers import Watched
from mycelia.engine.tensors.tensor import Tensor

PARAMETER = "Parameter"

#: Where the elements of a tensor lie, and what they are: the same for tensors that share their memory.
Content = tuple[int, DType, tuple[int, ...]]


class Record(NamedTuple):
    """A tensor that is to be written."""

    kind: str
    name: str
    stamp: str
    io: str
    slot: int
    tensor: Tensor


class Group(NamedTuple):
    """What is written of one operator, or one argument; `call`: the whole call, of an eager operator."""

    records: list[Record]
    call: graph_files.Call | None = None


class Step:
    """What is known of a run of a graph, or of a step of eager calls."""

    def __init__(self, of: Watched, iteration: int) -> None:
        self.of, self.iteration = of, iteration
        self.folder: StepFolder | None = None  # once there is something to write
        self.groups: deque[Group] = deque()  # kept until it shows whether they are written
        self.lost = 0  # records, the first ones, that were kept no longer
        self.reason = ""  # what is wrong in it, as far as it ran
        self.rows: list[list[str]] = []
        self.operators: list[Operator] = []  # whose tensors are written
        self.calls: list[Call] = []  # of eager operators
        self.parameters = 0  # of those that eager operators have read, how many are taken


class Writer:
    """Writes below ``{path}/rank_{rank}``. A disk that takes no more ends the dump with one warning."""

    def __init__(self, found: DumpConfig) -> None:
        self.config, self.columns = found, found.columns
        self.rank = config.get("rank")
        self.root = os.path.join(found.path, f"rank_{self.rank}")
        self.is_broken = False
        self.known_graphs: set[int] = set()

    def guarded(self, write: Callable[..., None], *args: Any) -> None:
        """``write(*args)``, unless writing failed before; a failure ends the dump, and nothing else."""
        if self.is_broken:
            return
        try:
            write(*args)
        except OSError as cause:
            self.is_broken = True
            text = "the data dump ends here, %s cannot be written: %s"
            log.logger(__name__).warning(text, self.config.path, cause)

    def add(self, step: Step, record: Record) -> None:
        """Take one tensor of a step to what is written.  Errors: OSError."""
        folder = step.folder or self.make_folder(step)
        tensor = record.tensor
        content = tensor.data_ptr(), tensor.dtype, tensor.shape
        stays = content in folder.notes or self.config.device_statistics  # where the device has it
        array = None if stays else array_of(tensor)
        if self.config.saved_data != "statistic":
            name = self.file_name(record)
            if array is None:
                folder.add_link(name, content)
            else:
                folder.add_array(name, array, content, tensor, self.config.layout == "bin")
        if self.config.saved_data != "tensor":
            step.rows.append(self.row(record, array, folder.notes.get(content, {})))

    def file_name(self, record: Record) -> str:
        tensor, dtype = record.tensor, files.dtype_name(record.tensor.dtype)
        if self.config.layout == "bin":
            return files.old_file_name(record.name, record.io, record.slot, tensor.shape, dtype)
        if self.config.naming == "2.0":
            return files.short_file_name(record.kind, record.name, record.stamp, record.io, record.slot)
        return files.file_name(record.kind, record.name, record.stamp, record.io, record.slot, dtype)

    def op_name(self, full_name: str) -> str:
        """As files and tables have it."""
        return (files.short_op_name if self.config.naming == "2.0" else files.op_name)(full_name)

    def make_folder(self, step: Step) -> StepFolder:
        net, number = self.config.net_name, str(step.iteration)
        if self.config.layout == "bin":
            device = f"device_{config.get('device_id')}"
            parent = os.path.join(self.config.path, net, device)
            number = f"iteration_{number}"
        else:
            parent = os.path.join(self.root, net, str(step.of.number))
        os.makedirs(parent, exist_ok=True)
        step.folder = StepFolder(os.path.join(parent, number))
        return step.folder

    def row(self, record: Record, array: np.ndarray | None, notes: dict) -> list[str]:
        """A line of statistic.csv. `notes`: what is known of the content that waits; `array`: the content,
        where none waited.
        """
        head = [record.kind, self.op_name(record.name), "0", "0", record.stamp, record.io, str(record.slot)]
        if "cells" not in notes:
            notes["cells"] = self.cells(record.tensor, array)
        return head + notes["cells"]

    def cells(self, tensor: Tensor, array: np.ndarray | None) -> list[str]:
        """Size, dtype, shape and statistics of a tensor."""
        shape = f"({','.join(map(str, tensor.shape))})"
        if self.config.device_statistics:
            found = device_statistics(tensor, self.config.device_statistics)
            values = [f"{found[column]:.9g}" for column in self.columns]
            return [str(tensor.nbytes), tensor.dtype.name, shape, *values]
        host = array_of(tensor) if array is None else array
        numbers = statistics(tensor)
        cells = [_cell(column, numbers, host) for column in self.columns]
        return [str(host.nbytes), tensor.dtype.name, shape, *cells]

    def finish(self, step: Step) -> None:
        """Write the tensors that were kept, and what is known at the end of a step.  Errors: OSError."""
        try:
            for group in step.groups:
                for record in group.records:
                    self.add(step, record)
            if step.folder is not None:
                self.complete(step, step.folder)
        finally:
            if step.folder is not None:
                step.folder.publish()
        self.describe()
        if step.of.graph is None:
            calls = step.calls or [group.call for group in step.groups if group.call is not None]
            graph_files.write_calls(self.root, step.of.number, calls)
        elif step.of.number not in self.known_graphs:
            self.known_graphs.add(step.of.number)
            graph_files.write_graph(self.root, step.of)
            self.write_constants(step.of)
        if step.folder is not None:
            graph_files.note_run(self.root, step.of.number, step.iteration)

    def complete(self, step: Step, folder: StepFolder) -> None:
        """What a step's folder holds beside tensors."""
        if step.rows:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow([*_COLUMNS, *self.columns])
            writer.writerows(step.rows)
            folder.add_text("statistic.csv", text.getvalue())
        if self.config.save_kernel_args:
            for operator in step.operators:
                name = f"{operator.type}.{self.op_name(operator.name)}.json"
                folder.add_text(name, json.dumps(operator.attrs, default=str))

    def describe(self) -> None:
        """``.dump_metadata``: who wrote this, and asked by what. The version is the one of MindSpore whose
        rules the dump follows, as its tools ask for."""
        folder = os.path.join(self.root, ".dump_metadata")
        if os.path.exists(os.path.join(folder, "config.json")):
            return
        from importlib.metadata import version

        os.makedirs(folder, exist_ok=True)
        about = {"device_target": config.get("device_target"), "ms_version": f"{self.config.naming}.0"}
        about["mycelia_version"] = version("mycelia-core")
        files.write(os.path.join(folder, "data_dump.json"), [self.config.text])
        files.write(os.path.join(folder, "config.json"), [json.dumps(about)])

    def write_constants(self, of: Watched) -> None:
        assert of.graph is not None
        found = graph_files.constants(of.graph)
        if not found or self.config.layout == "bin" or self.config.saved_data == "statistic":
            return
        parent = os.path.join(self.root, self.config.net_name, str(of.number))
        os.makedirs(parent, exist_ok=True)
        folder = StepFolder(os.path.join(parent, "constants"))
        for number, tensor in enumerate(found):
            name = self.file_name(
                Record(PARAMETER, f"data-{number}", files.CLOCK.stamp(), "output", 0, tensor)
            )
            folder.add_array(name, array_of(tensor), owner=tensor)
        folder.publish()


_COLUMNS = (
    "Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size", "Data Type",
    "Shape",
)  # fmt: skip


def _cell(column: str, numbers: Statistics, array: Any) -> str:
    if column in ("MD5", "SHA1"):
        return hashlib.new(column.lower(), array.tobytes()).hexdigest()
    value = getattr(numbers, COLUMNS[column])
    return str(value) if isinstance(value, int) else f"{value:.9g}"
