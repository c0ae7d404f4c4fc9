"""Operators of a dump with what its graphs say of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mycelia.debug.dump import files
from mycelia.debug.dump.operator_files import RecordedOperator, read_operators
from mycelia.debug.reading.folders import Dump, Record, Step, short_name
from mycelia.debug.reading.ir import GraphNode, read_graphs
from mycelia.debug.reading.nonfinite import NonFinite
from mycelia.engine.base import errors


@dataclass(slots=True)
class DumpedOperator:
    """An operator of a graph, and its tensors in the first iteration that was dumped. `recorded`: how it ran,
    None where the dump does not say; `readers`: names of those that read what it makes.
    """

    kind: str
    name: str
    graph: int
    node: GraphNode | None
    recorded: RecordedOperator | None = None
    readers: tuple[str, ...] = ()
    records: list[Record] = field(default_factory=list)

    @property
    def made_by(self) -> str:
        """The pass that fused it; "" if none did."""
        return self.recorded.made_by if self.recorded else ""

    @property
    def label(self) -> str:
        """``[Type][FusionPass] full/name``, the pass of fused operators alone."""
        return f"[{self.kind}]{f'[{self.made_by}]' if self.made_by else ''} {self.name}"


def operators(dump: Dump) -> Iterator[DumpedOperator]:
    """In order of execution, each once; parameters are none."""
    graphs = {rank: read_graphs(place) for rank, place in dump.ranks.items()}
    seen: dict[tuple[int, int, str], DumpedOperator] = {}
    known: dict[tuple[int, int], _Graph] = {}
    for step in dump.steps:
        place = step.rank, step.graph
        if place not in known:
            recorded = read_operators(dump.ranks[step.rank], step.graph)
            known[place] = _Graph(graphs[step.rank].get(step.graph, {}).values(), recorded)
        fresh = []
        for record in step.records():
            key = step.rank, step.graph, record.name
            if key not in seen:
                seen[key] = known[place].operator(record, step.graph)
                fresh.append(seen[key])
            if seen[key] in fresh:
                seen[key].records.append(record)
        yield from (operator for operator in fresh if operator.kind != "Parameter")


class _Graph:
    """The nodes of a graph by what files may call them, and who reads them."""

    def __init__(self, nodes: Iterable[GraphNode], recorded: dict[str, RecordedOperator]) -> None:
        self.recorded = recorded
        self.by_name = {short: node for node in nodes for short in short_name(node.name)}
        self.readers: dict[str, dict[str, None]] = {}
        for node in self.by_name.values():
            for name in node.inputs:
                self.readers.setdefault(name, {})[node.name] = None

    def operator(self, record: Record, graph: int) -> DumpedOperator:
        node = self.by_name.get(record.name) or self.by_name.get(files.op_name(record.name))
        name = node.name if node else record.name
        readers = tuple(self.readers.get(name, ()))
        return DumpedOperator(record.kind, name, graph, node, self.recorded.get(name), readers)


def describe(
    dump: Dump,
    name: str,
    graph: int | None = None,
    reference: Dump | None = None,
    attribute: str | None = None,
) -> Iterator[str]:
    """Lines about each operator with `name` in its full name, with those of its attributes that have
    `attribute` in their names.  Errors: ValueError if there is none.
    """
    found = matching_operators(dump, name, graph)
    others = list(operators(reference)) if reference is not None else []
    for operator in found:
        yield from _describe(operator, others, attribute)


def matching_operators(dump: Dump, name: str, graph: int | None = None) -> list[DumpedOperator]:
    """The one with this full name, or all with `name` in theirs.  Errors: ValueError if there is none."""
    found = [o for o in operators(dump) if name.lower() in o.name.lower() and graph in (None, o.graph)]
    if not found:
        raise errors.value_error("ni", f"no operator of {dump.folder} has {name!r} in its name")
    return [o for o in found if o.name == name] or found


def tensors_of(dump: Dump, found: NonFinite) -> Iterator[str]:
    """A line for each tensor of the operator that `found` is of, in that step, inputs first."""
    for step in dump.steps:
        if (step.rank, step.graph, step.iteration) == (found.rank, found.graph, found.iteration):
            yield from _tensors_in(step, found.op_full_name)


def _tensors_in(step: Step, full_name: str) -> Iterator[str]:
    names = short_name(full_name) | {full_name}
    for record in sorted((r for r in step.records() if r.name in names), key=lambda r: r.io):
        yield f"{record.io} {record.slot}: {_statistics(record)}"


def overflow_lines(dump: Dump, path: Path, record: dict[str, Any]) -> Iterator[str]:
    """What a device's record, the file `path`, says of a task that overflowed, and the tensors of it."""
    told = ", ".join(f"{key} {record[key]}" for key in ("task_id", "stream_id", "status") if key in record)
    name, kind = str(record.get("name", "")), record.get("type", record.get("op", "?"))
    yield f"[{kind}] {name}: {told}, {record.get('kind', 'unit unknown')}"
    yield f"  {path}"
    for step in dump.steps:
        if step.folder == path.parent:
            yield from (f"  {line}" for line in _tensors_in(step, name))


