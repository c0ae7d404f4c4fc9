"""The debugger over running trainings in trouble: ranks, second clients, kills, hostile calls."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="the debugger's connection is gRPC")

import grpc

from mycelia.debug.messages import debugger_pb2 as messages
from mycelia.debug.online.channel import CLIENT, PROTOCOL, RANK, SERVICE

sys.path.insert(0, str(Path(__file__).parent))
from desk import Desk


@pytest.fixture
def desk(tmp_path):
    found = Desk(tmp_path)
    yield found
    found.close()


def test_two_ranks_go_together_and_wait_for_the_one_that_hits(desk):
    both = [desk.train("--steps", "4", "--bad", "2" if rank else "0", RANK_ID=str(rank)) for rank in (0, 1)]
    desk.until("waiting", 0, ranks=2)
    (log,) = [n["name"] for n in desk.nodes(name="Log-op", rank_id="1") if n["type"] == "Log"]
    overflow = {"id": "tensor_overflow", "params": []}
    desk.ask("create-watchpoint", {"condition": overflow, "watch_nodes": [log], "rank_id": 1})
    desk.go(2)
    desk.until("waiting", 2, ranks=2)
    (hit,) = desk.ask("search-watchpoint-hits", {"rank_id": 1})["watch_point_hits"]
    assert hit["node_name"] == log
    assert desk.ask("search-watchpoint-hits", {"rank_id": 0})["total"] == 0
    assert [d["rank_id"] for d in desk.ask("retrieve", {"mode": "all"})["devices"]] == [0, 1]
    assert desk.value(f"{log}:input:0") == 2 and desk.value(f"{log}:input:0", rank=1) == -1
    desk.ask("delete", {})
    assert [process.wait() for process in both] == [0, 0]


def test_a_hit_of_one_rank_stops_the_others(desk):
    both = [
        desk.train("--steps", "100000", "--bad", "3" if rank else "0", RANK_ID=str(rank)) for rank in (0, 1)
    ]
    desk.until("waiting", 0, ranks=2)
    (log,) = [n["name"] for n in desk.nodes(name="Log-op", rank_id="1") if n["type"] == "Log"]
    desk.ask("create-watchpoint", {
        "condition": {"id": "tensor_overflow", "params": []}, "watch_nodes": [log], "rank_id": 1,
    })  # fmt: skip
    desk.go(-1)
    now = desk.until("waiting", ranks=2)
    assert now["step"] == 3  # that of the rank that hit, however far the other had come, which waits, too
    assert now["last_step"] >= 3 and all(process.poll() is None for process in both)
    (hit,) = desk.ask("search-watchpoint-hits", {"rank_id": 1})["watch_point_hits"]
    assert hit["node_name"] == log
    assert desk.value(f"{log}:input:0", rank=1) == -1
    desk.ask("control", {"mode": "terminate"})
    assert [process.wait() for process in both] == [0, 0]


def test_a_second_training_of_a_rank_goes_on_by_itself(desk):
    first = desk.train("--steps", "2")
    desk.until("waiting", 0)
    second = desk.train("--steps", "2")
    output, errors = second.communicate()
    assert second.returncode == 0 and "trained" in output
    assert "another training has this rank; the training goes on" in errors.replace("\n", " ")
    desk.go(-1)
    assert first.wait() == 0
    desk.until("pending")
    third = desk.train("--steps", "2")  # the place is free
    desk.until("waiting", 0)
    desk.go(-1)
    assert third.wait() == 0


def test_pause_terminate_and_what_does_not_fit_the_state(desk):
    desk.ask("control", {"mode": "continue", "steps": 1}, code="5054B183")
    desk.ask("control", {"mode": "pause"}, code="5054B184")
    desk.ask("recheck", {}, code="5054B186")
    training = desk.train("--steps", "100000")
    desk.until("waiting", 0)
    desk.go(-1)
    desk.ask("control", {"mode": "continue", "steps": 1}, code="5054B183")
    desk.ask("recheck", {}, code="5054B186")
    desk.ask("control", {"mode": "pause"})
    desk.until("waiting")
    for steps in (0, -2, 2**31, "1", 1.5, True):
        desk.ask("control", {"mode": "continue", "steps": steps}, code="5054B081")
    desk.ask("control", {"mode": "terminate"})
    output, errors = training.communicate()
    assert training.returncode == 0 and "trained" not in output and "Traceback" not in errors
    desk.until("pending")
    desk.ask("control", {"mode": "terminate"}, code="5054B183")


@pytest.mark.parametrize("lost, ends", [("continue", True), ("stop", False)])
def test_a_service_that_goes_leaves_the_training_as_set(desk, lost, ends):
    training = desk.train("--steps", "3", MYCELIA_DEBUGGER_LOST=lost)
    desk.until("waiting", 0)
    desk.go(1)
    desk.until("waiting", 1)
    desk.listener.stop()
    output, errors = training.communicate()
    assert training.returncode == 0 and ("trained" in output) is ends, errors
    assert "the debugger is not there" in errors and "Traceback" not in errors


_SERVICE = """
import os, sys
from mycelia_insight.debugger.online.listener import Listener

