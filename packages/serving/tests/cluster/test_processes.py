"""Worker processes: what passes between them and the master, and how they end."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

from mycelia_serving.cluster.child import Settings
from mycelia_serving.cluster.master import Master
from mycelia_serving.cluster.supervise import Deployment
from mycelia_serving.errors import Code


def x(value) -> dict:
    return {"x": value}


@pytest.mark.parametrize(
    "value",
    [
        np.float32(1.5),
        np.arange(6, dtype=np.int16).reshape(2, 3),
        np.zeros((0, 3), np.float64),
        np.arange(40_000, dtype=np.float32).reshape(200, 200),  # through shared memory
        np.arange(400_000, dtype=np.int64),
    ],
    ids=["scalar", "small", "empty", "large", "larger"],
)
def test_values_pass_in_both_directions(calc, call_master, value):
    value = np.asarray(value)
    (result,) = call_master(calc.master).results("twice", x(value))
    np.testing.assert_array_equal(result["y"], value * 2)
    assert result["y"].dtype == value.dtype


def test_texts_pass_and_many_instances_keep_their_order(calc, call_master):
    call = call_master(calc.master)
    assert call.results("twice", x("no\u00e4"), x("b")) == [{"y": "no\u00e4" * 2}, {"y": "bb"}]
    results = call.results("twice", *[x(np.int64(i)) for i in range(200)])
    assert [int(r["y"]) for r in results] == [2 * i for i in range(200)]


def test_errors_keep_their_code_and_text(calc, call_master):
    (error,) = call_master(calc.master).results("wrong", x(np.int64(1)))
    assert error.code == Code.INVALID_INPUTS
    assert "no thank you" in error.message


def test_a_killed_worker_loses_no_request_and_comes_back(calc, call_master, until, alive):
    call = call_master(calc.master)
    before = {s["pid"] for s in calc.status()}
    sent = [call.start("wait", {"x": np.int64(i), "seconds": np.float32(0.02)}) for i in range(40)]
    victim = calc.status()[0]["pid"]
    os.kill(victim, signal.SIGKILL)
    assert [int(call.caller.wait(n).results[0]["y"]) for n in sent] == list(range(40))
    until(lambda: len(calc.workers()) == 2 and all(s["state"] == "ready" for s in calc.status()))
    assert not alive(victim)
    assert {s["pid"] for s in calc.status()} != before


def test_an_instance_that_ends_its_worker_twice_fails_alone(calc, call_master, until):
    call = call_master(calc.master)
    restarts = calc.restarts
    good = [call.start("wait", {"x": np.int64(i), "seconds": np.float32(0.02)}) for i in range(6)]
    results = call.results("risky", x(np.int64(1)), x(np.int64(666)), x(np.int64(2)))
    assert int(results[0]["y"]) == 1 and int(results[2]["y"]) == 2
    assert results[1].code == Code.SYSTEM_ERROR
    assert [int(call.caller.wait(n).results[0]["y"]) for n in good] == list(range(6))
    until(lambda: all(s["state"] == "ready" for s in calc.status()))
    assert calc.restarts - restarts <= 3


def test_a_call_that_runs_for_too_long_meets_its_deadline(calc, call_master, tmp_path):
    call, gate = call_master(calc.master), tmp_path / "gate"
    try:
        reply = call.reply("hold", x(str(gate)), deadline=time.monotonic() + 0.1)
    finally:
        gate.touch()  # however long the answer took to come, the call has not ended before it
    assert reply.error.code == Code.DEADLINE


def test_workers_are_added_and_taken_away_under_load(calc, call_master):
    call = call_master(calc.master)
    sent = [call.start("wait", {"x": np.int64(i), "seconds": np.float32(0.02)}) for i in range(30)]
    calc.scale(3, 60.0)
    assert len(calc.workers()) == 3
    sent += [call.start("wait", {"x": np.int64(i), "seconds": np.float32(0.02)}) for i in range(30, 60)]
    calc.scale(2, 60.0)
    assert len(calc.workers()) == 2
    assert [int(call.caller.wait(n).results[0]["y"]) for n in sent] == list(range(60))
    assert calc.master.lost_workers == 0 or calc.restarts == calc.master.lost_workers


# ---- workers that do not start ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "cause"),
    [
        ("raise ValueError('not today')", "not today"),
        ("import os; os._exit(7)", "exit code 7"),
        ("def f(:", "servable_config.py"),
    ],
    ids=["exception", "exit", "syntax"],
)
def test_a_worker_that_cannot_start_tells_why(tmp_path, config, cause):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "servable_config.py").write_text(config)
    master = Master()
    deployment = Deployment(master, Settings(str(tmp_path), "bad", 1))
    try:
        with pytest.raises(RuntimeError, match=cause):
            deployment.start([None])
        assert deployment.status() == []
        assert master.describe() == []
    finally:
        deployment.stop(0.0)
        master.close()


def test_workers_that_never_answer_are_given_up(tmp_path, call_master, until, monkeypatch):
    from mycelia_serving.cluster import supervise

    monkeypatch.setattr(supervise, "PAUSES_S", (0.01,))
    monkeypatch.setattr(supervise, "RESTARTS", 1)
    (tmp_path / "calc").mkdir()
    mark = tmp_path / "started"
    (tmp_path / "calc" / "servable_config.py").write_text(
        "import os, threading\n"
        "from mycelia_serving.server import register\n"
        f"first = not os.path.exists({str(mark)!r})\n"
        f"open({str(mark)!r}, 'w').close()\n"
        "def f(x):\n    os._exit(1)\n"
        "@register.register_method(output_names=['y'])\n"
        "def die(x):\n    return register.add_stage(f, x, outputs_count=1)\n"
        "if not first:\n    raise ValueError('only once')\n"
    )
    master = Master(no_worker_s=60.0)
    deployment = Deployment(master, Settings(str(tmp_path), "calc", 1))
    try:
        deployment.start([None])
        reply = call_master(master).reply("die", {"x": np.int64(1)})
        assert reply.error.code == Code.SERVABLE_UNAVAILABLE
        (status,) = deployment.status()
        assert status["state"] == "failed"
        assert "only once" in status["reason"]
        (info,) = master.describe()
        assert info.state == "failed" and "only once" in info.reason
    finally:
        deployment.stop(0.0)
        master.close()


def test_a_spare_process_becomes_the_next_worker(servables, call_master, until):
    from mycelia_serving.cluster.child import Spares

    master, spares = Master(), Spares(after_s=0.0)
    deployment = Deployment(master, Settings(str(servables), "calc", 1), spares=spares)
    try:
        deployment.start([None])
        until(lambda: spares._spare is not None)
        spare = spares._spare.process.pid
        call = call_master(master)
        first = call.pid()
        os.kill(first, signal.SIGKILL)
        assert call.pid() == spare
    finally:
        deployment.stop(0.0)
        spares.close()
        master.close()


HANGS = """
import os
import time

