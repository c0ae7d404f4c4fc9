"""Dumps of MindSpore 2.0 and 2.10 themselves: two steps of a Dense layer whose logarithm meets zeros.

Made on a CPU by `MINDSPORE_DUMP_CONFIG`, of a network with the line `NET`; folders of packages are renamed.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mycelia import debug
from mycelia.debug.cli import app
from mycelia.debug.precision.comparison import Comparison
from mycelia.debug.reading.folders import Dump

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "dumps"
NET = "ops.log(self.relu(self.fc(x)))"
LOG = {"2.0": "Default/network-WithLossCell/_backbone-Net/Log-op37",
       "2.10": "Default/network-WithLossCell/_backbone-Net/Log-op0"}  # fmt: skip


@pytest.fixture(params=sorted(LOG))
def version(request):
    return request.param


@pytest.fixture
def folder(tmp_path, version):
    with zipfile.ZipFile(FIXTURES / f"mindspore_{version}.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path


def test_the_operator_of_the_first_infinity_is_named_with_its_line(folder, version):
    found = debug.DumpAnalyzer(folder).trace_nonfinite()
    first = found[0]
    assert (first["op_full_name"], first["iteration"], first["kind"]) == (LOG[version], 0, "-inf")
    assert first["born"] is True and any(NET in line for line in first["source"])


def test_weights_and_states_are_read_at_both_steps(folder):
    dump = debug.DumpAnalyzer(folder)
    assert dump.get_iterations() == [0, 1] and dump.get_ranks() == [0]
    weights = [t for t in dump.select_tensors("fc.weight") if t.node.name == "fc.weight"]
    assert [t.value().shape for t in weights] == [(3, 4), (3, 4)]
    assert not np.array_equal(weights[0].value(), weights[1].value())


def test_the_command_reads_them(folder, version):
    done = CliRunner().invoke(app, [str(folder)])
    assert done.exit_code == 0, done.output
    assert LOG[version] in done.output


def test_a_dump_is_like_itself(folder):
    comparison = Comparison(Dump(folder), Dump(folder))
    assert len(list(comparison.rows())) > 80
    assert comparison.divergence is None and comparison.unlike == 0
