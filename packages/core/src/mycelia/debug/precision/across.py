"""A step of ours beside the same one in a dump that MindSpore wrote, which differ in what tensors are.

Parameters are as before the step in ours, and as after it in MindSpore's; so is what an operator reads that
it updates. Some operators have their tensors at other slots there, or keep other statistics for their
gradients, and optimizers update weights in another order.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import numpy as np

from mycelia.debug.reading.folders import Record
from mycelia.engine.ops.define import registry
from mycelia.engine.ops.type_names import type_name

APART = (
    "No bench data matched: one dump has it as before the step, the other as after it; what reads it is "
    "compared"
)
OTHER = "No bench data matched: MindSpore's operator has something else in its place"
_PARAMETER = "Parameter"
_FEW = 4096  # elements that tell most arrays apart
_NEAR = 0.01  # share by which the norms of one gradient may differ
_NORMALIZATION = "BatchNorm"  # which reads its running statistics at other slots in MindSpore
#: (type, io) -> slots of ours, and of MindSpore's, that the other has not: a deviation in one is its inverse
#: in the other.
_OURS = {
    (_NORMALIZATION, "output"): {4}, ("BatchNormGrad", "input"): {4}, ("LayerNorm", "output"): {2},
    ("LayerNormGrad", "input"): {3},
}  # fmt: skip
_THEIRS = {
    (_NORMALIZATION, "output"): {1, 2, 4}, ("BatchNormGrad", "input"): {4}, ("LayerNorm", "output"): {2},
    ("LayerNormGrad", "input"): {2},
}  # fmt: skip


@cache
def _updated() -> dict[str, tuple[int, ...]]:
    """Types of operators that update what they read -> at which slots, in the order of the results of ours
    that these are. What MindSpore's dumps have there is the result.
    """
    found: dict[str, tuple[int, ...]] = {}
    for op in registry.values():
        of = op.definition
        if of.updates:
            found[type_name(op)] = tuple(of.param_names.index(name) for name in of.updates)
    return found


@cache
def _updated_theirs() -> dict[str, tuple[int, ...]]:
    """The same of MindSpore's, two of whose operators have these elsewhere."""
    return {**_updated(), _NORMALIZATION: (3, 4), "SGD": (0, 3, 5)}


class Across:
    """`left` and `right` are one step, of which one dump is MindSpore's and the other ours, see `between`."""

    def __init__(self, left: list[Record], right: list[Record], is_left_theirs: bool) -> None:
        self.is_left_theirs = is_left_theirs
        self.changed = _changed(left if is_left_theirs else right)
        self.operators: dict[tuple[str, str], list[Record]] = defaultdict(list)
        for record in right:
            self.operators[record.name, record.io].append(record)
        tables = (_updated_theirs(), _updated()) if is_left_theirs else (_updated(), _updated_theirs())
        self.moved = _moved(_gradients(left, tables[0]), _gradients(right, tables[1]))

    def partner(self, left: Record, right: Record) -> tuple[Record | None, str]:
        """The reference of a tensor whose operator is that of `right`, or None and why."""
        if left.kind == _PARAMETER:
            return (None, APART) if {left.name, right.name} & self.changed else (right, "")
        mine, theirs = _updated().get(left.kind, ()), _updated_theirs().get(left.kind, ())
        if self.is_left_theirs:
            if left.io == "input" and left.slot in theirs:
                return self._at(right.name, "output", theirs.index(left.slot))
            is_other = left.io == "output" and mine and left.kind != _NORMALIZATION
            others = _THEIRS
        else:
            if left.io == "input" and left.slot in mine:
                return None, APART
            if left.io == "output" and left.slot < len(theirs):
                return self._at(right.name, "input", theirs[left.slot])
            is_other, others = False, _OURS
        if is_other or left.slot in others.get((left.kind, left.io), ()):
            return None, OTHER
        return right, ""

    def _at(self, name: str, io: str, slot: int) -> tuple[Record | None, str]:
        found = next((r for r in self.operators[name, io] if r.slot == slot), None)
        return found, OTHER

    def beside(self, right: Record) -> tuple[Record, ...]:
        """What else the operator reads or makes: tensors may have other slots than on the left."""
        if right.kind == _PARAMETER:
            return ()
        return tuple(one for one in self.operators[right.name, right.io] if one is not right)


def between(left: list[Record], right: list[Record]) -> Across | None:
    """None where both dumps are of one kind."""
    theirs = [_come_last(records) for records in (left, right)]
    return Across(left, right, theirs[0]) if theirs[0] != theirs[1] else None


def _come_last(records: list[Record]) -> bool:
    """Whether all Parameters were written after all operators, as MindSpore does."""
    times: dict[bool, list[int]] = {True: [], False: []}
    for record in records:
        if (time := record.microseconds) is not None:
            times[record.kind == _PARAMETER].append(time)
    return bool(times[True] and times[False]) and min(times[True]) > max(times[False])


def _changed(records: list[Record]) -> set[str]:
    """Names of what a step of MindSpore's may have changed: Parameters whose values are results of what
    updates, or are read by nothing else.
    """
    read: dict[tuple, list[Record]] = defaultdict(list)
    made: dict[tuple, list[Record]] = defaultdict(list)
    for record in records:
        if record.io == "input":
            is_result = record.slot in _updated_theirs().get(record.kind, ())
            (made if is_result else read)[record.shape()].append(record)

    def is_among(one: Record, others: dict[tuple, list[Record]]) -> bool:
        return any(_are_equal(one, other) for other in others.get(one.shape(), ()))

    parameters = [one for one in records if one.kind == _PARAMETER]
    return {one.name for one in parameters if is_among(one, made) or not is_among(one, read)}


def _are_equal(one: Record, other: Record) -> bool:
    """Whether two tensors of one shape have the same elements, or as far as is known the same statistics."""
    a, b = one.array(mapped=True), other.array(mapped=True)
    if a is None or b is None:
        return one.statistics() == other.statistics()
    a, b = a.reshape(-1), b.reshape(-1)
    return a.dtype == b.dtype and all(
        np.array_equal(a[part], b[part], equal_nan=a.dtype.kind in "fc")
        for part in (slice(_FEW), slice(_FEW, None))
    )


#: Type and shape -> operators that update such Parameters, in order, with the norm of what else they read of
#: that shape.
_Gradients = dict[tuple, list[tuple[str, float]]]


def _moved(ours: _Gradients, theirs: _Gradients) -> dict[str, str]:
    """Operators that update Parameters -> those of the right that read gradients of such a shape and norm:
    which weight comes first differs.
    """
    found: dict[str, str] = {}
    for key, mine in ours.items():
        free = list(theirs.get(key, ()))
        for name, norm in mine:
            near = min(free, key=lambda one: abs(one[1] - norm), default=None)
            if near is not None and abs(near[1] - norm) <= _NEAR * abs(norm):
                free.remove(near)
                found[name] = near[0]
    return found


def _gradients(records: list[Record], updated: dict[str, tuple[int, ...]]) -> _Gradients:
    found: _Gradients = defaultdict(list)
    shapes = {
        (r.kind, r.name): r.shape() for r in records if r.io == "input" and not r.slot and r.kind in updated
    }
    for record in records:
        shape = shapes.get((record.kind, record.name))
        if record.io != "input" or record.slot in updated.get(record.kind, ()) or record.shape() != shape:
            continue
        numbers = record.statistics()
        found[record.kind, shape].append((record.name, numbers.l2norm if numbers else 0.0))
    return found
