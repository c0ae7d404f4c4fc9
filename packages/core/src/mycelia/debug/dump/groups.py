"""What is written of a run: tensors, as operators and arguments have them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mycelia.debug.dump import files
from mycelia.debug.dump.step_folder import StepFolder
from mycelia.debug.messages.graphs import Call
from mycelia.engine.backends import TaskInfo
from mycelia.engine.observing import Operator
from mycelia.engine.observing.observers import Watched
from mycelia.engine.tensors.tensor import Tensor

PARAMETER = "Parameter"


class Record(NamedTuple):
    """A tensor that is to be written."""

    kind: str
    name: str
    io: str
    slot: int
    tensor: Tensor


class Group(NamedTuple):
    """What is written of one operator, or one argument: tensors at their slots, None for what is not.

    `stamp`: of the first tensor, the next ones follow one by one; `call`: the whole call, of an eager
    operator; `layout`: of the device, in which all tensors lie. Native code reads these by position.
    """

    kind: str
    name: str
    stamp: int
    inputs: Sequence[Tensor | None]
    outputs: Sequence[Tensor | None]
    call: Call | None = None
    layout: str = files.PLAIN

    @property
    def tensors(self) -> list[Tensor]:
        return [t for t in (*self.inputs, *self.outputs) if t is not None]

    def records(self, io: str) -> Iterator[Record]:
        for slot, tensor in enumerate(self.inputs if io == "input" else self.outputs):
            if tensor is not None:
                yield Record(self.kind, self.name, io, slot, tensor)


class Step:
    """What is known of a run of a graph, or of a step of eager calls."""

    def __init__(self, of: Watched, iteration: int) -> None:
        self.of, self.iteration = of, iteration
        self.roles: dict[str, str] = {}  # of Parameters, as far as they are known
        self.asked_for = 0  # signals that had come when it began
        self.extent = 0  # of what it shows of a program of eager calls
        self.folder: StepFolder | None = None  # once there is something to write
        self.groups: deque[Group] = deque()  # kept until it shows whether they are written
        self.lost = 0  # tensors, the first ones, that were kept no longer
        self.reason = ""  # what is wrong in it, as far as it ran
        self.operators: list[Operator] = []  # whose tensors are written
        self.calls: list[Call] = []  # of eager operators
        self.read: list[Group] = []  # Parameters that eager operators read, where nothing is kept
        self.task: int | None = None  # of the device, the last one before an operator runs
        self.overflows: list[tuple[TaskInfo, int, Operator]] = []  # tasks whose status says so, with stamps
        self.parameters = 0  # of those that eager operators have read, how many are taken
