"""Readers of every format, given files changed at random: see tests/mutations.py.

The same files in every run; tools/fuzz.py tries others.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset as ds
from mycelia.engine.base import config
from mycelia.engine.compile import disk_cache
from mycelia.io import crypto, mindir

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from mutations import count_of, faults, problem  # noqa: E402

KEY = b"0123456789abcdef"
pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited as on Linux"),
]


@pytest.fixture(autouse=True)
def same_files(tmp_path, monkeypatch):
    """Files whose bytes depend on nothing but the test: no names of temporary directories, no random keys."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(crypto, "os", SimpleNamespace(urandom=random.Random(0).randbytes))


def report(found):
    assert not found, "\n".join(f"{why}\n    {mutation}" for why, mutation in found.items())


# ---- the mutations themselves ------------------------------------------------------------------------------


def careless(data):
    count, kind, *_ = struct.unpack_from("<IH", data)  # struct.error
    body = np.empty(count, np.float64)  # MemoryError
    body[:] = np.frombuffer(data, np.float64, count, 6)  # ValueError of NumPy
    return {1: "one", 2: "two"}[kind], data[6:].decode()  # KeyError, UnicodeDecodeError


def test_planted_faults_are_found(tmp_path):
    path = tmp_path / "planted.bin"
    path.write_bytes(struct.pack("<IH", 2, 1) + bytes(16))
    found = faults(path, lambda: careless(path.read_bytes()), 400)
    for kind in ("error at", "MemoryError", "KeyError", "UnicodeDecodeError", "ValueError"):
        assert any(why.startswith(kind) for why in found), (kind, list(found))


def test_errors_that_name_no_file_are_found(tmp_path):
    def nameless():
        raise ms.errors.value_error("reader", "the header is damaged")

    assert problem(nameless, {"a.bin"}).startswith("names no file")
    assert not problem(nameless, {"header"})
    assert not problem(lambda: None, {"a.bin"})


# ---- checkpoints -------------------------------------------------------------------------------------------

VALUES = {
    "w": ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "b": ms.Tensor(np.ones(4, np.int64)),
    "h": ms.Tensor(np.ones(3, np.float32), ms.bfloat16),
}


@pytest.mark.parametrize("kind", ["ckpt", "crc", "encrypted", "inside", "safetensors"])
def test_checkpoints(tmp_path, kind):
    form = "safetensors" if kind == "safetensors" else "ckpt"
    path = tmp_path / f"a.{form}"
    secret = {"enc_key": KEY} if kind in ("encrypted", "inside") else {}
    extra = {"n": 3, **({} if form == "safetensors" else {"t": "text"})}
    plain = None
    if secret:
        pytest.importorskip("cryptography")
        ms.save_checkpoint(VALUES, str(path), append_dict=extra)
        plain = path.read_bytes() if kind == "inside" else None
    ms.save_checkpoint(VALUES, str(path), append_dict=extra, crc_check=kind == "crc", format=form, **secret)
    path.chmod(0o600)
    opened = {"dec_key": KEY} if secret else {"crc_check": kind in ("crc", "safetensors")}
    seal = (lambda data: crypto.encrypt(data, KEY)) if plain else bytes
    read = lambda: ms.load_checkpoint(str(path), format=form, **opened)
    report(faults(path, read, count_of(150), inner=plain, seal=seal))


SETTINGS = ("seed", "prefetch_size", "num_parallel_workers", "callback_timeout")


def test_settings_in_json(tmp_path):
    path = tmp_path / "settings.json"
    before = {name: getattr(ds.config, f"get_{name}")() for name in SETTINGS}
    path.write_text('{"numParallelWorkers": 1, "prefetchSize": 4, "seed": 5, "callback_timeout": 6}')
    try:
        report(faults(path, lambda: ds.config.load(str(path)), count_of(100)))
    finally:
        for name, value in before.items():
            getattr(ds.config, f"set_{name}")(value)


def test_recorder_settings_in_json(tmp_path):
    path = tmp_path / "recorder.json"
    path.write_text(json.dumps({"rdr": {"enable": True, "mode": 1, "path": "records"}}))

    def read():
        with config.context(env_config_path=str(path)):
            pass

    report(faults(path, read, count_of(100), names={"env_config_path"}))


