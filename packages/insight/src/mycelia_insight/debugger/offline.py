"""Sessions over dumps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mycelia.debug.checking import check_tensor
from mycelia.debug.reading.nonfinite import NonFinite, counted, trace_nonfinite
from mycelia_insight.debugger import DebuggerTensor, DumpAnalyzer, Node
from mycelia_insight.debugger.nodes import Tree
from mycelia_insight.debugger.session import Session, Watch, whole_number
from mycelia_insight.debugger.wrong import Wrong, told

T = TypeVar("T")


class DumpSource:
    """A dump in `folder`. Step 1 is iteration 0.  Errors: ValueError if no dump lies there."""

    version = 0

    def __init__(self, folder: Path) -> None:
        self.analyzer = DumpAnalyzer(folder)
        self._lock = threading.Lock()
        self._traces: dict[int, list[NonFinite]] = {}
        self._health: dict[tuple[int, int], dict[str, Any]] = {}

    @property
    def nodes(self) -> Sequence[Node]:
        return self.analyzer.nodes

    def get_ranks(self) -> list[int]:
        return self.analyzer.get_ranks()

    @cached_property
    def _iterations(self) -> list[int]:
        return self.analyzer.get_iterations()

    def steps(self) -> tuple[int, int]:
        return self._iterations[0] + 1, self._iterations[-1] + 1

    def runs(self, rank: int) -> set[tuple[int, int]]:
        return {(s.iteration + 1, s.graph) for s in self.analyzer.dump.steps if s.rank == rank}

    def health(self, rank: int, step: int) -> dict[str, Any]:
        with self._lock:
            if (rank, step) not in self._health:
                self._health[rank, step] = self._count(rank, step)
            return self._health[rank, step]

    def _count(self, rank: int, step: int) -> dict[str, Any]:
        steps = [s for s in self.analyzer.dump.steps if (s.rank, s.iteration + 1) == (rank, step)]
        if not steps:
            raise Wrong("5054B081", f"nothing was dumped of rank {rank} in step {step}")
        outputs = [record for one in steps for record in one.records() if record.io == "output"]
        return counted([record.nonfinite() for record in outputs])

    def trace(self, rank: int, step: int) -> list[NonFinite]:
        with self._lock:
            if step not in self._traces:
                try:
                    self._traces[step] = trace_nonfinite(self.analyzer.dump, step - 1)
                except ValueError as cause:
                    raise Wrong("5054B081", told(cause)) from None
            return [row for row in self._traces[step] if row.rank == rank]

    def why_empty(self, tensor: DebuggerTensor) -> str:
        return "there are only statistics of it, or nothing"

    def load(self, tensors: Sequence[DebuggerTensor]) -> None:
        """They are files: each is read when it is wanted."""


class OfflineSession(Session):
    """A dump that is looked at.  Errors: ValueError if no dump lies in `folder`."""

    def __init__(self, folder: Path) -> None:
        source = DumpSource(folder)
        super().__init__(source, source.steps()[0])
        self._moving = threading.RLock()  # hits are of one step, whichever pages go on

    def go(self, mode: str, level: str, steps: Any, node: Node | None = None, rank: int = 0) -> None:
        with self._moving:
            self._go(mode, level, steps)

    def _go(self, mode: str, level: str, steps: Any) -> None:
        if mode == "reset":
            self.show(whole_number(steps, "steps", 1, self.last_step))
        elif mode == "continue" and level == "recheck" and steps is None:
            self.recheck()
        elif mode == "continue":
            count = whole_number(steps if steps is not None else 1, "steps", -1, 2**31 - 1)
            self._advance(count, until_hit=level == "recheck")
        elif mode not in ("pause", "terminate"):
            raise Wrong("5054B183", f"mode must be continue, pause, terminate or reset, but is {mode!r}")

    def _advance(self, count: int, until_hit: bool) -> None:
        target = self.last_step if count < 0 else min(self.last_step, self.step + count)
        while self.step < target:
            self.show(self.step + 1)
            if until_hit and any(self.hits.values()):
                break

    def recheck(self) -> None:
        with self._moving:
            changes = self._changes
            self.hits = {rank: self._hits_of(tree) for rank, tree in self.trees.items()}
            with self._watching:
                if changes == self._changes:  # else another page has changed watchpoints
                    self.is_outdated = False
        self.tell()

    def _hits_of(self, tree: Tree) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        watching: dict[str, list[Watch]] = {}
        for watch in list(self.watches.values()):
            for name in dict.fromkeys(watch.nodes):
                watching.setdefault(name, []).append(watch)
        for name, node in tree.nodes.items():
            if name not in watching:
                continue
            points: dict[int, list[dict[str, Any]]] = {}
            for tensor in node.get_output_tensors(iterations=[self.step - 1]):
                for watch in watching[name]:
                    points.setdefault(tensor.slot, []).extend(self._checked(watch, tensor))
            row = self.hit_row(name, node, {slot: hits for slot, hits in points.items() if hits})
            found += [row] if row else []
        return found

    # ---- one operator

    def rerun(
        self, name: str, graph: str, rank: int, edits: Any
    ) -> list[tuple[np.ndarray, np.ndarray | None]]:
        if not isinstance(edits, list) or not all(isinstance(one, dict) for one in edits):
            raise Wrong("5054B081", "edits must be a list of {slot, index, value}")
        if not all(isinstance(one.get("index", ""), str) for one in edits):
            raise Wrong("5054B081", "the index of an edit must be a text such as [0, :]")
        node = self.node(name, graph, rank)
        return _run(lambda: self.source.analyzer.rerun_operator(node, self.step - 1, edits, isolated=True))

    def script(self, name: str, graph: str, rank: int) -> str:
        node = self.node(name, graph, rank)
        return _run(lambda: self.source.analyzer.operator_script(node, self.step - 1))

    def _checked(self, watch: Watch, tensor: DebuggerTensor) -> list[dict[str, Any]]:
        hit = check_tensor(tensor, watch.condition, watch.given)
        if not (hit.hit or hit.error_code):
            return []
        return [watch.point({p.name: p.actual for p in hit.parameters if p.hit}, hit.error_code, hit.reason)]


def _run(what: Callable[[], T]) -> T:
    """Errors: Wrong for whatever the dump lacks, or the operator raises of such inputs."""
    try:
        return what()
    except ValueError as cause:
        raise Wrong("5054B081", told(cause)) from None
    except Exception as cause:
        raise Wrong("5054B081", f"{type(cause).__name__}: {told(cause)}") from None
