"""Dumps whose files are compressed are written smaller, and read by everything as others are."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import mycelia as ms
from mycelia import Tensor, debug, nn, ops
from mycelia.debug.dump import parse
from mycelia.debug.precision.comparison import Comparison
from mycelia.debug.reading.folders import Dump

X = np.linspace(0, 1, 4 * 300, dtype=np.float32).round(1).reshape(4, 300)


@pytest.fixture(autouse=True)
def has_library():
    pytest.importorskip("zstandard", reason="files are compressed by it")


class Net(nn.Cell):
    def __init__(self, name="short"):
        super().__init__()
        self.insert_child_to_cell(name, nn.Dense(300, 300, weight_init="ones", bias_init="zeros"))
        self.used = name

    def construct(self, x):
        return ops.log(getattr(self, self.used)(x) - 150.0)


def dumped(folder, compression, name="short", **fields):
    with debug.dump({"path": str(folder), "compression": compression, **fields}):
        ms.jit(Net(name))(Tensor(X))
    return folder


def files_of(folder):
    return sorted(path for path in folder.glob("rank_0/Net/*/[0-9]*/*") if ".npy" in path.name)


def arrays(folder):
    steps = Dump(folder).steps
    return [(r.kind, r.name, r.io, r.slot, r.array()) for step in steps for r in step.records()]


@pytest.mark.parametrize("saved", ["tensor", "full"])
def test_a_compressed_dump_holds_the_same_and_takes_less(tmp_path, saved):
    plain = dumped(tmp_path / "plain", "none", saved_data=saved)
    small = dumped(tmp_path / "small", "zstd", saved_data=saved)
    assert all(path.name.endswith(".npy.zst") for path in files_of(small))
    for left, right in zip(arrays(plain), arrays(small), strict=True):
        assert left[:4] == right[:4]
        np.testing.assert_array_equal(left[4], right[4])
    sizes = [sum(path.stat().st_size for path in files_of(folder)) for folder in (plain, small)]
    assert sizes[1] < sizes[0] / 3
    links = [len({path.stat().st_ino for path in files_of(folder)}) for folder in (plain, small)]
    assert links[0] == links[1] < len(files_of(small))


def test_all_that_reads_dumps_reads_it(tmp_path):
    plain, small = dumped(tmp_path / "plain", "none"), dumped(tmp_path / "small", "zstd")
    first, second = (debug.DumpAnalyzer(folder).trace_nonfinite() for folder in (plain, small))
    assert [row["op_full_name"] for row in first] == [row["op_full_name"] for row in second] != []
    comparison = Comparison(Dump(small), Dump(plain), threshold=1 - 1e-12)
    rows = list(comparison.rows())
    assert len(rows) == len(files_of(small)) and comparison.divergence is None
    assert {row.values["MaxAbsoluteError"] for row in rows if row.overflow == "NO"} == {0.0}

    from mycelia.debug import cli
    from mycelia.debug.precision.cli import app

    run = CliRunner()
    index = tmp_path / "index.csv"
    assert run.invoke(cli.app, [str(small), "index", str(index)]).exit_code == 0
    assert ".npy.zst" in index.read_text()
    table = run.invoke(app, ["pt", str(files_of(small)[0])])
    assert table.exit_code == 0 and "(" in table.output


def test_a_name_that_the_ending_makes_too_long_stands_in_the_mapping(tmp_path):
    for length in range(150, 200):
        folder = dumped(tmp_path / str(length), "none", "a" * length)
        longest = max(len(path.name) for path in files_of(folder))
        if 251 < longest <= 255:
            break
    small = dumped(tmp_path / "small", "zstd", "a" * length)
    assert max(len(path.name) for path in files_of(small)) <= 255
    for left, right in zip(arrays(folder), arrays(small), strict=True):
        assert left[:4] == right[:4]
        np.testing.assert_array_equal(left[4], right[4])


@pytest.mark.parametrize("damage", [
    lambda b: b"", lambda b: b[:10], lambda b: b[:-20], lambda b: b[:-1] + bytes([b[-1] ^ 1]),
])  # fmt: skip
def test_a_file_that_is_damaged_is_told(tmp_path, damage):
    path = files_of(dumped(tmp_path, "zstd"))[0]
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"\.npy\.zst cannot be read"):
        arrays(tmp_path)


def test_what_cannot_be_compressed_is_refused(tmp_path):
    for given, told in (
        ({"layout": "bin"}, "'none', since the layout 'bin' cannot be compressed"),
        ({"compression": "gzip"}, "one of 'none', 'zstd', but got 'gzip'"),
    ):
        with pytest.raises(ValueError, match=told):
            parse({"path": str(tmp_path), "compression": "zstd", **given})
    whole = {"common_dump_settings": {"path": str(tmp_path), "compression": "zstd"}}
    with pytest.raises(ValueError, match="asynchronous dumps cannot be compressed"):
        parse({**whole, "async_dump_settings": {"enable": True}})


def test_without_the_library_it_says_what_to_install(tmp_path, monkeypatch):
    dumped(tmp_path, "zstd")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match=r"pip install 'mycelia-core\[compression\]'"):
        parse({"path": str(tmp_path), "compression": "zstd"})
    with pytest.raises(ImportError, match=r"pip install 'mycelia-core\[compression\]'"):
        arrays(tmp_path)