def _describe(operator: DumpedOperator, others: list[DumpedOperator], attribute: str | None) -> Iterator[str]:
    yield f"{operator.label}, graph {operator.graph}"
    if operator.recorded is not None:
        for part in operator.recorded.parts:
            yield f"  made of {part}"
        for key, value in operator.recorded.attrs.items():
            if attribute is not None and attribute.lower() in key.lower():
                yield f"  attribute {key}: {value!r}"
    if operator.node is not None:
        for i, peer in enumerate(operator.node.inputs):
            yield f"  input {i} from {peer}"
        for reader in operator.readers:
            yield f"  read by {reader}"
        for line in operator.node.stack:
            yield f"  at {line}"
    for side, records in (("left", operator.records), ("right", _records_of(operator.name, others))):
        for record in records:
            yield f"  {side} {record.io} {record.slot}: {_statistics(record)}"


def subgraph(dump: Dump, name: str, depth: int, graph: int | None = None) -> str:
    """The operators with `name` in their names and what is up to `depth` edges away, for Graphviz.

    Errors: ValueError if there is none.
    """
    centres = [(o.name, o.graph) for o in matching_operators(dump, name, graph)]
    edges = {(o.graph, peer, o.name) for o in operators(dump) if o.node for peer in o.node.inputs}
    near = set(centres)
    for _ in range(depth):
        near |= {(end, g) for g, a, b in edges for one, end in ((a, b), (b, a)) if (one, g) in near}
    lines = [
        f"  {_dot(g, n)} [label={json.dumps(n)}{' penwidth=2' if (n, g) in centres else ''}]" for n, g in near
    ]
    lines += [f"  {_dot(g, a)} -> {_dot(g, b)}" for g, a, b in edges if (a, g) in near and (b, g) in near]
    return "\n".join(["digraph {", "  node [shape=box]", *sorted(lines), "}", ""])


def _dot(graph: int, name: str) -> str:
    return json.dumps(f"{graph}:{name}")


def _records_of(name: str, others: list[DumpedOperator]) -> list[Record]:
    return next((o.records for o in others if files.op_name(o.name) == files.op_name(name)), [])


def _statistics(record: Record) -> str:
    numbers, array = record.statistics(), record.array()
    shape = "" if array is None else f"{array.dtype} {tuple(array.shape)}, "
    if numbers is None:
        return f"{shape}{_place(record.path)}"
    return (
        f"{shape}max {numbers.max:.6g}, min {numbers.min:.6g}, mean {numbers.mean:.6g}, {_place(record.path)}"
    )


def _place(path: Path | None) -> str:
    return "statistics alone" if path is None else str(path)
