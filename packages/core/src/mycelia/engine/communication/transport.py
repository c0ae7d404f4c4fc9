"""What carries messages between processes, for engines that only do that; `messages.py` makes collectives of
them.
"""

from __future__ import annotations

import pickle
import threading
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import dtypes
from mycelia.engine.base.dtypes import BFLOAT16_BITS
from mycelia.engine.communication.shared import Placed

#: What messages of reductions that were started (`reducing.py`) are: elements, sums of a share, word that
#: memory was opened, and that nothing in it is read any more; where a board is, that it is looked at, and
#: that there is something on it. NOTICE: its sender waits in an exchange of short arrays (`short.py`).
GIVEN, ADDED, OPENED, TAKEN, BOARD, SEEN, WRITTEN, NOTICE = range(8)


class Message(NamedTuple):
    """What one process sends another. `number`: of the collective in its group, or the tag of a message from
    one to one; `what`: the call it belongs to, in words, and empty for a message from one to one; `phase`: of
    a reduction that was started, -1 of others, and `ended`: which of these its sender has done with.
    """

    group: str
    number: int
    what: str
    array: np.ndarray | Placed | None
    phase: int = -1
    ended: int = 0


class Started(Protocol):
    """The reductions that a group has started; called under the transport's lock."""

    def sort(self) -> None:
        """Takes the messages that have come."""

    def next_job(self) -> Callable[[], None] | None:
        """What makes sums that can be made, and were not given to somebody before; None if there are none."""

    def is_on_its_way(self) -> bool:
        """Whether messages are still to come."""

    def rest(self, value: bool) -> None:
        """Whether this process waits for messages from now on, and looks nowhere else."""


class Transport(ABC):
    """Carries messages between the processes of the world; those of a pair of processes arrive in order.

    `gone`: why a process can send nothing any more, by its rank; `near`: the numbers of processes of this
    machine that see this one's shared memory, as it sees theirs, by their ranks.
    """

    engine: str
    joins_processes = False  # which may see one another's memory
    has_mover = False  # whether a thread moves messages of started reductions

    def __init__(self, rank: int, size: int, timeout_s: float, local: tuple[int, int]) -> None:
        self.rank, self.size, self.timeout_s = rank, size, timeout_s
        self.local_rank, self.local_size = local
        self.gone: dict[int, str] = {}
        self.near: dict[int, int] = {}
        self.lock = threading.RLock()  # one thread at a time exchanges messages
        self._collectives: list[deque[Message]] = [deque() for _ in range(size)]
        self._direct: dict[tuple[int, str, int], deque[Message]] = defaultdict(deque)
        # Of reductions that were started: who makes them, by group; messages with their sources, by group;
        # members with messages for what was not started here yet, by group and number; how many had a name.
        self.started: dict[str, Started] = {}
        self.of_started: dict[str, deque[tuple[int, Message]]] = defaultdict(deque)
        self.early: dict[tuple[str, int], list[tuple[int, Message]]] = defaultdict(list)
        self.generations: dict[str, int] = defaultdict(int)
        # What others wait for in exchanges of short arrays, by source; exchanges that each group has begun.
        self._notices: dict[int, Message] = {}
        self.begun_of: dict[str, int] = defaultdict(int)

    def deliver(self, source: int, message: Message) -> None:
        """A message has arrived."""
        if message.phase == NOTICE:
            self._notices[source] = message
        elif message.phase >= 0:
            self.of_started[message.group].append((source, message))
        elif message.what:
            self._collectives[source].append(message)
        else:
            self._direct[source, message.group, message.number].append(message)

    def next_collective(self, source: int) -> Message | None:
        queue = self._collectives[source]
        return queue.popleft() if queue else None

    def first_collective(self, source: int) -> Message | None:
        """What `next_collective` would give, which stays."""
        queue = self._collectives[source]
        return queue[0] if queue else None

    def notice(self, source: int, within: str = "") -> Message | None:
        """What a process waits for in an exchange of short arrays, to which this one has not come: in the
        group `within` it is in another exchange of that number.
        """
        found = self._notices.get(source)
        if found is None or found.number < self.begun_of[found.group] - (found.group == within):
            return None
        return found

    def forget_notices(self, group: str) -> None:
        """Those that came were of a group that had this name before."""
        self._notices = {source: one for source, one in self._notices.items() if one.group != group}

    def next_direct(self, source: int, group: str, tag: int) -> Message | None:
        queue = self._direct[source, group, tag]
        return queue.popleft() if queue else None

    @abstractmethod
    def post(self, peer: int, message: Message) -> None:
        """Starts a message. Never waits for the receiver; the array stays as it is until `flushed`."""

    def expect(self, peer: int, group: str, number: int, room: np.ndarray | None) -> None:  # noqa: B027
        """Elements of that collective message of `peer` may be put into `room`, if they fill it; None: of
        none.

        Engines may do without.
        """

    @abstractmethod
    def flushed(self) -> bool:
        """Whether arrays of all messages that were posted may be changed."""

    @abstractmethod
    def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
        """Moves messages until `done()`, which is asked after each arrival; False if time was over first."""

    def poll(self) -> None:  # noqa: B027
        """Moves what can be moved without waiting. Engines whose messages move by themselves do without."""

    def await_traffic(self, timeout_s: float) -> None:
        """Comes back when messages can be moved, or time is over; needs no lock."""
        raise NotImplementedError(f"{type(self).__name__} cannot wait for messages outside of its lock")

    def begun(self) -> None:
        """A reduction was started: those that are on their way go on, here or in a thread."""
        with self.lock:
            self.poll()
        self.go_on()

    def go_on(self) -> None:
        """Takes what has come for started reductions, and makes the sums that can be made."""
        while True:
            with self.lock:
                for one in tuple(self.started.values()):
                    one.sort()
                job = self.next_job()
            if job is None:
                return
            job()

    def next_job(self) -> Callable[[], None] | None:
        """Of all groups, as `Started.next_job`."""
        for one in self.started.values():
            job = one.next_job()
            if job is not None:
                return job
        return None

    @abstractmethod
    def close(self) -> None:
        """The others see this process as gone."""


def fresh(dtype: np.dtype, count: int) -> np.ndarray:
    """An array [count] in memory of tensors, which is used again: new pages cost as much as sums."""
    kind = dtypes.bfloat16 if dtype == BFLOAT16_BITS else dtypes.as_dtype(dtype)
    return _C.empty(kind, (count,))._bits().view(dtype)


def wire_name(dtype: np.dtype) -> str:
    """A dtype as messages name it, with the order of its bytes."""
    return "bfloat16" if dtype == BFLOAT16_BITS else dtype.str


def from_wire(name: str) -> np.dtype:
    """What `wire_name` was given."""
    return BFLOAT16_BITS if name == "bfloat16" else np.dtype(name)


def as_bytes(value: Any) -> np.ndarray:
    """A pickle, as an array."""
    return np.frombuffer(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL), np.uint8)


def from_bytes(array: np.ndarray) -> Any:
    """What `as_bytes` was given. Unpickling runs what the sender wants: engines let only processes of the job
    send.
    """
    return pickle.loads(array)
