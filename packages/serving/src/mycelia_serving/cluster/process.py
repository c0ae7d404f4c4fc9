"""The process of a worker: `python -m mycelia_serving.cluster.process`, started by the master or by hand.

A child of the master inherits its end of the link, and ends with it. A worker that joined a master elsewhere
keeps looking for it, and registers again when it is back.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

from mycelia import log
from mycelia_serving.clock import CLOCK
from mycelia_serving.cluster.arena import Arena
from mycelia_serving.cluster.codec import (
    MODEL_STAGE,
    Received,
    decode_results,
    decode_work,
    encode_results,
    encode_work,
)
from mycelia_serving.cluster.deduplication import Deduplication
from mycelia_serving.cluster.worker_api import Work
from mycelia_serving.errors import Code, ServingError
from mycelia_serving.request import Result
from mycelia_serving.rpc.calls import Calls
from mycelia_serving.rpc.connection import Connection, Kind
from mycelia_serving.rpc.sockets import connect

PING_S = 1.0
SILENCE_S = 10.0  # a master that says nothing for so long is gone, whatever the connection looks like
LONGEST_PAUSE_S = 2.0  # between attempts to reach a master


class WorkerProcess:
    """An engine behind a link. The thread that calls `serve` reads the link."""

    def __init__(self, engine, capacity: int, device: str, own_device: bool, address: str = "") -> None:
        self.engine = engine
        self.capacity = capacity
        self.device = device
        self.own_device = own_device
        self.address = address or f"pid:{os.getpid()}"
        self.ping_s = PING_S
        self.expects_pong = True
        self.stopping = threading.Event()
        self.registered = threading.Event()
        self.was_registered = False
        self._parted = threading.Event()  # no connection is served
        self._parted.set()
        self._link: Connection | None = None
        self._heard = 0.0
        self._drain_seconds = 0.0
        self._arena: Arena | None = None
        self._deduplication = Deduplication()
        self.model_calls: ModelCalls | None = None
        self.on_registered: Callable[[], None] | None = None  # called the first time

    def start_pinging(self) -> None:
        """Sends signs of life, also while a model is loading or running."""
        self._pings = CLOCK.call_every(self.ping_s, self._ping)

    def _ping(self) -> None:
        from mycelia_serving.wire.proto import serving_pb2 as pb

        link = self._link
        if self.stopping.is_set():
            self._pings.cancel()
        elif link is not None:
            link.send((Kind.PING, 0, pb.PingRequest(address=self.address).SerializeToString()))
            if self.expects_pong and time.monotonic() - self._heard > SILENCE_S:
                link.close()

    def attach(self, link: Connection, arena: Arena | None = None) -> None:
        """Use this connection."""
        self._link, self._arena = link, arena
        self._heard = time.monotonic()
        self._parted.clear()

    def register(self) -> None:
        """Tell the master what this worker runs."""
        from mycelia_serving.cluster.remote import registration

        body = registration(
            self.address, os.getpid(), self.engine, self.capacity, self.device, self.own_device
        )
        self._link.send((Kind.REGISTER, 0, body))

    def serve(self) -> None:
        """Answer until the connection ends or the master says EXIT."""
        link = self._link
        # Quick models run in this thread, when it has read all that came.
        for kind, number, body in link.frames(self.engine.run_inline):
            self._heard = time.monotonic()
            if kind == Kind.PREDICT:
                self._predict(link, number, body)
            elif kind == Kind.REGISTERED:
                self._registered(body)
            elif kind == Kind.MODEL_RESULTS:
                self.model_calls.answer(number, body)
            elif kind == Kind.EXIT:
                self._drain_seconds = json.loads(body or b"{}").get("drain_seconds", 0.0)
                self.stopping.set()
                break
        if self.model_calls is not None:
            self.model_calls.lose()
        self.engine.run_inline()  # with what came before EXIT
        self.was_registered = self.registered.is_set()
        self.registered.clear()
        self._parted.set()

    def _registered(self, body: bytes) -> None:
        from mycelia_serving.wire.proto import serving_pb2 as pb

        reply = pb.RegisterReply.FromString(body)
        if reply.error_msg.error_code:
            text = reply.error_msg.error_msg.decode(errors="replace")
            log.logger(__name__).warning("the master does not take this worker: %s", text)
            self._link.close()
        else:
            self.registered.set()
            if self.on_registered is not None:
                self.on_registered()
                self.on_registered = None

    def _predict(self, link: Connection, number: int, body: bytes) -> None:
        received = None
        try:
            received = decode_work(body, self._arena)
            done = self._answerer(link, number, received)
            if received.keys:
                if self._deduplication.attach(received.keys, done):
                    return
                self._deduplication.begin(received.keys)
            if received.method.startswith(MODEL_STAGE):
                from mycelia_serving.cluster.local import run_model_stage

                run_model_stage(self.engine, received.method, received.instances, done)
                return
            self.engine.submit(
                received.method,
                received.instances,
                done,
                deadline=received.deadline,
                priority=received.priority,
                more=True,
            )
        except Exception as e:  # a work that cannot be read must not end the worker
            error = ServingError(Code.SYSTEM_ERROR, f"the worker cannot read its work: {e}")
            count = len(received.instances) if received is not None else 1
            link.send((Kind.RESULTS, number, encode_results([error] * count, None, None)))

    def _answerer(self, link: Connection, number: int, received: Received):
        def done(results: list[Result]) -> None:
            try:
                body = encode_results(results, received, self._arena)
            except Exception as e:
                error = ServingError(Code.SYSTEM_ERROR, f"the results cannot be passed on: {e}")
                body = encode_results([error] * len(results), None, None)
            if received.keys:
                self._deduplication.end(received.keys, results, link.closed)
            link.send((Kind.RESULTS, number, body))

        return done

    def leave_master(self, drain_seconds: float) -> None:
        """Ask the master for nothing more, answer what there is, and stop. Blocks up to `drain_seconds`."""
        self._drain_seconds = 0.0
        # The master may have sent work behind its answer to the registration, which is still unread.
        if not self._parted.is_set():
            self._link.send((Kind.EXIT, 0, b""))  # it answers with EXIT when all is answered
            self._parted.wait(drain_seconds)
        self.stopping.set()
        if self._link is not None:
            self._link.flush(1.0)
            self._link.close()

    def leave(self) -> None:
        """Answer what there is, and end the engine."""
        self.engine.close(self._drain_seconds)
        if self._link is not None:
            self._link.send((Kind.EXIT, 0, b""))
            self._link.flush(2.0)


# ---- a child of the master -------------------------------------------------------------------------------


def make_engine(settings: dict, call_model=None):
    """The engine that the settings of a worker describe, not started."""
    from mycelia_serving.engine import Engine
    from mycelia_serving.servable.config import CONFIG_S

    key = settings.get("dec_key")
    return Engine(
        settings["servable_directory"],
        settings["servable_name"],
        settings.get("version", 0),
        device_type=settings.get("device_type"),
        device_id=settings.get("device_id", 0),
        dec_key=bytes.fromhex(key) if key else None,
        dec_mode=settings.get("dec_mode", "AES-GCM"),
        max_batch_size=settings.get("max_batch_size", 32),
        max_batch_delay_ms=settings.get("max_batch_delay_ms", 0),
        functions_only=call_model is not None,
        call_model=call_model,
        config_timeout_s=settings.get("config_timeout_s", CONFIG_S),
        leader=settings.get("leader"),
    )


def understand_mindspore(settings: dict) -> None:
    """A config written for MindSpore imports it: then its names mean Mycelia in this process."""
    config = os.path.join(settings["servable_directory"], settings["servable_name"], "servable_config.py")
    with contextlib.suppress(OSError), open(config, "rb") as file:
        if re.search(rb"^\s*(from|import)\s+mindspore", file.read(), re.MULTILINE):
            from mycelia import compat

            compat.install()


def log_to(path: str) -> None:
    """Let output go to the end of a file."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    for stream in (1, 2):
        os.dup2(fd, stream)
    os.close(fd)


