"""An echo service behind the native front end, without any servable."""

from __future__ import annotations

import contextlib
import threading

import grpc
import pytest

from mycelia_serving.errors import Code, ServingError
from mycelia_serving.frontend import native

ECHO, FAIL, HOLD = "/test.Echo/Call", "/test.Echo/Fail", "/test.Echo/Hold"


class Held:
    """A call that waits to be answered or cancelled."""

    def __init__(self, done) -> None:
        self.done = done
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        self.cancelled.set()


class EchoService:
    """What `NativeServer` asks of a `Service`."""

    def __init__(self) -> None:
        self.paths = {ECHO: self.echo, FAIL: self.fail, HOLD: self.hold}
        self.calls = 0
        self.seen: list[tuple] = []  # metadata, deadline
        self.held: list[Held] = []
        self.arrived = threading.Semaphore(0)  # one for each held call
        self.state = 1

    def handle(self, path, body, metadata, done, deadline=None):
        self.calls += 1
        self.seen.append((metadata, deadline))
        return self.paths[path](body, done)

    def echo(self, body, done):
        done(0, body)

    def fail(self, body, done):
        done(9, body.decode())

    def hold(self, body, done):
        call = Held(done)
        self.held.append(call)
        self.arrived.release()
        return call

    def burst(self):
        return contextlib.nullcontext()

    def refusal(self, metadata):
        return None

    def health(self, service):
        if service == "nowhere":
            raise ServingError(Code.NOT_FOUND, "unknown")
        return self.state


@pytest.fixture
def serve():
    """serve(**limits) -> (server, service); all are stopped at the end."""
    if native.missing():
        pytest.skip(native.missing())
    servers = []

    def start(address="127.0.0.1:0", **options):
        service = EchoService()
        servers.append(native.NativeServer(service, address, **options))
        return servers[-1], service

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def channel():
    """channel(server) -> a grpcio channel; closed at the end."""
    channels = []

    def connect(server, address=None):
        target = address or f"127.0.0.1:{server.port}"
        options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        # a connection of its own: channels to one address share one otherwise
        channels.append(grpc.insecure_channel(target, [*options, ("grpc.use_local_subchannel_pool", 1)]))
        return channels[-1]

    yield connect
    for found in channels:
        found.close()
