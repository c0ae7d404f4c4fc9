"""What the conformance suite does not see: that this device runs, and that nobody else touches it."""

from __future__ import annotations

import gc
import logging
import signal
import subprocess
import sys

import numpy as np
import pytest

import mycelia as ms
from mycelia import log
from mycelia.backends import registry
from mycelia.testing.comparison import on_backend
from mycelia.testing.training_contract import train_lenet


def far():
    return registry.load("far").backend


@pytest.mark.parametrize("compiled", ["", "step", "forward"])
def test_lenet_trains_on_the_device_alone(compiled):
    with on_backend("far"), ms.config.context(fallback="error"):
        *losses, weight = (t.asnumpy() for t in train_lenet(compiled)[:5])
    assert losses[-1] < losses[0] and np.isfinite(weight).all()


def test_work_waits_until_somebody_does():
    with on_backend("far"):
        ms.runtime.synchronize()
        y = ms.Tensor(np.ones(3, np.float32)) + 1
        assert not ms.runtime.current_stream().query()
        assert y.asnumpy().tolist() == [2, 2, 2]
        assert ms.runtime.current_stream().query()


def test_memory_comes_back():
    with on_backend("far"):
        gc.collect()
        ms.runtime.synchronize()
        blocks = len(far().memory.blocks)
        x = ms.Tensor(np.ones((4, 4), np.float32))
        ms.jit(lambda x: ms.ops.relu(x @ x) + x)(x)
        del x
        gc.collect()
        ms.runtime.synchronize()
        assert len(far().memory.blocks) == blocks


def test_hal_tells_of_it():
    x = ms.Tensor(np.ones(1000, np.float32)).move_to("far")
    assert ms.hal.is_available("far") and ms.hal.device_count("far") == 1
    assert ms.hal.memory_allocated("far") >= 4000 == x.nbytes
    with on_backend("far"):
        assert ms.hal.get_device_name(0) == "far" and ms.hal.memory_stats() == ms.runtime.memory_stats()
        side = ms.hal.Stream()
        assert side != ms.hal.default_stream() and side.stream_id() > 0 == ms.hal.default_stream().stream_id()


def test_what_looks_at_programs_gets_copies():
    seen = []
    function = ms.jit(lambda x: ms.ops.relu(x + 1) * 2)
    x = ms.Tensor(np.zeros(3, np.float32))
    with on_backend("far"):
        function(x)
        for program in ms.engine.compile.executable.live_programs():
            program.observe(lambda place, outputs: seen.append(outputs[0].asnumpy().tolist()))
        assert function(x).asnumpy().tolist() == [2, 2, 2]
        for program in ms.engine.compile.executable.live_programs():
            program.observe(None)
    assert seen == [[1, 1, 1], [1, 1, 1], [2, 2, 2]]


def test_the_host_cannot_touch_its_memory():
    code = (
        "import ctypes, numpy as np, mycelia as ms\n"
        "ms.set_context(device_target='far')\n"
        "x = ms.Tensor(np.ones(4, np.float32)) + 1\n"
        "print(x.asnumpy().tolist(), flush=True)\n"
        "ctypes.string_at(x.data_ptr(), 4)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.stdout == "[2.0, 2.0, 2.0, 2.0]\n", ended.stderr
    assert ended.returncode == -signal.SIGSEGV


def test_a_fallback_says_that_it_copies():
    told = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())
    log.logger().addHandler(handler)
    try:
        registry.fallbacks.pop(("cosh", "far"), None)
        with on_backend("far"), ms.config.context(debug=1):
            for n in (1, 2):
                ms.ops.cosh(ms.Tensor(np.zeros(n, np.float32)))
    finally:
        log.logger().removeHandler(handler)
    host = registry.host().backend.name
    assert told == [f"cosh(f32): no kernel in backend far, {host} runs it, on copies of its tensors"]
    assert registry.fallbacks["cosh", "far"] == 2


def test_copies_of_a_fallback_are_nodes_of_the_graph(tmp_path):
    function = ms.jit(lambda x: ms.ops.sinh(x + 1) * 2)
    x = ms.Tensor(np.zeros((2, 2), np.float32))
    with on_backend("far"), ms.config.context(save_graphs=True, save_graphs_path=str(tmp_path)):
        function(x)
    assert any("device_copy" in file.read_text() for file in tmp_path.rglob("*.ir"))
    programs = [p for p in ms.engine.compile.executable.live_programs() if p.instruction_count == 5]
    names = [node.op.name for node in programs[-1].nodes]
    assert names == ["add", "device_copy", "sinh", "device_copy", "mul"]
