# Written by tools/gen_stubs.py.
from mycelia.engine.runtime.memory import empty_cache as empty_cache
from mycelia.faces.stand_ins.hal.device import require_device as require_device
from mycelia.hal import (
    max_memory_allocated as max_memory_allocated, max_memory_reserved as max_memory_reserved,
    memory_allocated as memory_allocated, memory_reserved as memory_reserved, memory_stats as memory_stats,
    memory_summary as memory_summary, reset_max_memory_allocated as reset_max_memory_allocated,
    reset_max_memory_reserved as reset_max_memory_reserved,
    reset_peak_memory_stats as reset_peak_memory_stats,
)

__all__ = [
    "empty_cache", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "memory_stats", "memory_summary", "require_device", "reset_max_memory_allocated",
    "reset_max_memory_reserved", "reset_peak_memory_stats",
]
