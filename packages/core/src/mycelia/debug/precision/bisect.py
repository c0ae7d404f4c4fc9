"""Which passes of the compiler are to blame for a bad number: halving, as delta debugging has it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from mycelia.debug.precision import runs
from mycelia.debug.precision.instructions import first_difference
from mycelia.engine.base import errors


class Metric(NamedTuple):
    """The number `key` of the JSON file `path`; a run is good if it is at least `good`."""

    path: Path
    key: str
    good: float

    @classmethod
    def parse(cls, text: str, good: float) -> Metric:
        """``FILE.json:KEY``.  Errors: ValueError for another form."""
        path, colon, key = text.rpartition(":")
        if not (path and colon and key):
            raise errors.value_error("--metric", f"expected FILE.json:KEY, but got {text!r}")
        return cls(Path(path), key, good)

    def read(self) -> float:
        """Errors: ValueError if the file does not have it."""
        try:
            found = json.loads(self.path.read_bytes())
            for part in self.key.split("."):
                found = found[part]
            return float(found)
        except (OSError, ValueError, TypeError, KeyError, IndexError) as cause:
            raise errors.value_error("--metric", f"{self.path} has no number {self.key}: {cause!r}") from None


class Bisect:
    """Runs `command` with passes switched off until it is known which are guilty.

    `passes`: to choose from, in the order of the pipeline; empty: all that a run used.
    """

    def __init__(self, command: str, metric: Metric, passes: Sequence[str] = ()) -> None:
        self.command, self.metric, self.passes = command, metric, list(passes)
        self.count = 0  # runs

    def run(self, tell: Callable[[str], None] = lambda _: None) -> list[str]:
        """The smallest set of passes without which the run is good; none if it is good with all.

        Errors: ValueError if it is bad even without all of them, or if it does not run.
        """
        if not self.passes:
            self.passes = self.used()
            tell(f"passes: {', '.join(self.passes)}")
        if self.is_good((), tell):
            return []
        found = minimal(self.passes, lambda off: self.is_good(off, tell))
        if found is None:
            raise errors.value_error(
                "bisect", "the run is bad without all of these passes, too: none of them is to blame"
            )
        return found

    def used(self) -> list[str]:
        """The passes that change a graph of the run, by a run of their own."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "passes.json"
            self._start(runs.environment("passes", path))
            try:
                return json.loads(path.read_bytes())
            except (OSError, ValueError):
                raise errors.value_error("--cmd", "the command compiles nothing by Mycelia") from None

    def is_good(self, off: Sequence[str], tell: Callable[[str], None] = lambda _: None) -> bool:
        """Whether the run is good without the passes `off`."""
        self.count += 1
        self.metric.path.unlink(missing_ok=True)  # a number of the run before says nothing
        self._start({**runs.environment("", Path()), "MYCELIA_PASS_OFF": ",".join(off)})
        value = self.metric.read()
        good = value >= self.metric.good
        tell(f"run {self.count}: without {', '.join(off) or 'none'}: {value:g} {'good' if good else 'bad'}")
        return good

    def first_operator(self, guilty: Sequence[str]) -> str | None:
        """The first operator that differs between programs with and without the guilty passes: where other
        passes are off, so that no operator is joined with another; else where they are on.
        """
        others = [name for name in self.passes if name not in guilty]
        return self._difference(others, self.passes) or self._difference((), guilty)

    def _difference(self, off: Sequence[str], reference_off: Sequence[str]) -> str | None:
        with tempfile.TemporaryDirectory() as folder:
            places = [Path(folder) / name for name in ("under test", "reference")]
            for place, names in zip(places, (off, reference_off)):
                variables = runs.environment("program", place)
                self._start({**variables, "MYCELIA_PASS_OFF": ",".join(names)})
            return first_difference(*places)

    def _start(self, variables: dict[str, str]) -> None:
        code = runs.run_command(self.command, variables, quiet=True)
        if code:
            raise errors.value_error("--cmd", f"{self.command!r} ended with status {code}")


def minimal(names: Sequence[str], is_good: Callable[[Sequence[str]], bool]) -> list[str] | None:
    """A smallest subset of `names` for which `is_good` holds; None if it does not hold even for all.

    It must not hold for none, and must hold for whatever contains a set for which it holds. Runs, with
    d = ceil(log2(n)): one guilty name 2 d at most, two 2 d + 1, each further one d + 1. Whoever tells k names
    apart by yes and no needs log2(C(n, k)) questions, so that no way of asking stays within 2 log2(n) + k
    where k is 4 or more.
    """
    search = _Search(names, is_good)
    while (name := search.next()) is not None:
        search.found.insert(0, name)
    return search.found if search.is_proven else None


class _Search:
    """The names found so far, from the last to the first, and `left`, those before them."""

    def __init__(self, names: Sequence[str], is_good: Callable[[Sequence[str]], bool]) -> None:
        self.names, self.left, self.is_good = names, list(names), is_good
        self.found: list[str] = []
        self.is_proven = False  # that it holds for all: something was good
        self.depth = max(len(names) - 1, 0).bit_length()  # questions that pick one of all

    def ask(self, off: Sequence[str]) -> bool:
        good = self.is_good(off)
        self.is_proven = self.is_proven or good
        return good

    def next(self) -> str | None:
        """The last name of the shortest beginning of `left` without which, and without what is found, all is
        good; None if that is the empty one, or if nothing is good.
        """
        low, high = 0, len(self.left)
        if self.found:
            low, high = self.bounds()
        if not high:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if self.ask([*self.left[:middle], *self.found]):
                high = middle
            else:
                low = middle
        name = self.left[high - 1]
        self.left = self.left[: high - 1]
        return name

    def bounds(self) -> tuple[int, int]:
        """(too short, long enough): how much of `left` the beginning has, (0, 0) if there is no further name.

        Whether there is one is asked first where the rest fits into as many questions as the first name took,
        else after beginnings that leave half of that; for a third name, of which no bound speaks, at once.
        """
        high = len(self.left)
        if len(self.found) == 1:
            for budget in range(self.depth - 1, 0, -1):
                if high <= 1 << budget:
                    break
                middle = high - (1 << budget)
                if not self.ask([*self.left[:middle], *self.found]):
                    return middle, high
                high = middle
        if (self.is_proven and not high) or self.ask(self.found) or not high:
            return 0, 0
        if len(self.found) > 1 and not self.is_proven and not self.ask(self.names):
            return 0, 0
        return 0, high
