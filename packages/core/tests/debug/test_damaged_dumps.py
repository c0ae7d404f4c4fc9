"""Dumps whose files were changed at random are read, or an error names the file: see tests/mutations.py."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import debug, ops
from mycelia.debug.dump import files
from mycelia.debug.precision.comparison import Comparison
from mycelia.debug.precision.operators import describe
from mycelia.debug.reading.folders import Dump

sys.path.insert(0, str(Path(__file__).parent.parent))

from mutations import count_of, faults

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited as on Linux"),
]


COUNTS = ["nan count", "negative inf count", "positive inf count"]


@pytest.fixture
def step(tmp_path, monkeypatch, from_the_first_step):
    """The folder of a dumped step, with files whose bytes do not depend on the time."""
    monkeypatch.setattr(files.CLOCK, "last", 9 * 10**15)  # later than any time
    x = ms.Tensor(np.float32([[1.0, -2.0], [np.nan, 4.0]]))

    def dumped(saved: str) -> Path:
        fields = {"saved_data": saved, "statistic_category": ["max", "min", "avg", *COUNTS]}
        with debug.dump({"path": str(tmp_path), "net_name": "Net", **fields}):
            ms.jit(lambda x: ops.exp(ops.matmul(x, x)))(x)
        (folder,) = tmp_path.glob("rank_0/Net/*/0")
        return folder

    return dumped


def read(folder: Path) -> None:
    """All that reads files of a dump."""
    dump = debug.DumpAnalyzer(folder)
    dump.trace_nonfinite()
    dump.select_tensor_statistics()
    for node in dump.select_nodes(""):
        dump.get_input_nodes(node)
    list(describe(Dump(folder), "Default", None, Dump(folder), ""))
    for by in ("name", "order"):
        table = Comparison(Dump(folder), Dump(folder), strict=True, by=by)
        for row in table.rows():
            row.cells(table.columns)


@pytest.mark.parametrize("saved", ["statistic", "full"])
def test_tables_of_statistics(saved, step, tmp_path):
    table = step(saved) / "statistic.csv"
    lacks = {"without the counts of NaN", "no operator of"}  # another head, no rows
    found = faults(table, lambda: read(tmp_path), count_of(40), names=lacks)
    assert not found, found


def test_names_that_were_too_long(step, tmp_path):
    folder = step("full")
    (name,) = (path.name for path in folder.glob("Exp.*.output.*.npy"))
    table = folder / "mapping.csv"
    table.write_text(f"1000000000000009.npy,{name}\nx,y\n", encoding="utf-8")
    found = faults(table, lambda: read(tmp_path), count_of(20))
    assert not found, found


def test_arrays_and_what_is_said_of_operators(step, tmp_path):
    folder = step("tensor")
    (array,) = folder.glob("Exp.*.output.*.npy")
    (graph,) = tmp_path.glob("rank_0/graphs/mycelia_operators_graph_*.json")
    for path in (array, graph):
        found = faults(path, lambda: read(tmp_path), count_of(40))
        assert not found, found
