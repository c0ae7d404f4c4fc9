"""The run recorder, as users meet it: scripts that fail in every way, each in a process of its own."""

from __future__ import annotations

import csv
import json
import os
import platform
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mycelia.debug.cli import app

HEAD = """
import numpy as np
import mycelia as ms
from mycelia import Tensor, nn, ops
x = Tensor(np.ones((2, 3), np.float32))
"""
NAME = re.compile(r"^[A-Z_]+\.[^.]+(\.[^.]+)*\.\d{14}_\d+\.(ir|txt|csv|json)$")


def run(folder: Path, script: str, code: int | None = None, **env: str) -> subprocess.CompletedProcess:
    """The script with the recorder on; it ends with `code`."""
    env = {**os.environ, "MS_RDR_ENABLE": "1", "MS_RDR_PATH": str(folder), **env}
    done = subprocess.run(
        [sys.executable, "-c", HEAD + script], env=env, cwd=folder, capture_output=True, text=True
    )
    assert code is None or done.returncode == code, done.stderr
    return done


def records(folder: Path) -> Path:
    return folder / "rank_0" / "rdr"


def first_bad(folder: Path) -> dict:
    return json.loads((records(folder) / "first_bad.json").read_text())


def last_operators(folder: Path) -> list[dict]:
    (path,) = records(folder).glob("DEBUG.last_operators.*.csv")
    with path.open() as file:
        return list(csv.DictReader(file))


def test_a_compiled_function_that_fails_leaves_all_that_is_known(tmp_path):
    run(tmp_path, """
@ms.jit
def pick(x, i):
    y = ops.exp(x)
    return ops.gather(y, i, 0)
pick(x, Tensor([0])); pick(x, Tensor([7]))
""", code=1)  # fmt: skip
    names = {path.name for path in records(tmp_path).iterdir()}
    assert {"README.txt", "first_bad.json"} <= names
    others = names - {"README.txt", "first_bad.json"}
    assert all(NAME.match(name) for name in others), others
    kinds = {name.split(".")[0] + "." + name.split(".")[1] for name in others}
    assert {"PIPELINE.00_captured", "SESSION.graph_build", "SESSION.graph_exec_order"} <= kinds
    assert {"RUNTIME_FRAMEWORK.mem_address_list", "DEBUG.stack", "DEBUG.environment"} <= kinds
    bad = first_bad(tmp_path)
    assert bad["operator"].endswith("Gather-op0") and bad["reason"].startswith("IndexError")
    assert bad["source"][0] == "<string>:10"
    assert [row["Op Type"] for row in last_operators(tmp_path)][:2] == ["Exp", "Exp"]
    readme = (records(tmp_path) / "README.txt").read_text()
    assert "What failed first: Default/Gather-op0" in readme and "IndexError" in readme


def test_statistics_of_the_last_operators(tmp_path):
    run(tmp_path, """
y = ops.log(x - 1.0)
ops.gather(y, Tensor([5]), 0)
""", code=1)  # fmt: skip
    rows = {(r["Op Type"], r["IO"], r["Slot"]): r for r in last_operators(tmp_path)}
    made = rows["Log", "output", "0"]
    assert (made["Shape"], made["Data Type"], made["Negative Inf Count"]) == ("(2,3)", "float32", "6")
    assert rows["Log", "input", "0"]["Zero Count"] == "6"
    bad = first_bad(tmp_path)
    assert (bad["type"], bad["reason"], bad["slot"]) == ("Log", "-inf", 0)


def test_an_exception_of_the_users_own_code_is_recorded(tmp_path):
    run(tmp_path, "ops.relu(x)\nraise RuntimeError('mine')", code=1)
    readme = (records(tmp_path) / "README.txt").read_text()
    assert "nobody caught it" in readme and "RuntimeError: mine" in readme
    assert last_operators(tmp_path)[0]["Op Type"] == "ReLU"
    assert not (records(tmp_path) / "first_bad.json").exists()


