"""`ops.where(...)` for families that others are built on: names are bound when a rule runs, not before.

Families import one another in one direction. The gradient of a power needs `where`, whose family is built on
powers: it takes the function from here. `ops/__init__` gives all public functions once they are defined.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any


class Functions:
    """The public functions of all families, as attributes."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no family of ops has a public function {name!r}, or not all are loaded yet")


ops = Functions()


def provide(names: Mapping[str, Any]) -> None:
    """The public ones of `names` are attributes of `ops` from now on."""
    for name, value in names.items():
        if not name.startswith("_") and not isinstance(value, ModuleType):
            setattr(ops, name, value)
