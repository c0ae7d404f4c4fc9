"""`mycelia doctor`: names of MindSpore that a script uses and that are not here."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from mycelia.faces.compat import doctor

SCRIPT = """\
import mindspore as ms
from mindspore import nn, ops
from mindspore.ops import operations as P
from mindspore.nn.layer.basic import Dense, Dence
import mindspore.unheard_of as unheard

act = ops.rellu

class Net(nn.Cell):
    def __init__(self, ops=None):
        super().__init__()
        self.order = P.ControlDepend()
        self.fc = nn.Dense(in_channels=3, out_chanels=4)
        self.own = ops.anything

step = ms.ms_function(lambda nn: nn.anything)
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_missing_names_are_told_with_line_and_advice(file):
    report = doctor.examine(file)
    told = {(f.line, f.name.rpartition("mindspore.")[2], f.kind) for f in report.findings}
    assert told == {
        (4, "nn.layer.basic.Dence", "missing"),
        (5, "unheard_of", "missing"),
        (7, "ops.rellu", "missing"),
        (12, "ops.operations.ControlDepend", "missing"),
        (13, "nn.Dense(out_chanels=)", "argument"),
        (16, "ms_function", "renamed"),
    }
    advice = {f.line: f.advice for f in report.findings}
    assert (
        "relu" in advice[7]
        and "depend" in advice[12]
        and "out_channels" in advice[13]
        and "jit" in advice[16]
    )


def test_what_is_here_is_no_finding(tmp_path):
    file = tmp_path / "fine.py"
    file.write_text(
        "import mindspore.nn as nn\nfrom mindspore import Tensor\nnet = nn.Dense(2, 3, has_bias=False)\n"
    )
    report = doctor.examine(file)
    assert report.ok and not report.findings and report.uses == 4


def test_files_that_are_not_python_are_told(tmp_path):
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "fine.py").write_text("import mindspore\n")
    report = doctor.examine(tmp_path)
    assert report.files == 2 and [f.kind for f in report.findings] == ["syntax"]


def test_the_command_ends_with_1_if_something_is_missing(file, tmp_path):
    command = [sys.executable, "-m", "mycelia", "doctor"]
    bad = subprocess.run([*command, str(file), "--json"], capture_output=True, text=True)
    assert bad.returncode == 1, bad.stderr
    assert json.loads(bad.stdout)["findings"][0]["line"] == 4
    file.write_text("import mindspore\n")
    good = subprocess.run([*command, str(file)], capture_output=True, text=True)
    assert good.returncode == 0 and "0 in the way" in good.stdout
