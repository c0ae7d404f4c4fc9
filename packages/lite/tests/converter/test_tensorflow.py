"""Frozen graphs of TensorFlow, against what it answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import Code, ConversionError, Job, convert, explain
from mycelia_lite.converter.importers.tensorflow import graph_pb2

FILES = Path(__file__).parents[1] / "fixtures" / "tensorflow"
ANSWERS = np.load(FILES / "answers.npz")
TF = mslite.FmkType.TF


def opened(path):
    model = mslite.Model()
    model.build_from_file(path)
    return model


def answers(model, given):
    """The outputs by name for inputs by name."""
    inputs = model.get_inputs()
    shapes = [list(given[t.name].shape) for t in inputs]
    if [t.shape for t in inputs] != shapes:
        model.resize(inputs, shapes)
    for tensor in model.get_inputs():
        tensor.set_data_from_numpy(given[tensor.name])
    return {t.name: t.get_data_to_numpy() for t in model.predict(model.get_inputs())}


@pytest.mark.parametrize(
    "name", ["images", "old_layers", "text", "cells", "loops", "attention", "moves", "parts"]
)
def test_a_frozen_graph_answers_as_tensorflow(name, tmp_path):
    model = opened(convert(TF, str(FILES / f"{name}.pb"), str(tmp_path / name)).path)
    calls = sorted({key.split(".")[1] for key in ANSWERS if key.startswith(f"{name}.")})
    assert calls
    for i in calls:
        start = f"{name}.{i}."
        parts = {key.removeprefix(start): ANSWERS[key] for key in ANSWERS if key.startswith(start)}
        found = answers(model, {k[3:]: v for k, v in parts.items() if k.startswith("in.")})
        wanted = {k[4:]: v for k, v in parts.items() if k.startswith("out.")}
        assert sorted(found) == sorted(wanted)
        for key, value in wanted.items():
            assert found[key].dtype == value.dtype and found[key].shape == value.shape, key
            assert np.allclose(found[key], value, rtol=1e-5, atol=1e-5), key


def test_the_check_of_a_frozen_graph_compares_it_with_core(tmp_path):
    report = convert(TF, str(FILES / "loops.pb"), str(tmp_path / "m"), check=True)
    assert [d.engine for d in report.departures][:2] == ["core", "core"]


# ---- graphs by hand


def graph(*nodes):
    """Nodes: name, operator, inputs with blanks between, attributes."""
    made = graph_pb2.Graph()
    for name, kind, inputs, attributes in nodes:
        node = made.node.add(name=name, op=kind)
        node.input.extend(inputs.split())
        for key, value in attributes.items():
            field = {bool: "b", int: "i", float: "f", bytes: "s"}.get(type(value))
            if field is not None:
                setattr(node.attr[key], field, value)
            elif isinstance(value, list):
                node.attr[key].list.i.extend(value)
            else:
                getattr(node.attr[key], value[0]).CopyFrom(value[1]) if value[0] != "type" else setattr(
                    node.attr[key], "type", value[1]
                )
    return made


def given(name, *shape):
    sizes = graph_pb2.TensorShape(dim=[dict(size=n) for n in shape])
    return name, "Placeholder", "", {"dtype": ("type", graph_pb2.DT_FLOAT), "shape": ("shape", sizes)}


def constant(name, array):
    array = np.asarray(array)
    kind = {"f": graph_pb2.DT_FLOAT, "i": graph_pb2.DT_INT32}[array.dtype.kind]
    message = graph_pb2.Tensor(dtype=kind, tensor_content=array.tobytes())
    message.tensor_shape.dim.extend([graph_pb2.TensorShape.Dim(size=n) for n in array.shape])
    return name, "Const", "", {"dtype": ("type", kind), "value": ("tensor", message)}


def written(tmp_path, *nodes):
    path = tmp_path / "m.pb"
    path.write_bytes(graph(*nodes).SerializeToString())
    return str(path)


def refused(tmp_path, *nodes, code=None, shapes=None):
    with pytest.raises(ConversionError) as error:
        convert(TF, written(tmp_path, *nodes), str(tmp_path / "m"), shapes)
    assert code is None or error.value.code is code
    assert not (tmp_path / "m.ms").exists()
    return str(error.value)


def test_constants_are_filled_and_nodes_may_stand_in_any_order(tmp_path):
    kind, shape = graph_pb2.DT_FLOAT, graph_pb2.TensorShape(dim=[dict(size=2), dict(size=3)])
    last = graph_pb2.Tensor(dtype=kind, tensor_shape=shape, float_val=[1, 2, 5])
    zeros = graph_pb2.Tensor(dtype=kind, tensor_shape=shape)
    nodes = [
        ("y", "AddV2", "s c ^x", {}), ("s", "Sub", "x z", {}), given("x", -1, 3),
        ("c", "Const", "", {"value": ("tensor", last)}), ("z", "Const", "", {"value": ("tensor", zeros)}),
    ]  # fmt: skip
    model = opened(convert(TF, written(tmp_path, *nodes), str(tmp_path / "m")).path)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(answers(model, {"x": x})["y"], x + [[1, 2, 5], [5, 5, 5]])


def test_open_sizes_may_be_results(tmp_path):
    nodes = [given("x", -1, 3), ("y", "Shape", "x", {}), ("z", "Size", "x", {})]
    model = opened(convert(TF, written(tmp_path, *nodes), str(tmp_path / "m")).path)
    for n in (2, 5):
        found = answers(model, {"x": np.zeros((n, 3), np.float32)})
        assert found["y"].tolist() == [n, 3] and found["y"].dtype == np.int32
        assert found["z"] == 3 * n and found["z"].dtype == np.int32


def test_a_function_of_the_graph_is_called_by_its_name(tmp_path):
    made = graph(given("x", 2), ("y", "twice", "x", {}), ("z", "PartitionedCall", "y", {}))
    made.node[2].attr["f"].func.name = "twice"
    function = made.library.function.add()
    function.signature.name = "twice"
    function.signature.input_arg.add(name="a")
    function.signature.output_arg.add(name="b")
    function.node_def.add(name="sum", op="AddV2", input=["a", "a"])
    function.ret["b"] = "sum:z:0"
    path = tmp_path / "m.pb"
    path.write_bytes(made.SerializeToString())
    model = opened(convert(TF, str(path), str(tmp_path / "m")).path)
    assert answers(model, {"x": np.array([1, -3], np.float32)})["z"].tolist() == [4, -12]
    function.node_def[0].op = "twice"
    del function.node_def[0].input[1]
    path.write_bytes(made.SerializeToString())
    with pytest.raises(ConversionError, match="50 deep"):
        convert(TF, str(path), str(tmp_path / "n"))


def test_control_flow_of_version_1_and_variables_are_refused_by_name(tmp_path):
    with pytest.raises(ConversionError, match=r"control flow of TensorFlow 1.*Exit \(node 'while/Exit'\)"):
        convert(TF, str(FILES / "version_1.pb"), str(tmp_path / "m"))
    reason = refused(tmp_path, ("v", "VarHandleOp", "", {}), ("y", "ReadVariableOp", "v", {}))
    assert "variables (the graph is not frozen)" in reason and "VarHandleOp (node 'v')" in reason


def test_faults_of_the_file_are_told(tmp_path):
    fault = Code.GRAPH_FILE_ERROR
    x = given("x", 2, 3)
    assert "'y' reads 'w', which is not there" in refused(tmp_path, x, ("y", "Add", "x w", {}), code=fault)
    circle = [("a", "Add", "x b", {}), ("b", "Relu", "a", {}), ("y", "Relu", "a", {})]
    assert "depends on itself" in refused(tmp_path, x, *circle, code=fault)
    assert "no output" in refused(tmp_path, x, code=fault)
    assert "several nodes are called 'x'" in refused(tmp_path, x, x, ("y", "Relu", "x", {}), code=fault)
    assert "result 1 of 'x'" in refused(tmp_path, x, ("y", "Relu", "x:1", {}), code=fault)
    short = constant("c", np.ones(4, np.float32))
    short[3]["value"][1].tensor_content = b"1234"
    assert "needs 16 bytes, but has 4" in refused(tmp_path, short, ("y", "Relu", "c", {}), code=fault)
    reason = refused(tmp_path, x, ("y", "Relu", "x", {}), shapes={"z": [1]}, code=Code.INPUT_PARAM_INVALID)
    assert "inputShape names 'z'" in reason
    (tmp_path / "m.pb").write_bytes(b"no graph at all")
    with pytest.raises(ConversionError, match="no GraphDef"):
        convert(TF, str(tmp_path / "m.pb"), str(tmp_path / "m"))


def test_attributes_that_are_not_imported_are_named(tmp_path):
    x, w = given("x", 1, 4, 4, 2), constant("w", np.ones((3, 3, 2, 2), np.float32))
    strides = {"strides": [1, 2, 2, 1]}
    conv = ("y", "Conv2D", "x w", {**strides, "padding": b"SAME", "data_format": b"NHWC_VECT"})
    assert "'y' (Conv2D): attribute 'data_format' is 'NHWC_VECT'" in refused(tmp_path, x, w, conv)
    conv = ("y", "Conv2D", "x w", {"strides": [2, 1, 1, 1], "padding": b"SAME"})
    assert "attribute 'strides' is [2, 1, 1, 1]" in refused(tmp_path, x, w, conv)
    conv = ("y", "Conv2D", "x w", {**strides, "padding": b"SAME", "rounding": b"up"})
    assert "'y' (Conv2D): its attribute 'rounding' is not imported" in refused(tmp_path, x, w, conv)
    c = constant("c", np.ones(2, np.float32))
    norm = ("y", "FusedBatchNormV3", "x c c c c", {"epsilon": 0.1})
    assert "attribute 'is_training' is True" in refused(tmp_path, x, c, norm)


_OTHER_KINDS = (
    graph_pb2.AttrValue(s=b"text"),
    graph_pb2.AttrValue(f=1.5),
    graph_pb2.AttrValue(b=True),
    graph_pb2.AttrValue(shape=graph_pb2.TensorShape(dim=[dict(size=2)])),
    graph_pb2.AttrValue(tensor=graph_pb2.Tensor(dtype=graph_pb2.DT_FLOAT, float_val=[1])),
    graph_pb2.AttrValue(func=graph_pb2.NameAttrList(name="no_function")),
    graph_pb2.AttrValue(list=dict(s=[b"a", b"b", b"c", b"d"])),
    graph_pb2.AttrValue(list=dict(i=[1, 1, 1])),
    graph_pb2.AttrValue(),
)


@pytest.mark.parametrize("name", ["images", "old_layers", "loops", "moves"])
def test_attributes_of_another_kind_are_refused_with_a_reason(name, tmp_path):
    source, seen = graph_pb2.Graph.FromString((FILES / f"{name}.pb").read_bytes()), set()
    folders = [source.node, *(function.node_def for function in source.library.function)]
    nodes = {node.name: node for nodes in folders for node in nodes}
    for node in nodes.values():
        for key in [key for key in node.attr if (node.op, key) not in seen and not key.startswith("T")]:
            seen.add((node.op, key))
            kept = graph_pb2.AttrValue()
            kept.CopyFrom(node.attr[key])
            for other in _OTHER_KINDS[len(seen) % 4 :: 4]:
                node.attr[key].CopyFrom(other)
                (tmp_path / "m.pb").write_bytes(source.SerializeToString())
                try:
                    convert(TF, str(tmp_path / "m.pb"), str(tmp_path / "m"))
                except ConversionError as error:
                    named = any(f"'{known}'" in str(error) for known in (*nodes, "no_function"))
                    assert named, (node.op, key, other, error)
            node.attr[key].CopyFrom(kept)


def test_all_obstacles_are_listed_at_once(tmp_path):
    nodes = [
        given("x", 1, 4, 4, 2), ("a", "Relu7", "x", {}), ("b", "MaxPool", "x", {"padding": b"SOME"}),
        ("y", "AddV2", "a b", {}), ("z", "Cast", "x", {"DstT": ("type", graph_pb2.DT_STRING)}),
    ]  # fmt: skip
    found = [str(e) for e in explain(Job(TF, written(tmp_path, *nodes), str(tmp_path / "m")))]
    assert len(found) == 3
    assert any("'a' (Relu7): there is no importer" in e and "Relu6" in e for e in found)
    assert any("'b' (MaxPool): the attribute 'ksize' is missing" in e for e in found)
    assert any("'z'" in e and "string" in e for e in found)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_images_with_the_channels_first_are_those_with_the_channels_last(layout, tmp_path):
    rng = np.random.default_rng(1)
    weight, bias = rng.normal(size=(3, 3, 2, 4)).astype(np.float32), rng.normal(size=4).astype(np.float32)
    x = rng.normal(size=(1, 5, 6, 2)).astype(np.float32)
    first = layout == "NCHW"

    def ints(height, width):
        return [1, 1, height, width] if first else [1, height, width, 1]

    how = {"data_format": layout.encode()}
    nodes = [
        given("x", *(x.transpose(0, 3, 1, 2) if first else x).shape),
        constant("w", weight), constant("c", bias),
        ("y", "Conv2D", "x w", {**how, "strides": ints(2, 1), "padding": b"SAME"}),
        ("b", "BiasAdd", "y c", how),
        ("p", "AvgPool", "b", {**how, "ksize": ints(2, 2), "strides": ints(1, 2), "padding": b"VALID"}),
        ("z", "FusedBatchNormV3", "p c c c c2", {**how, "is_training": False, "epsilon": 0.01}),
        constant("c2", np.abs(bias)),
    ]  # fmt: skip
    model = opened(convert(TF, written(tmp_path, *nodes), str(tmp_path / "m")).path)
    found = answers(model, {"x": np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if first else x})["z"]
    found = found.transpose(0, 2, 3, 1) if first else found
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    y = np.stack(
        [np.stack([np.einsum("nhwc,hwco->no", padded[:, 2 * i : 2 * i + 3, j : j + 3], weight)
                   for j in range(6)], 1) for i in range(3)], 1
    ) + bias  # fmt: skip
    p = np.stack([y[:, i : i + 2].reshape(1, 2, 3, 2, 4).mean((1, 3)) for i in range(2)], 1)
    wanted = (p - bias) / np.sqrt(np.abs(bias) + 0.01) * bias + bias
    assert np.allclose(found, wanted, rtol=1e-4, atol=1e-5)
