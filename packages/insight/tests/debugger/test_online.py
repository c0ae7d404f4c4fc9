"""The debugger over running trainings: real processes, real sockets, asked as a page asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("grpc", reason="the debugger's connection is gRPC")

from mycelia_insight.debugger.online.listener import Listener
from mycelia_insight.debugger.online.session import OnlineSession
from mycelia_insight.runs.library import Library
from mycelia_insight.service.app import make_app
from mycelia_insight.service.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[1] / "service"))
from asgi import Client

SESSION = "/v1/mindinsight/debugger/sessions/0"
SCRIPT = Path(__file__).with_name("debugged.py")


class Desk:
    """A service, the trainings that were started for it, and what a page does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.listener = Listener("127.0.0.1", 0)
        app = make_app(Settings(), Library(str(folder), str(folder), 0), OnlineSession(self.listener))
        self.client = Client(app)
        self.processes: list[subprocess.Popen] = []

    def train(self, *options: str, script: Path = SCRIPT, **variables: str) -> subprocess.Popen:
        known = {
            "ENABLE_MS_DEBUGGER": "1",
            "MS_DEBUGGER_HOST": "127.0.0.1",
            "MS_DEBUGGER_PORT": str(self.listener.port),
        }
        process = subprocess.Popen(
            [sys.executable, str(script), *options], env={**os.environ, **known, **variables},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def close(self) -> None:
        self.listener.stop()
        for process in self.processes:
            process.kill()
            process.communicate()

    def ask(self, path: str, body: object = None, code: str = "") -> object:
        """The answer to a POST, or to a GET without a body; `code`: of the refusal that is expected."""
        url = f"{SESSION}/{path}"
        answer = self.client.get(url) if body is None else self.client.post(url, body)
        if code:
            assert answer.status_code == 400 and answer.json()["error_code"] == code, answer.text
            return answer.json()
        assert answer.status_code == 200, answer.text
        return answer.json()

    def until(self, state: str, step: int | None = None) -> dict:
        """The metadata as soon as the trainings are there: a page polls for it."""
        for _ in range(200):
            now = self.ask("retrieve", {"mode": "all"})["metadata"]
            if now["state"] == state and step in (None, now["step"]):
                return now
            self.ask(f"poll-data?pos={now['pos']}")
            assert all(p.poll() in (None, 0) for p in self.processes), self.processes[0].communicate()
        raise AssertionError(f"the training is {now}, not {state} at {step}")

    def go(self, steps: int, **more: object) -> None:
        self.ask("control", {"mode": "continue", "level": "step", "steps": steps, **more})

    def nodes(self, **query: str) -> list[dict]:
        text = "&".join(f"{k}={v}" for k, v in query.items())
        return list(leaves(self.ask(f"search?{text}")["nodes"]))

    def value(self, name: str, shape: str = "") -> np.ndarray:
        told = self.ask(f"tensors?name={name}&shape={shape}")["tensor_value"]
        return np.array(told["value"], np.float32)


def leaves(nodes):
    for node in nodes:
        yield from leaves(node["nodes"]) if node["nodes"] else [node]


@pytest.fixture
def desk(tmp_path):
    found = Desk(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize("options", [(), ("--eager",)], ids=["graph", "eager"])
def test_a_training_steps_hits_its_nan_tells_the_line_and_ends(desk, options):
    assert desk.client.post("/v1/mindinsight/debugger/sessions", {"session_type": "ONLINE"}).json() == "0"
    training = desk.train("--bad", "4", *options)
    begin = 1 if options else 0  # the graph of eager calls is known after a step
    assert desk.until("waiting")["step"] == begin
    for step in range(begin + 1, 3):
        desk.go(1)
        assert desk.until("waiting", step)["step"] == step
    (log,) = [n for n in desk.nodes(name="Log-op") if n["type"] == "Log"]
    desk.ask("create-watchpoint", {
        "condition": {"id": "tensor_overflow", "params": []}, "watch_nodes": [log["name"]],
    })  # fmt: skip
    desk.go(-1)
    assert desk.until("waiting")["step"] == 4
    (hit,) = desk.ask("search-watchpoint-hits", {})["watch_point_hits"]
    assert hit["node_name"] == log["name"]
    assert np.isnan(desk.value(f"{log['name']}:0"))
    assert desk.value(f"{log['name']}:input:0") == -1
    (node,) = desk.ask("tensor-graphs?tensor_name=" + log["name"] + ":0")["graph"]["nodes"][:1] or [None]
    stack = [n for n in desk.ask(f"tensor-graphs?tensor_name={log['name']}:0")["graph"]["nodes"]
             if n["name"] == log["name"]][0]["stack_info"]  # fmt: skip
    assert stack[0]["file_path"] == str(SCRIPT) and "ops.log(scale)" in stack[0]["code_line"]
    desk.go(-1)
    output, errors = training.communicate()
    assert training.returncode == 0 and "trained" in output, errors
    assert desk.until("pending")["training_done"] is True
