"""What endpoints of the debugger share: routes to functions that may wait, what bodies hold, what is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mycelia_insight.debugger.session import Session
from mycelia_insight.debugger.sessions import Sessions
from mycelia_insight.debugger.wrong import Wrong
from mycelia_insight.service.compatible.common import Refused, answer, body_or_refused

PATH = "/debugger/sessions"
_MOST_WAITING = 256  # pages that wait at a time, each with a thread
_waiters: RunVar[CapacityLimiter] = RunVar("debugger's pages that wait")


class Endpoints:
    """Endpoints over the sessions of one service."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def below(self, own: Mapping[str, Callable[..., Any]], method: str = "GET") -> list[Route]:
        """Routes below the number of a session."""
        return [self.route(f"{PATH}/{{number}}/{name}", function, method) for name, function in own.items()]

    def route(
        self, path: str, function: Callable[..., Any], method: str = "GET", waits: bool = False
    ) -> Route:
        """`function(request, body)` of a POST, else `function(request)`; what it refuses is an answer.

        `waits`: it waits for something to change, with threads of its own, so that pages hold up nobody.
        """

        async def endpoint(request: Request) -> Response:
            async def ask() -> Any:
                given = (await _object(request),) if method == "POST" else ()
                try:
                    limiter = _waiting() if waits else None
                    return await to_thread.run_sync(function, request, *given, limiter=limiter)
                except Wrong as wrong:
                    raise Refused(400, wrong.code, str(wrong)) from None

            return await answer(ask)

        return Route(path, endpoint, methods=[method])

    def session(self, request: Request) -> Session:
        """Errors: Wrong."""
        return self.sessions.get(request.path_params["number"])


def _waiting() -> CapacityLimiter:
    """The limit of this event loop."""
    try:
        return _waiters.get()
    except LookupError:
        found = CapacityLimiter(_MOST_WAITING)
        _waiters.set(found)
        return found


async def _object(request: Request) -> dict:
    found = await body_or_refused(request)
    if not isinstance(found, dict):
        raise Refused(400, "50540002", "Invalid parameter value. The body must be an object.")
    return found


def where(session: Session, rank: int) -> dict:
    """What is told after a change."""
    now = session.metadata(rank)
    return {"metadata": {"state": now["state"], "enable_recheck": now["enable_recheck"]}}


def rank_of(body: dict) -> int:
    """Its `rank_id`, 0 if there is none.  Errors: Wrong."""
    found = body.get("rank_id", 0)
    if isinstance(found, bool) or not isinstance(found, int):
        raise Wrong("5054B081", f"rank_id must be a whole number, but is {found!r}")
    return found


def text_of(body: dict, name: str) -> str:
    """A text of it, "" if there is none.  Errors: Wrong."""
    found = body.get(name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise Wrong("5054B081", f"{name} must be a text, but is {found!r}")
    return found
