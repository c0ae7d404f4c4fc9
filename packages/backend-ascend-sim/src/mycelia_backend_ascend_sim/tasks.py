"""Tasks: what the device runs, one kernel each. Operands are read and results stored by the rules here."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mycelia import dtypes
from mycelia.backends import Buffer
from mycelia.dtypes import DType
from mycelia.io.device_formats import Formatted
from mycelia_backend_ascend_sim import arithmetic, faults, options
from mycelia_backend_ascend_sim.memory import Memory
from mycelia_backend_ascend_sim.overflow import AI_CORE, OverflowRecord, OverflowStatus

CUBE, VECTOR, MTE, SCALAR = "cube", "vector", "mte", "scalar"


@dataclass(slots=True)
class Operand:
    """A tensor that a task reads."""

    task: Task
    buffer: Buffer

    @property
    def shape(self) -> tuple[int, ...]:
        return self.buffer.shape

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def stored(self) -> np.ndarray:
        """Its elements as they lie in memory, row-major, not to be written; bfloat16 as uint16."""
        content = self.task.device.memory.read(self.buffer.address, self.buffer.nbytes)
        return content.view(self.dtype.np).reshape(self.shape)

    def values(self) -> np.ndarray:
        """As the unit's registers hold it: 16-bit floats as float32 (R1), not to be written."""
        return self.widened(self.stored())

    def widened(self, x: np.ndarray) -> np.ndarray:
        """Elements in memory as values."""
        if self.dtype is dtypes.float16:
            x = x.astype(np.float32)
        elif self.dtype is dtypes.bfloat16:
            x = dtypes.from_bfloat16_bits(x)
        if self.task.options.flush_denormals and self.dtype in arithmetic.SMALLEST_NORMAL:
            x = arithmetic.flushed(x, self.dtype)
        return x

    def present(self) -> Formatted | None:
        """What lies in memory in a layout of the device's own, if it does."""
        return self.task.device.memory.formatted(self.buffer.address, self.shape, self.buffer.nbytes)

    def cube_values(self, format: str) -> np.ndarray:
        """As the cube takes it, float32 rounded by R8; it is wanted in `format`."""
        present = self.present()
        self.task.conversions += present is None or present.format != format
        return self.task.cube_values(self.values(), self.dtype)


