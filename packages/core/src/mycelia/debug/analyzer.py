"""`DumpAnalyzer`: questions to a dump, with the names of MindSpore's offline debugger
(`mindinsight.debugger`).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mycelia.debug.checking import check_tensor
from mycelia.debug.conditions import NO_VALUE, Hit, condition, error_texts
from mycelia.debug.indexes import NodeIndex, RecordIndex
from mycelia.debug.reading.folders import Dump, Record, short_name
from mycelia.debug.reading.ir import GraphNode, SourceLine, read_graphs
from mycelia.debug.reading.nonfinite import trace_nonfinite
from mycelia.debug.recorded_operators import rerun_recorded, script_of_recorded
from mycelia.debug.statistics import Statistics
from mycelia.debug.statistics_tables import Rows, chosen, rows_of, write_summary
from mycelia.debug.watch_conditions import ConditionBase
from mycelia.engine.base import errors

#: Ranks, iterations or slots as methods take them: one, several, or all.
Numbers = int | Iterable[int] | None


@dataclass(frozen=True, eq=False)
class Node:
    """An operator or parameter of a dumped graph. `stack`: the user's lines, the innermost first;
    `attributes`: as texts.
    """

    analyzer: DumpAnalyzer = field(repr=False)
    rank: int
    graph: int
    name: str
    kind: str
    stack: tuple[SourceLine, ...] = ()
    feeds: tuple[str, ...] = ()  # names of the nodes that it reads, in order
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def root_graph_id(self) -> int:
        """The number of its graph, by MindInsight's name."""
        return self.graph

    @property
    def graph_name(self) -> str:
        """As files of graphs have it."""
        return f"kernel_graph_{self.graph}"

    def get_input_tensors(self, slots: Numbers = None, iterations: Numbers = None) -> list[DebuggerTensor]:
        """Its dumped inputs."""
        return self._tensors("input", slots, iterations)

    def get_output_tensors(self, slots: Numbers = None, iterations: Numbers = None) -> list[DebuggerTensor]:
        """Its dumped outputs."""
        return self._tensors("output", slots, iterations)

    def _tensors(self, io: str, slots: Any, iterations: Any) -> list[DebuggerTensor]:
        wanted = chosen(slots, "slots")
        found = self.analyzer.tensors_of(self, chosen(iterations, "iterations"))
        return [t for t in found if t.io == io and (wanted is None or t.slot in wanted)]


@dataclass(frozen=True, eq=False)
class DebuggerTensor:
    """A dumped input or output of a node."""

    node: Node
    io: str
    slot: int
    iteration: int
    record: Record = field(repr=False)

    @property
    def rank(self) -> int:
        return self.node.rank

    def value(self) -> np.ndarray | None:
        """The elements; None if only statistics were dumped."""
        return self.record.array()

    def statistics(self) -> Statistics | None:
        return self.record.statistics()

    def __str__(self) -> str:
        lines = {
            "rank": self.rank, "graph_name": self.node.graph_name, "node_name": self.node.name,
            "slot": self.slot, "iteration": self.iteration,
        }  # fmt: skip
        return "\n".join(f"{name}: {value}" for name, value in lines.items())


@dataclass(frozen=True)
class Watchpoint:
    """Tensors and the condition that they are checked for.  Errors: TypeError for other things."""

    tensors: Iterable[DebuggerTensor]
    condition: ConditionBase

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensors", list(self.tensors))
        bad = [t for t in self.tensors if not isinstance(t, DebuggerTensor)]
        if bad:
            raise errors.type_error("Watchpoint", f"tensors must be DebuggerTensors, but one is {bad[0]!r}")
        if not isinstance(self.condition, ConditionBase):
            raise errors.type_error(
                "Watchpoint", f"condition must be a condition of mycelia.debug, but got {self.condition!r}"
            )


@dataclass(frozen=True)
class WatchpointHit:
    """A tensor that hit a watchpoint, or could not be checked (`error_code`)."""

    tensor: DebuggerTensor
    condition: Any
    found: Hit

    @property
    def error_code(self) -> int:
        return self.found.error_code

    @property
    def error_msg(self) -> list[str]:
        return error_texts(self.found.error_code)

    def __str__(self) -> str:
        kind = type(self.condition).__name__.removesuffix("Condition")
        told = f"Threshold: {self.get_threshold()}\nHit detail: {self.get_hit_detail()}"
        return f"Watchpoint {kind} triggered on tensor:\n{self.tensor}\n{told}"

    def get_threshold(self) -> dict[str, Any]:
        """The parameters as they were set."""
        return dict(self.condition.values)

    def get_hit_detail(self) -> str:
        """Which bounds were hit, and by what."""
        if self.error_code:
            return "; ".join(self.error_msg)
        hits = [p for p in self.found.parameters if p.hit]
        if not hits:
            return f"The tensor has {self.found.reason or 'NaN or infinities'}."
        if self.found.reason:
            return f"The setting for watchpoint is {hits[0].value}. The tensor has {self.found.reason}."
        bounds = ", ".join(f"{p.name} = {p.value}" for p in hits)
        actual = ", ".join(f"{p.name} = {p.actual}" for p in hits)
        return f"The setting for watchpoint is {bounds}. The actual value of the tensor is {actual}."


