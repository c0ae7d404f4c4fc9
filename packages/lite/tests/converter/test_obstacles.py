"""`--explain`: all obstacles of a model in one run, each with its node."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import mycelia as ms
import mycelia_lite as mslite
from mycelia import ops
from mycelia_lite.cli import app
from mycelia_lite.converter import ConversionError, Job, explain, run
from mycelia_lite.converter.obstacles import are_collected
from mycelia_lite.format import Table, write

from . import onnx_models as om

F32 = (np.float32, (2, 3))


@pytest.fixture
def hard(tmp_path):
    """A model with six obstacles and nodes behind them."""
    nodes = [
        om.node("Relu", "x", "a", name="fine"),
        om.node("HardSwishh", "a", "b", name="misspelt"),
        om.node("Neg", "b", "k", name="behind"),
        om.node("Nowhere", "k", "c", name="unknown behind"),
        om.node("Softmax", "a", "d", name="wrong attribute", axes=3),
        om.node("Gelu", "a", "e", name="wrong value", approximate="cubic"),
        om.node("Mine", "a", "f", name="of others", domain="com.example"),
        om.node("Reshape", "a s", "g", name="shape as data"),
        om.node("Relu", "a", "h", name="fine, too"),
        om.node("HardSwishh", "h", "i", name="misspelt again"),
    ]
    inputs = {"x": F32, "s": (np.int64, (1,))}
    return om.write(tmp_path / "hard.onnx", om.model(nodes, inputs, "c d e f g h i", opset=20))


def job(path, framework=mslite.FmkType.ONNX):
    return Job(framework, path, path + "-out")


def test_all_obstacles_are_found_in_one_run(hard, tmp_path):
    found = explain(job(hard))
    texts = [error.args[0] for error in found]
    assert [t.partition("'")[2].partition("'")[0] for t in texts if "shape as data" not in t] == [
        "misspelt", "unknown behind", "wrong attribute", "wrong value", "of others", "misspelt again",
    ]  # fmt: skip
    assert "HardSwishh" in texts[0] and "near to it is HardSwish" in texts[0] and found[0].code == -300
    assert "Nowhere" in texts[1] and found[1].code == -300
    assert "attribute 'axes'" in texts[2] and "approximate" in texts[3]
    assert "com.example.Mine" in next(t for t in texts if "of others" in t)
    assert [p.name for p in tmp_path.iterdir()] == ["hard.onnx"] and not are_collected()


def test_a_conversion_of_it_still_fails(hard):
    with pytest.raises(ConversionError, match="HardSwishh"):
        run(job(hard))


def test_the_command_lists_them_and_writes_nothing(hard, tmp_path):
    result = CliRunner().invoke(app, ["convert", "--fmk=ONNX", f"--modelFile={hard}", "--explain"])
    assert result.exit_code == 1 and result.output.count(f"{hard}: -") >= 5
    assert result.output.splitlines()[-1].endswith(" obstacles")
    assert [p.name for p in tmp_path.iterdir()] == ["hard.onnx"]


class Strange(ms.nn.Cell):
    def construct(self, x):
        return ops.relu(ops.erfinv(x)) + ops.lgamma(x), ops.digamma(x), ops.exp(x)


def test_ops_without_an_operator_are_obstacles_with_their_place(tmp_path, write_mindir):
    path = write_mindir(Strange(), tmp_path / "s", (3,))
    texts = [e.args[0] for e in explain(job(path, mslite.FmkType.MINDIR))]
    assert {t.partition("'")[2].partition("'")[0] for t in texts} == {"erfinv", "lgamma", "digamma"}
    assert all(t.endswith("Lite has no operator for it yet") for t in texts)


def test_inputs_of_types_that_are_not_read_are_among_others(tmp_path):
    nodes = [om.node("Cast", "f", "a", name="behind", to=1), om.node("HardSwishh", "x", "b", name="misspelt")]
    made = om.model(nodes, {"f": F32, "t": F32, "x": F32}, "a b")
    made.graph.input[0].type.tensor_type.elem_type = 17
    made.graph.input[1].type.tensor_type.elem_type = 8
    path = om.write(tmp_path / "m.onnx", made)
    texts = [e.args[0] for e in explain(job(path))]
    assert texts[:2] == [
        "the input 'f' has the data type float8e4m3fn, which is not read",
        "the input 't' has the data type string, which is not read",
    ]
    assert len(texts) == 3 and "'misspelt'" in texts[2]
    with pytest.raises(ConversionError, match="HardSwishh|float8e4m3fn"):
        run(job(path))


def test_operators_of_ms_files_without_a_kernel_are_told_together(tmp_path):
    kinds = ["AudioSpectrogram", "Abs", "LshProjection", "Assign", "TensorListStack"]
    nodes = [
        Table("CNode", name=f"n{i}", primitive=Table(kind), inputIndex=[i], outputIndex=[i + 1])
        for i, kind in enumerate(kinds)
    ]
    tensors = [Table("Tensor", name=f"t{i}", dataType="FLOAT32", dims=[4]) for i in range(len(kinds) + 1)]
    path = str(tmp_path / "m.ms")
    write(path, Table("MetaGraph", nodes=nodes, allTensors=tensors, inputIndex=[0], outputIndex=[5]))
    (found,) = explain(job(path, mslite.FmkType.MSLITE))
    assert all(f"{kind} (node 'n{i}')" in found.args[0] for i, kind in enumerate(kinds) if kind != "Abs")
    assert "Abs" not in found.args[0]


def test_a_model_that_can_be_converted_has_none(lenet):
    assert explain(job(lenet[0], mslite.FmkType.MINDIR)) == []
    arguments = ["convert", "--fmk=MINDIR", f"--modelFile={lenet[0]}", "--explain"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0 and result.output == "0 obstacles\n"


def test_what_is_no_model_is_one_obstacle(tmp_path):
    (tmp_path / "no.onnx").write_bytes(b"\xff\xff")
    (found,) = explain(job(str(tmp_path / "no.onnx")))
    assert found.code == -200
    (found,) = explain(job(str(tmp_path / "absent.onnx")))
    assert found.code == -600
