"""The gRPC port: the native front end where it can be had, grpcio for TLS and everywhere else."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from urllib.parse import unquote

from mycelia_serving.errors import ServingError, clip
from mycelia_serving.frontend.addresses import check_port, listening_socket, unix_path
from mycelia_serving.frontend.large import executor, is_large
from mycelia_serving.frontend.metrics import Metrics
from mycelia_serving.frontend.reflection import PATHS as REFLECTION
from mycelia_serving.frontend.reflection import reflected
from mycelia_serving.frontend.service import Service
from mycelia_serving.frontend.shares import (
    CALLS,
    HANDSHAKE_S,
    IDLE_S,
    PEER,
    STALL_S,
    STREAMS,
    Share,
    client_of,
    most_bytes,
    most_connections,
)
from mycelia_serving.frontend.status import (
    DEADLINE_EXCEEDED,
    INTERNAL,
    OK,
    RESOURCE_EXHAUSTED,
    UNAUTHENTICATED,
)
from mycelia_serving.frontend.tls import SSLConfig
from mycelia_serving.request import Dispatcher

WATCH = "/grpc.health.v1.Health/Watch"
_SERVICE_UNKNOWN = 3
_WATCH_S = 0.2  # how soon watchers of the health hear of a change
_START_S = 60
_LARGE_BYTES_S = 1 << 20  # bytes a second at which the largest message must come, beside STALL_S


def start_grpc(
    dispatcher: Dispatcher,
    address: str,
    max_msg_mb_size: int = 100,
    ssl_config: SSLConfig | None = None,
    *,
    metrics: Metrics | None = None,
    token: str | None = None,
    repository=None,
    admin_token: str | None = None,
    native: bool | None = None,
):
    """Serve MindSpore's protocol, KServe v2, health and reflection. The handle has `port` and `stop(grace)`.

    address: "ip:port" (port 0: any that is free) or "unix:path". max_msg_mb_size: 1 to 512.
    token: what callers must send as `authorization: Bearer TOKEN`.
    repository, admin_token: who may load and unload servables, see `kserve.Repository`.
    native: True or False asks for that front end or for grpcio; None takes the best.
    Errors: RuntimeError that names the parameter or the address.
    """
    from mycelia_serving.frontend import native as native_front_end

    check_port(address, max_msg_mb_size, ssl_config)
    service = Service(
        dispatcher, metrics=metrics, token=token, repository=repository, admin_token=admin_token
    )
    if native is None:
        native = ssl_config is None and not native_front_end.missing()
    if native:
        if ssl_config is not None:
            raise RuntimeError("the native front end has no TLS; leave 'native' out")
        return native_front_end.NativeServer(service, address, max_message_bytes=max_msg_mb_size << 20)
    return GrpcioServer(service, address, max_msg_mb_size << 20, ssl_config)


class GrpcioServer:
    """What a `Service` answers, by grpcio's asyncio server in a thread of its own.

    calls, connections, buffered: see `shares.Share`. stall_s: how long a small request may take to come.
    """

    def __init__(
        self,
        service: Service,
        address: str,
        max_message_bytes: int,
        ssl_config=None,
        *,
        calls: int = CALLS,
        connections: int | None = None,
        buffered: int | None = None,
        stall_s: float = STALL_S,
    ) -> None:
        connections = connections or most_connections()
        self._calls = Share(calls, connections)
        self._bytes = Share(buffered or most_bytes(max_message_bytes), connections)
        self._patience = stall_s + max_message_bytes / _LARGE_BYTES_S
        self._service = service
        self._large = executor()
        self._address = address
        self._limit = max_message_bytes
        self._ssl_config = ssl_config
        self.port = 0
        self._failure: Exception | None = None
        self._stopping = False
        started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(started,), name="serving-grpc", daemon=True)
        self._thread.start()
        if not started.wait(_START_S):
            raise RuntimeError(f"the gRPC server did not start within {_START_S} s")
        if self._failure is not None:
            self._thread.join()
            raise RuntimeError(f"cannot listen on {clip(address)}: {self._failure}") from None

    def stop(self, grace_seconds: float = 0.0) -> None:
        """Take nothing new, answer what is there for up to `grace_seconds`, end. Blocks until then."""
        self._stopping = True
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._server.stop(grace_seconds), self._loop)
            self._thread.join()
        self._large.shutdown(wait=False, cancel_futures=True)

    def wait(self) -> None:
        """Until the server has ended."""
        self._thread.join()

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve(started))
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _serve(self, started: threading.Event) -> None:
        import grpc

        try:
            await self._listen(grpc)
        except Exception as error:
            self._failure = error
            return
        finally:
            started.set()
        await self._server.wait_for_termination()

    async def _listen(self, grpc) -> None:
        self._server = grpc.aio.server(
            options=(
                ("grpc.max_receive_message_length", self._limit),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),
                ("grpc.max_concurrent_streams", STREAMS),
                ("grpc.server_handshake_timeout_ms", int(HANDSHAKE_S * 1000)),
                ("grpc.max_connection_idle_ms", int(IDLE_S * 1000)),
            )
        )
        self._server.add_generic_rpc_handlers((_Handlers(grpc, self),))
        address, unix = self._address, self._address.startswith("unix:")
        if unix:
            listening_socket(address).close()  # errors as of the native front end
            with contextlib.suppress(OSError):
                os.unlink(unix_path(address))
        if self._ssl_config is None:
            port = self._server.add_insecure_port(address)
        else:
            self._ssl_config.context()  # grpcio would take broken files and refuse every client
            port = self._server.add_secure_port(address, self._ssl_config.grpc_credentials())
        self.port = 0 if unix else port
        await self._server.start()

    # ---- calls ---------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _admitted(self, context):
        """Client and connection of a call, which has its share of what may be open."""
        connection = context.peer()
        client = _client(connection)
        if not self._calls.take(client, connection):
            await self.abort(context, RESOURCE_EXHAUSTED, "this client has too many open calls")
        try:
            yield client, connection
        finally:
            self._calls.give_back(client, connection)

    async def _first(self, requests, context) -> bytes:
        """The message of a unary call, or the first one of a stream."""
        try:
            async with asyncio.timeout(self._patience):
                async for body in requests:
                    return body
        except TimeoutError:
            await self.abort(context, DEADLINE_EXCEEDED, "the request did not arrive in time")
        await self.abort(context, INTERNAL, "the request has no message")

    async def unary(self, path: str, requests, context) -> bytes:
        async with self._admitted(context) as (client, connection):
            body = await self._first(requests, context)
            if not self._bytes.take(client, connection, len(body)):
                await self.abort(context, RESOURCE_EXHAUSTED, "too many requests are waiting")
            try:
                return await self._answer(path, body, client, context)
            finally:
                self._bytes.give_back(client, connection, len(body))

    async def _answer(self, path: str, body: bytes, client: str, context) -> bytes:
        loop = self._loop
        future = loop.create_future()

        def settle(status: int, payload: bytes | str) -> None:
            if not future.done():
                future.set_result((status, payload))

        def done(status: int, payload: bytes | str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits
                loop.call_soon_threadsafe(settle, status, payload)

        left = context.time_remaining()
        deadline = None if left is None else time.monotonic() + left
        arguments = path, body, {**_metadata(context), PEER: client}, done, deadline
        if is_large(body, False):
            call = await loop.run_in_executor(self._large, self._service.handle, *arguments)
        else:
            call = self._service.handle(*arguments)
        try:
            status, payload = await future
        except asyncio.CancelledError:
            if call is not None:
                call.cancel()
            raise
        if status != OK:
            await self.abort(context, status, payload)
        return payload

    async def abort(self, context, status: int, text: str) -> None:
        import grpc

        code = next(code for code in grpc.StatusCode if code.value[0] == status)
        await context.abort(code, text)

    async def watch(self, requests, context):
        """Health of a service whenever it changes."""
        from grpc_health.v1 import health_pb2

        async with self._admitted(context):
            service = health_pb2.HealthCheckRequest.FromString(await self._first(requests, context)).service
            told = None
            while not self._stopping:
                try:
                    state = self._service.health(service)
                except ServingError:
                    state = _SERVICE_UNKNOWN
                if state != told:
                    told = state
                    yield bytes((0x08, state))
                await asyncio.sleep(_WATCH_S)

    async def reflect(self, requests, context):
        refusal = self._service.refusal(_metadata(context))
        if refusal is not None:
            await self.abort(context, UNAUTHENTICATED, refusal)
        async with self._admitted(context):
            yield reflected(await self._first(requests, context))
            async for body in requests:
                yield reflected(body)


def _metadata(context) -> dict[str, str]:
    return {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}


def _client(peer: str) -> str:
    """The client, as grpcio names it: ipv4:1.2.3.4:5678, ipv6:%5B::1%5D:5678, unix:."""
    kind, _, rest = peer.partition(":")
    host = unquote(rest.rpartition(":")[0]).strip("[]")
    return client_of(host) if kind in ("ipv4", "ipv6") else kind


class _Handlers:
    """What grpcio asks for the handler of a path.

    Unary calls are taken as streams: so they are known from the start, not only when their message has come.
    """

    def __init__(self, grpc, server: GrpcioServer) -> None:
        self._unary: dict = {}
        for path in server._service.paths:
            self._unary[path] = grpc.stream_unary_rpc_method_handler(_bound(server.unary, path))
        self._unary[WATCH] = grpc.stream_stream_rpc_method_handler(server.watch)
        for path in REFLECTION:
            self._unary[path] = grpc.stream_stream_rpc_method_handler(server.reflect)

    def service(self, details):
        return self._unary.get(details.method)


def _bound(unary, path: str):
    async def handle(requests, context) -> bytes:
        return await unary(path, requests, context)

    return handle
