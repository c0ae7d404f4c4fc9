"""Steps of a data dump on their way to the disk: a folder each, a file a tensor, and what is said of
graphs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mycelia.debug.dump import device_overflow, files, graph_files
from mycelia.debug.dump.config import DumpConfig
from mycelia.debug.dump.groups import PARAMETER, Group, Step
from mycelia.debug.dump.layouts import laid_out
from mycelia.debug.dump.step_folder import StepFolder
from mycelia.debug.dump.tensor_files import TensorFiles
from mycelia.engine.base import config, log
from mycelia.engine.observing.observers import Watched


class Writer:
    """Writes below ``{path}/rank_{rank}``. A disk that takes no more ends the dump with one warning."""

    def __init__(self, found: DumpConfig) -> None:
        self.config, self.tensors = found, TensorFiles(found)
        self.constants = TensorFiles(replace(found, saved_data="tensor"))
        self.rank = config.get("rank")
        self.root = os.path.join(found.path, f"rank_{self.rank}")
        self.is_broken = False
        self.parents: set[str] = set()  # folders of steps
        self.known_graphs: dict[int, int] = {}  # with what the step that described it showed

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

    def add(self, step: Step, group: Group) -> None:
        """Take the tensors of one operator to what is written.  Errors: OSError."""
        folder = step.folder or self.make_folder(step)
        try:
            for part in laid_out(group) if self.config.keeps_layouts else (group,):
                folder.add(part)
        except OSError:
            folder.publish()  # what is whole
            raise

    def make_folder(self, step: Step) -> StepFolder:
        step.folder = StepFolder(self.path_of(step), self.tensors)
        return step.folder

    def path_of(self, step: Step) -> str:
        """Where the tensors of a step belong; the folder above is there then."""
        net, number = self.config.net_name, str(step.iteration)
        if self.config.layout == "bin":
            device = f"device_{config.get('device_id')}"
            parent = os.path.join(self.config.path, net, device)
            number = f"iteration_{number}"
        else:
            parent = os.path.join(self.root, net, str(step.of.number))
        if parent not in self.parents:
            files.make_apart(parent)
            self.parents.add(parent)
        return os.path.join(parent, number)

    def finish(self, step: Step) -> None:
        """Write the tensors that were kept, and what is known at the end of a step.  Errors: OSError."""
        calls = step.calls or [group.call for group in step.groups if group.call is not None]
        read = step.read or [group for group in step.groups if group.kind == PARAMETER]
        try:
            for group in step.groups:
                if group.inputs or group.outputs:
                    self.add(step, group)
            if step.folder is not None:
                step.folder.path = self.path_of(step)  # which program eager calls were is known now
                self.complete(step, step.folder)
        finally:
            if step.folder is not None:
                step.folder.publish()
        self.describe()
        if self.known_graphs.get(step.of.number, -1) < step.extent:
            self.known_graphs[step.of.number] = step.extent
            if step.of.graph is None:
                parameters = [(group.name, tensor) for group in read for tensor in group.tensors]
                graph_files.write_calls(self.root, step.of.number, calls, parameters, step.roles)
            else:
                graph_files.write_graph(self.root, step.of, step.roles)
                self.write_constants(step.of)
        graph_files.note_run(self.root, step.of.number, step.iteration)

    def complete(self, step: Step, folder: StepFolder) -> None:
        """What a step's folder holds beside tensors."""
        folder.settle()
        if self.tensors.has_rows and folder.rows:
            folder.add_text("statistic.csv", [self.tensors.header.encode(), *folder.rows])
        for task, stamp, operator in step.overflows:
            name = device_overflow.file_name(task.task_id, task.stream_id, stamp)
            folder.add_text(name, [json.dumps(device_overflow.record_of(task, operator)).encode()])
        if self.config.save_kernel_args:
            for operator in step.operators:
                name = f"{operator.type}.{self.tensors.op_name(operator.name)}.json"
                folder.add_text(name, [json.dumps(operator.attrs, default=str).encode()])

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
        folder = StepFolder(os.path.join(parent, "constants"), self.constants)
        for number, tensor in enumerate(found):
            folder.add(Group(PARAMETER, f"data-{number}", files.CLOCK.take(1), (), (tensor,)))
        folder.publish()
