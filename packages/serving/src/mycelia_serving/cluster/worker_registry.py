"""Where workers of other processes join, and where commands for the server come in."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable

from mycelia import log
from mycelia_serving.cluster.connection import LONGEST_BODY, LONGEST_FIRST_BODY, Connection, Kind
from mycelia_serving.cluster.master import Master
from mycelia_serving.cluster.remote import RemoteWorker
from mycelia_serving.wire.proto import serving_pb2 as pb

_FIRST_FRAME_S = 10.0  # a connection that says nothing is closed
_LEAVE_S = 30.0  # how long a worker that leaves may take for what it has


def bind(address: str) -> socket.socket:
    """A socket that listens at `ip:port` (port 0: any) or `unix:path`. Errors: RuntimeError."""
    try:
        if address.startswith("unix:"):
            sock = socket.socket(socket.AF_UNIX)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(address[5:])
            sock.bind(address[5:])
        else:
            host, _, port = address.rpartition(":")
            host = host.strip("[]")
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            sock = socket.socket(family)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # not both at once: see bind(2)
            sock.bind((host, int(port)))
        sock.listen(128)
    except (OSError, ValueError, OverflowError) as e:
        raise RuntimeError(f"cannot listen on {address}: {getattr(e, 'strerror', None) or e}") from None
    return sock


class WorkerRegistry:
    """Listens at one address. Workers that register become workers of the master; commands are answered only
    where `command` is given, which is on sockets of this user.
    """

    def __init__(
        self, master: Master, address: str, *, command: Callable[[dict], dict] | None = None
    ) -> None:
        self.master = master
        self.address = address
        self._command = command
        self._socket = bind(address)
        self.port = 0 if address.startswith("unix:") else self._socket.getsockname()[1]
        self._links: dict[Connection, RemoteWorker | None] = {}
        self._lock = threading.Lock()
        self._closed = False
        threading.Thread(target=self._accept, name="serving-hub", daemon=True).start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                sock, peer = self._socket.accept()
            except OSError:
                if self._closed:
                    return
                continue
            where = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "unix"
            threading.Thread(target=self._serve, args=(sock, where), name="serving-peer", daemon=True).start()

    def _serve(self, sock: socket.socket, where: str) -> None:
        link = Connection(sock)
        link.longest = LONGEST_FIRST_BODY
        with self._lock:
            if self._closed:
                link.close()
                return
            self._links[link] = None
        silent = threading.Timer(_FIRST_FRAME_S, link.close)
        silent.daemon = True
        silent.start()
        worker: RemoteWorker | None = None
        try:
            for kind, number, body in link.frames():
                silent.cancel()
                if kind == Kind.ADMIN and self._command is not None:
                    self._answer(link, number, body)
                elif kind == Kind.REGISTER and worker is None:
                    worker = self._register(link, body, where)
                    if worker is None:
                        link.flush(1.0)
                        return
                elif worker is not None:
                    worker.seen = True
                    self._frame(link, worker, kind, number, body)
                elif kind != Kind.PING:  # a worker may ping while it loads
                    return
        finally:
            silent.cancel()
            link.close()
            with self._lock:
                self._links.pop(link, None)
            if worker is not None:
                worker.lost("its connection has ended")
                self.master.lose(worker, "its connection has ended")

    def _register(self, link: Connection, body: bytes, where: str) -> RemoteWorker | None:
        reply = pb.RegisterReply()
        worker = None
        try:
            worker = RemoteWorker(link, body, deduplicates=True)
            if self.master.stopping:
                raise ValueError("the master is stopping")
        except (ValueError, KeyError, TypeError) as e:
            worker = None
            reply.error_msg.error_code = 1
            reply.error_msg.error_msg = str(e).encode()
        link.send((Kind.REGISTERED, 0, reply.SerializeToString()))
        if worker is not None:
            link.longest = LONGEST_BODY
            worker.address = f"{where} {worker.address}"
            with self._lock:
                self._links[link] = worker
            log.logger(__name__).info(
                "worker %s joined: %s version %s", worker.address, worker.servable, worker.version
            )
            self.master.add(worker)
        return worker

    def _frame(self, link: Connection, worker: RemoteWorker, kind: int, number: int, body: bytes) -> None:
        if kind == Kind.RESULTS:
            worker.take_results(number, body)
        elif kind == Kind.PING:
            link.send((Kind.PONG, 0, pb.PingReply(address=self.address).SerializeToString()))
        elif kind == Kind.CALL_MODEL:
            worker.pass_on_model_call(self.master, number, body)
        elif kind == Kind.EXIT:
            threading.Thread(target=self._let_go, args=(worker,), daemon=True).start()

    def _let_go(self, worker: RemoteWorker) -> None:
        """A worker wants to end: it gets nothing new, and may go when it has answered."""
        self.master.release(worker, _LEAVE_S)
        worker.close(0.0)

    def _answer(self, link: Connection, number: int, body: bytes) -> None:
        def work() -> None:
            try:
                answer = {"result": self._command(json.loads(body))}
            except Exception as e:  # whatever went wrong is told to who asked
                answer = {"error": str(e) or type(e).__name__}
            link.send((Kind.ADMIN_REPLY, number, json.dumps(answer).encode()))

        threading.Thread(target=work, name="serving-admin", daemon=True).start()

    def workers(self) -> list[RemoteWorker]:
        """Those that are registered."""
        with self._lock:
            return [worker for worker in self._links.values() if worker is not None]

    def drop(self, worker: RemoteWorker) -> bool:
        """Close the connection of a worker that is silent, if it is one of these."""
        with self._lock:
            found = [link for link, one in self._links.items() if one is worker]
        for link in found:
            link.close()
        return bool(found)

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
        """Close everything; workers look for another master."""
        self.stop_listening()
        with self._lock:
            links = list(self._links)
        for link in links:
            link.flush(1.0)
            link.close()
