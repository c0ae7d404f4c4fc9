"""Serves the dashboards of plugins, which are looked for when the first of their addresses is asked for."""

from __future__ import annotations

import functools
import threading

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.routing import Mount, Router
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from mycelia_insight.dashboards import Dashboard, find
from mycelia_insight.runs.library import Library
from mycelia_insight.service.endpoints import Parameter, Table

_LANGUAGE = Parameter("language", str, "of the titles: en or zh", "en")


class Extensions:
    """An application below `/dashboards`: `NAME/api/...` are a dashboard's routes, `NAME/...` its files."""

    def __init__(self, library: Library):
        self._library = library
        self._lock = threading.Lock()

    def found(self) -> list[Dashboard]:
        with self._lock:
            return self._found

    @functools.cached_property
    def _found(self) -> list[Dashboard]:
        return find(self._library)

    @functools.cached_property
    def _router(self) -> Router:
        return Router([
            Mount(f"/{one.name}", routes=[
                Mount("/api", routes=list(one.routes)), Mount("/", app=StaticFiles(directory=one.files)),
            ])
            for one in self.found()
        ])  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "_router" not in self.__dict__:
            await run_in_threadpool(self.found)
        await self._router(scope, receive, send)

    def add(self, table: Table) -> None:
        """Add the list to `table`."""

        @table.get("/dashboards", _LANGUAGE)
        def dashboards(_request: Request, language: str) -> dict:
            """Pages that plugins bring; `/dashboards/NAME/page.js` is the module of one."""
            return {
                "dashboards": [{"name": one.name, "title": one.title_in(language)} for one in self.found()]
            }
