"""Servers of the protocols on loopback."""

from __future__ import annotations

import pytest

from mycelia_serving.frontend import native, start_grpc


@pytest.fixture(params=["grpcio", "native"])
def grpc_server(request, echo):
    """Either front end, answering from `echo`."""
    if request.param == "native" and native.missing():
        pytest.skip(native.missing())
    server = start_grpc(
        echo, "127.0.0.1:0", max_msg_mb_size=1, repository=echo, native=request.param == "native"
    )
    yield server
    server.stop(0)


@pytest.fixture
def channel(grpc_server):
    import grpc

    with grpc.insecure_channel(f"127.0.0.1:{grpc_server.port}") as channel:
        yield channel
