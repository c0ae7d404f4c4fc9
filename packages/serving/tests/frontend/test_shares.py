"""A client that holds much, or takes its time, over REST and over grpcio: others are served meanwhile."""

from __future__ import annotations

import socket
import time

import pytest

from mycelia_serving.frontend import start_rest
from mycelia_serving.frontend.grpc_server import GrpcioServer, _client
from mycelia_serving.frontend.shares import Share, client_of

from .native_server.conftest import EchoService
from .native_server.test_hostile import (
    CALL,
    DATA,
    END_HEADERS,
    HEADERS,
    Raw,
    frame,
    headers,
    message,
    other,
    request,
    still_serves,
)
from .native_server.test_shares import settle

OTHER = "127.0.0.2"


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_client_behind_an_address(host, client):
    assert client_of(host) == client


def test_client_of_a_peer_as_grpcio_names_it():
    assert _client("ipv4:127.0.0.1:80") == "127.0.0.1"
    assert _client("ipv6:%5B2001:db8::1%5D:80") == "2001:db8::/64"
    assert _client("unix:") == "unix"


def test_share_leaves_to_others_what_it_gives_and_takes_all_back():
    share = Share(1000, 100)
    held = []
    for client in range(4):
        for connection in range(20):
            while share.take(f"{client}", (client, connection)):
                held.append((f"{client}", (client, connection)))
    for client, least in ((0, 250), (1, 125), (2, 62), (3, 31)):
        assert least - 5 <= sum(name == f"{client}" for name, _ in held) - 20 * 5 <= least + 5
    assert not share.take("0", "new", 6) and share.take("0", "new", 5), "its own"
    share.give_back("0", "new", 5)
    for name, connection in held:
        share.give_back(name, connection)
    assert share.used == 0 and not share._all and not share._beyond


# ---- REST --------------------------------------------------------------------------------------------------

HALF = b"POST /model/add:add_any HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + b"x" * 50_000


def connect(server, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60, source_address=(source, 0))


def is_served(server, source: str, size: int = 0) -> bool:
    """Whether a client's request is answered in full, whatever it is."""
    with connect(server, source) as client:
        body = b" " * size + b"{}"
        client.sendall(
            b"POST /model/add:add_any HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
            % (len(body), body)
        )
        return client.recv(1 << 16).startswith(b"HTTP/1.1 400 ")  # there are no instances in there


def test_connections_of_one_client_leave_room_for_others(echo):
    server = start_rest(echo, "127.0.0.1:0", connections=20)
    try:
        clients = [connect(server) for _ in range(15)]
        for late in clients[10:]:
            assert late.recv(1) == b""
        assert is_served(server, OTHER)
        for client in clients:
            client.close()
        while not is_served(server, "127.0.0.1"):
            pass  # until the server has seen that they are closed
    finally:
        server.stop()


def test_bodies_of_one_client_leave_room_for_others(echo):
    server = start_rest(echo, "127.0.0.1:0", buffered=1 << 20, connections=100)
    try:
        clients = [connect(server) for _ in range(20)]
        refused = 0
        for client in clients:
            client.sendall(HALF)
        for client in clients[10:]:
            refused += client.recv(1 << 16).startswith(b"HTTP/1.1 429 ")
        assert refused == 10, "six or seven fit into its share"
        assert is_served(server, OTHER, 60_000)
        for client in clients:
            client.close()
    finally:
        server.stop()


def test_requests_of_rest_name_their_client(echo):
    server = start_rest(echo, "127.0.0.1:0")
    try:
        with connect(server, "127.0.0.9") as client:
            body = b'{"instances": [{"x": 1}]}'
            head = b"POST /model/mirror:one HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            client.sendall(head % len(body) + body)
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        assert echo.requests[-1].peer == "127.0.0.9"
    finally:
        server.stop()


@pytest.mark.parametrize(
    "data",
    [b"POST /model/add:add_any HTTP/1.1\r\nX: " + b"y" * 9000, HALF[:80] + b"z" * 9000],
    ids=["head", "body"],
)
def test_request_that_comes_byte_by_byte_is_refused(echo, data):
    server = start_rest(echo, "127.0.0.1:0", stall_s=0.2)
    try:
        with connect(server) as client:
            client.sendall(data[:40])
            client.setblocking(False)
            for at in range(40, 3000):
                try:
                    client.send(data[at : at + 1])
                    if client.recv(4096).startswith(b"HTTP/1.1 408 "):
                        return
                except BlockingIOError:
                    time.sleep(0.01)
            raise AssertionError("it was never refused")
    finally:
        server.stop()


# ---- grpcio ------------------------------------------------------------------------------------------------


@pytest.fixture
def grpcio():
    """grpcio(**limits) -> (server, service)"""
    servers = []

    def start(**limits):
        service = EchoService()
        servers.append(GrpcioServer(service, "127.0.0.1:0", 1 << 20, **limits))
        return servers[-1], service

    yield start
    for server in servers:
        server.stop()


def test_calls_of_one_client_leave_room_for_others_with_grpcio(grpcio):
    server, service = grpcio(calls=400, connections=50)  # four for each connection, and 200
    hold = other(path="/test.Echo/Hold")
    clients = [Raw(server.port) for _ in range(5)]
    for client in clients[:3]:  # whole requests; the others only begin
        client.send(b"".join(request(2 * n + 1, message(b""), pairs=hold) for n in range(60)))
    for client in clients[3:]:
        client.send(b"".join(frame(HEADERS, END_HEADERS, 2 * n + 1, headers(CALL)) for n in range(60)))
    while server._calls.used < 99:
        time.sleep(0.01)
    settle(*clients)
    assert server._calls.used <= 101
    assert still_serves(server, OTHER)
    assert still_serves(server)
    for client in clients:
        client.close()
    while server._calls._all:  # all is given back
        time.sleep(0.01)
    assert server._bytes.used == 0


def test_request_that_does_not_come_is_refused_with_grpcio(grpcio):
    server, _ = grpcio(stall_s=0.2 - 1)  # and a second for 1 MB
    with Raw(server.port) as client:
        client.send(frame(HEADERS, END_HEADERS, 1, headers(CALL)))
        client.send(frame(DATA, 0, 1, message(b"x", size=100)))
        assert any(b"in time" in payload for *_, payload in client.answer(1))
    assert still_serves(server)


def test_bytes_over_the_share_are_refused_with_grpcio(grpcio):
    server, service = grpcio(buffered=1 << 20)
    hold = other(path="/test.Echo/Hold")
    with Raw(server.port) as client:
        for stream in range(1, 81, 2):
            client.send(request(stream, message(b"x" * 15_000), pairs=hold))
        frames = []
        while not any(b"too many requests are waiting" in payload for *_, payload in frames[-1:]):
            frames.append(client.frame())
        assert still_serves(server, OTHER)
