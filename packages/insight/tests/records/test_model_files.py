"""Graphs of ONNX and MindIR files: those that core writes, real MindSpore's, odd and damaged ones."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn
from mycelia_insight.records.model_files import of_mindir, of_onnx
from mycelia_insight.runs.graphs import Graphs, NodeGraphs, sources

HERE = Path(__file__).parents[1]
CORE = HERE.parents[1] / "core" / "tests"
sys.path[:0] = [str(HERE), str(HERE / "records"), str(CORE)]
from event_files import field, number, scalar, write  # noqa: E402
from mutations import mutated  # noqa: E402
from test_graph import run_of  # noqa: E402

REAL = CORE / "fixtures" / "formats" / "mindir"


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.relu, self.dense = nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Dense(32, 3)

    def construct(self, x):
        return self.dense(self.relu(self.conv(x)).reshape(x.shape[0], -1))


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A run's folder with a model of both formats, and real MindSpore's."""
    run = tmp_path_factory.mktemp("models") / "runs" / "run"
    write(run, [scalar("loss", 0, 1.0)])
    for kind in ("MINDIR", "ONNX"):
        example = ms.Tensor(np.ones((1, 1, 4, 4), np.float32))
        ms.export(Net(), example, file_name=str(run / "net"), file_format=kind)
    for name in ("lenet", "control_flow"):
        (model,) = (REAL / name).glob("*.mindir")
        shutil.copy(model, run / f"real_{name}.mindir")
    return run_of(run.parent, tmp_path_factory.mktemp("workspace"), "./run")


def described(graph) -> dict[str, tuple]:
    """Operator by name: type, dtype and shape, names of its inputs."""
    return {
        leaf.name: (leaf.type, leaf.dtype, leaf.shape, [graph.leaves[at].name for at, _ in leaf.inputs])
        for leaf in graph.leaves
        if leaf.kind == "operator"
    }


def test_models_beside_a_run_are_its_graphs(exported):
    assert exported.has_graph_files
    ids = [source.id for source in sources(exported)]
    assert ids == ["net.mindir", "net.onnx", "real_control_flow.mindir", "real_lenet.mindir"]
    for id in ids:
        graph = Graphs().get(exported, id)
        assert len(graph.view([])[0]) > 0
        assert len(NodeGraphs().get(exported, id).nodes) >= len(graph.leaves), id


@pytest.mark.parametrize("id", ["net.mindir", "net.onnx"])
def test_a_model_that_core_writes(exported, id):
    graph = Graphs().get(exported, id)
    operators = described(graph)
    kinds = {kind for kind, *_ in operators.values()}
    assert ({"Conv2D", "ReLU"} if id.endswith("mindir") else {"Conv", "Relu"}) <= kinds
    conv = next(one for one in operators.values() if one[0].startswith("Conv"))
    relu = next(one for one in operators.values() if one[0].lower() == "relu")
    # Core's ONNX files tell types of inputs and outputs alone.
    assert conv[1:3] == (("float32", (1, 2, 4, 4)) if id.endswith("mindir") else ("", None))
    assert len(conv[3]) >= 2
    assert any(operators[name][0].startswith("Conv") for name in relu[3] if name in operators)
    weights = {leaf.name.rpartition("/")[2]: leaf.shape for leaf in graph.leaves if leaf.type == "Parameter"}
    assert weights["conv.weight"] == (2, 1, 3, 3) and weights["dense.bias"] == (3,)
    (output,) = (leaf for leaf in graph.leaves if leaf.kind == "output")
    assert output.shape == (1, 3) and output.inputs
    kernel = next(leaf for leaf in graph.leaves if leaf.type.startswith("Conv")).attributes()
    told = "pad_mode" if id.endswith("mindir") else "kernel_shape"
    assert told in kernel and kernel[told]


def test_a_model_of_mindspore(exported):
    graph = Graphs().get(exported, "real_lenet.mindir")
    operators = described(graph)
    conv = operators["Default/conv1-Conv2d/Conv2D-op0"]
    assert conv[0] == "Conv2D" and conv[1] == "float32" and len(conv[2]) == 4
    relu = operators["Default/relu-ReLU/ReLU-op0"]
    assert relu[3] == ["Default/conv1-Conv2d/Conv2D-op0"] and relu[2] == conv[2]
    weights = {leaf.name for leaf in graph.leaves if leaf.type == "Parameter"}
    assert any(name.endswith("conv1.weight") for name in weights)
    flow = Graphs().get(exported, "real_control_flow.mindir")
    assert len({leaf.scope.partition("/")[0] for leaf in flow.leaves}) > 2  # functions stand beside the graph


def test_graphs_within_nodes_of_onnx_see_values_around_them():
    def node(kind: str, inputs: list[str], output: str, *attributes: bytes) -> bytes:
        ends = b"".join(field(1, one) for one in inputs) + field(2, output)
        return field(1, ends + field(3, f"/{kind}") + field(4, kind) + b"".join(attributes))

    def value(name: str, *sizes: int) -> bytes:
        shape = b"".join(field(1, number(1, size) if size >= 0 else field(2, "N")) for size in sizes)
        return field(1, name) + field(2, field(1, number(1, 1) + field(2, shape)))

    inner = node("Exp", ["x"], "e") + field(12, value("e", -1, 2))
    branch = field(5, field(1, "then_branch") + field(6, inner))
    text = field(5, field(1, "note") + field(4, "a text") + number(20, 3))
    graph = node("If", ["c"], "y", branch, text) + field(2, "main")
    graph += field(11, value("x", -1, 2)) + field(11, value("c")) + field(12, value("y", -1, 2))
    found = of_onnx(field(7, graph))
    operators = described(found)
    assert operators["If then_branch/Exp"] == ("Exp", "float32", (-1, 2), ["If then_branch/x"])
    assert operators["If"] == ("If", "float32", (-1, 2), ["c"])
    shown = next(leaf for leaf in found.leaves if leaf.name == "If").attributes()
    assert shown == {"then_branch": "graph ", "note": '"a text"'}
    assert [leaf.name for leaf in found.leaves if leaf.kind == "output"] == [
        "If then_branch/output",
        "output",
    ]


@pytest.mark.parametrize("read", [of_onnx, of_mindir])
def test_what_is_no_model_is_refused(read):
    for data in (b"", b"\x00" * 40, b"hello", b"{}", field(7, b"\xff" * 20)):
        with pytest.raises(ValueError):
            read(data)
    # A graph in a graph in a graph.
    inner = b""
    for _ in range(400):
        inner = field(1, field(4, "If") + field(5, field(1, "body") + field(6, inner)))
    if read is of_onnx:
        assert 2 < len(of_onnx(field(7, inner)).leaves) < 40


@pytest.mark.fuzz(30)
@pytest.mark.parametrize("name", ["net.mindir", "net.onnx", "real_control_flow.mindir"])
def test_changed_models_are_read_or_refused(exported, name, seed):
    draw = random.Random(f"{name} {seed}")
    data = Path(exported.folder, name).read_bytes()
    for _ in range(5):
        try:
            graph = (of_onnx if name.endswith("onnx") else of_mindir)(mutated(data, draw))
        except ValueError:
            continue
        for leaf in graph.leaves:
            leaf.attributes(), leaf.type_of()
        graph.view([])
