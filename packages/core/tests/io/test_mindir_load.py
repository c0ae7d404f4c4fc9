"""Loading MindIR: files of MindSpore give what MindSpore gave; damaged and foreign files are explained."""

import pathlib
import shutil

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn
from mycelia.io import crypto, mindir
from mycelia.io.mindir import mindir_pb2 as pb
from mycelia.io.mindir.text import to_text
from mycelia.io.mindir.values import MONAD, TYPE, read_value, write_value

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures/formats/mindir"
NAMES = sorted(p.name for p in FIXTURES.iterdir())
CALLS = [(p.parent.name, p.name) for p in sorted(FIXTURES.glob("*/io*.npz"))]


def flat(value):
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, (tuple, list)) else [value]


def model_of(name):
    return mindir.read_model(str(FIXTURES / name / "model.mindir"))


def saved(tmp_path, model, name="m.mindir"):
    path = tmp_path / name
    path.write_bytes(model.SerializeToString())
    return str(path)


def tensor(array):
    return Tensor(np.asarray(array))


# ---- files of MindSpore
# ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name, call", CALLS)
def test_outputs_are_those_of_mindspore(name, call):
    graph = ms.load(str(FIXTURES / name / "model.mindir"))
    data = np.load(FIXTURES / name / call)
    inputs = [tensor(data[k]) for k in data.files if k.startswith("in")]
    outputs = flat(nn.GraphCell(graph)(*inputs))
    expected = [data[k] for k in data.files if k.startswith("out")]
    assert len(outputs) == len(expected)
    # MindSpore's Tanh on CPU is a quick form, up to 1e-4 off; everything else agrees closely
    tolerance = 3e-4 if name == "control_flow" else 1e-5
    for got, want in zip(outputs, expected):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=tolerance)


@pytest.mark.parametrize("group", [p.stem for p in sorted((FIXTURES.parent / "operators").glob("*.npz"))])
def test_operators_give_what_they_give_in_mindspore(group):
    data = np.load(FIXTURES.parent / f"operators/{group}.npz")
    graph = ms.load(str(FIXTURES.parent / f"operators/{group}.mindir"))
    outputs = flat(graph(*[tensor(data[k]) for k in data.files if k.startswith("in")]))
    expected = [data[k] for k in data.files if k.startswith("out")]
    assert len(outputs) == len(expected)
    for i, (got, want) in enumerate(zip(outputs, expected)):
        assert got.asnumpy().dtype == want.dtype, i
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-4, atol=2e-5, err_msg=f"result {i}")


@pytest.mark.parametrize("name", NAMES)
def test_text_form_shows_the_whole_model(name):
    assert to_text(model_of(name)) == (FIXTURES / name / "graph.txt").read_text(encoding="utf-8")


def test_inputs_and_parameters_have_their_public_names():
    graph = ms.load(str(FIXTURES / "lenet/model.mindir"))
    assert graph.inputs == [("x", ms.float32, (2, 1, 32, 32))]
    weights = np.load(FIXTURES.parent / "ckpt/lenet_params.npz")
    assert list(graph.parameters) == weights.files
    for name, parameter in graph.parameters.items():
        assert parameter.name == name
        np.testing.assert_array_equal(parameter.asnumpy(), weights[name])


def test_another_batch_size_runs_and_another_dtype_is_an_error():
    graph = ms.load(str(FIXTURES / "lenet/model.mindir"))
    assert graph(tensor(np.zeros((3, 1, 32, 32), np.float32))).shape == (3, 10)
    with pytest.raises(TypeError, match="'x'.*Float32.*Float16"):
        graph(tensor(np.zeros((2, 1, 32, 32), np.float16)))
    with pytest.raises(TypeError, match="takes 1 inputs"):
        graph()
    with pytest.raises(TypeError, match="must be a Tensor"):
        graph(3)


def test_loops_of_many_rounds_use_no_stack():
    graph = ms.load(str(FIXTURES / "control_flow/model.mindir"))
    assert np.isfinite(graph(tensor(np.zeros((2, 4), np.float32)), tensor(np.int32(3000))).asnumpy()).all()


