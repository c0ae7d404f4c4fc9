"""One training that is debugged: where it is, what it is told next, what it sent."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mycelia.debug.messages import debugger_pb2 as messages
from mycelia.debug.messages.values import from_messages
from mycelia_insight.debugger.wrong import Wrong

PENDING, RECEIVED, WAITING, SENDING, RUNNING = "pending", "receive_graph", "waiting", "sending", "running"
MISMATCH = "mismatch"  # the last that came speaks another version, and was refused
_PATIENCE = 20.0  # seconds in which a training must answer a question
_MISSED = 3  # signs of life that may be missed in a row
_BROKEN = 5.0  # seconds within which a training whose connection broke must have another one
_CACHED = 256 << 20  # bytes of tensors that are kept here

#: step, graph, full name, slot
Key = tuple[int, str, str, str]


class Command:
    """A reply to the training, and whether it was done. `step`: of a recheck, which one."""

    def __init__(self, step: int = 0, **cmd: Any) -> None:
        self.message = messages.EventReply(status=messages.OK, **cmd)
        self.step = step
        self.finished = threading.Event()
        self.found: Any = None
        self.error = ""


class Training:
    """`tell`: called after each change. Its lock is held only for moments, never while a training works."""

    def __init__(self, rank: int, client: str, peer: str, tell: Callable[[], None]) -> None:
        self.rank, self.client, self.peer, self.tell = rank, client, peer, tell
        self.changed = threading.Condition()
        self.state = PENDING
        self.is_gone = self.is_done = False
        self.metadata = messages.Metadata()
        self.graphs: dict[str, Any] = {}
        self.version = 0  # of the graphs
        self.hits: dict[int, list[Any]] = {}  # by step
        self._new_hits: list[Any] | None = None
        self.commands: deque[Command] = deque()
        self.current: Command | None = None
        self.left = 0  # steps that it is to run without waiting; below 0 for ever
        self.node: tuple[str, str] | None = None  # graph and name
        self.ran: dict[int, set[str]] = {}  # the graphs of each step whose values are kept
        self.period, self.seen = 15.0, time.monotonic()
        self.attending = 0  # calls that last as long as its process
        self.left_at: float | None = None  # when the last of these ended
        self.values: OrderedDict[Key, np.ndarray | None] = OrderedDict()
        self.cached_bytes = 0
        self.last: dict[tuple[str, int], str] = {}  # what it said before it ended: (question, step) -> JSON

    # ---- where it is

    @property
    def step(self) -> int:
        """The step whose values are the latest: that which has run, or in which it waits."""
        return self.metadata.cur_step + (1 if self.metadata.cur_node else 0)

    @property
    def first_step(self) -> int:
        """The first step whose values are kept."""
        return max(1, self.metadata.first_step)

    def beat(self, period: float | None = None) -> None:
        """It gave a sign of life."""
        self.seen = time.monotonic()
        if period is not None:
            self.period = period

    def attend(self, is_there: bool = True) -> None:
        """A call that lasts as long as its process begins or ends: after a kill, and if a connection breaks,
        which the process makes anew.
        """
        with self.changed:
            self.attending += 1 if is_there else -1
            self.left_at = None if self.attending else time.monotonic()

    def is_silent(self) -> bool:
        """Whether its process is gone, or signs of life are missing."""
        now, left_at = time.monotonic(), self.left_at
        is_broken = left_at is not None and now - left_at > _BROKEN
        return not self.is_gone and (is_broken or now - self.seen > _MISSED * self.period)

    def leave(self) -> None:
        """It is gone; what it sent stays."""
        with self.changed:
            if self.is_gone:
                return
            self.is_gone, self.state = True, PENDING
            for command in [*self.commands, *([self.current] if self.current else [])]:
                command.error = "the training is gone"
                command.finished.set()
            self.commands.clear()
            self.current = None
            self.changed.notify_all()
        self.tell()

    # ---- what it calls

    def introduce(self, metadata: Any) -> None:
        """SendMetadata: its first words, or its last."""
        with self.changed:
            self.metadata.CopyFrom(metadata)
            self.is_done = metadata.training_done
        if self.is_done:
            self.leave()
        self.tell()

    def take_graphs(self, found: Iterable[bytes]) -> None:
        """Errors: ValueError for what is no graph."""
        graphs = {}
        for text in found:
            try:
                graph = messages.GraphProto.FromString(text)
            except Exception as cause:  # protobuf's error has no class that all its versions share
                raise ValueError(f"a graph cannot be read: {cause}") from None
            graphs[graph.name or "graph_0"] = graph
        with self.changed:
            self.graphs = graphs
            self.version += 1
            self.state = RECEIVED
        self.tell()

    @property
    def is_checking(self) -> bool:
        """Whether it looks again at a step, as it was asked to."""
        current = self.current
        return current is not None and bool(current.step)

    def take_hits(self, found: Sequence[Any]) -> int:
        """What it found at the end of a step, which stops it: that step; or when asked to look again: 0."""
        with self.changed:
            if self.current is not None and self.current.step:
                self.hits[self.current.step] = self.current.found = list(found)
                return 0
            self._new_hits = list(found)
            self.left, self.node = 0, None
            return self.metadata.cur_step + 1

    def take_tensors(self, found: Iterable[tuple[Any, np.ndarray | None]]) -> None:
        """The values that it was asked for.  Errors: ValueError for what are none."""
        arrays = list(found)
        with self.changed:
            if self.current is not None:
                self.current.found = arrays

    def take_answer(self, found: Any) -> None:
        """What it says to a question, or unasked before it ends: its last step.  Errors: ValueError for what
        is no such thing.
        """
        with self.changed:
            if self.current is not None:
                self.current.found, self.current.error = found, found.error
                return
        try:
            told = json.loads(found.text)
            step, answers = told["step"], told["answers"]
            values = {(step, m.graph_name, m.node_name, m.slot): a for m, a in from_messages(found.tensors)}
            for (graph, name, slot), (of_graph, of_name, of_slot) in told["same"]:
                values[step, graph, name, slot] = values[step, of_graph, of_name, of_slot]
            last = {(question, step): json.dumps(answer) for question, answer in answers.items()}
        except (KeyError, TypeError, AttributeError) as cause:
            raise ValueError(f"the last step cannot be read: {cause!r}") from None
        with self.changed:
            self.values.update(values)
            self.last = last

    def wait(self, metadata: Any, is_active: Callable[[], bool], others: Callable[[], list[Training]]) -> Any:
        """WaitCMD: the next command, as soon as there is one. `others`: the trainings of other ranks.

        All ranks run the same step: one that were ahead when another is stopped would wait for it in a
        collective, and never come to the end of its step.
        """
        self._arrive(metadata)
        for other in others():
            with other.changed:
                other.changed.notify_all()
        with self.changed:
            while is_active() and not self.is_gone:
                runs_on = self.left and self.node is None and not self.commands
                if not (runs_on and any(other.is_behind(self.step) for other in others())):
                    reply = self._next()
                    if reply is not None:
                        return reply
                    if self.state != WAITING:
                        self.state = WAITING
                        self.tell()
                self.changed.wait(1.0)
        return messages.EventReply(status=messages.FAILED)

    def is_behind(self, step: int) -> bool:
        """Whether it is still on its way to the end of a step."""
        return self.state in (SENDING, RUNNING) and not self.is_gone and self.step < step

    def _arrive(self, metadata: Any) -> None:
        """It stands where `metadata` says, and has done what it was told."""
        with self.changed:
            self.beat()
            if self.current is not None:
                if self.current.step and not self.current.found:
                    self.hits[self.current.step] = []  # nothing was sent: nothing hits
                self.current.finished.set()
                self.current = None
            before = self.step
            self.metadata.CopyFrom(metadata)
            if self._new_hits is not None or self.step != before:
                self.hits[self.step] = self._new_hits or []
                self._new_hits = None
            self.ran.setdefault(self.step, set()).update(metadata.graph_names)
            for kept in (self.hits, self.ran):
                for step in [s for s in kept if s < self.first_step]:
                    del kept[step]
            if metadata.cur_node or metadata.reason:
                self.left = 0
            for key in [k for k, array in self.values.items() if self._is_over(k, array)]:
                self._forget(key)

    def _is_over(self, key: Key, array: np.ndarray | None) -> bool:
        """Whether a value is of a step that is kept no more, or lacks while its step goes on, where it may be
        made yet.
        """
        step = key[0]
        return step < self.first_step or (step == self.step and array is None)

    def _next(self) -> Any:
        if self.commands:
            self.current = self.commands.popleft()
            return self.current.message
        if self.node is not None:
            self.state, (graph, name), self.node = RUNNING, self.node, None
            run = messages.RunCMD(run_level="node", node_name=name, graph_name=graph)
        elif self.left:
            self.state = RUNNING
            self.left -= self.left > 0
            run = messages.RunCMD(run_level="step", run_steps=1)
        else:
            return None
        return messages.EventReply(status=messages.OK, run_cmd=run)

    # ---- what it is told

    def go(self, steps: int = 0, node: tuple[str, str] | None = None) -> None:
        """Run steps, or to a node, by its graph and name ("" the next)."""
        with self.changed:
            if self.is_gone:
                return
            self.left, self.node, self.state = steps, node, SENDING
            self.changed.notify_all()
        self.tell()

    def pause(self) -> None:
        """Wait after the present step."""
        with self.changed:
            self.left, self.node = 0, None
        self.tell()

    def catch_up(self, step: int) -> None:
        """Wait after `step`, or after the present one if that is later; one that waits already stays."""
        with self.changed:
            ahead = step - self.step - (self.state == RUNNING)  # beside the one that it is in
            if self.left < 0 or self.left > ahead:
                self.left = max(0, ahead)
        self.tell()

    def send(self, command: Command) -> Command:
        """Queue a command."""
        with self.changed:
            if self.is_gone:
                command.error = "the training is gone"
                command.finished.set()
            else:
                self.commands.append(command)
                self.changed.notify_all()
        return command

    def ask(self, command: Command) -> Any:
        """What it sent for a command.  Errors: Wrong if it does not answer, or cannot."""
        self.send(command)
        if not command.finished.wait(_PATIENCE):
            with self.changed:
                if command in self.commands:
                    self.commands.remove(command)
            raise Wrong("5054B081", "the training runs a step: ask again when it waits")
        if command.error:
            raise Wrong("5054B081", command.error)
        return command.found

    def load(self, wanted: Iterable[Key]) -> dict[Key, np.ndarray | None]:
        """These values, which are kept here, too, by one question for those that are not; of a training that
        is gone there are those that are here.  Errors: Wrong.
        """
        keys = list(dict.fromkeys(wanted))
        with self.changed:
            known = {key: self.values[key] for key in keys if key in self.values}
        missing = [key for key in keys if key not in known]
        if self.is_gone or not missing:
            return known
        tensors = [
            messages.TensorProto(node_name=name, slot=slot, iter=str(step), graph_name=graph)
            for step, graph, name, slot in missing
        ]  # fmt: skip
        found = self.ask(Command(view_cmd=messages.ViewCMD(tensors=tensors))) or []
        with self.changed:
            for key, (_, array) in zip(missing, found):
                self._forget(key)  # another page may have asked meanwhile
                self.values[key] = known[key] = array
                self.cached_bytes += _size(array)
            while self.cached_bytes > _CACHED and len(self.values) > len(missing):
                self._forget(next(iter(self.values)))
        return known

    def _forget(self, key: Key) -> None:
        self.cached_bytes -= _size(self.values.pop(key, None))


def _size(array: np.ndarray | None) -> int:
    return 0 if array is None else array.nbytes
