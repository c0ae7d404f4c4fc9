"""gRPC without TLS by `mycelia_serving._grpc`: HTTP/2 in C++, Python sees whole requests.

The extension frames HTTP/2 by libnghttp2, a shared library that is loaded when the first server starts: the
system's, or the one in pycurl's wheel. Nothing has to be installed to build against it. Where there is none,
and for TLS, `grpc_server` uses grpcio; callers cannot tell which one answers.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from mycelia import log
from mycelia_serving.clock import CLOCK, NEVER
from mycelia_serving.errors import ServingError
from mycelia_serving.frontend.addresses import listening_socket
from mycelia_serving.frontend.large import Bomb, executor, is_large, unpack
from mycelia_serving.frontend.reflection import PATHS as REFLECTION
from mycelia_serving.frontend.reflection import reflected
from mycelia_serving.frontend.service import Service
from mycelia_serving.frontend.shares import (
    CALLS,
    HANDSHAKE_S,
    IDLE_S,
    PEER,
    SLOWEST,
    STALL_S,
    STREAMS,
    most_bytes,
    most_connections,
)
from mycelia_serving.frontend.status import INTERNAL, OK, RESOURCE_EXHAUSTED, UNAUTHENTICATED

WATCH = "/grpc.health.v1.Health/Watch"
_CALL, _OPEN, _MESSAGE, _END, _CANCEL = range(5)  # kinds of events
_GZIP, _DEFLATE = 1, 2
_WATCH_S = 0.2  # how soon watchers of the health hear of a change
_SERVICE_UNKNOWN = 3


def _libraries() -> Iterator[str]:
    """Where a libnghttp2 may be, the best one first: the system's gets its security fixes."""
    yield "libnghttp2.so.14"
    spec = importlib.util.find_spec("pycurl")
    if spec is not None and spec.origin:
        here = Path(spec.origin).parent  # a module or a package
        for folder in (here, here.parent):
            yield from map(str, sorted(folder.glob("pycurl.libs/libnghttp2-*.so.14*")))


@functools.cache
def missing() -> str:
    """Why this front end cannot be used here; empty if it can."""
    try:
        from mycelia_serving import _grpc
    except ImportError as error:
        return str(error)
    problems = []
    for path in _libraries():
        problem = _grpc.load(path)
        if not problem:
            return ""
        problems.append(problem)
    return "; ".join(problems)


class _Answer:
    """What a handler calls with the outcome of a unary call."""

    __slots__ = ("finished", "server", "token")

    def __init__(self, server: NativeServer, token: int) -> None:
        self.server, self.token, self.finished = server, token, False

    def __call__(self, status: int, payload: bytes | str) -> None:
        self.finished = True
        server = self.server
        server._calls.pop(self.token, None)
        if status == OK:
            server._front.reply(self.token, payload)
        else:
            server._front.finish(self.token, status, payload)


