"""The clock of a process: one thread that calls what is due.

Deadlines of requests, delays of batches, pauses before a retry, signs of life: each is an `Alarm` of the one
`CLOCK`. (How long a client may be silent is the business of the event loops that read its socket.)
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
import threading
from collections.abc import Callable
from time import monotonic

log = logging.getLogger("mycelia_serving")

NEVER = math.inf
_SOON_S = 0.001  # an alarm that comes so little later is early enough


class Alarm:
    """Calls `look(now)` when it is due; what that returns is when it is due again, or NEVER.

    now: seconds of `time.monotonic()`. `look` is short and blocks on nothing but locks. An owner that calls
    `by` with a lock held which `look` takes as well misses nothing.
    """

    __slots__ = ("_clock", "due", "look")

    def __init__(self, clock: Clock, look: Callable[[float], float]) -> None:
        self._clock = clock
        self.look = look
        self.due = NEVER

    def by(self, due: float) -> None:
        """See to it that `look` is called at this time, if not before."""
        if due < self.due - _SOON_S:
            self._clock.set(self, due)

    def cancel(self) -> None:
        """Call it no more; one call may be under way."""
        self.look = _rest
        self.due = NEVER


def _rest(now: float) -> float:
    return NEVER


class Clock:
    """A thread, started with the first alarm, that sleeps until the next one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heap: list[tuple[float, int, Alarm]] = []  # also of times that an alarm was set to before
        self._numbers = itertools.count()
        self._wakes_at = NEVER
        self._wake = threading.Lock()  # the cheapest thing to sleep on
        self._wake.acquire()
        self._thread: threading.Thread | None = None

    def alarm(self, look: Callable[[float], float]) -> Alarm:
        """An alarm that is not set yet."""
        return Alarm(self, look)

    def call_in(self, seconds: float, function: Callable[[], object]) -> Alarm:
        """Call a function once, so many seconds from now."""

        def look(now: float) -> float:
            function()
            return NEVER

        alarm = self.alarm(look)
        alarm.by(monotonic() + seconds)
        return alarm

    def call_every(self, seconds: float, function: Callable[[], object]) -> Alarm:
        """Call a function again and again, first so many seconds from now."""

        def look(now: float) -> float:
            function()
            return now + seconds

        alarm = self.alarm(look)
        alarm.by(monotonic() + seconds)
        return alarm

    def set(self, alarm: Alarm, due: float) -> None:
        """`Alarm.by` of a time before the one that is set."""
        with self._lock:
            if due >= alarm.due:
                return
            alarm.due = due
            heapq.heappush(self._heap, (due, next(self._numbers), alarm))
            if due < self._wakes_at:
                self._wakes_at = due
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="serving-clock", daemon=True)
                    self._thread.start()
                elif self._wake.locked():
                    self._wake.release()

    def _run(self) -> None:
        while True:
            now = monotonic()
            ready = []
            with self._lock:
                heap = self._heap
                while heap and heap[0][0] <= now:
                    due, _, alarm = heapq.heappop(heap)
                    if alarm.due == due:
                        alarm.due = NEVER
                        ready.append(alarm)
                # While it looks nobody need wake it: it comes back here.
                self._wakes_at = -NEVER if ready else heap[0][0] if heap else NEVER
                wait = self._wakes_at - now
            for alarm in ready:
                try:
                    alarm.by(alarm.look(now))
                except Exception:
                    log.exception("an alarm failed")
            if not ready:
                self._wake.acquire(timeout=-1 if wait == NEVER else min(wait, threading.TIMEOUT_MAX))


CLOCK = Clock()
