"""The C interface used wrongly, from one thread and from several: codes and reasons, no crash, no hang."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite import runtime
from mycelia_lite.converter import convert
from mycelia_lite.format import write

from .test_stages import File, looper, recursion, reshaper, run

SOURCE = Path(__file__).parents[1] / "fuzz" / "c_api_calls.cc"


@pytest.fixture(scope="module")
def calls(tmp_path_factory, lenet):
    """The command that makes random calls, without seed, number of calls and threads; and where it lies."""
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    folder, home = tmp_path_factory.mktemp("calls"), runtime.folder()
    subprocess.run(
        ["c++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{home}/include", SOURCE,
         f"{home}/libmycelia_lite.a", "-pthread", "-o", folder / "calls"],
        check=True,
    )  # fmt: skip
    convert(mslite.FmkType.MINDIR, lenet[0], str(folder / "lenet"))
    for name, file in (("shape", reshaper()), ("loop", looper()), ("calls", recursion(File()))):
        write(folder / f"{name}.ms", file.root())
    content = (folder / "lenet.ms").read_bytes()
    (folder / "cut.ms").write_bytes(content[: len(content) // 2])
    (folder / "noise.ms").write_bytes(np.random.default_rng(0).bytes(3000))
    (folder / "config.ini").write_text("[common]\nenable_pre_inference=true\n")
    (folder / "empty").touch()
    os.mkfifo(folder / "pipe")
    return folder


@pytest.mark.fuzz(3)
@pytest.mark.parametrize(("threads", "number"), [(1, 2000), (4, 500)], ids=["one thread", "threads"])
def test_wrong_calls_are_refused(calls, threads, number, seed):
    models = [calls / f"{name}.ms" for name in ("shape", "lenet", "loop", "calls")]
    command = [calls / "calls", str(seed), str(number), str(threads), calls, *models]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    well, refused = map(int, done.stdout.split())
    assert well > 100 and refused > 100


def test_more_threads_than_there_can_be(tmp_path):
    file = File()
    file.tensor("x", dims=[1 << 22])
    file.graph(["x"], ["y"], lambda: file.node("Abs", ["x"], ["y"]))
    write(tmp_path / "m.ms", file.root())
    context = mslite.Context()
    context.cpu.thread_num = context.cpu.inter_op_parallel_num = 2**31 - 1
    model = mslite.Model()
    model.build_from_file(tmp_path / "m.ms", context=context)
    x = np.arange(-(1 << 21), 1 << 21, dtype=np.float32)
    np.testing.assert_array_equal(run(model, x)[0], np.abs(x))


def test_weights_that_no_plan_can_take_change_nothing(tmp_path):
    file = File()
    file.tensor("x", dims=[6])
    shape = file.constant("shape", np.array([2, 3], np.int64))
    file.graph(["x"], ["y"], lambda: file.node("Reshape", ["x", shape], ["y"]))
    model = file.model(tmp_path / "m.ms")
    x = np.arange(6, dtype=np.float32)

    def update(*sizes):
        tensor = mslite.Tensor(shape=[2], dtype=mslite.DataType.INT64)
        tensor.name = "shape"
        tensor.set_data_from_numpy(np.array(sizes, np.int64))
        model.update_weights([tensor])

    with pytest.raises(RuntimeError, match=r"Reshape"):
        update(4, 4)
    assert run(model, x)[0].shape == (2, 3)
    update(3, 2)
    assert run(model, x)[0].shape == (3, 2)
