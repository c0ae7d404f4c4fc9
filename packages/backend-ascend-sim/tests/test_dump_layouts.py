"""Synchronous dumps of what the simulator ran, as the network has its tensors and as the device has them."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import mycelia as ms
from mycelia import debug, nn, ops
from mycelia.io import device_formats
from mycelia.testing.comparison import on_backend


@pytest.fixture(autouse=True)
def on_device():
    with on_backend("Ascend"):
        yield


class Net(nn.Cell):
    def __init__(self, dtype):
        super().__init__()
        self.conv = nn.Conv2d(3, 20, 3, pad_mode="valid")
        self.to_float(dtype)

    def construct(self, x):
        return ops.relu(self.conv(x))


X = np.random.default_rng(0).standard_normal((2, 3, 5, 5)).astype(np.float32)


def dump(path, net, keeps, **common):
    common = {"path": str(path), "saved_data": "full", **common}
    e2e = {"enable": True, "trans_flag": not keeps}
    with debug.dump({"common_dump_settings": common, "e2e_dump_settings": e2e}):
        ms.jit(lambda x: net(x))(ms.Tensor(X))


def read(path):
    """Files of a step in order of execution, the (operator's type, io, slot, layout) of each, and rows of
    its table.
    """
    found = [f for f in path.rglob("*.npy") if "constants" not in f.parts]
    found.sort(key=lambda f: f.name.split(".")[-6])
    keys = [(f.name.split(".")[0], *f.name.split(".")[-5:-2]) for f in found]
    (table,) = path.rglob("statistic.csv")
    with table.open() as text:
        return found, keys, list(csv.DictReader(text))


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16], ids=str)
def test_tensors_are_written_in_the_layouts_of_the_device(tmp_path, dtype):
    net = Net(dtype)
    dump(tmp_path / "plain", net, keeps=False)
    dump(tmp_path / "device", net, keeps=True)
    plain, plain_keys, plain_rows = read(tmp_path / "plain")
    device, keys, rows = read(tmp_path / "device")
    assert [key[:3] for key in keys] == [key[:3] for key in plain_keys]
    assert {layout for *_, layout in plain_keys} == {"DefaultFormat"}
    assert {("Conv2D", "output", "0", "NC1HWC0"), ("ReLU", "input", "0", "NC1HWC0")} <= set(keys)
    for file, same, (*_, layout) in zip(device, plain, keys):
        array, expected = np.load(file), np.load(same)
        if layout != "DefaultFormat":
            assert array.shape != expected.shape
            array = device_formats.from_device(array, layout, expected.shape)
        np.testing.assert_array_equal(array, expected)
    stamps = [int(row["Timestamp"]) for row in rows]
    assert stamps == sorted(set(stamps)) and len(rows) == len(plain_rows) == len(device)
    assert ("Conv2D", "output", "(2,2,3,3,16)") in [(r["Op Type"], r["IO"], r["Shape"]) for r in rows]
    assert [row["Data Type"] for row in rows] == [row["Data Type"] for row in plain_rows]


def test_the_old_layout_and_names_of_2_0_have_the_format_too(tmp_path):
    dump(tmp_path / "short", Net(ms.float16), keeps=True, naming="2.0")
    assert list((tmp_path / "short").rglob("Conv2D.Conv2D-op*.output.0.NC1HWC0.npy"))
    dump(tmp_path / "raw", Net(ms.float16), keeps=True, layout="bin", saved_data="tensor")
    (raw,) = (tmp_path / "raw").rglob("*Conv2D-op0_output_0_shape_2_2_3_3_16_Float16_NC1HWC0.bin")
    assert raw.stat().st_size == 2 * 2 * 2 * 3 * 3 * 16
