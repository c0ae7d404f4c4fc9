"""The asynchronous dump: one file for each task of a device, tensors as they lie there, written by a thread.

For backends that number their tasks (`Backend.last_task`); others have the synchronous dump alone. The files
are those of `mycelia.io.async_dump`; all of a step are there when it ends.
"""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycelia.debug.dump import device_overflow, files
from mycelia.debug.dump.config import EXCEPTION, INPUTS, OUTPUTS, OVERFLOW, DumpConfig
from mycelia.debug.dump.observer import DumpObserver
from mycelia.engine.backends import Backend, Buffer, TaskInfo, registry
from mycelia.engine.base import config, log
from mycelia.engine.observing import Operator, Run
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io import async_dump
from mycelia.io.async_dump import DumpRecord, DumpTensor

_WAITING = 64  # records at most between the run and the disk
_Given = tuple[str, DumpRecord, dict | None]  # folder, what is written there, the device's overflow record


def numbers_tasks(backend: Backend) -> bool:
    """Whether the dump of `backend` can be asynchronous."""
    return type(backend).last_task is not Backend.last_task


class AsyncDumpObserver(DumpObserver):
    """Hands each operator's tensors, in the device's layouts, to a thread that writes them."""

    def __init__(self, found: DumpConfig) -> None:
        super().__init__(found)
        self.stamps = files.Clock()
        self.move(found)

    def move(self, found: DumpConfig) -> None:
        super().move(found)
        self.folder_of_rank = os.path.join(found.path, f"rank_{config.get('rank')}")
        self.waiting: queue.Queue[_Given] = queue.Queue(_WAITING)
        self.writer_thread: threading.Thread | None = None  # a fork has no thread of its parent
        self.failure: Exception | None = None

    # ---- what is seen

    def begin(self, run: Run) -> None:
        folder = os.path.join(
            self.folder_of_rank, self.config.net_name, str(run.of.number), str(self.number(run))
        )
        run.notes[self] = folder
        run.notes[self, "asked"] = self.asked_for

    def before(self, run: Run, operator: Operator, inputs: Sequence[Tensor | None]) -> None:
        run.notes[self, "before"] = device_overflow.latest()

    def seen(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> None:
        found = self.config
        if self.failure or found.op_debug_mode == EXCEPTION or not self.is_chosen(operator):
            return
        task = device_overflow.task_after(run.notes[self, "before"])
        overflow = None
        if found.op_debug_mode == OVERFLOW:
            enough = found.overflow_number and self.overflows >= found.overflow_number
            if enough or task is None or not task.status & found.overflow_bits:
                return
            self.overflows += 1
            overflow = device_overflow.record_of(task, operator)
        self.give(run, operator, inputs, outputs, task, overflow)

    def failed(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], error: BaseException
    ) -> None:
        if self.config.op_debug_mode == EXCEPTION and self.is_chosen(operator):
            self.give(run, operator, inputs, (), None, None)

    def give(
        self,
        run: Run,
        operator: Operator,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor],
        task: TaskInfo | None,
        overflow: dict[str, Any] | None,
    ) -> None:
        """Hand an operator over to the thread that writes."""
        which = self.config.input_output
        record = DumpRecord(
            operator.name, operator.type, task.task_id if task else 0, task.stream_id if task else 0,
            int(self.stamps.stamp()), task.status if task else 0,
            inputs=tuple(_content(t) for t in inputs if t is not None) if which != OUTPUTS else (),
            outputs=tuple(map(_content, outputs)) if which != INPUTS else (),
        )  # fmt: skip
        if self.writer_thread is None:
            self.writer_thread = threading.Thread(target=self.write_all, daemon=True, name="async dump")
            self.writer_thread.start()
        self.waiting.put((run.notes[self], record, overflow))

    def end(self, run: Run, error: BaseException | None) -> None:
        self.waiting.join()
        run.notes.pop(self)
        self.answered(run.notes.pop((self, "asked")))

    # ---- what is written

    def write_all(self) -> None:
        """Writes what comes until the process ends; a failure ends the dump with one warning."""
        while True:
            folder, record, overflow = self.waiting.get()
            try:
                if self.failure is None:
                    os.makedirs(folder, exist_ok=True)
                    self.write(folder, record)
                    if overflow is not None:
                        name = device_overflow.file_name(record.task_id, record.stream_id, record.time_us)
                        files.write(os.path.join(folder, name), [json.dumps(overflow)])
            except Exception as cause:  # whatever it is: who waits for this thread waits for ever without it
                self.failure = cause
                log.logger(__name__).warning(
                    "the data dump ends here, %s cannot be written: %s", self.config.path, cause
                )
            finally:
                self.waiting.task_done()

    def write(self, folder: str, record: DumpRecord) -> None:
        """One file for the task, or with `file_format` "npy" one for each tensor.  Errors: OSError."""
        if self.config.file_format == "npy":
            for name, array in async_dump.arrays(record):
                files.write_array(folder, name, array)
        else:
            files.write_named(folder, record.file_name, [async_dump.to_bytes(record)])


def _content(tensor: Tensor) -> DumpTensor:
    """A tensor as it lies in the memory of its device."""
    backend = registry.target().backend
    if tensor._device and tensor._device == backend.device:
        layout, data = backend.contents(Buffer(tensor.data_ptr(), tensor.dtype, tensor.shape))
        return DumpTensor(tensor.dtype, data, layout, tensor.shape)
    bits = np.frombuffer(tensor._bits().tobytes(), tensor.dtype.np).reshape(tensor.shape)
    return DumpTensor(tensor.dtype, bits)
