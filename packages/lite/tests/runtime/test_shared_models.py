"""Models that share threads, weights and memory answer with the same bits while several threads use them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn
from mycelia_lite import runtime
from mycelia_lite.converter import convert

SOURCE = Path(__file__).parents[1] / "fuzz" / "shared_models.cc"

NETS = {
    "images": (
        lambda: nn.SequentialCell(
            nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 24, 3), nn.MaxPool2d(2, 2), nn.Flatten(),
            nn.Dense(24 * 16 * 16, 20), nn.Softmax(),
        ),
        (3, 32, 32),
    ),
    "rows": (
        lambda: nn.SequentialCell(nn.Dense(64, 256), nn.GELU(), nn.LayerNorm((256,)), nn.Dense(256, 64)),
        (64,),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The command without seed and rounds, and its models."""
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    folder, home = tmp_path_factory.mktemp("shared"), runtime.folder()
    subprocess.run(
        ["c++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{home}/include", SOURCE,
         f"{home}/libmycelia_lite.a", "-pthread", "-o", folder / "shared"],
        check=True,
    )  # fmt: skip
    files = []
    for name, (net, shape) in NETS.items():
        x = ms.Tensor(shape=[None, *shape], dtype=ms.float32)
        ms.export(net(), x, file_name=str(folder / name), file_format="MINDIR")
        files.append(convert(mslite.FmkType.MINDIR, str(folder / f"{name}.mindir"), str(folder / name)).path)
    return folder / "shared", files


@pytest.mark.fuzz(2)
def test_answers_keep_their_bits(shared, seed):
    program, files = shared
    done = subprocess.run([program, str(seed), "12", *files], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    assert int(done.stdout) > 500
