"""What the text interface looks at: a dump in a folder, or (`service.py`) a session of a service."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from mycelia.debug.analyzer import DebuggerTensor, DumpAnalyzer, Node
from mycelia.debug.checking import check_tensor
from mycelia.debug.conditions import Condition, Hit
from mycelia.debug.operators import different
from mycelia.debug.reading.folders import Dump
from mycelia.debug.reading.nonfinite import NonFinite, counted, trace_nonfinite
from mycelia.engine.base import errors

_MOST_ROWS, _MOST_COLUMNS = 100, 30  # of an output that ran again

#: Number of the watchpoint, tensor, what it hit.
Found = tuple[int, DebuggerTensor, Hit]


@dataclass
class Watch:
    """A watchpoint: a condition with its parameters, on nodes."""

    condition: Condition
    given: dict[str, Any]
    nodes: list[Node] = field(default_factory=list)


class Source(ABC):
    """Nodes, values and watchpoints, by rank and iteration, and which iteration is looked at.

    `title`: what is looked at. `unit`: what an iteration is called. Errors of all: ValueError.
    """

    title: str
    about: str  # the same in words
    unit = "iteration"
    is_live = False  # whether more iterations come when one goes on
    iteration: int
    watches: dict[int, Watch]

    def refresh(self, rank: int) -> None:  # noqa: B027  a hook
        """Learn where things are now: before each command."""

    def where(self) -> str:
        """Which iteration is looked at, and what of a training must be known there."""
        return f"{self.unit} {self.iteration}"

    def why_empty(self) -> str:
        """Why a tensor that should be there may have no elements; "" if there is nothing to be said."""
        return ""

    # ---- what there is

    @abstractmethod
    def get_ranks(self) -> list[int]:
        """All ranks, least first."""

    @abstractmethod
    def get_iterations(self, rank: int) -> list[int]:
        """Those that have values."""

    @abstractmethod
    def graphs(self, rank: int, iteration: int) -> set[int]:
        """Numbers of those that ran in an iteration."""

    @abstractmethod
    def nodes(self, rank: int) -> list[Node]:
        """In order of execution."""

    @abstractmethod
    def tensors_of(self, node: Node, iterations: Any = None) -> list[DebuggerTensor]:
        """What a node read and made, in these iterations or in all: what its `Node` asks."""

    @abstractmethod
    def health(self, rank: int, iteration: int) -> dict[str, int]:
        """See `counted`."""

    @abstractmethod
    def trace(self, rank: int, iteration: int) -> list[NonFinite]:
        """Outputs of an iteration that are not finite, what was born so first."""

    # ---- moving

    @abstractmethod
    def go(self, rank: int, iteration: int) -> None:
        """Look at another iteration."""

    @abstractmethod
    def forward(self, rank: int, count: int) -> None:
        """Go on by some iterations; within one, its rest is the first."""

    @abstractmethod
    def to_hit(self, rank: int) -> bool:
        """Go on to the next iteration in which a watchpoint hits; False if there is none."""

    # ---- watchpoints

    @abstractmethod
    def watch(self, wanted: Condition, given: dict[str, Any], nodes: list[Node]) -> None:
        """A new watchpoint."""

    @abstractmethod
    def unwatch(self, number: int | None) -> None:
        """Take one away, or all."""

    @abstractmethod
    def hits(self, rank: int) -> list[Found]:
        """What hits watchpoints in the iteration that is looked at, or could not be checked."""

    # ---- one operator

    @abstractmethod
    def rerun(self, node: Node, edits: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Outputs of an operator that runs once more: `slot`, `dtype`, `shape`, `value` and `recorded`, the
        first of many, `different`.  edits: [{"slot", "index", "value"}].
        """

    @abstractmethod
    def script(self, node: Node) -> str:
        """An operator as a script that runs alone."""

    # ---- what only a running training can

    def to_node(self, rank: int, node: Node | None) -> None:
        """Run to the end of an operator, of the next one if none is named."""
        self._only_running("node")

    def pause(self, rank: int) -> None:
        """Wait after the present step."""
        self._only_running("pause")

    def terminate(self, rank: int) -> None:
        """End the training after the present step."""
        self._only_running("terminate")

    def edit(self, node: Node, index: str, value: Any) -> None:
        """Change a Parameter of the training."""
        self._only_running("set")

    def dump(self, rank: int) -> tuple[str, int]:
        """Write the step that is looked at as a data dump: the folder, on the machine of the training, and
        the step.
        """
        self._only_running("dump")

    def dump_folder(self) -> Dump:
        """The dump, of a source that is one."""
        raise errors.value_error("index", "this is for dumps, not for running trainings or services")

    def _only_running(self, command: str) -> NoReturn:
        raise errors.value_error(
            command, "a dump does not run: this is for running trainings",
            hint="mycelia-debug http://127.0.0.1:8080, of a service that debugs one",
        )  # fmt: skip


