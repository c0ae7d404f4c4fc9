"""The backend class: kernels, memory, copies and streams of the simulated device, passes of its compiler.

It is made in every process that runs an op, whatever the target: the rest is imported at its first use.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mycelia import config, log
from mycelia.backends import Backend, Buffer, Pass, Stream, TaskInfo
from mycelia_backend_ascend_sim import options

if TYPE_CHECKING:
    from mycelia_backend_ascend_sim.tasks import Device

#: `precision_mode` of `set_context(ascend_config=...)` -> that of the options.
PRECISION_MODES = {
    "force_fp16": "allow_fp32_to_fp16",
    "allow_fp32_to_fp16": "allow_fp32_to_fp16",
    "allow_fp32_to_bf16": "allow_fp32_to_bf16",
    "force_fp32": "must_keep_origin_dtype",
    "must_keep_origin_dtype": "must_keep_origin_dtype",
}


def follow_context(value: Any) -> None:
    """Take over what the setting `ascend_config` says of precision; of other modes a warning tells."""
    mode = value.get("precision_mode")
    if mode in PRECISION_MODES:
        options.configure(precision_mode=PRECISION_MODES[mode])
    elif mode is not None:
        text = "ascend_config: the simulator has no precision_mode %r, it has %s"
        log.logger(__name__).warning(text, mode, ", ".join(PRECISION_MODES))


class AscendStream(Stream):
    """A queue of the device. Tasks run when they are given, so nothing is ever left in it."""

    _ids = itertools.count()

    def __init__(self) -> None:
        self.stream_id = next(self._ids)


class AscendSimBackend(Backend):
    """An Ascend device whose arithmetic, layouts and overflow status are simulated on the host."""

    name = "ascend-sim"
    own_memory = True

    def __init__(self) -> None:
        self._default = AscendStream()
        follow_context(config.get("ascend_config"))
        config.on_change("ascend_config", follow_context)

    @functools.cached_property
    def simulated(self) -> Device:
        """The device, made at the first use: not before are options of the environment checked."""
        from mycelia_backend_ascend_sim import chip
        from mycelia_backend_ascend_sim.tasks import Device

        return Device(chip.load(options.present().chip).memory_bytes)

    def kernels(self):
        from mycelia_backend_ascend_sim import kernels

        return kernels.table(self.simulated)

    def supports(self, op, types, attrs):
        from mycelia_backend_ascend_sim import kernels

        return kernels.supports(op, types, attrs)

    def passes(self, frozen: Collection[int]) -> Sequence[Pass]:
        from mycelia_backend_ascend_sim import fusion

        return fusion.passes()

    def launch(self, function, inputs: Sequence[Buffer | None], outputs: Sequence[Buffer]) -> None:
        stream: Any = self.current_stream()
        self.simulated.launch(function, inputs, outputs, stream.stream_id)

    # ---- its memory

    def allocate(self, size):
        with self.simulated.lock:
            return self.simulated.memory.allocate(size)

    def free(self, address, size):
        with self.simulated.lock:
            self.simulated.memory.free(address)

    def copy_from_host(self, address, source):
        with self.simulated.lock:
            content = np.frombuffer(source, np.uint8)
            np.copyto(self.simulated.memory.to_write(address, content.size), content)

    def copy_to_host(self, target, address):
        with self.simulated.lock:
            np.frombuffer(target, np.uint8)[:] = self.simulated.memory.read(address, len(target))

    def copy(self, target, source, size):
        with self.simulated.lock:
            content = self.simulated.memory.read(source, size)
            np.copyto(self.simulated.memory.to_write(target, size), content)

    def contents(self, buffer):
        with self.simulated.lock:
            memory = self.simulated.memory
            found = memory.formatted(buffer.address, buffer.shape, buffer.nbytes)
            if found is not None:
                return found.format, found.data
            plain = memory.read(buffer.address, buffer.nbytes).copy()
            return "DefaultFormat", plain.view(buffer.dtype.np).reshape(buffer.shape)

    # ---- what it tells of its work

    @property
    def saturates(self):
        return options.present().overflow_mode == options.SATURATION

    def last_task(self):
        task = self.simulated.last
        return None if task is None else TaskInfo(task.task_id, task.stream_id, task.status)

    def read_overflow(self, clear):
        status = self.simulated.overflow
        word, records = status.read_and_clear() if clear else status.read()
        return word, [record.as_dict() for record in records]

    # ---- its work in order

    def stream(self, priority=0):
        return AscendStream()

    def default_stream(self):
        return self._default


def device() -> Device:
    """The simulated device of this process. Errors: RuntimeError if no plugin brings it."""
    from mycelia.backends import registry

    backend = registry.available().get(AscendSimBackend.name)
    if not isinstance(backend, AscendSimBackend):
        raise RuntimeError("the backend 'ascend-sim' is not among the plugins of mycelia")
    return backend.simulated
