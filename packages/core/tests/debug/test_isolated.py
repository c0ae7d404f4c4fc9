"""Operators of a dump that run in a process of their own: the same numbers, and what kills that process."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import mycelia as ms
from mycelia import debug, ops
from mycelia.debug import isolated
from mycelia.engine import observing


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("dump")
    x = ms.Tensor(np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3))

    def both(x):
        tiled = ops.cast(ops.tile(x, (2, 1)), ms.bfloat16)
        return ops.clamp(tiled, float("-inf"), 1.5), ops.log(x)

    with ms.config.context(mode=ms.GRAPH_MODE), debug.dump({"path": str(path)}):
        observing.set_iteration(0)
        ms.jit(both)(x)
    return path


def node_of(dump, kind):
    return next(node for node in dump.nodes if node.kind == kind)


def test_it_makes_what_was_dumped_and_takes_edits(folder):
    dump = debug.DumpAnalyzer(folder)
    ((made, before),) = dump.rerun_operator(node_of(dump, "Cast"), 0, isolated=True)
    np.testing.assert_array_equal(made, before, strict=True)
    edit = {"slot": 0, "value": 1.0}
    ((made, _),) = dump.rerun_operator(node_of(dump, "Log"), 0, [edit], isolated=True)
    assert (made == 0).all() and made.shape == (2, 3)


def changed(folder, **attrs):
    """The dump's Tile with other attributes, as a hostile dump has them."""
    dump = debug.DumpAnalyzer(folder)
    node = node_of(dump, "Tile")
    (file,) = (p for p in folder.rglob("mycelia_operators_graph_*.json") if node.name in p.read_text())
    told = json.loads(file.read_text())
    told["operators"][node.name].update(attrs)
    return file, json.dumps(told), dump, node


def test_a_result_that_takes_all_memory_is_told(folder, monkeypatch):
    if not sys.platform.startswith("linux"):
        pytest.skip("memory is limited on Linux")
    monkeypatch.setattr(isolated, "MEMORY_BYTES", 1 << 30)
    file, text, dump, node = changed(folder, op="tile")
    kept, told = file.read_text(), json.loads(text)
    name = next(k for k, v in told["operators"][node.name]["attrs"].items() if v == {"tuple": [2, 1]})
    told["operators"][node.name]["attrs"][name] = {"tuple": [1 << 16, 1 << 16]}
    file.write_text(json.dumps(told))
    try:
        with pytest.raises(ValueError, match="memory|crashed with SIG"):
            dump.rerun_operator(node, 0, isolated=True)
    finally:
        file.write_text(kept)


@pytest.mark.parametrize(
    "code, told",
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "its kernel crashed with SIGSEGV"),
        ("import os; os.abort()", "its kernel crashed with SIGABRT"),
        ("import sys; sys.exit('no such thing')", "its process ended with status 1: no such thing"),
        ("pass", "its process ended with status 0"),
    ],
)
def test_a_process_that_dies_is_told_in_words(folder, monkeypatch, code, told):
    if "SIG" in told and sys.platform == "win32":
        pytest.skip("signals are of POSIX")
    monkeypatch.setattr(isolated, "COMMAND", (sys.executable, "-c", code))
    dump = debug.DumpAnalyzer(folder)
    with pytest.raises(ValueError, match=told):
        dump.rerun_operator(node_of(dump, "Log"), 0, isolated=True)


def test_a_process_that_hangs_is_ended(folder, monkeypatch):
    for_ever = "import threading; threading.Event().wait()"
    monkeypatch.setattr(isolated, "COMMAND", (sys.executable, "-c", for_ever))
    monkeypatch.setattr(isolated, "TIMEOUT_S", 0.5)
    dump = debug.DumpAnalyzer(folder)
    with pytest.raises(ValueError, match="longer than 0.5 s and was ended"):
        dump.rerun_operator(node_of(dump, "Log"), 0, isolated=True)


def test_what_the_operator_raises_is_told(folder):
    file, text, dump, node = changed(folder, op="mat_mul", attrs={})
    kept = file.read_text()
    file.write_text(text)
    try:
        with pytest.raises(ValueError, match="attributes|inputs|argument"):
            dump.rerun_operator(node, 0, isolated=True)
    finally:
        file.write_text(kept)
