"""The REST port's application on uvicorn: whole requests in, whole replies out.

uvicorn speaks HTTP/1.1; what it leaves to others is here: limits of headers and bodies, and a time limit for
slow clients.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections import Counter, deque
from collections.abc import Callable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from mycelia_serving.frontend.http import Application, HttpReply, HttpRequest
from mycelia_serving.frontend.large import Bomb, executor, is_large, unpack
from mycelia_serving.frontend.shares import PEER, SLOWEST, Share, client_of, most_bytes, most_connections
from mycelia_serving.request import Call

_MOST_HEADERS = 200
_HEADER_BYTES = 64 << 10
_URL_BYTES = 16 << 10
_LINGER_S = 2.0  # how long a refused body is still read, so that the client sees why


class RestApp:
    """An ASGI application that answers from `application`.

    max_body: bytes of a request's body. stall_s: seconds that a client may be silent inside of a request.
    connections: that may be open; one client gets as many as it leaves to others. buffered: bytes of requests
    that are not answered yet, see `shares.Share`.
    """

    def __init__(
        self,
        application: Application,
        *,
        max_body: int,
        stall_s: float,
        connections: int | None = None,
        buffered: int | None = None,
    ) -> None:
        self.application = application
        self.max_body = max_body
        self.stall_s = stall_s
        self.connections = connections or most_connections()
        self.bytes = Share(buffered or most_bytes(max_body), self.connections)
        self.clients: Counter[str] = Counter()  # client -> its connections
        self.large = executor()
        self._came: list[tuple[HttpRequest, _Waiting]] = []
        self._mail: deque[tuple[_Waiting, HttpReply]] = deque()
        self._called = False  # the loop knows of mail
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope, receive, send) -> None:
        request, refusal = self._head(scope)
        connection = scope["mycelia.connection"]
        request.headers[PEER] = connection.peer
        held = _Held(self.bytes, connection)
        try:
            await self._serve(request, refusal, connection, held, receive, send)
        finally:
            held.give_back()

    async def _serve(self, request, refusal, connection, held, receive, send) -> None:
        body = None
        if refusal is None:
            try:
                body = await self._body(request, receive, held)
            except _Refused as refused:
                refusal = refused.reply
        if connection.transport.is_closing():
            _has_left(receive)
            return
        if refusal is not None:
            await _write(send, refusal)
            connection.linger()
            return
        if body is None:
            return
        request.body = body
        waiting = _Waiting(self._loop_of_server().create_future())
        connection.waiting = waiting
        if is_large(body, False):
            del body  # so that it goes when it has been read
            self.large.submit(self._handle_large, request, waiting)
        else:
            if not self._came:
                self._loop.call_soon(self._handle_all)
            self._came.append((request, waiting))
        reply = await waiting.reply
        connection.waiting = None
        if reply is None or connection.transport.is_closing():
            _has_left(receive)
        else:
            await _write(send, reply)

    def _loop_of_server(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    # ---- requests ------------------------------------------------------------------------------------------

    def _head(self, scope) -> tuple[HttpRequest, HttpReply | None]:
        """The request without its body, and why it is refused before that is read."""
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key, text = name.decode("latin-1"), value.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        request = HttpRequest(scope["method"], path, query, headers)
        size = headers.get("content-length", "")
        if size.isdigit() and int(size) > self.max_body:
            return request, self._too_large()
        return request, self.application.refuse(request)

    async def _body(self, request: HttpRequest, receive, held: _Held) -> bytes | None:
        """The whole body, unpacked; None if the client has left."""
        headers = request.headers
        if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
            return b""
        message = await self._next(receive, self.stall_s)
        if message["type"] == "http.disconnect":
            return None
        body = message["body"]
        self._hold(held, len(body))
        if message["more_body"]:
            parts, size = [body], len(body)
            end = self._loop_of_server().time() + self.stall_s
            while message["more_body"]:
                if size > self.max_body:
                    raise _Refused(self._too_large())
                left = end + size / SLOWEST - self._loop.time()
                message = await self._next(receive, min(self.stall_s, left))
                if message["type"] == "http.disconnect":
                    return None
                self._hold(held, len(message["body"]))
                parts.append(message["body"])
                size += len(message["body"])
            body = b"".join(parts)
            del parts
        if len(body) > self.max_body:
            raise _Refused(self._too_large())
        encoding = headers.get("content-encoding")
        if encoding is None:
            return body
        if not is_large(body, True):
            return self._unpacked(body, encoding.lower())
        body = await self._loop_of_server().run_in_executor(
            self.large, self._unpacked, body, encoding.lower()
        )
        self._hold(held, max(len(body) - held.size, 0))
        return body

    def _hold(self, held: _Held, size: int) -> None:
        if not held.take(size):
            raise _Refused(self.application.broken(429, "too many requests are waiting"))

    async def _next(self, receive, seconds: float):
        try:
            async with asyncio.timeout(seconds):
                return await receive()
        except TimeoutError:
            raise _Refused(self.application.broken(408, "the request came too slowly")) from None

    def _unpacked(self, body: bytes, encoding: str) -> bytes:
        """A compressed body, up to the limit for bodies."""
        broken, limit = self.application.broken, self.max_body
        if encoding == "identity":
            return body
        if encoding not in ("gzip", "deflate"):
            raise _Refused(broken(415, "bodies are plain, gzip or deflate"))
        try:
            return unpack(body, 47 if encoding == "gzip" else 15, limit)  # 47: with gzip's header
        except zlib.error as error:
            raise _Refused(broken(400, f"the body is not {encoding}: {error}")) from None
        except Bomb:
            raise _Refused(self._too_large()) from None

    def _too_large(self) -> HttpReply:
        return self.application.broken(413, f"the body is larger than the limit of {self.max_body >> 20} MB")

    # ---- replies -------------------------------------------------------------------------------------------

    def _handle_all(self) -> None:
        """Those that came in one round of the loop are handled together."""
        came, self._came = self._came, []
        with self.application.burst():
            for request, waiting in came:
                if not waiting.reply.done():
                    waiting.call = self.application.handle(request, self._answer(waiting))

    def _handle_large(self, request: HttpRequest, waiting: _Waiting) -> None:
        """In a thread of its own."""
        if waiting.reply.done():
            return
        waiting.call = self.application.handle(request, self._answer(waiting))
        if waiting.reply.done() and waiting.call is not None:  # the client has left meanwhile
            waiting.call.cancel()

    def _answer(self, waiting: _Waiting) -> Callable[[HttpReply], None]:
        """What takes the reply, in any thread."""

        def done(reply: HttpReply) -> None:
            self._mail.append((waiting, reply))
            if not self._called:
                self._called = True
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._deliver)

        return done

    def _deliver(self) -> None:
        self._called = False  # before the first look: what comes after the last one calls again
        while self._mail:
            waiting, reply = self._mail.popleft()
            if not waiting.reply.done():
                waiting.call = None
                waiting.reply.set_result(reply)


class _Held:
    """The bytes of a request, as its client's part of what may wait."""

    __slots__ = ("connection", "share", "size")

    def __init__(self, share: Share, connection: GuardedProtocol) -> None:
        self.share, self.connection, self.size = share, connection, 0

    def take(self, size: int) -> bool:
        if not self.share.take(self.connection.peer, self.connection, size):
            return False
        self.size += size
        return True

    def give_back(self) -> None:
        if self.size:
            self.share.give_back(self.connection.peer, self.connection, self.size)


