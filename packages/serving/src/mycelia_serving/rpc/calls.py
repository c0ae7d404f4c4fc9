"""Calls over a connection: a frame with a number, and the frame that answers it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

from mycelia_serving.rpc.connection import Connection, Kind


class Calls:
    """Calls of one kind that the other end has not answered. Who reads the connection passes answers on."""

    def __init__(self, link: Connection, kind: Kind) -> None:
        self._link = link
        self._kind = kind
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Callable[[bytes | None], None]] = {}
        self._lock = threading.Lock()
        self._lost = False

    def start(self, body: bytes, done: Callable[[bytes | None], None]) -> None:
        """Call the other end. `done` is called once, with the body of the answer; None if there is none."""
        with self._lock:
            number = next(self._numbers)
            lost = self._lost
            if not lost:
                self._waiting[number] = done
        if lost:
            done(None)
        else:
            self._link.send((self._kind, number, body))

    def answer(self, number: int, body: bytes) -> None:
        """An answer has come."""
        with self._lock:
            done = self._waiting.pop(number, None)
        if done is not None:
            done(body)

    def lose(self) -> None:
        """The connection has ended: nothing is answered any more."""
        with self._lock:
            self._lost = True
            waiting, self._waiting = self._waiting, {}
        for done in waiting.values():
            done(None)


def ask(link: Connection, kind: Kind, body: bytes, answered_by: Kind) -> bytes | None:
    """Call the other end of a connection that nobody reads, and wait; None if it has ended."""
    link.send((kind, 1, body))
    for found, _, answer in link.frames():
        if found == answered_by:
            return answer
    return None
