"""Names of a package that are imported when they are used."""

from __future__ import annotations

import importlib
from collections.abc import Callable


def lazy(module: str, names: dict, places: dict[str, str]) -> tuple[Callable, Callable]:
    """`__getattr__` and `__dir__` (PEP 562) of `module`, whose globals are `names`.

    places: name -> "module" or "module:member".
    """

    def get(name: str):
        place = places.get(name)
        if place is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        path, _, member = place.partition(":")
        value = importlib.import_module(path)
        names[name] = getattr(value, member) if member else value
        return names[name]

    return get, lambda: sorted({*names, *places})
