"""Clients that break the rules, by malice or by mistake: they are refused, others are served as before."""

from __future__ import annotations

import random
import socket
import struct
import time

import pytest

# ---- HTTP/2 by hand ----

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, END_HEADERS = 1, 4
CALL = (
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/test.Echo/Call"),
    (":authority", "test"),
    ("te", "trailers"),
    ("content-type", "application/grpc"),
)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def _length(n: int) -> bytes:  # an HPACK integer of 7 bits, no Huffman code
    if n < 127:
        return bytes((n,))
    out, n = bytearray((127,)), n - 127
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes((*out, n))


def headers(pairs) -> bytes:
    """A header block without compression."""
    return b"".join(
        b"\0" + _length(len(name)) + name + _length(len(value)) + value
        for name, value in ((n.encode(), v.encode()) for n, v in pairs)
    )


def message(body: bytes, flag: int = 0, size: int | None = None) -> bytes:
    return struct.pack(">BI", flag, len(body) if size is None else size) + body


def request(stream: int, *messages: bytes, pairs=CALL) -> bytes:
    """A whole call."""
    head = frame(HEADERS, END_HEADERS, stream, headers(pairs))
    return head + frame(DATA, END_STREAM, stream, b"".join(messages))


class Raw:
    """A connection whose bytes the test chooses."""

    def __init__(self, port: int, greet: bool = True, source: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(source, 0))
        if greet:
            self.send(PREFACE + frame(SETTINGS, 0, 0))

    def send(self, data: bytes) -> bool:
        """False: the server has closed the connection."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        return True

    def frame(self) -> tuple[int, int, int, bytes] | None:
        """(type, flags, stream, payload) of the next frame; None at the end."""
        head = self._exactly(9)
        if head is None:
            return None
        payload = self._exactly(int.from_bytes(head[:3], "big"))
        return None if payload is None else (head[3], head[4], int.from_bytes(head[5:], "big"), payload)

    def answer(self, stream: int) -> list[tuple[int, int, int, bytes]]:
        """The frames of a stream up to its end or reset, or the end of the connection."""
        found = []
        while (got := self.frame()) is not None:
            if got[2] == stream:
                found.append(got)
                if got[0] == RESET or (got[0] in (DATA, HEADERS) and got[1] & END_STREAM):
                    break
        return found

    def rest(self) -> list[tuple[int, int, int, bytes]]:
        """Everything until the server closes."""
        return list(iter(self.frame, None))

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _exactly(self, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            try:
                part = self.socket.recv(count - len(data))
            except ConnectionError:
                return None
            if not part:
                return None
            data += part
        return data


def says(frames, number: int) -> bool:
    """Whether the last HEADERS hold the value `number`, as grpc-status or as :status.

    Digits are shorter without Huffman codes, so they stand there as they are.
    """
    digits = str(number).encode()
    return bool(frames) and frames[-1][0] == HEADERS and bytes((len(digits),)) + digits in frames[-1][3]


# ---- tests ----

INTERNAL, EXHAUSTED, UNIMPLEMENTED, DEADLINE = 13, 8, 12, 4
GOOD = request(1, message(b"good"))


def echoed(frames) -> bool:
    """Whether a call of `message(b"good")` was answered."""
    kinds = [kind for kind, *_ in frames]
    return kinds == [HEADERS, DATA, HEADERS] and frames[1][3] == message(b"good")


def still_serves(server, source: str = "127.0.0.1") -> bool:
    with Raw(server.port, source=source) as client:
        client.send(GOOD)
        frames = client.answer(1)
    return says(frames, 0) and any(
        message(b"good") == payload for kind, *_, payload in frames if kind == DATA
    )


def other(**changes) -> tuple:
    """The headers of a call with some of them changed, added, or left out (None)."""
    changes = {name.replace("_", "-"): value for name, value in changes.items()}
    pseudo = {name.lstrip(":"): name for name, _ in CALL}
    new = {pseudo.get(name, name): value for name, value in changes.items()}
    pairs = {**dict(CALL), **new}
    return tuple((name, value) for name, value in pairs.items() if value is not None)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (request(1), INTERNAL),  # no message
        (request(1, b"\0\0\0"), INTERNAL),  # a part of a prefix
        (request(1, message(b"abc", size=4)), INTERNAL),  # cut off
        (request(1, message(b"a"), message(b"b")), INTERNAL),  # two
        (request(1, message(b"a", flag=1)), INTERNAL),  # compressed by nothing
        (request(1, message(b"a", flag=7)), INTERNAL),
        (request(1, message(b"a", flag=1), pairs=other(grpc_encoding="gzip")), INTERNAL),  # not gzip
        (request(1, message(b"a"), pairs=other(grpc_encoding="snappy")), UNIMPLEMENTED),
        (request(1, message(b"a"), pairs=other(grpc_timeout="soon")), INTERNAL),
        (request(1, message(b"a"), pairs=other(path="/")), UNIMPLEMENTED),
        (request(1, message(b"a"), pairs=other(method="GET")), 405),
        (request(1, message(b"a"), pairs=other(content_type="application/json")), 415),
        (request(1, message(b"a"), pairs=other(content_type=None)), 415),
        (request(1, message(b"a"), pairs=(*CALL, *((f"x{i}", "y" * 145) for i in range(92)))), EXHAUSTED),
        (request(1, message(b"a"), pairs=(*CALL, *((f"x{i}", "") for i in range(200)))), EXHAUSTED),
    ],
)
def test_request_that_breaks_a_rule_of_grpc_has_its_status(serve, sent, status):
    server, service = serve()
    with Raw(server.port) as client:
        client.send(sent)
        assert says(client.answer(1), status)
        client.send(request(3, message(b"good")))  # on the same connection
        assert echoed(client.answer(3))
    assert still_serves(server)


@pytest.mark.parametrize("size", [101 << 20, 1 << 31, (1 << 32) - 1])
def test_huge_declared_size_is_refused_at_once(serve, size):
    server, _ = serve()
    with Raw(server.port) as client:
        client.send(frame(HEADERS, END_HEADERS, 1, headers(CALL)))
        client.send(frame(DATA, 0, 1, message(b"", size=size)))  # and nothing more
        assert says(client.answer(1), EXHAUSTED)


def test_declared_size_takes_no_memory(serve):
    server, _ = serve(max_message_bytes=1 << 32)
    before = resident()
    clients = [Raw(server.port) for _ in range(20)]
    for client in clients:
        client.send(frame(HEADERS, END_HEADERS, 1, headers(CALL)))
        client.send(frame(DATA, 0, 1, message(b"x", size=1 << 31)))
    assert still_serves(server)
    assert resident() - before < 200 << 20
    for client in clients:
        client.close()


def until(condition) -> None:
    """Wait for what the server does on its own."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_bytes_that_wait_are_bounded(serve):
    server, _ = serve(buffered=1 << 20)
    with Raw(server.port) as client:
        for stream in range(1, 61, 2):  # 30 halves of 100 kB
            client.send(frame(HEADERS, END_HEADERS, stream, headers(CALL)))
            for _ in range(4):
                client.send(frame(DATA, 0, stream, (message(b"x" * 12_500, size=100_000))[:16_000]))
        frames = []
        while not says(frames, EXHAUSTED):
            frames.append(client.frame())
    assert still_serves(server)


