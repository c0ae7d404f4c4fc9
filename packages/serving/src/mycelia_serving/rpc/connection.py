"""A connection between two processes: frames over a socket, in both directions at any time.

A frame is <length u32><kind u8><number u64><body>, little endian; the length is that of the body. Sending
never waits: what the socket does not take at once is left to a thread. What a body is stands at its kind; the
messages are those of `wire/proto/serving.proto`.
"""

from __future__ import annotations

import contextlib
import enum
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

HEAD = struct.Struct("<IBQ")
LONGEST_BODY = 1 << 31
LONGEST_FIRST_BODY = 1 << 24  # of a peer that has not said yet who it is
_CHUNK = 1 << 18


class Kind(enum.IntEnum):
    """What a frame is. Those with an answer carry a number that the answer repeats."""

    REGISTER = 1  # worker, agent: I am ready (`remote.registration`, AgentRegisterRequest)
    REGISTERED = 2  # master, leader: you are in, or why not (RegisterReply, AgentRegisterReply)
    FAILED = 3  # worker, who starts agents: it could not start (NotifyFailedRequest, AgentFailedRequest)
    PREDICT = 4  # master, leader: instances or tensors (`codec.encode_work`, DistributedPredictRequest)
    RESULTS = 5  # worker, agent: what they gave (`codec.encode_results`, DistributedPredictReply)
    PING = 6  # worker, agent, every second (PingRequest)
    PONG = 7  # master, leader: seen (PingReply)
    EXIT = 8  # either: end (seconds to drain as JSON, or nothing), or I am about to
    CALL_MODEL = 9  # worker without a device: run a model stage for me (`codec.encode_work`)
    MODEL_RESULTS = 10  # master: what it gave (`codec.encode_results`)
    ADMIN = 11  # a command for the server, as JSON
    ADMIN_REPLY = 12
    CONFIGURE = 13  # who starts agents: which ranks are there? (AgentConfigAcquireRequest)
    CONFIGURATION = 14  # leader: these (AgentConfigAcquireReply)


class Connection:
    """One end of a connection. Errors of the connection show as its end only.

    timeout: seconds without a byte after which `frames` takes it for ended; None: never.
    """

    def __init__(self, sock: socket.socket, timeout: float | None = None) -> None:
        self._socket = sock
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(timeout)
        self._lock = threading.Lock()
        self._more = threading.Condition(self._lock)
        self._pending: list[bytes] | None = None  # what the thread is to send; None: there is no thread
        self.closed = False
        self.longest = LONGEST_BODY

    def send(self, *frames: tuple[Kind, int, bytes]) -> None:
        """Send frames. What is sent to a peer that is gone is dropped."""
        parts = []
        for kind, number, body in frames:
            parts.append(HEAD.pack(len(body), kind, number))
            parts.append(body)
        data = b"".join(parts)
        with self._lock:
            if self.closed:
                return
            if self._pending:
                self._pending.append(data)
                self._more.notify()
                return
            try:
                sent = self._socket.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                sent = 0
            except OSError:
                return  # the reader sees the end
            if sent == len(data):
                return
            started = self._pending is not None
            self._pending = [data[sent:]]
            if started:
                self._more.notify()
            else:
                threading.Thread(target=self._write, name="serving-link", daemon=True).start()

    def _write(self) -> None:
        while True:
            with self._lock:
                while not self._pending and not self.closed:
                    self._more.wait()
                if self.closed:
                    return
                data = self._pending[0]
            try:
                self._socket.sendall(data)
            except OSError:
                self.close()
                return
            with self._lock:
                self._pending.pop(0)

    def flush(self, seconds: float) -> None:
        """Wait until all is sent, up to so many seconds."""
        end = time.monotonic() + seconds
        while self._pending and not self.closed and time.monotonic() < end:
            time.sleep(0.005)

    def frames(self, between: Callable[[], None] | None = None) -> Iterator[tuple[int, int, bytes]]:
        """Kind, number and body of what comes, until the connection ends.

        between: called when all that came was yielded, before it waits for more.
        """
        held = bytearray()
        start = 0
        chunk = bytearray(_CHUNK)
        view = memoryview(chunk)
        while True:
            while len(held) - start >= HEAD.size:
                length, kind, number = HEAD.unpack_from(held, start)
                if length > self.longest:
                    return
                begin = start + HEAD.size
                missing = begin + length - len(held)
                if missing > _CHUNK:
                    body = self._long_body(memoryview(held)[begin:], length)
                    if body is None:
                        return
                    start = len(held)
                    yield kind, number, body
                    continue
                if missing > 0:
                    break
                yield kind, number, bytes(memoryview(held)[begin : begin + length])
                start = begin + length
            if start:
                del held[:start]
                start = 0
                if between is not None:
                    between()
            try:
                count = self._socket.recv_into(chunk)
            except OSError:
                return
            if not count:
                return
            held += view[:count]

    def _long_body(self, first: memoryview, length: int) -> bytes | None:
        body = bytearray(length)
        view = memoryview(body)
        at = len(first)
        view[:at] = first
        first.release()
        while at < length:
            try:
                count = self._socket.recv_into(view[at:])
            except OSError:
                return None
            if not count:
                return None
            at += count
        return bytes(body)

    def close(self) -> None:
        """End the connection; a thread in `frames` returns."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            self._more.notify_all()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
