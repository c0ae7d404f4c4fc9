"""What runs ops: memory, streams and events, threads. On the CPU a call returns when its work is done."""

from mycelia.engine.runtime.memory import (
    MemPool,
    PluggableAllocator,
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_replay,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
    reset_peak_memory_stats,
    set_memory,
    use_mem_pool,
)
from mycelia.engine.runtime.stream import (
    Event,
    Stream,
    StreamCtx,
    StreamLimitCtx,
    communication_stream,
    current_stream,
    default_stream,
    get_device_limit,
    get_stream_limit,
    reset_stream_limit,
    set_cur_stream,
    set_device_limit,
    set_stream_limit,
    synchronize,
)
from mycelia.engine.runtime.threads import (
    dispatch_threads_num,
    launch_blocking,
    set_cpu_affinity,
    set_kernel_launch_capture,
    set_kernel_launch_group,
)

__all__ = [
    "Event", "MemPool", "PluggableAllocator", "Stream", "StreamCtx", "StreamLimitCtx", "communication_stream",
    "current_stream", "default_stream", "dispatch_threads_num", "empty_cache", "get_device_limit",
    "get_stream_limit", "launch_blocking", "max_memory_allocated", "max_memory_reserved", "memory_allocated",
    "memory_replay", "memory_reserved", "memory_stats", "memory_summary", "reset_max_memory_allocated",
    "reset_max_memory_reserved", "reset_peak_memory_stats", "reset_stream_limit", "set_cpu_affinity",
    "set_cur_stream", "set_device_limit", "set_kernel_launch_capture", "set_kernel_launch_group",
    "set_memory",
    "set_stream_limit", "synchronize", "use_mem_pool",
]  # fmt: skip
