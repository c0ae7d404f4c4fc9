"""Damaged `.ms` files: one reason, no crash. They are loaded and run in a process whose end shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn, ops
from mycelia_lite.converter import convert
from mycelia_lite.format import Table, encode, write

from .test_stages import File, looper, recursion, reshaper

RUNNER = Path(__file__).parents[1] / "fuzz" / "run_damaged.py"
AT_ONCE = 100  # mutations for one seed


class Many(nn.Cell):
    """Operators of every family."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4)
        self.wide, self.row = nn.Conv2dTranspose(4, 2, 3, stride=2), nn.LayerNorm((6,))
        self.slopes, self.table = nn.PReLU(2), nn.Embedding(7, 6)

    def construct(self, x):
        y = self.slopes(self.wide(ops.abs(self.norm(self.conv(x)))))
        y = ops.pad(ops.clamp(y, -1.0, 1.0), (1, 1), mode="reflect")[:, :, ::2, 1:-1]
        low, high = ops.split(self.row(y), (2, 4), 3)
        z = ops.concat((ops.exp(high), ops.cumsum(low, 3)), 3)
        z = ops.where(z > 0.5, z, ops.pow(ops.abs(z) + 1, 1.5)) + ops.flip(z, (1,))
        index = ops.argmax(z, 3).astype(ms.int32)
        z = ops.stack((z, self.table(index)[..., :6].mean(3, keep_dims=True) * z), 1)
        values, places = ops.topk(z.sum(2), 2)
        picked = ops.gather(values, places[0, 0, 0] % 2, 3)
        one = ops.one_hot(index % 3, 3, ms.Tensor(1.0), ms.Tensor(0.0))
        return (
            ops.log_softmax(picked, 1),
            one.max(),
            ops.broadcast_to(z[:1, :1], z.shape),
            ops.tile(places, (1, 1, 1, 2)),
        )


@pytest.fixture(scope="module", params=["lenet", "many"])
def small(request, lenet, write_mindir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    source = lenet[0] if request.param == "lenet" else write_mindir(Many(), folder / "many", (2, 3, 6, 6))
    return Path(convert(mslite.FmkType.MINDIR, source, str(folder / request.param)).path)


@pytest.fixture(scope="module")
def with_subgraphs(tmp_path_factory):
    """Files with data-dependent shapes, branches, loops and calls."""
    folder = tmp_path_factory.mktemp("subgraphs")
    made = []
    for name, file in (("shape", reshaper()), ("loop", looper()), ("calls", recursion(File()))):
        made.append(folder / f"{name}.ms")
        write(made[-1], file.root())
    return made


def run_damaged(files, seed):
    """How many of the mutations were refused, and how many ran, in a process with little memory."""
    done = subprocess.run(
        [sys.executable, RUNNER, str(seed * AT_ONCE), str(AT_ONCE), *files],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "LIMIT": str(1 << 31)},
    )
    assert done.returncode == 0, f"mutations from {seed * AT_ONCE}: {done.stderr[-2000:]}"
    told, ran = map(int, done.stdout.split())
    assert told + ran == AT_ONCE
    return told, ran


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited as on Linux")
@pytest.mark.fuzz(4)
def test_damaged_files_are_told_or_run(small, seed):
    told, _ = run_damaged([small], seed)
    assert told > 10


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited as on Linux")
@pytest.mark.fuzz(2)
def test_damaged_subgraphs_are_told_or_run(with_subgraphs, seed):
    told, ran = run_damaged(with_subgraphs, seed)
    assert told > 10 and ran > 5


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="what memory there is is told as on Linux")
def test_values_that_no_memory_can_hold_are_refused(tmp_path):
    # The system would promise these bytes, and end the process that uses them.
    total = int(Path("/proc/meminfo").read_text().split()[1]) << 10
    file = File()
    file.tensor("x", dims=[1])
    rows, columns = file.constant("rows", np.array([1 << 10, 1], np.int32)), (total - (1 << 27)) >> 12

    def make():
        wide = file.constant("wide", np.array([1 << 10, columns], np.int32))
        file.node("BroadcastTo", ["x", wide], ["y"], shape=[1 << 10, columns])
        file.node(
            "ReduceFusion", ["y", file.constant("axis", np.array([1], np.int32))], ["z"], mode="ReduceSum"
        )
        file.node("Reshape", ["z", rows], ["w"])

    file.graph(["x"], ["w"], make)
    with pytest.raises(RuntimeError, match=r"no memory"):
        file.model(tmp_path / "m.ms")