# ---- MindIR ------------------------------------------------------------------------------------------------
# Changed messages: see test_mindir_mutations.py.


@pytest.mark.parametrize("kind", ["graph", "weights", "encrypted", "inside"])
def test_mindir(tmp_path, monkeypatch, kind):
    """Bytes of graphs whose weights lie beside them, of these weights, and of encrypted graphs."""
    secret = {"enc_key": KEY} if kind in ("encrypted", "inside") else {}
    if secret:
        pytest.importorskip("cryptography")
    else:
        monkeypatch.setattr(mindir, "_SPLIT_KIB", -1)
    network = ms.nn.Dense(2, 3)
    ms.export(
        network, ms.Tensor(np.ones((1, 2), np.float32)), file_name="net", file_format="MINDIR", **secret
    )
    path = tmp_path / ("net.mindir" if secret else "net_graph.mindir")
    changed = tmp_path / "net_variables/data_0" if kind == "weights" else path
    changed.chmod(0o600)
    opened = {"dec_key": KEY} if secret else {}
    plain = bytes(crypto.decrypt(path.read_bytes(), KEY)) if kind == "inside" else None
    seal = (lambda data: crypto.encrypt(data, KEY)) if plain else bytes
    read = lambda: ms.load(str(path), **opened)
    read()
    report(faults(changed, read, count_of(100), inner=plain, seal=seal, names={path.name}))


# ---- what training leaves ----------------------------------------------------------------------------------


def test_print_files(tmp_path):
    path = tmp_path / "printed"
    with config.context(print_file_path=str(path)):
        ms.ops.Print()("text", VALUES["w"], VALUES["h"], ms.Tensor(True))
    report(faults(path, lambda: ms.parse_print(str(path)), count_of(150)))


def test_descriptions_of_landscapes(tmp_path):
    folder = tmp_path / "ckpt_dir"
    folder.mkdir()
    path = folder / "train_metadata.json"
    facts = {"epoch_group": {"0": [1, 2, 3]}, "model_params_file_map": {"1": "1.ckpt", "2": "2.ckpt"}}
    facts |= {"step_per_epoch": 2, "unit": "step", "num_samples": 4, "landscape_size": 3}
    path.write_text(json.dumps({**facts, "create_landscape": {"train": True, "result": False}}))
    landscape = ms.SummaryLandscape(str(tmp_path))
    network = ms.nn.Dense(2, 2)

    def read():
        landscape.gen_landscapes_with_multi_process(
            lambda: (None, network, None, None), output=str(folder / "out")
        )

    names = {"1.ckpt", "2.ckpt", "checkpoint"}
    report(faults(path, read, count_of(60), names=names))


def test_wishes_of_the_profiler(tmp_path):
    monitor = ms.profiler.DynamicProfilerMonitor(str(tmp_path), str(tmp_path / "out"))
    path = tmp_path / "profiler_config.json"
    path.write_text(json.dumps({"start_step": 5, "stop_step": 6}))
    report(faults(path, monitor.step, count_of(100)))


def test_kept_graphs(tmp_path):
    """Whatever a file of the compile cache holds, it is a graph or is compiled anew."""

    def function(x):
        return ms.ops.where(x > 2, x * VALUES["w"], x.sum(1, keepdims=True))

    x = ms.Tensor(np.ones((2, 3), np.float32))
    with config.context(enable_compile_cache=True, compile_cache_path=str(tmp_path)):
        ms.jit(function)(x)
        (path,) = (tmp_path / "graph_cache").iterdir()
        entry = disk_cache.entry(function, "function", (x,), {}, ())
        assert entry.path == str(path) and entry.load() is not None
        start = len(disk_cache.MARK)
        inner = path.read_bytes()[start + 32 :]
        seal = lambda data: disk_cache.MARK + hashlib.sha256(data).digest() + data
        report(faults(path, entry.load, count_of(100)))
        report(faults(path, entry.load, count_of(100), inner=inner, seal=seal))
