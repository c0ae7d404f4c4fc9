"""Formulas of the precision tool against their definitions, and its commands as users call them."""

from __future__ import annotations

import csv
import itertools
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import mycelia as ms
from mycelia import debug, nn, ops, precision
from mycelia.debug.precision import comparison, measures
from mycelia.debug.precision.bisect import minimal
from mycelia.debug.precision.cli import app
from mycelia.debug.precision.comparison import alike
from mycelia.debug.precision.switches import read_switches
from mycelia.engine import observing

RNG = np.random.default_rng(7)


def measured(x, y, **options) -> dict:
    return precision.measure(np.asarray(x), np.asarray(y), **options).values


# ---- formulas ----------------------------------------------------------------------------------------------


def test_columns_are_their_definitions():
    x, y = RNG.standard_normal((2, 40)).astype(np.float32)
    a, b = x.astype(np.float64), y.astype(np.float64)
    found = measured(x, y)
    relative = np.abs(a / b - 1)
    p, q = ((v - v.min()) / (v.max() - v.min()) for v in (a, b))
    p, q = (np.maximum(v, 1.1920929e-07) for v in (p, q))
    p, q = p / p.sum(), q / q.sum()
    expected = {
        "CosineSimilarity": a @ b / np.linalg.norm(a) / np.linalg.norm(b),
        "MaxAbsoluteError": np.abs(a - b).max(),
        "AccumulatedRelativeError": relative.sum(),
        "RelativeEuclideanDistance": np.linalg.norm(a - b) / np.linalg.norm(b),
        "KullbackLeiblerDivergence": (p * np.log(p / q)).sum(),
        "MeanAbsoluteError": np.abs(a - b).mean(),
        "RootMeanSquareError": np.sqrt(((a - b) ** 2).mean()),
        "MaxRelativeError": relative.max(),
        "MeanRelativeError": relative.mean(),
    }
    assert [c for c in found if c != "StandardDeviation"] == list(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-12), name
    assert found["StandardDeviation"] == f"({a.mean():.3f};{a.std():.3f}),({b.mean():.3f};{b.std():.3f})"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_tensors_of_many_blocks_have_the_numbers_of_one(dtype, monkeypatch):
    from mycelia.debug.precision import sums

    x = RNG.standard_normal(50_001).astype(dtype)
    y = (x + RNG.standard_normal(50_001) * 0.01).astype(dtype)
    y[::7] = 0
    many = measured(x, y)
    monkeypatch.setattr(sums, "_BLOCK", 1 << 20)
    whole = measured(x, y)
    assert many.pop("StandardDeviation") == whole.pop("StandardDeviation")
    for name, value in whole.items():
        assert many[name] == pytest.approx(value, rel=1e-11), name


@pytest.mark.parametrize(
    "x, y, cosine, message",
    [
        ([0.0, 0.0], [0.0, 0.0], 1.0, "both all zero"),
        ([0.0, 0.0], [1.0, 2.0], math.nan, "left all zero"),
        ([1.0, 2.0], [0.0, 0.0], math.nan, "right all zero"),
        ([3.0], [5.0], 1.0, "scalar"),
        ([1.0, 2.0], [-1.0, -2.0], -1.0, ""),
        ([1e200, 1e200], [1e200, 1e200], 1.0, ""),
    ],
)
def test_special_cases_of_the_cosine(x, y, cosine, message):
    found = precision.measure(np.array(x), np.array(y))
    assert found.values["CosineSimilarity"] == pytest.approx(cosine, nan_ok=True)
    assert "; ".join(found.messages) == message


def test_references_of_zero_hide_errors_and_the_strict_columns_show_them():
    found = measured([1.0, 2.0], [0.0, 0.0], strict=True)
    assert found["RelativeEuclideanDistance"] == found["AccumulatedRelativeError"] == 0.0
    assert found["StrictRelativeEuclideanDistance"] == math.inf
    assert found["OneThousandthErrorRatio"] == 0.0


def test_numbers_that_are_tiny_are_not_zero():
    """MindStudio takes what has a norm below 2.2e-16 for zeros, and says that it is equal."""
    x, y = np.full(4, 1.1e-20, np.float32), np.full(4, 1e-20, np.float32)
    values = measures.measure(x, y).values
    assert f"{values['RelativeEuclideanDistance']:.6f}" == "0.100000"
    assert f"{values['CosineSimilarity']:.6f}" == "1.000000"
    assert values["MaxRelativeError"] == 0.0  # of elements: abs(y) above 2.2e-16


def test_constant_tensors_have_no_divergence_from_each_other():
    assert measured([2.0] * 4, [7.0] * 4)["KullbackLeiblerDivergence"] == 0.0
    assert measured([0.0] * 4, [0.0] * 4)["KullbackLeiblerDivergence"] == 0.0