def _check_limit(given: Any) -> None:
    if isinstance(given, bool) or not isinstance(given, int):
        raise errors.type_error("DumpAnalyzer", f"mem_limit must be an int or None, but got {given!r}")
    if given and not 2048 <= given < 2**31:
        raise errors.value_error(
            "DumpAnalyzer", f"mem_limit must be from 2048 to {2**31 - 1}, but got {given}"
        )


class DumpAnalyzer:
    """A dump on disk. `dump_dir`: the folder `path` of its configuration, or a ``rank_N`` in it.

    `mem_limit`, in MB, from 2048 on: what MindInsight keeps of tensors while it checks. It changes nothing
    here, since tensors are read one at a time.
    Errors: ValueError if no dump lies there, or for another `mem_limit`; TypeError if that is no int.
    """

    def __init__(self, dump_dir: str | os.PathLike, mem_limit: int | None = None) -> None:
        if mem_limit is not None:
            _check_limit(mem_limit)
        self.dump = Dump(dump_dir)
        self.mem_limit = mem_limit

    # ---- what there is

    def get_ranks(self) -> list[int]:
        """The ranks that were dumped."""
        return sorted(self.dump.ranks)

    def get_iterations(self, ranks: Numbers = None) -> list[int]:
        """The iterations that were dumped.  Errors: ValueError for a rank that was not."""
        wanted = chosen(ranks, "ranks", self.get_ranks())
        return self.dump.iterations(None if wanted is None else list(wanted))

    def export_graphs(self, output_dir: str | os.PathLike | None = None) -> list[Path]:
        """Copy the texts of the graphs and the orders of execution below `output_dir`, the present folder
        where None is given; the files that were made.
        """
        made = []
        for rank, place in self.dump.ranks.items():
            for file in sorted([*place.glob("graphs/*"), *place.glob("execution_order/*.csv")]):
                target = Path(output_dir or ".") / f"rank_{rank}" / file.parent.name / file.name
                target.parent.mkdir(parents=True, exist_ok=True)
                made.append(Path(shutil.copyfile(file, target)))
        return made

    @cached_property
    def nodes(self) -> list[Node]:
        """All nodes, by rank and graph, in order of execution; those that no text tells of come last."""
        found: list[Node] = []
        for rank, place in self.dump.ranks.items():
            graphs: dict[int, dict[str, GraphNode]] = read_graphs(place)
            for number in sorted({s.graph for s in self.dump.steps if s.rank == rank} | graphs.keys()):
                known = graphs.get(number, {})
                found += [
                    Node(self, rank, number, n.name, n.kind, tuple(n.stack), tuple(n.inputs), n.attributes)
                    for n in known.values()
                ]
                named = {short for n in known.values() for short in short_name(n.name)}
                others = self._by_name.operators((rank, number))
                found += [
                    Node(self, rank, number, name, kind) for name, kind in sorted(others) if name not in named
                ]
        return found

    @cached_property
    def _records(self) -> dict[tuple[int, int, int], list[Record]]:
        return {(s.rank, s.graph, s.iteration): s.records() for s in self.dump.steps}

    @cached_property
    def _by_name(self) -> RecordIndex:
        return RecordIndex(self._records)

    @cached_property
    def node_index(self) -> NodeIndex:
        """What the nodes read, and which are called alike."""
        return NodeIndex(self.nodes)

    def tensors_of(self, node: Node, iterations: Collection[int] | None = None) -> list[DebuggerTensor]:
        """All tensors of a node that were dumped, in these iterations or in all."""
        names = short_name(node.name) | {node.name}
        return [
            DebuggerTensor(node, r.io, r.slot, iteration, r)
            for iteration, r in self._by_name.find((node.rank, node.graph), names, iterations)
        ]

    # ---- selecting

    def select_nodes(
        self,
        query_string: str,
        use_regex: bool = False,
        select_by: str = "node_name",
        ranks: Numbers = None,
        case_sensitive: bool = True,
    ) -> list[Node]:
        """The nodes whose full name, or a line of whose stack (`select_by` "code_stack"), has `query_string`
        in it.

        Errors: ValueError for another `select_by`, a regular expression that is none, or a rank that was not
        dumped; TypeError for another type.
        """
        if not isinstance(query_string, str):
            raise errors.type_error("select_nodes", f"query_string must be a str, but got {query_string!r}")
        if select_by not in ("node_name", "code_stack"):
            raise errors.one_of(
                select_by, ("node_name", "code_stack"), subject="select_nodes", what="select_by"
            )
        try:
            pattern = re.compile(
                query_string if use_regex else re.escape(query_string), 0 if case_sensitive else re.IGNORECASE
            )
        except re.error as cause:
            raise errors.value_error(
                "select_nodes", f"{query_string!r} is no regular expression: {cause}"
            ) from None
        wanted = chosen(ranks, "ranks", self.get_ranks())
        return [
            node
            for node in self.nodes
            if (wanted is None or node.rank in wanted)
            and any(
                pattern.search(t) for t in ([node.name] if select_by == "node_name" else map(str, node.stack))
            )
        ]

    def select_tensors(
        self,
        query_string: str,
        use_regex: bool = False,
        select_by: str = "node_name",
        iterations: Numbers = None,
        ranks: Numbers = None,
        slots: Numbers = None,
        case_sensitive: bool = True,
    ) -> list[DebuggerTensor]:
        """The outputs of the nodes that `select_nodes` finds.  Errors: as there; ValueError for an iteration
        that was not dumped.
        """
        found = self.select_nodes(query_string, use_regex, select_by, ranks, case_sensitive)
        steps = chosen(iterations, "iterations", self.get_iterations())
        return [t for node in found for t in node.get_output_tensors(slots, steps)]

    def get_input_nodes(self, node: Node) -> list[Node]:
        """The nodes that `node` reads."""
        return self.node_index.read_by(node)

    def get_output_nodes(self, node: Node) -> list[Node]:
        """The nodes that read what `node` makes."""
        return self.node_index.readers_of(node)

    def list_affected_nodes(self, tensor: DebuggerTensor) -> list[Node]:
        """The nodes that read the tensor."""
        return self.get_output_nodes(tensor.node)

    # ---- one operator

    def rerun_operator(
        self,
        node: Node,
        iteration: int,
        edits: Sequence[Mapping[str, Any]] = (),
        isolated: bool = False,
    ) -> list[tuple[np.ndarray, np.ndarray | None]]:
        """Run an operator of an iteration once more: (made, dumped or None) of each output.

        `edits` of its inputs: {"slot": 0, "index": "[0, 2:5]", or "" for all of it, "value": a number or
        nested lists of them}. `isolated`: in a process of its own, for dumps of others, whose operators may
        crash, hang or take all memory: it has 60 s and, on Linux, 8 GiB, and what it raises is a ValueError.
        Errors: ValueError if the dump has not what that needs, which dumps of inputs and outputs by this
        library have, or for edits that do not fit; what the operator raises.
        """
        return rerun_recorded(node, iteration, edits, isolated)

    def operator_script(self, node: Node, iteration: int) -> str:
        """A Python script that runs the operator alone, on its dumped inputs, and tells whether it makes what
        was dumped.

        Errors: ValueError, as of `rerun_operator`, and for more than 64 MiB of tensors.
        """
        return script_of_recorded(node, iteration)

    # ---- judging

    def check_watchpoints(
        self, watchpoints: Iterable[Watchpoint], error_on_no_value: bool = False
    ) -> list[WatchpointHit]:
        """What hits, or could not be checked. With `error_on_no_value` tensors of which only statistics are
        there are told of, too, with error code 32.
        """
        found = []
        for point in watchpoints:
            wanted = condition(point.condition.condition_id)
            for tensor in point.tensors:
                hit = check_tensor(tensor, wanted, point.condition.values)
                is_told = hit.error_code != NO_VALUE or error_on_no_value
                if hit.hit or (hit.error_code and is_told):
                    found.append(WatchpointHit(tensor, point.condition, hit))
        return found

    def trace_nonfinite(self, iteration: int | None = None) -> list[dict[str, Any]]:
        """All outputs that are not finite, operators whose inputs are all finite first, in order of
        execution.

        Each is a dict: op_full_name, op_type, slot, iteration, kind ("nan", "inf", "-inf"), count, size,
        born, rank, graph, and source, a list of ``file:line code``.
        """
        return [found.as_dict() for found in trace_nonfinite(self.dump, iteration)]

    def select_tensor_statistics(self, iterations: Numbers = None, ranks: Numbers = None) -> Rows:
        """The statistics of all dumped tensors: {rank: {iteration: {"name:io:slot": [row]}}} with a row for
        each time that it was dumped, which has the columns of ``statistic.csv``.

        Errors: ValueError for a rank or iteration that was not dumped.
        """
        steps = chosen(iterations, "iterations", self.get_iterations())
        return rows_of(self._records, steps, chosen(ranks, "ranks", self.get_ranks()))

    def summary_statistics(
        self, statistics: Rows, overflow_value: float = 65500, out_path: str | os.PathLike = "./"
    ) -> Path:
        """Write a table of what `select_tensor_statistics` gives, ``statistics_summary.csv``: for each tensor
        how often it had infinities, NaN, finite values beyond `overflow_value`, none of these, and the
        extremes over all.
        """
        return write_summary(statistics, overflow_value, out_path)
