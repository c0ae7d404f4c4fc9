"""Whole servers as processes: start, stop, signals, workers that join, commands."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

from mycelia_serving.cluster import runtime
from mycelia_serving.cluster.codec import encode_work
from mycelia_serving.cluster.master import Master
from mycelia_serving.cluster.worker_api import Work
from mycelia_serving.cluster.worker_registry import WorkerRegistry
from mycelia_serving.errors import Code
from mycelia_serving.rpc.connection import Connection, Kind
from mycelia_serving.wire.proto import serving_pb2 as pb

CLI = ["-m", "mycelia_serving"]


def x(value) -> dict:
    return {"x": np.asarray(value)}


def start_arguments(servables, *more: str) -> list[str]:
    return [*CLI, "start", "-d", str(servables), "-s", "calc", "--grpc", "127.0.0.1:0", "--no-spare", *more]


def worker_arguments(servables, address: str, *more: str) -> list[str]:
    return [*CLI, "worker", "-d", str(servables), "-s", "calc", "--join", address, *more]


@pytest.fixture
def registry(runtime_dir):
    """A master in this process at which workers may join."""
    master = Master()
    registry = WorkerRegistry(master, "127.0.0.1:0")
    yield registry
    registry.close()
    master.close()


def test_sigterm_lets_running_requests_finish(servables, start_process, predict, until, tmp_path):
    server = start_process(*start_arguments(servables, "--workers", "1"))
    port, gate = server.port(), tmp_path / "gate"
    replies = []
    slow = {"x": str(gate)}
    thread = threading.Thread(target=lambda: replies.append(predict(port, "calc", "hold", [slow])))
    thread.start()
    until(lambda: _outstanding(server.process.pid))
    server.process.terminate()
    until(lambda: predict(port, "calc", "twice", [x(1)]) in ("UNAVAILABLE",))
    gate.touch()
    thread.join()
    assert replies[0].results[0]["y"] == str(gate)
    assert server.end() == 0
    assert server.process.pid not in [s["pid"] for s in runtime.servers()]


def _outstanding(pid: int) -> int:
    status = runtime.command(pid, "status")
    return sum(w["outstanding"] for s in status["servables"] for w in s["workers"])


def test_a_second_signal_ends_at_once(servables, start_process, predict, until):
    server = start_process(*start_arguments(servables, "--workers", "0"))
    port = server.port()
    slow = {"x": np.asarray(7), "seconds": np.asarray(500.0)}
    thread = threading.Thread(target=lambda: predict(port, "calc", "wait", [slow]), daemon=True)
    thread.start()
    until(lambda: _outstanding(server.process.pid))
    server.process.terminate()
    until(lambda: predict(port, "calc", "twice", [x(1)]) == "UNAVAILABLE")
    server.process.send_signal(signal.SIGINT)
    assert server.end() != 0


def test_a_start_that_takes_long_can_be_interrupted(tmp_path, start_process, until, alive):
    (tmp_path / "slow").mkdir()
    mark = tmp_path / "mark"
    (tmp_path / "slow" / "servable_config.py").write_text(
        "import os, time\n"
        f"open({str(mark) + '.new'!r}, 'w').write(str(os.getpid()))\n"
        f"os.rename({str(mark) + '.new'!r}, {str(mark)!r})\n"
        "time.sleep(1000)\n"
    )
    server = start_process(*CLI, "start", "-d", str(tmp_path), "-s", "slow", "--grpc", "127.0.0.1:0")
    until(mark.exists)
    server.process.terminate()
    server.end()
    until(lambda: not alive(int(mark.read_text())))


def test_workers_end_with_a_master_that_is_killed(servables, start_process, until, alive):
    server = start_process(*start_arguments(servables, "--workers", "2"))
    port = server.port()
    status = runtime.command(server.process.pid, "status")
    workers = [w["pid"] for s in status["servables"] for w in s["workers"]]
    assert len(workers) == 2
    server.process.kill()
    until(lambda: not any(alive(pid) for pid in workers))
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))


def test_a_start_that_fails_tells_why_and_leaves_nothing(tmp_path, servables, start_process, until):
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    address = f"127.0.0.1:{taken.getsockname()[1]}"
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "servable_config.py").write_text("import nothing_of_this_name")
    cases = {
        "nothing_of_this_name": ["-d", str(tmp_path), "-s", "bad", "--grpc", "127.0.0.1:0"],
        address: ["-d", str(servables), "-s", "calc", "--grpc", address],
    }
    servers = {cause: start_process(*CLI, "start", *arguments) for cause, arguments in cases.items()}
    for cause, server in servers.items():
        assert server.end() == 1, server.lines
        text = "\n".join(server.lines)
        assert cause in text and "Traceback" not in text, text
    taken.close()


def test_commands_reach_the_running_server(servables, start_process, predict):
    server = start_process(*start_arguments(servables, "--workers", "1"))
    port = server.port()
    pid = server.process.pid
    assert runtime.choose(pid) == pid
    status = runtime.command(pid, "status")
    assert status["ready"] and [s["name"] for s in status["servables"]] == ["calc"]
    runtime.command(pid, "scale", name="calc", count=2)
    (servable,) = runtime.command(pid, "status")["servables"]
    assert len(servable["workers"]) == 2
    with pytest.raises(RuntimeError, match="0 to 64"):
        runtime.command(pid, "scale", name="calc", count=65)
    with pytest.raises(RuntimeError, match="was not started"):
        runtime.command(pid, "load", name="other")
    assert int(predict(port, "calc", "twice", [x(4)]).results[0]["y"]) == 8
    runtime.command(pid, "unload", name="calc", version=1)
    assert predict(port, "calc", "twice", [x(4)]).error is not None
    runtime.command(pid, "load", name="calc", version=1)
    assert int(predict(port, "calc", "twice", [x(4)]).results[0]["y"]) == 8
    runtime.command(pid, "stop")
    assert server.end() == 0


# ---- workers that join -----------------------------------------------------------------------------------


def test_a_worker_joins_finds_a_new_master_and_leaves(servables, registry, start_process, call_master, until):
    worker = start_process(*worker_arguments(servables, f"127.0.0.1:{registry.port}"))
    until(registry.workers)
    call = call_master(registry.master)
    assert call.pid() == worker.process.pid
    registry.close()  # the master goes
    until(lambda: not registry.workers())
    master = Master()
    second = WorkerRegistry(master, f"127.0.0.1:{registry.port}")
    try:
        until(second.workers)
        call = call_master(master)
        slow = call.start("wait", {"x": np.int64(3), "seconds": np.float32(0.3)})
        until(lambda: master.load("calc", 1, 0.0)[1])
        worker.process.terminate()
        assert int(call.caller.wait(slow).results[0]["y"]) == 3
        assert worker.end() == 0
        until(lambda: not second.workers())
        assert master.lost_workers == 0
    finally:
        second.close()
        master.close()


class HeldEngine:
    """Counts what it runs, and answers when it is let."""

    servable_name, version, batch_size, model_files, load_seconds = "calc", 1, 1, (), 0.0

    def __init__(self, infos):
        self.infos = infos
        self.go = threading.Event()
        self.ran = []

    def run_inline(self):
        pass

    def submit(self, method, instances, done, *, deadline=None, priority=0, more=False):
        self.ran += [int(i["x"]) for i in instances]

        def answer():
            self.go.wait(60.0)
            done([{"y": i["x"]} for i in instances])

        threading.Thread(target=answer, daemon=True).start()

    def close(self, drain_seconds=0.0):
        self.go.set()


def test_a_worker_whose_connection_breaks_runs_nothing_twice(registry, fakes, until):
    from mycelia_serving.cluster.process import WorkerProcess, join

    engine = HeldEngine((fakes.info(),))
    worker = WorkerProcess(engine, 8, "CPU", True)
    thread = threading.Thread(target=join, args=(worker, [f"127.0.0.1:{registry.port}"]), daemon=True)
    thread.start()
    try:
        until(registry.workers)
        caller = fakes.caller(registry.master, servable="calc")
        sent = [caller.send(i)[0] for i in range(3)]
        until(lambda: len(engine.ran) == 3)
        (first,) = registry.workers()
        registry.drop(first)
        until(lambda: registry.workers() and registry.workers()[0] is not first)
        engine.go.set()
        assert [caller.values(n) for n in sent] == [[0], [1], [2]]
        assert sorted(engine.ran) == [0, 1, 2]
    finally:
        worker.leave_master(0.0)
        thread.join()


def test_a_worker_that_leaves_before_it_knows_that_it_joined_answers_what_came(fakes):
    from mycelia_serving.cluster.process import WorkerProcess

    ours, theirs = socket.socketpair()
    engine = HeldEngine((fakes.info(),))
    engine.go.set()
    worker = WorkerProcess(engine, 8, "CPU", True)
    worker.attach(Connection(theirs))
    worker.register()
    master = Connection(ours)
    frames = master.frames()
    assert next(frames)[0] == Kind.REGISTER
    leaving = threading.Thread(target=worker.leave_master, args=(60.0,))
    leaving.start()
    assert next(frames, ("the connection has ended",))[0] == Kind.EXIT
    work, _ = encode_work(Work("twice", [{"x": np.int64(3)}], None), {}, None)
    joined = pb.RegisterReply().SerializeToString()
    master.send((Kind.REGISTERED, 0, joined), (Kind.PREDICT, 7, work))  # sent before EXIT came
    serving = threading.Thread(target=worker.serve)
    serving.start()
    assert next(frames, ("the connection has ended",))[:2] == (Kind.RESULTS, 7)
    master.send((Kind.EXIT, 0, b""))
    serving.join()
    leaving.join()
    assert engine.ran == [3] and worker.stopping.is_set()


def test_what_is_no_worker_is_not_taken(registry, until):
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 13, b"\xff" * 200):
        with socket.create_connection(("127.0.0.1", registry.port)) as sock:
            sock.sendall(garbage)
            sock.settimeout(60)
            assert sock.recv(1000) == b"" or garbage[:1] == b"G"
    head = b"\x04\x00\x00\x00\x01" + bytes(8)
    with socket.create_connection(("127.0.0.1", registry.port)) as sock:
        sock.sendall(head + b"junk")
        sock.settimeout(60)
        assert b"no registration" in sock.recv(1000)
    assert registry.workers() == []
    assert registry.master.describe() == []


def test_commands_are_not_taken_where_workers_join(registry):
    with socket.create_connection(("127.0.0.1", registry.port)) as sock:
        body = json.dumps({"command": "status"}).encode()
        sock.sendall(len(body).to_bytes(4, "little") + b"\x0b" + bytes(8) + body)
        sock.settimeout(60)
        assert sock.recv(1000) == b""


def test_a_frozen_worker_is_found_and_its_work_done_by_others(servables, runtime_dir, call_master, until):
    from mycelia_serving.cluster.child import Settings
    from mycelia_serving.cluster.node import Node, Plan

    node = Node()
    node.ping_s = 0.2
    node.spares.wanted = False
    try:
        node.serve(Plan(Settings(str(servables), "calc", 1, ping_s=0.1), [None, None]))
        call = call_master(node.master)
        deployment = node._served["calc"].newest()
        os.kill(deployment.status()[0]["pid"], signal.SIGSTOP)
        sent = [call.start("twice", x(i)) for i in range(8)]
        assert [int(call.caller.wait(n).results[0]["y"]) for n in sent] == [2 * i for i in range(8)]
        until(lambda: deployment.restarts >= 1 and len(deployment.workers()) == 2)
    finally:
        node.stop(0.0)
    assert call.reply("twice", x(1)).error.code == Code.STOPPING


# ---- scripts written for MindSpore Serving ---------------------------------------------------------------

CONFIG = """
from mindspore_serving.server import register
import mindspore_serving.worker.register as of_1_1

