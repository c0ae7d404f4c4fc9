"""`ms.context`: the settings under the name that MindSpore scripts import."""

from __future__ import annotations

from mycelia.engine.base.config import (
    COMPATIBLE,
    DEBUG,
    GRAPH_MODE,
    LAX,
    PYNATIVE_MODE,
    RELEASE,
    STRICT,
    get_context,
    set_context,
)
from mycelia.engine.base.parallel_settings import (
    ParallelMode,
    get_auto_parallel_context,
    get_ps_context,
    reset_auto_parallel_context,
    reset_ps_context,
    set_auto_parallel_context,
    set_ps_context,
)

__all__ = [
    "COMPATIBLE", "DEBUG", "GRAPH_MODE", "LAX", "PYNATIVE_MODE", "ParallelMode", "RELEASE", "STRICT",
    "get_auto_parallel_context", "get_context", "get_ps_context", "reset_auto_parallel_context",
    "reset_ps_context", "set_auto_parallel_context", "set_context", "set_ps_context",
]  # fmt: skip
