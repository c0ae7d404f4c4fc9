"""Operators that a program adds: importers, shapes and kernels of its own, in Python, C++ and C."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite import runtime
from mycelia_lite.converter import convert
from mycelia_lite.converter.importers.onnx.calls import OPERATORS, operator
from mycelia_lite.converter.runtime_op import custom
from mycelia_lite.format import Table, write

from .onnx_files import run
from .onnx_models import model, node
from .onnx_models import write as write_onnx

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "lite_operator" / "swish.cc"
RECORDS = Path(__file__).with_name("own_operators.c")


@pytest.fixture
def swish_model(tmp_path, monkeypatch):
    """Makes a file with sigmoid(Swish(x)) + x of an ONNX model, whose com.example.Swish the test imports."""
    monkeypatch.setitem(OPERATORS, "com.example.Swish", None)  # taken away at the end

    @operator("com.example.Swish")
    def swish(call, x):
        return custom("Swish", [x], [(x.dtype, x.shape)], beta=call.get("beta", 1.0))

    nodes = [
        node("Swish", "x", "s", name="first", domain="com.example", beta=0.5),
        node("Sigmoid", "s", "g", name="gate"),
        node("Add", "g x", "y", name="last"),
    ]
    message = model(nodes, {"x": (np.float32, (None, 5))}, "y", {}, 18)
    message.opset_import.add(domain="com.example", version=1)
    path = write_onnx(tmp_path / "m.onnx", message)
    return lambda rows=None: (
        convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"), {"x": [rows, 5]} if rows else {}).path
    )


def swish_shapes(node):
    ((dtype, shape, constant),) = node.inputs
    assert constant is None and dtype is mslite.DataType.FLOAT32
    return [(dtype, shape)]


def swish(node, x):
    (beta,) = node.numbers("beta", "<f8")
    return [(x / (1 + np.exp(-np.float32(beta) * x))).astype(np.float32)]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def wanted(x):
    return sigmoid(x * sigmoid(0.5 * x)) + x


def forget(kind: str) -> None:
    runtime.check(runtime.library().MSRegisterCustomOperator(kind.encode(), None))


def test_in_python(swish_model):
    x = np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)
    with pytest.raises(RuntimeError, match=r"node 'first'.*Custom nodes of type 'Swish' are unknown"):
        run(swish_model(), {"x": x})
    mslite.register_operator("Swish", swish_shapes, swish)
    try:
        net = mslite.Model()
        net.build_from_file(swish_model())
        for rows in (3, 1, 7):
            x = np.random.default_rng(rows).normal(size=(rows, 5)).astype(np.float32)
            net.resize(net.get_inputs(), [[rows, 5]])
            net.get_inputs()[0].set_data_from_numpy(x)
            assert np.allclose(net.predict(net.get_inputs())[0].get_data_to_numpy(), wanted(x), atol=1e-6)
    finally:
        forget("Swish")
    assert np.allclose(net.predict(net.get_inputs())[0].get_data_to_numpy(), wanted(x), atol=1e-6)
    with pytest.raises(RuntimeError, match="'Swish' are unknown"):
        run(swish_model(), {"x": x})


@pytest.mark.parametrize(
    ("infer", "compute", "said", "cause"),
    [
        (lambda node: node.numbers("gamma", "<f8"), swish, "found no shapes", "no attribute 'gamma'"),
        (lambda node: [], swish, "found no shapes", "infer gave 0 results"),
        (lambda node: [(43, [-2])], swish, "a type or a shape that cannot be", ""),
        (lambda node: [(43, [1] * 9)], swish, "a type or a shape that cannot be", ""),
        (lambda node: [(0, [1])], swish, "a type or a shape that cannot be", ""),
        (lambda node: [(43, [1 << 40, 1 << 40])], swish, "too large|too many", ""),
        (swish_shapes, lambda node, x: 1 / 0, "failed with code -1", "division by zero"),
        (swish_shapes, lambda node, x: [x[:1]], "failed with code -1", r"must be float32 \[3, 5\]"),
        (swish_shapes, lambda node, x: [x, x], "failed with code -1", "compute gave 2 results"),
    ],
)
def test_what_a_function_raises_is_told(swish_model, infer, compute, said, cause):
    mslite.register_operator("Swish", infer, compute)
    try:
        with pytest.raises(RuntimeError, match=said) as raised:
            run(swish_model(), {"x": np.ones((3, 5), np.float32)})
    finally:
        forget("Swish")
    assert re.search(cause, str(raised.value.__cause__))
    with pytest.raises(TypeError, match="infer and compute"):
        mslite.register_operator("Swish", None, compute)
    with pytest.raises(RuntimeError, match="the type is NULL or empty"):
        mslite.register_operator("", infer, compute)


def custom_file(path: Path, kind: str, inputs: list[Table], results: int, **attributes: bytes) -> str:
    """A file with one Custom node; inputs without data are those of the model."""
    attr = [Table("Attribute", name=name, data=data) for name, data in attributes.items()]
    made = Table("CNode", name="mine", primitive=Table("Custom", type=kind, attr=attr))
    made.inputIndex = list(range(len(inputs)))
    made.outputIndex = [len(inputs) + i for i in range(results)]
    outputs = [Table("Tensor", name=f"y{i}", dataType="FLOAT32", nodeType=2) for i in range(results)]
    outside = [i for i, t in enumerate(inputs) if t.nodeType == 2]
    write(
        str(path),
        Table(
            "MetaGraph", nodes=[made], allTensors=[*inputs, *outputs], inputIndex=outside,
            outputIndex=made.outputIndex,
        ),
    )  # fmt: skip
    return str(path)


def test_results_of_other_types_constants_and_several_results(tmp_path):
    x = Table("Tensor", name="x", dataType="INT64", dims=[4], nodeType=2)
    order = Table("Tensor", name="order", dataType="INT32", dims=[4], nodeType=0)
    order.data = np.array([3, 0, 2, 1], np.int32)
    path = custom_file(tmp_path / "m.ms", "Reorder", [x, order], 2, note=b"hello")
    seen = []

    def shapes(node):
        (dtype, shape, _), (_, _, by) = node.inputs
        seen.append((node.name, node.bytes("note"), by.tolist()))
        return [(dtype, shape), (mslite.DataType.BOOL, [])]

    mslite.register_operator("Reorder", shapes, lambda node, x, by: [x[by], np.bool_(x.sum() > 10)])
    try:
        first, second = run(path, {"x": np.arange(4)})
    finally:
        forget("Reorder")
    assert seen[0] == ("mine", b"hello", [3, 0, 2, 1])
    assert first.tolist() == [3, 0, 2, 1] and first.dtype == np.int64
    assert not second and second.dtype == bool and second.shape == ()


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_in_cpp(swish_model, tmp_path):
    home = runtime.folder()
    subprocess.run(
        ["c++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{home}/include", EXAMPLE,
         f"{home}/libmycelia_lite.a", "-pthread", "-lm", "-o", tmp_path / "swish"],
        check=True,
    )  # fmt: skip
    for provider, lines in (("", 1), ("Loud", 2), ("Nobody", 1)):
        command = [tmp_path / "swish", swish_model(2), *([provider] if provider else [])]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        *said, numbers = done.stdout.splitlines()
        assert said == ["gate is computed here"] * (lines - 1)
        assert np.allclose(np.array(numbers.split(), np.float32), wanted(np.ones(10)), atol=1e-6)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_in_c_everything_is_freed_when_nothing_needs_it(swish_model, tmp_path):
    home = runtime.folder()
    compile_c = [
        "cc",
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-pedantic",
        "-Werror",
        f"-I{home}/include",
        "-c",
        RECORDS,
    ]
    subprocess.run([*compile_c, "-o", tmp_path / "own.o"], check=True)
    link = ["c++", tmp_path / "own.o", f"{home}/libmycelia_lite.a", "-pthread", "-lm", "-o", tmp_path / "own"]
    subprocess.run(link, check=True)
    done = subprocess.run([tmp_path / "own", swish_model()], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "all is freed\n"), done