assert of_1_1 is register

def add(x1, x2):
    return x1 + x2

@register.register_method(output_names=["y"])
def add_common(x1, x2):
    y = register.add_stage(add, x1, x2, outputs_count=1)
    return y
"""

LIGHT = """
import os, sys
from mindspore_serving import master, worker

def start():
    worker.start_servable_in_master(os.path.dirname(os.path.abspath(sys.argv[0])), "add", device_id=0)
    master.start_grpc_server("127.0.0.1", 0)

if __name__ == "__main__":
    start()
"""

PROCESSES = """
import os, sys
from mindspore_serving import server

def start():
    here = os.path.dirname(os.path.realpath(sys.argv[0]))
    config = server.ServableStartConfig(servable_directory=here, servable_name="add", num_parallel_workers=1)
    server.start_servables(servable_configs=config)
    server.start_grpc_server(address="127.0.0.1:0")

start()
"""


@pytest.mark.parametrize("script", [LIGHT, PROCESSES], ids=["1.1", "2.x"])
def test_a_script_for_mindspore_serving_runs_unchanged(tmp_path, start_process, predict, script):
    (tmp_path / "add").mkdir()
    (tmp_path / "add" / "servable_config.py").write_text(CONFIG)
    (tmp_path / "serve.py").write_text(script)
    server = start_process("-m", "mycelia", "run", str(tmp_path / "serve.py"))
    ones = np.ones((2, 2), np.float32)
    reply = predict(server.port(), "add", "add_common", [{"x1": ones, "x2": ones}])
    np.testing.assert_array_equal(reply.results[0]["y"], 2 * ones)
    server.process.terminate()
    assert server.end() == 0


def test_calls_and_measurements_from_the_shell(servables, start_process, tmp_path):
    log = tmp_path / "requests"
    server = start_process(*start_arguments(servables, "--workers", "0", "--request-log", str(log)))
    address = f"127.0.0.1:{server.port()}"

    def shell(*words: str) -> subprocess.CompletedProcess:
        command = [sys.executable, *CLI, *words, "--address", address]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    done = shell("call", "calc.twice", '[{"x": 4}, {"x": 5}]')
    assert (done.returncode, json.loads(done.stdout)) == (0, [{"y": 8}, {"y": 10}])
    done = shell("call", "calc:1.no_such", '{"x": 4}')
    assert done.returncode == 1 and "no_such" in done.stderr
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["method"], line["outcome"]) for line in lines] == [
        ("twice", "success"),
        ("unknown", "not_found"),
    ]
    done = shell("bench", "calc.twice", '{"x": 4}', "--seconds", "0.2", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["requests"] > 0
