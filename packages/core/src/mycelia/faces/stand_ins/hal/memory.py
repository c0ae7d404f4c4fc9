"""`mycelia.runtime.memory` with the kind of device as parameter."""

from __future__ import annotations

import functools

from mycelia.engine.runtime import memory
from mycelia.faces.stand_ins.hal.device import require_device


def _of_device(function):
    @functools.wraps(function)
    def asked(device_target=None):
        backend = require_device(f"hal.{function.__name__}", device_target)
        return getattr(memory.Meter(backend), function.__name__)()

    del asked.__wrapped__  # its signature is not the function's
    return asked


max_memory_allocated = _of_device(memory.max_memory_allocated)
max_memory_reserved = _of_device(memory.max_memory_reserved)
memory_allocated = _of_device(memory.memory_allocated)
memory_reserved = _of_device(memory.memory_reserved)
memory_stats = _of_device(memory.memory_stats)
memory_summary = _of_device(memory.memory_summary)
reset_max_memory_allocated = _of_device(memory.reset_max_memory_allocated)
reset_max_memory_reserved = _of_device(memory.reset_max_memory_reserved)
reset_peak_memory_stats = _of_device(memory.reset_peak_memory_stats)
empty_cache = memory.empty_cache
