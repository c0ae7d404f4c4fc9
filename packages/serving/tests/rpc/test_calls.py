"""Calls over a connection, and who listens."""

from __future__ import annotations

import socket
import threading

import pytest

from mycelia_serving.rpc.calls import Calls, ask
from mycelia_serving.rpc.connection import Connection, Kind
from mycelia_serving.rpc.listener import Listener, frames_of_a_stranger
from mycelia_serving.rpc.sockets import connect

WAIT_S = 60.0


@pytest.fixture
def ends():
    """Both ends of a connection."""
    made = [Connection(sock) for sock in socket.socketpair()]
    yield made
    for end in made:
        end.close()


def test_answers_in_any_order_find_their_call(ends):
    calls, got = Calls(ends[0], Kind.CALL_MODEL), {}
    for name in "abc":
        calls.start(name.encode(), lambda body, name=name: got.setdefault(name, body))
    asked = []
    for kind, number, body in ends[1].frames():
        assert kind == Kind.CALL_MODEL
        asked.append((number, body))
        if len(asked) == 3:
            break
    for number, body in reversed(asked):
        calls.answer(number, body * 2)
        calls.answer(number, b"again")
    assert got == {"a": b"aa", "b": b"bb", "c": b"cc"}


def test_calls_of_a_connection_that_ended_are_told_so(ends):
    calls, got = Calls(ends[0], Kind.PREDICT), []
    calls.start(b"x", got.append)
    calls.lose()
    calls.start(b"y", got.append)
    assert got == [None, None]


def test_a_listener_serves_each_connection_in_a_thread(tmp_path):
    address = f"unix:{tmp_path}/socket"
    threads = set()

    def serve(link: Connection, where: str) -> None:
        threads.add(threading.get_ident())
        for _, number, body in frames_of_a_stranger(link):
            link.send((Kind.ADMIN_REPLY, number, body + where.encode()))

    listener = Listener(address, serve)
    listener.start()
    links = [Connection(connect(address), timeout=WAIT_S) for _ in range(2)]
    assert [ask(link, Kind.ADMIN, b"a ", Kind.ADMIN_REPLY) for link in links] == [b"a unix"] * 2
    assert len(threads) == 2
    listener.close()
    assert [ask(link, Kind.ADMIN, b"", Kind.ADMIN_REPLY) for link in links] == [None, None]
    with pytest.raises(OSError):
        connect(address)
