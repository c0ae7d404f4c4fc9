"""Streams that put work off: it is done when somebody waits for it, and not a moment before.

That is the worst that a device may do to those who forget to wait, and it is the same in every run.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from mycelia.backends import Event, Stream


class FarStream(Stream):
    """Work in the order in which it was given."""

    def __init__(self) -> None:
        self.work: deque[Callable[[], None]] = deque()
        self.given = 0  # how many pieces of work there were
        self.done = 0

    def give(self, piece: Callable[[], None]) -> None:
        """Add work."""
        self.work.append(piece)
        self.given += 1

    def run_until(self, count: int) -> None:
        """Do the first `count` pieces of all there were."""
        while self.done < count and self.work:
            piece = self.work.popleft()
            try:
                piece()
            finally:
                self.done += 1  # not before: what counts as done may be freed

    def synchronize(self) -> None:
        self.run_until(self.given)

    def query(self) -> bool:
        return not self.work

    def wait(self, event: FarEvent) -> None:
        reached = event.stream, event.count
        if reached[0] is not None and reached[0] is not self:
            self.give(lambda: reached[0].run_until(reached[1]))


class FarEvent(Event):
    """A number of pieces of work of a stream; the last one looks at the clock."""

    def __init__(self) -> None:
        self.stream: FarStream | None = None
        self.count = 0
        self.reached = 0.0

    def record(self, stream: FarStream) -> None:
        def look() -> None:
            self.reached = time.perf_counter()

        stream.give(look)
        self.stream, self.count = stream, stream.given

    def synchronize(self) -> None:
        if self.stream is not None:
            self.stream.run_until(self.count)

    def query(self) -> bool:
        return self.stream is None or self.stream.done >= self.count

    def seconds(self) -> float:
        self.synchronize()
        return self.reached
