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
        if not self.is_good(self.passes, tell):
            raise errors.value_error(
                "bisect", "the run is bad without all of these passes, too: none of them is to blame"
            )
        return minimal(self.passes, lambda off: self.is_good(off, tell))

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


def minimal(names: Sequence[str], is_good: Callable[[Sequence[str]], bool]) -> list[str]:
    """A smallest subset of `names` for which `is_good` holds.

    It must hold for all, not for none, and for whatever contains a set for which it holds.
    For each name that is found the shortest beginning of what is left is searched by halving; the next one
    lies before it. Runs: at most ceil(log2(n)) for each, and one to see whether there is another.
    """
    found: list[str] = []
    left = list(names)
    while left:
        low, high = 0, len(left)  # with left[:high] off all is good, with left[:low] it is not
        while high - low > 1:
            middle = (low + high) // 2
            if is_good([*left[:middle], *found]):
                high = middle
            else:
                low = middle
        found.insert(0, left[high - 1])
        left = left[: high - 1]
        if not left or is_good(found):
            break
    return found
