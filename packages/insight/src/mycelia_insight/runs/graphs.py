"""Graphs of a run: in its event files, and in files of graphs and models in its folder, decoded on demand."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from mycelia_insight.records import graph_node_files
from mycelia_insight.records.forward_graph import forward_graph
from mycelia_insight.records.graph import ScopeGraph
from mycelia_insight.records.graph_difference import GraphDifference
from mycelia_insight.records.graph_files import ir_message, of_mindspore, of_tensorboard
from mycelia_insight.records.graph_nodes import NodeGraph
from mycelia_insight.records.lineage import dataset_graph
from mycelia_insight.records.model_files import of_mindir, of_onnx
from mycelia_insight.runs.discovery import GRAPHS, NO_GRAPHS, event_file
from mycelia_insight.runs.kinds import Dialect, Kind
from mycelia_insight.runs.run import Run

_KEPT = 4  # graphs that stay decoded
_KEPT_DIFFERENCES = 2  # with both of their graphs
_LARGEST = 1 << 30  # bytes of a file of a graph
_MOST_FILES = 1000  # of a run


@dataclass(frozen=True)
class GraphSource:
    """A graph that can be asked for. id: `event-0`, ..., or the path of a file below the run's folder."""

    id: str
    step: int | None
    time: float  # seconds since 1970
    size: int


Decoded = TypeVar("Decoded")
Reader = Callable[[bytes], ScopeGraph]


class _Decodings(ABC, Generic[Decoded]):
    """Decoded graphs, the last ones asked for; requests for the same one wait for each other."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple, Decoded] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, run: Run, id: str, forward: bool = False) -> Decoded | None:
        """The graph called `id`; "" for the last of the event files, or else the first file.

        forward: without what trains it.

        None: there is none.  Errors: ValueError if it cannot be decoded; OSError.
        """
        known = sources(run)
        events = [source for source in known if source.step is not None]
        if not id:
            id = events[-1].id if events else known[0].id if known else ""
        source = next((source for source in known if source.id == id), None)
        if source is None:
            return None
        key = (run.id, source, forward)
        with self._lock:
            if key not in self._kept:
                with _uncollected():
                    self._kept[key] = self.decode(*_message(run, source), forward)
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]

    @abstractmethod
    def decode(self, data: bytes, read: Reader, forward: bool) -> Decoded:
        """A graph out of its message.  Errors: ValueError."""


class Graphs(_Decodings[ScopeGraph]):
    """Graphs as scopes that fold."""

    def decode(self, data: bytes, read: Reader, forward: bool) -> ScopeGraph:
        found = read(data)
        return forward_graph(found) if forward else found


class NodeGraphs(_Decodings[NodeGraph]):
    """Graphs as MindInsight has them; forward: what it calls optimized."""

    def decode(self, data: bytes, read: Reader, forward: bool) -> NodeGraph:
        if read is not of_mindspore:
            scopes = read(data)
            return NodeGraph(*graph_node_files.of_scopes(forward_graph(scopes) if forward else scopes))
        return NodeGraph(*graph_node_files.of_mindspore(data), optimized=forward)


class Differences:
    """Comparisons of two decoded graphs, the last ones asked for."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, int], tuple[ScopeGraph, ScopeGraph, GraphDifference]] = (
            OrderedDict()
        )
        self._lock = threading.Lock()

    def get(self, left: ScopeGraph, right: ScopeGraph) -> GraphDifference:
        """What the two have together."""
        key = (id(left), id(right))  # of graphs that are kept with it, so that no other one has the number
        with self._lock:
            if key not in self._kept:
                with _uncollected():
                    self._kept[key] = (left, right, GraphDifference(left, right))
                while len(self._kept) > _KEPT_DIFFERENCES:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key][2]


def sources(run: Run) -> list[GraphSource]:
    """Graphs of the event files in their order, then files by their names."""
    entries = run.entries(Kind.GRAPH) or []
    found = [GraphSource(f"event-{i}", one.step, one.time, one.size) for i, one in enumerate(entries)]
    return found + sorted(_files(run.folder), key=lambda source: source.id)


def graph_name(run: Run, source: GraphSource) -> str:
    """How MindInsight calls a graph: by the file that it is in, whatever folder that lies in."""
    if source.step is None:
        return os.path.basename(source.id)
    entry = (run.entries(Kind.GRAPH) or [])[int(source.id.removeprefix("event-"))]
    return os.fsencode(os.path.basename(entry.source)).decode("utf-8", "backslashreplace")


def pipelines(run: Run) -> list[dict]:
    """Data pipelines as `{step, time, graph}`, see `dataset_graph`.  Errors: ValueError; OSError."""
    return [
        {"step": entry.step, "time": entry.time, "graph": dataset_graph(run.read(entry))}
        for entry in run.entries(Kind.DATASET_GRAPH) or []
    ]


def _files(folder: str) -> list[GraphSource]:
    """Files of the folder and of folders in it that are no runs themselves; links are not followed."""
    found: list[GraphSource] = []
    for below in ("", *sorted(_folders(folder))):
        try:
            with os.scandir(os.path.join(folder, below)) as entries:
                listed = list(entries)
        except OSError:
            continue
        if below and any(event_file(entry.name) for entry in listed):
            continue
        for entry in listed:
            if not entry.name.endswith(GRAPHS) or len(found) >= _MOST_FILES:
                continue
            try:
                if entry.is_file(follow_symlinks=False):
                    state = entry.stat()
                    path = os.fsencode(os.path.join(below, entry.name)).decode("utf-8", "backslashreplace")
                    found.append(GraphSource(path, None, state.st_mtime, state.st_size))
            except OSError:
                continue
    return found


def _folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            return [name for name in names if name != NO_GRAPHS]
    except OSError:
        return []


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without looking for cycles: a decoded graph has none, and looking takes as long as decoding does."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _message(run: Run, source: GraphSource) -> tuple[bytes, Reader]:
    """The message of a graph, and what reads it.  Errors: ValueError; OSError."""
    if source.size > _LARGEST:
        raise ValueError(f"{source.id} has {source.size} bytes, at most {_LARGEST} are read")
    if source.step is not None:
        entry = (run.entries(Kind.GRAPH) or [])[int(source.id.removeprefix("event-"))]
        is_other = Dialect(run.dialect(entry)) == Dialect.TENSORBOARD
        return run.read(entry), of_tensorboard if is_other else of_mindspore
    with open(os.path.join(run.folder, source.id), "rb") as file:
        data = file.read(_LARGEST)
    if source.id.endswith(".ir"):
        data = ir_message(data.decode("utf-8", "backslashreplace"))
    return data, {".onnx": of_onnx, ".mindir": of_mindir}.get(os.path.splitext(source.id)[1], of_mindspore)
