"""The debugger's interface, `/v1/mindinsight/debugger/sessions`.

What answers it needs core's tensors, so it is loaded with the first request: an idle service is small.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from starlette.routing import BaseRoute, Route, Router
from starlette.types import Receive, Scope, Send

from mycelia_insight.service.debugging import Debugging


class _Late:
    """The application of the debugger."""

    def __init__(self, debugging: Debugging) -> None:
        self.debugging = debugging
        self.router: Router | None = None
        self.lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.lock:
            if self.router is None:
                from mycelia_insight.debugger.endpoints import router

                self.router = router(self.debugging.sessions())
        await self.router(scope, receive, send)


def routes(debugging: Debugging) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""
    methods = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]  # the router refuses
    return [Route("/debugger/sessions{rest:path}", _Late(debugging), methods=methods)]
