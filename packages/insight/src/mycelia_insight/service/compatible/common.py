"""What endpoints of MindInsight's interface share: errors with codes, parameters, the run asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mycelia_insight.records.reading import Missing, entries
from mycelia_insight.records.wire import Broken
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Entry, Run
from mycelia_insight.service.endpoints import RequestError, body_of, json


class Refused(Exception):
    """An answer with an error's code and text."""

    def __init__(self, status: int, code: str, text: str):
        super().__init__(text)
        self.answer = JSONResponse({"error_code": code, "error_msg": text}, status)


def run_of(library: Library, request: Request) -> Run:
    """The run that `train_id` names.  Errors: Refused."""
    return run_by_id(library, need(request, "train_id"))


def run_by_id(library: Library, id: str) -> Run:
    """Errors: Refused."""
    run = library.get(id if id.startswith("./") else f"./{id}")
    if run is None:
        raise Refused(400, "50545005", f"Train job is not exist. Detail: {id}")
    return run


def route(path: str, function, methods: tuple[str, ...] = ("GET",)) -> Route:
    """`function(request)` runs in a thread and returns what becomes JSON, or a Response."""

    async def endpoint(request: Request) -> Response:
        return await answer(lambda: run_in_threadpool(function, request))

    return Route(path, endpoint, methods=list(methods))


async def answer(ask: Callable[[], Awaitable[Any]]) -> Response:
    """What `ask` gives as JSON, or the answer of what it refuses."""
    try:
        found = await ask()
        return found if isinstance(found, Response) else json(found)
    except Refused as refused:
        return refused.answer
    except Broken as error:
        return Refused(400, "50540002", f"Invalid parameter value. Detail: {error}.").answer


async def body_or_refused(request: Request) -> Any:
    """The body of a request, of JSON; {} if there is none.  Errors: Refused."""
    try:
        found = await body_of(request)
    except RequestError as error:
        raise Refused(400, "50540002", "Invalid parameter value. Json data parse failed.") from error
    return {} if found is None else found


def need(request: Request, name: str) -> str:
    """A parameter of the query that must be there.  Errors: Refused."""
    value = request.query_params.get(name)
    if not value:
        raise Refused(400, "50540003", f"Param missing. '{name}' is required.")
    return value


def whole(request: Request, name: str, default: int, low: int, high: int) -> int:
    """A whole number of the query.  Errors: Refused."""
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.removeprefix("-").isdecimal()):
        raise Refused(400, "50540001", f"Invalid parameter type. '{name}' expect Integer type.")
    if len(text) > 20 or not low <= int(text) <= high:
        raise Refused(400, "50540002", f"Invalid parameter value. '{name}' should be in [{low}, {high}].")
    return int(text)


def kept(steps: Sequence[int] | np.ndarray) -> np.ndarray:
    """Places of those that MindInsight keeps: what comes again at an earlier or the same step replaces."""
    steps = np.asarray(steps, np.int64)
    least = np.minimum.accumulate(steps[::-1])[::-1]  # of what comes from there on
    return np.flatnonzero(np.append(steps[:-1] < least[1:], True)[: len(steps)])


def values_of(run: Run, kind: Kind, tag: str, code: str) -> list[Entry]:
    """Values of a tag, with or without the kind at its end.  Errors: Refused with `code`."""
    try:
        found = entries(run, kind, tag.removesuffix(f"/{kind.name.lower()}"))
        return [found[i] for i in kept([one.step for one in found])]
    except Missing:
        raise Refused(400, code, f"{kind.name.capitalize()} is not exist. Detail: {tag}") from None
