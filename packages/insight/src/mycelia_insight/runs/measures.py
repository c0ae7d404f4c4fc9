"""Times of a run's nodes and what of theirs was not finite: files that core writes beside it, and dumps."""

from __future__ import annotations

import os
import re
import stat
import threading
from collections import OrderedDict
from dataclasses import dataclass

from mycelia_insight.records.graph import ScopeGraph
from mycelia_insight.records.graph_measures import Faults, Times, faults_of_dump, faults_of_training
from mycelia_insight.records.node_measurements import NodeMeasurements, NotFinite, parse
from mycelia_insight.runs.dumps import dumps_of
from mycelia_insight.runs.run import Run

_FILE = re.compile(r"node_measurements\.(\d{1,18})\.json")
_LARGEST = 256 << 20  # bytes of such a file
_MOST_DUMPED = 4 << 30  # bytes of a dump that are looked at
_KEPT = 8


@dataclass(frozen=True)
class DumpFaults:
    """What a dump has in its first iteration that is not finite, by operators' names.

    looked, iterations: how many iterations were looked at before it was found, and how many there are.
    """

    name: str
    looked: int
    iterations: int
    found: dict[str, NotFinite]


@dataclass(frozen=True)
class Measured:
    """What is known of a graph. dump: where faults come from, None if the training noted them."""

    times: Times | None
    steps: int
    unattributed: int  # nanoseconds of a step
    faults: Faults | None
    dump: DumpFaults | None


class Measures:
    """Files and dumps that were read, the last ones asked for."""

    def __init__(self) -> None:
        self._files: OrderedDict[tuple, NodeMeasurements] = OrderedDict()
        self._dumps: OrderedDict[tuple, DumpFaults] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, run: Run) -> tuple[bool, bool]:
        """Whether there are times of a graph of the run, and whether there is something about NaN."""
        files = self._of(run)
        watched = any(one.nonfinite is not None for one in files) or bool(dumps_of(run.folder))
        return any(one.nanoseconds for one in files), watched

    def of(self, run: Run, graph: ScopeGraph, with_faults: bool) -> Measured:
        """Of the newest files that name nodes of the graph; of the newest dump if none tells of NaN.

        Errors: ValueError for a dump that cannot be read; OSError.
        """
        names = {leaf.name for leaf in graph.leaves}
        files = [
            one for one in self._of(run) if one.graph == graph.name or not names.isdisjoint(one.nanoseconds)
        ]
        timed = next((one for one in files if not names.isdisjoint(one.nanoseconds)), None)
        times = None if timed is None else Times(graph, timed)
        faults, dump = None, None
        if with_faults:
            watched = next((one for one in files if one.nonfinite is not None), None)
            if watched is not None:
                faults = Faults(graph, faults_of_training(graph, watched))
            elif found := dumps_of(run.folder):
                dump = self._dumped(found[-1])
                faults = Faults(graph, faults_of_dump(graph, dump.found))
        steps, unattributed = (timed.steps, timed.unattributed) if timed else (0, 0)
        return Measured(times, steps, unattributed, faults, dump)

    def _of(self, run: Run) -> list[NodeMeasurements]:
        """What the run's files tell, the newest first; those that cannot be read are passed over."""
        try:
            names = [name for name in os.listdir(run.folder) if _FILE.fullmatch(name)]
        except OSError:
            return []
        found = []
        for name in sorted(names, key=lambda one: int(_FILE.fullmatch(one)[1]), reverse=True)[:_KEPT]:
            try:
                found.append(self._file(os.path.join(run.folder, name)))
            except (OSError, ValueError):
                continue
        return found

    def _file(self, path: str) -> NodeMeasurements:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(file, "rb") as opened:
            state = os.fstat(file)
            if not stat.S_ISREG(state.st_mode) or state.st_size > _LARGEST:
                raise ValueError(f"{path} is no file of at most {_LARGEST} bytes")
            key = path, state.st_mtime_ns, state.st_size, state.st_ino
            with self._lock:
                if key not in self._files:
                    self._files[key] = parse(opened.read(_LARGEST))
                    while len(self._files) > _KEPT:
                        self._files.popitem(last=False)
                self._files.move_to_end(key)
                return self._files[key]

    def _dumped(self, path: str) -> DumpFaults:
        from mycelia.debug.reading.folders import Dump

        dump = Dump(path)
        key = path, tuple((str(step.folder), step.folder.stat().st_mtime_ns) for step in dump.steps)
        with self._lock:
            if key not in self._dumps:
                self._dumps[key] = _faults(dump, _shown(os.path.basename(path)))
                while len(self._dumps) > _KEPT:
                    self._dumps.popitem(last=False)
            self._dumps.move_to_end(key)
            return self._dumps[key]


def _faults(dump, name: str) -> DumpFaults:
    """Of the first iteration that has any."""
    from mycelia.debug.reading.nonfinite import trace_nonfinite

    iterations, left, looked = dump.iterations(), _MOST_DUMPED, 0
    rows: list = []
    for iteration in iterations:
        left -= sum(_size(step.folder) for step in dump.steps if step.iteration == iteration)
        if left < 0 and looked:
            break
        looked += 1
        rows = trace_nonfinite(dump, iteration)
        if rows:
            break
    found: dict[str, NotFinite] = {}
    by_operator: dict[tuple[int, str], list] = {}
    names = {place: _names(dump, *place) for place in {(row.rank, row.graph) for row in rows}}
    for row in rows:
        operator = names[row.rank, row.graph].get(row.op_full_name, row.op_full_name)
        by_operator.setdefault((row.rank, operator), []).append(row)
    for (_, operator), of in sorted(by_operator.items(), key=lambda one: one[0]):
        counts = (sum(row.count for row in of if row.kind == kind) for kind in ("nan", "inf", "-inf"))
        # Of several ranks the first that has any is shown.
        found.setdefault(operator, NotFinite(of[0].iteration, *counts, any(row.born is True for row in of)))
    return DumpFaults(name, looked, len(iterations), found)


def _names(dump, rank: int, graph: int) -> dict[str, str]:
    """What the dump calls operators -> what core's graphs do, if it lists them: `naming` may be "2.0"."""
    from mycelia.debug.dump.naming import numbered_in_scopes
    from mycelia.debug.dump.operator_files import read_operators

    try:
        return numbered_in_scopes(read_operators(dump.ranks[rank], graph))
    except ValueError:  # it only helps
        return {}


def _shown(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _size(folder: os.PathLike) -> int:
    with os.scandir(folder) as entries:
        return sum(one.stat(follow_symlinks=False).st_size for one in entries)
