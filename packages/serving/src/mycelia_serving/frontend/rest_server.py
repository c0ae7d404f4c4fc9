"""The REST port: `rest.Rest` on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading

from mycelia_serving.frontend.addresses import check_address, check_size, listening_socket
from mycelia_serving.frontend.http import Connections
from mycelia_serving.frontend.metrics import Metrics
from mycelia_serving.frontend.rest import Rest
from mycelia_serving.frontend.tls import SSLConfig
from mycelia_serving.request import Dispatcher

_POLL_S = 0.02


def start_rest(
    dispatcher: Dispatcher,
    address: str,
    max_msg_mb_size: int = 100,
    ssl_config: SSLConfig | None = None,
    *,
    metrics: Metrics | None = None,
    token: str | None = None,
    repository=None,
    patience_s: float = 20.0,
    idle_s: float = 75.0,
) -> RestServer:
    """Serve REST, KServe v2, `/metrics` and `/openapi.json`. The handle has `port` and `stop(grace)`.

    address: "ip:port" (port 0: any that is free). max_msg_mb_size: of a request's body, 1 to 512.
    token: what callers must send as `Authorization: Bearer TOKEN`. repository: loads and unloads servables.
    patience_s: how long a client may be silent inside of a request; idle_s: between two of them.
    Errors: RuntimeError that names the parameter or the address.
    """
    check_address(address, unix=False)
    check_size(max_msg_mb_size)
    if ssl_config is not None and not isinstance(ssl_config, SSLConfig):
        raise RuntimeError(f"Parameter 'ssl_config' should be an SSLConfig, but got {type(ssl_config)}")
    context = None if ssl_config is None else ssl_config.context()
    sock = listening_socket(address)
    application = Rest(dispatcher, metrics=metrics, token=token, repository=repository)
    limits = {"max_body": max_msg_mb_size << 20, "patience": patience_s, "idle": idle_s}
    return RestServer(application, sock, context, limits)


class RestServer:
    """A started server."""

    def __init__(self, application: Rest, sock: socket.socket, context, limits: dict) -> None:
        import uvloop

        self.port: int = sock.getsockname()[1]
        self._loop = uvloop.new_event_loop()
        self._connections = Connections(application, self._loop, **limits)
        self._started = threading.Event()
        self._stopping: tuple[float] | None = None
        self._thread = threading.Thread(
            target=self._run, args=(sock, context), name="serving-rest", daemon=True
        )
        self._thread.start()
        self._started.wait()

    def stop(self, grace_seconds: float = 0.0) -> None:
        """Take no new connections, answer what is there for up to `grace_seconds`, end. Blocks until then."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set_result, grace_seconds)
            self._thread.join()

    def wait(self) -> None:
        """Until the server has ended."""
        self._thread.join()

    def _run(self, sock: socket.socket, context) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve(sock, context))
        finally:
            self._loop.close()

    async def _serve(self, sock: socket.socket, context) -> None:
        loop, connections = self._loop, self._connections
        self._end = loop.create_future()
        more = {} if context is None else {"ssl": context, "ssl_handshake_timeout": 20}
        server = await loop.create_server(connections.make, sock=sock, backlog=1024, **more)
        self._started.set()
        grace = await self._end
        server.close()
        connections.stop()
        end = loop.time() + grace
        while connections.busy and loop.time() < end:
            await asyncio.sleep(_POLL_S)
        connections.abort()
        await asyncio.sleep(0)
