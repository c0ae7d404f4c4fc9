"""The service `EventListener` that trainings connect to, by gRPC."""

from __future__ import annotations

import hmac
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mycelia.debug.messages import debugger_pb2 as messages
from mycelia.debug.messages.values import from_messages
from mycelia.debug.online.channel import (
    CLIENT,
    MOST_BYTES,
    PROTOCOL,
    PROTOCOL_VERSION,
    RANK,
    SERVICE,
    TOKEN,
    joined,
)
from mycelia.debug.online.ranks import received
from mycelia_insight.debugger.online.ranks import RankComparison
from mycelia_insight.debugger.online.training import Training

_log = logging.getLogger(__name__)
_MOST_RANKS = 64  # each has a thread that waits with it, and one that sees its end
_MOST_GRAPH = 512 << 20  # bytes
_REQUESTS = {
    "WaitCMD": messages.Metadata, "SendMetadata": messages.Metadata, "SendHeartbeat": messages.Heartbeat,
    "SendGraph": messages.Chunk, "SendMultiGraphs": messages.Chunk, "SendAnswer": messages.Chunk,
    "SendTensors": messages.TensorProto, "SendTensorBase": messages.TensorBase,
    "SendTensorStats": messages.TensorSummary, "SendWatchpointHits": messages.WatchpointHit,
    "SendRankValues": messages.RankValue, "Attend": messages.Metadata,
}  # fmt: skip
_UNARY = ("WaitCMD", "SendMetadata", "SendHeartbeat", "Attend")


