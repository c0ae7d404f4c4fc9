"""What the REST port answers: MindSpore's paths, KServe v2, metrics, and what is served.

Knows nothing of connections: `asgi.RestApp` brings the requests and takes the replies.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import unquote

from mycelia_serving.errors import Code, ServingError, clip
from mycelia_serving.frontend.http import HttpReply, HttpRequest
from mycelia_serving.frontend.json_values import dump, error_body, parse_instances, reply_body
from mycelia_serving.frontend.kserve import Models, Repository
from mycelia_serving.frontend.kserve_calls import InferenceCalls
from mycelia_serving.frontend.kserve_rest import InferenceRoutes, error_reply
from mycelia_serving.frontend.metrics import Metrics
from mycelia_serving.frontend.status import add_headers
from mycelia_serving.frontend.token import Token
from mycelia_serving.frontend.tracing import submitter
from mycelia_serving.request import Call, Dispatcher, Reply, Request, burst
from mycelia_serving.wire.tensors import invalid

_MOST_VERSION = (1 << 32) - 1
_OPEN = frozenset(("/v2/health/live", "/v2/health/ready"))  # probes have no token
_ALLOWED = {405: (("Allow", "POST"),), 401: (("WWW-Authenticate", "Bearer"),)}

Done = Callable[[HttpReply], None]


class Rest:
    """An `http.Application`.

    token: what callers must send as `Authorization: Bearer TOKEN`, the probes excepted; None: nothing.
    repository, admin_token: see `kserve.Repository`.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        metrics: Metrics | None = None,
        token: str | None = None,
        repository=None,
        admin_token: str | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._submit = submitter(dispatcher)
        self._metrics = metrics if metrics is not None else Metrics.of(dispatcher)
        self._token = Token(token, admin_token)
        calls = InferenceCalls(
            dispatcher, Models(dispatcher), self._metrics, Repository(repository, admin_token)
        )
        self._v2 = InferenceRoutes(calls)
        self._targets: dict[str, tuple[str, str, int]] = {}  # path -> servable, method, version

    # ---- http.Application ----------------------------------------------------------------------------------

    def refuse(self, request: HttpRequest) -> HttpReply | None:
        """A reply before the body is read."""
        if request.path in _OPEN or self._token.admits(request.headers.get("authorization", "")):
            return None
        return self._error(request, ServingError(Code.DENIED, "the token is missing or wrong"))

    def broken(self, status: int, text: str) -> HttpReply:
        """The reply to what is no request."""
        return HttpReply(status, dump({"error_msg": text}))

    def burst(self):
        """A context for requests that came together."""
        return burst(self._dispatcher)

    def handle(self, request: HttpRequest, done: Done) -> Call | None:
        """Answer a request by calling `done` once, from any thread. Never raises."""
        try:
            target = self._targets.get(request.path)
            if target is not None and request.method == "POST":
                return self._predict(request, *target, done)
            return self._route(request, done)
        except ServingError as error:
            done(self._error(request, error))
        except Exception as error:
            from mycelia import log

            log.logger(__name__).exception("an error inside the server at %s", clip(request.path))
            text = f"an error inside the server: {type(error).__name__}"
            done(self._error(request, ServingError(Code.SYSTEM_ERROR, text)))
        return None

    @staticmethod
    def _error(request: HttpRequest, error: ServingError) -> HttpReply:
        if request.path.startswith("/v2"):
            reply = error_reply(error)
        else:
            reply = HttpReply(error.http_status, error_body(error))
        reply.headers = _ALLOWED.get(reply.status, ())
        if reply.status == 405 and request.method == "POST":
            reply.headers = (("Allow", "GET, HEAD"),)
        return reply

    # ---- routes --------------------------------------------------------------------------------------------

    def _route(self, request: HttpRequest, done: Done) -> Call | None:
        path = request.path
        if path == "/v2" or path.startswith("/v2/"):
            segments = [unquote(s) for s in path.rstrip("/").split("/")[2:]]
            return self._v2.handle(request, segments, done)
        page = self._PAGES.get(path)
        if page is not None:
            if request.method not in ("GET", "HEAD"):
                raise ServingError(Code.WRONG_VERB, f"{path} is read by GET")
            done(page(self))
            return None
        target = _target(path)
        if target is None and request.method in ("GET", "HEAD"):
            raise ServingError(Code.NOT_FOUND, f"nothing is at {clip(path)}")
        if target is None or isinstance(target, str):
            wanted = "/model/{name}[/version/{n}]:{method}"
            raise invalid(f"the URL is not {wanted}: {target or clip(path)}")
        if request.method != "POST":
            raise ServingError(
                Code.WRONG_VERB, f"methods of servables are called by POST, not {request.method}"
            )
        if len(self._targets) > 1000:
            self._targets = {}
        self._targets[path] = target
        return self._predict(request, *target, done)

    def _predict(
        self, sent: HttpRequest, servable: str, method: str, version: int, done: Done
    ) -> Call | None:
        start = time.perf_counter()
        count, received = self._metrics.count, len(sent.body)
        headers = sent.headers
        try:
            request = Request(servable, method, parse_instances(sent.body), version, protocol="rest")
            sent.body = b""  # a large one is not needed beside what it holds
            add_headers(request, headers)
        except ServingError as error:
            count("rest", servable, method, Reply(error=error), start, received, 0)
            raise
        literal = "nan=literal" in headers.get("accept", "")

        def answer(reply: Reply) -> None:
            status, body = reply_body(reply, literal)
            count("rest", servable, method, reply, start, received, len(body))
            done(HttpReply(status, body))

        return self._submit(request, answer)

    # ---- pages ---------------------------------------------------------------------------------------------

    def _models(self) -> HttpReply:
        """What is served: versions, methods with their signatures, workers."""

        def tensors(infos) -> list[dict]:
            return [{"name": i.name, "dtype": i.dtype, "shape": i.shape, "batched": i.batched} for i in infos]

        found = [
            {
                "name": info.name,
                "version": info.version,
                "state": info.state,
                "reason": info.reason,
                "methods": [
                    {
                        "name": method.name,
                        "inputs": tensors(method.inputs),
                        "outputs": tensors(method.outputs),
                        "batch_size": method.batch_size,
                    }
                    for method in info.methods
                ],
                "workers": list(info.workers),
                "model_files": list(info.model_files),
            }
            for info in self._dispatcher.describe()
        ]
        return HttpReply(200, dump({"servables": found}))

    def _metrics_page(self) -> HttpReply:
        return HttpReply(200, self._metrics.page(), "text/plain; version=0.0.4; charset=utf-8")

    def _openapi(self) -> HttpReply:
        from mycelia_serving.frontend.openapi import document

        return HttpReply(200, dump(document(self._dispatcher.describe())))

    def _front_page(self) -> HttpReply:
        from mycelia_serving.frontend.openapi import page

        return HttpReply(200, page(self._dispatcher.describe()).encode(), "text/html; charset=utf-8")

    _PAGES = {
        "/": _front_page,
        "/model": _models,
        "/metrics": _metrics_page,
        "/openapi.json": _openapi,
    }


def _target(path: str) -> tuple[str, str, int] | str | None:
    """Servable, method and version that a path names; or what is wrong; None if it is about no servable."""
    segments = path.split("/")[1:]
    last, colon, method = segments[-1].rpartition(":")
    if not colon:
        return "':{method}' is missing" if segments[0] in ("model", "version") and len(segments) > 1 else None
    segments[-1] = last
    match segments:
        case ["model", name]:
            version = "0"
        case ["model", name, "version", version] | ["version", version, "model", name]:
            pass
        case _:
            return None
    name, method = unquote(name), unquote(method)
    if not name or not method:
        return "a name is empty"
    if not (version.isascii() and version.isdigit()) or len(version) > 10 or int(version) > _MOST_VERSION:
        return f"version {clip(version)!r} is not a number of 32 bits"
    return name, method, int(version)
