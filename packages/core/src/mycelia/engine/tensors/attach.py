"""Attaching functions and ops as methods of Tensor; used while the ops are being defined."""

from __future__ import annotations

from collections.abc import Callable

from mycelia.engine import _C


def attach(name: str, function: Callable) -> None:
    """Make `function(tensor, ...)` the method `name` of every Tensor."""
    setattr(_C.Tensor, name, function)
