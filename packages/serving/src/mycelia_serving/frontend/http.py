"""HTTP/1.1 on asyncio: whole requests in, whole replies out, and no patience with slow or greedy clients.

`httptools` reads the requests. One request of a connection is answered at a time, in order; a client that
sends more is not read until then.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

import httptools

from mycelia import log
from mycelia_serving.request import Call

_MOST_HEADERS = 200
_HEADER_BYTES = 64 << 10
_URL_BYTES = 16 << 10
_WAITING = 8  # requests of one connection that may wait for their turn
_SLOWEST = 16 << 10  # bytes a second that a client must manage, beside `patience`
_LINGER_S = 2.0  # how long a refused body is still read, so that the client sees why


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


class Connections:
    """What the connections of one server share.

    max_body: bytes of a request's body. patience: seconds that a client may be silent inside of a request,
    idle: between two of them.
    """

    def __init__(
        self,
        application: Application,
        loop: asyncio.AbstractEventLoop,
        *,
        max_body: int,
        patience: float = 20.0,
        idle: float = 75.0,
    ) -> None:
        self.application = application
        self.loop = loop
        self.max_body = max_body
        self.patience = patience
        self.idle = idle
        self.open: set[Connection] = set()
        self.stopping = False
        self._mail: deque[tuple[Connection, int, HttpReply]] = deque()
        self._called = False  # the loop knows of mail
        self._came: list[Connection] = []

    def post(self, connection: Connection, number: int, reply: HttpReply) -> None:
        """Deliver a reply, from any thread."""
        self._mail.append((connection, number, reply))
        if not self._called:
            self._called = True
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._called = False  # before the first look: what comes after the last one calls again
        while self._mail:
            connection, number, reply = self._mail.popleft()
            try:
                connection.answer(number, reply)
            except Exception:
                log.logger(__name__).exception("an error inside the server")
                connection.transport.abort()

    def came(self, connection: Connection) -> None:
        """A request has come whose turn it is: those of one round of the loop are handled together."""
        if not self._came:
            self.loop.call_soon(self._handle_all)
        self._came.append(connection)

    def _handle_all(self) -> None:
        came, self._came = self._came, []
        with self.application.burst():
            for connection in came:
                connection.take_turn()

    def make(self) -> Connection:
        return Connection(self)

    @property
    def busy(self) -> bool:
        return any(connection.busy for connection in self.open)

    def stop(self) -> None:
        """Take nothing new; connections end with the answer they wait for."""
        self.stopping = True
        for connection in list(self.open):
            connection.end_if_idle()

    def abort(self) -> None:
        for connection in list(self.open):
            connection.transport.abort()


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, shared: Connections) -> None:
        self._shared = shared
        self._parser = httptools.HttpRequestParser(self)
        self._request: HttpRequest | None = None  # the one that is being read
        self._waiting: deque[tuple[HttpRequest, bool]] = deque()
        self._current: tuple[HttpRequest, bool] | None = None  # the one that is being answered
        self._number = 0  # of the current one
        self._call: Call | None = None
        self._closing = False  # nothing more is read
        self._last_word: HttpReply | None = None  # then the connection ends
        self._choked = False  # the client does not read
        self._unsent = 0  # bytes, when it was looked at last
        self._paused = False
        self._since = self._last = shared.loop.time()
        self._received = 0
        self.transport: asyncio.Transport

    # ---- asyncio -------------------------------------------------------------------------------------------

    def connection_made(self, transport) -> None:
        self.transport = transport
        self._shared.open.add(self)
        self._timer = self._shared.loop.call_later(self._shared.patience, self._look_at_clock)

    def connection_lost(self, error) -> None:
        self._shared.open.discard(self)
        self._timer.cancel()
        self._closing = True
        self._waiting.clear()
        self._current = None
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        self._last = self._shared.loop.time()
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._closing = True  # we do not speak that protocol; the request itself is answered
        except _Refused as refused:
            self._refuse(refused.reply)
        except httptools.HttpParserError as error:
            inner = error.__context__
            if isinstance(inner, _Refused):
                self._refuse(inner.reply)
            elif not self._closing:
                self._refuse(self._shared.application.broken(400, "the request is not HTTP/1.1"))

    def pause_writing(self) -> None:
        self._choked = True
        self._unsent = self.transport.get_write_buffer_size()
        self._since = self._shared.loop.time()

    def resume_writing(self) -> None:
        self._choked = False
        self.take_turn()

    # ---- httptools -----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._header_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._since = self._shared.loop.time()
        self._received = 0
        self._request = HttpRequest("", "", "", self._headers)

    def on_url(self, url: bytes) -> None:
        self._url += url
        if len(self._url) > _URL_BYTES:
            raise _Refused(self._shared.application.broken(414, "the URL is too long"))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        headers = self._headers
        if self._header_bytes > _HEADER_BYTES or len(headers) >= _MOST_HEADERS:
            raise _Refused(self._shared.application.broken(431, "the headers are too large"))
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        request, application = self._request, self._shared.application
        request.method = self._parser.get_method().decode("latin-1")
        path, _, request.query = self._url.decode("latin-1").partition("?")
        request.path = path
        size = self._headers.get("content-length", "")
        if size.isdigit() and int(size) > self._shared.max_body:
            raise _Refused(self._too_large())
        refusal = application.refuse(request)
        if refusal is not None:
            raise _Refused(refusal)
        if self._headers.get("expect", "").lower() == "100-continue" and self._current is None:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data: bytes) -> None:
        self._body_bytes += len(data)
        if self._body_bytes > self._shared.max_body:
            raise _Refused(self._too_large())
        self._body.append(data)

    def on_message_complete(self) -> None:
        request = self._request
        self._request = None
        body = self._body
        request.body = body[0] if len(body) == 1 else b"".join(body)
        self._body = []
        encoding = self._headers.get("content-encoding")
        if encoding is not None:
            request.body = self._unpacked(request.body, encoding.lower())
        keep = self._parser.should_keep_alive() and not self._parser.should_upgrade()
        self._since = self._shared.loop.time()
        self._waiting.append((request, keep))
        if self._current is None and len(self._waiting) == 1 and not self._choked:
            self._shared.came(self)
        if len(self._waiting) >= _WAITING and not self._paused:
            self._paused = True
            self.transport.pause_reading()

    def _unpacked(self, body: bytes, encoding: str) -> bytes:
        """A compressed body, up to the limit for bodies."""
        broken, limit = self._shared.application.broken, self._shared.max_body
        if encoding == "identity":
            return body
        if encoding not in ("gzip", "deflate"):
            raise _Refused(broken(415, "bodies are plain, gzip or deflate"))
        unpacker = zlib.decompressobj(47 if encoding == "gzip" else 15)  # 47: with gzip's header
        try:
            plain = unpacker.decompress(body, limit + 1)
        except zlib.error as error:
            raise _Refused(broken(400, f"the body is not {encoding}: {error}")) from None
        if len(plain) > limit:
            raise _Refused(self._too_large())
        if not unpacker.eof:
            raise _Refused(broken(400, f"the body is not {encoding}: it is cut off"))
        return plain

    # ---- answers -------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return self._current is not None or bool(self._waiting) or self._choked

    def answer(self, number: int, reply: HttpReply) -> None:
        """The reply to the current request, in the loop's thread; one that comes too late is dropped."""
        if self._current is None or number != self._number:
            return
        request, keep = self._current
        self._current = self._call = None
        more = bool(self._waiting) or self._last_word is not None
        keep = (keep and not self._closing and not self._shared.stopping) or more
        self._write(reply, request.method == "HEAD", keep, "connection" in request.headers)
        self._since = self._shared.loop.time()
        if keep:
            self.take_turn()
        else:
            self._closing = True
            self.transport.close()

    def _start(self, request: HttpRequest, keep: bool) -> None:
        self._number += 1
        number, shared = self._number, self._shared
        self._current = request, keep
        call = shared.application.handle(request, lambda reply: shared.post(self, number, reply))
        if self._current is not None and self._number == number:
            self._call = call

    def take_turn(self) -> None:
        """Start the next request of this connection, if there is one."""
        if self._choked or self._current is not None:
            return
        if self._waiting:
            request, keep = self._waiting.popleft()
            self._start(request, keep)
        elif self._last_word is not None:
            self._refuse(self._last_word)
        if self._paused and len(self._waiting) < _WAITING and not self._closing:
            self._paused = False
            self.transport.resume_reading()

    def _write(self, reply: HttpReply, head: bool, keep: bool, explicit: bool = True) -> None:
        lines = [_line(reply.status), f"content-type: {reply.content_type}\r\n".encode("latin-1")]
        lines += [f"{name}: {value}\r\n".encode("latin-1") for name, value in reply.headers]
        if not keep:
            lines.append(b"connection: close\r\n")
        elif explicit:
            lines.append(b"connection: keep-alive\r\n")  # clients of HTTP/1.0 wait for it
        lines.append(b"content-length: %d\r\n\r\n" % len(reply.body))
        if not head:
            lines.append(reply.body)
        self.transport.write(b"".join(lines))

    # ---- clients that misbehave ----------------------------------------------------------------------------

    def _too_large(self) -> HttpReply:
        limit = self._shared.max_body >> 20
        return self._shared.application.broken(413, f"the body is larger than the limit of {limit} MB")

    def _refuse(self, reply: HttpReply) -> None:
        """Answer and end the connection, after earlier requests of this client have been answered."""
        head = self._request is not None and self._request.method == "HEAD"
        self._closing = True
        self._request = None
        if self._current is not None or self._waiting:
            self._last_word = reply
            return
        self._last_word = None
        self._write(reply, head, keep=False)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        # What the client still sends is read and dropped for a moment: a reset would take the answer from it.
        self._shared.loop.call_later(_LINGER_S, self.transport.close)

    def _look_at_clock(self) -> None:
        """Ends connections of clients that do nothing; called a few times in the time they have."""
        shared, now = self._shared, self._shared.loop.time()
        patience = shared.patience
        if self._choked or self.transport.is_closing():
            unsent = self.transport.get_write_buffer_size()
            if unsent < self._unsent:
                self._since = now
            self._unsent = unsent
            if now >= self._since + patience:
                self.transport.abort()
                return
        elif self._request is not None:
            if now >= min(self._last + patience, self._since + patience + self._received / _SLOWEST):
                self._refuse(shared.application.broken(408, "the request came too slowly"))
        elif not self.busy and now >= self._since + shared.idle:
            self.transport.close()
        self._timer = shared.loop.call_later(patience / 4, self._look_at_clock)

    def end_if_idle(self) -> None:
        """For a server that stops."""
        if not self.busy and self._request is None:
            self.transport.close()


class _Refused(Exception):
    def __init__(self, reply: HttpReply) -> None:
        super().__init__(reply.status)
        self.reply = reply


def _line(status: int) -> bytes:
    line = _LINES.get(status)
    return line if line is not None else f"HTTP/1.1 {status} \r\n".encode()


def _status_lines() -> Iterable[tuple[int, bytes]]:
    for status in HTTPStatus:
        yield status.value, f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()


_LINES = dict(_status_lines())
