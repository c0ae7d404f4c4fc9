"""What core computes for operators that the importers name themselves: as onnxruntime and LiteRT answer.

The models are those of the rows of all operators, with weights as inputs and sizes open, so that nothing is
known before the model runs.
"""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia.io.onnx import onnx_pb2
from mycelia.ir import evaluate
from mycelia.ir.walk import all_nodes
from mycelia_lite.converter import ConversionError, comparison, convert, meanings
from mycelia_lite.converter.importers import onnx, tflite
from mycelia_lite.converter.importers.onnx.file import tensor_of
from mycelia_lite.converter.meanings.table import MEANINGS

from . import onnx_models as om
from . import test_onnx_rows, test_tflite_detection, test_tflite_listed
from .tflite_models import run

_OPS = ("file_operator", "conv_transpose", "file_loop")


def kinds_of(graph):
    """The operators of a graph that are in the table of meanings, and the runtime's own ops."""
    for _, node in all_nodes(graph):
        if node.op.name == "file_operator":
            fields = dict(node.attrs["fields"])
            yield fields["type"] if node.attrs["kind"] == "Custom" else node.attrs["kind"]
        elif node.op.name in _OPS:
            yield node.op.name


def opened(message, inputs):
    """The model with its weights as inputs and all sizes of inputs open, and what it gets."""
    made = onnx_pb2.ModelProto.FromString(message.SerializeToString())
    given = dict(inputs)
    for weight in made.graph.initializer:
        given[weight.name] = tensor_of(weight, "").asnumpy()
    del made.graph.initializer[:], made.graph.input[:]
    made.graph.input.extend(
        om.border(name, np.asarray(a).dtype, [f"{name}{i}" for i in range(np.ndim(a))])
        for name, a in given.items()
    )
    return made, given


def imported(path, given):
    """The graph with weights as data; with the sizes known where it needs them. None if it needs the data."""
    for shapes in ({}, {name: list(np.shape(a)) for name, a in given.items()}):
        try:
            source = onnx.load(str(path), shapes)
            return source, [
                t.asnumpy() for t in evaluate(source.graph, [ms.Tensor(a) for a in given.values()])
            ]
        except (ConversionError, NotImplementedError):
            continue
    return None


def same(found, expected, what):
    assert found.shape == expected.shape and found.dtype == expected.dtype, what
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5, err_msg=what)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=what)


#: Those of TensorFlow Lite, or of `ALONE`.
_ELSEWHERE = {
    "DetectionPostProcess", "PadFusion", "RandomStandardNormal", "Triu", "UniformReal", "UnsortedSegmentSum",
    "conv_transpose", "pad_to", "reshape", "tensor_scatter", "tril", "triu",
}  # fmt: skip


def test_core_answers_as_onnxruntime_where_the_data_says_the_sizes(tmp_path):
    recorded, seen = np.load(test_onnx_rows.FIXTURE), set()
    for name, (message, inputs) in test_onnx_rows.CASES.items():
        if name in test_onnx_rows.LOOSE:
            continue
        made, given = opened(message, inputs)
        path = tmp_path / "m.onnx"
        om.write(path, made)
        found = imported(path, given)
        if found is None:
            continue
        source, answers = found
        kinds = set(kinds_of(source.graph))
        if not kinds:
            continue
        seen |= kinds
        for i, y in enumerate(answers):
            same(y, recorded[f"{name}/{i}"], name)
    assert seen >= {*MEANINGS, *_OPS[1:]} - _ELSEWHERE


def test_core_answers_as_litert(tmp_path):
    recorded, seen = np.load(test_tflite_listed.FIXTURE), set()
    for name in (*test_tflite_listed.CASES, *test_tflite_listed.GRAPHS):
        model, inputs = test_tflite_listed.model(name)
        source = tflite.load(model.write(tmp_path / "m.tflite"), {})
        kinds = set(kinds_of(source.graph))
        if not kinds or source.states or kinds & {"UniformReal", "RandomStandardNormal"}:
            continue
        seen |= kinds
        for i, y in enumerate(evaluate(source.graph, [ms.Tensor(a) for a in inputs])):
            same(y.asnumpy(), recorded[f"{name}.{i}"], name)
    assert seen >= {"UnsortedSegmentSum", "nms", "nonzero", "pad_to", "unique"}


