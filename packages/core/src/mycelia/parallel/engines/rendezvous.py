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
INTRODUCTION_S = 5.0  # in which who connects must have said who it is: nobody else is listened to meanwhile
#: What reading and understanding the line of a stranger may end in.
NO_INTRODUCTION = (
    OSError, ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError,
)  # fmt: skip


@dataclass(slots=True)
class _Visitor:
    connection: socket.socket
    rank: int
    address: tuple[str, int]


def send_line(connection: socket.socket, value: object) -> None:
    connection.sendall(json.dumps(value).encode() + b"\n")


def read_line(connection: socket.socket, timeout_s: float, at_once: int = 1 << 16) -> object:
    """The value of a line of JSON; `at_once`: 1 leaves what follows it to be read.

    Errors: ConnectionError if the other side leaves, TimeoutError if it is not whole in time, ValueError
    and RecursionError for what is no line of JSON.
    """
    end = time.monotonic() + timeout_s
    data = bytearray()
    while not data.endswith(b"\n"):
        connection.settimeout(max(0.001, end - time.monotonic()))
        piece = connection.recv(at_once)
        if not piece:
            raise ConnectionError("the other side has left")
        data += piece
        if len(data) > _MOST_BYTES:
            raise ValueError("the line is too long")
        if time.monotonic() > end:
            raise TimeoutError("the line is not whole in time")
    return json.loads(data)


def is_token(said: object, token: str) -> bool:
    """Whether that is the job's, found in the same time for all that are not."""
    return hmac.compare_digest(str(said).encode(errors="replace"), token.encode())


def listen(address: str, port: int) -> socket.socket:
    """A socket that listens. Errors: RuntimeError naming the port if it is taken."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, backlog=256)
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
        self.error = ""  # why the processes have not met
        self._stopped = False

    def stop(self) -> None:
        """Nobody else will come: the port is free again when this returns."""
        self._stopped = True
        try:
            socket.create_connection(self._listener.getsockname()[:2], INTRODUCTION_S).close()
        except OSError:
            pass  # all have come, or time was over: it does not listen any more
        self.join()

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
                if self._stopped:
                    connection.close()
                    break
                self._welcome(connection, visitors)
        taken = {v.rank for v in visitors if v.rank >= 0}
        free = iter(sorted(set(range(self._size)) - taken))
        if len(visitors) < self._size:
            if any(v.rank < 0 for v in visitors):
                who = f"{self._size - len(visitors)} of {self._size} processes"
            else:
                who = f"ranks {', '.join(map(str, free))}"
            self.error = f"{who} have not come to the meeting place within {self._timeout_s:g} s"
            answer = {"error": self.error}
        else:
            for visitor in visitors:
                visitor.rank = visitor.rank if visitor.rank >= 0 else next(free)
            table = [v.address for v in sorted(visitors, key=lambda v: v.rank)]
            answer = {"table": table}
        for visitor in visitors:
            _answer(visitor.connection, {**answer, "rank": visitor.rank})

    def _welcome(self, connection: socket.socket, visitors: list[_Visitor]) -> None:
        """Takes a visitor in, or tells it why not."""
        try:
            said = read_line(connection, INTRODUCTION_S)
            rank, size = int(said["rank"]), int(said["size"])
            address = str(said["address"][0]), int(said["address"][1])
            is_ours = is_token(said["token"], self._token)
        except NO_INTRODUCTION:
            connection.close()  # somebody else's scanner
            return
        why = None
        if not is_ours:
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
    connection.settimeout(INTRODUCTION_S)
    try:
        send_line(connection, value)
    except OSError:
        pass  # it has left meanwhile; the others will find that out
    finally:
        connection.close()


def reach(address: str, port: int, timeout_s: float) -> socket.socket:
    """A connection to the meeting place. Errors: RuntimeError if nobody is there in time."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            return socket.create_connection((address, port), timeout=max(0.001, end - time.monotonic()))
        except OSError as cause:
            if time.monotonic() > end:
                raise errors.runtime_error(
                    "init", f"nobody has answered at {address}:{port} within {timeout_s:g} s: {cause}",
                    hint="the launcher, or rank 0, must run at --master_addr and --master_port",
                ) from cause  # fmt: skip
            time.sleep(0.05)


def introduce(
    connection: socket.socket, rank: int, size: int, listens_at: tuple[str, int], token: str, timeout_s: float
) -> tuple[int, list[tuple[str, int]]]:
    """Tells the meeting place who this process is; its rank, and where all listen.

    Errors: RuntimeError if it does not answer, or does not let this process in.
    """
    try:
        send_line(connection, {"rank": rank, "size": size, "address": listens_at, "token": token})
        answer = read_line(connection, timeout_s + INTRODUCTION_S)  # the other side names who is missing
    except (OSError, ValueError) as cause:
        host, port = connection.getpeername()[:2]
        raise errors.runtime_error(
            "init", f"the meeting place at {host}:{port} has not answered: {cause or type(cause).__name__}"
        ) from cause
    if "error" in answer:
        raise errors.runtime_error("init", f"rank {rank} cannot join: {answer['error']}")
    return int(answer["rank"]), [(str(host), int(port)) for host, port in answer["table"]]
