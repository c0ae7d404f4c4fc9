"""The debugger's sessions of a service, which both of its interfaces share.

They need core's tensors, so they are made with the first request: an idle service is small.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mycelia_insight.debugger.session import Session
    from mycelia_insight.debugger.sessions import Sessions
    from mycelia_insight.debugger.views import Views


class Debugging:
    """base: the folder below which dumps are opened; limit: sessions over dumps at a time; prefix: of
    MindInsight's interface; online: the session over running trainings, None if none may connect.
    """

    def __init__(self, base: str, limit: int, prefix: str, online: Session | None = None) -> None:
        self.base, self.limit, self.prefix, self.online = base, limit, prefix, online
        self._sessions: Sessions | None = None
        self._views: dict[str, tuple[Session, Views]] = {}
        self._lock = threading.Lock()

    def sessions(self) -> Sessions:
        """The sessions, made at the first call."""
        with self._lock:
            if self._sessions is None:
                from mycelia_insight.debugger.sessions import Sessions

                self._sessions = Sessions(Path(self.base), self.limit, self.online)
            return self._sessions

    def opened(self) -> dict[str, str]:
        """Dump -> number of its session; loads nothing."""
        return self._sessions.jobs() if self._sessions is not None else {}

    def views(self, number: str) -> Views:
        """The views of a session.  Errors: Wrong if there is none."""
        from mycelia_insight.debugger.sessions import ONLINE
        from mycelia_insight.debugger.views import Views

        session = self.sessions().get(number)
        with self._lock:
            known = self._views.get(number)
            if known is None or known[0] is not session:
                alive = {*self.opened().values(), ONLINE}
                self._views = {n: v for n, v in self._views.items() if n in alive}
                known = self._views[number] = session, Views(session)
            return known[1]
