"""The REST port: `rest.Rest` on uvicorn, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading

from mycelia_serving.frontend.addresses import check_port, listening_socket
from mycelia_serving.frontend.asgi import GuardedProtocol, RestApp
from mycelia_serving.frontend.metrics import Metrics
from mycelia_serving.frontend.rest import Rest
from mycelia_serving.frontend.tls import SSLConfig
from mycelia_serving.request import Dispatcher


def start_rest(
    dispatcher: Dispatcher,
    address: str,
    max_msg_mb_size: int = 100,
    ssl_config: SSLConfig | None = None,
    *,
    metrics: Metrics | None = None,
    token: str | None = None,
    repository=None,
    admin_token: str | None = None,
    stall_s: float = 20.0,
    idle_s: float = 75.0,
    connections: int | None = None,
    buffered: int | None = None,
) -> RestServer:
    """Serve REST, KServe v2, `/metrics` and `/openapi.json`. The handle has `port` and `stop(grace)`.

    address: "ip:port" (port 0: any that is free). max_msg_mb_size: of a request's body, 1 to 512.
    token: what callers must send as `Authorization: Bearer TOKEN`.
    repository, admin_token: who may load and unload servables, see `kserve.Repository`.
    stall_s: how long a client may be silent inside of a request; idle_s: between two of them.
    connections, buffered: see `asgi.RestApp`.
    Errors: RuntimeError that names the parameter or the address.
    """
    check_port(address, max_msg_mb_size, ssl_config, unix=False)
    context = None if ssl_config is None else ssl_config.context()
    sock = listening_socket(address)
    application = Rest(
        dispatcher, metrics=metrics, token=token, repository=repository, admin_token=admin_token
    )
    app = RestApp(
        application,
        max_body=max_msg_mb_size << 20,
        stall_s=stall_s,
        connections=connections,
        buffered=buffered,
    )
    return RestServer(app, sock, context, idle_s)


class RestServer:
    """A started server."""

    def __init__(self, app: RestApp, sock: socket.socket, context, idle_s: float) -> None:
        import uvicorn

        self.port: int = sock.getsockname()[1]
        self._app = app
        config = uvicorn.Config(
            app,
            http=GuardedProtocol,
            ws="none",
            loop="uvloop",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            backlog=1024,
            timeout_keep_alive=idle_s,
        )
        config.load()
        config.ssl = context
        self._server = uvicorn.Server(config)
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(sock,), name="serving-rest", daemon=True)
        self._thread.start()
        self._started.wait()

    def stop(self, grace_seconds: float = 0.0) -> None:
        """Take no new connections, answer what is there for up to `grace_seconds`, end. Blocks until then."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._ask_to_end, grace_seconds)
        self._thread.join()
        self._app.large.shutdown(wait=False, cancel_futures=True)

    def wait(self) -> None:
        """Until the server has ended."""
        self._thread.join()

    def _ask_to_end(self, grace_seconds: float) -> None:
        if not self._end.done():
            self._end.set_result(grace_seconds)

    def _run(self, sock: socket.socket) -> None:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(sock))

    async def _serve(self, sock: socket.socket) -> None:
        """`uvicorn.Server.serve` with an end of our own in the place of signals."""
        server = self._server
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.create_future()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup(sockets=[sock])
        self._started.set()
        server.config.timeout_graceful_shutdown = await self._end
        await server.shutdown(sockets=[sock])
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)
