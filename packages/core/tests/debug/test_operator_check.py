"""Operators of a run alone against float64: those that are right pass, one with damaged results fails."""

from __future__ import annotations

import csv
import subprocess
import sys

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops, precision

RNG = np.random.default_rng(3)
X = RNG.standard_normal((4, 6)).astype(np.float32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(6, 5)

    def construct(self, x):
        y = ops.softmax(self.fc(x) * 2.0)
        return ops.concat([y, ops.floor(y * 10)], 1).sum() - ops.argmax(y, 1).sum()


def kept(mode=ms.GRAPH_MODE, x=X):
    net = Net()
    step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 0.1))
    with ms.config.context(mode=mode), precision.acc_check() as found:
        step(ms.Tensor(x))
    return found


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize("inputs", ["recorded", "random"])
def test_operators_that_are_right_pass(mode, inputs):
    rows = kept(mode).results(inputs)
    assert {row.verdict for row in rows} == {"pass"}, [r.cells() for r in rows if r.verdict != "pass"]
    types = {row.operator.type for row in rows}
    assert {"Dense", "Softmax", "Concat", "Floor", "Adam"} <= types, types


@pytest.mark.parametrize(
    "kind, damage, reason",
    [
        ("Softmax", lambda a: a * 1.001, "elements are beyond the bound"),
        ("Dense", lambda a: np.where(a == a.max(), np.nan, a), "NaN or infinities at other places"),
        ("Argmax", lambda a: a + 1, "4 of 4 elements differ"),
        ("Concat", lambda a: a[:2], "shape (2, 10), the reference has (4, 10)"),
    ],
)
def test_an_operator_with_a_wrong_result_fails_alone(kind, damage, reason):
    found = kept()
    use = next(u for u in found.uses.values() if u.operator.type.lower().startswith(kind.lower()))
    array = use.outputs[0].asnumpy()
    use.outputs[0] = ms.Tensor(damage(array).astype(array.dtype))
    (row,) = [r for r in found.results() if r.verdict == "fail"]
    assert row.operator is use.operator and reason in row.reason, row.cells()


def test_sums_that_cancel_are_not_blamed_and_wrong_ones_are():
    x = np.tile(np.array([1.0, -1.0], np.float32), 5000) * RNG.uniform(0.5, 1, 10000).astype(np.float32)
    x[1::2] = -x[::2]
    x = (x + RNG.standard_normal(10000) * 1e-6).astype(np.float32)
    with precision.acc_check() as found:
        ops.sum(ms.Tensor(x))
    (row,) = found.results()
    assert row.verdict == "pass" and row.bound < 1e-3
    (use,) = found.uses.values()
    use.outputs[0] = use.outputs[0] + 1e-3
    assert found.results()[0].verdict == "fail"


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float32, ms.float64, ms.complex64])
def test_the_bound_is_that_of_the_dtype(dtype):
    with precision.acc_check() as found:
        ops.exp(ms.Tensor(X).astype(dtype))
    exp = next(u for u in found.uses.values() if u.operator.type == "Exp")
    assert {r.verdict for r in found.results()} == {"pass"}
    exp.outputs[0] = (exp.outputs[0].astype(ms.complex128) * 1.1).astype(dtype)
    assert [r.operator.type for r in found.results() if r.verdict == "fail"] == ["Exp"]


def test_overflow_of_the_result_type_is_expected_where_it_must_be():
    with precision.acc_check() as found:
        ops.exp(ms.Tensor(np.array([1.0, 12.0], np.float16)))
    (row,) = found.results()
    assert row.verdict == "pass"
    (use,) = found.uses.values()
    use.outputs[0] = ms.Tensor(np.array([2.7183, 65504], np.float16))
    assert found.results()[0].reason == "NaN or infinities at other places"


def test_what_cannot_be_checked_alone_says_why():
    with precision.acc_check() as found:
        ops.dropout(ms.Tensor(X))
        ops.ones((2, 3))
    reasons = {r.reason for r in found.results() if r.verdict == "skipped"}
    assert "it draws random numbers" in reasons
    with pytest.raises(ValueError, match="recorded"):
        found.results("made up")


SCRIPT = """
import numpy as np
import mycelia as ms
from mycelia import ops
f = ms.jit(lambda x: ops.tanh(ops.exp(x)))
f(ms.Tensor(np.ones((4, 5), np.float32)))
ops.relu(ms.Tensor(np.ones((4, 5), np.float32)))
"""


def test_the_command_checks_a_script(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    base = [sys.executable, "-m", "mycelia.debug.precision", "--fail", "acc_check"]
    done = subprocess.run(
        [*base, f"{sys.executable} train.py", "-o", "table.csv"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0 and "table.csv: 3 pass, 0 fail, 0 skipped" in done.stdout, done
    rows = list(csv.DictReader((tmp_path / "table.csv").open()))
    assert [r["Op Type"] for r in rows] == ["Exp", "Tanh", "ReLU"]
    assert rows[0]["Source"].endswith("train.py:5") and rows[0]["Shape"] == "(4,5)"
    done = subprocess.run([*base, f"{sys.executable} -c pass"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "ran no operator" in done.stderr and "Traceback" not in done.stderr
