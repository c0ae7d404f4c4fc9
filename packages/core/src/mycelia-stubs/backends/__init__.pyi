# Written by tools/gen_stubs.py.
from mycelia.engine.backends.base import (
    Backend as Backend, Buffer as Buffer, Event as Event, MemoryStatistics as MemoryStatistics,
    Pass as Pass, Stream as Stream, TaskInfo as TaskInfo, include_dir as include_dir,
)

__all__ = [
    "Backend", "Buffer", "Event", "MemoryStatistics", "Pass", "Stream", "TaskInfo", "include_dir",
]
