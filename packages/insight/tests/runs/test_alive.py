"""Whether the process of a run is there: real processes that end in each way, and files that tell nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
sys.path[:0] = [str(HERE), str(HERE / "service")]
from event_files import scalar, write  # noqa: E402
from test_manage import aged, client_of  # noqa: E402

from mycelia_insight.runs import alive  # noqa: E402

pytest.importorskip("fcntl", reason="locks of files as Linux and macOS have them")

# Each run is written by a process of its own; all have recorded a value when "ready" is printed.
WRITERS = """
import os, signal, sys
import numpy as np
from mycelia import Tensor
from mycelia.train import SummaryRecord

def written(name):
    record = SummaryRecord(os.path.join(sys.argv[1], name))
    record.add_value("scalar", "loss", Tensor(np.float32(1)))
    record.record(1)
    record.flush()
    return record

def killed():
    written("killed")
    os.kill(os.getpid(), signal.SIGKILL)

def raised():
    written("raised")
    raise ValueError("planted")

def within():
    with written("within"):
        raise ValueError("planted")

def interrupted():
    with written("interrupted"):
        raise KeyboardInterrupt

def left():
    written("left")

def closed():
    written("closed").close()

children = []
for case in (killed, raised, within, interrupted, left, closed):
    child = os.fork()
    if not child:
        sys.stderr = open(os.devnull, "w")
        case()
        sys.exit()
    children.append(child)
for child in children:
    os.waitpid(child, 0)
written("alive")
if not (helper := os.fork()):  # a worker of the training that outlives it
    signal.pause()
print("ready", helper, flush=True)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


def statuses(base: Path, workspace: Path) -> dict[str, str]:
    rows = client_of(base, workspace).get("/api/v1/runs").json()["runs"]
    return {row["run"]: row["status"] for row in rows}


def test_status_follows_the_process(tmp_path):
    base = tmp_path / "runs"
    base.mkdir()
    command = [sys.executable, "-c", WRITERS, str(base)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        ready, helper = writer.stdout.readline().split()
        assert ready == "ready"
        try:
            for file in base.glob("*/events*"):
                aged(file, 3000)
            expected = {
                "killed": "failed", "raised": "failed", "within": "failed", "interrupted": "finished",
                "left": "finished", "closed": "finished",
            }  # fmt: skip
            assert statuses(base, tmp_path / "first") == {**expected, "alive": "running"}
            writer.stdin.write("\n")
            writer.stdin.flush()
            writer.wait()
            assert statuses(base, tmp_path / "second") == {**expected, "alive": "failed"}
        finally:
            os.kill(int(helper), signal.SIGKILL)
    # Whoever takes the run up again takes away what is left of the process before.
    assert list((base / "killed").glob(".mycelia-alive.*"))
    again = WRITERS.partition("children =")[0] + 'written("killed").close()'
    subprocess.run([sys.executable, "-c", again, str(base)], check=True)
    assert not list((base / "killed").glob(".mycelia-alive.*"))
    assert statuses(base, tmp_path / "third")["killed"] == "finished"


def test_files_that_tell_nothing(tmp_path):
    here = socket.gethostname()
    contents = {
        "empty": "", "no json": "{", "a list": "[1]", "text": '"dead"', "long": "[" * 100_000,
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / f".mycelia-alive.{here}.1").write_text(content)
        assert alive.life_of(str(tmp_path / name)) is None, name
    for name, host, content, expected in (
        ("gone", here, '{"ended": null}', alive.DEAD),
        ("elsewhere", "another.host", '{"ended": null}', None),
        ("raised elsewhere", "another.host", '{"ended": "ValueError"}', alive.BROKEN_OFF),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / f".mycelia-alive.{host}.1").write_text(content)
        assert alive.life_of(str(tmp_path / name)) == expected, name
    pipes = tmp_path / "pipes"
    pipes.mkdir()
    os.mkfifo(pipes / f".mycelia-alive.{here}.1")
    (pipes / f".mycelia-alive.{here}.2").symlink_to(tmp_path / "gone" / f".mycelia-alive.{here}.1")
    (pipes / f".mycelia-alive.{here}.3").mkdir()
    assert alive.life_of(str(pipes)) is None
    assert alive.life_of(str(tmp_path / "none")) is None


def test_files_of_others_have_the_status_that_they_had(tmp_path):
    write(tmp_path / "runs" / "old", [scalar("loss", 0, 1.0, time.time())])
    assert statuses(tmp_path / "runs", tmp_path / "workspace") == {"old": "running"}
