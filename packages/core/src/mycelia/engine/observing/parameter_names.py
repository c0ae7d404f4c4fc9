"""Names of Parameters that are their own: two networks that nobody put into one Cell may both have an
``fc.weight``.
"""

from __future__ import annotations

import weakref
from collections.abc import Container, Iterable

from mycelia.engine.tensors.tensor import Parameter


def distinct(name: str, taken: Container[str]) -> str:
    """`name`, or with a number where it is taken: behind the last scope, ``fc_1.weight``, so that the kind of
    a Parameter, by which tools know weights, stays at the end.
    """
    scope, dot, kind = name.rpartition(".")
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{scope}_{number}.{kind}" if dot else f"{name}_{number}"
    return found


def all_distinct(names: Iterable[str]) -> list[str]:
    """The names in their order; the first that has one keeps it."""
    names = list(names)
    if len(set(names)) == len(names):
        return names
    found: dict[str, None] = {}
    for name in names:
        found[distinct(name, found.keys() | set(names) if name in found else found)] = None
    return list(found)


class ParameterNames:
    """Gives each Parameter a name that no other one has, as long as both live."""

    def __init__(self) -> None:
        # id -> (the Parameter, its own name, the one that it got)
        self._known: dict[int, tuple[weakref.ref[Parameter], str, str]] = {}
        self._taken: dict[str, int] = {}

    def of(self, parameter: Parameter) -> str:
        key, name = id(parameter), parameter.name
        known = self._known.get(key)
        if known is not None:
            if known[0]() is parameter and known[1] == name:
                return known[2]
            self._forget(key, known[0])
        found = distinct(name, self._taken)
        self._taken[found] = key
        gone = weakref.ref(parameter, lambda ref: self._forget(key, ref))
        self._known[key] = gone, name, found
        return found

    def _forget(self, key: int, reference: weakref.ref[Parameter]) -> None:
        known = self._known.get(key)
        if known is not None and known[0] is reference:  # another one may live at that address by now
            del self._known[key], self._taken[known[2]]