def test_an_exception_in_a_thread_is_recorded(tmp_path):
    run(tmp_path, """
import threading
def work():
    raise ValueError("in a thread")
ops.relu(x)
t = threading.Thread(target=work, name="worker"); t.start(); t.join()
""", code=0)  # fmt: skip
    assert "raised in worker" in (records(tmp_path) / "README.txt").read_text()


def test_a_failing_compilation_is_recorded(tmp_path):
    run(tmp_path, """
@ms.jit
def f(x):
    return ops.matmul(x, x)
f(x)
""", code=1)  # fmt: skip
    assert "being compiled" in (records(tmp_path) / "README.txt").read_text()


def test_a_caught_error_goes_on_and_is_written_once(tmp_path):
    done = run(tmp_path, """
@ms.jit
def pick(x, i):
    return ops.gather(x, i, 0)
w = ms.Parameter(Tensor([1.0]))
@ms.jit
def step(x):
    ops.assign(w, w + 1.0)
    return x
step(x)
for i in (7, 8):
    try:
        pick(x, Tensor([i]))
    except IndexError:
        pass
print(step(x).shape, w.asnumpy())
""", code=0)  # fmt: skip
    assert done.stdout == "(2, 3) [3.]\n"
    assert "index 7" in (records(tmp_path) / "README.txt").read_text() or first_bad(tmp_path)
    assert len(list(records(tmp_path).glob("DEBUG.stack.*"))) == 1


def test_parameters_are_not_changed_by_looking_again(tmp_path):
    done = run(tmp_path, """
w = ms.Parameter(Tensor([1.0]))
@ms.jit
def f(x, i):
    ops.assign(w, w * 2.0)
    return ops.gather(x, i, 0)
f(x, Tensor([0]))
try:
    f(x, Tensor([9]))
except IndexError:
    pass
print(w.asnumpy())
""", code=0)  # fmt: skip
    assert done.stdout == "[2.]\n" and (records(tmp_path) / "README.txt").exists()


def test_what_prints_is_not_printed_twice(tmp_path):
    done = run(tmp_path, """
@ms.jit
def f(x, i):
    ops.print_("once")
    return ops.gather(x, i, 0)
f(x, Tensor([9]))
""", code=1)  # fmt: skip
    assert done.stdout.count("once") <= 1
    assert "would act twice" in (records(tmp_path) / "README.txt").read_text()


def test_mode_2_writes_at_a_normal_end(tmp_path):
    script = "ms.jit(lambda x: ops.relu(x) + 1)(x)"
    run(tmp_path, script, code=0, MS_RDR_MODE="2")
    assert "ended without an error" in (records(tmp_path) / "README.txt").read_text()
    assert list(records(tmp_path).glob("PIPELINE.*"))


def test_mode_1_leaves_nothing_of_a_run_that_succeeds(tmp_path):
    run(tmp_path, "ms.jit(lambda x: ops.relu(x) + 1)(x); ops.relu(x)", code=0)
    assert list(tmp_path.rglob("*.*")) == []


def start(folder: Path, script: str) -> subprocess.Popen:
    """The script, when it has printed a line."""
    env = {**os.environ, "MS_RDR_ENABLE": "1", "MS_RDR_PATH": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD + script], env=env, cwd=folder, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


LOOP = """
import time
for i in range(10**9):
    ops.relu(x)
    if i == 3:
        print("ready", flush=True)
    time.sleep(0.001)
"""


def test_a_terminated_process_writes_and_ends_by_the_signal(tmp_path):
    process = start(tmp_path, LOOP)
    process.terminate()
    assert process.wait(30) == -signal.SIGTERM
    assert "ended by SIGTERM" in (records(tmp_path) / "README.txt").read_text()
    assert {row["Op Type"] for row in last_operators(tmp_path)} == {"ReLU"}