@pytest.mark.parametrize(
    "flood",
    [
        frame(PING, 0, 0, b"12345678"),
        frame(SETTINGS, 0, 0),
        frame(HEADERS, END_HEADERS, 1, headers(CALL)) + frame(DATA, 0, 1) * 10,
    ],
    ids=["ping", "settings", "empty data"],
)
def test_flood_of_cheap_frames_ends_the_connection(serve, flood):
    server, _ = serve(control_burst=100, control_rate=1)
    with Raw(server.port) as client:
        client.send(flood)
        for _ in range(200):
            if not client.send(flood[-17:] if flood[3] == PING else flood[-9:]):
                break
        assert any(kind == GOAWAY for kind, *_ in client.rest())
    assert still_serves(server)


def test_rapid_resets_end_the_connection(serve):
    server, _ = serve(control_burst=100, control_rate=1)
    with Raw(server.port) as client:
        for stream in range(1, 601, 2):
            begun = frame(HEADERS, END_HEADERS, stream, headers(CALL))
            if not client.send(begun + frame(RESET, 0, stream, bytes((0, 0, 0, 8)))):
                break
        assert any(kind == GOAWAY for kind, *_ in client.rest())
    assert still_serves(server)
    assert server.statistics()["open_calls"] == 0


def test_streams_over_the_limit_are_refused(serve):
    server, service = serve(streams=4)
    hold = other(path="/test.Echo/Hold")
    with Raw(server.port) as client:
        client.send(frame(SETTINGS, 1, 0))  # the limit is known
        client.send(b"".join(request(stream, message(b""), pairs=hold) for stream in (1, 3, 5, 7, 9)))
        frames = client.answer(9)
        assert not frames or frames[-1][0] == RESET  # or the connection is ended
    assert still_serves(server)


def test_connections_over_the_limit_are_closed(serve):
    server, _ = serve(connections=3)
    clients = [Raw(server.port, source=f"127.0.0.{host}") for host in (1, 1, 2)]
    for client in clients:
        assert client.frame() is not None
    with Raw(server.port, source="127.0.0.3") as late:
        assert late.rest() == []
    for client in clients:
        client.close()
    until(lambda: not server.statistics()["connections"])
    assert still_serves(server)


def test_calls_over_the_limit_are_refused(serve):
    server, service = serve(calls=2)
    hold = other(path="/test.Echo/Hold")
    with Raw(server.port) as client:
        client.send(b"".join(request(stream, message(b""), pairs=hold) for stream in (1, 3, 5)))
        assert says(client.answer(5), EXHAUSTED)


