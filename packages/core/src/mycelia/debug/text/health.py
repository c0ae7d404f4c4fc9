"""The command about the health of all outputs, with the levels of detail that TensorFlow's debugger has."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mycelia.debug.analyzer import DebuggerTensor
from mycelia.debug.statistics import Statistics
from mycelia.debug.text.commands import command
from mycelia.debug.text.place import Place
from mycelia.debug.text.screen import Screen
from mycelia.debug.text.tensors import name_of
from mycelia.engine.base import errors

_MOST_ROWS = 200
_MOST_ELEMENTS = 6  # of a value, at each of its ends


class _Seen(NamedTuple):
    """An output of the iteration, with what is known of it."""

    tensor: DebuggerTensor
    found: Statistics | None
    value: np.ndarray | None


def _curt(seen: _Seen) -> tuple[object, ...]:
    return ("?" if seen.found is None else "ok" if seen.found.is_finite else "bad",)


def _concise(seen: _Seen) -> tuple[object, ...]:
    found = seen.found
    return ("?",) * 4 if found is None else (found.count, found.negative_inf, found.positive_inf, found.nan)


def _signs(seen: _Seen) -> tuple[object, ...]:
    found = seen.found
    if found is None:
        return ("?",) * 3
    return found.negative - found.negative_inf, found.zero, found.positive - found.positive_inf


def _shape(seen: _Seen) -> tuple[object, ...]:
    value = seen.value
    return ("?",) * 3 if value is None else (str(value.dtype), value.ndim, str(list(value.shape)))


def _elements(seen: _Seen) -> tuple[object, ...]:
    if seen.value is None:
        return ("?",)
    with np.printoptions(
        precision=4, threshold=2 * _MOST_ELEMENTS, edgeitems=_MOST_ELEMENTS, linewidth=10**6
    ):
        return (str(seen.value.reshape(-1)),)


_COUNTS = ("size", "-inf", "inf", "nan")
#: What a level tells of each output: heads of columns, and their cells.
_LEVELS: dict[str, tuple[tuple[str, ...], tuple[Callable[[_Seen], tuple[object, ...]], ...]]] = {
    "NO_TENSOR": ((), ()),
    "CURT_HEALTH": (("health",), (_curt,)),
    "CONCISE_HEALTH": (_COUNTS, (_concise,)),
    "FULL_HEALTH": (
        ("dtype", "rank", "shape", *_COUNTS, "< 0", "0", "> 0"), (_shape, _concise, _signs),
    ),
    "SHAPE": (("dtype", "rank", "shape"), (_shape,)),
    "FULL_TENSOR": (("dtype", "rank", "shape", "elements"), (_shape, _elements)),
}  # fmt: skip


@command("health", "[LEVEL] [TEXT]", most=2)
def _health(place: Place, screen: Screen, words: list[str]) -> None:
    """What operators made in this iteration, in order of execution, those whose names have TEXT. LEVEL, as in
    TensorFlow's debugger: NO_TENSOR which ran, CURT_HEALTH (else) whether all is finite, CONCISE_HEALTH size
    and counts of -inf, inf and NaN, FULL_HEALTH also types, shapes and signs of finite elements, SHAPE types
    and shapes, FULL_TENSOR these and the first and last elements. `?`: the dump does not tell.
    """
    level = "CURT_HEALTH"
    if words and words[0].upper() in _LEVELS:
        level, words = words[0].upper(), words[1:]
    elif len(words) == 2:
        raise errors.one_of(words[0], list(_LEVELS), subject="health", what="the level")
    text = words[0].lower() if words else ""
    made = [
        tensor
        for node in place.nodes
        if node.kind != "Parameter" and text in node.name.lower()
        for tensor in node.get_output_tensors(iterations=[place.iteration])
    ]
    heads, cells = _LEVELS[level]
    rows, bad = [], []
    for row, tensor in enumerate(made[:_MOST_ROWS]):
        seen = _Seen(tensor, tensor.statistics(), tensor.value()) if cells else _Seen(tensor, None, None)
        rows.append((name_of(tensor), tensor.node.kind, *(cell for make in cells for cell in make(seen))))
        if seen.found is not None and not seen.found.is_finite:
            bad.append(row)
    if not rows:
        screen.line(f"There is no such output in {place.when()}.")
        return
    screen.table((f"{level}, {place.when()}", "type", *heads), rows, bad)
    if len(made) > _MOST_ROWS:
        screen.line(f"... and {len(made) - _MOST_ROWS} more; say a part of the name")
