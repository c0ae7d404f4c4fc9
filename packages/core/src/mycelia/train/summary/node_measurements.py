"""What the nodes of a compiled graph cost in a training, and which of them made values that are not finite.

Written beside the event file as ``node_measurements.SECONDS.json``, which Mycelia Insight reads:

    {"version": 1, "graph": name, "steps": N, "unattributed": ns, "watched": whether NaN was looked for,
     "nodes": {full name: {"calls": n, "nanoseconds": n, "in": full name,
                           "step": n, "nan": n, "-inf": n, "inf": n, "first": true,
                           "within": [{"name": full name, "nan": n, "-inf": n, "inf": n, "first": true}]}}}

Calls are those of the `steps` that were timed, nanoseconds those of a step, the median of them. ``in``: the
node that has the time of this one, with which the compiler fused it. ``step`` is the first step in which the
node's outputs were not finite, the counts are the elements of that step; they are there only if it was looked
for. ``first``: in the first step of all, nothing that was computed and that it reads was not finite, nor was
it an argument or Parameter with which an earlier node has explained itself. ``within``: the operators of its
branches or its loop of which this is so, those first with which it began, by the names that dumps give them.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from statistics import median
from typing import Any

from mycelia.engine import _C
from mycelia.engine.base import log
from mycelia.engine.compile import measuring
from mycelia.engine.compile.timing import Timing
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.observing import Operator
from mycelia.engine.observing.operator_names import operators_of
from mycelia.engine.ops.cost import cost
from mycelia.engine.ops.type_names import type_name
from mycelia.io.files import write_text
from mycelia.train.summary.graph import node_names

TIMED_STEPS = 10
_VERSION = 1
_MOST_WITHIN = 20  # operators of a node's branches that are told
_KINDS = ("nan", "-inf", "inf")


def path_beside(event_file: str) -> str:
    """Of the file beside this event file."""
    found = re.search(r"summary\.(\d+)", os.path.basename(event_file))
    return os.path.join(os.path.dirname(event_file), f"node_measurements.{found[1] if found else 0}.json")


def programs_of(graph: Graph) -> list[_C.Program]:
    """The programs that run `graph`."""
    return [made for made in graph.cache.values() if isinstance(made, _C.Program) and made.nodes]


class NodeTimes:
    """Times the programs of `graph` from now on, step by step, until `stop`."""

    def __init__(self, graph: Graph) -> None:
        self._timings = [Timing(program) for program in programs_of(graph)]
        self._read: list[list[list[tuple[int, int]]]] = [[] for _ in self._timings]

    def step(self) -> None:
        """After each step."""
        for timing, read in zip(self._timings, self._read):
            read.append(timing.read())

    def stop(self) -> list[tuple[Node, int, int]]:
        """(instruction's node, calls, nanoseconds), those of branches and loops in the node's own.

        The time is the median of the steps: one in which the machine did something else does not count.
        Without a `step` all is one.
        """
        found = []
        for timing, read in zip(self._timings, self._read):
            last = timing.stop()
            for place, (node, (calls, _)) in enumerate(zip(timing.program.nodes, last)):
                spent = [0, *(one[place][1] for one in read or [last])]
                found.append((node, calls, int(median(b - a for a, b in pairwise(spent)))))
        return found


class NonFiniteNodes:
    """Notes which instructions of any program made values that are not finite, and when first.

    `step`: gives the number of the step that runs.
    """

    def __init__(self, step: Callable[[], int]) -> None:
        self._step = step
        self._stack = ExitStack()
        self.found: dict[Node, dict[str, int]] = {}

    def start(self) -> None:
        self._stack.enter_context(measuring.measuring(self._measured))

    def stop(self) -> None:
        self._stack.close()

    def _measured(self, run: measuring.Measured) -> None:
        if run.is_finite:
            return
        makers = (node for node in run.program.nodes for _ in node.outputs)
        step = self._step()
        for node, counts in zip(makers, run.nonfinite):
            if counts.any():
                noted = self.found.setdefault(node, {"step": step, **dict.fromkeys(_KINDS, 0)})
                if noted["step"] == step:
                    for kind, count in zip(_KINDS, counts):
                        noted[kind] += int(count)


def measured(
    graph: Graph,
    times: Iterable[tuple[Node, int, int]],
    steps: int,
    nonfinite: dict[Node, dict[str, int]] | None,
) -> dict[str, Any]:
    """The content of the file. `times`: as `NodeTimes.stop` gives them, of `steps` steps; `nonfinite`: the
    instructions of any programs with what was noted of them, None if nobody looked; those that are not of
    `graph` are left out.
    """
    programs = programs_of(graph)
    names, of = node_names(graph), _Origins(graph, programs)
    rows: dict[str, dict[str, Any]] = defaultdict(dict)
    unattributed = 0
    for instruction, calls, spent in times:
        if not calls:
            continue
        owner, others = of.share(instruction)
        if owner is None:
            unattributed += spent
            continue
        row = rows[names[owner]]
        row["calls"] = max(row.get("calls", 0), calls)
        row["nanoseconds"] = row.get("nanoseconds", 0) + spent
        for other in others:
            rows[names[other]].setdefault("in", names[owner])
    firsts = _firsts(programs, nonfinite or {})
    operators = operators_of(graph)
    for instruction, noted in (nonfinite or {}).items():
        owner = of.last(instruction)
        if owner is not None:
            rows[names[owner]] |= noted
            is_first = instruction in firsts
            if is_first:
                rows[names[owner]]["first"] = True
            if within := list(_within(owner, instruction, is_first, nonfinite or {}, operators)):
                within.sort(key=lambda one: "first" not in one)
                rows[names[owner]]["within"] = within[:_MOST_WITHIN]
    return {
        "version": _VERSION, "graph": graph.name, "steps": steps, "unattributed": unattributed,
        "watched": nonfinite is not None, "nodes": dict(rows),
    }  # fmt: skip


def _within(
    owner: Node,
    instruction: Node,
    is_first: bool,
    nonfinite: dict[Node, dict[str, int]],
    operators: dict[Node, Operator],
) -> Iterator[dict[str, Any]]:
    """What was not finite in the regions of a node, which `instruction` runs, in the step that it tells of.
    `is_first`: nothing that it reads was.
    """
    for region, lowered in zip(owner.regions, instruction.regions):
        programs = programs_of(lowered)
        of, firsts = _Origins(region, programs), _firsts(programs, nonfinite) if is_first else set()
        for inner in (node for program in programs for node in program.nodes if node in nonfinite):
            found, noted = of.last(inner), nonfinite[inner]
            if found is None or noted["step"] != nonfinite[instruction]["step"]:
                continue
            if found.regions:
                yield from _within(found, inner, inner in firsts, nonfinite, operators)
            else:
                first = {"first": True} if inner in firsts else {}
                yield {"name": operators[found].name, **{kind: noted[kind] for kind in _KINDS}, **first}


def _firsts(programs: list[_C.Program], nonfinite: dict[Node, dict[str, int]]) -> set[Node]:
    """The instructions with which it began, in the first step in which one of these programs had any."""
    steps = [nonfinite[node]["step"] for program in programs for node in program.nodes if node in nonfinite]
    found: set[Node] = set()
    for program in programs:
        ran, suspects = set(program.nodes), set()
        bad = {node for node in program.nodes if node in nonfinite and nonfinite[node]["step"] == min(steps)}
        for node in program.nodes:
            if node in bad:
                makers, given = _reads(node, ran)
                if not makers & bad and not given & suspects:
                    found.add(node)
                    suspects |= given
    return found


def _reads(node: Node, ran: set[Node]) -> tuple[set[Node], set[Value]]:
    """(instructions, and parameters of the graph, whose values an instruction reads, through views)."""
    makers, given, seen, stack = set(), set(), set(), list(node.inputs)
    while stack:
        value = stack.pop()
        if value is None or value.is_constant or value in seen:
            continue
        seen.add(value)
        if value.producer is None:
            given.add(value)
        elif value.producer in ran:
            makers.add(value.producer)
        else:
            stack += value.producer.inputs
    return makers, given


class NodeRecorder:
    """Measures a training and writes the file beside `event_file`: times of `TIMED_STEPS` steps after the
    first one, if `times`, and what is not finite in any step, if `nonfinite`. `step` gives the step's number.

    What cannot be written is a warning: no training ends because of it.
    """

    def __init__(self, event_file: str, times: bool, nonfinite: bool, step: Callable[[], int]) -> None:
        self._path, self._step = path_beside(event_file), step
        self._timer: NodeTimes | None = None
        self._graph: Graph | None = None
        self._begun = 0
        self._times: list[tuple[Node, int, int]] = []
        self._timed_steps = 0
        self._nonfinite = NonFiniteNodes(step) if nonfinite else None
        self._written = -1  # instructions that were not finite
        #: Whether `step_end` has anything to do.
        self.is_timing = times
        if self._nonfinite is not None:
            self._nonfinite.start()

    def step_end(self, graph: Graph | None) -> None:
        """After each step while times are taken. `graph`: that of the step, None if it is not compiled."""
        step = self._step()
        if self._timer is None:
            if graph is None:
                self.is_timing = False
            else:
                self._graph, self._begun, self._timer = graph, step, NodeTimes(graph)
        else:
            self._timer.step()
            if step - self._begun >= TIMED_STEPS:
                self._end_times()
                self._write()

    def note(self, graph: Graph | None) -> None:
        """Write what was found since, if anything was. `graph`: that of the training."""
        if self._graph is None:
            self._graph = graph
        if self._nonfinite is not None and len(self._nonfinite.found) != self._written:
            self._write()

    def close(self, graph: Graph | None) -> None:
        """At the end, also by an error."""
        if self._nonfinite is not None:
            self._nonfinite.stop()
        if self._timer is not None:
            self._end_times()
            self._graph = self._graph or graph
            self._write()
        else:
            self.note(graph)

    def _end_times(self) -> None:
        assert self._timer is not None
        self._times, self._timed_steps = self._timer.stop(), self._step() - self._begun
        self._timer, self.is_timing = None, False

    def _write(self) -> None:
        if self._graph is None:
            return
        found = None if self._nonfinite is None else dict(self._nonfinite.found)
        content = measured(self._graph, self._times, self._timed_steps, found)
        self._written = len(found or ())
        try:
            write_text(self._path, json.dumps(content))
        except OSError as error:
            log.logger(__name__).warning("what nodes cost is not recorded: %s", error)


class _Origins:
    """Which nodes of a graph the instructions of its programs come from.

    Passes keep the place in the code that a node comes from, and what a fused one was made of. Nodes of one
    place and type are told apart by what they make and by the Parameters that they read, then by their order.
    """

    def __init__(self, graph: Graph, programs: list[_C.Program]) -> None:
        self._of: dict[Node, Node] = {}
        for program in programs:
            self._match(graph, [part for node in program.nodes for part in (node.parts or (node,))])

    def _match(self, graph: Graph, parts: list[Node]) -> None:
        free, left = dict.fromkeys(graph.nodes), parts
        for key in (_exact, _of_place, _of_scope):
            waiting: dict[Hashable, deque[Node]] = defaultdict(deque)
            for node in free:
                waiting[key(node)].append(node)
            missed = []
            for part in left:
                if fitting := waiting.get(key(part)):
                    self._of[part] = found = fitting.popleft()
                    free.pop(found)
                else:
                    missed.append(part)
            left = missed
        # What a pass put in, as a copy into another layout, belongs to the operator of its place.
        at: dict[Hashable, Node] = {}
        for node in graph.nodes:
            if node.location is not None:
                at.setdefault(id(node.location), node)
                at.setdefault(_of_place(node), node)
        for part in left:
            owner = at.get(_of_place(part)) or at.get(id(part.location))
            if owner is not None:
                self._of[part] = owner

    def share(self, instruction: Node) -> tuple[Node | None, list[Node]]:
        """(the node that gets the time of an instruction, those that were fused with it)."""
        parts = instruction.parts or (instruction,)
        found = {node: part for part in parts if (node := self._of.get(part)) is not None}
        if not found:
            return None, []
        owner = max(found, key=lambda node: _operations(found[node]))
        return owner, [node for node in found if node is not owner]

    def last(self, instruction: Node) -> Node | None:
        """The node whose output an instruction gives."""
        found = [self._of[part] for part in (instruction.parts or (instruction,)) if part in self._of]
        return found[-1] if found else None


def _operations(node: Node) -> int:
    inputs, outputs = (tuple(v and v.type for v in vs) for vs in (node.inputs, node.outputs))
    price = cost(node.op.definition, inputs, outputs, node.attrs)
    return price.flops if price else 0


def _kind(node: Node) -> str:
    return type_name(node.op, len(node.inputs[0].type.shape) if node.inputs and node.inputs[0] else 0)


def _exact(node: Node) -> Hashable:
    read = sorted(v.name for v in node.inputs if v is not None and v.producer is None and v.name)
    return id(node.location), _kind(node), tuple(v.type for v in node.outputs), tuple(read)


def _of_place(node: Node) -> Hashable:
    return id(node.location), _kind(node)


def _of_scope(node: Node) -> Hashable:
    return getattr(node.location, "scope", ""), _kind(node)