class _Waiting:
    """A request that is being answered."""

    __slots__ = ("call", "reply")

    def __init__(self, reply: asyncio.Future) -> None:
        self.reply = reply
        self.call: Call | None = None

    def give_up(self) -> None:
        """The client has left."""
        if not self.reply.done():
            self.reply.set_result(None)
            if self.call is not None:
                self.call.cancel()


async def _write(send, reply: HttpReply) -> None:
    headers = [
        (b"content-type", reply.content_type.encode("latin-1")),
        (b"content-length", b"%d" % len(reply.body)),
        *((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers),
    ]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def _has_left(receive) -> None:
    """Tell uvicorn that nobody reads the reply; it knows by itself only for the last of several requests."""
    receive.__self__.disconnected = True


class _Refused(Exception):
    def __init__(self, reply: HttpReply) -> None:
        super().__init__(reply.status)
        self.reply = reply


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's connection, with limits of what comes before a body and of the time it takes."""

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        self.peer = client_of(self.client[0]) if self.client else ""
        app = self.app
        room = app.connections - app.clients.total()
        self._counted = room > app.clients[self.peer]
        if self._counted:
            app.clients[self.peer] += 1
        else:
            transport.close()
        self.waiting: _Waiting | None = None  # the request that is being answered
        self._refusal: HttpReply | None = None
        self._deaf = False  # what still comes is not read
        self._head_bytes = 0
        self._head_since: float | None = self.loop.time()  # None: no head is being read
        self._unsent, self._unsent_due = 0, 0.0
        self._timer = self.loop.call_later(self.app.stall_s, self._look_at_clock)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        if self._counted:
            self.app.clients[self.peer] -= 1
            if not self.app.clients[self.peer]:
                del self.app.clients[self.peer]
        if self.waiting is not None:
            self.waiting.give_up()
            self.waiting = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._deaf:
            super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["mycelia.connection"] = self
        self._head_since = self.loop.time()
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > _URL_BYTES:
            self._stop_parsing(414, "the URL is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > _HEADER_BYTES or len(self.headers) > _MOST_HEADERS:
            self._stop_parsing(431, "the headers are too large")

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._head_since = None

    def linger(self) -> None:
        """What a refused client still sends is read and dropped for a moment: a reset would take the answer
        from it.
        """
        if self.cycle.more_body:
            self.loop.call_later(_LINGER_S, self._end_unread, self.cycle)

    def _end_unread(self, cycle) -> None:
        if self.cycle is cycle:
            self.transport.close()

    def _stop_parsing(self, status: int, text: str) -> None:
        self._refusal = self.app.application.broken(status, text)
        raise ValueError(text)  # uvicorn hears of it as of any other parser error: `send_400_response`

    def send_400_response(self, msg: str) -> None:
        self._end(self._refusal or self.app.application.broken(400, "the request is not HTTP/1.1"))

    def _end(self, reply: HttpReply) -> None:
        """Answer what is no request, and end the connection."""
        self._deaf = True
        self.pipeline.clear()
        if self.waiting is not None:
            self.waiting.give_up()
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # its answer would follow the last word
            self.cycle.message_event.set()
        content = [STATUS_LINE[reply.status], b"content-type: application/json\r\nconnection: close\r\n"]
        content += [b"content-length: %d\r\n\r\n" % len(reply.body), reply.body]
        self.transport.write(b"".join(content))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.close)

    def _look_at_clock(self) -> None:
        """Ends connections of clients that do nothing; called a few times in the time they have."""
        now, stall_s = self.loop.time(), self.app.stall_s
        unsent = self.transport.get_write_buffer_size()
        if not unsent or not self._unsent:
            self._unsent_due = now + stall_s
        else:
            taken = max(self._unsent - unsent, 0)
            self._unsent_due = min(now + stall_s, self._unsent_due + taken / SLOWEST)
        self._unsent = unsent
        if unsent and now >= self._unsent_due:
            self.transport.abort()
            return
        if self._head_since is not None and not self._deaf and now >= self._head_since + stall_s:
            if self.scope is None:
                self.transport.close()  # never said a word
            else:
                self._end(self.app.application.broken(408, "the request came too slowly"))
        self._timer = self.loop.call_later(stall_s / 4, self._look_at_clock)