class Doomed(Listener):
    def _WaitCMD(self, *call):
        os.kill(os.getpid(), int(sys.argv[1]))
        return super()._WaitCMD(*call)

listener = Doomed("127.0.0.1", 0)
print(listener.port, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "how, timeout", [(signal.SIGKILL, "600"), (signal.SIGSTOP, "2")], ids=["killed", "frozen"]
)
def test_a_service_that_is_killed_or_frozen_holds_no_training(desk, how, timeout):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    service = subprocess.Popen([sys.executable, "-c", _SERVICE, str(int(how))], **pipes)
    desk.processes.append(service)
    port = service.stdout.readline().strip()
    training = desk.train("--steps", "2", MS_DEBUGGER_PORT=port, MYCELIA_DEBUGGER_TIMEOUT=timeout)
    output, errors = training.communicate()
    assert training.returncode == 0 and "trained" in output and "the debugger is not there" in errors


def test_no_service_at_all(desk):
    port = str(desk.listener.port)
    desk.listener.stop()
    training = desk.train("--steps", "1", MS_DEBUGGER_PORT=port, MYCELIA_DEBUGGER_TIMEOUT="1")
    output, errors = training.communicate()
    assert training.returncode == 0 and "trained" in output and "the debugger is not there" in errors


def test_a_training_that_is_killed_frees_its_place_and_what_it_sent_stays(desk):
    training = desk.train("--steps", "5")
    desk.until("waiting", 0)
    desk.go(1)
    desk.until("waiting", 1)
    weight = next(n["name"] for n in desk.nodes(name="fc3.bias", node_category="weight"))
    before = desk.value(f"{weight}:0")
    training.kill()
    training.wait()
    desk.processes.remove(training)
    desk.until("pending")
    assert (desk.value(f"{weight}:0") == before).all()
    other = next(n["name"] for n in desk.nodes(name="fc2.bias", node_category="weight"))
    desk.ask(f"tensors?name={other}:0", code="5054B081")
    desk.train("--steps", "1")
    desk.until("waiting", 0)


def test_a_training_that_is_killed_while_it_runs_is_seen_to_be_gone_at_once(desk):
    """Long before it misses signs of life, which come every 200 s here."""
    training = desk.train("--steps", "100000000")
    desk.until("waiting", 0)
    assert desk.ask("retrieve", {"mode": "all"})["metadata"]["training_lost"] is False
    desk.go(-1)
    desk.until("running")
    desk.processes.remove(training)
    training.kill()
    training.communicate()
    began = time.monotonic()
    now = desk.until("pending")
    assert time.monotonic() - began < 60  # of 3 x 600 s
    assert now["training_lost"] is True and now["training_done"] is False
    other = desk.train("--steps", "1")
    assert desk.until("waiting", 0)["training_lost"] is False
    desk.go(-1)
    assert other.wait() == 0
    assert desk.until("pending")["training_done"] is True


def test_an_operator_that_raises_waits_before_its_error_goes_on(desk, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import numpy as np\nimport mycelia as ms\nfrom mycelia import ops\n"
        "ms.set_context(mode=ms.PYNATIVE_MODE)\n"
        "x = ms.Tensor(np.ones((2, 3), np.float32))\n"
        "y = ops.exp(x)\nops.assert_true = None\nops.Assert()(ms.Tensor(False), [y])\n"
    )
    training = desk.train(script=script)
    now = desk.until("waiting")
    assert "Assert" in now["reason"] or "Error" in now["reason"]
    desk.go(-1)
    output, errors = training.communicate()
    assert training.returncode == 1 and "Traceback" in errors
    desk.processes.remove(training)


def test_break_if_waits_for_the_service(desk, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import numpy as np\nimport mycelia as ms\nfrom mycelia import debug, ops\n"
        "ms.set_context(mode=ms.PYNATIVE_MODE)\n"
        "x = ops.log(ms.Tensor(np.float32([1.0, -1.0])))\n"
        "debug.break_if(x, 'tensor_overflow')\nprint('went on')\n"
    )
    training = desk.train(script=script)
    assert desk.until("waiting")["reason"] == f"break_if at {script}:6"
    desk.go(-1)
    output, errors = training.communicate()
    assert training.returncode == 0 and "went on" in output, errors


# ---- calls that no training makes


def call(desk, name, *requests, stream=False, rank="0", client="a", protocol="1", token=""):
    """The reply to a call; grpc.RpcError if it is refused."""
    with grpc.insecure_channel(f"127.0.0.1:{desk.listener.port}") as channel:
        make = channel.stream_unary if stream else channel.unary_unary
        method = make(
            f"/{SERVICE}/{name}",
            request_serializer=lambda m: m if isinstance(m, bytes) else m.SerializeToString(),
            response_deserializer=messages.EventReply.FromString,
        )
        headers = [(CLIENT, client), (RANK, rank), (PROTOCOL, protocol)]
        if token:
            headers.append(("authorization", f"Bearer {token}"))
        return method(iter(requests) if stream else requests[0], metadata=headers, timeout=20)


