"""Weights of which each process keeps a part (`Parameter.divided`), where nobody has gathered the whole."""

from __future__ import annotations

from mycelia.engine import _C
from mycelia.engine.base import errors

CLOSED = object()  # what such a weight stands for then, instead of a graph value


def require_open(weight: _C.Tensor) -> None:
    """NotImplementedError for a divided weight that is taken where no Cell has gathered it."""
    if weight.traced is CLOSED:
        raise errors.error(
            errors.NotSupportedError, "optimizer_level='level3'", f"the weight {weight.name!r} is divided "
            "among processes, and taken by code that is not of a Cell that has it, or reads it by its path",
            hint="parameter.parallel_optimizer = False keeps one whole",
        )  # fmt: skip
