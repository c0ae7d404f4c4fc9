"""Where the nodes and values of running trainings come from: the trainings themselves, one process a rank."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycelia.debug import Statistics, statistics
from mycelia.debug.conditions import ROLE
from mycelia.debug.messages import debugger_pb2 as messages
from mycelia.debug.messages.values import from_messages
from mycelia.debug.reading.ir import SourceLine
from mycelia.debug.reading.nonfinite import NonFinite
from mycelia_insight.debugger import DebuggerTensor, Node
from mycelia_insight.debugger.nodes import graph_name
from mycelia_insight.debugger.online.listener import Listener
from mycelia_insight.debugger.online.training import Command, Training
from mycelia_insight.debugger.wrong import Wrong
from mycelia_insight.records.graph_files import value_line
from mycelia_insight.records.wire import Broken

_LINE = re.compile(r"#(?:  [ -])? In file (.+):(\d+)/(.*)/")
_LEFT = "what was asked for before, and its last step if it ended by itself, is all that there is of it"

#: rank, number of the graph, full name of a node
_Place = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class _Value:
    """A tensor that a training has."""

    training: Training
    step: int
    graph: str
    name: str
    slot: str

    @property
    def key(self) -> tuple[int, str, str, str]:
        return self.step, self.graph, self.name, self.slot

    def array(self) -> np.ndarray | None:
        """The elements; None if it has none in this step.  Errors: Wrong."""
        return self.training.load([self.key]).get(self.key)

    def statistics(self) -> Statistics | None:
        array = self.array()
        return None if array is None else statistics(array)


class TrainingSource:
    """Nodes and values of the trainings that are connected to `listener`."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self._nodes: list[Node] = []
        self._made_of: dict[int, tuple[str, int]] = {}  # rank -> process, version of its graphs
        self._shapes: dict[_Place, tuple[int, int]] = {}  # how many tensors it reads and makes
        self._version = 0
        self._building = threading.Lock()  # pages ask while graphs come

    @property
    def trainings(self) -> dict[int, Training]:
        """By rank, as they are now: others may come while these are gone through."""
        return dict(self.listener.trainings)

    @property
    def version(self) -> int:
        with self._building:
            trainings = sorted(self.trainings.items())
            made_of = {rank: (t.client, t.version) for rank, t in trainings}
            if made_of != self._made_of:
                shapes: dict[_Place, tuple[int, int]] = {}
                self._nodes = [n for rank, t in trainings for n in self._of(rank, t, shapes)]
                self._made_of, self._shapes = made_of, shapes
                self._version += 1
            return self._version

    @property
    def nodes(self) -> Sequence[Node]:
        return self._nodes if self.version else []

    def _of(self, rank: int, training: Training, shapes: dict[_Place, tuple[int, int]]) -> list[Node]:
        found = []
        for name, graph in training.graphs.items():
            number = int(name.rpartition("_")[2]) if name.rpartition("_")[2].isdecimal() else 0
            for parameter in graph.parameters:
                role = {ROLE: parameter.role} if parameter.role else {}
                node = Node(self, rank, number, parameter.name, "Parameter", attributes=role)
                shapes[_place(node)] = 0, 1
                found.append(node)
            names = {n.name: n.full_name or n.name for n in graph.node}
            constants = {c.key for c in graph.const_vals}
            for one in graph.node:
                feeds = tuple(names.get(i.name, i.name) for i in one.input if i.name not in constants)
                node = Node(
                    self, rank, number, one.full_name or one.name, one.op_type, _stack(one.source_address),
                    feeds, {a.name: _told(a.value) for a in one.attribute},
                )  # fmt: skip
                made = len(one.output_type.sequence_type.elem_types) or 1
                shapes[_place(node)] = one.input_count or len(one.input), made
                found.append(node)
        return found

    def get_ranks(self) -> list[int]:
        return sorted(self.trainings)

    def present(self) -> list[Training]:
        """The trainings that run; when all have ended, those that were."""
        known = list(self.trainings.values())
        return [t for t in known if not t.is_gone] or known

    def steps(self) -> tuple[int, int]:
        present = self.present()
        if not present:
            return 1, 0
        return max(t.first_step for t in present), min(t.step for t in present)

    def runs(self, rank: int) -> set[tuple[int, int]]:
        training = self.trainings.get(rank)
        if training is None:
            return set()
        ran = training.ran.items()
        return {(step, int(g.rpartition("_")[2])) for step, graphs in list(ran) for g in list(graphs)}

    def tensors_of(self, node: Node, iterations: Collection[int] | None = None) -> list[DebuggerTensor]:
        """All that a node read and made in the steps that are kept."""
        training, graph = self.trainings[node.rank], graph_name(node.graph)
        kept = range(training.first_step - 1, training.step)
        read, made = self._shapes.get(_place(node), (0, 0))  # its graph may be told no more
        found = []
        for iteration in kept if iterations is None else [i for i in iterations if i in kept]:
            for io, count, mark in (("input", read, "input:"), ("output", made, "")):
                for slot in range(count):
                    value = _Value(training, iteration + 1, graph, node.name, f"{mark}{slot}")
                    found.append(DebuggerTensor(node, io, slot, iteration, value))
        return found

    def health(self, rank: int, step: int) -> dict[str, Any]:
        return self.answer(rank, "health", step=step)

    def trace(self, rank: int, step: int) -> list[NonFinite]:
        rows = self.answer(rank, "nonfinite", step=step)
        for row in rows:
            del row["source"]
            row["stack"] = tuple(SourceLine(*line) for line in row["stack"])
        return [NonFinite(**row) for row in rows]

    def answer(self, rank: int, question: str, **arguments: Any) -> Any:
        """What a training says to a question beyond MindSpore's protocol.  Errors: Wrong."""
        training = self.trainings.get(rank)
        if training is not None and training.is_gone:
            known = training.last.get((question, arguments.get("step", 0)))
            if known is None:
                raise Wrong("5054B081", f"the training is gone; {_LEFT}")
            return json.loads(known)
        return json.loads(self._answer(rank, question, arguments).text)

    def _answer(self, rank: int, question: str, arguments: dict[str, Any]) -> Any:
        training = self.trainings.get(rank)
        if training is None:
            raise Wrong("5054B081", f"there is no rank {rank}")
        ask = messages.AskCMD(question=question, arguments=json.dumps(arguments))
        found = training.ask(Command(ask_cmd=ask))
        if found is None:
            raise Wrong("5054B081", "this training does not know such questions")
        return found

    def rerun(self, rank: int, arguments: dict[str, Any]) -> list[np.ndarray]:
        """Outputs of an operator that a training runs once more.  Errors: Wrong."""
        found = self._answer(rank, "rerun", arguments)
        return [a for _, a in from_messages(found.tensors) if a is not None]

    def why_empty(self, tensor: DebuggerTensor) -> str:
        training = self.trainings.get(tensor.node.rank)
        return f"the training is gone; {_LEFT}" if training is not None and training.is_gone else ""

    def load(self, wanted: Sequence[DebuggerTensor]) -> None:
        """Errors: Wrong."""
        for training in {t.record.training.rank: t.record.training for t in wanted}.values():
            training.load(t.record.key for t in wanted if t.record.training is training)


def _place(node: Node) -> _Place:
    return node.rank, node.graph, node.name


def _stack(text: str) -> tuple[SourceLine, ...]:
    lines = [_LINE.match(line.strip()) for line in text.split("\n")]
    return tuple(SourceLine(m[1], int(m[2]), m[3].strip()) for m in reversed(lines) if m)


def _told(value: bytes) -> str:
    """A ValueProto as text, "" for one that is none."""
    try:
        return value_line(value)
    except Broken:
        return ""
