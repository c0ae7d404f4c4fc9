"""`--check`: faults that are planted are found, and named where they begin."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import mycelia as ms
import mycelia_lite as mslite
from mycelia_lite.cli import app
from mycelia_lite.converter import ConversionError, comparison, convert, optimise, storage
from mycelia_lite.converter.comparison import distance
from mycelia_lite.converter.meanings.table import MEANINGS
from mycelia_lite.converter.optimise.registry import PASSES
from mycelia_lite.converter.rules import RULES
from mycelia_lite.format import Table, read, write

from . import onnx_models as om

MINDIR, MSLITE = mslite.FmkType.MINDIR, mslite.FmkType.MSLITE


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight_fp16": True},
        {
            "input_format": mslite.Format.NHWC,
            "output_data_type": mslite.DataType.FLOAT16,
            "weight_fp16": True,
        },
        {"input_data_type": mslite.DataType.INT8},
    ],
)
def test_a_right_result_departs_by_rounding_alone(lenet, tmp_path, options):
    (found,) = convert(MINDIR, lenet[0], str(tmp_path / "n"), check=True, **options).departures
    assert (found.name, found.engine) == ("output0", "core") and found.greatest < 1e-3


def test_the_command_prints_how_far_outputs_depart(lenet, tmp_path):
    arguments = [
        "convert",
        "--fmk=MINDIR",
        f"--modelFile={lenet[0]}",
        f"--outputFile={tmp_path / 'n'}",
        "--check",
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0 and "output 'output0' departs by " in result.output


class Branches(ms.nn.Cell):
    def construct(self, x):
        a = ms.ops.exp(ms.ops.relu(x))
        b = ms.ops.tanh(ms.ops.abs(x) + 1)
        return a + b, ms.ops.floor(x * 7)


def plant(monkeypatch, name: str, kind: str) -> None:
    """From here on the rule of an op writes another operator."""
    right = RULES[name]

    def wrong(w, node):
        right(w, node)
        w.nodes[-1].primitive = Table(kind)

    monkeypatch.setitem(RULES, name, wrong)


def failed(*arguments, **options) -> str:
    with pytest.raises(ConversionError) as caught:
        convert(*arguments, check=True, **options)
    assert caught.value.code == -1
    return caught.value.args[0]


def test_the_first_node_of_a_wrong_rule_is_named(tmp_path, write_mindir, monkeypatch):
    path = write_mindir(Branches(), tmp_path / "b", (3, 4))
    plant(monkeypatch, "abs", "Square")
    text = failed(MINDIR, path, str(tmp_path / "out"))
    assert "'output0' by" in text and "output1" not in text and "from core" in text
    assert "it begins with 'Default/Abs-op0', op 'abs' at b.mindir node:3" in text
    assert not (tmp_path / "out.ms").exists()


def test_a_wrong_fusion_is_named(lenet, tmp_path, monkeypatch):
    (right,) = PASSES["ConvActivationFusion"]

    def wrong(graph):
        count = right(graph)
        for node in graph.nodes:
            if node.kind == "Conv2DFusion":
                node.op.activation_type = "RELU6" if count else node.op.activation_type
        return count

    monkeypatch.setitem(PASSES, "ConvActivationFusion", [wrong])
    monkeypatch.setattr(comparison.trial, "draw", lambda shapes, dtypes: [1e3 * lenet[1][:1]])
    text = failed(MINDIR, lenet[0], str(tmp_path / "n"))
    assert "a fusion, a border or the storage of the constants does it" in text
    assert text.endswith("without ConvActivationFusion it does not depart")


def test_a_wrong_storage_is_found(lenet, tmp_path, monkeypatch):
    def wrong(model, exactly):
        for tensor in model.allTensors:
            tensor.data = bytes(len(tensor.data)) if int(tensor.dataType) == 43 else tensor.data

    monkeypatch.setattr(storage, "halve", wrong)
    assert "storage of the constants" in failed(MINDIR, lenet[0], str(tmp_path / "n"), weight_fp16=True)


@pytest.mark.parametrize(
    ("found", "want", "expected"),
    [
        (np.float32([1, 2]), np.float32([1, 4]), 0.5),
        (np.float32([0, 0.5]), np.float32([0, 0]), 0.5),
        (np.float32([np.nan, 1]), np.float32([np.nan, 1]), 0),
        (np.float32([np.nan, 1]), np.float32([1, 1]), np.inf),
        (np.float32([1, 1]), np.float32([np.inf, 1]), np.inf),
        (np.float32([1]), np.float64([1]), np.inf),
        (np.float32([1]), np.float32([[1]]), np.inf),
        (np.zeros((0, 2)), np.zeros((0, 2)), 0),
        (np.bool_([True, False]), np.bool_([True, True]), 1),
    ],
)
def test_distance(found, want, expected):
    assert distance(found, want) == expected


def test_open_sizes_get_some_with_which_the_source_runs(tmp_path, write_mindir):
    path = write_mindir(Window(), tmp_path / "w", (None, 1, None, None))
    made = convert(MINDIR, path, str(tmp_path / "w"), check=True)
    assert [d.greatest < 1e-5 for d in made.departures] == [True]


def forget_meanings(monkeypatch):
    """From here on core does not know what the importer's own operators mean."""
    for name in list(MEANINGS):
        monkeypatch.delitem(MEANINGS, name)


