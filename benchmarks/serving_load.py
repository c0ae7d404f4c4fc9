"""Cheap closed-loop clients, the same for every server: one thread; one socket for gRPC, many for HTTP.

A request costs the client some 20 us, a tenth of what a gRPC library takes, so that on two cores it is the
server that limits. Header blocks are sent without compression and those that come are not read: what a call
answers is checked once by a real client, and by its size here.
"""

from __future__ import annotations

import select
import socket
import statistics
import struct
import time
from dataclasses import dataclass

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_WINDOW_BYTES = 1 << 30  # what servers may send ahead


@dataclass
class Load:
    """What a run of requests was like."""

    seconds: float
    latencies: list[float]

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        return sorted(self.latencies)[min(int(len(self.latencies) * share), len(self.latencies) - 1)]

    @property
    def median(self) -> float:
        return statistics.median(self.latencies)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def _plain(name: bytes, value: bytes) -> bytes:
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


class GrpcClient:
    """Unary calls of one method with one message, over one connection. Errors: RuntimeError."""

    def __init__(self, port: int, path: str, message: bytes) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        settings = struct.pack(">HI", 4, 1 << 20)
        self._socket.sendall(
            _PREFACE
            + _frame(_SETTINGS, 0, 0, settings)
            + _frame(_WINDOW, 0, 0, struct.pack(">I", _WINDOW_BYTES))
        )
        pairs = (
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", path.encode()),
            (b":authority", b"bench"),
            (b"te", b"trailers"),
            (b"content-type", b"application/grpc"),
        )
        block = b"".join(_plain(*pair) for pair in pairs)
        body = b"\0" + struct.pack(">I", len(message)) + message
        self._size = len(body)
        # A request is these three with the stream's number between them.
        self._parts = (
            struct.pack(">I", len(block))[1:] + bytes((_HEADERS, 4)),
            block + struct.pack(">I", len(body))[1:] + bytes((_DATA, 1)),
            body,
        )
        self._stream = 1
        self._window = 65535  # what the server takes on the connection
        self._taken = 0  # bytes that came since the server was told
        self._rest = b""

    def _request(self) -> bytes:
        stream = struct.pack(">I", self._stream)
        self._stream += 2
        self._window -= self._size
        head, middle, body = self._parts
        return head + stream + middle + stream + body

    def run(self, callers: int, seconds: float, most: int = 1 << 60) -> Load:
        """`callers` requests on the way at any time, until the time is over."""
        clock = time.perf_counter
        begun: dict[int, float] = {}
        answered: set[int] = set()
        latencies: list[float] = []
        waiting = callers  # callers who may begin a request
        start = clock()
        end = start + seconds
        while True:
            out = []
            now = clock()
            while waiting and now < end and self._window >= self._size and self._stream < 2 * most:
                begun[self._stream] = now
                out.append(self._request())
                waiting -= 1
            if self._taken > 1 << 24:
                out.append(_frame(_WINDOW, 0, 0, struct.pack(">I", self._taken)))
                self._taken = 0
            if out:
                self._socket.sendall(b"".join(out))
            if not begun:
                return Load(clock() - start, latencies)
            for kind, flags, stream, payload in self._frames():
                if kind == _DATA:
                    answered.add(stream)
                    self._taken += len(payload)
                elif kind == _SETTINGS and not flags & 1:
                    self._socket.sendall(_frame(_SETTINGS, 1, 0, b""))
                elif kind == _PING and not flags & 1:
                    self._socket.sendall(_frame(_PING, 1, 0, payload))
                elif kind == _WINDOW and not stream:
                    self._window += struct.unpack(">I", payload)[0]
                elif kind == _GOAWAY or (kind == _RESET and stream in begun):
                    raise RuntimeError(f"the server ended a call: {payload!r}")
                if flags & 1 and kind in (_DATA, _HEADERS):
                    if stream not in answered:
                        raise RuntimeError(f"a call has failed: {payload!r}")
                    answered.discard(stream)
                    latencies.append(clock() - begun.pop(stream))
                    waiting += 1

    def _frames(self):
        data = self._socket.recv(1 << 18)
        if not data:
            raise RuntimeError("the server has closed the connection")
        data = self._rest + data
        position, size = 0, len(data)
        while size - position >= 9:
            length = int.from_bytes(data[position : position + 3], "big")
            stop = position + 9 + length
            if stop > size:
                break
            stream = int.from_bytes(data[position + 5 : position + 9], "big")
            yield data[position + 3], data[position + 4], stream, data[position + 9 : stop]
            position = stop
        self._rest = data[position:]

    def close(self) -> None:
        self._socket.close()


class HttpClient:
    """POSTs of one body, over kept connections, one a caller. Errors: RuntimeError."""

    def __init__(self, port: int, path: str, body: bytes) -> None:
        head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        self._message = head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body
        self._port = port
        self._sockets: list[socket.socket] = []

    def one(self) -> bytes:
        """The body of one answer."""
        return self._exchange(self._connected(1)[0])

    def _connected(self, count: int) -> list[socket.socket]:
        while len(self._sockets) < count:
            self._sockets.append(socket.create_connection(("127.0.0.1", self._port), timeout=60))
        return self._sockets[:count]

    def _exchange(self, sock: socket.socket) -> bytes:
        sock.sendall(self._message)
        data = b""
        while (body := _body(data)) is None:
            part = sock.recv(1 << 18)
            if not part:
                raise RuntimeError("the server has closed the connection")
            data += part
        return body

    def run(self, callers: int, seconds: float) -> Load:
        """`callers` requests on the way at any time, until the time is over."""
        clock, latencies = time.perf_counter, []
        self.close()  # servers end connections that were idle while others were measured
        sockets = self._connected(callers)
        start = clock()
        end = start + seconds
        if callers == 1:
            while (begun := clock()) < end:
                self._exchange(sockets[0])
                latencies.append(clock() - begun)
            return Load(clock() - start, latencies)
        poll = select.epoll()
        begun, partly, by_number = {}, {}, {}
        for sock in sockets:
            by_number[sock.fileno()] = sock
            poll.register(sock.fileno(), select.EPOLLIN)
            begun[sock.fileno()] = clock()
            sock.sendall(self._message)
        while begun:
            for number, _ in poll.poll(60):
                data = partly.pop(number, b"") + by_number[number].recv(1 << 18)
                if _body(data) is None:
                    partly[number] = data
                    continue
                now = clock()
                latencies.append(now - begun.pop(number))
                if now < end:
                    begun[number] = now
                    by_number[number].sendall(self._message)
        poll.close()
        return Load(clock() - start, latencies)

    def close(self) -> None:
        for sock in self._sockets:
            sock.close()
        self._sockets = []


def _body(data: bytes) -> bytes | None:
    """The body of an answer that is whole. Errors: RuntimeError for any status but 200."""
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return None
    if b" 200 " not in head[:13]:
        raise RuntimeError(f"a call has failed: {data[:500]!r}")
    lower = head.lower()
    place = lower.find(b"content-length:")
    if place >= 0:
        end = lower.find(b"\r\n", place)
        length = int(lower[place + 15 : end if end >= 0 else None])
        return body if len(body) >= length else None
    return body if body.endswith(b"0\r\n\r\n") else None  # chunked
