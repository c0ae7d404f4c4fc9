"""The debugger's interface, `/v1/mindinsight/debugger/sessions`.

What answers it needs core's tensors, so it is loaded with the first request: an idle service is small.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from starlette.routing import BaseRoute, Route, Router
from starlette.types import Receive, Scope, Send

from mycelia_insight.runs.library import Library
from mycelia_insight.service.settings import Settings


class _Late:
    """The application of the debugger."""

    def __init__(self, library: Library, settings: Settings) -> None:
        self.library, self.settings = library, settings
        self.router: Router | None = None
        self.lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.lock:
            if self.router is None:
                from mycelia_insight.debugger.endpoints import router

                self.router = router(self.library.base, self.settings.max_offline_debugger_session_num)
        await self.router(scope, receive, send)


def routes(library: Library, settings: Settings) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""
    methods = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]  # the router refuses
    return [Route("/debugger/sessions{rest:path}", _Late(library, settings), methods=methods)]