class NativeServer:
    """A gRPC server for what `service` answers.

    address: "ip:port" or "unix:path". max_message_bytes: of a request.
    limits: others of the extension, see native/src/server.h.
    Errors: RuntimeError for an address that cannot be had.
    """

    def __init__(
        self, service: Service, address: str, *, max_message_bytes: int = 100 << 20, **limits
    ) -> None:
        if missing():
            raise RuntimeError(f"no native gRPC front end: {missing()}")
        from mycelia_serving._grpc import Server

        self.service = service
        self._most = max_message_bytes
        self._paths = [*service.paths, WATCH, *REFLECTION]
        methods = [(path, path not in service.paths) for path in self._paths]
        sock = listening_socket(address)
        self._unix = address.removeprefix("unix:") if sock.family == socket.AF_UNIX else None
        self.port = 0 if self._unix else sock.getsockname()[1]
        usual = {
            "buffered": most_bytes(max_message_bytes),
            "calls": CALLS,
            "streams": STREAMS,
            "connections": most_connections(),
            "handshake_s": HANDSHAKE_S,
            "idle_s": IDLE_S,
            "stall_s": STALL_S,
            "slowest": SLOWEST,
        }
        self._front = Server(methods, message=max_message_bytes, **{**usual, **limits})
        self._front.listen(sock.detach())
        self._calls: dict[int, object] = {}  # token -> what cancels it
        self._large = executor()
        self._reading: set[int] = set()  # tokens of large requests that are being read
        self._watches: dict[int, tuple[str, int]] = {}  # token -> service, what it was told last
        self._watch_lock = threading.Lock()
        self._watch_alarm = CLOCK.alarm(self._tell_watchers)
        self._open_methods: dict[int, str] = {}  # token of a streaming call -> path
        self._thread = threading.Thread(target=self._serve, name="serving-grpc", daemon=True)
        self._thread.start()

    def stop(self, grace_seconds: float = 0.0) -> None:
        """Take nothing new, answer what is there for up to `grace_seconds`, end. Blocks until then."""
        with self._watch_lock:
            watches, self._watches = list(self._watches), {}
        self._watch_alarm.cancel()
        for token in watches:
            self._front.finish(token, OK)
        self._front.stop(grace_seconds)
        self._thread.join()
        self._large.shutdown(wait=False, cancel_futures=True)
        if self._unix:
            with contextlib.suppress(OSError):
                os.unlink(self._unix)

    def wait(self) -> None:
        """Until the server has ended."""
        self._thread.join()

    def statistics(self) -> dict[str, int]:
        """Counters of the extension: connections, calls, bytes."""
        return self._front.statistics()

    # ---- the thread that takes what came ---------------------------------------------------------------

    def _serve(self) -> None:
        take, burst = self._front.take, self.service.burst
        while (events := take()) is not None:
            with burst():  # what came together goes to the workers together
                for event in events:
                    if event[0] == _CALL and is_large(event[3], event[4] != 0):
                        self._reading.add(event[1])
                        self._large.submit(self._guarded, self._call_large, event)
                    else:
                        self._guarded(self._call if event[0] == _CALL else self._other, event)

    def _guarded(self, function: Callable[[tuple], None], event: tuple) -> None:
        try:
            function(event)
        except Exception:
            log.logger(__name__).exception("an error inside the server")
            self._front.finish(event[1], INTERNAL, "an error inside the server")

    def _call_large(self, event: tuple) -> None:
        if event[1] not in self._reading:  # cancelled before its turn
            return
        self._call(event)
        if event[1] not in self._reading:  # cancelled meanwhile
            call = self._calls.pop(event[1], None)
            if call is not None:
                call.cancel()
        self._reading.discard(event[1])

    def _call(self, event: tuple) -> None:
        _, token, method, body, encoding, metadata, timeout, peer = event
        if encoding:
            body = self._unpacked(token, body, encoding)
            if body is None:
                return
        answer = _Answer(self, token)
        deadline = None if timeout is None else time.monotonic() + timeout
        headers = dict(metadata)
        headers[PEER] = peer
        call = self.service.handle(self._paths[method], body, headers, answer, deadline)
        if call is not None and not answer.finished:
            self._calls[token] = call
            if answer.finished:  # in between
                self._calls.pop(token, None)

    def _unpacked(self, token: int, body: bytes, encoding: int) -> bytes | None:
        """A message that came compressed; None: it was refused."""
        try:
            return unpack(body, 31 if encoding == _GZIP else 15, self._most)
        except zlib.error as error:
            self._front.finish(token, INTERNAL, f"a message that cannot be unpacked: {error}")
        except Bomb:
            text = f"an unpacked message is larger than the limit of {self._most}"
            self._front.finish(token, RESOURCE_EXHAUSTED, text)
        return None

    def _other(self, event: tuple) -> None:
        kind, token, method, body, encoding, metadata, _, _ = event
        if kind == _CANCEL:
            self._open_methods.pop(token, None)
            self._reading.discard(token)
            with self._watch_lock:
                self._watches.pop(token, None)
            call = self._calls.pop(token, None)
            if call is not None:
                call.cancel()
        elif kind == _OPEN:
            refusal = self.service.refusal(dict(metadata)) if self._paths[method] != WATCH else None
            if refusal is not None:
                self._front.finish(token, UNAUTHENTICATED, refusal)
            else:
                self._open_methods[token] = self._paths[method]
        elif kind == _END:
            if self._open_methods.pop(token, None) in REFLECTION:
                self._front.finish(token, OK)
        else:
            path = self._open_methods.get(token)
            if path is None:
                return
            if encoding:
                body = self._unpacked(token, body, encoding)
                if body is None:
                    return
            if path == WATCH:
                self._watch(token, body)
            else:
                self._front.send(token, reflected(body))

    # ---- the health, watched ---------------------------------------------------------------------------

    def _watch(self, token: int, body: bytes) -> None:
        service = watched_service(body)
        state = self._state(service)
        self._front.send(token, health_reply(state))
        with self._watch_lock:
            self._watches[token] = service, state
            self._watch_alarm.by(time.monotonic() + _WATCH_S)

    def _tell_watchers(self, now: float) -> float:
        with self._watch_lock:
            watches = list(self._watches.items())
        for token, (service, told) in watches:
            state = self._state(service)
            if state == told:
                continue
            with self._watch_lock:
                if token not in self._watches:
                    continue
                self._watches[token] = service, state
            self._front.send(token, health_reply(state))
        return now + _WATCH_S if watches else NEVER

    def _state(self, service: str) -> int:
        try:
            return self.service.health(service)
        except ServingError:
            return _SERVICE_UNKNOWN


def health_reply(state: int) -> bytes:
    """`HealthCheckResponse`."""
    return bytes((0x08, state))


def watched_service(body: bytes) -> str:
    """The service that a `HealthCheckRequest` names."""
    from grpc_health.v1 import health_pb2

    return health_pb2.HealthCheckRequest.FromString(body).service
