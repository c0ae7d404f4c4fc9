"""`mycelia msrun`: what workers are told, what ends when one fails, who is to blame. Most workers are
shells.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mycelia import communication
from mycelia.cli import app
from mycelia.communication import GlobalComm, management
from mycelia.engine.communication import LaunchConfig, from_environment, launch
from mycelia.parallel import launcher
from mycelia.parallel.engines import connect, rendezvous
from mycelia.parallel.launcher import Job

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups and shells are POSIX")


def job(tmp_path, script, ranks=2, **options):
    return Job(["sh", "-c", script], ranks, log_dir=tmp_path / "logs", **options)


def test_each_rank_has_a_log_and_is_shown_behind_its_number(tmp_path, capfd):
    assert launcher.run(job(tmp_path, 'echo "this is $RANK_ID of $RANK_SIZE"', 3)) == 0
    logs = tmp_path / "logs"
    assert sorted(p.name for p in logs.iterdir()) == [f"worker_{r}.log" for r in range(3)]
    assert (logs / "worker_2.log").read_text() == "this is 2 of 3\n"
    assert sorted(capfd.readouterr().out.splitlines()) == [f"[rank {r}] this is {r} of 3" for r in range(3)]


def test_only_some_are_shown_and_logs_are_called_as_asked(tmp_path, capfd):
    found = launcher.run(job(tmp_path, "echo $RANK_ID", tail=[1], worker_log_name="w_[rankid]_x"))
    assert found == 0 and capfd.readouterr().out == "[rank 1] 1\n"
    assert (tmp_path / "logs" / "w_0_x.log").read_text() == "0\n"


@pytest.mark.parametrize(("fate", "code"), [("exit 3", 3), ("kill -9 $$", 137)])
def test_a_rank_that_fails_ends_all_and_gives_its_code(tmp_path, fate, code, capfd):
    """The others would wait for ever, and so would what they have started: all of them hold a pipe open."""
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    alive = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    script = f"""
    if [ $RANK_ID != 1 ]; then exec 9>{pipe}; sleep 100000 & echo begun; wait; fi
    until [ -s {tmp_path}/logs/worker_0.log ] && [ -s {tmp_path}/logs/worker_2.log ]; do :; done
    {fate}"""
    assert launcher.run(job(tmp_path, script, 3)) == code
    os.set_blocking(alive, True)
    assert os.read(alive, 1) == b""  # comes when nobody holds it any more
    os.close(alive)
    assert f"rank 1 has failed with exit code {code}" in capfd.readouterr().out


def test_a_rank_that_only_missed_another_is_not_to_blame(tmp_path, capfd):
    """It may well end first: the one that left it alone is still busy with its own end."""
    script = """
    if [ $RANK_ID = 0 ]; then echo "rank 1 takes no part in barrier()"; exit 1; fi
    while ! grep -q "takes no part" "$LOGS/worker_0.log"; do :; done
    echo "Traceback (most recent call last):"; echo "the first"
    echo "Traceback (most recent call last):"; echo "the last"; exit 5"""
    assert launcher.run(job(tmp_path, f'LOGS="{tmp_path}/logs"; {script}')) == 5
    told = capfd.readouterr().out.split("\nmsrun: ")[1]
    assert told.splitlines()[0].startswith("rank 1 has failed with exit code 5")
    assert told.splitlines()[1:] == ["Traceback (most recent call last):", "the last"]


class ClosedScreen:
    """What `| head` leaves."""

    encoding = "ascii"

    def __init__(self):
        self.shown = []

    def write(self, text):
        if len(self.shown) >= 2:
            raise BrokenPipeError
        self.shown.append(text)

    def flush(self):
        pass


def test_logs_are_whole_whatever_the_screen_takes(tmp_path, monkeypatch):
    """Nothing ends when it takes no more, nor by letters that it does not have."""
    screen = ClosedScreen()
    monkeypatch.setattr(sys, "stdout", screen)
    assert launcher.run(job(tmp_path, "echo grün; printf 'one\ntwo'; exit 0", 1)) == 0
    assert screen.shown == ["[rank 0] gr\\xfcn\n", "[rank 0] one\n"]
    assert (tmp_path / "logs" / "worker_0.log").read_text() == "grün\none\ntwo"


RANKS_BY_ARRIVAL = """
import os, signal, sys, time
from mycelia.engine.communication.launch import tell_launcher

