"""When the steps that are kept in memory are written: an error, a value that is not finite, a condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mycelia.debug.conditions import (
    Condition,
    check,
    condition,
    is_activation,
    is_gradient,
    is_weight,
)
from mycelia.debug.conditions.catalogue import ACTIVATION, GRADIENT, WEIGHT
from mycelia.debug.dump.writer import Record, Step
from mycelia.debug.statistics import array_of, is_finite
from mycelia.engine.base import errors

_TARGETS = {WEIGHT: is_weight, GRADIENT: is_gradient, ACTIVATION: is_activation}


class Watch:
    """One entry of the field `conditions`: ``{"condition": "tensor_overflow", "params": {...}, "nodes":
    [...]}``.

    `nodes`: parts of the full names that are looked at; without it all that the condition is for.
    Errors: ValueError, TypeError for a condition or parameters that there are not.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        unknown = set(given) - {"condition", "params", "nodes"}
        if unknown or not isinstance(given.get("condition"), str):
            expected = "objects with 'condition', and 'params' and 'nodes' if they like"
            raise errors.value_error(
                "dump_config", f"the field 'conditions' must hold {expected}, but got {given!r}"
            )
        self.condition: Condition = condition(given["condition"])
        self.parameters = given.get("params", {})
        self.condition.values(self.parameters)
        self.nodes = given.get("nodes", [])

    def looks_at(self, record: Record) -> bool:
        if record.io != "output" or (self.nodes and not any(part in record.name for part in self.nodes)):
            return False
        is_target = _TARGETS.get(self.condition.target)
        return is_target is None or is_target(record.kind, record.name)


class Trouble:
    """Looks at each step that is kept. Without conditions every value that is not finite counts."""

    def __init__(self, conditions: tuple[Mapping[str, Any], ...]) -> None:
        self.watches = [Watch(given) for given in conditions]
        self.before: dict[tuple, np.ndarray] = {}  # of the step before, for conditions that compare

    def found(self, step: Step, error: BaseException | None) -> str:
        """What is wrong in this step; empty if nothing is."""
        reason = "" if error is None else f"{type(error).__name__}: {error}"
        if not self.watches:
            bad = next((r for r in step.records if r.io == "output" and not is_finite(r.tensor)), None)
            return reason or ("" if bad is None else f"{bad.name} is not finite")
        for watch in self.watches:
            for record in filter(watch.looks_at, step.records):
                reason = reason or self.hits(watch, step, record)
        self.remember(step)
        return reason

    def hits(self, watch: Watch, step: Step, record: Record) -> str:
        before = self.before.get((record.kind, record.name, record.slot))
        found = check(watch.condition, watch.parameters, array_of(record.tensor), before, step.iteration)
        if not found.hit:
            return ""
        actual = ", ".join(f"{p.name} = {p.actual:g}" for p in found.parameters if p.hit)
        return f"{record.name} hits {watch.condition.id}" + (f" ({actual})" if actual else "")

    def remember(self, step: Step) -> None:
        comparing = [w for w in self.watches if w.condition.needs_previous]
        for record in step.records if comparing else ():
            if any(w.looks_at(record) for w in comparing):
                self.before[record.kind, record.name, record.slot] = array_of(record.tensor).copy()
