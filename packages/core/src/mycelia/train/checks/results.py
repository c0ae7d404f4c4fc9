"""What a check says, and the table of checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mycelia.train.checks.facts import Facts

FOUND, NOT_FOUND, NEEDS_YOU = "found", "not found", "needs you"
Said = tuple[str, str]  # the verdict and its evidence


@dataclass(frozen=True, slots=True)
class Result:
    """One check. `evidence`: a sentence with the numbers and names that it rests on."""

    check: str
    title: str
    verdict: str
    evidence: str

    def as_dict(self) -> dict[str, str]:
        """For JSON."""
        return {"check": self.check, "title": self.title, "verdict": self.verdict, "evidence": self.evidence}


#: By number: the title, and what judges facts beside those of a reference, None without one.
CHECKS: dict[str, tuple[str, Callable[[Facts, dict[str, Any] | None], Said]]] = {}

NO_TRAINING = NEEDS_YOU, "the script has no training step, of Model.train or of a loop of its own"


def check(number: str, title: str, trains: bool = True) -> Callable:
    """Registers a function of facts and reference; `trains`: it is about the steps of a training."""

    def register(function: Callable[..., Said]) -> Callable[..., Said]:
        def judge(facts: Facts, reference: dict[str, Any] | None) -> Said:
            seen = (
                facts.train_batches if number[0] == "d" else facts.losses
            )  # data also of a step that failed
            return NO_TRAINING if trains and not seen else function(facts, reference)

        CHECKS[number] = title, judge
        return function

    return register


def examine(facts: Facts, reference: dict[str, Any] | None = None) -> list[Result]:
    """Every check, in order of their numbers. `reference`: `Facts.summary` of the run to compare with."""
    return [Result(n, title, *judge(facts, reference)) for n, (title, judge) in sorted(CHECKS.items())]


def listed(things: list[str], limit: int = 5) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(things) - limit} more" if len(things) > limit else ""
    return ", ".join(things[:limit]) + more
