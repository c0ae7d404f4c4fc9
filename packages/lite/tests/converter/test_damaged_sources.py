"""Damaged models of other frameworks: one reason, nothing written, no crash. A process converts them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia import nn, ops
from mycelia_lite.converter import ConversionError, convert

from . import (
    caffe_models,
    onnx_models,
    test_onnx_branches,
    test_tflite_detection,
    test_tflite_graphs,
    test_tflite_recurrent,
    tflite_models,
)

FROZEN = Path(__file__).parents[1] / "fixtures" / "tensorflow"
RUNNER = Path(__file__).parents[1] / "fuzz" / "run_damaged_sources.py"
AT_ONCE = 60  # mutations for one seed


def caffe(folder, write_mindir):
    text = (
        caffe_models.head((1, 3, 8, 8))
        + """
layer { name: "c" type: "Convolution" bottom: "x0" top: "c"
        convolution_param { num_output: 4 kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "r" type: "ReLU" bottom: "c" top: "c" }
layer { name: "p" type: "Pooling" bottom: "c" top: "p" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "f" type: "InnerProduct" bottom: "p" top: "f" inner_product_param { num_output: 5 } }
layer { name: "s" type: "Softmax" bottom: "f" top: "s" }
"""
    )
    rng = np.random.default_rng(0)
    blobs = {"c": [rng.normal(size=(4, 3, 3, 3)), np.zeros(4)], "f": [rng.normal(size=(5, 16)), np.zeros(5)]}
    structure, weights = caffe_models.write(folder, text, blobs)
    Path(weights).rename(f"{structure}.weights")
    return [structure]


def tflite(folder, write_mindir):
    rng = np.random.default_rng(0)
    made = tflite_models.Builder()
    made.tensor("x", "float32", (1, 6, 6, 3))
    weights = made.constant("w", rng.normal(size=(4, 3, 3, 3)).astype(np.float32))
    bias, rows = (
        made.constant("b", np.zeros(4, np.float32)),
        made.constant("rows", np.array([1, 144], np.int32)),
    )
    options = tflite_models.table("Conv2DOptions", padding="SAME", stride_w=1, stride_h=1)
    made.tensor("y", "float32", (1, 6, 6, 4)), made.tensor("z", "float32", (1, 144))
    made.add("CONV_2D", ["x", weights, bias], ["y"], options)
    made.add("RESHAPE", ["y", rows], ["z"])
    made.borders(["x"], ["z"])
    cells = ("lstm_coupled", "rnn_both", "svdf")
    more = [test_tflite_recurrent.CASES[name].write(folder / f"{name}.tflite") for name in cells]
    loop = test_tflite_graphs.counting().write(folder / "loop.tflite")
    boxes = test_tflite_detection.case("fast")[0].write(folder / "boxes.tflite")
    return [made.write(folder / "m.tflite"), loop, boxes, *more]


def tf(folder, write_mindir):
    return [FROZEN / f"{name}.pb" for name in ("old_layers", "loops", "moves", "attention")]


def onnx(folder, write_mindir):
    nodes = [
        onnx_models.node("Conv", "x w", "c", name="c", pads=[1, 1, 1, 1]),
        onnx_models.node("Relu", "c", "r", name="r"),
        onnx_models.node("Reshape", "r rows", "y", name="y"),
        onnx_models.node("Slice", "y begin end axes", "z", name="z"),
        onnx_models.node("Softmax", "z", "s", name="s", axis=1),
    ]
    weights = {
        "w": np.ones((4, 3, 3, 3), np.float32), "rows": np.array([0, -1]), "begin": np.array([1]),
        "end": np.array([9]), "axes": np.array([1]),
    }  # fmt: skip
    message = onnx_models.model(nodes, {"x": (np.dtype("float32"), (1, 3, 6, 6))}, "s", weights, 18)
    nodes = [
        test_onnx_branches.either("c", "e"),
        onnx_models.node("ReduceSum", "e", "u", keepdims=0),
        onnx_models.node("Resize", "x - - sizes", "q"),
        onnx_models.node("Mul", "u q", "v"),
    ]
    weights = {"sizes": np.array([7, 9])}
    ways = onnx_models.model(nodes, test_onnx_branches.GIVEN, "v", weights, 18)
    return [onnx_models.write(folder / "m.onnx", message), onnx_models.write(folder / "ways.onnx", ways)]


class Mixed(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.row = nn.Conv2d(3, 4, 3, stride=2), nn.Dense(6, 3)

    def construct(self, x):
        y = ops.concat((ops.relu(self.conv(x)), ops.abs(self.conv(x))), 1)
        y = self.row(y.reshape(-1, 6))
        return ops.one_hot(y.argmax(1), 4).sum(0), ops.flip(y, (0,))[1:]


def mindir(folder, write_mindir):
    return [write_mindir(Mixed(), folder / "mixed", (2, 3, 6, 6))]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited as on Linux")
@pytest.mark.fuzz(2)
@pytest.mark.parametrize("make", [caffe, tflite, tf, onnx, mindir], ids=lambda make: make.__name__)
def test_damaged_models_are_refused_or_converted(make, seed, tmp_path, write_mindir):
    files = make(tmp_path, write_mindir)
    command = [sys.executable, RUNNER, make.__name__.upper(), str(seed * AT_ONCE), str(AT_ONCE), *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    told, made = map(int, done.stdout.split())
    assert told + made == AT_ONCE and told > 5 and made > 0


def test_sizes_beyond_32_bits_are_refused(tmp_path):
    nodes = [onnx_models.node("Abs", "x", "a"), onnx_models.node("Reshape", "a rows", "y", name="wide")]
    given = {"x": (np.dtype("float32"), (1 << 20, 1 << 13))}
    path = onnx_models.write(
        tmp_path / "m.onnx", onnx_models.model(nodes, given, "y", {"rows": np.array([-1])}, 18)
    )
    with pytest.raises(ConversionError, match=r"'wide' has the shape \[8589934592\]"):
        convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"))
    assert not (tmp_path / "m.ms").exists()