@dataclass(slots=True)
class Task:
    """One kernel on the device: what it is, and what it left behind."""

    device: Device
    task_id: int
    stream_id: int
    options: options.Options
    op: str = ""
    unit: str = VECTOR
    attrs: dict[str, Any] = field(default_factory=dict)
    parts: tuple[str, ...] = ()  # ops of a fusion
    fusion: str = ""
    host_shape: tuple[int, ...] = ()  # of what the cube makes within a fusion
    inputs: tuple[Buffer | None, ...] = ()
    outputs: tuple[Buffer, ...] = ()
    formats: tuple[str, ...] = ()  # of the results, as they lie in memory
    conversions: int = 0  # operands of the cube that did not lie in its layout
    status_bits: int = AI_CORE  # those that an overflow sets
    status: int = 0
    slots: tuple[int, ...] = ()  # results that overflowed
    clamped: bool = False  # an operand overflowed when it was brought to the cube's dtype
    step: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Its op and those that it fuses."""
        return (self.op, *self.parts)

    def cube_values(self, x: np.ndarray, dtype: DType) -> np.ndarray:
        """Values of a tensor of `dtype` as the cube takes them (R8)."""
        if dtype is not dtypes.float32 or self.options.precision_mode == "must_keep_origin_dtype":
            return x
        narrow = dtypes.float16 if self.options.precision_mode == "allow_fp32_to_fp16" else dtypes.bfloat16
        saturate = self.options.overflow_mode == options.SATURATION
        y = arithmetic.rounded(x, narrow, saturate=saturate, flush=self.options.flush_denormals)
        y = y.astype(np.float32)
        if saturate and not self.clamped:
            self.clamped = bool((np.abs(x) > arithmetic.LARGEST[narrow]).any() and np.isfinite(x).all())
        return y


def round_result(task: Task, slot: int, values: np.ndarray, dtype: DType) -> tuple[np.ndarray, bool]:
    """float32 `values` in the numbers of `dtype` (R2, R3), and whether one is beyond its range."""
    largest = arithmetic.LARGEST[dtype]
    top = np.abs(values).max(initial=0)
    fits = bool(top <= largest)  # False for NaN too
    saturate = task.options.overflow_mode == options.SATURATION
    flush = task.options.flush_denormals
    result = None
    if faults.planted():
        for injection, fault in faults.meant(task.names, task.task_id, slot):
            found = fault.rounding(values, dtype)
            if found is not None:
                result = found
                injection.hits.append((fault, task.op, injection.step, task.task_id))
    if result is None:
        result = arithmetic.rounded(values, dtype, saturate=saturate and not fits, flush=flush)
    if fits:
        return result, False
    # Just above the largest number there are some that are rounded down to it.
    beyond = not np.isfinite(arithmetic.rounded(values, dtype)).all()
    return result, beyond


class Device:
    """The simulated device: memory, streams, overflow status, and the tasks that it ran.

    `listeners` are called with each Task when it has ended, in the thread that ran it.
    """

    def __init__(self, capacity: int) -> None:
        self.memory = Memory(capacity)
        self.overflow = OverflowStatus()
        self.listeners: list[Callable[[Task], None]] = []
        self.lock = threading.RLock()
        self._ids = itertools.count()
        self._running = threading.local()

    @property
    def running(self) -> Task:
        """The task of the calling thread."""
        return self._running.task

    @property
    def last(self) -> Task | None:
        """The task that the calling thread ran last."""
        return getattr(self._running, "task", None)

    def launch(
        self,
        function: Callable[..., Sequence[Any]],
        inputs: Sequence[Buffer | None],
        outputs: Sequence[Buffer],
        stream_id: int,
    ) -> None:
        """Run a kernel: `function` gets an Operand for each input, and gives an array or Formatted for each
        output: in the tensor's dtype, or in float32 values to be rounded.
        """
        with self.lock, np.errstate(all="ignore"):
            task = Task(self, next(self._ids), stream_id, options.present())
            task.inputs, task.outputs = tuple(inputs), tuple(outputs)
            self._running.task = task
            results = function(*(None if b is None else Operand(task, b) for b in inputs))
            task.formats = tuple(
                self._store(task, slot, buffer, result)
                for slot, (buffer, result) in enumerate(zip(outputs, results, strict=True))
            )
            self._finish(task)

    def _store(self, task: Task, slot: int, buffer: Buffer, result: Any) -> str:
        """Write a result, as R2 and R3 say; returns its format."""
        data = result.data if isinstance(result, Formatted) else np.asarray(result)
        dtype = buffer.dtype
        if dtype in arithmetic.LARGEST and data.dtype == np.float32 and task.unit != MTE:
            data, beyond = round_result(task, slot, data, dtype)
            if (beyond or task.clamped) and self._born_here(task):
                task.status |= AI_CORE
                task.slots += (slot,)
        if faults.planted():
            for injection, fault in faults.meant(task.names, task.task_id, slot):
                changed = fault.stored(data, dtype)
                if changed is not data:
                    injection.hits.append((fault, task.op, injection.step, task.task_id))
                data = changed
        if dtype is dtypes.bfloat16 and data.dtype == np.float32:
            data = dtypes.to_bfloat16_bits(data)
        data = data.astype(dtype.np, copy=False)
        if isinstance(result, Formatted):
            self.memory.put(buffer.address, buffer.nbytes, Formatted(data, result.format, result.shape))
            return result.format
        place = self.memory.to_write(buffer.address, buffer.nbytes)
        np.copyto(place.view(dtype.np).reshape(buffer.shape), data)
        return "DefaultFormat"

    def _born_here(self, task: Task) -> bool:
        """Whether all floating operands were finite."""
        for buffer in task.inputs:
            if buffer is not None and buffer.dtype in arithmetic.LARGEST:
                if task.outputs and any(buffer.address == b.address for b in task.outputs):
                    continue  # written in place: what it was cannot be seen any more
                if not np.isfinite(Operand(task, buffer).values()).all():
                    return False
        return True

    def _finish(self, task: Task) -> None:
        if task.status:
            task.status = task.status_bits
            record = OverflowRecord(
                task.op, task.task_id, task.stream_id, task.status,
                task.outputs[task.slots[0]].address, task.slots,
            )  # fmt: skip
            self.overflow.add(record)
        for listener in tuple(self.listeners):
            listener(task)
