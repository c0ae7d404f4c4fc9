"""The asynchronous dump of what the simulator ran: files of tasks in the device's layouts."""

from __future__ import annotations

import csv
import json
import re
import threading

import numpy as np
import pytest

import mycelia as ms
from mycelia import debug, nn, ops
from mycelia.debug.dump import files as dump_files
from mycelia.io import async_dump
from mycelia.testing.comparison import on_backend
from mycelia_backend_ascend_sim import options

NAME = re.compile(r"^[A-Za-z0-9]+\.[^.]+\.\d+\.\d+\.\d{16}$")


def settings(path, **more):
    common = {"path": str(path), "net_name": "Net", "iteration": "all", **more}
    return {"common_dump_settings": common, "async_dump_settings": {"enable": True}}


@pytest.fixture(autouse=True)
def on_device():
    with on_backend("Ascend"):
        yield


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 20, 3, pad_mode="valid")
        self.to_float(ms.float16)

    def construct(self, x):
        return ops.relu(self.conv(x))


def files(path):
    return [async_dump.read(f) for f in sorted(path.rglob("*")) if f.is_file() and NAME.match(f.name)]


def test_each_task_has_a_file_with_the_tensors_of_the_run(tmp_path):
    net, x = Net(), ms.Tensor(np.random.default_rng(0).standard_normal((2, 3, 5, 5)).astype(np.float32))
    run = ms.jit(lambda x: net(x))
    with debug.dump(settings(tmp_path)):
        y = run(x)
    records = files(tmp_path)
    conv = next(r for r in records if r.op_type == "Conv2D")
    relu = next(r for r in records if r.op_type == "ReLU")
    assert conv.outputs[0].format == "NC1HWC0" and conv.outputs[0].data.shape == (2, 2, 3, 3, 16)
    np.testing.assert_array_equal(relu.outputs[0].plain(), y.asnumpy())
    np.testing.assert_array_equal(relu.inputs[0].plain(), conv.outputs[0].plain())
    assert conv.task_id < relu.task_id and conv.op_name.endswith("Conv2D-op0")
    (folder,) = {f.parent for f in tmp_path.rglob("*") if NAME.match(f.name)}
    assert re.fullmatch(r"rank_0/Net/\d+/\d+", str(folder.relative_to(tmp_path)))


def test_convert_writes_tensors_row_major(tmp_path):
    x = ms.Tensor(np.arange(15, dtype=np.float16).reshape(3, 5))
    with debug.dump(settings(tmp_path / "dump")), ms.config.context(mode=ms.PYNATIVE_MODE):
        y = x @ x.T
    (path,) = [f for f in (tmp_path / "dump").rglob("MatMul.*") if f.is_file()]
    paths = async_dump.convert(path, tmp_path / "out")
    assert [p.split(path.name)[1] for p in paths] == [
        ".input.0.3_5.float16.npy", ".input.1.5_3.float16.npy", ".output.0.3_3.float16.npy",
    ]  # fmt: skip
    np.testing.assert_array_equal(np.load(paths[-1]), y.asnumpy())
    (kept,) = [p for p in async_dump.convert(path, tmp_path / "kept", "bin", True) if ".output." in p]
    assert ".1_1_16_16." in kept and len(open(kept, "rb").read()) == 512
    with pytest.raises(ValueError, match="npy"):
        async_dump.convert(path, tmp_path / "out", "txt")


def test_only_operators_that_overflowed_with_their_records(tmp_path):
    x = ms.Tensor(np.array([60000, 1], np.float16))
    with options.context(overflow_mode="SATURATION_MODE"), debug.dump(settings(tmp_path, op_debug_mode=3)):
        y = ops.exp(x * 0.0) + x * 2
    assert y.asnumpy()[0] >= 65504
    records = files(tmp_path)
    assert {r.op_type for r in records} <= {"Mul", "Add"} and records[0].status == 1
    (first, *_) = [json.loads(f.read_text()) for f in sorted(tmp_path.rglob("Opdebug.*.json"))]
    assert first["op"] == "mul" and first["kind"] == "AI Core" and first["task_id"] == records[0].task_id


def test_a_disk_that_is_full_ends_the_dump_and_not_the_run(tmp_path, monkeypatch):
    def full(folder, name, parts):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dump_files, "write_named", full)
    x = ms.Tensor(np.ones(3, np.float16))
    with debug.dump(settings(tmp_path)) as observer:
        y = x + 1
        z = y + 1
    assert z.asnumpy().tolist() == [3, 3, 3] and observer.failure.errno == 28
    assert not files(tmp_path)


def test_tensors_may_be_files_of_their_own(tmp_path):
    given = settings(tmp_path)
    given["async_dump_settings"]["file_format"] = "npy"
    x = ms.Tensor(np.ones((1, 3, 8, 8), np.float16))
    with debug.dump(given):
        y = Net()(x)
    (relu,) = tmp_path.rglob("ReLU.*.output.0.DefaultFormat.Float16.npy")
    assert np.array_equal(np.load(relu), y.asnumpy())
    assert not files(tmp_path)


def test_names_longer_than_the_file_system_takes_are_cut_and_listed(tmp_path):
    class Deep(nn.Cell):
        def __init__(self, depth):
            super().__init__()
            self.a_part_with_a_long_name = Deep(depth - 1) if depth else nn.ReLU()

        def construct(self, x):
            return self.a_part_with_a_long_name(x)

    with debug.dump(settings(tmp_path)):
        Deep(12)(ms.Tensor([-1.0, 2.0]))
    ((short, full),) = csv.reader(next(tmp_path.rglob("mapping.csv")).read_text().splitlines())
    assert len(short) == 255 and len(full) > 255 and full.startswith("ReLU.Default_")
    (path,) = tmp_path.rglob("ReLU.*")
    assert async_dump.read(path).outputs[0].plain().tolist() == [0, 2]
    assert [np.load(p).tolist() for p in async_dump.convert(path, tmp_path / "out")] == [[-1, 2], [0, 2]]


def test_whatever_the_thread_that_writes_runs_into_the_run_goes_on(tmp_path, monkeypatch):
    def no_memory(record):
        raise MemoryError("no memory for a record")

    monkeypatch.setattr(async_dump, "to_bytes", no_memory)
    ran = []

    def training():
        with on_backend("Ascend"), debug.dump(settings(tmp_path)):
            function = ms.jit(lambda x: ops.relu(x) + 1)
            ran.extend(function(ms.Tensor(np.ones(3, np.float32))).asnumpy().tolist() for _ in range(2))

    thread = threading.Thread(target=training, daemon=True)  # one that waits for ever fails here
    thread.start()
    thread.join(60)
    assert ran == [[2, 2, 2]] * 2 and not files(tmp_path)


@pytest.mark.parametrize("field", [{"last_steps": 2}, {"conditions": [{"condition": "tensor_overflow"}]}])
def test_steps_that_are_kept_are_none_of_an_asynchronous_dump(tmp_path, field):
    with (
        pytest.raises(ValueError, match="asynchronous dumps keep no steps"),
        debug.dump(settings(tmp_path, **field)),
    ):
        pass
