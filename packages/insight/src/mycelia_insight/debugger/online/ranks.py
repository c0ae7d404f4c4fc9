"""Tensors that all ranks should share, compared step by step as each rank tells what it has."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycelia.debug.conditions import NO_RANKS, Around, check, condition

_log = logging.getLogger(__name__)
_MOST_STEPS = 1000  # that wait for a rank
_MOST_BYTES = 1 << 30  # of elements that do
_CONDITION = condition("rank_mismatch")
_BOUND = "max_difference_gt"

#: number of the watchpoint, full name, slot
Key = tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class _Value:
    """What a rank has. `array`: None where digests alone are compared."""

    graph: str
    bound: float
    digest: bytes
    error_code: int
    array: np.ndarray | None


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A tensor of a rank that others have otherwise, or that cannot be compared (`error_code`).

    `actual`: the bound's name -> the greatest difference, where elements were compared.
    """

    number: int
    graph: str
    name: str
    slot: int
    error_code: int
    actual: dict[str, float]
    reason: str


class RankComparison:
    """All calls may come from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[int, dict[Key, dict[int, _Value]]] = {}  # of steps that wait for a rank
        self._found: dict[int, dict[int, dict[Key, Mismatch]]] = {}  # step -> rank

    def forget(self) -> None:
        """Other trainings run."""
        with self._lock:
            self._values.clear()
            self._found.clear()

    def of(self, step: int, rank: int) -> list[Mismatch]:
        """What was found of a rank in a step."""
        with self._lock:
            return list(self._found.get(step, {}).get(rank, {}).values())

    def take(
        self, rank: int, told: Iterable[tuple[Any, np.ndarray | None]], present: Collection[int], first: int
    ) -> int:
        """What a rank has after a step; the step if something is found, else 0.

        `present`: the ranks that run; `first`: the first step that can still be looked at.
        Errors: ValueError for what is no such message.
        """
        given = list(told)
        steps = {message.step for message, _ in given}
        if not given:
            return 0
        if len(steps) > 1 or not all(m.tensor.slot.isdecimal() and m.bound >= 0 for m, _ in given):
            raise ValueError("values of ranks are of one step, with numbers as slots and bounds from 0 on")
        (step,) = steps
        with self._lock:
            if step not in self._values:
                self._values[step], self._found[step] = {}, {}
            known = self._values[step]
            for message, array in given:
                key = message.id, message.tensor.node_name, int(message.tensor.slot)
                known.setdefault(key, {})[rank] = _Value(
                    message.tensor.graph_name, message.bound, message.digest, message.error_code, array
                )
                for one, found in _compared(key, known[key], present):
                    self._found[step].setdefault(one, {})[key] = found
            if all(set(present) <= values.keys() for values in known.values()):
                del self._values[step]
            self._drop(first)
            return step if self._found.get(step) else 0

    def _drop(self, first: int) -> None:
        for step in [s for s in self._found if s < first and s not in self._values]:
            del self._found[step]
        while len(self._values) > _MOST_STEPS or _bytes(self._values.values()) > _MOST_BYTES:
            step = min(self._values)
            _log.warning("step %d is compared no more: a rank is too far behind", step)
            del self._values[step]


def _bytes(steps: Iterable[Mapping[Key, Mapping[int, _Value]]]) -> int:
    ranks = [value for step in steps for values in step.values() for value in values.values()]
    return sum(value.array.nbytes for value in ranks if value.array is not None)


def _compared(
    key: Key, values: Mapping[int, _Value], present: Collection[int]
) -> Iterator[tuple[int, Mismatch]]:
    """(rank, what is found of it)."""
    error = 0
    for value in values.values():
        error |= value.error_code
    if len(values) == 1 and len(present) < 2:
        error |= NO_RANKS
    for rank, mine in values.items():
        actual: dict[str, float] = {}
        apart = []
        for other, theirs in () if error else values.items():
            if mine.array is None or theirs.array is None:
                is_apart = mine.digest != theirs.digest
            else:
                hit = check(_CONDITION, {_BOUND: mine.bound}, mine.array, Around(others=[theirs.array]))
                is_apart = hit.hit
                if is_apart:
                    actual[_BOUND] = max(hit.parameters[0].actual, actual.get(_BOUND, 0.0))
            apart += [other] if is_apart else []
        if apart or error:
            ranks = f"rank {apart[0]}" if len(apart) == 1 else f"ranks {', '.join(map(str, sorted(apart)))}"
            reason = f"after the step it is another than that of {ranks}" if apart else ""
            yield rank, Mismatch(key[0], mine.graph, key[1], key[2], error, actual, reason)