def _sum_of(count):
    """A file whose input `photo` has 1024 rows of `count` elements, and their sum."""
    file = File()
    file.tensor("photo", dims=[1024, count])
    axes = file.constant("axes", np.array([0, 1], np.int32))
    file.graph(
        ["photo"], ["sum"], lambda: file.node("ReduceFusion", ["photo", axes], ["sum"], mode="ReduceSum")
    )
    return file


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="what memory there is is told as on Linux")
def test_inputs_without_room_are_refused_by_name(tmp_path):
    count = int(Path("/proc/meminfo").read_text().split()[1])  # as many floats as there are bytes
    with pytest.raises(RuntimeError, match=rf"no memory for .* input 'photo', f32.*{count}.* {count << 12}"):
        _sum_of(count).model(tmp_path / "m.ms")


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="what memory there is is told as on Linux")
def test_inputs_take_memory_when_they_are_touched(tmp_path):
    def held():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    before = held()
    model = _sum_of(1 << 17).model(tmp_path / "m.ms")  # 512 MiB
    assert held() - before < 1 << 28
    (photo,) = model.get_inputs()
    assert photo.shape == [1024, 1 << 17]
    model.resize([photo], [[1024, 1]])
    assert not photo.get_data_to_numpy().any()  # zeros until it is set
    assert model.predict([photo])[0].get_data_to_numpy() == 0


@pytest.mark.parametrize(
    ("kind", "axes", "dims"),
    [("ExpandDims", [3, 3], [2, 3]), ("Unsqueeze", [2, 2], [4])],
)
def test_an_axis_that_is_inserted_twice_is_refused(tmp_path, kind, axes, dims):
    file = File()
    file.tensor("x", dims=dims)

    def make():
        if kind == "Unsqueeze":
            file.node(kind, ["x"], ["y"], axis=axes)
        else:
            file.node(kind, ["x", file.constant("axes", np.array(axes, np.int32))], ["y"])

    file.graph(["x"], ["y"], make)
    with pytest.raises(RuntimeError, match=r"named twice"):
        file.model(tmp_path / "m.ms")


def test_names_that_are_no_text_are_shown(tmp_path):
    file = File()
    file.tensor("namesake", dims=[2])
    file.graph(["namesake"], ["y"], lambda: file.node("Abs", ["namesake"], ["y"]))
    path = tmp_path / "m.ms"
    path.write_bytes(bytes(encode(file.root())).replace(b"namesake", b"name\xff\x80ke"))
    model = mslite.Model()
    model.build_from_file(path)
    assert model.get_inputs()[0].name == "name\\xff\\x80ke"


def test_a_shape_of_more_axes_than_tensors_have_is_refused(tmp_path):
    shape, made = (
        Table("Tensor", name="s", dataType="INT64", dims=[17]),
        Table("Tensor", name="y", dataType="FLOAT32"),
    )
    fill = Table("CNode", name="c", primitive=Table("ConstantOfShape", data_type=43, value=[1.0]))
    fill.inputIndex, fill.outputIndex = [0], [1]
    write(
        tmp_path / "m.ms",
        Table("MetaGraph", nodes=[fill], allTensors=[shape, made], inputIndex=[0], outputIndex=[1]),
    )
    model = mslite.Model()
    with pytest.raises(RuntimeError, match="'c' .*the shape has 17 axes"):
        model.build_from_file(tmp_path / "m.ms")
        model.get_inputs()[0].set_data_from_numpy(np.ones(17, np.int64))
        model.predict(model.get_inputs())
