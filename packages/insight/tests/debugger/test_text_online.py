"""`mycelia-debug http://HOST:PORT`: the text interface over a running training, with a real service."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from rich.console import Console
from typer.testing import CliRunner

pytest.importorskip("grpc", reason="the debugger's connection is gRPC")

from mycelia.debug.cli import app
from mycelia.debug.text import shell
from mycelia.debug.text.commands import run_line
from mycelia.debug.text.place import Place
from mycelia.debug.text.screen import Screen
from mycelia.debug.text.service import Service, ServiceSource

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "service")]
from test_service import Command, free_port  # noqa: E402

SCRIPT = Path(__file__).with_name("debugged.py")
MAIN = "from mycelia.debug.cli import main; main()"
TOKEN = "a token of 1"
BAD = 4  # the step that makes a NaN


class Desk:
    """A service that takes trainings, one that is started for it, and lines that are typed."""

    def __init__(self, folder: Path, *options: str):
        self.command, self.listens = Command(folder), free_port()
        (folder / "runs").mkdir()
        more = ["--enable-debugger", "1", "--debugger-port", str(self.listens), *options]
        started = self.command.start(folder / "runs", *more)
        assert started.returncode == 0, started.stderr
        self.address = f"http://127.0.0.1:{self.command.port}"
        self.training: subprocess.Popen | None = None
        self.trainings: list[subprocess.Popen] = []
        self.file = io.StringIO()
        self.screen = Screen(Console(file=self.file, width=200, highlight=False))
        self.place: Place | None = None

    def train(self, *options: str, token: str = "", rank: int = 0) -> subprocess.Popen:
        known = {
            "ENABLE_MS_DEBUGGER": "1", "MS_DEBUGGER_HOST": "127.0.0.1",
            "MS_DEBUGGER_PORT": str(self.listens), "MYCELIA_DEBUGGER_TIMEOUT": "600",
            "MYCELIA_DEBUGGER_TOKEN": token, "RANK_ID": str(rank),
        }  # fmt: skip
        self.training = subprocess.Popen(
            [sys.executable, str(SCRIPT), *options], env={**os.environ, **known},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.trainings.append(self.training)
        return self.training

    def open(self, token: str = "", ranks: int = 1) -> None:
        """The text interface, as soon as the trainings wait."""
        source = ServiceSource(Service(self.address, token))
        while source._metadata["state"] != "waiting" or len(source.get_ranks()) < ranks:
            assert self.training.poll() is None, self.training.communicate()
            source._wait(0)
        self.place = Place(source)

    def __call__(self, line: str, right: bool = True) -> str:
        self.file.seek(0)
        self.file.truncate()
        assert run_line(self.place, self.screen, line) is right, self.file.getvalue()
        return self.file.getvalue()

    def run(self, *words: str, **variables: str) -> Result:
        return CliRunner().invoke(app, [self.address, *words], env=variables)

    def close(self) -> None:
        for training in self.trainings:
            training.kill()
            training.communicate()
        self.command("stop", "--port", str(self.command.port))


@pytest.fixture
def desk(tmp_path):
    found = Desk(tmp_path)
    yield found
    found.close()


def test_a_training_is_moved_watched_asked_why_and_ended(desk, tmp_path):
    desk.train("--bad", str(BAD), "--steps", "100000")
    desk.open()
    assert "has nothing in step 0" in desk("show net.fc3.weight", right=False)
    assert desk("next") == "step 1\n"
    assert desk("step 2") == "step 2\n"  # it runs as far as that
    rows = [line.split() for line in desk("steps").splitlines()[1:]]
    assert [row[-6:-4] for row in rows] == [["1", rows[0][-5]], ["2", rows[0][-5]]] and rows[1][0] == ">"

    weights = desk("nodes weights")
    assert all(name in weights for name in ("conv1.weight", "fc3.bias"))
    kinds = [node.kind for node in desk.place.nodes]
    assert kinds.index("Conv2D") < kinds.index("MaxPool") < kinds.index("Log")  # in order of execution
    (log,) = [node for node in desk.place.nodes if node.kind == "Log"]
    assert "ops.log(scale)" in desk(f"stack {log.name}") and "debugged.py" in desk(f"stack {log.name}")
    assert "inputs" in desk(f"neighbours {log.name}")

    now = desk("show net.fc3.weight [0, :4]").splitlines()
    assert "float32 [10, 84]  step 2" in now[0]
    assert desk("back") == "step 1\n" and desk("show net.fc3.weight [0, :4]").splitlines()[1] != now[1]
    assert desk("step last") == "step 2\n" and desk("show net.fc3.weight [0,:4]").splitlines() == now
    assert "840 elements of step 2 differ from step 1" in desk("compare net.fc3.weight")
    assert "0 of 840" in desk("compare net.fc3.weight 1 tolerance=1e9")
    assert [row.split()[0] for row in desk("history net.fc3.weight").splitlines()[2:]] == ["1", "2"]
    desk(f"export net.fc3.weight {tmp_path / 'w.npy'}")
    assert np.load(tmp_path / "w.npy").shape == (10, 84)

    told = desk("watch tensor_overflow")
    assert told.splitlines()[1].split()[:2] == ["1", "tensor_overflow"]
    assert desk("continue").startswith(f"step {BAD}: ")  # the hit stops it
    assert "Log" in desk("hits")
    desk("nodes bad")
    assert log.name in [node.name for node in desk.place.listed]
    assert desk("why").startswith(f"{log.name.split('/')[-2]}/{log.name.split('/')[-1]}:0  nan  1 of 1")
    assert "made here of finite inputs" in desk(f"why {log.name}") and "ops.log(scale)" in desk("why")
    assert "All values of step 3 are finite" in (desk("back") and desk("why"))
    assert desk("step hit").startswith(f"step {BAD}: ")  # through steps that are kept
    assert desk("unwatch 1") == "0 watchpoints are left.\n"
    assert "watchpoint" in desk("hits", right=False)
    assert desk("node").startswith(f"step {BAD + 1} at ")
    assert desk("node fc3-Dense/Dense-op0").startswith(f"step {BAD + 1} at Dense-op0")
    assert desk("next") == f"step {BAD + 1}\n"  # the rest of it
    desk("terminate")
    output, _ = desk.training.communicate()
    assert f"step {BAD + 2}" not in output and "trained" not in output
    assert "has ended" in desk.place.source.where()


def test_an_operator_runs_again_leaves_as_a_script_and_a_weight_is_edited(desk, tmp_path):
    desk.train("--bad", "2", "--steps", "4")
    desk.open()
    desk("step +2")
    (log,) = [node.name for node in desk.place.nodes if node.kind == "Log"]
    assert "0 elements are others" in desk(f"rerun {log}")
    told = desk(f"rerun {log} 0=1.0")
    assert "1 elements are others" in told and "made      0.0" in told and "recorded  nan" in told
    assert "made      -inf" in desk(f"rerun {log} 0=0")
    assert "made      inf" in desk(f"rerun {log} 0=inf")
    for wrong in ("0", "0=x", "7=1", "x=1"):
        desk(f"rerun {log} {wrong}", right=False)
    script = tmp_path / "operator.py"
    desk(f"script {log} {script}")
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert ran.returncode == 0 and "as recorded" in ran.stdout and "not as" not in ran.stdout, ran.stderr
    assert "must end in .py" in desk(f"script {log} {tmp_path / 'x'}", right=False)

    desk("set net.fc3.bias [2] 42")
    for wrong in ("[99] 1", "[1,2,3]", "x"):
        desk(f"set net.fc3.bias {wrong}", right=False)
    assert "no Parameter" in desk(f"set {log} 1", right=False)
    desk("next")
    assert desk("show net.fc3.bias [2]").splitlines()[1] == "42.0"
    assert "the training has ended" in desk("continue")
    assert "ended" in desk("next", right=False)


def test_ctrl_c_ends_the_waiting_and_pause_the_running(desk, monkeypatch):
    desk.train("--steps", "100000")
    desk.open()
    service, ask = desk.place.source.service, desk.place.source.service.ask
    interrupts = [signal.SIGINT]

    def asked(path, *more, **named):
        if path.endswith("poll-data") and interrupts:
            os.kill(os.getpid(), interrupts.pop())  # as a terminal does while something is waited for
        return ask(path, *more, **named)

    monkeypatch.setattr(service, "ask", asked)
    lines = iter(["continue", "next", "pause", "pause", "next", "terminate"])
    prompts: list[str] = []

    def typed(prompt):
        prompts.append(prompt)
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr(shell, "_reader", lambda place: typed)
    shell.run_shell(desk.place.source, desk.screen)
    told = desk.file.getvalue()
    assert not interrupts and "(running)" in prompts[1]
    assert "the training runs: pause it first" in told  # what `next` was told
    paused = int(prompts[3].removeprefix("step ").removesuffix("> "))
    assert prompts[4:6] == [f"step {paused}> ", f"step {paused + 1}> "]  # the second pause changes nothing
    desk.training.communicate()
    assert "has ended" in prompts[6]


def test_two_prompts_over_one_training_see_what_the_other_did(desk):
    desk.train("--steps", "100000")
    desk.open()
    mine, theirs = desk.place, Place(ServiceSource(Service(desk.address)))

    def other(line: str, right: bool = True) -> str:
        desk.place = theirs
        try:
            return desk(line, right)
        finally:
            desk.place = mine

    desk("next")
    assert desk("watch tensor_all_zero fc3.bias").splitlines()[1].split()[1] == "tensor_all_zero"
    assert "tensor_all_zero" in other("watch") and other("next") == "step 2\n"
    assert len(desk("steps").splitlines()) == 3
    theirs.source.service.ask(  # it is left running, as after Ctrl-C
        f"{theirs.source.path}/control",
        body={"mode": "continue", "level": "step", "steps": -1},
    )
    assert "the training runs: pause it first" in desk("next", right=False)
    desk("pause")
    assert other("unwatch all") == "0 watchpoints are left.\n" and "no watchpoints" in desk("watch")
    other("terminate")
    assert "has ended" in desk("next", right=False) or "there is no training" in desk("next", right=False)


def test_clients_that_are_frozen_killed_or_slow_hold_up_nobody(desk):
    training = desk.train("--steps", "100000")
    desk.open()
    desk("next")
    desk.place.source.service.ask(  # it runs, and who waits for it asks again and again
        f"{desk.place.source.path}/control",
        body={"mode": "continue", "level": "step", "steps": -1},
    )
    waits = "import sys, time\nfrom mycelia.debug.text.service import Service, ServiceSource\n"
    waits += "source = ServiceSource(Service(sys.argv[1]))\nprint('asks', flush=True)\n"
    waits += "while True: source._wait(source._metadata['pos'])"
    clients = []
    with contextlib.ExitStack() as stack:
        for how in (signal.SIGSTOP, signal.SIGKILL):
            client = subprocess.Popen(
                [sys.executable, "-c", waits, desk.address], stdout=subprocess.PIPE, text=True
            )
            stack.callback(client.communicate)
            stack.callback(client.kill)
            assert client.stdout.readline() == "asks\n"
            client.send_signal(how)
            clients.append(client)
        for port, half in (
            (
                desk.command.port,
                b"POST /v1/mindinsight/debugger/sessions/0/control HTTP/1.1\r\nContent-Length: 99\r\n\r\n{",
            ),
            (desk.listens, b"PRI * HTTP/2.0\r\n\r\nSM"),
        ):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            slow.sendall(half)
        desk("pause")
        now = int(re.match(r"step (\d+)", desk("next"))[1])
        assert desk("next") == f"step {now + 1}\n" and desk("back") == f"step {now}\n"  # and looked back at
        assert "float32 [10]" in desk("show net.fc3.bias [0]")
        clients[0].send_signal(signal.SIGCONT)
        assert clients[0].poll() is None  # it goes on where it was
        assert desk(f"step {now + 2}") == f"step {now + 2}\n"
        desk("terminate")
        output, told = training.communicate()
        assert training.returncode == 0 and "Traceback" not in told and "trained" not in output


def test_several_ranks_go_together_and_are_looked_at_one_by_one(desk):
    both = [desk.train("--bad", "2" if rank else "0", "--steps", "100000", rank=rank) for rank in (0, 1)]
    desk.open(ranks=2)
    assert desk("rank").startswith("rank 0 of 0, 1") and "NaN" not in desk("next")
    for rank in (0, 1):
        desk(f"rank {rank}")
        (log,) = [node.name for node in desk.place.nodes if node.kind == "Log"]
        assert desk(f"show {log}:input:0").splitlines()[1] == "2.0"
    desk("watch tensor_overflow Log-op")
    assert desk("continue").startswith("step 2: ")
    assert "Log" in desk("hits") and "nan" in desk("why")
    desk("rank 0")
    assert "No tensor of step 2 hits" in desk("hits")  # the same node is watched, and is finite here
    assert "must be" in desk("rank 2", right=False)
    desk("terminate")
    for training in both:
        output, _ = training.communicate()
        assert "trained" not in output


def test_one_command_as_arguments_with_a_token(tmp_path):
    desk = Desk(tmp_path, "--token", TOKEN)
    try:
        wrong = desk.run("steps")
        assert (wrong.exit_code, wrong.stdout) == (1, "") and "asks for its token" in wrong.stderr
        desk.train("--steps", "3", token=TOKEN)
        desk.open(TOKEN)
        known = {"MYCELIA_DEBUGGER_TOKEN": TOKEN}
        moved = desk.run("step", "2", **known)
        assert (moved.exit_code, moved.stdout) == (0, "step 2\n"), moved.stderr
        shown = desk.run("show", "net.fc3.bias", "[0]", "--token", TOKEN)
        assert "float32 [10]  step 2" in shown.stdout
        assert desk.run(**known).stdout.endswith(" session 0: step 2\n")
        gone = desk.run("steps", "--session", "7", **known)
        assert gone.exit_code == 1 and "there is no session '7'" in gone.stderr
    finally:
        desk.close()


def test_what_is_no_service_is_told(tmp_path):
    nobody = f"http://127.0.0.1:{free_port()}"
    for address, told in ((nobody, "does not answer"), ("http://", "no address such as")):
        done = subprocess.run(
            [sys.executable, "-c", MAIN, address, "steps"], capture_output=True, text=True
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (1, "") and told in done.stderr
    command = Command(tmp_path)
    (tmp_path / "runs").mkdir()
    assert command.start(tmp_path / "runs").returncode == 0
    try:
        with pytest.raises(ValueError, match="takes no trainings"):
            ServiceSource(Service(f"http://127.0.0.1:{command.port}"))
    finally:
        command("stop", "--port", str(command.port))
