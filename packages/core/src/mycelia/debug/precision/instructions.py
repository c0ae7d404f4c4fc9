"""What the instructions of compiled programs make, with all that the compiler joined: dumped as they run, and
compared with those of another process by the user's lines.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from mycelia.debug.dump import files, graph_files
from mycelia.debug.precision.comparison import alike
from mycelia.debug.reading.folders import Dump, Record
from mycelia.debug.reading.ir import read_graphs
from mycelia.debug.statistics import array_of
from mycelia.engine.base import config, errors
from mycelia.engine.ir.graph import Graph, Node
from mycelia.engine.observing import Operator
from mycelia.engine.observing.observers import Watched
from mycelia.engine.observing.operator_names import named_operators

NET = "Program"  # the folder of the net in such a dump


class ProgramDump:
    """An observer of one compiled program (`mycelia_observers`) that dumps what its instructions make.

    The folder is that of a data dump (`docs/debugging.md`), a graph for each program; it holds outputs alone.
    A fused instruction of one result goes by the name of its last part, whose value it makes, so that its
    counterpart is found in a dump of the same network unfused. `wants`: whether the run of the program with
    this number, from 0, is dumped.
    """

    def __init__(
        self, folder: str | os.PathLike, nodes: Sequence[Node], wants: Callable[[int], bool]
    ) -> None:
        self.root = os.path.join(folder, f"rank_{config.get('rank')}")
        self.nodes, self.wants = list(nodes), wants
        graph = Graph("program")
        graph.nodes = self.nodes
        made = {value for node in self.nodes for value in node.outputs}
        read = {v: None for node in self.nodes for v in node.inputs if v is not None}
        graph.parameters = [v for v in read if v not in made and not v.is_constant]
        self.of = Watched("program", graph)
        self.of.operators |= _operators(self.nodes)
        self.run, self.seen = 0, set[Node]()
        self.is_described = False

    def after(self, node: Node, outputs: tuple) -> None:
        """Called with a node of the program that ran, and what it made.  Errors: OSError."""
        if node in self.seen:  # of the run before
            self.run += 1
            self.seen.clear()
        is_first = not self.seen
        self.seen.add(node)
        if not self.wants(self.run):
            return
        if is_first:
            self._begin()
        operator = self.of.operators[node]
        for slot, tensor in enumerate(outputs):
            if tensor is None or not tensor.size:
                continue
            dtype = files.dtype_name(tensor.dtype)
            name = files.file_name(operator.type, operator.name, files.CLOCK.stamp(), "output", slot, dtype)
            files.write_array(self._folder, name, array_of(tensor))

    @property
    def _folder(self) -> str:
        return os.path.join(self.root, NET, str(self.of.number), str(self.run))

    def _begin(self) -> None:
        os.makedirs(self._folder, exist_ok=True)
        if not self.is_described:
            self.is_described = True
            graph_files.write_graph(self.root, self.of)
        graph_files.note_run(self.root, self.of.number, self.run)


def _operators(nodes: Sequence[Node]) -> dict[Node, Operator]:
    """What each instruction is called: by its last part, if it was made of several and has one result."""
    ends = [node.parts[-1] if node.parts and len(node.outputs) == 1 else node for node in nodes]
    parts = dict.fromkeys(part for node in nodes for part in node.parts)
    of_parts = dict(zip(parts, named_operators(list(parts))))
    found = {}
    for node, named in zip(nodes, named_operators(ends)):
        found[node] = operator = Operator(node.op, named.name, named.origin, node.attrs, named.type)
        operator.parts, operator.made_by = tuple(of_parts[part] for part in node.parts), node.made_by
    return found


def first_difference(left: Path, right: Path, threshold: float = 1 - 1e-9) -> str | None:
    """The first instruction dumped in `left` that makes what its counterpart in `right` does not make: the
    one of its name, or if there is none all from the same line. ``NAME (file:line)``, None if there is none,
    or if a side compiled nothing.
    """
    try:
        dumps = Dump(left), Dump(right)
    except errors.MyceliaError:
        return None
    named: dict[tuple, list[Record]] = defaultdict(list)
    placed: dict[tuple, list[Record]] = defaultdict(list)
    for record, name, line in _records(dumps[1]):
        named[name, record.slot, *_form(record)].append(record)
        placed[line, *_form(record)].append(record)
    for record, name, line in _records(dumps[0]):
        form = _form(record)
        candidates = named.get((name, record.slot, *form)) or placed.get((line, *form))
        array = record.array()
        assert array is not None
        if candidates and not any(alike(array, r.array(), threshold) for r in candidates):
            return f"{name} ({line})" if line else name
    return None


def _records(dump: Dump) -> list[tuple[Record, str, str]]:
    """All tensors in order of execution, with the full name of their operator and its line, if it has one."""
    found = []
    for step in dump.steps:
        graph = read_graphs(dump.ranks[step.rank]).get(step.graph, {})
        nodes = {files.op_name(node.name): node for node in graph.values()}
        for record in step.records():
            node = nodes.get(record.name)
            line = f"{node.stack[0].file}:{node.stack[0].line}" if node and node.stack else ""
            found.append((record, node.name if node else record.name, line))
    return sorted(found, key=lambda entry: entry[0].stamp)


def _form(record: Record) -> tuple[int, str]:
    """Number of elements and type: equal for values that may be the same. Layouts differ."""
    array = record.array(mapped=True)
    assert array is not None
    return array.size, str(array.dtype)
