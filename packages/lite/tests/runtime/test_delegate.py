"""A second device: `examples/lite_delegate` takes some nodes, the CPU the rest."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn, ops
from mycelia_lite import runtime
from mycelia_lite.converter import convert

SOURCE = Path(__file__).resolve().parents[4] / "examples" / "lite_delegate" / "delegate.cc"
FAILING = Path(__file__).with_name("failing_delegate.c")
pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")


class Mixed(nn.Cell):
    """Chains that the device takes, with results that others read, between convolutions."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 2, 3)
        self.second = nn.Conv2d(2, 2, 1, has_bias=True)
        self.scale = ms.Parameter(ms.Tensor(np.linspace(-1, 1, 100).reshape(1, 2, 5, 10), ms.float32))

    def construct(self, x):
        y = self.first(x)
        z = ops.tanh(y) * y
        w = z + ops.tanh(z)
        return self.second(w * self.scale) * 2, z, ops.relu(w) + w


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    made, home = tmp_path_factory.mktemp("delegate") / "delegate", runtime.folder()
    command = ["c++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{home}/include", str(SOURCE)]
    subprocess.run([*command, f"{home}/libmycelia_lite.a", "-pthread", "-lm", "-o", made], check=True)
    return made


def test_a_delegate_takes_what_it_can(program, write_mindir, tmp_path):
    ms.set_seed(4)
    net = Mixed()
    source = write_mindir(net, tmp_path / "net", (1, 2, 5, 10))
    path = convert(mslite.FmkType.MINDIR, source, str(tmp_path / "net")).path
    x = np.random.default_rng(6).normal(size=(1, 2, 5, 10)).astype(np.float32)
    x.tofile(tmp_path / "x.f32")
    done = subprocess.run([program, path, tmp_path / "x.f32"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    where = dict(re.findall(r"^node '.*' \((\w+)\): (\w+)", done.stdout, re.M))
    assert where["Conv2DFusion"] == "CPU" and "chain: no such operator" in done.stdout
    assert sum(": chain, element by element" in line for line in lines) >= 3
    partitions, copied = map(int, re.search(r"^(\d+) partitions, (\d+) bytes", done.stdout, re.M).groups())
    assert partitions >= 1 and copied > 0
    expected = net(ms.Tensor(x))
    for line, wanted in zip(lines[-3:], expected):
        found = np.array(line.split(), np.float32)
        assert np.abs(found - wanted.asnumpy().ravel()).max() < 1e-5
    model = mslite.Model()
    model.build_from_file(path)
    assert model.get_model_info("partition") == "all nodes: CPU\n"


def test_a_delegate_that_fails_is_told_and_freed(write_mindir, tmp_path):
    source = write_mindir(nn.SequentialCell(nn.Dense(4, 3), nn.Tanh()), tmp_path / "net", (2, 4))
    path = convert(mslite.FmkType.MINDIR, source, str(tmp_path / "net")).path
    home = runtime.folder()
    subprocess.run(
        [
            "cc",
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{home}/include",
            "-c",
            FAILING,
            "-o",
            "failing.o",
        ],
        check=True,
        cwd=tmp_path,
    )
    link = ["c++", "failing.o", f"{home}/libmycelia_lite.a", "-pthread", "-lm", "-o", "failing"]
    subprocess.run(link, check=True, cwd=tmp_path)
    done = subprocess.run([tmp_path / "failing", path], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stdout)
    refused, failed, answer, changed, destroyed = done.stdout.splitlines()
    assert refused == "-1 the delegate none failed with code -7"
    assert failed.startswith("-303 node '") and failed.endswith("the delegate all failed with code -1")
    model = mslite.Model()
    model.build_from_file(path)
    model.get_inputs()[0].set_data_from_numpy(np.zeros((2, 4), np.float32))
    assert np.float32(answer) == model.predict(model.get_inputs())[0].get_data_to_numpy()[0, 0] != 0
    assert changed.endswith("the delegate shape changed the type, shape or place of an output")
    assert destroyed == "24"
