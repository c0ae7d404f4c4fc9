"""What carries messages between processes, for engines that only do that; `messages.py` makes collectives of
them.
"""

from __future__ import annotations

import pickle
import threading
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mycelia.engine.base.dtypes import BFLOAT16_BITS
from mycelia.engine.communication.shared import Placed


class Message(NamedTuple):
    """What one process sends another. `number`: of the collective in its group, or the tag of a message from
    one to one; `what`: the call it belongs to, in words, and empty for a message from one to one.
    """

    group: str
    number: int
    what: str
    array: np.ndarray | Placed | None


class Transport(ABC):
    """Carries messages between the processes of the world; those of a pair of processes arrive in order.

    `gone`: why a process can send nothing any more, by its rank; `near`: the numbers of processes of this
    machine that see this one's shared memory, as it sees theirs, by their ranks.
    """

    engine: str

    def __init__(self, rank: int, size: int, timeout_s: float, local: tuple[int, int]) -> None:
        self.rank, self.size, self.timeout_s = rank, size, timeout_s
        self.local_rank, self.local_size = local
        self.gone: dict[int, str] = {}
        self.near: dict[int, int] = {}
        self.lock = threading.RLock()  # one thread at a time exchanges messages
        self._collectives: list[deque[Message]] = [deque() for _ in range(size)]
        self._direct: dict[tuple[int, str, int], deque[Message]] = defaultdict(deque)

    def deliver(self, source: int, message: Message) -> None:
        """A message has arrived."""
        if message.what:
            self._collectives[source].append(message)
        else:
            self._direct[source, message.group, message.number].append(message)

    def next_collective(self, source: int) -> Message | None:
        queue = self._collectives[source]
        return queue.popleft() if queue else None

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

    @abstractmethod
    def close(self) -> None:
        """The others see this process as gone."""


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
