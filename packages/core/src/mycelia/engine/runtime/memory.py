"""What the memory of the device target holds: bytes in tensors, bytes for the next ones, the peaks of both.

The numbers are of this process and of all its tensors there, in bytes; on the host rounded up to the
allocator's size classes.
"""

from __future__ import annotations

import ctypes
import re

from mycelia.engine.backends import Backend, registry
from mycelia.engine.base import config, errors, ignored


class Meter:
    """The figures of one backend, by default the present target's, under the names of the functions below."""

    def __init__(self, backend: Backend | None = None):
        self.backend = registry.target().backend if backend is None else backend

    def memory_allocated(self) -> int:
        return self.backend.memory_statistics().allocated

    def memory_reserved(self) -> int:
        return self.backend.memory_statistics().reserved

    def max_memory_allocated(self) -> int:
        return self.backend.memory_statistics().peak_allocated

    def max_memory_reserved(self) -> int:
        return self.backend.memory_statistics().peak_reserved

    def reset_max_memory_allocated(self) -> None:
        self.backend.reset_peaks(True, False)

    def reset_max_memory_reserved(self) -> None:
        self.backend.reset_peaks(False, True)

    def reset_peak_memory_stats(self) -> None:
        self.backend.reset_peaks(True, True)

    def memory_stats(self) -> dict:
        found = self.backend.memory_statistics()
        pools = {
            "common_mem_pool_stats": {"block_unit_size": 0, "block_counts": 0, "blocks_info": {}},
            "persistent_mem_pool_stats": {"block_counts": 0, "block_unit_size": 0, "blocks_info": {}},
        }  # memory is not cut from large blocks here
        return {
            "total_reserved_memory": found.reserved,
            "total_allocated_memory": found.allocated,
            "total_idle_memory": found.reserved - found.allocated,
            "total_eager_free_memory": 0,
            "max_reserved_memory": found.peak_reserved,
            "max_allocated_memory": found.peak_allocated,
            **pools,
        }

    def memory_summary(self) -> str:
        stats = self.memory_stats()
        rows = [
            ("Reserved memory", "total_reserved_memory"),
            ("Allocated memory", "total_allocated_memory"),
            ("Idle memory", "total_idle_memory"),
            ("Eager free memory", "total_eager_free_memory"),
            ("Max reserved memory", "max_reserved_memory"),
            ("Max allocated memory", "max_allocated_memory"),
        ]
        double, single = "|" + "=" * 45 + "|", "|" + "-" * 45 + "|"
        lines = [double, f"|{'Memory summary':^45}|", double, f"| {'Metric':<21}| {'Data':<21}|"]
        for name, key in rows:
            lines += [single, f"| {name:<21}|{_amount(stats[key]):>15}      |"]
        return "\n".join([*lines, double])


def memory_allocated() -> int:
    """Bytes that tensors hold."""
    return Meter().memory_allocated()


def memory_reserved() -> int:
    """Bytes that tensors hold, and those kept for the next ones."""
    return Meter().memory_reserved()


def max_memory_allocated() -> int:
    """The most bytes that tensors have held at once."""
    return Meter().max_memory_allocated()


def max_memory_reserved() -> int:
    """The most bytes that were taken from the system or the device at once."""
    return Meter().max_memory_reserved()


def reset_max_memory_allocated() -> None:
    """`max_memory_allocated` starts anew from what tensors hold now."""
    Meter().reset_max_memory_allocated()


def reset_max_memory_reserved() -> None:
    """`max_memory_reserved` starts anew from what is reserved now."""
    Meter().reset_max_memory_reserved()


def reset_peak_memory_stats() -> None:
    """Both peaks start anew."""
    Meter().reset_peak_memory_stats()


def empty_cache() -> None:
    """Give memory that no tensor holds back to the system, or to the device."""
    registry.target().backend.empty_cache()


def memory_stats() -> dict:
    """All numbers in one dict, under MindSpore's names, in bytes."""
    return Meter().memory_stats()


def memory_summary() -> str:
    """The numbers of `memory_stats` as a table, in B, KB, MB or GB, units of 1024, rounded down."""
    return Meter().memory_summary()


def _amount(size: int) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if size < 10 * 1024 or unit == "GB":
            return f"{size} {unit}"
        size //= 1024
    raise AssertionError


_SIZE = re.compile(r"\s*\d+(\.\d+)?\s*GB\s*", re.IGNORECASE)


@ignored.arguments(
    init_size="memory is taken as it is needed",
    huge_page_reserve_size="large blocks ask for huge pages anyway",
)
def set_memory(
    init_size: str = "2GB",
    increase_size: str = "2GB",
    max_size: str = "1024GB",
    optimize_level: str = "O0",
    huge_page_reserve_size: str = "0GB",
) -> None:
    """Limit the memory of tensors to `max_size`. It is taken from the system as it is needed: the other
    sizes, of a device's pool, have no effect, as a warning says.

    Errors: TypeError unless texts, ValueError unless sizes such as "2GB" and a level "O0" or "O1".
    """
    sizes = {
        "init_size": init_size, "increase_size": increase_size, "max_size": max_size,
        "huge_page_reserve_size": huge_page_reserve_size,
    }  # fmt: skip
    for name, value in {**sizes, "optimize_level": optimize_level}.items():
        if not isinstance(value, str):
            raise errors.type_error("set_memory", f"{name} must be a str, but got {type(value).__name__}")
    for name, value in sizes.items():
        if not _SIZE.fullmatch(value):
            raise errors.value_error("set_memory", f"{name} must be a size such as '2GB', but got {value!r}")
    more = {} if increase_size == "2GB" else {"mempool_block_size": increase_size}
    config.set_context(max_device_memory=max_size, memory_optimize_level=optimize_level, **more)


def memory_replay(file_path: str) -> None:
    """Replay a trace of a device's memory pool: RuntimeError, only Ascend writes such traces."""
    raise errors.error(
        errors.MyceliaRuntimeError, "memory_replay",
        f"{file_path!r} is a trace of a memory pool on Ascend",
        hint="run it with a backend for Ascend",
    )  # fmt: skip


class PluggableAllocator:
    """Functions of a shared library that allocate and free memory.  Errors: OSError, AttributeError."""

    def __init__(self, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str):
        library = ctypes.CDLL(path_to_so_file)
        self._library = library
        self._alloc, self._free = getattr(library, alloc_fn_name), getattr(library, free_fn_name)

    def alloc_fn_ptr(self) -> int:
        """The address of the function that allocates."""
        return ctypes.cast(self._alloc, ctypes.c_void_p).value or 0

    def free_fn_ptr(self) -> int:
        """The address of the function that frees."""
        return ctypes.cast(self._free, ctypes.c_void_p).value or 0


class MemPool:
    """Device memory from a user's allocator: RuntimeError, no backend here has memory of its own."""

    def __init__(self, allocator: PluggableAllocator):
        raise errors.error(
            errors.MyceliaRuntimeError, "MemPool",
            "the CPU's memory has no pool that an allocator could serve",
            hint="run it with a backend for Ascend",
        )  # fmt: skip


def use_mem_pool(pool: MemPool):
    """Allocate from `pool` within a `with` block.  Errors: TypeError unless a MemPool."""
    raise errors.type_error("use_mem_pool", f"pool must be a MemPool, but got {type(pool).__name__}")
