"""When the steps that are kept in memory are written: an error, a value that is not finite, a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mycelia.debug.conditions import (
    ROLE,
    Around,
    Condition,
    Memory,
    check,
    condition,
)
from mycelia.debug.conditions.recommended import suits
from mycelia.debug.dump.groups import Group, Record, Step
from mycelia.debug.statistics import array_of, is_finite


class Watch:
    """One entry of the field `conditions`: ``{"condition": "tensor_overflow", "params": {...}, "nodes":
    [...]}``.

    `nodes`: parts of the full names that are looked at; without it all that the condition is for. The entry
    was checked where the configuration was read.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.condition: Condition = condition(given["condition"])
        self.parameters = given.get("params", {})
        self.memory = Memory(self.condition, self.parameters)
        self.nodes = given.get("nodes", [])

    def looks_at(self, record: Record, role: str | None) -> bool:
        if self.nodes and not any(part in record.name for part in self.nodes):
            return False
        attributes = {} if role is None else {ROLE: role}
        return suits(self.condition, record.kind, record.name, attributes=attributes)


class Trouble:
    """Looks at what is kept. Without conditions every value that is not finite counts."""

    def __init__(self, conditions: tuple[Mapping[str, Any], ...]) -> None:
        self.watches = [Watch(given) for given in conditions]
        self.latest: int | None = None  # the iteration that was looked at last

    def begin(self, step: Step) -> None:
        """A step begins; where some before it were not dumped it has no step before."""
        if self.latest is not None and step.iteration not in (self.latest, self.latest + 1):
            for watch in self.watches:
                watch.memory.clear()
        self.latest = step.iteration

    def look(self, step: Step, group: Group) -> None:
        """Note in `step.reason` what is wrong first. Each operator is looked at when it has run: where memory
        is short it may be gone at the end of the step.
        """
        if not self.watches and not step.reason:
            bad = next((r for r in group.records("output") if not is_finite(r.tensor)), None)
            step.reason = "" if bad is None else f"{bad.name} is not finite"
        for watch in self.watches:
            read = group.records("input") if watch.condition.reads_inputs else ()
            inputs = [array_of(r.tensor) for r in read] or None
            for record in group.records("output"):
                if not watch.looks_at(record, step.roles.get(record.name)):
                    continue
                reason = self.hits(watch, step, group, record, inputs)
                step.reason = step.reason or reason

    def hits(
        self, watch: Watch, step: Step, group: Group, record: Record, inputs: Sequence[np.ndarray] | None
    ) -> str:
        # Eager steps may run programs whose operators share names, but not lines.
        lines = group.call[0].stack if group.call is not None else ()
        key, array = (step.of.number, record.kind, record.name, record.slot, lines), array_of(record.tensor)
        earlier = watch.memory.earlier(key, step.iteration)
        watch.memory.add(key, step.iteration, array)
        around = Around(earlier, record.kind, () if record.kind == "Parameter" else inputs)
        found = check(watch.condition, watch.parameters, array, around, step.iteration)
        if not found.hit:
            return ""
        actual = found.reason or ", ".join(f"{p.name} = {p.actual:g}" for p in found.parameters if p.hit)
        return f"{record.name} hits {watch.condition.id}" + (f" ({actual})" if actual else "")
