"""What a worker remembers while its master is away, so that nothing that is sent again runs again."""

from __future__ import annotations

import threading
import time

from mycelia_serving.request import Result

KEPT_S = 60.0  # how long results are kept that could not be given back


class Deduplication:
    """Instances that ran when the connection to the master broke: sent again, they are not run again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, list] = {}  # key -> who else waits for its result
        self._results: dict[int, tuple[float, Result]] = {}

    def begin(self, keys: tuple[int, ...]) -> None:
        """These run now."""
        with self._lock:
            for key in keys:
                self._running[key] = []

    def attach(self, keys: tuple[int, ...], done) -> bool:
        """If a single instance runs or ran already, `done` gets its result."""
        if len(keys) != 1:
            return False
        with self._lock:
            waiting = self._running.get(keys[0])
            if waiting is not None:
                waiting.append(done)
                return True
            kept = self._results.pop(keys[0], None)
        if kept is None:
            return False
        done([kept[1]])
        return True

    def end(self, keys: tuple[int, ...], results: list[Result], lost: bool) -> None:
        """These have run; `lost`: their master cannot be told."""
        now = time.monotonic()
        waiting = []
        with self._lock:
            for key, result in zip(keys, results, strict=False):
                others = self._running.pop(key, ())
                waiting += [(done, result) for done in others]
                if lost and not others:
                    self._results[key] = now, result
            if lost:
                for key in [k for k, (at, _) in self._results.items() if now - at > KEPT_S]:
                    del self._results[key]
        for done, result in waiting:
            done([result])
