"""What comes while something else is under way: signals, other threads, a service that goes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, debug, ops
from mycelia.debug.messages import debugger_pb2 as messages
from mycelia.debug.online.channel import Lost
from mycelia.debug.online.observer import Debugged
from mycelia.debug.recorder import last_operators, records
from mycelia.debug.recorder.last_operators import LastOperators
from mycelia.engine import observing

X = np.linspace(0.5, 2, 6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def function():
    """Compiled anew, in graph mode, from step 0 on."""
    with ms.config.context(mode=ms.GRAPH_MODE):
        observing.set_iteration(0)
        yield ms.jit(lambda x: ops.log(ops.relu(x)))


class Once(observing.Observer):
    """Does something while the first operator of a step runs."""

    def __init__(self, step: int, what) -> None:
        self.step, self.what = step, what

    def seen(self, run, operator, inputs, outputs):
        if run.iteration == self.step:
            self.step = -1
            self.what()


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="a signal of POSIX")
def test_a_signal_that_comes_while_a_step_is_dumped_asks_for_the_next_one(tmp_path, function):
    once = Once(1, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    observing.watch(once)
    try:
        with debug.dump({"path": str(tmp_path), "signal": "SIGUSR1"}):
            function(Tensor(X))
            os.kill(os.getpid(), signal.SIGUSR1)
            for _ in range(3):
                function(Tensor(X))
    finally:
        observing.unwatch(once)
    assert sorted({p.parent.name for p in tmp_path.rglob("ReLU*.npy")}) == ["1", "2"]


class Service:
    """In the place of a connection: replies, and then nobody is there."""

    address, lost = "nowhere", ""

    def __init__(self, *replies) -> None:
        self.replies, self.closing = list(replies), threading.Event()

    def call(self, name: str, request, **_):
        for _ in request if isinstance(request, Iterator) else ():
            pass
        return messages.EventReply(status=messages.OK)

    def wait(self, metadata):
        if not self.replies:
            raise Lost("gone")
        return messages.EventReply(run_cmd=messages.RunCMD(**self.replies.pop(0)))

    def close(self) -> None:
        self.closing.set()


STEP, NODE = {"run_level": "step", "run_steps": 1}, {"run_level": "node", "node_name": ""}


@pytest.mark.parametrize("replies", [(STEP, STEP), (STEP, NODE)], ids=["between steps", "within a step"])
def test_a_training_whose_service_went_keeps_no_values_for_it(function, replies):
    debugged = Debugged(Service(*replies))
    observing.watch(debugged)
    wanted = np.log(X)
    try:
        for number in range(4):
            np.testing.assert_allclose(function(Tensor(X)).asnumpy(), wanted, rtol=1e-6)
            if not number:
                assert debugged.steps.size_bytes
    finally:
        observing.unwatch(debugged)
    assert debugged.channel.lost == "gone" and not observing.observers
    assert not debugged.steps and not debugged.steps.size_bytes


def test_a_record_is_written_while_another_thread_goes_on(tmp_path, monkeypatch):
    last = LastOperators(lambda text: None)
    with observing.watch_calls(last):
        ops.relu(Tensor(X))
        ops.log(Tensor(X) - 0.5)
    kept, counted = list(last.ring), last_operators.statistics

    def as_the_other_goes_on(tensor):
        last.ring.append(kept[0])
        return counted(tensor)

    for module in (last_operators, records):
        monkeypatch.setattr(module, "statistics", as_the_other_goes_on)
    records.Records(str(tmp_path)).write(last, None, "A test.")
    assert "Log-op0" in (tmp_path / "README.txt").read_text()
    assert list(tmp_path.glob("DEBUG.last_operators.*.csv"))


def test_a_record_that_cannot_be_written_leaves_the_error_as_it_is(tmp_path, monkeypatch):
    def no_memory(*_):
        raise MemoryError("no memory for statistics")

    monkeypatch.setattr(records, "_table", no_memory)
    last = SimpleNamespace(ring=[], note="", first_bad=lambda: None)
    records.Records(str(tmp_path)).write(last, ValueError("the error itself"))  # raises nothing of its own