def test_nan_makes_all_nan_and_infinity_all_inf():
    assert all(math.isnan(v) for v in measured([1.0, math.nan], [1.0, 2.0]).values())
    assert set(measured([1.0, math.inf], [1.0, 2.0]).values()) == {math.inf}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ulps_count_the_numbers_between(dtype):
    x = np.array([1.0, -1.0, 0.0, 1e-3], dtype)
    up = x.copy()
    for _ in range(3):
        up = np.nextafter(up, dtype(np.inf))
    assert precision.ulps(up, x).tolist() == [3, 3, 3, 3]
    assert precision.ulps(np.array([-0.0], dtype), np.array([0.0], dtype)).tolist() == [0]
    assert measured(up, x, strict=True)["MaxULP"] == 3


def test_ulps_are_those_of_the_narrower_type():
    half = np.array([1.0], np.float16)
    assert precision.ulps(half, np.array([1.0 + 2**-11], np.float32)).tolist() == [0]
    assert precision.ulps(half, np.array([1.0 + 2**-10], np.float32)).tolist() == [1]


@pytest.mark.parametrize(
    "x, y, same",
    [
        ([1.0, 2.0], [1.0, 2.0], True), ([2.0, 4.0], [1.0, 2.0], False), ([1.0, 2.01], [1.0, 2.0], True),
        ([math.nan, 1.0], [math.nan, 1.0], True), ([math.nan, 1.0], [1.0, 1.0], False),
        ([math.inf, 1.0], [-math.inf, 1.0], False), ([0.0, 0.0], [0.0, 0.0], True),
        ([1e-9, 0.0], [0.0, 0.0], False), ([], [], True),
    ],
)  # fmt: skip
def test_what_is_alike(x, y, same):
    assert alike(np.array(x), np.array(y), 0.98) is same


# ---- dumps -------------------------------------------------------------------------------------------------


class Net(nn.Cell):
    """Three operators; `factor` and `bias` plant faults behind the first and second."""

    def __init__(self, factor=1.0, bias=0.0):
        super().__init__()
        self.factor, self.bias = factor, bias

    def construct(self, x):
        y = ops.exp(x) if self.factor == 1.0 else ops.exp(x * self.factor)
        z = ops.tanh(y + self.bias)
        return ops.relu(z - 0.5)


INPUT = ms.Tensor(RNG.standard_normal((4, 5)).astype(np.float32))


def dump(folder: Path, net: nn.Cell) -> Path:
    with debug.dump({"path": str(folder)}):
        net(INPUT)
    return folder


def invoke(*words: str | Path, code: int = 0):
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == code, (done.output, done.exception)
    return done


def damage(folder: Path, kind: str, change) -> str:
    """Change what one operator of a dump made; its name."""
    (path,) = folder.rglob(f"{kind}.*.output.0.*.npy")
    array = np.load(path)
    path.unlink()  # operators that read it may have it as a link
    np.save(path, change(array).astype(array.dtype))
    return path.name.split(".")[1]


def test_equal_dumps_are_alike(tmp_path):
    left, right = dump(tmp_path / "l", Net()), dump(tmp_path / "r", Net())
    done = invoke("vc", "-lt", left, "-rt", right, "-o", tmp_path / "out", "--strict")
    assert "first divergence: none" in done.output and "0 not alike" in done.output
    (path,) = (tmp_path / "out").glob("result_*.csv")
    rows = list(csv.DictReader(path.open()))
    assert {row["CosineSimilarity"] for row in rows} == {"1.000000"}
    assert {row["MaxULP"] for row in rows} == {"0.000000"}
    assert list(rows[0])[:8] == [
        "Index", "LeftOp", "RightOp", "TensorIndex", "Shape", "DataType(L)", "DataType(R)", "OverFlow",
    ]  # fmt: skip
    assert "no operator" in invoke("vcs", "-f", path).output


@pytest.mark.parametrize(
    "change", [lambda a: -a, lambda a: a + RNG.standard_normal(a.shape), np.zeros_like, lambda a: a * 2]
)
def test_the_operator_that_departs_is_named_with_its_line(tmp_path, change):
    left, right = dump(tmp_path / "l", Net()), dump(tmp_path / "r", Net())
    damage(left, "Tanh", change)
    done = invoke("vc", "-lt", left, "-rt", right, "-o", tmp_path / "out")
    assert "first divergence: Default/Tanh-op0" in done.output
    assert "z = ops.tanh(y + self.bias)" in done.output


def test_one_bit_that_differs_is_named_where_tensors_must_be_equal(tmp_path):
    left, right = dump(tmp_path / "l", Net()), dump(tmp_path / "r", Net())
    compare = "vc", "-lt", left, "-rt", right, "-o", tmp_path / "out"
    assert "first divergence: none" in invoke(*compare, "-c", "1").output

    def next_number(array):
        array = array.copy()
        array.flat[3] = np.nextafter(array.flat[3], np.float32(2))
        return array

    damage(left, "Tanh", next_number)
    assert "first divergence: none" in invoke(*compare).output
    assert "first divergence: Default/Tanh-op0" in invoke(*compare, "-c", "1").output


