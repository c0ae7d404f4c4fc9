"""A client that takes all it can get, or takes its time: others are served meanwhile, and it is cut off."""

from __future__ import annotations

import time

import pytest

from .test_hostile import (
    CALL,
    DATA,
    DEADLINE,
    END_HEADERS,
    END_STREAM,
    EXHAUSTED,
    HEADERS,
    PING,
    PREFACE,
    RESET,
    SETTINGS,
    Raw,
    echoed,
    frame,
    headers,
    message,
    other,
    request,
    resident,
    says,
    still_serves,
)

OTHER = "127.0.0.2"
HEAD = headers(CALL)
NO_WINDOW = frame(SETTINGS, 0, 0, b"\0\4" + bytes(4))  # nothing may be sent to this client
WINDOW, CONTINUATION = 8, 9
TRICKLE_S = 0.01


def in_frames(stream: int, data: bytes) -> bytes:
    return b"".join(frame(DATA, 0, stream, data[at : at + 16_000]) for at in range(0, len(data), 16_000))


def settle(*clients: Raw) -> None:
    """Until the server has read all that they sent."""
    for client in clients:
        client.send(frame(PING, 0, 0, b"12345678"))
    for client in clients:
        while client.frame()[:2] != (PING, 1):
            pass


# ---- those who take much -----------------------------------------------------------------------------------


def test_open_calls_of_one_client_leave_room_for_others(serve):
    server, _ = serve(connections=4096)
    clients = [Raw(server.port) for _ in range(34)]
    for client in clients:
        client.send(b"".join(frame(HEADERS, END_HEADERS, 2 * n + 1, HEAD) for n in range(1000)))
    settle(*clients)
    assert 8000 < server.statistics()["open_calls"] <= 16_384 // 2 + 34 * 4
    assert still_serves(server, OTHER)
    assert still_serves(server), "a new connection of the same client"
    for client in clients:
        client.close()