local = int(os.environ["LOCAL_RANK"])
tell_launcher(1 - local)
print("met", flush=True)


def await_other(word):
    log = os.path.join(sys.argv[1], f"worker_{1 - local}.log")
    while not os.path.exists(log) or word not in open(log).read():
        time.sleep(0.01)


if local == 1:  # rank 0 has missed rank 1, which is the other
    await_other("met")
    print("rank 1 takes no part in barrier()", flush=True)
    sys.exit(1)
await_other("takes no part")
if sys.argv[2] == "0":  # its end is not what is looked for
    signal.pause()
sys.exit(5)
"""


@pytest.mark.parametrize("node_rank", [-1, 0])
def test_ranks_that_were_given_by_arrival_are_blamed_by_these(tmp_path, capfd, monkeypatch, node_rank):
    """Not by their place on the machine, which is another number."""
    monkeypatch.setattr(launcher, "_meeting_place", lambda job: None)  # which is on another machine
    monkeypatch.setattr(launcher, "PATIENCE_S", 120.0)  # this machine may be slow
    script = tmp_path / "work.py"
    script.write_text(RANKS_BY_ARRIVAL)
    command = [sys.executable, str(script), str(tmp_path), str(node_rank)]
    code = launcher.run(Job(command, 3, 2, log_dir=tmp_path, node_rank=node_rank))
    told = capfd.readouterr().out.split("\nmsrun: ")[1]
    if node_rank < 0:
        assert code == 5 and told.startswith("rank 1 has failed with exit code 5")
        assert "worker_0.log ends:" in told
    else:  # local rank 1 is rank 1, which misses itself
        assert code == 1 and told.startswith("rank 1 has failed with exit code 1")


def test_a_pipe_for_the_rank_that_is_another_file_by_now_is_left_alone(tmp_path, monkeypatch):
    with (tmp_path / "mine").open("w+b", buffering=0) as other:
        for told in (f"{other.fileno()} {os.fstat(other.fileno()).st_ino}", "999999 5", "x y", ""):
            monkeypatch.setenv(launch.RANK_PIPE, told)
            launch.tell_launcher(3)
        assert (tmp_path / "mine").read_bytes() == b""


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="macOS has waitid from Python 3.13 on")
def test_no_process_is_signalled_whose_number_may_be_another_ones(tmp_path, monkeypatch):
    """Workers that have ended keep their numbers until their groups were ended."""
    signalled, ended, killpg = [], set(), os.killpg

    def end_group(group, number):
        os.waitid(os.P_PID, group, os.WEXITED | os.WNOWAIT | os.WNOHANG)  # raises if it is not ours any more
        signalled.append(number)
        ended.add(group)
        killpg(group, number)

    monkeypatch.setattr(os, "killpg", end_group)
    assert launcher.run(job(tmp_path, "exit 0", 2)) == 0
    assert signalled == [signal.SIGTERM] * 2 + [signal.SIGKILL] * 2
    assert len(ended) == 2
    for process in ended:  # nothing is left of them either
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)


def test_workers_of_a_launcher_that_was_killed_end_with_what_they_have_started(tmp_path):
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    alive = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    script = f"exec 9>{pipe}; sleep 100000 & echo begun; if [ $RANK_ID = 0 ]; then exit 0; fi; wait"
    command = [sys.executable, "-m", "mycelia", "msrun", "--worker_num", "2", "--log_dir", str(tmp_path),
               "sh", "-c", script]  # fmt: skip
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    with killed.stdout as shown:
        assert sorted([shown.readline(), shown.readline()]) == [b"[rank 0] begun\n", b"[rank 1] begun\n"]
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    os.set_blocking(alive, True)
    assert os.read(alive, 1) == b""  # comes when nobody holds it any more
    os.close(alive)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_launcher_that_is_asked_to_end_ends_its_workers(tmp_path, name):
    """Also when its terminal goes away: workers have none, so that nobody else would tell them."""
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    alive = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    number = getattr(signal, name)
    script = f"exec 9>{pipe}; kill -{number.value} {os.getpid()}; sleep 100000 & wait"
    before = signal.signal(number, signal.default_int_handler)  # tests may run where it is ignored
    try:
        assert launcher.run(job(tmp_path, script, 1)) == 128 + number
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
    os.set_blocking(alive, True)
    assert os.read(alive, 1) == b""
    os.close(alive)


def test_workers_are_told_what_mindspores_launcher_tells(tmp_path, monkeypatch):
    monkeypatch.delenv("MYCELIA_JOB_TOKEN", raising=False)
    told = launcher.environment(Job(["x.py"], 4, 2, "10.0.0.1", node_rank=1), 1, 8118, "secret")
    expected = {"RANK_ID": "3", "RANK_SIZE": "4", "MS_ROLE": "MS_WORKER", "MS_WORKER_NUM": "4",
                "MS_NODE_ID": "3", "DEVICE_ID": "1"}  # fmt: skip
    assert {name: told[name] for name in expected} == expected
    found = from_environment(told)
    assert (found.rank, found.size, found.address, found.port, found.local) == (
        3,
        4,
        "10.0.0.1",
        8118,
        (1, 2),
    )
    by_arrival = launcher.environment(Job(["x.py"], 4, 2, "10.0.0.1"), 1, 8118, "")
    assert "RANK_ID" not in by_arrival and from_environment(by_arrival).rank == -1


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
          "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, ("mpi", 2, 4, (1, 2))),
        ({"PMI_SIZE": "2", "PMI_RANK": "1", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"},
         ("mpi", 1, 2, (1, 2))),
        ({"WORLD_SIZE": "2", "RANK": "0", "MASTER_PORT": "29500"}, ("torchrun", 0, 2, (0, 2))),
        ({"RANK_SIZE": "1"}, ("msrun", 0, 1, (0, 1))),
    ],
)  # fmt: skip
def test_what_other_launchers_tell(told, expected):
    found = from_environment(told)
    assert (found.launcher, found.rank, found.size, found.local) == expected


def test_workers_started_by_hand_meet_at_a_scheduler(monkeypatch):
    """MindSpore's way without msrun: a process with MS_ROLE=MS_SCHED, and workers that know where it is."""
    place, listen = rendezvous.listen("127.0.0.1", 0), rendezvous.listen
    port = place.getsockname()[1]  # held, so that nobody else gets it meanwhile
    monkeypatch.setattr(rendezvous, "listen", lambda host, at: place if at == port else listen(host, at))
    told = {"MS_WORKER_NUM": "2", "MS_SCHED_PORT": str(port)}
    for name, value in {**told, "MS_ROLE": "MS_SCHED"}.items():
        monkeypatch.setenv(name, value)
    met = []

    def work():
        found = connect(from_environment({**told, "MS_ROLE": "MS_WORKER"}))
        met.append((found.rank, found.all_reduce(np.ones(1)).item()))

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    with pytest.raises(SystemExit) as ended:
        communication.init()
    for worker in workers:
        worker.join()
    assert ended.value.code == 0 and sorted(met) == [(0, 2.0), (1, 2.0)] and not GlobalComm.INITED