def test_a_model_with_loops_on_data_is_captured_and_exported_again(tmp_path):
    folder = FIXTURES / "control_flow"
    first = nn.GraphCell(ms.load(str(folder / "model.mindir")))
    inputs = [ms.Tensor(shape=list(shape), dtype=dtype) for _, dtype, shape in first.graph.inputs]
    ms.export(first, *inputs, file_name=str(tmp_path / "again"), file_format="MINDIR")
    second = nn.GraphCell(ms.load(str(tmp_path / "again.mindir")))
    for path in sorted(folder.glob("io*.npz")):
        io = np.load(path)
        result = second(*(tensor(io[f"in{i}"]) for i in range(len(inputs))))
        np.testing.assert_allclose(result.asnumpy(), io["out0"], rtol=1e-4, atol=3e-4)


@pytest.mark.parametrize("name", ["lenet", "control_flow"])
def test_models_run_in_graph_mode(name):
    data = np.load(FIXTURES / name / "io.npz")
    cell = nn.GraphCell(ms.load(str(FIXTURES / name / "model.mindir")))
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        result = cell(*[tensor(data[k]) for k in data.files if k.startswith("in")])
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    np.testing.assert_allclose(result.asnumpy(), data["out0"], rtol=1e-4, atol=3e-4)


# ---- values
# ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "value",
    [
        True,
        3,
        -(2**62),
        0.5,
        "text",
        None,
        (),
        (1, 2.5, "a", (True, [])),
        [1],
        {"k": (1, 2)},
        ms.float32,
        MONAD,
    ],
)
def test_values_survive(value):
    got = read_value(write_value(pb.AttributeProto(), value))
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    "array", [np.zeros((0, 3), np.float32), np.float64(2.5), np.array([[1, -1]], np.int8)]
)
def test_tensors_survive_also_empty_ones(array):
    got = read_value(write_value(pb.AttributeProto(), tensor(array)))
    assert isinstance(got, Tensor) and got.asnumpy().dtype == np.asarray(array).dtype
    np.testing.assert_array_equal(got.asnumpy(), array)


@pytest.mark.parametrize(
    "form, fields, expected",
    [
        ("scalar:value0", dict(type=TYPE.INT64, i=3), 3),
        ("scalar:value0", dict(type=TYPE.BOOL, i=1), True),
        ("scalar:value0", dict(type=TYPE.FLOAT, f=0.5), 0.5),
        ("scalar:value0", dict(type=TYPE.STRING, s=b"same"), "same"),
        ("scalar:Tuple[value1,value2,],", dict(type=TYPE.INT64, ints=[4, 5]), (4, 5)),
        ("scalar:List[value1,],", dict(type=TYPE.STRING, strings=[b"x"]), ["x"]),
        ("scalar:Tuple[]", dict(), ()),
        ("scalar:Tuple[Tuple[value1,value2,],value3,],", dict(type=TYPE.INT64, ints=[1, 2, 3]), ((1, 2), 3)),
        ("none", dict(), None),
        ("Monad:UMonad", dict(), MONAD),
        ("type:value0", dict(tensors=[pb.TensorProto(data_type=1)]), ms.float32),
    ],
)
def test_values_of_old_files(form, fields, expected):
    got = read_value(pb.AttributeProto(name="v", ref_attr_name=form, **fields))
    assert got == expected and type(got) is type(expected)


# ---- other kinds of files
# ----------------------------------------------------------------------------------------
def old_model():
    """A network in the form of 1.1: attributes on the nodes, no primitives, no versions."""
    model = pb.ModelProto(ir_version="0.1.0", producer_name="MindSpore", model_version="1.1.0")
    graph = model.graph
    graph.name = "main"
    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    graph.input.add(name="x").tensor.add(dims=[2, 3], data_type=1)
    graph.parameter.add(name="main:w", dims=[4, 3], data_type=1, raw_data=weight.tobytes())
    node = graph.node.add(input=["x", "main:w"], output=["y"], name="other name", op_type="MatMul")
    node.attribute.add(name="transpose_x2", ref_attr_name="scalar:value0", type=TYPE.BOOL, i=1)
    node.attribute.add(ref_attr_name="shape:shape1,").tensors.add(dims=[2, 4], data_type=1)
    axis = graph.node.add(output=["axis"], op_type="Constant").attribute.add(name="value", type=TYPE.INT64)
    axis.ref_attr_name = "scalar:Tuple[value1,],"
    axis.ints.append(1)
    node = graph.node.add(input=["y", "axis"], output=["m"], op_type="ReduceMean")
    node.attribute.add(name="keep_dims", ref_attr_name="scalar:value0", type=TYPE.BOOL, i=1)
    node = graph.node.add(input=["y", "m"], output=["z"], op_type="TensorAdd")
    names = node.attribute.add(
        name="input_names", ref_attr_name="scalar:List[value1,value2,],", type=TYPE.STRING
    )
    names.strings.extend([b"x", b"y"])
    graph.output.add(name="z")
    return model, weight


