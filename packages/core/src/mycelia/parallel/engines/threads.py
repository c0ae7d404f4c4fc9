"""The engine `local`: ranks are threads of this process. For tests of what trains on several ranks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from mycelia.engine.base import errors
from mycelia.engine.communication import Message, MessageCommunicator, Transport, world

TIMEOUT_S = 60.0  # of a test's ranks: far above what they take, so that a hang becomes an error


class _Hub:
    """What the ranks share."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.ranks: list[_ThreadTransport] = []


class _ThreadTransport(Transport):
    engine = "local"

    def __init__(self, hub: _Hub, rank: int, size: int, timeout_s: float) -> None:
        super().__init__(rank, size, timeout_s, (rank, size))
        self._hub = hub

    def post(self, peer: int, message: Message) -> None:
        if message.array is not None:
            message = message._replace(array=message.array.copy())
        with self._hub.changed:
            self._hub.ranks[peer].deliver(self.rank, message)
            self._hub.changed.notify_all()

    def flushed(self) -> bool:
        return True

    def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
        end = time.monotonic() + timeout_s
        with self._hub.changed:
            while not done():
                if not self._hub.changed.wait(max(0.0, end - time.monotonic())):
                    return done()
        return True

    def end(self, why: str) -> None:
        with self._hub.changed:
            for other in self._hub.ranks:
                other.gone.setdefault(self.rank, why)
            self._hub.changed.notify_all()

    def close(self) -> None:
        self.end("it has left")


def run(size: int, function: Callable[[int], Any], timeout_s: float = TIMEOUT_S) -> list[Any]:
    """What ``function(rank)`` returns on each of `size` ranks, each a thread that has joined the others.

    Errors: what a rank raised first; ValueError for a size below 1.
    """
    if size < 1:
        raise errors.value_error("run", f"size must be positive, but got {size}")
    hub = _Hub()
    hub.ranks = [_ThreadTransport(hub, rank, size, timeout_s) for rank in range(size)]

    def work(rank: int) -> Any:
        why = "it has ended"
        try:
            with world.in_thread(MessageCommunicator(hub.ranks[rank], world.WORLDS[0], range(size))):
                return function(rank)
        except BaseException as cause:
            why = f"it has failed with {type(cause).__name__}: {cause}"
            raise
        finally:
            hub.ranks[rank].end(why)

    return in_threads(size, work)


def in_threads(size: int, function: Callable[[int], Any]) -> list[Any]:
    """What ``function(number)`` returns in each of `size` threads. Errors: what one of them raised first."""
    results: list[Any] = [None] * size
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            results[number] = function(number)
        except BaseException as cause:
            failed.append(cause)

    threads = [threading.Thread(target=work, args=(rank,), name=f"rank {rank}") for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return results
