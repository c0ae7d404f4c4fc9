"""Backends: the contract, the reference backend and the choice of a kernel."""

from mycelia.engine.backends.base import (
    Backend,
    Buffer,
    Event,
    MemoryStatistics,
    Pass,
    Stream,
    TaskInfo,
    include_dir,
)

__all__ = ["Backend", "Buffer", "Event", "MemoryStatistics", "Pass", "Stream", "TaskInfo", "include_dir"]
