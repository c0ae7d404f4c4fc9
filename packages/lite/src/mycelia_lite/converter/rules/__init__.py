"""What each op of core becomes in a `.ms` file: `RULES` has a function ``(writer, node)`` by op name."""

from __future__ import annotations

from mycelia_lite.converter.rules import (  # noqa: F401
    control,
    customs,
    elementwise,
    images,
    products,
    reductions,
    runtime,
    shapes,
    training,
)
from mycelia_lite.converter.rules.table import RULES

__all__ = ["RULES"]
