"""The check for values that are not finite while a program runs: what the setting `check_overflow` switches
on.

Compiled functions are measured instruction by instruction, eager operators of the thread that switched it on
by an observer. The first operator of each run is told, once by a warning; those who listen get all.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycelia.engine.base import config, log
from mycelia.engine.compile import measuring
from mycelia.engine.observing import Observer, Operator, Run, watch_calls
from mycelia.engine.observing.eager import EagerCalls
from mycelia.engine.ops.define import find
from mycelia.engine.tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Overflow:
    """An output with elements that are not finite: how many are NaN, -inf and inf. `born`: whether all that
    the operator read was finite; None in a compiled function, which does not tell.
    """

    operator: Operator
    slot: int
    nan: int
    negative_inf: int
    positive_inf: int
    born: bool | None = None

    @property
    def count(self) -> int:
        return self.nan + self.negative_inf + self.positive_inf

    @property
    def source(self) -> list[str]:
        """``file:line code`` of the user's lines, the innermost first."""
        return [
            f"{file}:{line} {linecache.getline(file, line).strip()}" for file, line, _ in self.operator.stack
        ]

    def __str__(self) -> str:
        counts = (self.nan, "NaN"), (self.negative_inf, "-inf"), (self.positive_inf, "inf")
        what = ", ".join(f"{count} {name}" for count, name in counts if count)
        where = f" at {self.source[0]}" if self.operator.stack else ""
        parts = [_with_line(part) for part in self.operator.parts]
        made_of = f"; it is made of {', '.join(parts)}" if parts else ""
        return f"{self.operator.name}, output {self.slot}: {what}{where}{made_of}"


def _with_line(operator: Operator) -> str:
    lines = [f" at {file}:{line}" for file, line, _ in operator.stack[:1]]
    return operator.name + "".join(lines)


def overflows(measured: measuring.Measured) -> list[Overflow]:
    """All outputs of a run that are not finite, in order of execution."""
    counts = measured.nonfinite
    found = []
    for row in np.flatnonzero(counts.any(axis=1)):
        operator, slot = measured.rows[row]
        found.append(Overflow(operator, slot, *(int(n) for n in counts[row])))
    return found


class Check:
    """While it is on, `told` is called with the overflows of each run, or eager operator, that has some."""

    def __init__(self, told: Callable[[list[Overflow]], None]) -> None:
        self.told = told
        self.stack = ExitStack()

    def start(self, calls: EagerCalls | None = None) -> None:
        """From here on. `calls`: eager calls that are watched already, of which it is told, too."""
        self.stack.enter_context(measuring.measuring(self.report, measuring.FINITE))
        if calls is None:
            self.stack.enter_context(watch_calls(_Eager(self.told)))
        else:
            observer = _Eager(self.told)
            calls.add(observer)
            self.stack.callback(calls.remove, observer)

    def stop(self) -> None:
        self.stack.close()

    def report(self, measured: measuring.Measured) -> None:
        if not measured.is_finite:
            self.told(overflows(measured))


class _Eager(Observer):
    """Looks at the outputs of eager operators, and at the inputs of those that are not finite."""

    def __init__(self, told: Callable[[list[Overflow]], None]) -> None:
        self.told = told
        self.counts = find("nonfinite_counts")

    def seen(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> None:
        rows = [(slot, row) for slot, row in enumerate(map(self.look, outputs)) if any(row)]
        if rows:
            born = not any(any(self.look(t)) for t in inputs if t is not None)
            self.told([Overflow(operator, slot, *row, born) for slot, row in rows])

    def look(self, tensor: Tensor) -> tuple[int, ...]:
        if not (tensor.dtype.is_floating or tensor.dtype.is_complex):
            return ()
        return tuple(int(n) for n in self.counts._execute((tensor,), ()).asnumpy())


class _Setting:
    """The check that the setting switches on, and the operators that were told of."""

    check: Check | None = None
    told: set[tuple] = set()

    @classmethod
    def follow(cls, on: Any) -> None:
        if on and cls.check is None:
            cls.told = set()
            cls.check = Check(cls.warn)
            cls.check.start()
        elif not on and cls.check is not None:
            check, cls.check = cls.check, None
            check.stop()

    @classmethod
    def warn(cls, found: list[Overflow]) -> None:
        first = found[0]
        key = first.operator.type, first.operator.stack[:1], first.slot
        if key in cls.told or first.born is False:
            return
        cls.told.add(key)
        more = f"; {len(found) - 1} more outputs in this run" if len(found) > 1 else ""
        log.logger(__name__).warning("not finite: %s%s", first, more)


config.on_change("check_overflow", _Setting.follow)
