"""Times of a program's instructions, for any number of those who want them at a time."""

from __future__ import annotations

import threading
import weakref

from mycelia.engine import _C

_holders: weakref.WeakKeyDictionary[_C.Program, int] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


class Timing:
    """Counts calls and nanoseconds of the instructions of `program` from now on, until `stop`."""

    def __init__(self, program: _C.Program) -> None:
        self.program = program
        self._before: list[tuple[int, int]] = []
        self._stopped = False
        with _lock:
            count = _holders.get(program, 0)
            if count:
                self._before = program.timings()
            else:
                program.profile(True)
            _holders[program] = count + 1

    def read(self) -> list[tuple[int, int]]:
        """(calls, nanoseconds) of each instruction since the beginning."""
        now = self.program.timings()
        if not self._before:
            return now
        return [(c - calls, t - spent) for (c, t), (calls, spent) in zip(now, self._before, strict=True)]

    def stop(self) -> list[tuple[int, int]]:
        """What `read` gives; the program runs as it did before if nobody else wants its times."""
        with _lock:
            found = self.read()
            if not self._stopped:
                self._stopped = True
                _holders[self.program] -= 1
                if not _holders[self.program]:
                    self.program.profile(False)
        return found