def describe_failure(error: BaseException) -> str:
    """Why a worker could not start."""
    return str(error) or type(error).__name__


def child_main() -> int:
    """Be a child of the master. Two lines of JSON come on standard input: what it inherits, and, perhaps much
    later, what it is to run.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the master
    inherited = json.loads(sys.stdin.buffer.raw.readline())
    link = Connection(socket.socket(fileno=inherited["link_fd"]))
    arena = Arena(inherited["arena_fd"], inherited["arena_size"])

    from mycelia_serving.cluster.local import capacity_of, device_name
    from mycelia_serving.wire.proto import serving_pb2 as pb

    if not select.select([sys.stdin], [], [], 0)[0]:  # a spare process has time for what most workers need
        importlib.import_module("mycelia.io.mindir")
        importlib.import_module("mycelia_serving.engine")
    line = sys.stdin.buffer.raw.readline()
    if not line.endswith(b"\n"):
        return 0  # the master has ended
    settings = json.loads(line)
    if settings["log_file"]:
        log_to(settings["log_file"])
    understand_mindspore(settings)
    functions_only = settings.get("functions_only", False)
    calls = ModelCalls(link) if functions_only else None
    engine = make_engine(settings, calls.call if calls else None)
    device = device_name(settings.get("device_type"), settings.get("device_id", 0), functions_only)
    worker = WorkerProcess(engine, 0, device, not functions_only)
    worker.model_calls = calls
    worker.expects_pong = False  # the end of its input tells it as well, and a busy master is no dead one
    worker.ping_s = settings.get("ping_s", PING_S)
    worker.attach(link, arena)
    worker.start_pinging()
    threading.Thread(target=_end_with_master, name="serving-lifeline", daemon=True).start()
    try:
        engine.start()
    except BaseException as e:  # a config may raise anything, also SystemExit
        failure = pb.NotifyFailedRequest(worker_pid=os.getpid(), error_msg=describe_failure(e))
        link.send((Kind.FAILED, 0, failure.SerializeToString()))
        link.flush(2.0)
        return 1
    worker.capacity = capacity_of(engine)
    worker.register()
    worker.serve()
    if not worker.stopping.is_set():
        os._exit(0)  # the master is gone, nobody waits for what still runs
    worker.leave()
    return 0


def _end_with_master() -> None:
    """Standard input ends when the master does, however it ends."""
    while sys.stdin.buffer.raw.read(1):
        pass
    time.sleep(1.0)  # an orderly end is quicker
    os._exit(0)


class ModelCalls(Calls):
    """Model stages of a worker without a device, which go to one with a device through the master."""

    def __init__(self, link: Connection) -> None:
        super().__init__(link, Kind.CALL_MODEL)

    def call(self, model_key: str, subgraph: int, inputs: list[tuple], done) -> None:
        """Run a model stage elsewhere; see `Engine`."""
        instances = [{str(at): value for at, value in enumerate(one)} for one in inputs]

        def answered(body: bytes | None) -> None:
            if body is None:
                error = ServingError(Code.WORKER_UNAVAILABLE, "the master is gone")
                done([error] * len(inputs))
                return
            done(
                [
                    tuple(result[str(at)] for at in range(len(result))) if type(result) is dict else result
                    for result in decode_results(body, None)
                ]
            )

        body, _ = encode_work(Work(f"{MODEL_STAGE}{subgraph}:{model_key}", instances, done), {}, None)
        self.start(body, answered)


# ---- a worker that joins a master ------------------------------------------------------------------------


def join(worker: WorkerProcess, masters: list[str] | Callable[[], list[str]]) -> None:
    """Serve the master at one of the addresses, look for it while it is away, until `worker.stopping`."""
    worker.start_pinging()
    pause, at = 0.1, 0
    while not worker.stopping.is_set():
        addresses = masters() if callable(masters) else masters
        try:
            if not addresses:
                raise OSError("no master is known")
            link = Connection(connect(addresses[at % len(addresses)]))
        except OSError:
            at += 1
            worker.stopping.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
            continue
        worker.attach(link)
        worker.register()
        worker.serve()
        if not worker.stopping.is_set():
            link.close()
            worker.stopping.wait(pause)
            pause = 0.1 if worker.was_registered else min(2 * pause, LONGEST_PAUSE_S)
    with contextlib.suppress(OSError):
        worker.leave()


if __name__ == "__main__":
    code = child_main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of functions may hang
