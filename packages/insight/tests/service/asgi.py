"""A client that asks an application in this process."""

from __future__ import annotations

import asyncio
import json as json_module
from typing import Any
from urllib.parse import quote, urlencode


class Answer:
    def __init__(self, status: int, body: bytes):
        self.status_code, self.body = status, body

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json_module.loads(self.body)


class Client:
    """Requests as from the own machine."""

    def __init__(self, app):
        self._app = app

    def get(self, path: str, params: dict | list | None = None) -> Answer:
        return self._ask("GET", path, params or {}, b"")

    def post(self, path: str, json: Any = None, content: bytes | None = None) -> Answer:
        return self._ask("POST", path, {}, json_module.dumps(json).encode() if content is None else content)

    def put(self, path: str, json: Any = None, content: bytes | None = None) -> Answer:
        return self._ask("PUT", path, {}, json_module.dumps(json).encode() if content is None else content)

    def _ask(self, method: str, path: str, params: dict | list, body: bytes) -> Answer:
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
            "raw_path": quote(path).encode(), "root_path": "", "scheme": "http", "client": ("127.0.0.1", 1),
            "query_string": (urlencode(params) or quote(query, safe="=&")).encode(),
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
            "server": ("localhost", 80),
        }  # fmt: skip
        sent: list[dict] = []

        async def receive() -> dict:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message) -> None:
            sent.append(message)

        asyncio.run(self._app(scope, receive, send))
        data = b"".join(m.get("body", b"") for m in sent if m["type"] == "http.response.body")
        return Answer(sent[0]["status"], data)
