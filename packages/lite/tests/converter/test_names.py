"""Nodes of a file have the names that the source gave them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mycelia_lite as mslite
from mycelia import nn
from mycelia.io.mindir import mindir_pb2
from mycelia_lite.converter import convert
from mycelia_lite.converter.optimise import RULES
from mycelia_lite.format import read

from .onnx_models import model, node, write

CONTROL = Path(__file__).parents[1] / "fixtures" / "control"


def names(path):
    return [n.name for n in read(path).nodes]


def test_nodes_have_the_names_of_the_source(tmp_path):
    weights = {
        "w": np.ones((4, 3, 3, 3), np.float32),
        "scale": np.ones(4, np.float32),
        "zero": np.zeros(4, np.float32),
    }
    nodes = [
        node("Conv", "x w", "a", name="stem/conv"),
        node("BatchNormalization", "a scale zero zero scale", "b", name="stem/norm"),
        node("Relu", "b", "c", name="stem/relu"),
        node("Softplus", "c", "y", name="y"),  # of several operators, and named as the output
    ]
    path = write(tmp_path / "net.onnx", model(nodes, {"x": (np.float32, (1, 3, 6, 6))}, "y", weights))
    made = convert(mslite.FmkType.ONNX, str(path), str(tmp_path / "plain"), without_fusions=RULES)
    plain = names(made.path)
    assert len(set(plain)) == len(plain)
    assert plain[:4] == ["stem/conv/Transpose", "stem/conv", "stem/norm", "stem/relu"] and plain[-2:] == [
        "y",
        "y/Transpose",
    ]
    assert all(n.split("/")[0] in ("stem", "y") for n in plain)
    tensors = [t.name for t in read(made.path).allTensors]
    assert tensors.count("y") == tensors.count("x") == 1

    made = convert(mslite.FmkType.ONNX, str(path), str(tmp_path / "fused"))
    assert "stem/relu" in names(made.path) and "stem/norm" not in names(made.path)
    assert made.parts["stem/relu"] == ("stem/conv", "stem/norm", "stem/relu")


def test_nodes_of_mindir_have_their_full_names(write_mindir, tmp_path):
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Dense(72, 3))
    source = write_mindir(net, tmp_path / "net", (1, 1, 6, 6))
    of_file = {node.domain for node in parse(source).graph.node if node.domain}
    plain = convert(mslite.FmkType.MINDIR, source, str(tmp_path / "plain"), without_fusions=RULES)
    found = names(plain.path)
    assert {n for n in found if n.endswith("-op0")} <= of_file
    assert len(set(found)) == len(found) and all(n.startswith("Default/") for n in found)
    assert "Default/Conv2D-op0" in found and "Default/Conv2D-op0/Transpose" in found
    net = mslite.Model()
    net.build_from_file(plain.path)
    assert [name for name, *_ in net.profile(1)] == found


def test_what_a_graph_of_mindir_that_is_called_twice_makes_has_names_of_its_own(tmp_path):
    """A file of MindSpore with graphs that call one another."""
    made = convert(mslite.FmkType.MINDIR, str(CONTROL / "layer.mindir"), str(tmp_path / "layer"))
    found = names(made.path)
    assert len(set(found)) == len(found)
    kept = {n.domain for graph in graphs(CONTROL / "layer.mindir") for n in graph.node}
    assert sum(n in kept for n in found) >= 3


def graphs(path):
    model = parse(path)
    return [model.graph, *model.functions]


def parse(path):
    model = mindir_pb2.ModelProto()
    model.ParseFromString(Path(path).read_bytes())
    return model
