"""A service in this process, the trainings that were started for it, and what a page asks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

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

    def __init__(self, folder: Path, token: str = "") -> None:
        self.folder = folder
        self.listener = Listener("127.0.0.1", 0, token)
        app = make_app(Settings(), Library(str(folder), str(folder), 0), OnlineSession(self.listener))
        self.client = Client(app)
        self.processes: list[subprocess.Popen] = []

    def train(self, *options: str, script: Path = SCRIPT, **variables: str) -> subprocess.Popen:
        known = {
            "ENABLE_MS_DEBUGGER": "1",
            "MYCELIA_DEBUGGER_TIMEOUT": "600",  # a busy machine is no service that is gone
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

    def until(self, state: str, step: int | None = None, ranks: int = 0) -> dict:
        """The metadata as soon as the trainings, this many at least, are there: a page polls for it."""
        for _ in range(50):
            told = self.ask("retrieve", {"mode": "all"})
            now = told["metadata"]
            if now["state"] == state and step in (None, now["step"]) and len(told["devices"]) >= ranks:
                return now
            self.ask(f"poll-data?pos={now['pos']}")
            assert all(p.poll() in (None, 0) for p in self.processes), self.processes[0].communicate()
        raise AssertionError(f"the training is {now}, not {state} at {step}")

    def go(self, steps: int, **more: object) -> None:
        self.ask("control", {"mode": "continue", "level": "step", "steps": steps, **more})

    def nodes(self, **query: str) -> list[dict]:
        text = "&".join(f"{k}={v}" for k, v in query.items())
        return list(leaves(self.ask(f"search?{text}")["nodes"]))

    def value(self, name: str, shape: str = "", rank: int = 0) -> np.ndarray:
        told = self.ask(f"tensors?name={name}&shape={shape}&rank_id={rank}")["tensor_value"]
        return np.array(told["value"], np.float32)


def leaves(nodes: list[dict]) -> Iterator[dict]:
    """The nodes of a tree that hold no others."""
    for node in nodes:
        yield from leaves(node["nodes"]) if node["nodes"] else [node]
