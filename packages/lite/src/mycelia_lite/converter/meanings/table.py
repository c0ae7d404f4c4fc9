"""The table of meanings: functions of arrays and attributes, by the operator's name in the file."""

from __future__ import annotations

from collections.abc import Callable

MEANINGS: dict[str, Callable] = {}


def meaning(*names: str) -> Callable:
    """Decorator: operators of these names, in MindSpore Lite's tables or as types of Custom nodes."""

    def enter(function: Callable) -> Callable:
        for name in names:
            MEANINGS[name] = function
        return function

    return enter
