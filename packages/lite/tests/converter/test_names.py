"""Nodes of a file have the names that the source gave them."""

from __future__ import annotations

import numpy as np

import mycelia_lite as mslite
from mycelia_lite.converter import convert
from mycelia_lite.converter.optimise import RULES
from mycelia_lite.format import read

from .onnx_models import model, node, write


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
