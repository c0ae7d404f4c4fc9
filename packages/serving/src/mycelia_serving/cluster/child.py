"""A worker process of this master: how it is started, its frames, its end; and a spare one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

from mycelia_serving.clock import CLOCK, Alarm
from mycelia_serving.cluster.arena import Arena
from mycelia_serving.cluster.master import Master
from mycelia_serving.cluster.remote import RemoteWorker
from mycelia_serving.rpc.connection import Connection, Kind
from mycelia_serving.servable.config import CONFIG_S
from mycelia_serving.wire.proto import serving_pb2 as pb

SPARE_AFTER_S = 1.0  # after a worker was started a spare process is


@dataclass
class Settings:
    """How workers of one version of a servable are started."""

    servable_directory: str
    servable_name: str
    version: int = 0
    device_type: str | None = None
    dec_key: bytes | None = None
    dec_mode: str = "AES-GCM"
    max_batch_size: int = 32
    max_batch_delay_ms: float = 0
    ping_s: float = 1.0  # between signs of life
    config_timeout_s: float = CONFIG_S  # of the import of servable_config.py
    log_directory: str = ""  # for the output of workers; empty: that of the master
    leader: dict | None = None  # of a distributed servable, see `Engine`

    def for_worker(self, device_id: int | None, functions_only: bool) -> dict:
        """What the process gets."""
        return {
            "servable_directory": self.servable_directory,
            "servable_name": self.servable_name,
            "version": self.version,
            "device_type": self.device_type,
            "device_id": device_id or 0,
            "dec_key": self.dec_key.hex() if self.dec_key else None,
            "dec_mode": self.dec_mode,
            "max_batch_size": self.max_batch_size,
            "max_batch_delay_ms": self.max_batch_delay_ms,
            "functions_only": functions_only,
            "ping_s": self.ping_s,
            "config_timeout_s": self.config_timeout_s,
            "leader": self.leader,
        }


class Child:
    """A worker process of this master, from its start to its end."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.arena = Arena.create()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mycelia_serving.cluster.process"],
            stdin=subprocess.PIPE,
            pass_fds=(theirs.fileno(), self.arena.fd),
            start_new_session=True,  # Ctrl-C is not for it, and what it starts ends with it
        )
        self.link = Connection(ours)
        self.failure = ""  # what it said when it could not start
        self.worker: RemoteWorker | None = None  # once it is registered
        self.tell({"link_fd": theirs.fileno(), "arena_fd": self.arena.fd, "arena_size": self.arena.size})
        theirs.close()

    def tell(self, settings: dict) -> None:
        """Give it a line of settings: first what it inherits, then what it is to run."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(settings).encode() + b"\n")
            self.process.stdin.flush()

    def read(self, master: Master, registered: Callable[[Child], None]) -> None:
        """Take its frames until it ends; runs in a thread."""
        for kind, number, body in self.link.frames():
            worker = self.worker
            if worker is not None:
                worker.seen = True
            if kind == Kind.RESULTS:
                worker.take_results(number, body)
            elif kind == Kind.REGISTER:
                self.worker = RemoteWorker(self.link, body, self.arena)
                self.worker.address = f"pid:{self.process.pid}"
                self.link.send((Kind.REGISTERED, 0, pb.RegisterReply().SerializeToString()))
                registered(self)
            elif kind == Kind.FAILED:
                self.failure = pb.NotifyFailedRequest.FromString(body).error_msg
            elif kind == Kind.CALL_MODEL and worker is not None:
                worker.pass_on_model_call(master, number, body)
        if self.worker is not None:
            self.worker.lost("its connection has ended")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it and all that it started a signal."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def wait(self) -> str:
        """Wait for its end; says how it ended."""
        code = self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"


class Spares:
    """One process that has imported what workers need and waits to become one: a lost worker is then replaced
    in the time that its model takes to load. Without `wanted`, processes are started when they are needed.
    """

    def __init__(self, after_s: float = SPARE_AFTER_S) -> None:
        self.wanted = True
        self._after_s = after_s
        self._lock = threading.Lock()
        self._spare: Child | None = None
        self._alarm: Alarm | None = None
        self._closed = False

    def take(self) -> Child:
        """A process for a worker, the spare one if it is there. OSError if none can be started."""
        with self._lock:
            child, self._spare = self._spare, None
            if self._alarm is not None:
                self._alarm.cancel()
            if self.wanted and not self._closed:
                thread = threading.Thread(target=self._start, name="serving-spare", daemon=True)
                self._alarm = CLOCK.call_in(self._after_s, thread.start)
        if child is not None:
            if child.process.poll() is None:
                return child
            self._end(child)
        return Child()

    def _start(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            if not self._closed and self._spare is None:
                self._spare = Child()

    @staticmethod
    def _end(child: Child) -> None:
        child.kill()
        child.wait()
        child.link.close()
        child.arena.close()

    def close(self) -> None:
        """End the spare process."""
        with self._lock:
            self._closed = True
            if self._alarm is not None:
                self._alarm.cancel()
            child, self._spare = self._spare, None
        if child is not None:
            self._end(child)