X, IMAGE = test_onnx_rows.X, test_onnx_rows.IMAGE
ALONE = {  # operator of the table -> node, inputs with open sizes, weights
    "Triu": (om.node("Trilu", "x k", "y"), {"x": X, "k": np.int64(1)}, {}),
    "triu": (om.node("Trilu", "x k", "y"), {"x": X}, {"k": np.int64(-1)}),
    "tril": (om.node("Trilu", "x k", "y", upper=0), {"x": X}, {"k": np.int64(1)}),
    "PadFusion": (om.node("Pad", "x p", "y", mode="reflect"), {"x": X}, {"p": np.array([0, 1, 2, 1, 0, 3])}),
    "reshape": (om.node("Reshape", "x s", "y", allowzero=1), {"x": X[:0], "s": np.array([0, 3, 5])}, {}),
    "tensor_scatter": (
        om.node("ScatterND", "x i u", "y", reduction="max"),
        {"x": X, "i": np.array([[0, 2], [1, 1], [0, 2]]), "u": X[0, :, :]}, {},
    ),
    "conv_transpose": (
        om.node("ConvTranspose", "x w", "y", group=2, strides=[2, 3], pads=[1, 0, 0, 1], dilations=[1, 2],
                output_padding=[1, 2]),
        {"x": IMAGE}, {"w": test_onnx_rows.draw(4, 3, 3, 2, seed=4)},
    ),
    "pad_to": (
        om.node("MaxUnpool", "x i s", "y", kernel_shape=[2, 2], strides=[2, 2]),
        {"x": IMAGE[:1, :1, :2, :2], "i": np.array([[[[5, 7], [13, 15]]]]), "s": np.array([1, 1, 5, 6])}, {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_core_and_the_runtime_agree(name, tmp_path):
    node, inputs, weights = ALONE[name]
    # Only MaxUnpool needs the sizes of its images.
    types = {
        n: (a.dtype, [f"x{i}" for i in range(a.ndim)] if n == "x" and name != "pad_to" else a.shape)
        for n, a in inputs.items()
    }
    path = om.write(tmp_path / "m.onnx", om.model([node], types, "y", weights, 22))
    graph = onnx.load(path, {}).graph
    assert name in set(kinds_of(graph))
    (found,) = (t.asnumpy() for t in evaluate(graph, [ms.Tensor(a) for a in inputs.values()]))
    (expected,) = run(convert(mslite.FmkType.ONNX, path, str(tmp_path / "m")).path, *inputs.values())
    same(found, expected, name)


@pytest.mark.parametrize("name", test_tflite_detection.CASES)
def test_core_finds_the_boxes_of_litert(name, tmp_path):
    model, parts = test_tflite_detection.case(name)
    graph = tflite.load(model.write(tmp_path / "m.tflite"), {}).graph
    found = [t.asnumpy() for t in evaluate(graph, [ms.Tensor(parts[n]) for n in ("places", "likely")])]
    count = int(found[3][0])
    assert count == test_tflite_detection.FILES[f"{name}.count"][0]
    for y, key in zip(found, test_tflite_detection.NAMES[:3]):
        shown = (slice(None), slice(count))
        same(y[shown], test_tflite_detection.FILES[f"{name}.{key}"][shown], key)


def test_random_numbers_with_a_seed_are_compared_and_others_are_not(tmp_path):
    def of(kind, **more):
        nodes = [om.node(kind, "x", "y", **more)]
        return om.write(tmp_path / "m.onnx", om.model(nodes, {"x": (np.float32, (3, 5))}, "y"))

    for kind in ("RandomNormalLike", "RandomUniformLike"):
        made = convert(mslite.FmkType.ONNX, of(kind, seed=3.0), str(tmp_path / "m"), check=True)
        assert made.departures[0].greatest < 1e-6
    with pytest.raises(ConversionError, match="core: .*random numbers without a seed"):
        convert(mslite.FmkType.ONNX, of(kind), str(tmp_path / "m"), check=True)


def test_a_model_with_variables_is_compared_over_two_runs(tmp_path):
    model, _ = test_tflite_listed.model("variables")
    path = model.write(tmp_path / "m.tflite")
    made = convert(mslite.FmkType.TFLITE, path, str(tmp_path / "m"), check=True)
    ours = [d for d in made.departures if d.engine == "core"]
    assert len(ours) % 2 == 0 and all(d.greatest < 1e-6 for d in ours)
    assert sum(d.name.endswith(" of run 2") for d in ours) == len(ours) // 2


def test_a_wrong_operator_of_the_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison.importlib.util, "find_spec", lambda name: None)  # no other engine
    nodes = [om.node("NonZero", "x", "n"), om.node("Neg", "n", "y")]
    path = om.write(tmp_path / "m.onnx", om.model(nodes, {"x": (np.float32, (3, 5))}, "y"))
    made = convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"), check=True)
    assert [(d.engine, d.greatest) for d in made.departures] == [("core", 0.0)]
    right = MEANINGS["nonzero"]
    monkeypatch.setitem(MEANINGS, "nonzero", lambda x: right(x)[::-1])
    with pytest.raises(ConversionError, match="it begins with 'n', op 'nonzero' at .*NonZero"):
        convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"), check=True)


def test_operators_of_other_programs_are_told():
    with pytest.raises(NotImplementedError, match="'Swish' computes is known to the runtime alone"):
        meanings.computed("Custom", {"type": "Swish"}, [np.zeros(3)])
