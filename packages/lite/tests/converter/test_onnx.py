"""ONNX files to core's IR and to `.ms` files: borders, shapes, files of weights, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia.io.onnx import onnx_pb2
from mycelia_lite.converter import Code, ConversionError, convert
from mycelia_lite.converter.importers import onnx

from . import onnx_models as made
from .onnx_models import answers, model, node, write


def _rng(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.fixture
def images(tmp_path):
    """(path of an image network with an open batch, images, what it answers)"""
    weights = {
        "w1": _rng(8, 3, 3, 3, seed=1), "b1": _rng(8, seed=2), "w2": _rng(8, 1, 3, 3, seed=3),
        "w3": _rng(4, 8, 1, 1, seed=4), "w4": _rng(10, 12 * 16, seed=5) / 10, "b4": _rng(10, seed=6),
        "low": np.float32(0), "high": np.float32(6),
    }  # fmt: skip
    nodes = [
        node("Conv", "x w1 b1", "c1", name="first", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Clip", "c1 low high", "r1"),
        node("Conv", "r1 w2", "c2", group=8, auto_pad="SAME_UPPER", kernel_shape=[3, 3]),
        node("Add", "c2 r1", "s"),
        node("Relu", "s", "r2"),
        node("Conv", "r2 w3", "c3"),
        node("Concat", "r2 c3", "j", axis=1),
        node("MaxPool", "j", "p", kernel_shape=[2, 2], strides=[2, 2], dilations=[1, 1]),
        node("Shape", "p", "ps"),
        node("Gather", "ps zero", "n", axis=0),
        node("Unsqueeze", "n first_axis", "n1"),
        node("Concat", "n1 rest", "wanted", axis=0),
        node("Reshape", "p wanted", "f"),
        node("Gemm", "f w4 b4", "o", transB=1),
        node("Softmax", "o", "y"),
    ]
    weights |= {"zero": np.int64(0), "first_axis": np.array([0]), "rest": np.array([-1])}
    path = write(tmp_path / "net.onnx", model(nodes, {"x": ("float32", ("N", 3, 16, 16))}, "y s", weights))
    return path, _rng(2, 3, 16, 16, seed=7)


def test_an_image_network_becomes_a_file_that_answers_alike(images, tmp_path):
    path, x = images
    expected = answers(path, x)
    report = mslite.Converter().convert(mslite.FmkType.ONNX, path, str(tmp_path / "net"))
    assert report.fusions["ConvActivationFusion"] >= 1
    loaded = mslite.Model()
    loaded.build_from_file(report.path)
    (given,), outputs = loaded.get_inputs(), loaded.get_outputs()
    assert (given.name, given.shape, [o.name for o in outputs]) == ("x", [-1, 3, 16, 16], ["y", "s"])
    loaded.resize([given], [x.shape])
    given = loaded.get_inputs()[0]
    given.set_data_from_numpy(x)
    for found, wanted in zip(loaded.predict([given]), expected):
        assert np.abs(found.get_data_to_numpy() - wanted).max() <= 2e-6 * np.abs(wanted).max()


def test_nodes_of_the_graph_know_the_node_of_the_file(images):
    first = onnx.load(images[0], {}).graph.nodes[0]
    assert first.op.name == "conv" and str(first.location) == "net.onnx node:1 in 'first' (Conv)"


def test_shape_arithmetic_leaves_no_nodes(images):
    for shapes in ({}, {"x": [5, 3, 16, 16]}):
        source = onnx.load(images[0], shapes)
        names = [n.op.name for n in source.graph.nodes]
        assert names == [
            "conv", "relu6", "conv", "add", "relu", "conv", "concat", "max_pool", names[8], "dense", "softmax"
        ] and names[8] in ("reshape", "sized")  # fmt: skip
        assert source.graph.outputs[0].type.shape == (5 if shapes else -1, 10)


def test_sizes_of_the_same_name_are_one(tmp_path):
    inputs = {"a": ("float32", ("batch", "length", 4)), "b": ("float32", ("batch", "length", 4))}
    path = write(tmp_path / "m.onnx", model([node("Add", "a b", "y")], inputs, "y"))
    a, b = _rng(2, 3, 4), _rng(2, 3, 4, seed=1)
    assert (answers(path, a, b)[0] == a + b).all()


def test_sizes_are_computed_where_they_are_open(tmp_path):
    """Shape -> Slice, Gather, Mul, Concat -> Reshape and Expand with two open sizes."""
    weights = {
        "i0": np.int64(0), "i1": np.int64(1), "one": np.array([1]), "zero": np.array([0]),
        "two": np.array([2]),
        "minus": np.array([-1, -1, -1]), "ones": np.array([1, 1, 1]),
    }  # fmt: skip
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s i0", "n"), node("Gather", "s i1", "m"), node("Mul", "n m", "nm"),
        node("Unsqueeze", "nm zero", "u"), node("Concat", "u two", "c", axis=0),
        node("Reshape", "x c", "flat"),
        node("Slice", "s one two", "part"), node("Concat", "two part one", "big", axis=0),
        node("Equal", "big minus", "e"), node("Where", "e ones big", "shape"),
        node("Expand", "row shape", "wide"),
        node("Size", "x", "size"), node("Add", "s s", "twice"),
    ]  # fmt: skip
    inputs = {"x": ("float32", ("n", "m", 2)), "row": ("float32", (1, 1, 1))}
    path = write(tmp_path / "m.onnx", model(nodes, inputs, "flat wide size twice s", weights))
    x, row = _rng(3, 5, 2), np.full((1, 1, 1), 7, np.float32)
    source = onnx.load(path, {"x": [3, 5, 2]})
    assert source.input_names == ["x", "row"]
    for shapes in ({}, {"x": [3, 5, 2]}):
        flat, wide, size, twice, shape = answers(path, x, row, shapes=shapes)
        assert (flat == x.reshape(15, 2)).all() and wide.shape == (2, 5, 1) and (wide == 7).all()
        assert size == 30 and twice.tolist() == [6, 10, 4] and shape.tolist() == [3, 5, 2]
        assert shape.dtype == np.int64


# ---- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        _rng(2, 3), np.array([[1, -2]], np.int8), np.array([2**40, -5]), np.array([True, False]),
        np.array([1.5, -2], np.float16), np.array([200], np.uint8), np.array([-7], np.int16),
        np.array([2**31 + 1], np.uint32), np.array([2**63 + 1], np.uint64), np.array(2.5), np.zeros((0, 3)),
        np.array([3], np.int32), np.array([40000], np.uint16),
    ],
    ids=lambda a: a.dtype.name,
)  # fmt: skip
def test_constants_are_read_from_raw_and_from_typed_data(tmp_path, array):
    raw = made.tensor(array, "y")
    typed = onnx_pb2.TensorProto(name="y", dims=raw.dims, data_type=raw.data_type)
    kind = array.dtype.name
    if kind == "float16":
        typed.int32_data.extend(int(n) for n in array.reshape(-1).view(np.uint16))
    else:
        field = {"float32": "float_data", "float64": "double_data", "int64": "int64_data"}.get(kind)
        field = field or ("uint64_data" if kind in ("uint32", "uint64") else "int32_data")
        getattr(typed, field).extend(n + 0 for n in array.reshape(-1).tolist())
    for message in (raw, typed):
        whole = model([], {}, "y")
        whole.graph.initializer.append(message)
        (found,) = answers(write(tmp_path / "m.onnx", whole))
        assert found.dtype == array.dtype and found.shape == array.shape and (found == array).all()


def test_bfloat16_constants(tmp_path):
    whole = model([node("Cast", "w", "y", to=1)], {}, "y")
    whole.graph.initializer.append(
        onnx_pb2.TensorProto(name="w", dims=[2], data_type=16, raw_data=b"\xc0\x3f\x00\xc0")
    )
    assert answers(write(tmp_path / "m.onnx", whole))[0].tolist() == [1.5, -2]


def _external(tmp_path, **entries):
    whole = model([node("Add", "x w", "y")], {"x": ("float32", (3,))}, "y")
    weight = onnx_pb2.TensorProto(name="w", dims=[3], data_type=1, data_location=1)
    for key, value in entries.items():
        weight.external_data.add(key=key, value=str(value))
    whole.graph.initializer.append(weight)
    (tmp_path / "w.bin").write_bytes(bytes(8) + np.array([1, 2, 3], np.float32).tobytes())
    return write(tmp_path / "m.onnx", whole)


def test_weights_may_lie_in_another_file(tmp_path):
    path = _external(tmp_path, location="w.bin", offset=8, length=12)
    assert answers(path, np.zeros(3, np.float32))[0].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        (dict(location="gone.bin"), "gone.bin"),
        (dict(location="../w.bin"), "no file in the model's folder"),
        (dict(location="w.bin", offset=16), "needs 12 bytes of w.bin, but 4 are there"),
        (dict(location="w.bin", length=4), "4 bytes from 0 on are declared, 12 are needed"),
        (dict(location="w.bin", offset=-4), "bytes from -4 on"),
        (dict(), "no file in the model's folder"),
    ],
)
def test_a_bad_file_of_weights_is_told(tmp_path, entries, reason):
    with pytest.raises(ConversionError, match=reason) as caught:
        onnx.load(_external(tmp_path, **entries), {})
    assert caught.value.code == Code.GRAPH_FILE_ERROR


def test_weights_that_are_also_inputs_are_constants(tmp_path):
    inputs = {"x": ("float32", (2,)), "w": ("float32", (2,))}
    message = model([node("Mul", "x w", "y")], inputs, "y", {"w": np.array([2, 3], np.float32)}, opset=7)
    path = write(tmp_path / "m.onnx", message)
    assert onnx.load(path, {}).input_names == ["x"]
    assert answers(path, np.ones(2, np.float32))[0].tolist() == [2, 3]


def test_functions_of_the_file_are_called_with_their_attributes(tmp_path):
    body = [node("LeakyRelu", "a", "t"), node("Add", "t b", "c")]
    body[0].attribute.append(onnx_pb2.AttributeProto(name="alpha", ref_attr_name="slope", type=1))
    function = onnx_pb2.FunctionProto(name="Sloped", domain="own", input=["a", "b"], output=["c"], node=body)
    function.opset_import.add(domain="", version=17)
    whole = model([node("Sloped", "x x", "y", domain="own", slope=0.5)], {"x": ("float32", (2,))}, "y")
    whole.opset_import.add(domain="own", version=1)
    whole.functions.append(function)
    path = write(tmp_path / "m.onnx", whole)
    assert answers(path, np.array([-2, 2], np.float32))[0].tolist() == [-3, 4]


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_whose_condition_is_known(tmp_path, taken):
    branches = {
        name: onnx_pb2.GraphProto(node=[node(kind, "x x", "r")], output=[made.border("r", "float32", None)])
        for name, kind in (("then_branch", "Add"), ("else_branch", "Sub"))
    }
    message = model([node("If", "c", "y", **branches)], {"x": ("float32", (1,))}, "y", {"c": np.array(taken)})
    path = write(tmp_path / "m.onnx", message)
    assert answers(path, np.array([3], np.float32))[0].tolist() == [6 if taken else 0]


# ---- what is refused ---------------------------------------------------------------------------------------


def _one(tmp_path, *nodes, shape=(2, 3), weights=None, opset=17, outputs="y"):
    return write(
        tmp_path / "m.onnx", model(list(nodes), {"x": ("float32", shape)}, outputs, weights, opset=opset)
    )


def test_all_operators_that_are_not_known_are_listed_with_their_nodes(tmp_path):
    inner = onnx_pb2.GraphProto(node=[node("StringConcat", "x", "r", name="deep")])
    path = _one(
        tmp_path, node("Abs", "x", "a"), node("TreeEnsemble", "a", "b", name="second"),
        node("TreeEnsemble", "b", "c"),
        node("If", "c", "d", then_branch=inner, else_branch=inner),
        node("Gelu", "d", "y", name="last", domain="com.example"),
    )  # fmt: skip
    with pytest.raises(ConversionError) as caught:
        convert(mslite.FmkType.ONNX, path, str(tmp_path / "out"))
    assert caught.value.code == Code.NOT_FIND_OP
    listed = "StringConcat (node 'deep'), TreeEnsemble (node 'second'), com.example.Gelu (node 'last')"
    assert listed in str(caught.value) and not (tmp_path / "out.ms").exists()


TWICE = made.graph([node("Abs", "x", "b"), node("Exp", "x", "b")], {}, "b")


@pytest.mark.parametrize(
    ("nodes", "code", "reason"),
    [
        ([node("Relu", "x", "y", name="r", slope=1.0)], -302, r"'r' \(Relu\): its attribute 'slope' is not"),
        ([node("Gelu", "x", "y", name="g", approximate="erf")], -302, r"Gelu.*'approximate' is 'erf'"),
        ([node("Concat", "x x", "y", name="c")], -302, r"'c' \(Concat\): the attribute 'axis' is missing"),
        ([node("Transpose", "x", "y", name="t", perm=[0, 2])], -7, r"node 't' \(Transpose\): "),
        ([node("Relu", "gone", "y", name="r")], -200, "input 'gone' is computed by no node"),
        ([node("Relu", "x x", "y", name="r")], -200, "2 inputs"),
        ([node("Relu", "x", "z", name="r")], -200, "nothing computes the output 'y'"),
        ([node("Dropout", "x", "y z q", name="d")], -7, r"output 2 \('q'\) is not imported"),
        ([node("Cast", "x", "y", name="c", to=8)], -7, "string"),
        ([node("TfIdfVectorizer", "x", "y", name="n", pool_strings=["a"])], -302, "'pool_strings'"),
        ([node("Add", "x w", "y", name="a")], -7, r"node 'a' \(Add\): "),
        ([node("Softmax", "x", "y", name="s", axis=2)], -302, "axis 2 does not exist"),
        ([node("Relu", "x", "y"), node("Abs", "x", "y", name="a")], -200, r"'a' \(Abs\): its result 'y' is"),
        ([node("Relu", "x", "w", name="r"), node("Abs", "w", "y")], -200, r"'r' \(Relu\): its result 'w' is"),
        ([node("If", "w", "y", then_branch=TWICE, else_branch=TWICE)], -200, r"\(Exp\): its result 'b' is"),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_names_node_operator_and_attribute(tmp_path, nodes, code, reason):
    path = _one(tmp_path, *nodes, weights={"w": np.ones(2, np.float32)})
    with pytest.raises(ConversionError, match=reason) as caught:
        onnx.load(path, {})
    assert caught.value.code == code


@pytest.mark.parametrize("opset", [0, 27])
def test_versions_that_are_not_read(tmp_path, opset):
    with pytest.raises(ConversionError, match=f"opset {opset} is not read, only 1 to 26"):
        onnx.load(_one(tmp_path, node("Relu", "x", "y"), opset=opset), {})


def test_operators_of_the_first_versions(tmp_path):
    """As Caffe2 wrote them: shapes are attributes, Concat has an axis, memory is named."""
    x, w = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32), np.float32([2, 3, 4])
    nodes = [
        node("Relu", "x", "r", consumed_inputs=[0]),
        node("Mul", "r w", "m", broadcast=1, axis=1),
        node("Concat", "x m", "c"),
        node("Dropout", "c", "d", is_test=1, ratio=0.5),
        node("Reshape", "d", "s", shape=[0, -1]),
        node("Neg", "s", "y"),
    ]
    (found,) = answers(_one(tmp_path, *nodes, weights={"w": w}, opset=3, shape=x.shape), x)
    expected = -np.concatenate([x, np.maximum(x, 0) * w[:, None]], 1).reshape(2, -1)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    less = _one(tmp_path, node("Less", "x x", "l"), node("Not", "l", "y"), opset=1, shape=x.shape)
    assert answers(less, x)[0].all()


@pytest.mark.parametrize(("kind", "since"), [("Cast", 6), ("Pad", 2), ("Tile", 6)])
def test_operators_that_were_others_are_told(tmp_path, kind, since):
    path = _one(
        tmp_path, node(kind, "x w x" if kind == "Tile" else "x", "y"), weights={"w": np.ones(2)}, opset=1
    )
    with pytest.raises(ConversionError, match=rf"\({kind}\): .*that of {since} and newer is imported"):
        onnx.load(path, {})


def test_a_graph_without_outputs_and_inputs_of_one_name_are_refused(tmp_path):
    with pytest.raises(ConversionError, match="the graph has no outputs"):
        onnx.load(_one(tmp_path, node("Relu", "x", "y"), outputs=""), {})
    message = model([node("Relu", "x", "y")], {"x": ("float32", (2,))}, "y")
    message.graph.input.append(made.border("x", "float32", (3,)))
    with pytest.raises(ConversionError, match="2 inputs are called 'x'"):
        onnx.load(write(tmp_path / "two.onnx", message), {})


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [({"z": [1]}, "names 'z', but the inputs are"), ({"x": [1]}, "1 dimensions, but it has 2")],
)
def test_input_shapes_that_do_not_fit(tmp_path, shapes, reason):
    with pytest.raises(ConversionError, match=reason) as caught:
        onnx.load(_one(tmp_path, node("Relu", "x", "y")), shapes)
    assert caught.value.code == Code.INPUT_PARAM_INVALID


def test_an_input_without_a_shape_needs_one(tmp_path):
    path = _one(tmp_path, node("Relu", "x", "y"), shape=None)
    with pytest.raises(ConversionError, match="'x' has no shape in the file"):
        onnx.load(path, {})
    assert answers(path, np.ones((2, 2), np.float32), shapes={"x": [2, 2]})[0].shape == (2, 2)


def test_names_that_are_no_text(tmp_path):
    path = _one(tmp_path, node("Relu", "x", "y", name="title"))
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(open(path, "rb").read().replace(b"title", b"ti\xfftl"))
    with pytest.raises(ConversionError) as caught:
        onnx.load(str(broken), {})
    assert caught.value.code == Code.GRAPH_FILE_ERROR


def test_data_that_does_not_fill_its_shape(tmp_path):
    for change in (dict(dims=[3]), dict(dims=[-1]), dict(dims=[2**62, 4])):
        whole = model([], {}, "y")
        message = made.tensor(np.ones(2, np.float32), "y")
        message.dims[:] = change["dims"]
        whole.graph.initializer.append(message)
        with pytest.raises(ConversionError, match="the tensor 'y'") as caught:
            onnx.load(write(tmp_path / "m.onnx", whole), {})
        assert caught.value.code == Code.GRAPH_FILE_ERROR


def test_a_damaged_file_is_an_error_and_nothing_else(images, tmp_path):
    """Cut anywhere and with bytes changed: a model, or a ConversionError."""
    data = open(images[0], "rb").read()
    rng = np.random.default_rng(11)
    broken = tmp_path / "broken.onnx"
    refused = 0
    for i in range(60):
        changed = bytearray(data[: rng.integers(1, len(data))] if i % 2 else data)
        for _ in range(3):
            changed[rng.integers(min(len(changed), 1500))] = rng.integers(256)
        broken.write_bytes(changed)
        try:
            onnx.load(str(broken), {})
        except ConversionError:
            refused += 1
    assert refused > 30
