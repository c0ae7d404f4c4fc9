"""Where other processes connect: a thread that accepts, and one for each connection."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator

from mycelia_serving.clock import CLOCK
from mycelia_serving.rpc.connection import LONGEST_FIRST_BODY, Connection
from mycelia_serving.rpc.sockets import bind

_FIRST_FRAME_S = 10.0  # a connection that says nothing is closed


class Listener:
    """Listens at an address. serve: called in a thread of its own with each connection and where it is from;
    when it returns, the connection is closed. Errors: RuntimeError for an address that cannot be had.
    """

    def __init__(self, address: str, serve: Callable[[Connection, str], None]) -> None:
        self.address = address
        self._serve = serve
        self._socket = bind(address)
        self.port = 0 if address.startswith("unix:") else self._socket.getsockname()[1]
        self._links: set[Connection] = set()
        self._lock = threading.Lock()
        self._closed = False

    def start(self) -> None:
        """Take connections from now on."""
        threading.Thread(target=self._accept, name="serving-listener", daemon=True).start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                sock, peer = self._socket.accept()
            except OSError:
                if self._closed:
                    return
                continue
            where = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "unix"
            threading.Thread(target=self._run, args=(sock, where), name="serving-peer", daemon=True).start()

    def _run(self, sock: socket.socket, where: str) -> None:
        link = Connection(sock)
        link.longest = LONGEST_FIRST_BODY
        with self._lock:
            if self._closed:
                link.close()
                return
            self._links.add(link)
        try:
            self._serve(link, where)
        finally:
            link.close()
            with self._lock:
                self._links.discard(link)

    def stop_listening(self) -> None:
        """Take no more connections."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        if self.address.startswith("unix:"):
            with contextlib.suppress(OSError):
                os.unlink(self.address[5:])

    def close(self) -> None:
        """End all connections, too."""
        self.stop_listening()
        with self._lock:
            links = list(self._links)
        for link in links:
            link.flush(1.0)
            link.close()


def frames_of_a_stranger(link: Connection) -> Iterator[tuple[int, int, bytes]]:
    """The frames of a connection that is closed if the first one does not come in time."""
    silent = CLOCK.call_in(_FIRST_FRAME_S, link.close)
    try:
        for frame in link.frames():
            silent.cancel()
            yield frame
    finally:
        silent.cancel()
