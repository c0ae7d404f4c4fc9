"""The application: pages, the interface of this product, and the one that MindInsight's clients know."""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mycelia_insight.runs.library import Library
from mycelia_insight.service import api, compatible
from mycelia_insight.service.debugging import Debugging
from mycelia_insight.service.extensions import Extensions
from mycelia_insight.service.settings import Settings, is_loopback

PAGES = Path(__file__).parent.parent / "pages"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_COOKIE = "mycelia-insight"
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; worker-src 'self' blob:; "
    "frame-ancestors 'self'; base-uri 'none'; object-src 'none'; form-action 'none'",
    "X-Frame-Options": "SAMEORIGIN",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def make_app(settings: Settings, library: Library, online: Any = None) -> Starlette:
    """The application below the settings' prefix. `online`: the debugger's session over running trainings."""
    extensions = Extensions(library)
    debugging = Debugging(
        library.base, settings.max_offline_debugger_session_num, settings.api_prefix, online
    )
    inner = [
        Mount("/api/v1", routes=api.routes(library, extensions, debugging)),
        Mount("/dashboards", app=extensions),
        Mount(settings.api_prefix, routes=compatible.routes(library, settings, debugging)),
        _pages(),
    ]
    prefix = settings.url_path_prefix
    middleware = [Middleware(_Guard, settings=settings)]
    if settings.enable_cors:
        methods = settings.support_request_methods.split(",")
        middleware.append(Middleware(CORSMiddleware, allow_origins=["*"], allow_methods=methods))
    return Starlette(routes=[Mount(prefix, routes=inner)] if prefix else inner, middleware=middleware)


def _pages() -> Mount | Route:
    if (PAGES / "index.html").is_file():
        return Mount("/", app=StaticFiles(directory=PAGES, html=True))

    async def missing(_request: Request) -> Response:
        text = "The pages have not been built: run `python tools/build_pages.py` in the checkout.\n"
        return PlainTextResponse(text, status_code=503)

    return Route("/", missing)


class _Guard:
    """Headers that keep pages to themselves, methods, the token, names of the host that others cannot take.

    A page of another site may send a browser's requests to the own machine under a name of its own (DNS
    rebinding): a service that only the own machine reaches answers to the names of that machine alone. And
    it may send what changes something without reading the answer, which is refused unless CORS is enabled.
    """

    def __init__(self, app: ASGIApp, settings: Settings):
        self._app, self._token = app, settings.token
        self._only_here, self._may_cross = is_loopback(settings.host), settings.enable_cors
        self._methods = {*settings.support_request_methods.split(",")}
        if "GET" in self._methods:
            self._methods.add("HEAD")
        if settings.enable_cors:
            self._methods.add("OPTIONS")  # what a browser asks before

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        cookie = ""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                if cookie:
                    headers.append("Set-Cookie", cookie)
            await send(message)

        if self._only_here and not is_loopback(_host_of(request)):
            answer = PlainTextResponse(
                "This service answers to the names of its own machine only.\n", status_code=421
            )
            await answer(scope, receive, with_headers)
            return
        if request.method not in self._methods:
            told = {"error_code": "50545002", "error_msg": "405 Method Not Allowed."}  # as MindInsight does
            answer = JSONResponse(told, 405, {"Allow": ", ".join(sorted(self._methods))})
            await answer(scope, receive, with_headers)
            return
        if not self._may_cross and request.method not in _SAFE and _is_cross_site(request):
            answer = PlainTextResponse("Pages of other sites change nothing here.\n", status_code=403)
            await answer(scope, receive, with_headers)
            return
        if self._token and not self._is_known(request):
            answer = PlainTextResponse(
                "A token is needed: open the address with ?token=...\n", status_code=401
            )
            await answer(scope, receive, with_headers)
            return
        if self._token and "token" in request.query_params:
            cookie = f"{_COOKIE}={quote(self._token)}; HttpOnly; SameSite=Strict; Path=/"
        await self._app(scope, receive, with_headers)

    def _is_known(self, request: Request) -> bool:
        kind, _, bearer = request.headers.get("authorization", "").partition(" ")
        given = (
            bearer if kind.lower() == "bearer" else "",
            request.query_params.get("token", ""),
            unquote(request.cookies.get(_COOKIE, "")),
        )
        return any(hmac.compare_digest(one.encode(), self._token.encode()) for one in given)


def _is_cross_site(request: Request) -> bool:
    """Whether a page of another origin sends it; programs do not say where they come from."""
    if site := request.headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")
    own = request.headers.get("x-forwarded-host") or request.headers.get("host", "")
    return origin is not None and origin.partition("://")[2] != own


def _host_of(request: Request) -> str:
    host = request.headers.get("host", "")
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] or host
