"""Endpoints that say what they take: the same table checks requests and is the OpenAPI document."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mycelia_insight.records.reading import Missing
from mycelia_insight.records.wire import Broken

_NAMES = {int: "integer", float: "number", str: "string", bool: "boolean"}
_REQUIRED = object()
_MOST_BODY = 64 << 10


class RequestError(Exception):
    """What is wrong with a request: a status and a text."""

    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Parameter:
    """A parameter of the query, or of the path. `many`: it may come again."""

    name: str
    type: type
    about: str
    default: Any = _REQUIRED
    low: float = -math.inf
    high: float = math.inf
    many: bool = False

    def read(self, given: Sequence[str]) -> Any:
        """Errors: RequestError (400) names the parameter, what came and what was expected."""
        if not given:
            if self.default is _REQUIRED:
                raise RequestError(400, f"'{self.name}' is required: {self.about}")
            return self.default
        return [self._one(text) for text in given] if self.many else self._one(given[-1])

    def _one(self, text: str) -> Any:
        if self.type is str:
            return text
        if self.type is bool and text in ("true", "false", "1", "0"):
            return text in ("true", "1")
        try:
            value = None if self.type is bool else self.type(text)
        except ValueError:
            value = None
        if value is None or math.isnan(value) or not self.low <= value <= self.high:
            bounds = (
                "" if math.isinf(self.low) and math.isinf(self.high) else f" of {self.low:g}..{self.high:g}"
            )
            raise RequestError(400, f"'{self.name}' must be {_NAMES[self.type]}{bounds}, got {text[:80]!r}")
        return value

    @property
    def schema(self) -> dict:
        one: dict[str, Any] = {"type": _NAMES[self.type]}
        if self.type is not str and not math.isinf(self.low):
            one["minimum"] = self.low
        if self.type is not str and not math.isinf(self.high):
            one["maximum"] = self.high
        return {"type": "array", "items": one} if self.many else one


@dataclass
class Table:
    """Endpoints of one interface."""

    title: str
    routes: list[Route] = field(default_factory=list)
    paths: dict[str, dict] = field(default_factory=dict)

    def get(self, path: str, *parameters: Parameter) -> Callable:
        """`function(request, **parameters)`, plain or async, returns what becomes JSON, or a Response."""
        return self._method("GET", path, parameters)

    def put(self, path: str, *parameters: Parameter) -> Callable:
        """As `get`; `function(request, body, **parameters)` gets the body, of JSON and at most 64 KiB."""
        return self._method("PUT", path, parameters)

    def delete(self, path: str, *parameters: Parameter) -> Callable:
        """As `get`; such a request changes something, and has no body."""
        return self._method("DELETE", path, parameters)

    def _method(self, method: str, path: str, parameters: Sequence[Parameter]) -> Callable:
        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            inside = [p for p in parameters if f"{{{p.name}}}" in path or f"{{{p.name}:path}}" in path]
            self.routes.append(
                Route(path, _endpoint(function, parameters, inside, method == "PUT"), methods=[method])
            )
            described = _described(function, parameters, inside)
            if method == "DELETE":
                described["responses"]["403"] = {"description": "the service allows no deletion"}
            if method == "PUT":
                described["responses"]["413"] = {"description": f"the body has more than {_MOST_BODY} bytes"}
                described["requestBody"] = {"required": True, "content": {"application/json": {"schema": {}}}}
            self.paths.setdefault(path.replace(":path}", "}"), {})[method.lower()] = described
            return function

        return decorate

    def document(self) -> dict:
        """The interface as OpenAPI 3.1."""
        return {"openapi": "3.1.0", "info": {"title": self.title, "version": "1"}, "paths": self.paths}


def json(value: Any, status: int = 200) -> Response:
    """JSON; NumPy's arrays are lists."""
    return Response(
        orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY), status, media_type="application/json"
    )


async def body_of(request: Request) -> Any:
    """The body of a request, of JSON; None if there is none.  Errors: RequestError (400, 413)."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > _MOST_BODY:
            raise RequestError(413, f"a body may have at most {_MOST_BODY} bytes")
    try:
        return orjson.loads(data) if data else None
    except ValueError as error:
        raise RequestError(400, f"the body must be JSON: {error}") from error


def _endpoint(
    function: Callable[..., Any],
    parameters: Sequence[Parameter],
    inside: Sequence[Parameter],
    with_body: bool = False,
) -> Callable[[Request], Awaitable[Response]]:
    from starlette.concurrency import run_in_threadpool

    async def endpoint(request: Request) -> Response:
        try:
            values = {
                p.name: p.read(
                    [request.path_params[p.name]] if p in inside else request.query_params.getlist(p.name)
                )
                for p in parameters
            }
            if with_body:
                values["body"] = await body_of(request)
            if inspect.iscoroutinefunction(function):
                found = await function(request, **values)
            else:
                found = await run_in_threadpool(function, request, **values)
        except RequestError as error:
            return JSONResponse({"error": str(error)}, error.status)
        except Missing as error:
            return JSONResponse({"error": error.args[0]}, 404)
        except Broken as error:
            return JSONResponse({"error": str(error)}, 422)
        return found if isinstance(found, Response) else json(found)

    return endpoint


def _described(function: Callable, parameters: Sequence[Parameter], inside: Sequence[Parameter]) -> dict:
    summary, _, rest = (inspect.getdoc(function) or "").partition("\n")
    return {
        "operationId": function.__name__,
        "summary": summary,
        "description": rest.strip(),
        "parameters": [
            {
                "name": p.name,
                "in": "path" if p in inside else "query",
                "required": p.default is _REQUIRED,
                "description": p.about,
                "schema": p.schema,
            }
            for p in parameters
        ],
        "responses": {"200": {"description": "the answer"}, "400": {"description": "a parameter is wrong"},
                      "404": {"description": "no such run, tag or value"},
                      "422": {"description": "the value in the event file is broken, or too large"}},
    }  # fmt: skip
