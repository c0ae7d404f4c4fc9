"""Faults that a backend may have, and core: the contract suite finds each."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest

from mycelia.backends import MemoryStatistics, registry
from mycelia.engine import _C, dispatch
from mycelia.engine.compile import placement
from mycelia.testing.conformance import contract_suite


def far():
    return registry.load("far").backend


def ignores_offsets(backend, monkeypatch):
    """Copies go to the start of the block."""
    found = backend.memory.bytes_at

    def start(address, size):
        place = np.searchsorted(backend.memory.addresses, address, side="right") - 1
        return found(backend.memory.addresses[place], size)

    monkeypatch.setattr(backend.memory, "bytes_at", start)


def loses_last_byte(backend, monkeypatch):
    copy = backend.copy_to_host
    monkeypatch.setattr(backend, "copy_to_host", lambda target, address: copy(target[:-1], address))


def does_not_wait_before_reading(backend, monkeypatch):
    def copy_to_host(target, address):
        np.frombuffer(target, np.uint8)[:] = backend.memory.bytes_at(address, len(target))

    monkeypatch.setattr(backend, "copy_to_host", copy_to_host)


def reads_the_source_later(backend, monkeypatch):
    """The host may have changed it by then."""

    def copy_from_host(address, source):
        content = np.frombuffer(source, np.uint8)
        run = lambda: np.copyto(backend.memory.bytes_at(address, content.size), content)
        backend.current_stream().give(run)

    monkeypatch.setattr(backend, "copy_from_host", copy_from_host)


def copies_nothing(backend, monkeypatch):
    monkeypatch.setattr(backend, "copy", lambda target, source, size: None)


def gives_memory_twice(backend, monkeypatch):
    allocate, held = backend.allocate, []

    def again(size):
        if size == 80 and held:
            return held[0]
        held.append(allocate(size)) if size == 80 else None
        return held[0] if size == 80 else allocate(size)

    monkeypatch.setattr(backend, "allocate", again)
    monkeypatch.setattr(backend, "free", lambda address, size: None)


def forgets_what_was_freed(backend, monkeypatch):
    peak = MemoryStatistics(1 << 40, 1 << 40, 1 << 40, 1 << 40)
    monkeypatch.setattr(backend, "memory_statistics", lambda: peak)


def does_not_wait_for_events(backend, monkeypatch):
    stream = type(backend.default_stream())
    monkeypatch.setattr(stream, "wait", lambda self, event: None)


def synchronizes_one_stream_only(backend, monkeypatch):
    monkeypatch.setattr(backend, "synchronize", lambda: None)


def computes_in_wrong_order(backend, monkeypatch):
    stream = type(backend.default_stream())

    def give(self, piece):
        self.work.appendleft(piece)
        self.given += 1

    monkeypatch.setattr(stream, "give", give)


def claims_ops_it_cannot_run(backend, monkeypatch):
    monkeypatch.setattr(backend, "supports", lambda op, types, attrs: True)


FAULTS = (
    ignores_offsets, loses_last_byte, does_not_wait_before_reading, reads_the_source_later, copies_nothing,
    gives_memory_twice, forgets_what_was_freed, does_not_wait_for_events, synchronizes_one_stream_only,
    computes_in_wrong_order, claims_ops_it_cannot_run,
)  # fmt: skip


def a_check_fails() -> bool:
    """Whether the contract suite finds anything."""
    for case in contract_suite("far"):
        try:
            case()
        except Exception:
            return True
    return False


@pytest.fixture(autouse=True)
def fresh():
    """No plan or work of before is left, and none stays."""
    far().synchronize()
    _C.clear_plans()
    yield
    _C.clear_plans()
    for stream in far().streams:
        stream.work.clear()
        stream.done = stream.given
    for case in contract_suite("far"):
        if case.name in ("copies", "statistics", "streams", "events"):
            case()  # nothing of the fault stayed behind, which the next test would find


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_suite_finds(fault, monkeypatch):
    fault(far(), monkeypatch)
    assert a_check_fails()


def test_the_suite_finds_results_of_fallbacks_that_stay_on_the_host(monkeypatch):
    made = dispatch._plan
    monkeypatch.setattr(dispatch, "_plan", lambda *args, **where: made(*args, **{**where, "home": 0}))
    assert a_check_fails()


def test_the_suite_finds_copies_that_the_compiler_forgets(monkeypatch):
    monkeypatch.setattr(placement._Placing, "on", lambda self, value, device: value)
    assert a_check_fails()


def test_the_suite_finds_copies_of_another_value(monkeypatch):
    def other(self, value, device):
        same = [v for v in self.elsewhere if v.type == value.type]
        return same[0] if same else right(self, value, device)

    right = placement._Placing.on
    monkeypatch.setattr(placement._Placing, "on", other)
    assert a_check_fails()


def test_a_kernel_of_the_host_that_gets_memory_of_the_device_ends_the_program():
    code = (
        "import mycelia as ms\n"
        "from mycelia.engine import dispatch\n"
        "from mycelia.engine.backends import registry\n"
        "made = dispatch._plan\n"
        "dispatch._plan = lambda *a, **where: made(*a, **{k: registry.load('far').device for k in where})\n"
        "ms.set_context(device_target='far')\n"
        "print(ms.ops.abs(ms.Tensor([-1.0]) * 1).asnumpy())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == -signal.SIGSEGV, ended.stdout + ended.stderr
