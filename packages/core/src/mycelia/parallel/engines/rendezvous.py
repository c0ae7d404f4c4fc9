"""Where processes meet before they know one another: each tells one of them, or the launcher, where it
listens, and gets to know where all listen.

Each side sends one line of JSON. Who does not know the job's token is not let in: messages of a job may hold
pickles, so that only its own processes may send any.
"""

from __future__ import annotations

import hmac
import json
import socket
import threading
import time
from dataclasses import dataclass

from mycelia.engine.base import errors

_MOST_BYTES = 1 << 20  # of a line; a table of 10,000 processes is smaller


@dataclass(slots=True)
class _Visitor:
    connection: socket.socket
    rank: int
    address: tuple[str, int]


def send_line(connection: socket.socket, value: object) -> None:
    connection.sendall(json.dumps(value).encode() + b"\n")


def read_line(connection: socket.socket) -> object:
    """Errors: ConnectionError if the other side leaves, ValueError for what is no line of JSON."""
    data = b""
    while not data.endswith(b"\n"):
        piece = connection.recv(1 << 16)  # nothing follows the line
        if not piece:
            raise ConnectionError("the other side has left")
        data += piece
        if len(data) > _MOST_BYTES:
            raise ValueError("the line is too long")
    return json.loads(data)


def listen(address: str, port: int) -> socket.socket:
    """A socket that listens. Errors: RuntimeError naming the port if it is taken."""
    try:
        return socket.create_server((address, port), backlog=256, reuse_port=False)
    except OSError as cause:
        raise errors.runtime_error(
            "init", f"port {port} of {address} cannot be listened at: {cause.strerror}",
            hint="another job may use it: choose another by --master_port",
        ) from cause  # fmt: skip


class Rendezvous(threading.Thread):
    """Waits for `size` processes at `listener`, gives each rank and table, and ends.

    Processes that bring the rank -1 get those that are left, in order of arrival.
    """

    def __init__(self, listener: socket.socket, size: int, token: str, timeout_s: float) -> None:
        super().__init__(name="rendezvous", daemon=True)
        self._listener, self._size, self._token, self._timeout_s = listener, size, token, timeout_s

    def run(self) -> None:
        visitors: list[_Visitor] = []
        end = time.monotonic() + self._timeout_s
        with self._listener:
            while len(visitors) < self._size:
                try:
                    self._listener.settimeout(max(0.001, end - time.monotonic()))
                    connection, _ = self._listener.accept()
                except TimeoutError:
                    break
                except OSError:  # closed from outside
                    return
                self._welcome(connection, visitors)
        taken = {v.rank for v in visitors if v.rank >= 0}
        free = iter(sorted(set(range(self._size)) - taken))
        if len(visitors) < self._size:
            if any(v.rank < 0 for v in visitors):
                who = f"{self._size - len(visitors)} of {self._size} processes"
            else:
                who = f"ranks {', '.join(map(str, free))}"
            answer = {"error": f"{who} have not come to the meeting place within {self._timeout_s:g} s"}
        else:
            for visitor in visitors:
                visitor.rank = visitor.rank if visitor.rank >= 0 else next(free)
            table = [v.address for v in sorted(visitors, key=lambda v: v.rank)]
            answer = {"table": table}
        for visitor in visitors:
            _answer(visitor.connection, {**answer, "rank": visitor.rank})

    def _welcome(self, connection: socket.socket, visitors: list[_Visitor]) -> None:
        """Takes a visitor in, or tells it why not."""
        connection.settimeout(5.0)  # a visitor says at once who it is; nobody else may be kept waiting
        try:
            said = read_line(connection)
            rank, size = int(said["rank"]), int(said["size"])
            address = str(said["address"][0]), int(said["address"][1])
            token = str(said["token"])
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            connection.close()  # somebody else's scanner
            return
        why = None
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            why = "the token is not that of this job"
        elif size != self._size:
            why = f"it believes in {size} processes, but the job has {self._size}"
        elif not -1 <= rank < size or any(v.rank == rank for v in visitors if rank >= 0):
            why = f"rank {rank} is taken or beyond the {size} of the job"
        if why is not None:
            _answer(connection, {"error": why})
            return
        visitors.append(_Visitor(connection, rank, address))


def _answer(connection: socket.socket, value: object) -> None:
    try:
        send_line(connection, value)
    except OSError:
        pass  # it has left meanwhile; the others will find that out
    finally:
        connection.close()


def meet(
    address: str, port: int, rank: int, size: int, own: tuple[str, int], token: str, timeout_s: float
) -> tuple[int, list[tuple[str, int]]]:
    """This process's rank, and where all listen; `own`: where it does, with an empty host: as it is seen.

    Errors: RuntimeError if nobody is at the meeting place, or if it does not let this process in.
    """
    end = time.monotonic() + timeout_s
    while True:
        try:
            connection = socket.create_connection((address, port), timeout=max(0.001, end - time.monotonic()))
            break
        except OSError as cause:
            if time.monotonic() > end:
                raise errors.runtime_error(
                    "init", f"nobody has answered at {address}:{port} within {timeout_s:g} s: {cause}",
                    hint="the launcher, or rank 0, must run at --master_addr and --master_port",
                ) from cause  # fmt: skip
            time.sleep(0.05)
    with connection:
        connection.settimeout(max(0.001, end - time.monotonic()) + 5.0)  # the other side names who is missing
        host = own[0] or connection.getsockname()[0]
        try:
            send_line(connection, {"rank": rank, "size": size, "address": [host, own[1]], "token": token})
            answer = read_line(connection)
        except (OSError, ValueError) as cause:
            raise errors.runtime_error(
                "init",
                f"the meeting place at {address}:{port} has not answered: {cause or type(cause).__name__}",
            ) from cause
    if "error" in answer:
        raise errors.runtime_error("init", f"rank {rank} cannot join: {answer['error']}")
    return int(answer["rank"]), [(str(host), int(port)) for host, port in answer["table"]]
