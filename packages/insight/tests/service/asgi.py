"""A client that asks an application in this process."""

from __future__ import annotations

import asyncio
import json as json_module
from typing import Any
from urllib.parse import quote, urlencode


class Answer:
    def __init__(self, status: int, body: bytes, headers: dict[str, str]):
        self.status_code, self.body, self.headers = status, body, headers

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
        return self.ask("GET", path, params)

    def post(self, path: str, json: Any = None, content: bytes | None = None) -> Answer:
        return self.ask("POST", path, None, json_module.dumps(json).encode() if content is None else content)

    def put(self, path: str, json: Any = None, content: bytes | None = None) -> Answer:
        return self.ask("PUT", path, None, json_module.dumps(json).encode() if content is None else content)

    def delete(self, path: str, params: dict | list | None = None) -> Answer:
        return self.ask("DELETE", path, params)

    def ask(self, *request: Any, **more: Any) -> Answer:
        """As `asked`, in an event loop of its own."""
        return asyncio.run(self.asked(*request, **more))

    async def asked(
        self,
        method: str,
        path: str,
        params: dict | list | None = None,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        given = {"Host": "localhost", "Content-Type": "application/json", **(headers or {})}
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
            "raw_path": quote(path).encode(), "root_path": "", "scheme": "http", "client": ("127.0.0.1", 1),
            "query_string": (urlencode(params or {}) or quote(query, safe="=&")).encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
            "server": ("localhost", 80),
        }  # fmt: skip
        sent: list[dict] = []
        asked: list[bytes] = []

        async def receive() -> dict:
            if asked:
                await asyncio.Event().wait()  # the client stays until it has the answer
            asked.append(body)
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        data = b"".join(m.get("body", b"") for m in sent if m["type"] == "http.response.body")
        told = {name.decode(): value.decode() for name, value in sent[0].get("headers", [])}
        return Answer(sent[0]["status"], data, told)
