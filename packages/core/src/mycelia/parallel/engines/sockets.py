"""The engine `socket`: a TCP connection between each two processes. It needs nothing but Python.

Nothing is moved by threads: who waits for something moves all messages meanwhile, in and out, so that two
processes that send at the same time do not wait for one another. A message is a header of fixed size, what it
is as JSON, and the elements of its array.
"""

from __future__ import annotations

import ipaddress
import json
import math
import os
import selectors
import socket
import struct
import time
import weakref
from collections import deque
from collections.abc import Callable

import numpy as np

from mycelia.engine.base import errors, log
from mycelia.engine.communication import (
    LaunchConfig,
    Message,
    Transport,
    fresh,
    from_wire,
    launch,
    shared,
    wire_name,
)
from mycelia.parallel.engines import rendezvous
from mycelia.parallel.engines.mover import Mover, has_cores

_HEADER = struct.Struct("<4sIQ")  # magic, bytes of the description, bytes of the array
_MAGIC = b"MYC1"
_GONE = "its process has ended, or has left the group"


class _Peer:
    """A connection, and how far the message is that comes in."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.out: deque[memoryview] = deque()
        #: (group, number) of a collective message, and where its elements go.
        self.expected: tuple[tuple[str, int], np.ndarray] | None = None
        self.writing = False  # whether the selector tells when it can be written to
        self._start()

    def _start(self) -> None:
        self.text: bytearray | None = None
        self.told: list | None = None
        self.array: np.ndarray | None = None
        self.payload = 0
        self._fill(bytearray(_HEADER.size))

    def _fill(self, buffer: bytearray | np.ndarray) -> None:
        self.buffer, self.view, self.filled = buffer, memoryview(buffer).cast("B"), 0

    def read(self) -> Message | None:
        """The next message if it is whole; None if more must come first.

        Errors: BlockingIOError if nothing is there, ConnectionError if the peer has gone.
        """
        while self.filled < len(self.view):
            count = self.socket.recv_into(self.view[self.filled :])
            if not count:
                raise ConnectionError(_GONE)
            self.filled += count
        if self.text is None:
            magic, length, self.payload = _HEADER.unpack(self.buffer)
            if magic != _MAGIC:
                raise ConnectionError("it has sent what is no message")
            self.text = bytearray(length)
            self._fill(self.text)
            return None
        if self.told is None:
            self.told = json.loads(self.text)
            if self.payload:
                self.array = self._room(*self.told[:4])
                self._fill(self.array)
                return None
        group, number, what, phase, ended, dtype, shape, *place = self.told
        array: np.ndarray | shared.Placed | None = None
        if place:
            array = shared.Placed(from_wire(dtype), tuple(shape), *place)
        elif dtype:
            raw = self.array if self.payload else np.empty(0, np.uint8)
            array = raw.view(from_wire(dtype)).reshape(shape)
        self._start()
        return Message(group, number, what, array, phase, ended)

    def _room(self, group: str, number: int, what: str, phase: int) -> np.ndarray:
        """Memory for the elements that come."""
        if what and phase < 0 and self.expected is not None and self.expected[0] == (group, number):
            room = self.expected[1]
            if room.nbytes == self.payload:
                return room.view(np.uint8)
        return fresh(np.dtype(np.uint8), self.payload)

    def write(self) -> bool:
        """Sends what can be sent at once; whether that was all."""
        while self.out:
            try:
                count = self.socket.sendmsg(list(self.out)[:16])
            except BlockingIOError:
                return False
            while count:
                first = self.out[0]
                if count < len(first):
                    self.out[0] = first[count:]
                    return False
                count -= len(first)
                self.out.popleft()
            while self.out and not len(self.out[0]):
                self.out.popleft()
        return True


class SocketTransport(Transport):
    engine = "socket"
    joins_processes = True

    def __init__(self, config: LaunchConfig) -> None:
        self._peers: dict[int, _Peer] = {}
        self._selector = selectors.DefaultSelector()
        rank = config.rank
        if config.size > 1:
            rank = self._connect(config)
        rank = max(rank, 0)
        local, local_size = config.local
        local = rank if local < 0 else local  # ranks that were given here
        super().__init__(rank, config.size, config.timeout_s, (local, local_size))
        self._open = True
        for peer in self._peers.values():
            peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._find_near(config)
        for number, peer in self._peers.items():
            peer.socket.setblocking(False)
            self._selector.register(peer.socket, selectors.EVENT_READ, number)
        self._mover = Mover(self) if has_cores(self.local_size) else None
        self.has_mover = self._mover is not None
        if hasattr(os, "register_at_fork"):
            # A worker of a data pipeline would keep the connections of a process open that was killed.
            mine = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: _forget(mine()))

    def _connect(self, config: LaunchConfig) -> int:
        """Connects this process with all others; its rank."""
        if config.serves:
            meeting = rendezvous.listen(config.address, config.port)
            rendezvous.Rendezvous(meeting, config.size, config.token, config.timeout_s).start()
        with (
            rendezvous.reach(config.address, config.port, config.timeout_s) as place,
            rendezvous.listen(place.getsockname()[0], 0) as listener,  # where others reach this process
        ):
            own = listener.getsockname()[:2]
            rank, table = rendezvous.introduce(
                place, config.rank, config.size, own, config.token, config.timeout_s
            )
            launch.tell_launcher(rank)
            if not config.token and not ipaddress.ip_address(own[0]).is_loopback:
                log.logger(__name__).warning(
                    "init: whoever reaches %s may join the job and run code in its processes: give all one "
                    "MYCELIA_JOB_TOKEN", own[0],
                )  # fmt: skip
            for other in range(rank):
                connection = socket.create_connection(table[other], timeout=config.timeout_s)
                rendezvous.send_line(connection, {"rank": rank, "token": config.token})
                self._peers[other] = _Peer(connection)
            listener.settimeout(config.timeout_s)
            while len(self._peers) < config.size - 1:
                self._accept(listener, config, rank)
        return rank

    def _accept(self, listener: socket.socket, config: LaunchConfig, rank: int) -> None:
        """Takes in a rank above this one. Errors: RuntimeError if none comes in time."""
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            missing = sorted(set(range(rank + 1, config.size)) - set(self._peers))
            raise errors.runtime_error("init", f"ranks {missing} have not connected") from None
        try:
            said = rendezvous.read_line(connection, rendezvous.INTRODUCTION_S, at_once=1)
            fits, number = rendezvous.is_token(said["token"], config.token), int(said["rank"])
        except rendezvous.NO_INTRODUCTION:
            fits, number = False, -1
        if fits and rank < number < config.size and number not in self._peers:
            self._peers[number] = _Peer(connection)
        else:
            connection.close()

    def _find_near(self, config: LaunchConfig) -> None:
        """Finds out who sees this process's shared memory, and whose it sees: only both ways count.

        Errors: RuntimeError if a process leaves meanwhile.
        """
        proof = shared.Proof() if config.shared_memory else None
        mine = {} if proof is None else proof.told()
        seen, number = {}, -1
        try:
            for number, peer in self._peers.items():  # noqa: B007 the error names it
                rendezvous.send_line(peer.socket, mine)
            for number, peer in self._peers.items():
                told = rendezvous.read_line(peer.socket, config.timeout_s, at_once=1)
                if mine and shared.Proof.sees(told):
                    seen[number] = int(told["pid"])
                rendezvous.send_line(peer.socket, number in seen)
            for number, peer in self._peers.items():
                sees_me = rendezvous.read_line(peer.socket, config.timeout_s, at_once=1)
                if sees_me and number in seen:
                    self.near[number] = seen[number]
        except rendezvous.NO_INTRODUCTION as cause:
            raise errors.runtime_error("init", f"rank {number} has left while all met: {cause}") from cause

    def post(self, peer: int, message: Message) -> None:
        to = self._peers[peer]
        if peer in self.gone:
            return
        array = message.array
        described = ("", ()) if array is None else (wire_name(array.dtype), array.shape)
        place = array[2:] if isinstance(array, shared.Placed) else ()
        text = json.dumps([*message[:3], *message[4:], *described, *place]).encode()
        size = 0 if array is None or place else array.nbytes
        to.out.append(memoryview(_HEADER.pack(_MAGIC, len(text), size) + text))
        if size:
            to.out.append(memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8)))
        self._write(peer)

    def expect(self, peer: int, group: str, number: int, room: np.ndarray | None) -> None:
        self._peers[peer].expected = None if room is None else ((group, number), room)

    def flushed(self) -> bool:
        return not any(peer.out for peer in self._peers.values())

    def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
        end = time.monotonic() + timeout_s if math.isfinite(timeout_s) else None
        while not done():
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return False
            self._move(left)
        return True

    def poll(self) -> None:
        self._move(0)

    def await_traffic(self, timeout_s: float) -> None:
        self._selector.select(timeout_s)

    def begun(self) -> None:
        if self._mover is None:
            super().begun()
        else:
            self._mover.wake()

    def _move(self, timeout_s: float | None) -> None:
        """Moves messages when some can be moved, or does nothing if that takes too long."""
        for key, events in self._selector.select(timeout_s):
            if events & selectors.EVENT_WRITE:
                self._write(key.data)
            if events & selectors.EVENT_READ and key.data not in self.gone:
                self._read(key.data)

    def _read(self, number: int) -> None:
        peer = self._peers[number]
        try:
            while True:
                message = peer.read()
                if message is not None:
                    self.deliver(number, message)
        except BlockingIOError:
            pass
        except (OSError, ValueError) as cause:
            self._lose(number, _GONE if isinstance(cause, ConnectionResetError) else str(cause))

    def _write(self, number: int) -> None:
        peer = self._peers[number]
        try:
            all_sent = peer.write()
        except OSError:
            return  # reading tells that it has gone, after what it had sent before
        if all_sent == peer.writing:
            peer.writing = not all_sent
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.writing else 0)
            self._selector.modify(peer.socket, events, number)

    def _lose(self, number: int, why: str) -> None:
        self.gone[number] = why
        peer = self._peers[number]
        peer.out.clear()
        self._selector.unregister(peer.socket)
        peer.socket.close()

    def close(self) -> None:
        if self._open:
            self._open = False
            if self._mover is not None:
                self._mover.end()
            self._selector.close()
            for peer in self._peers.values():
                peer.socket.close()


def _forget(transport: SocketTransport | None) -> None:
    """In a child that was forked: the connections are the parent's."""
    if transport is not None:
        transport.close()