while os.path.exists(os.path.join(os.path.dirname(__file__), "hang")):
    time.sleep(0.01)

from mycelia_serving.server import register

def one(x):
    return x

@register.register_method(output_names=["y"])
def same(x):
    return register.add_stage(one, x, outputs_count=1)
"""


def test_a_config_that_hangs_ends_the_start_of_its_version_and_nothing_else(tmp_path, call_master):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "servable_config.py").write_text(HANGS)
    flag = tmp_path / "slow" / "hang"
    master = Master()
    try:
        flag.touch()
        first = Deployment(master, Settings(str(tmp_path), "slow", 1, config_timeout_s=0.5))
        with pytest.raises(RuntimeError, match=r"not ended after 0.5 s, it is at .*servable_config.py, line"):
            first.start([None])
        flag.unlink()
        good = Deployment(master, Settings(str(tmp_path), "slow", 1))
        good.start([None])
        flag.touch()
        hot = Deployment(master, Settings(str(tmp_path), "slow", 2, config_timeout_s=0.5))
        with pytest.raises(RuntimeError, match="not ended"):
            hot.start([None], publish=False)
        assert call_master(master, "slow").results("same", x(np.int64(3))) == [{"y": 3}]
        good.stop(1.0)
    finally:
        master.close()


def test_a_process_that_does_not_become_a_worker_is_killed(tmp_path, alive):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "servable_config.py").write_text(HANGS)
    (tmp_path / "slow" / "hang").touch()
    master = Master()
    try:
        deployment = Deployment(master, Settings(str(tmp_path), "slow"), start_timeout_s=0.5)
        with pytest.raises(RuntimeError, match="was not ready after 0.5 s"):
            deployment.start([None])
    finally:
        master.close()