@pytest.mark.parametrize(("asked", "waits"), [(0.0, 1e6), (5.0, 5.0), (1e10, 1e6), (float("inf"), 1e6)])
def test_no_limit_of_time_is_the_longest_that_systems_take(asked, waits):
    assert LaunchConfig("socket", "msrun", 0, 1, timeout_s=asked).timeout_s == waits


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"RANK_SIZE": "2"}, "nobody says where they meet"),
        ({"MS_WORKER_NUM": "two"}, "MS_WORKER_NUM must be a number, but is 'two'"),
        ({"WORLD_SIZE": "2", "RANK": "0"}, "does not say MASTER_PORT"),
        ({"MS_WORKER_NUM": "2", "RANK_ID": "0"}, "does not say MS_SCHED_PORT"),
        ({"MS_WORKER_NUM": "0", "RANK_ID": "0"}, "rank 0 of 0 processes, which does not exist"),
        ({"WORLD_SIZE": "1", "RANK": "1"}, "rank 1 of 1 processes, which does not exist"),
        ({"WORLD_SIZE": "2", "RANK": "0", "MASTER_PORT": "65536"}, r"ports are in \[0, 65535\]"),
    ],
)
def test_environments_that_make_no_sense(told, message):
    with pytest.raises((RuntimeError, ValueError), match=message):
        from_environment(told)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"worker_num": 0}, "--worker_num must be positive"),
        ({"worker_num": 2, "local_worker_num": 3}, r"--local_worker_num must be in \[1, 2\]"),
        ({"worker_num": 2, "master_port": 80}, r"--master_port must be in \[1024, 65535\]"),
        ({"worker_num": 2, "cluster_time_out": 0}, r"--cluster_time_out must be in \[1, 1000000\]"),
        ({"worker_num": 4, "local_worker_num": 2, "node_rank": 2}, "node 2 of 2 processes each does not fit"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Job(["x.py"], **options)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--join", "perhaps", "x.py"], 2, "--join must be True or False"),
        (["--tail_worker_log", "first", "x.py"], 2, "--tail_worker_log must be local ranks such as 0,1"),
        (["--worker_num", "0", "x.py"], 2, "--worker_num must be positive, but got 0"),
        (["no_such_program"], 1, "No such file or directory: 'no_such_program'"),
    ],
)
def test_what_a_command_asks_for_in_vain_is_told_in_words(tmp_path, words, code, told):
    found = CliRunner().invoke(app, ["msrun", "--log_dir", str(tmp_path), *words])
    assert found.exit_code == code and "Traceback" not in found.output
    assert told in " ".join(found.output.replace("│", " ").split())


