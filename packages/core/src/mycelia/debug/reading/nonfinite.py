"""Where values that are not finite were born: operators that read finite numbers and made others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mycelia.debug.dump.operator_files import RecordedOperator, is_infinite, read_operators
from mycelia.debug.reading.folders import Dump, Record, Step, short_name
from mycelia.debug.reading.ir import GraphNode, SourceLine, read_graphs
from mycelia.engine.base import errors


@dataclass(frozen=True, slots=True)
class NonFinite:
    """An output with `count` elements of a kind, "nan", "inf" or "-inf".

    `born`: all inputs are finite, or it has none; None if the dump does not tell. `stack`: the user's lines,
    the innermost first. `given`: infinities that come from numbers or constants of the code alone, as those
    of masks do; they are not born, what makes NaN of them is.
    """

    op_full_name: str
    op_type: str
    slot: int
    iteration: int
    kind: str
    count: int
    size: int
    born: bool | None
    rank: int
    graph: int
    stack: tuple[SourceLine, ...]
    given: bool = False

    @property
    def source(self) -> list[str]:
        """``file:line code`` of each line."""
        return [str(line) for line in self.stack]

    def as_dict(self) -> dict:
        found = asdict(self)
        del found["stack"]
        return {**found, "source": self.source}


def trace_nonfinite(dump: Dump, iteration: int | None = None) -> list[NonFinite]:
    """All outputs that are not finite, those born first and those given last, each group in order of
    execution.

    Errors: ValueError if the dump has statistics only, without the counts of NaN and infinities.
    """
    found: list[NonFinite] = []
    first: dict[tuple[int, int], int] = {}
    for step in dump.steps:
        first.setdefault((step.rank, step.graph), step.iteration)
    for rank, place in dump.ranks.items():
        graphs, recorded = read_graphs(place), _Recorded(place)
        latest = -1  # the step before
        is_clean = True  # whether all that was seen of this rank is finite
        for step in dump.steps:
            if step.rank == rank and iteration in (None, step.iteration):
                before = _Before(
                    step.iteration == first[rank, step.graph],
                    is_clean,
                    is_clean and latest == step.iteration - 1,
                )
                nodes = graphs.get(step.graph, {})
                of_step = list(
                    _of_step(step, nodes, recorded.operators(step.graph), before, recorded.is_ours)
                )
                is_clean, latest = is_clean and all(f.given for f in of_step), step.iteration
                found += of_step
    return by_birth(found)


def by_birth(found: Iterable[NonFinite]) -> list[NonFinite]:
    """Those born first, those given last, else in the order that they have."""
    return sorted(found, key=lambda f: 2 * f.given + (f.born is not True))


def counted(counts: Sequence[dict[str, int] | None]) -> dict[str, int]:
    """The health of a step by the counts of its outputs (see `Record.nonfinite`; None: not known):
    `tensors`, `unknown`, `bad` (tensors that are not finite), and elements by kind.
    """
    known = [count for count in counts if count is not None]
    return {
        "tensors": len(counts), "unknown": len(counts) - len(known), "bad": sum(map(bool, known)),
        **{kind: sum(count.get(kind, 0) for count in known) for kind in ("nan", "inf", "-inf")},
    }  # fmt: skip


class _Recorded:
    """What the folder of a rank says of operators, if it does. `is_ours`: this library wrote it, whose
    Parameters are as they were before what read them.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.is_ours = any((place / "graphs").glob("mycelia_operators_graph_*.json"))
        self.known: dict[int, dict[str, RecordedOperator]] = {}

    def operators(self, graph: int) -> dict[str, RecordedOperator]:
        """Full name -> operator; nothing for a file that is damaged: what it tells is only a help here."""
        if graph not in self.known:
            try:
                self.known[graph] = read_operators(self.place, graph)
            except ValueError:
                self.known[graph] = {}
        return self.known[graph]


class _Operator:
    """What a step has of one operator."""

    def __init__(self, record: Record) -> None:
        self.kind, self.name = record.kind, record.name
        self.inputs: list[Record] = []
        self.outputs: list[Record] = []


def _operators(step: Step) -> dict[tuple[str, str], _Operator]:
    found: dict[tuple[str, str], _Operator] = {}
    for record in step.records():
        operator = found.setdefault((record.kind, record.name), _Operator(record))
        (operator.inputs if record.io == "input" else operator.outputs).append(record)
    return found


