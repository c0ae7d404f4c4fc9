"""Tables of compiled functions that skip all checks, emptied when something they leave unchecked changes: the
training flag or hooks of a Cell, a setting.
"""

from __future__ import annotations

import weakref


class Table(dict):
    """A dict that goes when its owner goes."""

    __slots__ = ("__weakref__",)


_filled: dict[int, weakref.ref[Table]] = {}


def remember(table: Table) -> None:
    """`table` has entries that hold until something changes."""
    key = id(table)
    _filled[key] = weakref.ref(table, lambda _: _filled.pop(key, None))


def changed() -> None:
    """Something that compiled functions depend on is not what it was."""
    while _filled:
        table = _filled.popitem()[1]()
        if table is not None:
            table.clear()
