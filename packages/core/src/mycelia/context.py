"""`ms.context`: the settings under the name that MindSpore scripts import."""

from __future__ import annotations

from mycelia.config import (
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

__all__ = [
    "COMPATIBLE",
    "DEBUG",
    "GRAPH_MODE",
    "LAX",
    "PYNATIVE_MODE",
    "RELEASE",
    "STRICT",
    "get_context",
    "set_context",
]