class _Before(NamedTuple):
    """What was before a step. `is_first`: no step of this graph was dumped, so that what its Parameters have
    may come from anywhere; `is_clean`: all that was dumped is finite, so that an argument is not to blame on
    it; `is_followed`: so is the step right before, and no operator made what a Parameter has.
    """

    is_first: bool
    is_clean: bool
    is_followed: bool

    def came_in(self, name: str) -> bool | None:
        """Whether an argument or Parameter that a step begins with was born outside of the graph; None: not
        known, since another graph may have made it of what was not finite there.
        """
        is_argument = re.fullmatch(r"inputs\d+", name) is not None
        if self.is_followed or (self.is_clean and (self.is_first or is_argument)):
            return True
        return None if self.is_first else False


def _of_step(
    step: Step,
    nodes: dict[str, GraphNode],
    recorded: dict[str, RecordedOperator],
    before: _Before,
    is_ours: bool,
) -> Iterator[NonFinite]:
    """All outputs of a step that are not finite, in order of execution.

    In a dump of ours Parameters are as they were before the step; in MindSpore's, at its end, as after it.
    """
    by_name = {short: node for node in nodes.values() for short in short_name(node.name)}
    bad: dict[str, bool] = {}  # full name -> whether an output is not finite
    given: set[str] = set()  # full names of operators whose infinities are the code's own
    has_begun = False
    for operator in _operators(step).values():
        node = by_name.get(operator.name)
        name = node.name if node else operator.name
        has_begun = has_begun or operator.kind != "Parameter"
        counts = [(record, _known(record)) for record in operator.outputs]
        bad[name] = any(c for _, c in counts)
        if not bad[name]:
            continue
        if operator.kind == "Parameter":
            born: bool | None = (is_ours or not has_begun) and before.came_in(name)
        else:
            born = _is_born(operator, node, bad)
            if _reads_given(operator, node, recorded.get(name), bad, given):
                born = any("nan" in kinds for _, kinds in counts)
                if not born:
                    given.add(name)
        for record, kinds in counts:
            for kind, count in kinds.items():
                yield NonFinite(
                    name, operator.kind, record.slot, step.iteration, kind, count, _size(record), born,
                    step.rank, step.graph, tuple(node.stack) if node else (), name in given,
                )  # fmt: skip


def _reads_given(
    operator: _Operator,
    node: GraphNode | None,
    recorded: RecordedOperator | None,
    bad: dict[str, bool],
    given: set[str],
) -> bool:
    """Whether what it reads is finite but for infinities that are numbers or constants of the code, or were
    made of such ones alone.
    """
    feeds = node.inputs if node else ()
    if recorded is None or any(bad.get(name) and name not in given for name in feeds):
        return False
    found = is_infinite(recorded.attrs, recorded.numbers) or any(name in given for name in feeds)
    for record in operator.inputs:
        kinds = _known(record)
        if "nan" in kinds:
            return False
        if kinds and not (record.slot in recorded.constants or _is_made(node, given) or _is_mask(record)):
            return False
        found = found or bool(kinds)
    return found


def _is_made(node: GraphNode | None, given: set[str]) -> bool:
    return node is not None and any(name in given for name in node.inputs)


def _is_mask(record: Record) -> bool:
    """Whether it is 0 but for infinities, as masks are that are added."""
    array = record.array()
    return array is not None and not array[np.isfinite(array)].any()


def _known(record: Record) -> dict[str, int]:
    found = record.nonfinite()
    if found is None:
        raise errors.value_error(
            "dump",
            "it has statistics without the counts of NaN and infinities",
            hint="dump with 'statistic_category': ['max', 'min', 'nan count', 'negative inf count', "
            "'positive inf count']",
        )
    return found


def _size(record: Record) -> int:
    numbers = record.statistics()
    return numbers.count if numbers else 0


def _is_born(operator: _Operator, node: GraphNode | None, bad: dict[str, bool]) -> bool | None:
    if operator.inputs:
        return not any(_known(record) for record in operator.inputs)
    if node is None or not all(name in bad for name in node.inputs):
        return None
    return not any(bad[name] for name in node.inputs)