def test_a_constant_that_differs_is_named_by_what_reads_it_and_no_parameter_of_the_next_step(tmp_path):
    def trained(folder: Path, factor: float) -> Path:
        observing.set_iteration(0)
        net = nn.Dense(5, 2, weight_init="ones", bias_init="zeros")
        scale = ms.Tensor(np.full(2, factor, np.float32))
        step = ms.value_and_grad(lambda x: ops.sum(net(x) * scale), None, net.trainable_params())
        optimizer = nn.SGD(net.trainable_params(), 0.1)
        with debug.dump({"path": str(folder), "eager": True}):
            for _ in range(2):
                optimizer(step(INPUT)[1])
        return folder

    left, right = trained(tmp_path / "l", -2.0), trained(tmp_path / "r", 1.0)
    page = tmp_path / "report.html"
    done = invoke("vc", "-lt", left, "-rt", right, "-o", tmp_path / "out", "--html", page).output
    assert "first divergence: Default/Mul-op0\n  iteration 0, input 1, cosine -1.000000" in done
    assert "a constant, which was not compared" in done and "ops.sum(net(x) * scale)" in done
    assert "what it reads is a constant" in page.read_text()
    assert "width=device-width" in page.read_text()


def test_other_shapes_and_statistics_that_cannot_be_of_alike_tensors_are_divergences(tmp_path):
    left, right = dump(tmp_path / "l", Net()), dump(tmp_path / "r", Net())
    damage(left, "Exp", lambda a: a[:2])
    done = invoke("vc", "-lt", left, "-rt", right, "-o", tmp_path / "out").output
    assert "first divergence: Default/Exp-op0\n" in done and "output 0, shape unmatched" in done
    sides = []
    for bias in (0.0, 0.0, 1.0):
        sides.append(tmp_path / f"statistics{len(sides)}")
        with debug.dump({"path": str(sides[-1]), "saved_data": "statistic"}):
            Net(bias=bias)(INPUT)
    same = invoke("vc", "-lt", sides[0], "-rt", sides[1], "-o", tmp_path / "out").output
    assert "first divergence: none" in same and " 0 tensors" not in same
    other = invoke("vc", "-lt", sides[2], "-rt", sides[0], "-o", tmp_path / "out").output
    assert "first divergence: Default/Add-op0\n" in other and "output 0, statistics: max diff 1 " in other


def test_what_is_twice_as_long_stands_out_in_the_report(tmp_path):
    left, right = dump(tmp_path / "l", Net()), dump(tmp_path / "r", Net())
    damage(left, "ReLU", lambda a: a * 2)  # a cosine of 1
    page = tmp_path / "report.html"
    invoke("vc", "-lt", left, "-rt", right, "-o", tmp_path / "out", "--html", page)
    assert page.read_text().count("class=unlike") == 1


def test_planted_operators_are_listed_in_order_of_execution(tmp_path):
    left, right = dump(tmp_path / "l", Net()), dump(tmp_path / "r", Net())
    for kind in ("ReLU", "Exp"):
        damage(left, kind, lambda a: a[::-1])
    invoke("vc", "-lt", left, "-rt", right, "-o", tmp_path / "out")
    (path,) = (tmp_path / "out").glob("*.csv")
    listed = [line for line in invoke("vcs", "-f", path).output.splitlines() if line.startswith("[")]
    assert [line.split("_")[-1] for line in listed] == ["Exp-op0", "ReLU-op0"]
    assert len([x for x in invoke("vcs", "-f", path, "-l", "1").output.splitlines() if x[0] == "["]) == 1


def test_shapes_that_differ_and_tensors_without_a_reference_say_so(tmp_path):
    left, right = dump(tmp_path / "l", Net()), dump(tmp_path / "r", Net())
    damage(left, "Exp", lambda a: a[:2])
    next(right.rglob("Tanh.*.output.0.*")).unlink()
    invoke("vc", "-lt", left, "-rt", right, "-o", tmp_path / "out")
    (path,) = (tmp_path / "out").glob("*.csv")
    reasons = {(r["TensorIndex"].split("_")[-1], r["CompareFailReason"]) for r in csv.DictReader(path.open())}
    assert ("Exp-op0:output:0", "shape unmatched") in reasons
    assert ("Tanh-op0:output:0", "No bench data matched.") in reasons


def test_matching_by_order_needs_no_names(tmp_path):
    class Other(Net):
        def construct(self, values):
            return self.inner(values)

        def inner(self, values):
            return ops.relu(ops.tanh(ops.exp(values) + 0.0) - 0.5)

    left, right = dump(tmp_path / "l", Net()), dump(tmp_path / "r", nn.SequentialCell(Other()))
    done = invoke("vc", "-lt", left, "-rt", right, "-o", tmp_path / "out", "--by", "order")
    assert "first divergence: none" in done.output


