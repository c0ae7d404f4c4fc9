"""A worker in the master's process has no queue of its own: it takes from the master's what it can run."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from mycelia_serving.clock import NEVER
from mycelia_serving.cluster.child import Settings
from mycelia_serving.cluster.light import LightDeployment
from mycelia_serving.engine import scheduler
from mycelia_serving.errors import Code

WAIT_S = 60.0
CONFIG = """
import threading
from mycelia_serving.server import register

gate = threading.Event()
entered = threading.Semaphore(0)
runs = []


def held(instances):
    runs.append([int(x) for x, in instances])
    entered.release()
    if -1 in runs[-1]:
        assert gate.wait(60)
    return [x for x, in instances]


@register.one_at_a_time
def alone(instances):
    return held(instances)


def last(x):
    return x + 1


@register.register_method(output_names=["y"])
def echo(x):
    return register.add_stage(alone, x, outputs_count=1, batch_size=4)


@register.register_method(output_names=["y"])
def staged(x):
    x = register.add_stage(held, x, outputs_count=1, batch_size=4)
    return register.add_stage(last, x, outputs_count=1)


@register.register_method(output_names=["y"])
def plain(x):
    return x
"""


@pytest.fixture
def light(tmp_path, make_master, fakes, monkeypatch):
    """A light deployment of a function whose runs a test holds up, and a caller."""
    monkeypatch.setattr(scheduler, "REST_S", 0.0)  # or the clock may come by where nobody was woken

    def start(**options) -> SimpleNamespace:
        (tmp_path / "add").mkdir()
        (tmp_path / "add" / "servable_config.py").write_text(CONFIG)
        master = make_master(**options)
        deployment = LightDeployment(master, Settings(str(tmp_path), "add", 1))
        deployment.start([None])
        deployments.append(deployment)
        engine = deployment._worker.engine
        return SimpleNamespace(
            master=master,
            engine=engine,
            config=engine._declaration.module,
            caller=fakes.caller(master),
            deployment=deployment,
        )

    deployments = []
    yield start
    for deployment in deployments:
        deployment._worker.engine._declaration.module.gate.set()
        deployment.stop(0.0)


def hold(run) -> int:
    """A request whose run is held up until the gate opens."""
    number, _ = run.caller.send(-1)
    assert run.config.entered.acquire(timeout=WAIT_S)
    return number


def waiting(engine) -> int:
    return sum(executor.waiting for executor in engine.scheduler.executors)


def test_what_cannot_run_waits_at_the_master_only(light):
    run = light()
    first = hold(run)
    sent = [run.caller.send(i)[0] for i in range(10)]
    assert run.master.waiting == 10
    assert waiting(run.engine) == 0 and run.engine.pending() == 1
    beside = []  # instances in the engine beside those of a run
    run.engine.scheduler.on_run = lambda *_: beside.append(waiting(run.engine))
    run.config.gate.set()
    assert [run.caller.values(n) for n in (first, *sent)] == [[-1], *([i] for i in range(10))]
    assert run.config.runs == [[-1], [0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert set(beside) == {0}
    assert run.master.waiting == 0


def test_a_request_of_several_instances_wakes_an_idle_worker(light, until):
    run = light()
    assert run.caller.values(run.caller.send(1)[0]) == [1]
    until(lambda: run.engine.scheduler._alarm.due == NEVER)
    assert run.caller.values(run.caller.send(2, 3, 4, 5, 6)[0]) == [2, 3, 4, 5, 6]


def test_credit_that_a_deadline_gives_back_wakes_the_worker(light, until):
    run = light()
    soon = time.monotonic() + 0.2
    late = [run.caller.send(*[-1] * 4, method="staged", deadline=soon)[0] for _ in range(2)]
    for _ in late:
        assert run.config.entered.acquire(timeout=WAIT_S)
    other, _ = run.caller.send(5, method="staged")
    assert waiting(run.engine) == 0 and run.master.waiting == 1, "there is no credit"
    assert [run.caller.values(n) for n in late] == [[Code.DEADLINE]] * 2
    assert run.caller.values(other) == [6]


def test_what_comes_in_a_burst_shares_runs(light):
    run = light()
    with run.master.burst():
        sent = [run.caller.send(i)[0] for i in range(6)]
    assert [run.caller.values(n) for n in sent] == [[i] for i in range(6)]
    assert run.config.runs == [[0, 1, 2, 3], [4, 5]]


def test_priority_and_clients_in_turn_hold_for_all_that_has_not_begun(light):
    run = light()
    hold(run)
    for i in range(5):
        run.caller.send(i, peer="a")
    late = [run.caller.send(10, peer="b")[0], run.caller.send(20, priority=3)[0]]
    run.config.gate.set()
    for number in late:
        run.caller.wait(number)
    assert run.config.runs[1][0] == 20 and 10 in run.config.runs[1]


def test_a_cancelled_request_that_waits_never_runs(light):
    run = light()
    hold(run)
    _, call = run.caller.send(1)
    other, _ = run.caller.send(2)
    call.cancel()
    run.config.gate.set()
    assert run.caller.values(other) == [2]
    assert run.config.runs == [[-1], [2]]


def test_a_deadline_is_kept_while_a_run_is_under_way(light):
    run = light()
    hold(run)
    late, _ = run.caller.send(1, deadline=time.monotonic() + 0.05)
    other, _ = run.caller.send(2)
    assert run.caller.values(late) == [Code.DEADLINE]
    run.config.gate.set()
    assert run.caller.values(other) == [2]
    assert run.config.runs == [[-1], [2]]


def test_a_full_queue_counts_only_what_has_to_wait(light):
    run = light(max_enqueued_requests=2)
    with run.master.burst():
        sent = [run.caller.send(i)[0] for i in range(8)]
    assert [run.caller.values(n) for n in sent] == [[i] for i in range(8)]
    hold(run)
    again = [run.caller.send(i)[0] for i in range(20)]
    run.config.gate.set()
    codes = [run.caller.values(n) for n in again]
    assert codes.count([Code.TOO_MANY]) == 20 - 2 - (run.deployment._worker.capacity - 1)


def test_methods_without_a_stage_are_answered(light):
    run = light()
    number, _ = run.caller.send(7, method="plain")
    assert run.caller.values(number) == [7]


def test_later_stages_never_get_more_than_the_credit(light):
    run = light()
    capacity, most = run.deployment._worker.capacity, [0]
    run.engine.scheduler.on_run = lambda *_: most.append(run.engine.pending())
    with run.master.burst():
        sent = [run.caller.send(i, method="staged")[0] for i in range(200)]
    assert [run.caller.values(n) for n in sent] == [[i + 1] for i in range(200)]
    assert max(most) <= capacity


def test_many_threads_lose_no_request_and_get_no_answer_twice(light):
    """Bursts, single requests, large ones, cancelled ones and bad ones from several threads at once."""
    run = light()
    kept: dict[int, list] = {}

    def client(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for k in range(60):
            base = seed * 1_000_000 + k * 1000
            kind = int(rng.integers(0, 5))
            method = ("echo", "staged")[int(rng.integers(0, 2))]
            more = 1 if method == "staged" else 0
            if kind == 0:
                with run.master.burst():
                    numbers = [send(base + i, method=method) for i in range(int(rng.integers(1, 12)))]
                kept.update({n: [base + i + more] for i, n in enumerate(numbers)})
            elif kind == 1:
                values = [base + i for i in range(int(rng.integers(2, 15)))]
                kept[send(*values, method=method)] = [v + more for v in values]
            elif kind == 2:
                number = send(base, {"z": np.int64(1)}, base + 2, method=method)
                kept[number] = [base + more, Code.INVALID_INPUTS, base + 2 + more]
            elif kind == 3:
                cancelled.append(start(base, method=method)[1].cancel())
            else:
                kept[send(base, method=method, priority=k % 3, peer=f"p{seed % 2}")] = [base + more]

    lock = threading.Lock()
    cancelled: list = []

    def start(*values, **options):
        with lock:  # a caller counts what it sends
            return run.caller.send(*values, **options)

    def send(*values, **options) -> int:
        return start(*values, **options)[0]

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    wrong = {
        n: (run.caller.values(n), values) for n, values in kept.items() if run.caller.values(n) != values
    }
    assert not wrong
    assert run.master.drain(WAIT_S) and run.engine.pending() == 0 and run.master.waiting == 0
    (slot,) = run.master.group("add", 1).worker_slots
    assert slot.credit == slot.worker.capacity and not slot.batches
