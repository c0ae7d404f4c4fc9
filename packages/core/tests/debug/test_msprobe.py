"""The tables that msprobe makes of two dumps: its columns, numbers and verdicts."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from typer.testing import CliRunner

import mycelia as ms
from mycelia import debug, nn, ops
from mycelia.debug.precision.cli import app
from mycelia.debug.precision.msprobe import reached

X = np.random.default_rng(7).standard_normal((4, 5)).astype(np.float32)


class Net(nn.Cell):
    def construct(self, x):
        return ops.relu(ops.tanh(ops.exp(x)) - 0.5)


def dump(folder, steps=1, x=X, **fields):
    net = Net()
    with debug.dump({"path": str(folder), "eager": True, **fields}):
        for _ in range(steps):
            ms.jit(net)(ms.Tensor(x))
    return folder


def change(folder, kind, changed):
    (path,) = folder.rglob(f"{kind}.*.output.0.*.npy")
    array = np.load(path)
    path.unlink()
    np.save(path, changed(array))


def tables(left, right, out):
    command = ["vc", "-lt", str(left), "-rt", str(right), "-o", str(out), "--msprobe"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    found = sorted(out.glob("compare_result_*.csv"))
    assert all(f"msprobe's table: {path}" in done.output.replace("\n", "") for path in found)
    return {path: list(csv.DictReader(path.open())) for path in found}


def row_of(rows, kind):
    return next(row for row in rows if f"/{kind}." in row["NPU Name"] and ".output.0." in row["NPU Name"])


def test_columns_and_numbers_of_tensors(tmp_path):
    left, right = dump(tmp_path / "l"), dump(tmp_path / "r")
    change(left, "Tanh", lambda a: a * np.float32(1.01) + np.float32(0.002))
    ((path, rows),) = tables(left, right, tmp_path / "out").items()
    assert path.name.startswith("compare_result_0_")
    assert list(rows[0]) == [
        "NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape",
        "NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean",
        "Bench l2norm", "Accuracy Reached or Not", "Err_message", "Cosine", "EucDist", "MaxAbsErr",
        "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio",
    ]  # fmt: skip
    row = row_of(rows, "Tanh")
    y = np.tanh(np.exp(X.astype(np.float64)))
    x = np.load(row["NPU Name"]).astype(np.float64)
    assert row["NPU Tensor Shape"] == "[4, 5]" and row["NPU Dtype"] == "float32"
    assert float(row["MaxAbsErr"]) == pytest.approx(np.abs(x - y).max(), abs=1e-6)
    assert float(row["EucDist"]) == pytest.approx(np.linalg.norm(x - y), rel=1e-4)
    assert float(row["MaxRelativeErr"]) == pytest.approx(np.abs(x / y - 1).max(), rel=1e-3)
    assert float(row["Five Thousandths Err Ratio"]) == 0.0 and float(row["Cosine"]) > 0.9999
    assert row["Accuracy Reached or Not"] == "Yes" and row["Err_message"] == ""
    exact = row_of(rows, "Exp")
    assert float(exact["One Thousandth Err Ratio"]) == 1.0 and float(exact["MaxAbsErr"]) == 0.0


@pytest.mark.parametrize(
    ("changed", "verdict", "message"),
    [
        (lambda a: -a, "No", ""),
        (lambda a: a + 1.5, "No", ""),
        (lambda a: np.where(a == a.flat[0], np.nan, a), "", "NaN or infinities at other places"),
        (lambda a: a[:2], "", "shape unmatched"),
        (lambda a: a.astype(np.float64), "", "dtypes differ"),
        (lambda a: a[:0], "", "a tensor is empty"),
    ],
)
def test_verdicts(tmp_path, changed, verdict, message):
    left, right = dump(tmp_path / "l"), dump(tmp_path / "r")
    change(left, "Tanh", lambda a: changed(a) if a.dtype != changed(a).dtype and message == "dtypes differ"
           else changed(a).astype(a.dtype))  # fmt: skip
    (rows,) = tables(left, right, tmp_path / "out").values()
    row = row_of(rows, "Tanh")
    assert (row["Accuracy Reached or Not"], row["Err_message"]) == (verdict, message)


def test_what_is_not_finite_at_the_same_places_is_left_out(tmp_path):
    x = X.copy()
    x[0, 0], x[1, 1] = np.nan, 1e10  # exp makes an infinity of it
    (rows,) = tables(dump(tmp_path / "l", x=x), dump(tmp_path / "r", x=x), tmp_path / "out").values()
    row = row_of(rows, "Exp")
    assert float(row["MaxAbsErr"]) == 0.0 and row["Accuracy Reached or Not"] == "Yes"
    assert row["NPU max"] == "nan"


@pytest.mark.parametrize(
    ("cosine", "error", "verdict"),
    [
        (0.99, 0.5, "Yes"), (0.989, 0.001, "Yes"), (0.989, 0.0011, "No"), (0.9, 0.0, "Yes"),
        (0.899, 0.0, "No"), (1.0, 1.0, "Yes"), (1.0, 1.001, "No"), ("unsupported", 0.0, "None"),
    ],
)  # fmt: skip
def test_bounds_of_the_verdict(cosine, error, verdict):
    assert reached(cosine, error) == verdict


def test_a_table_for_each_iteration_of_statistics(tmp_path):
    fields = {"saved_data": "statistic", "statistic_category": ["max", "min", "avg", "l2norm"]}
    ms.jit(Net())(ms.Tensor(X))
    left, right = dump(tmp_path / "l", 2, 2 * X, **fields), dump(tmp_path / "r", 2, **fields)
    found = tables(left, right, tmp_path / "out")
    iterations = {path.name.split("_")[3] for path in found}
    assert len(found) == 2 == len(iterations)
    for rows in found.values():
        row = next(row for row in rows if row["NPU Name"].startswith("Default_Exp-op0.0.output.0"))
        largest = np.float32(np.exp(2 * X.max())), np.float32(np.exp(X.max()))
        assert float(row["Max diff"]) == pytest.approx(float(largest[0] - largest[1]), rel=1e-4)
        share = float(row["MaxRelativeErr"].removesuffix("%"))
        assert share == pytest.approx(100 * (largest[0] / largest[1] - 1), rel=1e-3)
        assert row["Accuracy Reached or Not"] == "No" and row["NPU CSV File"].endswith("statistic.csv")
        assert list(row)[16:24] == [
            "Max diff", "Min diff", "Mean diff", "L2norm diff", "MaxRelativeErr", "MinRelativeErr",
            "MeanRelativeErr", "NormRelativeErr",
        ]  # fmt: skip
