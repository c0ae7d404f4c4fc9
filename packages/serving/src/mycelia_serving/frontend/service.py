"""Unary gRPC calls as bytes: one table of paths for whatever transport carries them.

A transport calls `Service.handle` and gets the answer by a callback, as a gRPC status number with the reply's
bytes (status 0) or a text. Nothing here knows a gRPC library.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from mycelia_serving.errors import Code, ServingError, clip
from mycelia_serving.frontend.kserve import Models, Repository
from mycelia_serving.frontend.kserve_calls import InferenceCalls
from mycelia_serving.frontend.kserve_grpc import InferenceService
from mycelia_serving.frontend.metrics import Metrics
from mycelia_serving.frontend.status import (
    INTERNAL,
    INVALID_ARGUMENT,
    OK,
    STATUS,
    UNAUTHENTICATED,
    UNIMPLEMENTED,
    add_headers,
)
from mycelia_serving.frontend.token import Token
from mycelia_serving.frontend.tracing import submitter
from mycelia_serving.request import Call, Dispatcher, Reply, burst
from mycelia_serving.wire.predict import Malformed, Refused, parse_request, reply_bytes

PREDICT = "/mindspore.serving.proto.MSService/Predict"
HEALTH = "/grpc.health.v1.Health/Check"
SERVICES = ("mindspore.serving.proto.MSService", "inference.GRPCInferenceService", "grpc.health.v1.Health")

Done = Callable[[int, bytes | str], None]  # gRPC status; the reply's bytes, or what went wrong
_PASSED_ON = frozenset((Code.STOPPING, Code.DEADLINE, Code.DENIED))  # that MSService tells by the status


class Service:
    """What the gRPC port answers.

    dispatcher: takes the requests. metrics: counts them.
    token: what callers must send as `authorization: Bearer TOKEN`, health checks excepted; None: nothing.
    repository, admin_token: see `kserve.Repository`.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        metrics: Metrics | None = None,
        token: str | None = None,
        repository=None,
        admin_token: str | None = None,
    ) -> None:
        self.dispatcher = dispatcher
        self._submit = submitter(dispatcher)
        self.metrics = metrics if metrics is not None else Metrics.of(dispatcher)
        self._token = Token(token, admin_token)
        calls = InferenceCalls(
            dispatcher, Models(dispatcher), self.metrics, Repository(repository, admin_token)
        )
        inference = InferenceService(calls)
        self.paths = {PREDICT: self._predict, HEALTH: self._check_health, **inference.paths}

    def handle(
        self,
        path: str,
        body: bytes,
        metadata: Mapping[str, str],
        done: Done,
        deadline: float | None = None,
    ) -> Call | None:
        """Answer a call of `path` ("/package.Service/Method") by calling `done` once, from any thread.

        metadata: the call's ASCII headers by lower-case name.
        deadline: `time.monotonic()` after which nobody waits; from grpc-timeout.
        Returns what cancels the call, if anything is under way. Never raises.
        """
        handler = self.paths.get(path)
        if handler is None:
            done(UNIMPLEMENTED, f"unknown method {clip(path)}")
            return None
        refusal = None if path == HEALTH or not self._token.needed else self.refusal(metadata)
        if refusal is not None:
            done(UNAUTHENTICATED, refusal)
            return None
        try:
            return handler(body, metadata, done, deadline)
        except Malformed as error:
            done(INVALID_ARGUMENT, str(error))
        except ServingError as error:
            done(STATUS[error.grpc_status], error.message)
        except Exception as error:
            from mycelia import log

            log.logger(__name__).exception("an error inside the server at %s", path)
            done(INTERNAL, f"an error inside the server: {type(error).__name__}")
        return None

    def burst(self):
        """A context for calls that came together, by a thread that takes more only after it."""
        return burst(self.dispatcher)

    def refusal(self, metadata: Mapping[str, str]) -> str | None:
        """Why a caller with these headers is not served; for transports with methods of their own."""
        if self._token.admits(metadata.get("authorization", "")):
            return None
        return "the token is missing or wrong (authorization: Bearer ...)"

    def _predict(
        self, body: bytes, metadata: Mapping[str, str], done: Done, deadline: float | None
    ) -> Call | None:
        start = time.perf_counter()
        count = self.metrics.count
        try:
            request = parse_request(body)
        except Refused as refused:
            reply = Reply(error=refused.error)
            sent = reply_bytes(refused.servable, refused.method, refused.version, reply)
            count("grpc", refused.servable, refused.method, reply, start, len(body), len(sent))
            done(OK, sent)
            return None
        request.deadline = deadline
        if metadata:
            add_headers(request, metadata)
        servable, method, version = request.servable, request.method, request.version

        def answer(reply: Reply) -> None:
            error = reply.error
            if error is not None and error.code in _PASSED_ON:
                count("grpc", servable, method, reply, start, len(body), 0)
                done(STATUS[error.grpc_status], error.message)
                return
            sent = reply_bytes(servable, method, version, reply)
            count("grpc", servable, method, reply, start, len(body), len(sent))
            done(OK, sent)

        return self._submit(request, answer)

    def _check_health(
        self, body: bytes, metadata: Mapping[str, str], done: Done, deadline: float | None
    ) -> None:
        done(OK, _HEALTH_REPLY[self.health(_health_service(body))])

    def health(self, service: str) -> int:
        """State of "" or one of the services in numbers of `grpc.health.v1`: 1 serving, 2 not serving.

        Errors: ServingError NOT_FOUND for a service that is not here.
        """
        if service and service not in SERVICES:
            raise ServingError(Code.NOT_FOUND, f"unknown service {clip(service)}")
        return 1 if self.dispatcher.ready() else 2


_HEALTH_REPLY = {1: b"\x08\x01", 2: b"\x08\x02"}  # HealthCheckResponse


def _health_service(body: bytes) -> str:
    """The one field of `HealthCheckRequest`."""
    from grpc_health.v1 import health_pb2

    try:
        return health_pb2.HealthCheckRequest.FromString(body).service
    except Exception as error:
        raise Malformed(f"not a HealthCheckRequest: {error}") from None