def test_client_that_says_nothing_is_closed(serve):
    server, _ = serve(handshake_s=0.1)
    with Raw(server.port, greet=False) as client:
        assert client.send(PREFACE[:10])
        client.rest()  # ends


def test_request_that_stops_half_way_is_refused(serve):
    server, _ = serve(stall_s=0.1)
    with Raw(server.port) as client:
        client.send(
            frame(HEADERS, END_HEADERS, 1, headers(CALL)) + frame(DATA, 0, 1, message(b"x", size=100))
        )
        assert says(client.answer(1), DEADLINE)


def test_headers_that_never_end_are_refused(serve):
    server, _ = serve(stall_s=0.1)
    with Raw(server.port) as client:
        client.send(frame(HEADERS, 0, 1, headers(CALL)))
        client.rest()  # ends


def test_client_that_does_not_read_is_closed(serve):
    server, _ = serve(stall_s=0.1)
    with Raw(server.port) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        body = message(b"x" * 60_000)
        parts = [body[i : i + 16_000] for i in range(0, len(body), 16_000)]
        for stream in range(1, 401, 2):
            client.send(frame(HEADERS, END_HEADERS, stream, headers(CALL)))
            for part in parts:
                client.send(frame(DATA, END_STREAM if part is parts[-1] else 0, stream, part))
        # it is closed, or its calls are reset
        until(lambda: not server.statistics()["connections"] or not server.statistics()["open_calls"])
    assert still_serves(server)


def test_idle_connection_is_closed(serve):
    server, _ = serve(idle_s=0.1)
    with Raw(server.port) as client:
        client.send(GOOD)
        assert says(client.answer(1), 0)
        assert any(kind == GOAWAY for kind, *_ in client.rest())


@pytest.mark.parametrize(
    "bytes_",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),  # TLS
        PREFACE[:-1] + b"x",
        PREFACE + b"\xff" * 100,
        PREFACE + frame(DATA, 0, 0, b"x"),
        PREFACE + frame(SETTINGS, 0, 0, b"12345"),
        PREFACE + frame(SETTINGS, 0, 0) + frame(9, 4, 1, headers(CALL)),  # CONTINUATION of nothing
        PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 4, 2, headers(CALL)),  # an even stream
        PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 4, 1, b"\xff\xff\xff\xff\xff\xff"),
        PREFACE + frame(SETTINGS, 0, 0) + frame(8, 0, 0, bytes(4)),  # a window grows by nothing
        PREFACE + frame(SETTINGS, 0, 0) + frame(DATA, 0, 1, b"x"),  # data of no stream
        PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 0, 1, headers(CALL)) + frame(9, 0, 1, b"") * 500,
    ],
)
def test_what_is_not_http2_ends_the_connection(serve, bytes_):
    server, service = serve()
    with Raw(server.port, greet=False) as client:
        client.send(bytes_)
        client.rest()  # ends
    assert service.calls == 0
    assert still_serves(server)


def test_random_bytes_and_random_frames_harm_nobody(serve):
    server, _ = serve(stall_s=1, handshake_s=1)
    rng = random.Random(6)
    with Raw(server.port) as good:
        stream = 1
        for round_ in range(150):
            with Raw(server.port, greet=bool(round_ % 3)) as client:
                client.send(mutated(rng))
            if round_ % 5 == 0:
                good.send(request(stream, message(b"good")))
                assert echoed(good.answer(stream))
                stream += 2
    assert still_serves(server)


def mutated(rng: random.Random) -> bytes:
    """Frames at random, some of them damaged, some cut off."""
    parts = []
    for _ in range(rng.randrange(1, 12)):
        kind, flags, stream = rng.randrange(12), rng.randrange(256), rng.choice((0, 1, 1, 3, 5, 2**31 - 1))
        what = rng.randrange(4)
        if what == 0:
            parts.append(frame(kind, flags, stream, rng.randbytes(rng.randrange(40))))
        elif what == 1:
            parts.append(
                request(
                    rng.choice((1, 3, 5)), message(rng.randbytes(9), size=rng.choice((9, 9, 0, 2**32 - 1)))
                )
            )
        elif what == 2:
            block = bytearray(headers(CALL))
            block[rng.randrange(len(block))] ^= 1 << rng.randrange(8)
            parts.append(frame(HEADERS, END_HEADERS | rng.randrange(2), stream, bytes(block)))
        else:
            parts.append(rng.randbytes(rng.randrange(30)))
    data = b"".join(parts)
    return data[: rng.randrange(len(data) + 1)] if rng.randrange(3) == 0 else data


def test_flood_of_connections_harms_nobody(serve):
    server, _ = serve(connections=50)
    flood = []
    for _ in range(200):
        flood.append(socket.create_connection(("127.0.0.1", server.port), timeout=30))
    for connection in flood:
        connection.close()

    def are_gone() -> bool:
        found = server.statistics()
        return found["accepted"] + found["refused"] == len(flood) and not found["connections"]

    until(are_gone)
    assert still_serves(server)