def resized(tmp_path):
    """A model of an open size: a shape that is data."""
    nodes = [om.node("Resize", "x - scales", "a"), om.node("Shape", "a", "s"), om.node("Relu", "a", "r"),
             om.node("Reshape", "r s", "y")]  # fmt: skip
    weights = {"scales": np.float32([1, 1.7])}
    return om.write(tmp_path / "m.onnx", om.model(nodes, {"x": (np.float32, (2, "n"))}, "y", weights))


def test_a_source_of_open_sizes_is_computed_at_known_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison.importlib.util, "find_spec", lambda name: None)  # no other engine
    made = convert(mslite.FmkType.ONNX, resized(tmp_path), str(tmp_path / "m"), check=True)
    assert made.departures[0].engine == "core" and made.departures[0].greatest < 1e-6
    forget_meanings(monkeypatch)
    made = convert(mslite.FmkType.ONNX, resized(tmp_path), str(tmp_path / "m"), check=True)
    (found,) = made.departures
    assert found.engine == "core, with these sizes known" and found.greatest < 1e-6
    assert read(made.path).allTensors[0].dims == [2, -1]


def test_a_wrong_rule_is_found_at_known_sizes(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison.importlib.util, "find_spec", lambda name: None)
    forget_meanings(monkeypatch)
    plant(monkeypatch, "relu", "Square")
    text = failed(mslite.FmkType.ONNX, resized(tmp_path), str(tmp_path / "m"))
    assert "from core, with these sizes known" in text and "so no node is found" in text


class Window(ms.nn.Cell):
    """No image of one pixel has a window of 5."""

    def __init__(self):
        super().__init__()
        self.conv = ms.nn.Conv2d(1, 2, 5, pad_mode="valid")

    def construct(self, x):
        return self.conv(x)


def test_a_source_that_nothing_computes_is_told(lenet, tmp_path, monkeypatch):
    def unable(*_):
        raise MemoryError("only elsewhere")

    monkeypatch.setattr(comparison, "evaluate", unable)
    with pytest.raises(
        ConversionError, match="nothing here computes the source: core: only elsewhere"
    ) as caught:
        convert(MINDIR, lenet[0], str(tmp_path / "n"), check=True)
    assert caught.value.code == -7 and not list(tmp_path.iterdir())


def test_a_result_that_does_not_run_is_told(lenet, tmp_path, monkeypatch):
    def broken(*_):
        raise RuntimeError("no kernel")

    monkeypatch.setattr(comparison.trial, "answers", broken)
    assert failed(MINDIR, lenet[0], str(tmp_path / "n")) == "check: the result does not run: no kernel"


def few_digits(tmp_path):
    """A variance as the difference of large means, as converters of JAX write it: few digits are left."""
    nodes = [om.node("Add", "x large", "a"), om.node("Mul", "a a", "b"),
             om.node("MatMul", "b mean", "c"), om.node("MatMul", "a mean", "d"), om.node("Mul", "d d", "e"),
             om.node("Sub", "c e", "y")]  # fmt: skip
    weights = {"large": np.float32(300), "mean": np.full((999, 1), 1 / 999, np.float32)}
    return om.write(tmp_path / "m.onnx", om.model(nodes, {"x": (np.float32, (3, 999))}, "y", weights))


