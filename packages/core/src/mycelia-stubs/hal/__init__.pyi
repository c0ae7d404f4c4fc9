# Written by tools/gen_stubs.py.
from . import contiguous_tensors_handle as contiguous_tensors_handle, device as device
from mycelia.engine.runtime.memory import empty_cache as empty_cache
from mycelia.engine.runtime.stream import (
    Event as Event, Stream as Stream, StreamCtx as StreamCtx, communication_stream as communication_stream,
    current_stream as current_stream, default_stream as default_stream, set_cur_stream as set_cur_stream,
    synchronize as synchronize,
)
from mycelia.faces.stand_ins.hal.device import (
    device_count as device_count, get_arch_list as get_arch_list,
    get_device_capability as get_device_capability, get_device_name as get_device_name,
    get_device_properties as get_device_properties, is_available as is_available,
    is_initialized as is_initialized,
)

__all__ = [
    "Event", "Stream", "StreamCtx", "communication_stream", "contiguous_tensors_handle", "current_stream",
    "default_stream", "device", "device_count", "empty_cache", "get_arch_list", "get_device_capability",
    "get_device_name", "get_device_properties", "is_available", "is_initialized", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats", "memory_summary",
    "reset_max_memory_allocated", "reset_max_memory_reserved", "reset_peak_memory_stats", "set_cur_stream",
    "synchronize",
]


def max_memory_allocated(device_target=None) -> int:
    """The most bytes that tensors have held at once."""

def max_memory_reserved(device_target=None) -> int:
    """The most bytes that were taken from the system or the device at once."""

def memory_allocated(device_target=None) -> int:
    """Bytes that tensors hold."""

def memory_reserved(device_target=None) -> int:
    """Bytes that tensors hold, and those kept for the next ones."""

def memory_stats(device_target=None) -> dict:
    """All numbers in one dict, under MindSpore's names, in bytes."""

def memory_summary(device_target=None) -> str:
    """The numbers of `memory_stats` as a table, in B, KB, MB or GB, units of 1024, rounded down."""

def reset_max_memory_allocated(device_target=None) -> None:
    """`max_memory_allocated` starts anew from what tensors hold now."""

def reset_max_memory_reserved(device_target=None) -> None:
    """`max_memory_reserved` starts anew from what is reserved now."""

def reset_peak_memory_stats(device_target=None) -> None:
    """Both peaks start anew."""
