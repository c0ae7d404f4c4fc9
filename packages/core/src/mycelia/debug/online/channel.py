"""The connection of a training to the service of its debugger, by gRPC, which is imported here and nowhere
else in core.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mycelia.debug.messages import debugger_pb2 as messages
from mycelia.engine.base import config, errors

SERVICE = "debugger.EventListener"
CLIENT, RANK, PROTOCOL, TOKEN = "mycelia-client", "mycelia-rank", "mycelia-protocol", "authorization"
PROTOCOL_VERSION = "1"
MOST_BYTES = 16 << 20  # of one message
_UNARY = ("WaitCMD", "SendMetadata", "SendHeartbeat", "Attend")
_CHUNK = 1 << 20


class Lost(Exception):
    """The service is gone, or does not answer, or refuses."""


class Channel:
    """Calls of the service, and a thread that gives it a sign of life while there is a connection.

    `timeout_s`: within this time the service must answer signs of life, and everything but `wait`, which has
    no limit as long as it does.
    Errors: ImportError without grpcio; ValueError for a period out of 1 to 3600.
    """

    def __init__(self, host: str, port: int, timeout_s: int) -> None:
        try:
            import grpc
        except ImportError:
            raise errors.MyceliaImportError(
                "the debugger's connection needs grpcio: pip install 'mycelia-core[debugger]'"
            ) from None
        self._grpc = grpc
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.timeout_s = timeout_s
        options = [("grpc.max_receive_message_length", MOST_BYTES), ("grpc.enable_http_proxy", 0)]
        self.channel = grpc.insecure_channel(self.address, options=options)
        self.headers = [
            (CLIENT, uuid.uuid4().hex), (RANK, str(config.get("rank"))), (PROTOCOL, PROTOCOL_VERSION),
        ]  # fmt: skip
        if config.get("debugger_token"):
            self.headers.append((TOKEN, f"Bearer {config.get('debugger_token')}"))
        self.waiting: Any = None  # the call of `wait` that is under way
        self.lost: str = ""  # why there is no connection any more
        self.closing = threading.Event()
        self.lock = threading.Lock()

    # ---- calls

    def _method(self, name: str) -> Any:
        make = self.channel.unary_unary if name in _UNARY else self.channel.stream_unary
        return make(
            f"/{SERVICE}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=messages.EventReply.FromString,
        )

    def call(self, name: str, request: Any, wait_for_ready: bool = False) -> Any:
        """The reply to one of the service's methods.  Errors: Lost."""
        if self.lost:
            raise Lost(self.lost)
        try:
            return self._method(name)(
                request, timeout=self.timeout_s, metadata=self.headers, wait_for_ready=wait_for_ready
            )
        except self._grpc.RpcError as cause:
            raise self._lose(cause) from None

    def offer(self, name: str, request: Any) -> None:
        """Call a method that a service need not know: whatever it says, the connection stays."""
        if not self.lost:
            with contextlib.suppress(self._grpc.RpcError):
                self._method(name)(request, timeout=self.timeout_s, metadata=self.headers)

    def wait(self, metadata: Any) -> Any:
        """The next command.  Errors: Lost."""
        with self.lock:
            if self.lost:
                raise Lost(self.lost)
            self.waiting = self._method("WaitCMD").future(metadata, metadata=self.headers)
        try:
            return self.waiting.result()
        except (self._grpc.RpcError, self._grpc.FutureCancelledError) as cause:
            raise self._lose(cause) from None
        finally:
            self.waiting = None

    def _lose(self, cause: Any) -> Lost:
        with self.lock:
            if not self.lost:
                code = cause.code() if hasattr(cause, "code") else None
                told = cause.details() if hasattr(cause, "details") else str(cause)
                self.lost = f"{self.address}: {code.name if code else ''} {told}".rstrip()
            return Lost(self.lost)

    # ---- signs of life

    def connect(self, metadata: Any) -> Any:
        """The reply to the first message; signs of life begin.  Errors: Lost."""
        reply = self.call("SendMetadata", metadata, wait_for_ready=True)
        threading.Thread(target=self._beat, name="debugger-heartbeat", daemon=True).start()
        threading.Thread(target=self._attend, args=(metadata,), name="debugger-presence", daemon=True).start()
        return reply

    def _attend(self, metadata: Any) -> None:
        """A call that lasts as long as this process: a service of ours sees by its end that a process was
        killed long before it misses signs of life. Others do not know it.
        """
        attend = self._method("Attend")
        while not self.closing.is_set() and not self.lost:
            try:
                attend(metadata, metadata=self.headers)
                return
            except (self._grpc.RpcError, ValueError) as cause:  # ValueError: the channel was closed
                code = cause.code() if hasattr(cause, "code") else None
                if code is not self._grpc.StatusCode.UNAVAILABLE:
                    return
            self.closing.wait(1.0)

    def _beat(self) -> None:
        # MindInsight takes periods from 5 s on; the service hears of two signs within one.
        period = max(5, self.timeout_s)
        send = self._method("SendHeartbeat")
        while not self.closing.wait(min(period, self.timeout_s) / 3):
            try:
                send(
                    messages.Heartbeat(message="Alive", period=period),
                    timeout=self.timeout_s, metadata=self.headers,
                )  # fmt: skip
            except self._grpc.RpcError as cause:
                self._lose(cause)
                with self.lock:
                    if self.waiting is not None:
                        self.waiting.cancel()
                return

    def close(self) -> None:
        """End the connection."""
        self.closing.set()
        self.channel.close()


def chunks(texts: Sequence[bytes]) -> Iterator[Any]:
    """Messages one after another in chunks, the last chunk of each finished."""
    for text in texts:
        for begin in range(0, max(len(text), 1), _CHUNK):
            yield messages.Chunk(buffer=text[begin : begin + _CHUNK], finished=begin + _CHUNK >= len(text))


def joined(found: Iterable[Any], most_bytes: int) -> Iterator[bytes]:
    """The messages in `chunks`.  Errors: ValueError for more than `most_bytes` in one."""
    parts: list[bytes] = []
    size = 0
    for chunk in found:
        parts.append(chunk.buffer)
        size += len(chunk.buffer)
        if size > most_bytes:
            raise ValueError(f"a message has more than {most_bytes} bytes")
        if chunk.finished:
            yield b"".join(parts)
            parts, size = [], 0