class Listener:
    """Listens at `host` and `port` (0: one that is free, see `port`) from its making on, until `stop`.

    `token`: what trainings must show, "" for nothing.
    Errors: ImportError without grpcio; OSError if the port cannot be had.
    """

    def __init__(self, host: str, port: int, token: str = "") -> None:
        try:
            import grpc
        except ImportError:
            raise ImportError(
                "--enable-debugger needs grpcio: pip install 'mycelia-insight[debugger]'"
            ) from None
        self._grpc, self.token = grpc, token
        self.trainings: dict[int, Training] = {}  # by rank
        self.mismatched: dict[int, str] = {}  # why a rank was refused that speaks another version
        self.ranks = RankComparison()
        self.lock = threading.Lock()
        self.position = 0  # grows with each change that a page must hear of
        self.changed = threading.Condition()
        self.stopping = threading.Event()
        self.hear: Callable[[Training], None] = lambda _training: None
        self.server = grpc.server(
            ThreadPoolExecutor(3 * _MOST_RANKS, "debugger"),
            options=[("grpc.max_receive_message_length", MOST_BYTES), ("grpc.so_reuseport", 0)],
        )
        handlers = {name: self._handler(name) for name in _REQUESTS}
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            self.port = self.server.add_insecure_port(address)
        except RuntimeError as cause:
            raise OSError(f"{address}: {cause}") from None
        self.server.start()
        threading.Thread(target=self._watch, name="debugger-watch", daemon=True).start()

    def stop(self) -> None:
        """Trainings notice that the service is gone."""
        self.stopping.set()
        for training in list(self.trainings.values()):
            training.leave()
        self.server.stop(0.5)

    def follow(self, hear: Callable[[Training], None]) -> None:
        """`hear` is told of each training that connects, with its lock free and before it gets commands."""
        self.hear = hear

    def tell(self) -> None:
        """Something changed."""
        with self.changed:
            self.position += 1
            self.changed.notify_all()

    def _watch(self) -> None:
        while not self.stopping.wait(1.0):
            for training in list(self.trainings.values()):
                if training.is_silent():
                    text = "the process of rank %d is gone, or gives no sign of life: its session ends"
                    _log.warning(text, training.rank)
                    training.leave()

    # ---- who calls

    def _handler(self, name: str) -> Any:
        answer = getattr(self, f"_{name}")
        read = _REQUESTS[name].FromString

        def handle(request: Any, context: Any) -> Any:
            headers = {key: value for key, value in context.invocation_metadata()}
            if self.token and not hmac.compare_digest(
                str(headers.get(TOKEN, "")).encode(), f"Bearer {self.token}".encode()
            ):
                told = "set MYCELIA_DEBUGGER_TOKEN to the service's token"
                context.abort(self._grpc.StatusCode.UNAUTHENTICATED, told)
            try:
                return answer(request, context, headers)
            except ValueError as cause:
                context.abort(self._grpc.StatusCode.INVALID_ARGUMENT, str(cause))

        make = (
            self._grpc.unary_unary_rpc_method_handler
            if name in _UNARY
            else self._grpc.stream_unary_rpc_method_handler
        )
        return make(handle, request_deserializer=read, response_serializer=lambda m: m.SerializeToString())

    def _training(self, context: Any, headers: dict[str, Any]) -> Training:
        """The caller.  Errors: ValueError if it never introduced itself, or was refused."""
        rank, client = _identity(context, headers)
        found = self.trainings.get(rank)
        if found is None or found.client != client:
            raise ValueError(f"there is no training of rank {rank} with this name: SendMetadata comes first")
        if found.is_gone:
            context.abort(self._grpc.StatusCode.UNAVAILABLE, "the session of this training has ended")
        found.beat()
        return found

    # ---- what they call

    def _SendMetadata(self, request: Any, context: Any, headers: dict[str, Any]) -> Any:
        rank, client = _identity(context, headers)
        version = str(headers.get(PROTOCOL, PROTOCOL_VERSION))
        if version != PROTOCOL_VERSION:
            self._mismatch(rank, version, _address(context))
            return messages.EventReply(status=messages.FAILED, version_matched=False)
        with self.lock:
            known = self.trainings.get(rank)
            is_new = known is None or known.client != client
            if is_new and request.training_done:
                return messages.EventReply(status=messages.OK)
            is_taken = known is not None and not known.is_gone
            if is_new and (is_taken or rank >= _MOST_RANKS):
                _log.warning("a second training of rank %d is refused", rank)
                return messages.EventReply(status=messages.FAILED)
            if is_new:
                self.mismatched.pop(rank, None)
                self.ranks.forget()
                known = self.trainings[rank] = Training(rank, client, _address(context), self.tell)
                self.hear(known)
        known.introduce(request)
        return messages.EventReply(status=messages.OK, version_matched=True)

    def _mismatch(self, rank: int, version: str, address: str) -> None:
        """A training was refused that speaks another version; pages tell until one of its rank connects."""
        told = (
            f"rank {rank} at {address} speaks version {version[:20]!r} of the debugger's protocol, and this "
            f"service version {PROTOCOL_VERSION!r}: mycelia-core there and mycelia-insight here must be of "
            "one release"
        )
        _log.warning("%s", told)
        with self.lock:
            known = self.trainings.get(rank)
            if rank >= _MOST_RANKS or (known is not None and not known.is_gone):
                return
            self.mismatched[rank] = told
        self.tell()

    def _WaitCMD(self, request: Any, context: Any, headers: dict[str, Any]) -> Any:
        training = self._training(context, headers)
        if not training.graphs:
            return messages.EventReply(status=messages.PENDING)
        if request.reason:
            self._stop_others(training, request.cur_step)
        reply = training.wait(request, context.is_active, lambda: self._others(training))
        if not context.is_active():
            training.leave()
        return reply

    def _Attend(self, request: Any, context: Any, headers: dict[str, Any]) -> Any:
        training, ended = self._training(context, headers), threading.Event()
        if context.add_callback(ended.set):
            training.attend()
            try:
                while not (ended.wait(1.0) or training.is_gone or self.stopping.is_set()):
                    pass
            finally:
                training.attend(False)
        return _ok()

    def _SendHeartbeat(self, request: Any, context: Any, headers: dict[str, Any]) -> Any:
        training = self._training(context, headers)
        if not 5 <= request.period <= 3600:
            return messages.EventReply(status=messages.FAILED)
        training.beat(request.period)
        return _ok()

    def _SendGraph(self, request: Iterator[Any], context: Any, headers: dict[str, Any]) -> Any:
        self._training(context, headers).take_graphs(joined(request, _MOST_GRAPH))
        return _ok()

    _SendMultiGraphs = _SendGraph

    def _SendTensors(self, request: Iterator[Any], context: Any, headers: dict[str, Any]) -> Any:
        self._training(context, headers).take_tensors(from_messages(request))
        return _ok()

    def _SendTensorBase(self, request: Iterator[Any], context: Any, headers: dict[str, Any]) -> Any:
        self._training(context, headers)
        for _ in request:
            pass  # values are asked for as a whole
        return _ok()

    _SendTensorStats = _SendTensorBase

    def _SendWatchpointHits(self, request: Iterator[Any], context: Any, headers: dict[str, Any]) -> Any:
        training = self._training(context, headers)
        step = training.take_hits(list(request))
        if step:
            self._stop_others(training, step)
        return _ok()

    def _SendRankValues(self, request: Iterator[Any], context: Any, headers: dict[str, Any]) -> Any:
        training = self._training(context, headers)
        present = {r: t for r, t in list(self.trainings.items()) if not t.is_gone}
        first = max((t.first_step for t in present.values()), default=0)
        step = self.ranks.take(training.rank, received(request), present, first)
        if step and not training.is_checking:
            training.pause()
            self._stop_others(training, step)
        return _ok()

    def _stop_others(self, training: Training, step: int) -> None:
        """What stops one rank stops all: those that are not so far wait after the same step, others now."""
        for other in self._others(training):
            other.catch_up(step)

    def _others(self, training: Training) -> list[Training]:
        """Trainings of other ranks that are there."""
        return [t for t in list(self.trainings.values()) if t is not training and not t.is_gone]

    def _SendAnswer(self, request: Iterator[Any], context: Any, headers: dict[str, Any]) -> Any:
        training = self._training(context, headers)
        for text in joined(request, _MOST_GRAPH):
            training.take_answer(messages.Answer.FromString(text))
        return _ok()


def _ok() -> Any:
    return messages.EventReply(status=messages.OK)


def _identity(context: Any, headers: dict[str, Any]) -> tuple[int, str]:
    """(rank, name of the process): of MindSpore's trainings, which do not say, 0 and their address."""
    rank = str(headers.get(RANK, "0"))
    if not rank.isascii() or not rank.isdecimal() or len(rank) > 9:
        raise ValueError(f"{RANK} must be a whole number, but is {rank[:40]!r}")
    return int(rank), str(headers.get(CLIENT, _address(context)))


def _address(context: Any) -> str:
    return context.peer().partition(":")[2]
