"""Checks against a reference run: what CANN's guide asks for before precision is tuned (ref)."""

from __future__ import annotations

from typing import Any

from mycelia.train.checks.facts import Facts
from mycelia.train.checks.results import FOUND, NEEDS_YOU, NOT_FOUND, Said, check

_MOMENTS = {"mean": "mean", "std": "deviation"}
_NONE = NEEDS_YOU, "give the report of the reference run: --reference"


@check("ref.01", "the reference is stable over repeats")
def stable(facts: Facts, reference: Any) -> Said:
    if reference is None:
        return _NONE
    count = min(len(facts.losses), len(reference["losses"]))
    first = next((i for i in range(count) if facts.losses[i] != reference["losses"][i]), None)
    if first is None:
        return NOT_FOUND, f"the losses of {count} steps are equal to the last bit"
    a, b = facts.losses[first], reference["losses"][first]
    return FOUND, f"step {first + 1} has the loss {a:.9g}, the reference {b:.9g}"


@check("ref.02", "data processing as in the reference")
def processing(facts: Facts, reference: Any) -> Said:
    if reference is None:
        return _NONE
    own = facts.summary()
    if own["columns"] != reference["columns"]:
        return FOUND, f"columns are {own['columns']}, in the reference {reference['columns']}"
    pairs = (f"{name} {own[key]:.4g} and {reference[key]:.4g}" for key, name in _MOMENTS.items())
    said = ", ".join(pairs)
    scale = max(abs(reference["std"]), 1e-9)
    apart = max(abs(own[k] - reference[k]) for k in _MOMENTS) > 0.1 * scale
    return (FOUND if apart else NOT_FOUND), said


@check("ref.03", "shards as in the reference")
def shards(facts: Facts, reference: Any) -> Said:
    if reference is None:
        return _NONE
    own, theirs = set(facts.row_marks()), set(reference["rows"])
    share = len(own & theirs) / max(1, len(own))
    return (
        NOT_FOUND if share > 0.5 else FOUND
    ), f"{100 * share:.0f} % of the first rows are the reference's, too"


@check("ref.04", "hyper-parameters as in the reference")
def same_hyper_parameters(facts: Facts, reference: Any) -> Said:
    if reference is None:
        return _NONE
    own, theirs = facts.hyper_parameters(), reference["hyper_parameters"]
    other = [f"{k} is {own.get(k)}, not {theirs.get(k)}" for k in own if own.get(k) != theirs.get(k)]
    return (FOUND if other else NOT_FOUND), "; ".join(other) or f"{len(own)} of them are equal"
