"""Devices, and streams and memory by the older names; see `mycelia.runtime`."""

from mycelia.engine.runtime.stream import (
    Event,
    Stream,
    StreamCtx,
    communication_stream,
    current_stream,
    default_stream,
    set_cur_stream,
    synchronize,
)
from mycelia.faces.stand_ins.hal import contiguous_tensors_handle, device
from mycelia.faces.stand_ins.hal.device import (
    device_count,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    is_available,
    is_initialized,
)
from mycelia.faces.stand_ins.hal.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
    reset_peak_memory_stats,
)

__all__ = [
    "Event", "Stream", "StreamCtx", "communication_stream", "contiguous_tensors_handle", "current_stream",
    "default_stream", "device", "device_count", "empty_cache", "get_arch_list", "get_device_capability",
    "get_device_name", "get_device_properties", "is_available", "is_initialized", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats", "memory_summary",
    "reset_max_memory_allocated", "reset_max_memory_reserved", "reset_peak_memory_stats", "set_cur_stream",
    "synchronize",
]  # fmt: skip
