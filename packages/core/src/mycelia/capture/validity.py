"""Tables of compiled functions that skip all checks, emptied when something they leave unchecked changes: the
training flag or hooks of a Cell, a setting.
"""

from __future__ import annotations

_filled: list[dict] = []


def remember(table: dict) -> None:
    """`table` has entries that hold until something changes."""
    _filled.append(table)


def changed() -> None:
    """Something that compiled functions depend on is not what it was."""
    while _filled:
        _filled.pop().clear()
