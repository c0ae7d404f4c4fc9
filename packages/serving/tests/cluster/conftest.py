"""A worker whose answers a test decides."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from mycelia_serving.cluster.dispatch import Master
from mycelia_serving.cluster.worker_api import WorkerLost
from mycelia_serving.request import MethodInfo, Reply, Request, TensorInfo

WAIT_S = 60.0


def info(name: str = "echo", batch_size: int = 0, **more) -> MethodInfo:
    tensor = TensorInfo("x", "int64", ())
    return MethodInfo(name, (tensor,), (TensorInfo("y", "int64", ()),), batch_size, **more)


class FakeWorker:
    """Keeps what it gets until the test lets it answer; y = x."""

    def __init__(self, name="add", version=1, capacity=4, infos=(info(),), quick=False):
        self.servable, self.version, self.infos, self.capacity = name, version, tuple(infos), capacity
        self.address, self.pid, self.device = f"fake-{id(self)}", 1, "CPU"
        self.has_models, self.keeps = True, False
        self.quick = quick
        self.held = []
        self.sizes = []
        self.closed = False

    def submit(self, work):
        for one in work:
            self.sizes.append(len(one.instances))
            if self.quick:
                one.done([{"y": i["x"]} for i in one.instances])
            else:
                self.held.append(one)

    @property
    def values(self):
        return [int(i["x"]) for one in self.held for i in one.instances]

    def answer(self, count=None):
        ready, self.held = self.held[:count], self.held[count:] if count else []
        for one in ready:
            one.done([{"y": i["x"]} for i in one.instances])

    def die(self, reason="killed"):
        held, self.held = self.held, []
        self.dead = True
        for one in held[:1]:
            one.done(WorkerLost(reason))

    def close(self, drain_seconds=0.0):
        self.closed = True


class Caller:
    """Submits requests and keeps the replies."""

    def __init__(self, master: Master, **defaults):
        self.master, self.defaults = master, defaults
        self.replies: dict[int, Reply] = {}
        self.changed = threading.Condition()
        self.count = 0

    def send(self, *values, **options):
        number, self.count = self.count, self.count + 1
        instances = [{"x": np.int64(v)} if isinstance(v, int) else v for v in values]
        fields = {"servable": "add", "method": "echo", **self.defaults, **options}
        call = self.master.submit(Request(instances=instances, **fields), lambda r: self._keep(number, r))
        return number, call

    def _keep(self, number, reply):
        with self.changed:
            assert number not in self.replies, "answered twice"
            self.replies[number] = reply
            self.changed.notify_all()

    def wait(self, number) -> Reply:
        with self.changed:
            assert self.changed.wait_for(lambda: number in self.replies, WAIT_S), "no answer"
            return self.replies[number]

    def values(self, number) -> list:
        """Per instance its y, or the code of its error."""
        reply = self.wait(number)
        if reply.error is not None:
            return [reply.error.code]
        return [int(r["y"]) if isinstance(r, dict) else r.code for r in reply.results]


@pytest.fixture
def make_master():
    """Masters that end with the test."""
    made = []

    def make(**options) -> Master:
        made.append(Master(**options))
        return made[-1]

    yield make
    for master in made:
        master.close()


@pytest.fixture
def fakes(make_master):
    """`fakes(workers, ...)`: a master with so many fake workers of "add", and a caller."""

    def make(count=1, *, options=None, **fields):
        master = make_master(**(options or {}))
        workers = [FakeWorker(**fields) for _ in range(count)]
        for worker in workers:
            master.add(worker)
        return master, workers, Caller(master)

    make.worker, make.info, make.caller = FakeWorker, info, Caller
    return make
