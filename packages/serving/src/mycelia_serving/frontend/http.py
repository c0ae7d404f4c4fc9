"""Requests and replies of the REST port, as whole objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mycelia_serving.request import Call


@dataclass(slots=True)
class HttpRequest:
    """A request. `path` and `query` are as they were sent, names of headers in lower case."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass(slots=True)
class HttpReply:
    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


class Application(Protocol):
    """Answers requests."""

    def burst(self):
        """A context for requests that came together."""

    def refuse(self, request: HttpRequest) -> HttpReply | None:
        """A reply before the body is read, or None to read it."""

    def handle(self, request: HttpRequest, done: Callable[[HttpReply], None]) -> Call | None:
        """Call `done` once, from any thread. Never raises."""

    def broken(self, status: int, text: str) -> HttpReply:
        """The reply to what is no request."""
