"""A worker whose answers a test decides."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pytest

from mycelia import config
from mycelia_serving.cluster.child import Settings
from mycelia_serving.cluster.master import Master
from mycelia_serving.cluster.supervise import Deployment
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
        self.has_models, self.deduplicates = True, False
        self.pulls = frozenset()
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


# ---- real processes --------------------------------------------------------------------------------------

CONFIG = """
import os, time
from mycelia_serving.server import register


def double(x):
    return x * 2


def nap(x, seconds):
    time.sleep(float(seconds))
    return x


def stand(path):
    while not os.path.exists(path):
        time.sleep(0.01)
    return path


def bite(x):
    if int(x) == 666:
        os._exit(3)
    return x


def who(x):
    return os.getpid()


def refuse(x):
    raise ValueError("no thank you")


@register.register_method(output_names=["y"])
def twice(x):
    return register.add_stage(double, x, outputs_count=1)


@register.register_method(output_names=["y"])
def wait(x, seconds):
    return register.add_stage(nap, x, seconds, outputs_count=1)


@register.register_method(output_names=["y"])
def hold(x):
    return register.add_stage(stand, x, outputs_count=1)


@register.register_method(output_names=["y"])
def risky(x):
    return register.add_stage(bite, x, outputs_count=1)


@register.register_method(output_names=["y"])
def pid(x):
    return register.add_stage(who, x, outputs_count=1)


@register.register_method(output_names=["y"])
def wrong(x):
    return register.add_stage(refuse, x, outputs_count=1)
"""


@pytest.fixture(scope="session")
def servables(tmp_path_factory):
    """A directory with the servable "calc", which has functions only."""
    folder = tmp_path_factory.mktemp("servables")
    (folder / "calc").mkdir()
    (folder / "calc" / "servable_config.py").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def runtime_dir(tmp_path_factory):
    """Servers of this module do not meet those of others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYCELIA_SERVING_DIR", tempfile.mkdtemp(prefix="myc-"))  # short: it holds sockets
        config.reset("serving_dir")
        yield os.environ["MYCELIA_SERVING_DIR"]
        shutil.rmtree(os.environ["MYCELIA_SERVING_DIR"], ignore_errors=True)
    config.reset("serving_dir")


def _until(condition, text="it does not come true"):
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, text
        time.sleep(0.01)


@pytest.fixture
def until():
    """Waits until a function is true."""
    return _until


@pytest.fixture
def alive():
    """Whether a process runs; one that has ended and waits for its parent does not."""

    def check(pid: int) -> bool:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                return stat.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    return check


class Call:
    """Requests to a master, each waited for."""

    def __init__(self, master: Master, servable: str = "calc"):
        self.caller = Caller(master, servable=servable)

    def reply(self, method: str, *instances: dict, **options) -> Reply:
        return self.caller.wait(self.start(method, *instances, **options))

    def start(self, method: str, *instances: dict, **options) -> int:
        return self.caller.send(*instances, method=method, **options)[0]

    def results(self, method: str, *instances: dict, **options) -> list:
        reply = self.reply(method, *instances, **options)
        assert reply.error is None, reply.error
        return reply.results

    def pid(self) -> int:
        """Of the worker that answers now."""
        return int(self.results("pid", {"x": np.int64(0)})[0]["y"])


@pytest.fixture
def call_master():
    return Call


@pytest.fixture(scope="module")
def calc(servables):
    """Two worker processes of "calc" with a master in this process."""
    master = Master()
    deployment = Deployment(master, Settings(str(servables), "calc", 1, ping_s=0.2))
    master.kill = deployment.kill
    try:
        deployment.start([None, None])
        yield deployment
    finally:
        deployment.stop(0.0)
        master.close()


class Server:
    """A server or worker as a process of its own, and what it prints."""

    def __init__(self, arguments: list[str], **environment: str):
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **environment},
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def wait_line(self, text: str) -> str:
        """The first line with this text."""

        def found():
            assert self.process.poll() is None or any(text in x for x in self.lines), self.lines
            return any(text in line for line in self.lines)

        _until(found)
        return next(line for line in self.lines if text in line)

    def port(self, protocol: str = "gRPC") -> int:
        return int(self.wait_line(f"Serving {protocol} start success").rpartition(":")[2])

    def end(self) -> int:
        """Its exit code."""
        code = self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        return code


@pytest.fixture
def start_process(runtime_dir):
    """`start_process(arguments)`: processes that end with the test."""
    started = []

    def start(*arguments: str, **environment: str) -> Server:
        started.append(Server(list(arguments), **environment))
        return started[-1]

    yield start
    for server in started:
        server.process.kill()
        server.process.wait()


@pytest.fixture
def predict():
    """`predict(port, servable, method, instances)`: a gRPC call, its reply or its status."""
    import grpc

    from mycelia_serving.wire.predict import parse_reply, request_bytes

    channels = {}

    def call(port, servable, method, instances, version=0, timeout=WAIT_S):
        if port not in channels:
            channels[port] = grpc.insecure_channel(f"127.0.0.1:{port}")
        ask = channels[port].unary_unary("/mindspore.serving.proto.MSService/Predict")
        try:
            return parse_reply(ask(request_bytes(servable, method, version, instances), timeout=timeout))
        except grpc.RpcError as e:
            return e.code().name

    yield call
    for channel in channels.values():
        channel.close()
