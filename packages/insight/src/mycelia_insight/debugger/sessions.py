"""The sessions of a service: each of one dump below the base folder, and one of what trains."""

from __future__ import annotations

import threading
from pathlib import Path

from mycelia_insight.debugger.offline import OfflineSession
from mycelia_insight.debugger.session import Session
from mycelia_insight.debugger.wrong import Wrong, told

ONLINE = "0"


class Sessions:
    """At most `limit` of dumps at a time; `base`: the folder of runs, beyond which no dump is opened;
    `online`: the session over running trainings, None where the service takes none.
    """

    def __init__(self, base: Path, limit: int, online: Session | None = None) -> None:
        self.base, self.limit, self.online = base, limit, online
        self.open: dict[str, tuple[str, Session]] = {}  # number -> (dump, session)
        self.lock = threading.Lock()
        self.next = 1

    def create(self, dump_dir: str) -> str:
        """The number of the session for a dump, of the one that is open or a new one.  Errors: Wrong."""
        with self.lock:
            known = next((n for n, (d, _) in self.open.items() if d == dump_dir), None)
            if known is not None:
                return known
            if len(self.open) >= self.limit:
                raise Wrong("5054B280", f"there are {self.limit} sessions already: delete one")
            folder = self._folder(dump_dir)
            try:
                session = OfflineSession(folder)
            except ValueError as cause:
                raise Wrong("5054B281", f"{dump_dir} cannot be opened: {told(cause)}") from None
            number, self.next = str(self.next), self.next + 1
            self.open[number] = dump_dir, session
            return number

    def _folder(self, dump_dir: str) -> Path:
        base = self.base.resolve()
        try:
            found = (base / dump_dir).resolve()
        except (OSError, ValueError) as cause:  # no name of a folder
            raise Wrong("5054B281", f"{dump_dir!r} cannot be opened: {cause}") from None
        if not found.is_relative_to(base):
            raise Wrong("5054B281", f"{dump_dir!r} is not below the summary base directory")
        return found

    def get(self, number: str) -> Session:
        """Errors: Wrong."""
        if number == ONLINE and self.online is not None:
            return self.online
        found = self.open.get(number)
        if found is None:
            raise Wrong("5054B282", f"there is no session {number!r}")
        return found[1]

    def delete(self, number: str) -> None:
        """The online session stays; what it asked for ends: trainings go on, unwatched.  Errors: Wrong."""
        if number == ONLINE and self.online is not None:
            self.online.release()
            return
        with self.lock:
            if self.open.pop(number, None) is None:
                raise Wrong("5054B282", f"there is no session {number!r}")

    def jobs(self) -> dict[str, str]:
        """Dump -> number of its session."""
        return {dump: number for number, (dump, _) in self.open.items()}
