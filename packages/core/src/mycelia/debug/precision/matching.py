"""Which tensor of one dump stands for which of another: by name, by a map of names, by order."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mycelia.debug.dump import files
from mycelia.debug.precision.across import between
from mycelia.debug.reading.folders import Dump, Record, Step, short_name
from mycelia.engine.base import errors

BY_NAME, BY_ORDER = "name", "order"


@dataclass(frozen=True, slots=True)
class Pair:
    """A tensor of the run under test and its reference, None if it has none, for the reason `why`; `others`:
    tensors that may be the reference if that is not alike; `across`: one is of MindSpore, the other ours.
    """

    left: Record
    right: Record | None
    why: str = "No bench data matched."
    others: tuple[Record, ...] = ()
    across: bool = False

    @property
    def io(self) -> str:
        """What the tensor is to its operator: an input that MindSpore's dump has as it is after an update is
        an output.
        """
        return self.right.io if self.across and self.right is not None else self.left.io

    @property
    def label(self) -> str:
        """``NAME:input:0``."""
        return f"{self.left.name}:{self.left.io}:{self.left.slot}"


#: Operators under test -> what stands for them: one operator, or those that were fused, in order.
Names = Mapping[str, str | list[str]]


def read_map(path: str | os.PathLike) -> dict[str, str | list[str]]:
    """A JSON object: names of operators under test, or of scopes, -> names of the reference. What a scope
    makes is the output of its last operator. A list of names stands for an operator that was made of those:
    it makes what the last one makes, and reads what the first one reads and then, of each further one, what
    stands behind the value that it takes from the one before.

    Errors: ValueError for another content.
    """
    try:
        found = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError) as cause:
        raise errors.value_error("map", f"{os.fspath(path)} is no JSON: {cause}") from None
    if not isinstance(found, dict) or not all(map(_is_target, found.values())):
        raise errors.value_error(
            "map", f"{os.fspath(path)} must hold an object of names to names, or to lists of names"
        )
    return found


def _is_target(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(name, str) for name in value)
    return isinstance(value, str)


def steps_of(dump: Dump, graph: int | None) -> list[Step]:
    """The steps to compare, of one graph or of all."""
    found = [step for step in dump.steps if graph in (None, step.graph)]
    if not found:
        known = ", ".join(str(g) for g in sorted({s.graph for s in dump.steps}))
        raise errors.value_error("graph", f"{dump.folder} has no graph {graph}, it has {known}")
    return found


def pairs(
    left: Dump,
    right: Dump,
    graph: int | None = None,
    by: str = BY_NAME,
    names: Names | None = None,
) -> Iterator[tuple[Step, Pair]]:
    """The tensors of `left` in order of execution, with the step they are of and their references."""
    ours, theirs = steps_of(left, graph), steps_of(right, graph)
    places = {(s.rank, s.iteration, s.graph): s for s in theirs}
    for number, step in enumerate(ours):
        other = places.get((step.rank, step.iteration, step.graph))
        if other is None and len(ours) == len(theirs):  # numbered otherwise
            other = theirs[number]
        yield from ((step, pair) for pair in _of_step(step, other, by, names or {}))


def _of_step(step: Step, other: Step | None, by: str, names: Names) -> Iterator[Pair]:
    records = [] if other is None else other.records()
    if by == BY_ORDER:
        yield from _in_order(step.records(), records)
        return
    keyed = {_key(r): r for r in reversed(records)}
    loose: dict[tuple, Record] = {}
    for record in reversed(records):
        loose[_bare(record.name), record.io, record.slot] = record
    ours = step.records()
    partners = _by_scope(ours, {name: other for name, other in names.items() if isinstance(other, str)})
    fused = {short: other for name, other in names.items() if isinstance(other, list)
             for short in short_name(name)}  # fmt: skip
    moved, across = _moved(ours, records), between(ours, records)
    if across is not None:
        moved |= across.moved
    for record in ours:
        if record.name in fused:
            yield Pair(record, _of_parts(record, fused[record.name], records))
            continue
        name = partners.get(record.name) or moved.get(record.name, record.name)
        found = keyed.get((name, record.io, record.slot))
        found = found or loose.get((_bare(name), record.io, record.slot))
        if found is None or across is None:
            yield Pair(record, found)
            continue
        partner, why = across.partner(record, found)
        if partner is None:
            yield Pair(record, None, why)
        else:
            yield Pair(record, partner, others=across.beside(partner), across=True)


def _moved(left: list[Record], right: list[Record]) -> dict[str, str]:
    """Operators -> their names on the other side, where the compiler put those of one scope and type in
    another order, so that their numbers changed: both sides have as many of each shape, at other numbers.
    Those of one shape keep their order.
    """
    ours, theirs = _numbered(left), _numbered(right)
    found: dict[str, str] = {}
    for scope, operators in ours.items():
        others = theirs.get(scope, {})
        if len(operators) < 2 or operators.keys() != others.keys():
            continue
        places = [_by_shapes(operators), _by_shapes(others)]
        if places[0] == places[1] or any(
            len(numbers) != len(places[1].get(shapes, ())) for shapes, numbers in places[0].items()
        ):
            continue
        for shapes, numbers in places[0].items():
            for number, other in zip(numbers, places[1][shapes], strict=True):
                found[operators[number][0].name] = others[other][0].name
    return found


def _numbered(records: list[Record]) -> dict[str, dict[int, list[Record]]]:
    """What operators with a number make: scope and type -> number -> outputs."""
    found: dict[str, dict[int, list[Record]]] = defaultdict(dict)
    for record in records:
        scope, _, number = record.name.rpartition("-op")
        if scope and number.isdecimal() and record.io == "output":
            found[scope].setdefault(int(number), []).append(record)
    return found


def _by_shapes(operators: dict[int, list[Record]]) -> dict[tuple, list[int]]:
    """Shapes of the outputs -> numbers of the operators that make such, in order."""
    found: dict[tuple, list[int]] = defaultdict(list)
    for number in sorted(operators):
        found[tuple(sorted((r.slot, r.shape()) for r in operators[number]))].append(number)
    return found


def _of_parts(record: Record, parts: list[str], records: list[Record]) -> Record | None:
    """What stands for a tensor of an operator that was made of `parts`."""
    known: dict[tuple[str, str], dict[int, Record]] = {}
    for r in reversed(records):
        known.setdefault((_bare(r.name), r.io), {})[r.slot] = r
    if record.io == "output":
        return known.get((_bare(parts[-1]), "output"), {}).get(record.slot)
    read: list[Record] = []
    for place, part in enumerate(parts):
        inputs = known.get((_bare(part), "input"), {})
        read += [inputs[slot] for slot in sorted(inputs) if slot or not place]
    return read[record.slot] if record.slot < len(read) else None


def _by_scope(records: list[Record], names: Mapping[str, str]) -> dict[str, str]:
    """Operators -> names of the reference: those that are named, and the last one of each scope that is."""
    known = {r.name: None for r in records if r.io == "output"}
    found = {}
    for name, other in names.items():
        short = files.op_name(name)
        if short in known or name in known:
            found[name if name in known else short] = other
        else:
            last = [n for n in known if n.startswith(f"{short}_")][-1:]
            found.update(dict.fromkeys(last, other))
    return found


def _key(record: Record) -> tuple[str, str, int]:
    return record.name, record.io, record.slot


def _bare(name: str) -> str:
    """A name without what depends on the framework's version: scopes joined by `_` or `/`, the number."""
    return re.sub(r"[/.]", "_", name).lower()


def _in_order(left: list[Record], right: list[Record]) -> Iterator[Pair]:
    """The n-th output of a type is the n-th output of that type."""
    waiting: dict[tuple, list[Record]] = {}
    for record in right:
        waiting.setdefault((record.kind.lower(), record.io, record.slot), []).append(record)
    for record in left:
        queue = waiting.get((record.kind.lower(), record.io, record.slot))
        yield Pair(record, queue.pop(0) if queue else None)