def test_the_report_shows_what_differs_and_loads_nothing(tmp_path):
    left, right = dump(tmp_path / "l", Net()), dump(tmp_path / "<b>r", Net())
    damage(left, "Tanh", lambda a: -a)
    page = tmp_path / "report.html"
    invoke("vc", "-lt", left, "-rt", right, "-o", tmp_path / "out", "--html", page)
    text = page.read_text()
    assert "First divergence: Default/Tanh-op0" in text and "class=unlike" in text and "<polyline" in text
    assert "&lt;b&gt;r" in text and "<b>r" not in text and "http://" not in text and "<script" not in text


def test_missing_folders_are_plain_errors(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mycelia.debug.precision", "vc", "-lt", "nowhere", "-rt", "nowhere"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1 and "there is no folder 'nowhere'" in done.stderr
    assert "Traceback" not in done.stderr


# ---- other commands ----------------------------------------------------------------------------------------


def test_elements_that_differ(tmp_path):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    y = x.copy()
    y[1, 2] += 1.0
    np.save(tmp_path / "x.npy", x), np.save(tmp_path / "y.npy", y)
    done = invoke("cp", "-n", tmp_path / "x.npy", tmp_path / "y.npy", "-p", "3", "-s")
    assert "Error elements (al=0.001, rl=0.001): 1 of 12" in done.output and "(1, 2)" in done.output
    assert "AllClose: False" in done.output and f"ErrorPer: {1 / 12:.6f}" in done.output
    assert (tmp_path / "x.npy.txt").read_text().splitlines()[2] == "8.0 9.0 10.0 11.0"
    assert "AllClose: True" in invoke("cp", tmp_path / "x.npy", tmp_path / "y.npy", "-al", "2").output


def test_a_tensor_is_printed(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1.0, np.nan], [-3.0, 2.0]], np.float32))
    lines = invoke("pt", "-n", tmp_path / "x.npy").output.splitlines()
    assert lines[:5] == ["Shape: (2, 2)", "Dtype: float32", "Max: 2", "Min: -3", "Mean: 0"]
    assert lines[5] == "Not finite: 1 NaN"


def test_files_of_the_old_rule_are_read(tmp_path):
    path = tmp_path / "Default--Add-op1_input_0_shape_2_3_Float32_DefaultFormat.bin"
    np.arange(6, dtype=np.float32).tofile(path)
    assert "Shape: (2, 3)" in invoke("pt", path).output


@pytest.mark.parametrize(
    "array, lines",
    [
        (np.zeros((3, 0), np.float32), ["Shape: (3, 0)", "Max: nan"]),
        (np.float32(3), ["Shape: ()", "Mean: 3"]),
        (np.array([[3, 4j]], np.complex64), ["Dtype: complex64", "Max: 4"]),
        (np.array([1.5, -2], ">f4"), ["Dtype: float32", "Min: -2"]),
        (np.array([1.5, -2], np.longdouble), ["Dtype: float64", "Min: -2"]),
        (np.full(2, 2**64 - 1, np.uint64), ["Dtype: uint64", "Max: 1.84467441e+19"]),
        (np.array([1e300, -1e300]), ["Max: 1e+300", "Min: -1e+300"]),
    ],
)
def test_arrays_of_all_kinds_are_printed_and_compared(array, lines, tmp_path):
    np.save(tmp_path / "x.npy", array)
    printed = invoke("pt", tmp_path / "x.npy", "-c").output.splitlines()
    assert set(lines) <= set(printed)
    assert len((tmp_path / "x.npy.txt").read_text().split()) == array.size
    assert "AllClose: True" in invoke("cp", tmp_path / "x.npy", tmp_path / "x.npy").output
    assert precision.measure(array, array, strict=True).values["MaxULP"] == 0


def test_complex_numbers_against_real_ones_are_two_each(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1, 2 + 1j]], np.complex64))
    np.save(tmp_path / "y.npy", np.float32([[1, 2]]))
    for left, right in (("x", "y"), ("y", "x")):
        done = invoke("cp", tmp_path / f"{left}.npy", tmp_path / f"{right}.npy").output
        assert "1 of 4" in done and "(0, 1, 1)" in done  # the imaginary part of the second
    far = precision.measure(np.complex64([1, 2 + 1j]), np.float32([1, 2]), strict=True).values
    assert far["MaxAbsoluteError"] == 1.0 and not alike(np.complex64([1, 2 + 1j]), np.float32([1, 2]), 0.98)


@pytest.mark.parametrize("array", [np.array(["a"]), np.zeros(2, [("a", "f4")]), np.array(["2020"], "M8[Y]")])
def test_arrays_of_something_else_than_numbers_are_told(array, tmp_path):
    np.save(tmp_path / "x.npy", array)
    for words in (["pt"], ["cp", str(tmp_path / "x.npy")]):
        done = CliRunner().invoke(app, [*words, str(tmp_path / "x.npy")])
        assert done.exit_code == 1 and "expected numbers" in str(done.exception)