def test_attributes_on_nodes_as_in_files_of_version_1(tmp_path):
    model, weight = old_model()
    graph = ms.load(saved(tmp_path, model))
    assert list(graph.parameters) == ["w"]
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    y = x @ weight.T
    np.testing.assert_allclose(graph(tensor(x)).asnumpy(), y + y.mean(1, keepdims=True), rtol=1e-5)


def test_convolution_and_pooling_as_in_files_of_version_1(tmp_path):
    """LeNet's first layers as 1.1 wrote them: all arguments are attributes, with the names of that time."""
    model = pb.ModelProto(ir_version="0.1.0", producer_name="MindSpore", model_version="1.1.0")
    graph = model.graph
    graph.name = "main"
    x, w = (
        np.random.default_rng(1).normal(size=(2, 1, 6, 6)),
        np.random.default_rng(2).normal(size=(3, 1, 3, 3)),
    )
    graph.input.add(name="x").tensor.add(dims=x.shape, data_type=1)
    graph.parameter.add(
        name="conv1.weight", dims=w.shape, data_type=1, raw_data=w.astype(np.float32).tobytes()
    )

    def node(op_type, inputs, output, **attributes):
        made = graph.node.add(input=inputs, output=[output], op_type=op_type)
        for name, value in attributes.items():
            a = made.attribute.add(name=name)
            if isinstance(value, tuple):
                a.ref_attr_name = f"scalar:Tuple[{''.join(f'value{i + 1},' for i in range(len(value)))}],"
                a.type = TYPE.INT64
                a.ints.extend(value)
            elif isinstance(value, str):
                a.ref_attr_name, a.type, a.s = "scalar:value0", TYPE.STRING, value.encode()
            else:
                a.ref_attr_name, a.type, a.i = "scalar:value0", TYPE.INT64, value

    node(
        "Conv2D",
        ["x", "conv1.weight"],
        "c",
        out_channel=3,
        kernel_size=(3, 3),
        mode=1,
        pad_mode="same",
        pad=(0, 0, 0, 0),
        stride=(1, 1, 1, 1),
        dilation=(1, 1, 1, 1),
        group=1,
        data_format="NCHW",
    )
    node("ReLU", ["c"], "r")
    node("MaxPool", ["r"], "p", ksize=(1, 1, 2, 2), strides=(1, 1, 2, 2), padding="VALID", data_format="NCHW")
    graph.output.add(name="p")
    data = tensor(x.astype(np.float32))
    weight = tensor(w.astype(np.float32))
    expected = ms.ops.max_pool2d(ms.ops.relu(ms.ops.conv2d(data, weight, pad_mode="same")), 2, 2)
    np.testing.assert_allclose(ms.load(saved(tmp_path, model))(data).asnumpy(), expected.asnumpy(), rtol=1e-5)


def test_several_outputs_make_a_tuple(tmp_path):
    model, _ = old_model()
    model.graph.output.add(name="y")
    result = ms.load(saved(tmp_path, model))(tensor(np.ones((2, 3), np.float32)))
    assert isinstance(result, tuple) and [r.shape for r in result] == [(2, 4), (2, 4)]


def test_values_of_a_graph_around_are_captured(tmp_path):
    """Sub-graphs of foreign files may use names of the graph around them."""
    model, _ = old_model()
    inner = model.functions.add(name="inner")
    inner.input.add(name="inner:a")
    inner.node.add(input=["inner:a", "m"], output=["inner:r"], op_type="Mul")
    inner.output.add(name="inner:r")
    model.graph.node.add(input=["z"], output=["called"], op_type="REF::inner")
    model.graph.output[0].name = "called"
    x = np.ones((2, 3), np.float32)
    y = x @ old_model()[1].T
    mean = y.mean(1, keepdims=True)
    np.testing.assert_allclose(
        ms.load(saved(tmp_path, model))(tensor(x)).asnumpy(), (y + mean) * mean, rtol=1e-5
    )


