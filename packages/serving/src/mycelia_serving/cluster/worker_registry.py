"""Where workers of other processes join, and where commands for the server come in."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

from mycelia import log
from mycelia_serving.cluster.master import Master
from mycelia_serving.cluster.remote import RemoteWorker
from mycelia_serving.rpc.connection import LONGEST_BODY, Connection, Kind
from mycelia_serving.rpc.listener import Listener, frames_of_a_stranger
from mycelia_serving.wire.proto import serving_pb2 as pb

_LEAVE_S = 30.0  # how long a worker that leaves may take for what it has


class WorkerRegistry:
    """Listens at one address. Workers that register become workers of the master; commands are answered only
    where `command` is given, which is on sockets of this user.
    """

    def __init__(
        self, master: Master, address: str, *, command: Callable[[dict], dict] | None = None
    ) -> None:
        self.master = master
        self._command = command
        self._workers: dict[RemoteWorker, Connection] = {}
        self._lock = threading.Lock()
        self._listener = Listener(address, self._serve)
        self.address = address
        self.port = self._listener.port
        self._listener.start()

    def _serve(self, link: Connection, where: str) -> None:
        worker: RemoteWorker | None = None
        try:
            for kind, number, body in frames_of_a_stranger(link):
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
            link.close()
            if worker is not None:
                with self._lock:
                    del self._workers[worker]
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
                self._workers[worker] = link
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
            return list(self._workers)

    def drop(self, worker: RemoteWorker) -> bool:
        """Close the connection of a worker that is silent, if it is one of these."""
        with self._lock:
            link = self._workers.get(worker)
        if link is not None:
            link.close()
        return link is not None

    def stop_listening(self) -> None:
        """Take no more connections."""
        self._listener.stop_listening()

    def close(self) -> None:
        """Close everything; workers look for another master."""
        self._listener.close()