def test_a_scheduler_that_nobody_comes_to_fails():
    """Shells and schedulers of jobs see it by its exit code."""
    nobody = LaunchConfig("", "scheduler", -1, 2, timeout_s=0.001)
    with pytest.raises(SystemExit, match="2 have not come|ranks 0, 1 have not come"):
        management._be_the_meeting_place(nobody)


SCRIPT = """
import sys
import mindspore as ms
from mindspore.communication import get_rank, get_group_size, init

init()
total = ms.ops.AllReduce()(ms.Tensor([get_rank() + 1.0]))
print("total", total.asnumpy().tolist(), get_group_size(), sys.argv[1:])
if get_rank() == 1:
    raise ValueError("rank one has had enough")
ms.ops.Barrier()()
"""


def test_a_script_of_mindspore_reduces_and_its_traceback_is_shown_last(tmp_path, capfd):
    """Two real processes over sockets; the second fails, the first would wait for it."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    assert launcher.run(Job([str(script), "--lr", "1"], 2, log_dir=tmp_path)) == 1
    for rank in (0, 1):
        assert "total [3.0] 2 ['--lr', '1']" in (tmp_path / f"worker_{rank}.log").read_text()
    assert "rank 1 takes no part in barrier()" in (tmp_path / "worker_0.log").read_text()
    last = capfd.readouterr().out.rstrip().splitlines()[-1]
    assert last == "ValueError: rank one has had enough"


def test_a_job_that_is_not_joined_leaves_its_launcher_behind(tmp_path):
    command = [sys.executable, "-m", "mycelia", "msrun", "--worker_num", "1", "--join=False",
               "--log_dir", str(tmp_path), "sh", "-c", "echo done"]  # fmt: skip
    number = launcher.leave_running(command, tmp_path)
    assert os.waitpid(number, 0)[1] == 0
    assert (tmp_path / "worker_0.log").read_text() == "done\n"
    assert Path(tmp_path / "msrun.log").read_text() == "[rank 0] done\n"
    assert not GlobalComm.INITED
