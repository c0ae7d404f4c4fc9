"""Functions that stages may give by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mycelia_serving.servable.declaration import Declaration


def argmax(x: np.ndarray) -> np.ndarray:
    """The place of the largest number, counted through all dimensions; an int64 without dimensions."""
    return np.asarray(np.argmax(x), np.int64)


_BUILT_IN: dict[str, Callable] = {"argmax": argmax, "argmax_cpp": argmax}


def named(declaration: Declaration, name: str) -> Callable:
    """The function that an earlier stage used, `name` or `servable.name`, or a built-in one.

    Errors: RuntimeError if there is none.
    """
    plain = name.removeprefix(declaration.name + ".")
    for call, function in declaration.functions.items():
        if function.name == plain:
            return call
    if name not in _BUILT_IN:
        offered = ", ".join(sorted({*_BUILT_IN, *(f.name for f in declaration.functions.values())}))
        raise RuntimeError(f"There is no function named '{name}' for a stage; there are {offered}")
    return _BUILT_IN[name]
