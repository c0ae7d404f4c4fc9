"""All runs under a base folder, kept up to date by one thread."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable

from mycelia_insight.runs import discovery
from mycelia_insight.runs.alerts import Alerts
from mycelia_insight.runs.artifacts import Sessions
from mycelia_insight.runs.highlights import Highlights
from mycelia_insight.runs.lineages import Lineages
from mycelia_insight.runs.notes import Notes
from mycelia_insight.runs.run import Run

_log = logging.getLogger(__name__)
_AGAIN = 3.0  # seconds until a run that could not be read is tried again


class Library:
    """Runs by their id, `./path below the base folder`.

    interval: seconds between two looks for new files, 0 for one look; known ones are looked at every `pulse`
    seconds. A run that cannot be read, since the disk is full, say, is logged and tried again after a while.
    may_delete: whether runs may be deleted; else nothing in `base` is ever changed.
    """

    def __init__(
        self,
        base: str,
        workspace: str,
        interval: float = 3,
        pulse: float = 0.25,
        *,
        may_delete: bool = False,
    ):
        self.base, self._workspace = os.path.abspath(base), workspace
        self._interval, self._pulse, self.may_delete = interval, pulse, may_delete
        self.lineages, self.highlights, self.notes = Lineages(), Highlights(), Notes(workspace)
        self.sessions = Sessions()
        self.alerts = Alerts(workspace, self.base)
        self._runs: dict[str, Run] = {}
        self._found: dict[str, discovery.Found] = {}
        self._lock, self._looking = threading.Lock(), threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._listeners: list[Callable[[str], None]] = []
        self._troubles: dict[
            str, tuple[float, str]
        ] = {}  # path of a run -> when to try again, what was wrong
        self.loaded = False

    def start(self) -> None:
        """Follow the files in a thread of its own."""
        self._thread = threading.Thread(target=self._follow, name="mycelia-insight runs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()

    def runs(self) -> list[Run]:
        with self._lock:
            return list(self._runs.values())

    def get(self, id: str) -> Run | None:
        with self._lock:
            return self._runs.get(id)

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` with the id of a run that changes, on the reading thread; returns how to stop."""
        with self._lock:
            self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def look(self) -> None:
        """Find new runs and files, and forget runs that are gone."""
        with self._looking:  # what was found before a run was deleted must not bring it back
            self._look()

    def _look(self) -> None:
        found = {one.name: one for one in discovery.find(self.base)}
        with self._lock:
            for run in [run for run in self._runs.values() if run.name not in found]:
                self._found.pop(run.name)
                self._runs.pop(run.id)
            self._found.update(found)
            known = {run.name for run in self._runs.values()}
            changed = [run for run in self._runs.values() if run.note(found[run.name])]
        for name in found.keys() - known:
            try:
                run = Run(os.path.join(self.base, name) if name else self.base, name, self._workspace)
            except OSError as error:
                self._note(name, error)
                continue
            run.note(found[name])
            with self._lock:
                self._runs[run.id] = run
        for run in changed:
            self._tell(run)

    def read(self) -> bool:
        """Read on in all files that have changed; whether there is more to read at once."""
        more = False
        with self._lock:
            pairs = [(run, self._found[run.name].files) for run in self._runs.values()]
        for run, files in pairs:
            if self._stop.is_set():
                return False
            if run.is_current(files) or self._troubles.get(run.name, (0, ""))[0] > time.monotonic():
                continue
            try:
                more |= run.refresh(files)
                self._troubles.pop(run.name, None)
            except (OSError, RuntimeError) as error:
                self._note(run.name, error)
                continue
            self._tell(run)
        return more

    def _tell(self, run: Run) -> None:
        for listener in list(self._listeners):
            listener(run.id)

    def _note(self, name: str, error: Exception) -> None:
        if self._troubles.get(name, (0, ""))[1] != str(error):
            _log.warning("run %s cannot be read: %s", name or "./", error)
        self._troubles[name] = time.monotonic() + _AGAIN, str(error)

    def _follow(self) -> None:
        waited = math.inf
        while not self._stop.is_set():
            if waited >= (self._interval or math.inf):
                self.look()
                waited = 0.0
            if self.read():
                continue
            self.loaded = True
            self._stop.wait(self._pulse)
            waited += self._pulse