def test_a_killed_process_leaves_what_it_did_at_last(tmp_path):
    process = start(tmp_path, LOOP)
    process.kill()
    process.wait(30)
    (journal,) = records(tmp_path).parent.glob("DEBUG.running.*.txt")
    done = CliRunner().invoke(app, [str(records(tmp_path))])
    assert done.exit_code == 0, done.output
    assert "Default/ReLU-op" in done.output and "float32[2, 3]" in done.output
    assert journal.read_bytes().startswith(b"step ")


@pytest.mark.parametrize(
    "fault, number",
    [("ctypes.string_at(0)", signal.SIGSEGV), ("os.abort()", signal.SIGABRT)],
)  # fmt: skip
def test_a_fault_of_native_code_leaves_both_stacks(fault, number, tmp_path):
    done = run(tmp_path, f"""
import ctypes, os
ops.relu(x)
def crash():
    {fault}
crash()
""")  # fmt: skip
    assert done.returncode == -number
    (path,) = records(tmp_path).parent.glob("DEBUG.fault.*.txt")
    text = path.read_text()
    assert "in crash" in text
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        head, stack = text.split("\n\n", 1)[0].split("\n", 1)
        assert head == "Native stack, the innermost call first:" and "(+0x" in stack and "libc" in stack
        assert text.index(head) < text.index("in crash")
    shown = CliRunner().invoke(app, [str(records(tmp_path))]).output
    assert "in crash" in shown and "ReLU" in shown


def test_faults_are_left_alone_when_the_recorder_ends(tmp_path):
    done = run(tmp_path, """
import faulthandler, os
from mycelia.debug.recorder import crash
crash.ignore()
os.abort()
""")  # fmt: skip
    assert done.returncode == -signal.SIGABRT and "Native stack" not in done.stderr
    assert not list(tmp_path.rglob("DEBUG.fault.*"))


def test_secrets_are_not_written(tmp_path):
    run(tmp_path, "ops.relu(x); raise ValueError()", code=1, MYCELIA_CACHE_TOKEN="swordfish")
    text = "".join(path.read_text() for path in records(tmp_path).iterdir())
    assert "swordfish" not in text and "MYCELIA_CACHE_TOKEN" in text


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    done = run(tmp_path, "ops.relu(x); print('ok')", code=0, MS_RDR_PATH=str(tmp_path / "file" / "x"))
    assert done.stdout == "ok\n" and "run recorder cannot write" in done.stderr


def test_the_command_tells_what_failed_first(tmp_path):
    run(tmp_path, "y = ops.log(x - 2.0)\nraise RuntimeError('later')", code=1)
    for folder in (tmp_path, records(tmp_path)):
        done = CliRunner().invoke(app, [str(folder)])
        assert done.exit_code == 0, done.output
        assert "Default/Log-op0" in done.output and "nan" in done.output and "RuntimeError" in done.output
    found = json.loads(CliRunner().invoke(app, [str(tmp_path), "--json"]).output)
    assert found["first_bad"]["type"] == "Log"


@pytest.mark.parametrize("what", ["first_bad.json", "README.txt"])
def test_a_damaged_record_is_told(tmp_path, what):
    run(tmp_path, "y = ops.log(x - 2.0)\nraise RuntimeError('later')", code=1)
    (records(tmp_path) / what).write_bytes(b"\xff{")
    done = CliRunner().invoke(app, [str(tmp_path)])
    assert done.exit_code in (0, 1) and not isinstance(done.exception, (UnicodeError, ValueError))


def test_the_journal_says_what_was_noted_at_last(tmp_path):
    from mycelia.debug.recorder.crash import Journal

    journal = Journal(str(tmp_path))
    for text in ("a long text about an operator", "short", "x" * 10_000):
        journal.note(text)
        assert text.startswith(Journal.read(journal.path)) and Journal.read(journal.path)
    journal.close()
    assert not list(tmp_path.iterdir())