def test_rounding_of_the_source_itself_is_no_fault_of_the_result(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison.importlib.util, "find_spec", lambda name: None)
    exactly = comparison._run

    def otherwise(graph, arrays, values=None):  # sums in another order
        return [a + np.float32(4e-3) * np.float32([[1], [-1], [0]]) for a in exactly(graph, arrays, values)]

    monkeypatch.setattr(comparison, "_run", otherwise)
    (found,) = convert(mslite.FmkType.ONNX, few_digits(tmp_path), str(tmp_path / "m"), check=True).departures
    assert found.greatest > 1e-4 and found.greatest / 8 < found.rounding < 2e-2
    result = CliRunner().invoke(
        app, ["convert", "--fmk=ONNX", f"--modelFile={tmp_path / 'm.onnx'}", f"--outputFile={tmp_path / 'm'}",
              "--check"],
    )  # fmt: skip
    assert result.exit_code == 0 and "from core, whose rounding alone is 0.0" in result.output
    text = failed(mslite.FmkType.ONNX, few_digits(tmp_path), str(tmp_path / "n"), tolerance=1e-4)
    assert "departs from the source" in text


def test_a_fault_is_found_where_few_digits_are_left(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison.importlib.util, "find_spec", lambda name: None)
    plant(monkeypatch, "sub", "Minimum")
    failed(mslite.FmkType.ONNX, few_digits(tmp_path), str(tmp_path / "m"))


def test_the_tolerance_may_be_given(lenet, tmp_path):
    assert "at most 1e-12 may be" in failed(MINDIR, lenet[0], str(tmp_path / "n"), tolerance=1e-12)


# ---- .ms files as sources


def test_a_ms_file_is_converted_again(lenet, tmp_path):
    whole = convert(MINDIR, lenet[0], str(tmp_path / "a"), without_fusions=tuple(optimise.RULES)).path
    made = convert(MSLITE, whole, str(tmp_path / "b"), {"x": [6, 1, 32, 32]}, weight_fp16=True, check=True)
    assert made.fusions["ConvActivationFusion"] == 2 and made.departures[0].engine == "the file itself"
    model = read(made.path)
    assert model.allTensors[0].dims == [6, 1, 32, 32] and model.allTensors[model.outputIndex[0]].dims == [
        6,
        10,
    ]
    assert not any(-1 in t.dims for t in model.allTensors)
    assert model.fmkType.name == "MINDIR"


def test_weights_of_another_file_and_the_file_itself_may_be_the_result(lenet, tmp_path):
    path = convert(MINDIR, lenet[0], str(tmp_path / "n"), weights_apart=100).path
    before = [bytes(t.data) for t in read(path).allTensors]
    assert convert(MSLITE, path, path, check=True).path == path
    assert before != [bytes(t.data) for t in read(path).allTensors]


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        ({"y": [1]}, "inputShape names 'y', but the inputs are"),
        ({"x": [1, 2]}, "inputShape gives 'x' 2 dimensions, but it has 4"),
        ({"x": [-1, 1, 32, 32]}, "must give all sizes"),
        ({"x": [1, 1, 3, 3]}, "Flatten.* made constants"),
        ({"x": [1, 1, 3, 3]}, "the shapes behind inputShape cannot be found"),
    ],
)
def test_wrong_shapes_of_a_ms_file_are_told(lenet, tmp_path, shapes, reason):
    path = convert(MINDIR, lenet[0], str(tmp_path / "n")).path
    if "behind" in reason:  # a file that does not say so
        file = read(path).copy()
        file.fixedBy = ""
        write(path, file)
    with pytest.raises(ConversionError, match=reason):
        convert(MSLITE, path, str(tmp_path / "out"), shapes)
    assert not (tmp_path / "out.ms").exists()


def test_a_damaged_ms_file_is_told(tmp_path):
    (tmp_path / "n.ms").write_bytes(b"no model at all")
    with pytest.raises(ConversionError, match="n.ms") as caught:
        convert(MSLITE, str(tmp_path / "n.ms"), str(tmp_path / "out"))
    assert caught.value.code == -200
