"""What client and server agree on: the protocol's number, reply codes, framing on the unix socket."""

from __future__ import annotations

import enum
import socket
import struct

PROTOCOL = 1
SERVICE = "mycelia.cache.Cache"
METHOD = f"/{SERVICE}/Call"
MAX_FRAME = 1 << 30
GRPC_OPTIONS = [("grpc.max_receive_message_length", MAX_FRAME), ("grpc.max_send_message_length", MAX_FRAME)]
_FRAME = struct.Struct("<II")  # bytes that follow, descriptors that come along
_MOST_FDS = 4


class Code(enum.IntEnum):
    """Why a request was refused."""

    FINE = 0
    WRONG_VERSION = 1
    NOT_ALLOWED = 2
    NO_SESSION = 3
    OTHER_TREE = 4
    NO_SPILL = 5
    NO_CACHE = 6
    NO_CLIENT = 7
    BAD_REQUEST = 8
    STOPPING = 9
    INTERNAL = 10


class State(enum.IntEnum):
    """Of a cache, with the numbers that MindSpore's server gives."""

    NONE = 0
    BUILD = 1
    FETCH = 2
    NO_LOCKING = 3
    OUT_OF_MEMORY = 4
    NO_SPACE = 5
    ERROR = 127


class Refused(Exception):
    """The server understood a request and says no."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = Code(code)


class Unreachable(Exception):
    """The server does not answer."""


class Closed(Exception):
    """The other side of a socket is gone, or does not speak this protocol."""


def send(sock: socket.socket, payload: bytes, fds=()) -> None:
    """Send one frame."""
    head = _FRAME.pack(len(payload), len(fds))
    if fds:
        socket.send_fds(sock, [head], list(fds))
        sock.sendall(payload)
    elif len(payload) < 65536:
        sock.sendall(head + payload)
    else:
        sock.sendall(head)
        sock.sendall(payload)


def receive(sock: socket.socket) -> tuple[bytes, list[int]]:
    """One frame and its descriptors. Raises Closed."""
    head, fds, _, _ = socket.recv_fds(sock, _FRAME.size, _MOST_FDS)
    while len(head) < _FRAME.size:
        more = sock.recv(_FRAME.size - len(head)) if head else b""
        if not more:
            raise Closed
        head += more
    length, count = _FRAME.unpack(head)
    if length > MAX_FRAME or count > _MOST_FDS or count != len(fds):
        raise Closed
    payload = bytearray(length)
    view, at = memoryview(payload), 0
    while at < length:
        got = sock.recv_into(view[at:])
        if not got:
            raise Closed
        at += got
    return bytes(payload), fds
