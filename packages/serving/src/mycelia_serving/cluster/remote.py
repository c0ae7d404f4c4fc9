"""A worker at the other end of a link: a child process of the master, or one that joined from elsewhere."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading

from mycelia import log
from mycelia_serving.cluster.arena import Arena
from mycelia_serving.cluster.codec import (
    MODEL_STAGE,
    Places,
    decode_results,
    decode_work,
    encode_results,
    encode_work,
    infos_from_json,
    infos_to_json,
)
from mycelia_serving.cluster.worker_api import Work, WorkerLost
from mycelia_serving.errors import Code, ServingError
from mycelia_serving.request import Reply, Request
from mycelia_serving.rpc.connection import Connection, Kind
from mycelia_serving.wire.proto import serving_pb2 as pb

MODEL_STAGE_PRIORITY = 1 << 20  # what has started goes before what has not


class RemoteWorker:
    """What a process has registered. Its reader thread is that of the link: see `read`."""

    def __init__(
        self, link: Connection, registration: bytes, arena: Arena | None = None, *, deduplicates: bool = False
    ) -> None:
        """registration: the body of a REGISTER frame. ValueError if it is none.
        deduplicates: it outlives its connection, and remembers by their keys what it has run.
        """
        message, more = read_registration(registration)
        spec = message.worker_spec.servable_spec
        self.servable = spec.name
        self.version = spec.version_number
        self.infos = infos_from_json(more["infos"])
        self.model_files = tuple(more["model_files"])
        self.capacity = more["capacity"]
        self.address = message.worker_spec.address
        self.pid = message.worker_spec.worker_pid
        self.device = more["device"]
        self.load_seconds = more["load_seconds"]
        self.has_models = spec.own_device
        self.deduplicates = deduplicates
        self.pulls: frozenset[str] = frozenset()
        self.answered = 0  # instances
        self.restarts = 0  # of its place among the workers, before it came
        self.seen = True  # a sign of life since the last look
        self.missed = 0  # looks without one
        self._methods = {info.name: info for info in self.infos}
        self._link = link
        self._arena = arena
        self._numbers = itertools.count(1)
        self._sent: dict[int, tuple[Work, Places]] = {}
        self._lock = threading.Lock()
        self._lost = ""

    def submit(self, work: list[Work]) -> None:
        """Take work; see `Worker`. All of it goes out in one write."""
        frames = []
        for one in work:
            try:
                body, places = encode_work(one, self._methods, self._arena)
            except Exception as e:  # whatever a value did, its caller gets an answer
                error = ServingError(Code.SYSTEM_ERROR, f"the request cannot be passed on: {e}")
                one.done([error] * len(one.instances))
                continue
            number = next(self._numbers)
            with self._lock:
                self._sent[number] = (one, places)
            frames.append((Kind.PREDICT, number, body))
        self._link.send(*frames)
        if self._lost:
            self._tell_lost()

    def take_results(self, number: int, body: bytes) -> None:
        """A RESULTS frame has come."""
        with self._lock:
            work, places = self._sent.pop(number, (None, ()))
        if work is None:
            return
        try:
            results = decode_results(body, self._arena)
        except Exception as e:
            log.logger(__name__).error("results of worker %s cannot be read: %s", self.address, e)
            results = [ServingError(Code.SYSTEM_ERROR, "the worker's reply cannot be read")] * len(
                work.instances
            )
        for place in places:
            self._arena.give_back(*place)
        self.answered += len(results)
        work.done(results)

    def pass_on_model_call(self, master, number: int, body: bytes) -> None:
        """A CALL_MODEL frame of a worker without a device has come: a worker that has one answers it."""
        received = decode_work(body, None)

        def done(reply: Reply) -> None:
            results = reply.results if reply.error is None else [reply.error] * len(received.instances)
            self._link.send((Kind.MODEL_RESULTS, number, encode_results(results, None, None)))

        master.submit(
            Request(
                self.servable,
                received.method,
                received.instances,
                self.version,
                priority=MODEL_STAGE_PRIORITY,
                protocol=MODEL_STAGE,
            ),
            done,
        )

    def lost(self, reason: str) -> None:
        """The process or the connection has ended."""
        self._lost = self._lost or reason
        self._link.close()
        self._tell_lost()

    def _tell_lost(self) -> None:
        with self._lock:
            sent, self._sent = self._sent, {}
        for work, _ in sent.values():
            work.done(WorkerLost(self._lost))

    def close(self, drain_seconds: float = 0.0) -> None:
        """Tell it to end when it has answered what it has."""
        self._link.send((Kind.EXIT, 0, json.dumps({"drain_seconds": drain_seconds}).encode()))


def registration(address: str, pid: int, engine, capacity: int, device: str, own_device: bool) -> bytes:
    """The body of a REGISTER frame."""
    message = pb.RegisterRequest()
    worker = message.worker_spec
    worker.worker_pid, worker.address = pid, address
    spec = worker.servable_spec
    spec.name, spec.version_number = engine.servable_name, engine.version
    spec.batch_size, spec.own_device = engine.batch_size, own_device
    for info in engine.infos:
        spec.methods.add(name=info.name, input_names=[i.name for i in info.inputs])
    more = {
        "infos": infos_to_json(engine.infos),
        "model_files": list(engine.model_files),
        "capacity": capacity,
        "device": device,
        "load_seconds": engine.load_seconds,
    }
    told = message.SerializeToString()
    return len(told).to_bytes(4, "little") + told + json.dumps(more).encode()


def read_registration(body: bytes) -> tuple[pb.RegisterRequest, dict]:
    """What `registration` made. ValueError if it is something else."""
    length = int.from_bytes(body[:4], "little")
    with contextlib.suppress(Exception):
        message = pb.RegisterRequest.FromString(body[4 : 4 + length])
        more = json.loads(body[4 + length :])
        if isinstance(more, dict) and message.worker_spec.servable_spec.name:
            return message, more
    raise ValueError("this is no registration of a worker")