class DumpSource(Source):
    """A dump in a folder. Iterations are those of its files, counted from 0."""

    def __init__(self, analyzer: DumpAnalyzer) -> None:
        self.analyzer = analyzer
        self.title, self.about = str(analyzer.dump.folder), "this dump"
        self.iteration = self.get_iterations(self.get_ranks()[0])[0]
        self.watches = {}
        self._traces: dict[int, list[NonFinite]] = {}

    def dump_folder(self) -> Dump:
        return self.analyzer.dump

    def get_ranks(self) -> list[int]:
        return self.analyzer.get_ranks()

    def get_iterations(self, rank: int) -> list[int]:
        return self.analyzer.get_iterations([rank])

    def graphs(self, rank: int, iteration: int) -> set[int]:
        return {s.graph for s in self.analyzer.dump.steps if (s.rank, s.iteration) == (rank, iteration)}

    @cached_property
    def _nodes(self) -> dict[int, list[Node]]:
        found: dict[int, list[Node]] = {}
        for node in self.analyzer.nodes:
            found.setdefault(node.rank, []).append(node)
        return found

    def nodes(self, rank: int) -> list[Node]:
        return self._nodes.get(rank, [])

    def tensors_of(self, node: Node, iterations: Any = None) -> list[DebuggerTensor]:
        return self.analyzer.tensors_of(node, iterations)

    def health(self, rank: int, iteration: int) -> dict[str, int]:
        steps = [s for s in self.analyzer.dump.steps if (s.rank, s.iteration) == (rank, iteration)]
        outputs = [record for step in steps for record in step.records() if record.io == "output"]
        return counted([record.nonfinite() for record in outputs])

    def trace(self, rank: int, iteration: int) -> list[NonFinite]:
        if iteration not in self._traces:
            self._traces[iteration] = trace_nonfinite(self.analyzer.dump, iteration)
        return [row for row in self._traces[iteration] if row.rank == rank]

    def go(self, rank: int, iteration: int) -> None:
        known = self.get_iterations(rank)
        if iteration not in known:
            shown = ", ".join(map(str, known[:20])) + (", ..." if len(known) > 20 else "")
            raise errors.value_error("step", f"iteration {iteration} was not dumped; there are {shown}")
        self.iteration = iteration

    def forward(self, rank: int, count: int) -> None:
        later = [one for one in self.get_iterations(rank) if one > self.iteration]
        if len(later) < count:
            there = f"are only {len(later)} iterations" if later else "is no iteration"
            raise errors.value_error("step", f"there {there} after this one")
        self.iteration = later[count - 1]

    def to_hit(self, rank: int) -> bool:
        for iteration in (one for one in self.get_iterations(rank) if one > self.iteration):
            if self._hits(rank, iteration):
                self.iteration = iteration
                return True
        return False

    def watch(self, wanted: Condition, given: dict[str, Any], nodes: list[Node]) -> None:
        self.watches[max(self.watches, default=0) + 1] = Watch(wanted, given, nodes)

    def unwatch(self, number: int | None) -> None:
        for one in list(self.watches) if number is None else [number]:
            del self.watches[one]

    def hits(self, rank: int) -> list[Found]:
        return self._hits(rank, self.iteration)

    def rerun(self, node: Node, edits: list[dict[str, Any]]) -> list[dict[str, Any]]:
        try:
            found = self.analyzer.rerun_operator(node, self.iteration, edits, isolated=True)
        except errors.MyceliaError:
            raise
        except Exception as cause:  # whatever the operator raises of such inputs
            raise errors.value_error("rerun", f"{type(cause).__name__}: {cause}") from None
        return [
            {
                "slot": slot, "dtype": str(made.dtype), "shape": list(made.shape), "value": _first(made),
                "recorded": None if before is None else _first(before),
                "different": None
                if before is None or before.shape != made.shape
                else different(made, before),
            }
            for slot, (made, before) in enumerate(found)
        ]  # fmt: skip

    def script(self, node: Node) -> str:
        return self.analyzer.operator_script(node, self.iteration)

    def _hits(self, rank: int, iteration: int) -> list[Found]:
        found = []
        for key, watch in self.watches.items():
            for node in watch.nodes:
                for tensor in node.get_output_tensors(iterations=[iteration]):
                    hit = check_tensor(tensor, watch.condition, watch.given)
                    if hit.hit or hit.error_code:
                        found.append((key, tensor, hit))
        return found


def _first(array: np.ndarray) -> Any:
    """Nested lists of the first rows and columns."""
    part = array[(0,) * max(0, array.ndim - 2)]
    return part[tuple([slice(_MOST_ROWS), slice(_MOST_COLUMNS)][-part.ndim :] if part.ndim else ())].tolist()