def test_a_folder_without_asynchronous_dumps_is_told(tmp_path):
    done = CliRunner().invoke(app, ["convert", "-d", str(tmp_path), "-out", str(tmp_path / "out")])
    assert done.exit_code == 1 and "no file of an asynchronous dump" in str(done.exception)


@pytest.mark.parametrize(
    "name, content", [("x.npy", b"\x93NUMPY"), ("x_shape_9_Float32_N.bin", b"1234"), ("x.bin", b"")]
)
def test_damaged_files_are_told(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    done = CliRunner().invoke(app, ["pt", str(tmp_path / name)])
    assert done.exit_code == 1 and isinstance(done.exception, ValueError), done.exception


def test_operators_and_what_they_are(tmp_path):
    with ms.config.context(mode=ms.GRAPH_MODE):
        folder = dump(tmp_path / "d", Net(bias=2.0))
    assert "[Tanh] Default/Tanh-op0" in invoke("ls", "-t", "tan", "-d", folder).output.splitlines()
    told = invoke("ni", "Tanh-op0", "-d", folder, "-r", folder).output
    assert "input 0 from Default/Add-op0" in told and "z = ops.tanh(y + self.bias)" in told
    assert "left output 0: float32 (4, 5), max" in told and "right output 0" in told
    assert "read by Default/Sub-op0" in told and "attribute" not in told
    assert "[ReLU] Default/ReLU-op0" in invoke("ls", "-k", "relu", "-d", folder).output.splitlines()


def test_attributes_are_told_and_what_is_near_is_drawn(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ms.config.context(mode=ms.GRAPH_MODE), debug.dump({"path": str(tmp_path / "d")}):
        ms.jit(lambda x: ops.relu(ops.softmax(ops.exp(x), axis=-1)) + 1.0)(INPUT)
    told = invoke("ni", "Softmax-op0", "-d", tmp_path / "d", "-a", "AX", "-s", "1").output
    assert re.search(r"attribute axis: -1|attribute axis: \(-1,\)", told)
    text = (tmp_path / "precision_data/temp/op_graph/Softmax-op0.dot").read_text()
    assert {m.split("/")[-1] for m in re.findall(r'label="([^"]*)"', text)} == {
        "Exp-op0",
        "Softmax-op0",
        "ReLU-op0",
    }
    assert text.count("->") == 2


@pytest.mark.parametrize(
    "text", [b"a,b\n1,2\n", b"\xff\xfe\x00", b"", b"Index,LeftOp\n", "head only", "row of something", "cut"]
)
def test_tables_of_something_else_are_told(tmp_path, text):
    head = ",".join([*comparison.HEAD, "CosineSimilarity", comparison.FAIL])
    rows = {"head only": "", "row of something": ",".join("x" * 10), "cut": "1,a,b"}
    table = tmp_path / "t.csv"
    table.write_bytes(text if isinstance(text, bytes) else f"{head}\n{rows[text]}\n".encode())
    done = CliRunner().invoke(app, ["vcs", "-f", str(table)])
    if text == "head only":
        assert done.exit_code == 0 and "no operator" in done.output
    else:
        assert isinstance(done.exception, ValueError) and str(done.exception).strip(), done.exception


def test_a_file_that_is_no_array_is_said_to_be_none_and_not_to_be_loaded_unsafely(tmp_path):
    (tmp_path / "x.npy").write_bytes(b"import os\n")
    done = CliRunner().invoke(app, ["pt", str(tmp_path / "x.npy")])
    assert "cannot be read" in str(done.exception) and "allow_pickle" not in str(done.exception)


@pytest.mark.parametrize("value, count", [(2.0, 0), (-1.0, 3)])
def test_the_automatic_check_shows_what_an_overflow_read_and_made(tmp_path, monkeypatch, value, count):
    """Of operators alone that overflowed, whose feeders were not dumped."""
    monkeypatch.chdir(tmp_path)
    with ms.config.context(mode=ms.GRAPH_MODE):
        with precision.collect("overflow", path="precision_data/overflow/dump"):
            ms.jit(lambda x: ops.relu(ops.log(x + 0.0) * 2.0))(ms.Tensor(np.full((2, 3), value, np.float32)))
    told = invoke("ac").output
    assert f"{count} outputs are not finite" in told, told
    if count:
        assert "[Log] Default/Log-op0 output 0: 6 of 6 nan" in told
        assert re.search(r"  input 0: float32 \(2, 3\), max -1, min -1, mean -1, \S+\.npy", told), told
        assert "  output 0: float32 (2, 3)" in told and "log(x + 0.0)" in told


@pytest.mark.parametrize("words", [("ls", "-z"), ("nonsense",), ("pt", "missing.npy")])
def test_what_is_wrong_in_a_command_is_one_line(words, monkeypatch, capsys):
    from mycelia.debug.precision import cli

    monkeypatch.setattr(sys, "argv", ["mycelia-precision", *words])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    told = capsys.readouterr().err
    assert stopped.value.code in (1, 2) and words[-1] in told
    assert "Traceback" not in told and "\n  at " not in told


def test_passes_are_listed_by_the_names_that_switch_them():
    names = invoke("ls", "--passes").output.split()
    assert "fuse" in names and "fuse" in invoke("ls", "-f", "FUS").output.split()
    with ms.config.context(pass_off=",".join(names)):
        f = ms.jit(lambda x: ops.relu(ops.exp(x) + 1.0))
        np.testing.assert_allclose(f(INPUT).asnumpy(), np.exp(INPUT.asnumpy()) + 1.0, rtol=1e-6)


def test_an_unknown_pass_is_an_error_that_names_it():
    with (
        ms.config.context(pass_off="fus"),
        pytest.raises(ValueError, match="fus"),
    ):
        ms.jit(lambda x: ops.relu(ops.exp(x) + 2.0))(INPUT)


def test_switch_files(tmp_path):
    lines, as_json = tmp_path / "a.cfg", tmp_path / "a.json"
    lines.write_text("ALL:off\n\nfuse : on\nlayout:off\n")
    as_json.write_text('{"Switch": {"GraphFusion": {"ALL": "off"}, "UBFusion": {"fuse": "on", "x": "off"}}}')
    assert read_switches(lines) == ["ALL", "layout"] and read_switches(as_json) == ["ALL", "x"]
    for content in ("fuse", "fuse:maybe", '{"Switch": 3}', '{"Switch": {"a": {"b": 1}}}', "{"):
        lines.write_text(content)
        with pytest.raises(ValueError, match="switches"):
            read_switches(lines)


def test_the_context_manager_collects_a_dump_and_switches_fusion_off(tmp_path):
    with precision.collect("dump", path=str(tmp_path)):
        Net()(INPUT)
    assert list(tmp_path.rglob("Tanh.*.npy"))
    with precision.collect("fusion_off"):
        assert ms.config.get("pass_off") == "ALL"
    assert ms.config.get("pass_off") == ""
    with pytest.raises(ValueError, match="action"), precision.collect("everything"):
        pass


SCRIPT = """
import numpy as np
import mycelia as ms
from mycelia import ops
f = ms.jit(lambda x: ops.relu(ops.tanh(ops.exp(x)) - 0.5))
f(ms.Tensor(np.ones((4, 5), np.float32)))
"""


def test_commands_from_standard_input(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    commands = f"""
sim_dump '{sys.executable} train.py'
ref_dump '{sys.executable} train.py'
ac -c
vcs
echo from the shell
nonsense-command-of-nobody
"""
    done = subprocess.run(
        [sys.executable, "-m", "mycelia.debug.precision"], input=commands, cwd=tmp_path,
        capture_output=True, text=True,
    )  # fmt: skip
    assert (tmp_path / "precision_data" / "npu" / "debug_0" / "dump" / "rank_0").is_dir(), done.stderr
    assert (tmp_path / "precision_data" / "ref" / "dump" / "rank_0").is_dir()
    for text in ("0 outputs are not finite", "first divergence: none", "no operator", "from the shell"):
        assert text in done.stdout, (text, done.stdout, done.stderr)
    assert done.returncode == 127


def test_commands_as_documents_print_them(tmp_path):
    """Of the page on precision tuning: its options begin with a dash, as it was printed."""
    data = tmp_path / "precision_data"
    left, right = dump(data / "npu" / "debug_0" / "dump", Net()), dump(data / "ref" / "dump", Net())
    assert right.is_dir()
    for kind in ("ReLU", "Exp"):
        damage(left, kind, lambda a: a[::-1])
    done = subprocess.run(
        [sys.executable, "-m", "mycelia.debug.precision"], cwd=tmp_path, capture_output=True, text=True,
        input="ac \u2013c\nvcs \u2013c 0.98 \u2013l 10\n",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    listed = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert "first divergence: Default/Exp-op0" in done.stdout, done.stdout
    assert [line.split("_")[-1] for line in listed][-2:] == ["Exp-op0", "ReLU-op0"], done.stdout


def chain(x):
    return ops.relu(ops.tanh(ops.exp(x)) - 0.5)


def test_a_dump_of_fused_programs_has_the_names_of_the_last_parts(tmp_path):
    for action, name in (("program", "l"), ("dump", "r")):
        with precision.collect(action, path=str(tmp_path / name)):
            ms.jit(lambda x: chain(x))(INPUT)
    (made,) = (tmp_path / "l" / "rank_0" / "Program").rglob("*.npy")
    assert made.name.startswith("ReLU.Default_ReLU-op0.") and ".output.0." in made.name
    np.testing.assert_allclose(np.load(made), chain(INPUT).asnumpy(), rtol=1e-6)
    told = invoke("ni", "ReLU", "-d", tmp_path / "l").output
    assert "return ops.relu(ops.tanh(ops.exp(x)) - 0.5)" in told
    assert "[ReLU][fuse] Default/ReLU-op0" in told and "  made of Default/Exp-op0" in told
    assert invoke("ls", "-f", "fus", "-d", tmp_path / "l").output.split() == [
        "fuse",
        "[ReLU][fuse]",
        "Default/ReLU-op0",
    ]
    done = invoke("vc", "-lt", tmp_path / "l", "-rt", tmp_path / "r", "-o", tmp_path / "out")
    assert "1 tensors compared, 0 not alike" in done.output


@pytest.mark.parametrize("wrong", [None, 2])
def test_operators_that_ran_in_another_order_are_compared_by_their_shapes(tmp_path, wrong):
    """`shapes`: of updates, in the order in which each side ran them; `wrong`: which of the left differs."""
    shapes = {"l": [(3,), (3, 4), (4,), (5, 4)], "r": [(3, 4), (3,), (5, 4), (4,)]}
    for side, found in shapes.items():
        dump = precision.ReferenceDump(tmp_path / side)
        for number, shape in enumerate(found):
            value = np.arange(1.0, 1 + math.prod(shape), dtype=np.float32).reshape(shape)
            is_wrong = side == "l" and number == wrong
            dump.add(
                f"Default/optimizer/ApplyMomentum-op{number}", -value if is_wrong else value, "ApplyMomentum"
            )
    done = invoke("vc", "-lt", tmp_path / "l", "-rt", tmp_path / "r", "-o", tmp_path / "out").output
    assert f"4 tensors compared, {0 if wrong is None else 1} not alike" in done
    assert ("ApplyMomentum-op2" in done) == (wrong is not None) and "shape unmatched" not in done


def test_an_operator_of_another_shape_is_no_other_order(tmp_path):
    for side, shapes in {"l": [(3,), (4,)], "r": [(3,), (5,)]}.items():
        dump = precision.ReferenceDump(tmp_path / side)
        for number, shape in enumerate(shapes):
            dump.add(f"Default/Exp-op{number}", np.ones(shape, np.float32), "Exp")
    done = invoke("vc", "-lt", tmp_path / "l", "-rt", tmp_path / "r", "-o", tmp_path / "out").output
    assert "2 tensors compared, 1 not alike" in done and "output 0, shape unmatched" in done


def test_runs_of_programs_that_were_asked_for_are_dumped(tmp_path):
    with precision.collect("program", steps="1|3-4", path=str(tmp_path)):
        f = ms.jit(lambda x: chain(x))
        for _ in range(6):
            f(INPUT)
    (graph,) = (tmp_path / "rank_0" / "Program").iterdir()
    assert sorted(p.name for p in graph.iterdir()) == ["1", "3", "4"]
    (order,) = (tmp_path / "rank_0").rglob("ms_global_execution_order_graph_*.csv")
    assert order.read_text().split() == ["1", "3", "4"]


# ---- bisect ------------------------------------------------------------------------------------------------


def searched(n, guilty):
    """What is found of `guilty` among n passes, and how many runs that takes beside that with all on."""
    runs = []

    def is_good(off):
        runs.append(off)
        return set(guilty) <= set(off)

    return minimal(list(range(n)), is_good), len(runs)


@pytest.mark.parametrize("count", [1, 2])
def test_one_and_two_guilty_are_found_within_the_bar(count):
    """All of up to 32 passes: 2 log2(n) + guilty runs with the one in which all passes are on."""
    for n in range(count, 33):
        bar = 2 * math.ceil(math.log2(n)) + count
        for guilty in itertools.combinations(range(n), count):
            found, runs = searched(n, guilty)
            assert found == list(guilty) and runs + 1 <= max(bar, 2), (n, guilty, runs)


def test_several_guilty_take_a_search_each():
    rng = np.random.default_rng(0)
    for n in (3, 8, 21, 32, 40):
        for k in range(3, min(n, 9) + 1):
            for _ in range(20):
                guilty = sorted(rng.choice(n, k, replace=False).tolist())
                found, runs = searched(n, guilty)
                each = math.ceil(math.log2(n)) + 1
                assert found == guilty and runs <= 2 * each - 1 + (k - 2) * each + 1, (n, guilty, runs)


def test_where_either_of_two_passes_helps_one_is_named():
    """They are wrong together alone."""
    for n in range(2, 20):
        for pair in itertools.combinations(range(n), 2):
            found = minimal(list(range(n)), lambda off, pair=pair: bool(set(pair) & set(off)))
            assert len(found) == 1 and set(found) <= set(pair)


def test_where_no_pass_is_to_blame_it_is_told():
    for n in range(1, 33):
        assert minimal(list(range(n)), lambda off: False) is None


PLANTED = """
import json
import numpy as np
import mycelia as ms
from mycelia import ops, plugins
from mycelia.engine.base.hookspecs import hookimpl
from mycelia.engine.compile.passes import Pass

class Plugin:
    @hookimpl
    def mycelia_passes(self, pipeline, stage, backend):
        if stage == "optimize":
            pipeline += [Pass("harmless", lambda graph: 0), Pass("wrong", wrong)]

def wrong(graph):
    # a rule that takes tanh for sigmoid
    found = [n for n in graph.nodes if n.op.name == "tanh"]
    for node in found:
        node.op = ops.sigmoid
    return len(found)

plugins.manager().register(Plugin())

@ms.jit
def f(x):
    y = ops.exp(x)
    z = ops.tanh(y)
    return ops.sum(z)

value = float(f(ms.Tensor(np.ones((4, 5), np.float32))))
json.dump({"eval": {"value": value}}, open("metric.json", "w"))
"""


def test_a_planted_pass_is_found_and_the_operator_that_it_spoils(tmp_path):
    (tmp_path / "train.py").write_text(PLANTED)
    command = [
        sys.executable, "-m", "mycelia.debug.precision", "bisect", "--cmd", f"{sys.executable} train.py",
        "--metric", "metric.json:eval.value", "--good", "19.8",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert "guilty: wrong" in done.stdout, done.stdout
    assert "first operator: Default/" in done.stdout and "train.py:27" in done.stdout, done.stdout


def test_a_run_that_no_pass_spoils_has_no_guilty_one(tmp_path):
    (tmp_path / "train.py").write_text(
        PLANTED.replace('Pass("wrong", wrong)', 'Pass("harmless2", lambda g: 0)')
    )
    done = subprocess.run(
        [sys.executable, "-m", "mycelia.debug.precision", "bisect", "--cmd", f"{sys.executable} train.py",
         "--metric", "metric.json:eval.value", "--good", "19.8", "--passes", "harmless,fuse"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert "guilty: none" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("words", [["--metric", "metric.json"], ["--metric", "none.json:a"]])
def test_a_metric_that_is_not_there_is_told(tmp_path, words):
    (tmp_path / "train.py").write_text("import mycelia")
    done = subprocess.run(
        [sys.executable, "-m", "mycelia.debug.precision", "bisect", "--cmd", f"{sys.executable} train.py",
         *words, "--good", "1", "--passes", "fuse"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and "--metric" in done.stderr and "Traceback" not in done.stderr


def test_a_fused_operator_is_compared_with_those_that_it_was_made_of(tmp_path):
    class Fused(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(5, 3, weight_init="ones", bias_init="ones")

        def construct(self, x):
            return self.fc(x)

    class Parts(nn.Cell):
        def construct(self, x, w, b):
            return ops.matmul(x, w) + b

    with ms.config.context(mode=ms.GRAPH_MODE):
        with debug.dump({"path": str(tmp_path / "l")}):
            Fused()(INPUT)
        w, b = np.ones((5, 3), np.float32), np.full(3, 2, np.float32)
        with debug.dump({"path": str(tmp_path / "r")}):
            Parts()(INPUT, ms.Tensor(w), ms.Tensor(b))
    names = {"Default/fc-Dense/Dense-op0": ["Default/MatMul-op0", "Default/Add-op0"]}
    (tmp_path / "map.json").write_text(json.dumps(names))
    invoke("vc", "-lt", tmp_path / "l", "-rt", tmp_path / "r", "-o", tmp_path, "--map", tmp_path / "map.json")
    rows = {r["TensorIndex"]: r for r in csv.DictReader(next(tmp_path.glob("result_*.csv")).open())}
    dense = [rows[f"Default_fc-Dense_Dense-op0:{io}"] for io in ("input:0", "input:1", "input:2", "output:0")]
    rights = [row["RightOp"].rpartition("_")[2] for row in dense]
    assert rights == ["MatMul-op0", "MatMul-op0", "Add-op0", "Add-op0"]
    assert [row["MaxAbsoluteError"] for row in dense] == ["0.000000"] * 2 + ["1.000000"] * 2


def test_json_is_what_maps_are(tmp_path):
    from mycelia.debug.precision.matching import read_map

    path = tmp_path / "map.json"
    path.write_text(json.dumps({"a": "b"}))
    assert read_map(path) == {"a": "b"}
    path.write_text(json.dumps({"a": ["b", "c"]}))
    assert read_map(path) == {"a": ["b", "c"]}
    for content in ("[1]", '{"a": 1}', "{", '{"a": []}', '{"a": [1]}'):
        path.write_text(content)
        with pytest.raises(ValueError, match="map"):
            read_map(path)
