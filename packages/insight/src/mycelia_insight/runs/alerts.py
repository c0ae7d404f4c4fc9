"""Alerts: rules on scalars that the service keeps, and the runs that meet them.

A rule is `TAG > 10`, `TAG < 0.1 and > 0.01`, `TAG > 10 or < 0`, or `TAG not finite`; in TAG a `*` stands for
anything. Patterns are no regular expressions, which could keep the service busy for as long as they like.
"""

from __future__ import annotations

import hashlib
import math
import re
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from mycelia_insight.runs import kept
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.run import Run, Tag

_RULE = re.compile(
    r"(?P<tag>\S.*?)\s+(?:not\s+finite|(?P<first>[<>])\s*(?P<limit>\S+)"
    r"(?:\s+(?P<joined>and|or)\s+(?P<second>[<>])\s*(?P<other>\S+))?)"
)
_MOST, _LONGEST = 100, 500  # alerts of a base folder; characters of a rule
_CACHED = 100_000  # answers that are kept until there is more of the tag


class WrongAlert(ValueError):
    """A rule that cannot be, or one too many."""


@dataclass(frozen=True)
class Alert:
    """rule: as above.  runs: what their paths have in them, `*` for anything, "" for all."""

    rule: str
    runs: str = ""

    @property
    def id(self) -> str:
        return hashlib.sha256(f"{self.runs}\n{self.rule}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Hit:
    """Points of a tag that meet a rule: how many, the first one, with seconds since 1970, and the last."""

    run: str
    tag: str
    points: int
    first_step: int
    first_time: float
    first_value: float
    last_step: int


class Alerts:
    """The alerts of a base folder, in the workspace, and what they tell."""

    def __init__(self, workspace: str, base: str):
        self._base, self._path = base, kept.place_of(workspace, "alerts", base)
        self._lock = threading.Lock()
        self._answers: dict[tuple[str, str, str], tuple[tuple, Hit | None]] = {}

    def all(self) -> list[Alert]:
        """Those that are kept, in the order in which they came."""
        try:
            listed = kept.read(self._path)["alerts"]
            return [checked(one["rule"], one["runs"]) for one in listed][:_MOST]
        except (OSError, ValueError, TypeError, KeyError):
            return []

    def add(self, rule: object, runs: object = "") -> Alert:
        """Keep one; the same one is kept once.  Errors: WrongAlert; OSError of the workspace."""
        alert = checked(rule, runs)
        with self._lock:
            known = self.all()
            if alert not in known:
                if len(known) >= _MOST:
                    raise WrongAlert(f"there are {_MOST} alerts already, which is as many as are kept")
                self._write([*known, alert])
        return alert

    def remove(self, id: str) -> bool:
        """Take one away; whether it was there.  Errors: OSError of the workspace."""
        with self._lock:
            known = self.all()
            rest = [one for one in known if one.id != id]
            if len(rest) < len(known):
                self._write(rest)
            return len(rest) < len(known)

    def hits(self, alert: Alert, runs: list[Run]) -> list[Hit]:
        """Tags of runs with points that meet it."""
        found = []
        meets, wants, concerns = (
            condition_of(alert.rule),
            _wanted(tag_of(alert.rule), whole=True),
            _wanted(alert.runs),
        )
        for run in runs:
            if not concerns(run.id):
                continue
            for tag in run.tags():
                if tag.kind != Kind.SCALAR or not wants(tag.name):
                    continue
                hit = self._hit(alert, meets, run, tag)
                if hit is not None:
                    found.append(hit)
        return found

    def _hit(self, alert: Alert, meets: Callable[[np.ndarray], np.ndarray], run: Run, tag: Tag) -> Hit | None:
        key, state = (alert.rule, run.id, tag.name), (tag.count, tag.last_step, tag.last_time, tag.last_value)
        known = self._answers.get(key)
        if known is not None and repr(known[0]) == repr(state):  # NaN is NaN here
            return known[1]
        points = run.points(tag.name)
        at = np.flatnonzero(meets(points.values)) if points is not None else ()
        hit = None
        if points is not None and len(at):
            first, last = at[0], at[-1]
            hit = Hit(
                run.id, tag.name, len(at), int(points.steps[first]), float(points.times[first]),
                float(points.values[first]), int(points.steps[last]),
            )  # fmt: skip
        if len(self._answers) >= _CACHED:
            self._answers.clear()
        self._answers[key] = state, hit
        return hit

    def _write(self, alerts: list[Alert]) -> None:
        kept.write(self._path, {"folder": self._base, "alerts": [asdict(one) for one in alerts]})


def checked(rule: object, runs: object = "") -> Alert:
    """An alert, its spaces put right.  Errors: WrongAlert names what is wrong."""
    if not isinstance(rule, str) or not isinstance(runs, str):
        raise WrongAlert(f"'rule' and 'runs' must be texts, got {rule!r:.80} and {runs!r:.80}")
    if len(rule) > _LONGEST or len(runs) > _LONGEST:
        raise WrongAlert(f"'rule' and 'runs' may have at most {_LONGEST} characters")
    rule, runs = " ".join(rule.split()), runs.strip()
    condition_of(rule)
    return Alert(rule, runs)


def tag_of(rule: str) -> str:
    """The tag of a rule, with its `*`."""
    return _parts(rule)["tag"]


def condition_of(rule: str) -> Callable[[np.ndarray], np.ndarray]:
    """Which values of an array meet a rule.  Errors: WrongAlert: it cannot be read, or none or all would."""
    parts = _parts(rule)
    if parts["first"] is None:
        return lambda values: ~np.isfinite(values)
    first = parts["first"], _limit(parts["limit"])
    if parts["second"] is None:
        return lambda values: _meets(values, *first)
    second, is_and = (parts["second"], _limit(parts["other"])), parts["joined"] == "and"
    if first[0] == second[0]:
        raise WrongAlert(f"both conditions of {rule!r} have the same sign: one of them says all")
    above, below = (first[1], second[1]) if first[0] == ">" else (second[1], first[1])
    if is_and and above >= below:
        raise WrongAlert(f"no value can meet both conditions of {rule!r}")
    if not is_and and above < below:
        raise WrongAlert(f"every value meets one of the conditions of {rule!r}")
    join = np.logical_and if is_and else np.logical_or
    return lambda values: join(_meets(values, *first), _meets(values, *second))


def _parts(rule: str) -> dict[str, str]:
    found = _RULE.fullmatch(rule)
    if found is None:
        raise WrongAlert(
            "a rule is 'TAG > NUMBER', two conditions joined by 'and' or 'or', or 'TAG not finite', "
            f"got {rule!r:.150}"
        )
    return found.groupdict()


def _limit(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise WrongAlert(f"a condition needs a number, got {text!r:.80}")
    return value


def _meets(values: np.ndarray, sign: str, limit: float) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return values > limit if sign == ">" else values < limit


def _wanted(text: str, whole: bool = False) -> Callable[[str], bool]:
    """Whether a name is `text`, `*` standing for anything; unless `whole`, whether it has that in it."""
    parts = (text if whole else f"*{text.lower()}*").split("*")

    def wants(name: str) -> bool:
        name = name if whole else name.lower()
        if len(parts) == 1:
            return name == text
        at, end = len(parts[0]), len(name) - len(parts[-1])
        if at > end or not name.startswith(parts[0]) or not name.endswith(parts[-1]):
            return False
        for part in parts[1:-1]:
            found = name.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True

    return wants
