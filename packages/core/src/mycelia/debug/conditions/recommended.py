"""The watchpoints that are offered when a session begins: numbers as MindSpore's, in one table, which a
setting and whoever asks for them may change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mycelia.debug.conditions.catalogue import ACTIVATION, GRADIENT, LOSS, WEIGHT, Condition, condition
from mycelia.debug.conditions.check import (
    NOTHING_KNOWN,
    is_activation,
    is_gradient,
    is_loss,
    is_shared,
    is_weight,
)
from mycelia.engine.base import config, errors

_TARGETS = {WEIGHT: is_weight, GRADIENT: is_gradient, ACTIVATION: is_activation, LOSS: is_loss}


@dataclass(frozen=True, slots=True)
class Recommended:
    """A watchpoint that is offered. `operator`: the type of operator that it is meant for, "" for all that
    the condition is about.
    """

    condition: Condition
    given: Mapping[str, float]
    operator: str = ""

    @property
    def name(self) -> str:
        """What it is called where its numbers are changed: ``activation_range:tanh``."""
        return f"{self.condition.id}:{self.operator}" if self.operator else self.condition.id

    def suits(self, kind: str, name: str, attributes: Mapping[str, str]) -> bool:
        """Whether it is about a node of this type, full name and attributes."""
        return suits(self.condition, kind, name, self.operator, attributes)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _within(low: float, high: float, **bound: float) -> dict[str, float]:
    return {"range_start_inclusive": low, "range_end_inclusive": high, **bound}


_TABLE: tuple[tuple[str, dict[str, float], str], ...] = (
    ("weight_initialization", {"zero_percentage_ge": 100}, ""),
    ("weight_change_too_large", {"abs_mean_update_ratio_gt": 1}, ""),
    ("gradient_vanishing", {"abs_mean_lt": 1e-9}, ""),
    ("tensor_overflow", {}, ""),
    ("tensor_all_zero", {"zero_percentage_ge": 100}, ""),
    ("activation_range", _within(math.tanh(-8.8), math.tanh(8.8), range_percentage_lt=0.1), "tanh"),
    ("activation_range", _within(_sigmoid(-16.2), _sigmoid(16.2), range_percentage_lt=0.1), "sigmoid"),
    ("activation_range", _within(-1, 0, range_percentage_gt=99.9), "relu"),
)


def recommended(changes: Mapping[str, Mapping[str, float]] | None = None) -> list[Recommended]:
    """All of them, with the numbers of the setting `debugger_recommended`, and with those of `changes`, by
    names of watchpoints and parameters.

    Errors: ValueError for a name that is none, a number out of its range; TypeError for what is no number.
    """
    found = {one.name: one for one in (Recommended(condition(i), given, op) for i, given, op in _TABLE)}
    for told in (parse_changes(config.get("debugger_recommended").replace(",", " ").split()), changes or {}):
        for name, given in told.items():
            if name not in found:
                raise errors.one_of(name, found, subject="recommended", what="the watchpoint")
            one = found[name]
            found[name] = replace(one, given={**one.given, **given})
            one.condition.values(found[name].given)
    return list(found.values())


def parse_changes(texts: Iterable[str]) -> dict[str, dict[str, float]]:
    """What texts such as ``weight_change_too_large.abs_mean_update_ratio_gt=0.5`` say: watchpoint ->
    parameter -> number.

    Errors: ValueError for a text that is none.
    """
    found: dict[str, dict[str, float]] = {}
    for text in texts:
        place, equals, value = text.partition("=")
        name, dot, parameter = place.rpartition(".")
        try:
            if not (equals and dot):
                raise ValueError
            found.setdefault(name, {})[parameter] = float(value)
        except ValueError:
            raise errors.value_error(
                "recommended", f"a change is WATCHPOINT.PARAMETER=NUMBER, but is {text!r}"
            ) from None
    return found


def suits(
    wanted: Condition,
    kind: str,
    name: str,
    operator: str = "",
    attributes: Mapping[str, str] = NOTHING_KNOWN,
) -> bool:
    """Whether a condition is about a node of this type, full name and attributes; `operator`: about such
    alone.
    """
    test = is_shared if wanted.compares_ranks else _TARGETS.get(wanted.target)
    is_meant = not operator or kind.lower().removesuffix("v2") == operator
    is_meant = is_meant and (not wanted.kinds or kind.lower() in wanted.kinds)
    return is_meant and (test is None or test(kind, name, attributes))
