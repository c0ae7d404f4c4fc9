# Written by tools/gen_stubs.py.
from mycelia.engine.base.config import get_context as get_context, set_context as set_context
from mycelia.engine.base.parallel_settings import (
    ParallelMode as ParallelMode, get_auto_parallel_context as get_auto_parallel_context,
    get_ps_context as get_ps_context, reset_auto_parallel_context as reset_auto_parallel_context,
    reset_ps_context as reset_ps_context, set_auto_parallel_context as set_auto_parallel_context,
    set_ps_context as set_ps_context,
)

__all__ = [
    "COMPATIBLE", "DEBUG", "GRAPH_MODE", "LAX", "PYNATIVE_MODE", "ParallelMode", "RELEASE", "STRICT",
    "get_auto_parallel_context", "get_context", "get_ps_context", "reset_auto_parallel_context",
    "reset_ps_context", "set_auto_parallel_context", "set_context", "set_ps_context",
]

COMPATIBLE: int
DEBUG: int
GRAPH_MODE: int
LAX: int
PYNATIVE_MODE: int
RELEASE: int
STRICT: int