def test_weights_in_a_file_beside_the_model(tmp_path):
    model = model_of("lenet")
    folder = tmp_path / "m_variables"
    folder.mkdir()
    data = bytearray([1] + [0] * 63)
    for p in sorted(model.graph.parameter, key=lambda p: p.ref_key):
        raw = p.raw_data
        p.ClearField("raw_data")
        p.external_data.location, p.external_data.offset, p.external_data.length = (
            "m_variables/data_0",
            len(data),
            len(raw),
        )
        data += raw + bytes(-len(raw) % 64)
    (folder / "data_0").write_bytes(data)
    io = np.load(FIXTURES / "lenet/io.npz")
    graph = ms.load(saved(tmp_path, model, "m_graph.mindir"))
    np.testing.assert_allclose(graph(tensor(io["in0"])).asnumpy(), io["out0"], rtol=1e-4, atol=1e-5)
    (folder / "data_0").write_bytes(data[:-1000])
    with pytest.raises(ValueError, match="cut off"):
        ms.load(str(tmp_path / "m_graph.mindir"))
    shutil.rmtree(folder)
    with pytest.raises(ValueError, match="does not exist"):
        ms.load(str(tmp_path / "m_graph.mindir"))


def test_weights_outside_the_folder_are_refused(tmp_path):
    model = model_of("lenet")
    model.graph.parameter[0].external_data.location = "../../etc/passwd"
    with pytest.raises(ValueError, match="outside"):
        ms.load(saved(tmp_path, model))


def test_encrypted_files_open_with_the_key_only(tmp_path):
    pytest.importorskip("cryptography")
    key = b"0123456789abcdef"
    path = tmp_path / "e.mindir"
    path.write_bytes(crypto.encrypt((FIXTURES / "add_2x2/model.mindir").read_bytes(), key))
    one = tensor(np.ones((2, 2), np.float32))
    np.testing.assert_array_equal(ms.load(str(path), dec_key=key)(one, one).asnumpy(), np.full((2, 2), 2))
    with pytest.raises(ValueError, match="encrypted"):
        ms.load(str(path))
    with pytest.raises(ValueError, match="decrypt"):
        ms.load(str(path), dec_key=key[::-1])
    plain = str(FIXTURES / "add_2x2/model.mindir")
    by_function = ms.load(plain, dec_key=key, dec_mode=lambda path, key: pathlib.Path(path).read_bytes())
    assert len(by_function.inputs) == 2


# ---- files that are wrong
# ----------------------------------------------------------------------------------------
def test_damaged_files_are_errors(tmp_path):
    data = (FIXTURES / "lenet/model.mindir").read_bytes()
    for cut in (0, 10, 1000, len(data) - 1):
        (tmp_path / "cut.mindir").write_bytes(data[:cut])
        with pytest.raises(ValueError, match="cut.mindir"):
            ms.load(str(tmp_path / "cut.mindir"))


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda m: m.ClearField("producer_name"), "no MindIR"),
        (lambda m: setattr(m, "mind_ir_version", 4), "version is 4"),
        (lambda m: setattr(m, "little_endian", False), "big endian"),
        (lambda m: m.ClearField("graph"), "no graph"),
        (lambda m: setattr(m.graph.node[0], "op_type", "Fantasy"), "not supported: Fantasy"),
        (lambda m: m.graph.node[0].input.append("nowhere"), "no node defines: nowhere"),
        (lambda m: m.functions.add(name=m.graph.name), "same name"),
        (
            lambda m: m.graph.node.add(output=["again"], op_type="REF::main", input=["x"]),
            "graph 'main' calls itself without an end",
        ),
        (lambda m: m.graph.node[0].input.pop(), "MatMul: missing"),
        (
            lambda m: m.graph.parameter.add(name="p", dims=[3], data_type=1, raw_data=b"1234"),
            "takes 12 bytes",
        ),
    ],
)
def test_wrong_models_are_explained(tmp_path, change, message):
    model, _ = old_model()
    change(model)
    with pytest.raises(ValueError, match=message):
        ms.load(saved(tmp_path, model))


def test_all_operators_that_are_not_known_are_listed(tmp_path):
    model, _ = old_model()
    model.graph.node[0].op_type, model.graph.node[-1].op_type = "Fantasy", "Utopia"
    with pytest.raises(ValueError, match="Fantasy, Utopia"):
        ms.load(saved(tmp_path, model))


def test_wrong_arguments(tmp_path):
    with pytest.raises(TypeError):
        ms.load(3)
    with pytest.raises(ValueError, match="end with"):
        ms.load("x.txt")
    with pytest.raises(ValueError, match="does not exist"):
        ms.load(str(tmp_path / "none.mindir"))
