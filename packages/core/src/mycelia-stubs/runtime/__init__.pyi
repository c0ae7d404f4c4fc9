# Written by tools/gen_stubs.py.
from mycelia.engine.runtime.memory import (
    MemPool as MemPool, PluggableAllocator as PluggableAllocator, empty_cache as empty_cache,
    max_memory_allocated as max_memory_allocated, max_memory_reserved as max_memory_reserved,
    memory_allocated as memory_allocated, memory_replay as memory_replay,
    memory_reserved as memory_reserved, memory_stats as memory_stats, memory_summary as memory_summary,
    reset_max_memory_allocated as reset_max_memory_allocated,
    reset_max_memory_reserved as reset_max_memory_reserved,
    reset_peak_memory_stats as reset_peak_memory_stats, use_mem_pool as use_mem_pool,
)
from mycelia.engine.runtime.stream import (
    Event as Event, Stream as Stream, StreamCtx as StreamCtx, StreamLimitCtx as StreamLimitCtx,
    communication_stream as communication_stream, current_stream as current_stream,
    default_stream as default_stream, get_device_limit as get_device_limit,
    get_stream_limit as get_stream_limit, reset_stream_limit as reset_stream_limit,
    set_cur_stream as set_cur_stream, synchronize as synchronize,
)
from mycelia.engine.runtime.threads import (
    dispatch_threads_num as dispatch_threads_num, launch_blocking as launch_blocking,
)

__all__ = [
    "Event", "MemPool", "PluggableAllocator", "Stream", "StreamCtx", "StreamLimitCtx",
    "communication_stream", "current_stream", "default_stream", "dispatch_threads_num", "empty_cache",
    "get_device_limit", "get_stream_limit", "launch_blocking", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_replay", "memory_reserved", "memory_stats",
    "memory_summary", "reset_max_memory_allocated", "reset_max_memory_reserved", "reset_peak_memory_stats",
    "reset_stream_limit", "set_cpu_affinity", "set_cur_stream", "set_device_limit",
    "set_kernel_launch_capture", "set_kernel_launch_group", "set_memory", "set_stream_limit", "synchronize",
    "use_mem_pool",
]


def set_cpu_affinity(enable_affinity, affinity_cpu_list=None, module_to_cpu_dict=None, bind_file=None) -> None:
    """Bind this process to CPUs: those of `affinity_cpu_list`, texts such as "0-3", by default all."""

def set_device_limit(device: int, cube_num: int = -1, vector_num: int = -1) -> None:
    """Limit the cores of a device: only Ascend has cube and vector cores, so nothing changes on the CPU."""

def set_kernel_launch_capture(enable_capture_graph: bool, op_capture_skip: list[str] | None = None) -> None:
    """Capture a device's kernel launches to replay them: compiled programs of the CPU are lists of calls already. Errors: TypeError unless a bool and a list."""

def set_kernel_launch_group(thread_num: int = 2, kernel_group_num: int = 8) -> None:
    """Launch a device's kernels in groups, from several threads: on the CPU calls run where they are made."""

def set_memory(init_size: str = '2GB', increase_size: str = '2GB', max_size: str = '1024GB', optimize_level: str = 'O0', huge_page_reserve_size: str = '0GB') -> None:
    """Limit the memory of tensors to `max_size`. It is taken from the system as it is needed: the other sizes, of a device's pool, have no effect, as a warning says."""

def set_stream_limit(stream, cube_num: int = -1, vector_num: int = -1) -> None:
    """Limit the cores of a stream: nothing changes on the CPU."""
