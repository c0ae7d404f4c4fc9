"""Operators of a dump with what its graphs say of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mycelia.debug.dump import files
from mycelia.debug.reading.folders import Dump, Record
from mycelia.debug.reading.ir import GraphNode, read_graphs
from mycelia.engine.base import errors


@dataclass(slots=True)
class DumpedOperator:
    """An operator of a graph, and its tensors in the first iteration that was dumped."""

    kind: str
    name: str
    graph: int
    node: GraphNode | None
    records: list[Record] = field(default_factory=list)


def operators(dump: Dump) -> Iterator[DumpedOperator]:
    """In order of execution, each once; parameters are none."""
    graphs = {rank: read_graphs(place) for rank, place in dump.ranks.items()}
    seen: dict[tuple[int, int, str], DumpedOperator] = {}
    for step in dump.steps:
        nodes = {files.op_name(n.name): n for n in graphs[step.rank].get(step.graph, {}).values()}
        fresh = []
        for record in step.records():
            key = step.rank, step.graph, record.name
            if key not in seen:
                node = nodes.get(files.op_name(record.name))
                seen[key] = DumpedOperator(record.kind, node.name if node else record.name, step.graph, node)
                fresh.append(seen[key])
            if seen[key] in fresh:
                seen[key].records.append(record)
        yield from (operator for operator in fresh if operator.kind != "Parameter")


def describe(dump: Dump, name: str, graph: int | None = None, reference: Dump | None = None) -> Iterator[str]:
    """Lines about each operator with `name` in its full name.  Errors: ValueError if there is none."""
    found = [o for o in operators(dump) if name.lower() in o.name.lower() and graph in (None, o.graph)]
    if not found:
        raise errors.value_error("ni", f"no operator of {dump.folder} has {name!r} in its name")
    exact = [o for o in found if o.name == name]
    others = list(operators(reference)) if reference is not None else []
    for operator in exact or found:
        yield from _describe(operator, others)


def _describe(operator: DumpedOperator, others: list[DumpedOperator]) -> Iterator[str]:
    yield f"[{operator.kind}] {operator.name}, graph {operator.graph}"
    if operator.node is not None:
        for i, peer in enumerate(operator.node.inputs):
            yield f"  input {i} from {peer}"
        for line in operator.node.stack:
            yield f"  at {line}"
    for side, records in (("left", operator.records), ("right", _records_of(operator.name, others))):
        for record in records:
            yield f"  {side} {record.io} {record.slot}: {_statistics(record)}"


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