def test_held_calls_of_one_client_leave_room_for_many_of_another(serve):
    server, service = serve(calls=1000, connections=100)  # five for each connection, and 500
    hold = other(path="/test.Echo/Hold")
    clients = []
    for source, common in (("127.0.0.1", 500 // 2), (OTHER, 250 // 2), ("127.0.0.3", 125 // 2)):
        before = len(service.held)
        mine = [Raw(server.port, source=source) for _ in range(10)]
        clients += mine
        for client in mine:
            client.send(b"".join(request(2 * n + 1, message(b""), pairs=hold) for n in range(100)))
        settle(*mine)
        for _ in range(server.statistics()["open_calls"] - before):
            assert service.arrived.acquire(timeout=60)
        assert 0.9 * common <= len(service.held) - before - 10 * 5 <= common + 1
    assert still_serves(server, "127.0.0.4")
    assert still_serves(server)
    for client in clients:
        client.close()


def test_bytes_of_one_client_leave_room_for_others(serve):
    server, _ = serve(buffered=1 << 20, connections=100)
    clients = [Raw(server.port) for _ in range(10)]
    for client in clients:
        for stream in (1, 3, 5):
            half = message(b"x" * 50_000, size=100_000)
            client.send(frame(HEADERS, END_HEADERS, stream, HEAD))
            client.send(in_frames(stream, half))
    settle(*clients)
    body = message(b"y" * 60_000)
    with Raw(server.port, source=OTHER) as client:
        client.send(frame(HEADERS, END_HEADERS, 1, HEAD))
        client.send(in_frames(1, body))
        client.send(frame(DATA, END_STREAM, 1) + frame(WINDOW, 0, 0, b"\0\x10\0\0"))
        client.send(frame(WINDOW, 0, 1, b"\0\x10\0\0"))
        frames = client.answer(1)
    assert b"".join(payload for kind, *_, payload in frames if kind == DATA) == body


def test_requests_count_until_they_are_answered(serve):
    server, service = serve(buffered=1 << 20, connections=4096)
    hold = other(path="/test.Echo/Hold")
    with Raw(server.port) as client:
        for stream in range(1, 81, 2):  # 40 whole requests of 15 kB, and no answers
            client.send(request(stream, message(b"x" * 15_000), pairs=hold))
        settle(client)
        held = server.statistics()["open_calls"]
        assert 10 <= held <= 13, "a third of the half that is common"
        for _ in range(held):
            assert service.arrived.acquire(timeout=60)
        for call in service.held:
            call.done(0, b"")
        settle(client)
        client.send(request(101, message(b"x" * 15_000)))
        assert client.answer(101)[0][0] == HEADERS
    assert still_serves(server)


def test_connections_of_one_client_leave_room_for_others(serve):
    server, _ = serve(connections=20)
    clients = [Raw(server.port) for _ in range(30)]
    assert sum(client.frame() is not None for client in clients) == 10
    assert still_serves(server, OTHER)
    for client in clients:
        client.close()


def test_answers_that_a_client_does_not_take_are_bounded(serve):
    server, _ = serve(buffered=4 << 20)
    with Raw(server.port) as client:
        client.send(NO_WINDOW)
        for stream in range(1, 601, 2):  # 300 answers of 15 kB
            client.send(request(stream, message(b"x" * 15_000)))
        frames = []
        while not says(frames, EXHAUSTED):
            frames.append(client.frame())
        assert still_serves(server, OTHER)


def test_stream_of_answers_that_a_client_does_not_take_is_ended(serve):
    server, _ = serve()
    reflection = other(path="/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
    symbol = b"inference.GRPCInferenceService"
    asked = message(bytes((0x22, len(symbol))) + symbol)  # the file that holds it
    with Raw(server.port) as client:
        client.send(NO_WINDOW + frame(HEADERS, END_HEADERS, 1, headers(reflection)))
        before = resident()
        for _ in range(100):  # 40,000 answers of more than 1 kB
            client.send(frame(DATA, 0, 1, 400 * asked))
            settle(client)
        assert resident() - before < 120 << 20, "they are 240 MB"
        assert still_serves(server)


# ---- those who take long -----------------------------------------------------------------------------------


def trickle(client: Raw, data: bytes) -> None:
    """One byte after the other, as long as they are taken."""
    client.socket.setblocking(False)
    try:
        for at in range(len(data)):
            try:
                client.socket.send(data[at : at + 1])
            except OSError:
                break
            time.sleep(TRICKLE_S)
    finally:
        client.socket.settimeout(30)


@pytest.mark.parametrize(
    ("before", "slowly"),
    [
        (b"", PREFACE + frame(SETTINGS, 0, 0, bytes(6) * 500)),
        (PREFACE, frame(SETTINGS, 0, 0, bytes(6) * 500)),
        (PREFACE + frame(SETTINGS, 0, 0), frame(HEADERS, END_HEADERS, 1, headers((("x" * 5000, "y"),)))),
        (
            PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 0, 1, HEAD),
            frame(CONTINUATION, 0, 1, headers((("x" * 5000, "y"),))),
        ),
    ],
    ids=["preface", "settings", "headers", "continuation"],
)
def test_connection_that_begins_byte_by_byte_is_cut_off(serve, before, slowly):
    server, _ = serve(stall_s=0.2, handshake_s=0.2)
    with Raw(server.port, greet=False) as client:
        client.send(before)
        trickle(client, slowly[:3000])
        client.rest()  # ends
    assert still_serves(server)


@pytest.mark.parametrize("path", ["/test.Echo/Call", "/grpc.health.v1.Health/Watch"])
def test_message_that_comes_byte_by_byte_is_refused(serve, path):
    server, _ = serve(stall_s=0.2)
    with Raw(server.port) as client:
        client.send(frame(HEADERS, END_HEADERS, 1, headers(other(path=path))))
        for byte in message(bytes(3000)):
            client.send(frame(DATA, 0, 1, bytes((byte,))))
            time.sleep(TRICKLE_S)
            if not server.statistics()["open_calls"]:
                break
        assert says(client.answer(1)[:1], DEADLINE)
    assert still_serves(server)


def test_stream_on_which_nothing_is_asked_is_refused(serve):
    server, _ = serve(stall_s=0.1)
    with Raw(server.port) as client:
        client.send(frame(HEADERS, END_HEADERS, 1, headers(other(path="/grpc.health.v1.Health/Watch"))))
        assert says(client.answer(1), DEADLINE)


def test_answer_that_is_taken_byte_by_byte_is_given_up(serve):
    server, _ = serve(stall_s=0.2)
    with Raw(server.port) as client:
        client.send(NO_WINDOW + request(1, message(b"x" * 10_000)))
        for _ in range(3000):
            client.send(frame(WINDOW, 0, 1, b"\0\0\0\1"))
            time.sleep(TRICKLE_S)
            if not server.statistics()["open_calls"]:
                break
        assert client.answer(1)[-1][0] == RESET
    assert still_serves(server)


def test_client_that_is_slow_but_steady_is_served(serve):
    server, _ = serve(stall_s=0.3, slowest=500)
    body = message(b"good" + bytes(10_000))
    with Raw(server.port) as client:
        client.send(frame(HEADERS, END_HEADERS, 1, HEAD))
        for at in range(0, len(body), 100):
            client.send(frame(DATA, 0, 1, body[at : at + 100]))
            time.sleep(TRICKLE_S)
        client.send(frame(DATA, END_STREAM, 1))
        frames = client.answer(1)
    assert [kind for kind, *_ in frames] == [HEADERS, DATA, HEADERS] and frames[1][3] == body


def test_accounts_are_even_in_the_end(serve):
    """What calls hold is given back however they end: nothing is left that would be missing for others."""
    server, _ = serve(buffered=1 << 20, stall_s=0.1)
    whole = message(b"z" * 15_000)
    for round_ in range(60):  # 15 times what fits
        with Raw(server.port) as client:
            client.send(frame(HEADERS, END_HEADERS, 1, HEAD) + frame(DATA, 0, 1, whole[:9000]))  # lost
            client.send(request(3, whole, pairs=other(path="/test.Echo/Fail")))
            client.send(request(5, whole[:-1]))  # cut off
            client.send(frame(HEADERS, END_HEADERS, 7, HEAD) + frame(DATA, 0, 7, whole[:9000]))
            client.send(frame(RESET, 0, 7, bytes((0, 0, 0, 8))))
            client.send(request(9, message(b"good")))
            assert echoed(client.answer(9)), round_
