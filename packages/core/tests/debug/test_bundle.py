"""The debug bundle: what a run left behind is in it, secrets are not."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import mycelia as ms
from mycelia import debug, ops
from mycelia.debug import bundle

SECRET = "hunter2-hunter2"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The folder of a run: a dump of three steps, the last with NaN, a log that tells a secret, a summary."""
    monkeypatch.setenv("SOME_API_TOKEN", SECRET)
    folder = tmp_path / "run"
    f = ms.jit(lambda x: ops.log(x))
    with debug.dump({"path": str(folder / "dump")}):
        for value in (2.0, 1.0, -1.0):
            f(ms.Tensor(np.full((2, 3), value, np.float32)))
    (folder / "rank_0" / "logs").mkdir(parents=True)
    (folder / "rank_0" / "logs" / "mycelia.log.77").write_text(f"token {SECRET} was taken\n")
    (folder / "config.yaml").write_text("lr: 0.1\n")
    (folder / "run.events.summary.1.host").write_bytes(b"\x01\x02")
    (folder / "weights.ckpt").write_bytes(b"large")
    (folder / "data.npy").write_bytes(b"large")
    (folder / "link.txt").symlink_to("/etc/hostname")
    return folder


def names_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_it_has_what_the_run_left_behind(run, tmp_path):
    out = tmp_path / "out" / "x.zip"
    listed = bundle.write_bundle(run, out)
    found = names_of(out)
    assert sorted(found) == sorted(listed)
    for name in ("run/config.yaml", "run/rank_0/logs/mycelia.log.77", "run/run.events.summary.1.host"):
        assert name in found, listed
    assert any(name.endswith(".ir") for name in found) and any(name.endswith(".npy") for name in found)
    for name in ("run/weights.ckpt", "run/data.npy", "run/link.txt"):
        assert name not in found
    first = json.loads(found["first_bad.json"])
    assert first["operator"].endswith("Log-op0") and first["reason"] == "6 of 6 elements are nan"
    assert first["slot"] == 0 and "ops.log(x)" in first["source"][0]
    assert json.loads(found["environment.json"])["packages"]["mycelia-core"]
    assert [p.name for p in out.parent.iterdir()] == ["x.zip"]


def test_secrets_are_in_no_file(run, tmp_path):
    bundle.write_bundle(run, tmp_path / "x.zip")
    found = names_of(tmp_path / "x.zip")
    assert not [name for name, content in found.items() if SECRET.encode() in content]
    assert found["run/rank_0/logs/mycelia.log.77"] == b"token (not shown) was taken\n"


def test_only_the_last_iterations_are_taken_where_there_is_much(run, tmp_path, monkeypatch):
    sizes = [sum(p.stat().st_size for p in d.iterdir()) for d in run.glob("dump/rank_0/*/*/*")]
    monkeypatch.setattr(bundle, "_DUMPS", sum(sizes) - 1)
    bundle.write_bundle(run, tmp_path / "x.zip")
    steps = {n.split("/")[-2] for n in names_of(tmp_path / "x.zip") if n.endswith(".npy")}
    numbers = sorted(int(d.name) for d in run.glob("dump/rank_0/*/*/*") if d.name.isdigit())
    assert steps == {str(n) for n in numbers[1:]}


def test_the_command(run, tmp_path):
    command = [sys.executable, "-m", "mycelia", "debug", "bundle", str(run), "-o", "x.zip"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("files, first_bad.json\n"), done
    assert not [n for n, content in names_of(tmp_path / "x.zip").items() if SECRET.encode() in content]
    with pytest.raises(ValueError, match="there is no folder"):
        bundle.write_bundle(tmp_path / "nowhere", tmp_path / "y.zip")
    assert not (tmp_path / "y.zip").exists()