NAMES = ["", "../../etc/passwd", "a\0b", "<script>alert(1)</script>", "x" * 100_000, "\u202e", "/", "//a//"]


def test_hostile_graphs_and_tensors_are_refused_or_shown_as_text(desk):
    with pytest.raises(grpc.RpcError, match="SendMetadata comes first"):
        call(desk, "SendHeartbeat", messages.Heartbeat(period=10))
    assert call(desk, "SendMetadata", messages.Metadata(device_name="../..", ms_version="<b>")).status == 0
    for wrong in (b"\xff" * 20, b"\x0a\xff\xff\xff\xff\x7f"):
        with pytest.raises(grpc.RpcError):
            call(desk, "SendGraph", messages.Chunk(buffer=wrong, finished=True), stream=True)
    nodes = [
        messages.NodeProto(name=n, full_name=n, op_type=n, input_count=2**31 - 1, source_address=n)
        for n in NAMES
    ]
    graph = messages.GraphProto(name="graph_0", node=nodes)
    graph.parameters.extend(messages.ParameterProto(name=n) for n in NAMES)
    text = graph.SerializeToString()
    call(desk, "SendGraph", messages.Chunk(buffer=text, finished=True), stream=True)
    found = desk.ask("retrieve", {"mode": "all"})
    assert found["graph"]["graph_names"] == ["graph_0"]
    desk.ask("search?name=script")
    desk.ask("stacks")
    desk.client.get("/api/v1/debugger/0/graph")
    hit = messages.WatchpointHit(tensor=messages.TensorProto(node_name="nowhere", slot="x" * 1000), id=-7)
    call(desk, "SendWatchpointHits", hit, stream=True)
    assert desk.ask("search-watchpoint-hits", {})["total"] == 0
    tensor = messages.TensorProto(node_name="a", dims=[1 << 40], data_type=11, finished=True)
    with pytest.raises(grpc.RpcError, match="0 bytes for a tensor"):
        call(desk, "SendTensors", tensor, stream=True)
    for rank in ("x", "-1", "1e3", "9" * 30):
        with pytest.raises(grpc.RpcError):
            call(desk, "SendMetadata", messages.Metadata(), rank=rank)
    assert call(desk, "SendMetadata", messages.Metadata(), rank="64").status == messages.FAILED
    assert call(desk, "SendMetadata", messages.Metadata(), client="b").status == messages.FAILED
    other = call(desk, "SendMetadata", messages.Metadata(), rank="3", protocol="9")
    assert other.status == messages.FAILED and other.version_matched is False
    assert call(desk, "SendHeartbeat", messages.Heartbeat(period=1)).status == messages.FAILED
    with pytest.raises(grpc.RpcError):
        call(desk, "SendAnswer", messages.Chunk(buffer=b"\xff\xff", finished=True), stream=True)


def test_a_training_of_another_version_is_told_until_one_of_this_version_comes(desk):
    assert call(desk, "SendMetadata", messages.Metadata(), protocol="9").version_matched is False
    now = desk.ask("retrieve", {"mode": "all"})["metadata"]
    assert now["state"] == "mismatch" and "version '9'" in now["reason"] and "version '1'" in now["reason"]
    desk.ask("control", {"mode": "continue", "steps": 1}, code="5054B183")
    call(desk, "SendMetadata", messages.Metadata(), rank="2", protocol="x" * 4_000)  # gRPC takes 8 KiB
    told = desk.ask("retrieve", {"mode": "all"})["metadata"]["reason"]
    assert "rank 2" in told and len(told) < 1000
    training = desk.train("--steps", "2")
    now = desk.until("waiting", 0)
    assert "rank 2" in now["reason"] and "rank 0" not in now["reason"]
    # Another one of the rank that is there is refused, and changes nothing of it.
    call(desk, "SendMetadata", messages.Metadata(), protocol="9", client="b")
    assert "rank 0" not in desk.ask("retrieve", {"mode": "all"})["metadata"]["reason"]
    desk.ask("delete", {})  # nobody looks any more
    assert training.wait() == 0
    assert desk.until("pending")["reason"] == ""


def test_a_token_is_asked_for(tmp_path):
    desk = Desk(tmp_path, token="secret")
    try:
        for token in ("", "secre", "other"):
            with pytest.raises(grpc.RpcError, match="MYCELIA_DEBUGGER_TOKEN"):
                call(desk, "SendMetadata", messages.Metadata(), token=token)
        desk.train("--steps", "1", MYCELIA_DEBUGGER_TOKEN="secret")
        desk.until("waiting", 0)
    finally:
        desk.close()


def test_without_the_variable_nothing_is_loaded():
    code = (
        "import sys, numpy as np, mycelia as ms\nx = ms.Tensor(np.ones(3, np.float32)) + 1\n"
        "ms.jit(lambda y: y * 2)(x)\n"
        "print([m for m in sys.modules if m.startswith(('grpc', 'mycelia.debug.online'))])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout == "[]\n", ran.stderr
