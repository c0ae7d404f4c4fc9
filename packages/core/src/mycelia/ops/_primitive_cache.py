"""Primitives that are made once for the same constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia.ops.primitive import Primitive

_made: dict[tuple, Primitive] = {}


def _get_cache_prim(cls: type[Primitive]) -> Callable[..., Primitive]:
    """A function that makes a primitive of the class, the same one for the same arguments."""

    def make(*args: Any, **kwargs: Any) -> Primitive:
        key = (cls, args, tuple(sorted(kwargs.items())))
        try:
            found = _made.get(key)
        except TypeError:  # a constant that cannot be hashed
            return cls(*args, **kwargs)
        if found is None:
            found = _made[key] = cls(*args, **kwargs)
        return found

    return make
