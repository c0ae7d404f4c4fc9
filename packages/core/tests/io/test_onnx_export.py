"""Writing ONNX: names, types, versions, sizes, files; `tests/test_exported_onnx.py` reads back and compares.

Every op sample and every network of the zoo was checked with onnx 1.21 and run by onnxruntime 1.32.
"""

import os

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.io.onnx import onnx_pb2 as pb
from mycelia.io.onnx import save
from mycelia.io.onnx.types import DTYPES


class Affine(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)
        self.norm = nn.BatchNorm1d(2)

    def construct(self, features, scale):
        return self.norm(self.fc(features)) * scale, features


def exported(tmp_path, net, *inputs, **options):
    path = tmp_path / "net"
    ms.export(net, *inputs, file_name=str(path), file_format="ONNX", **options)
    return pb.ModelProto.FromString((tmp_path / "net.onnx").read_bytes())


def zeros(*shape, dtype=ms.float32):
    return Tensor(np.zeros(shape), dtype)


def kinds(graph):
    return [node.op_type for node in graph.node]


def sizes(info):
    return [d.dim_param or d.dim_value for d in info.type.tensor_type.shape.dim]


def test_inputs_weights_and_results_have_their_names(tmp_path):
    graph = exported(tmp_path, Affine(), zeros(4, 3), zeros(1)).graph
    assert [i.name for i in graph.input] == ["features", "scale"]
    assert [o.name for o in graph.output] == ["output0", "output1"]
    assert {i.name for i in graph.initializer} == {
        "fc.weight", "fc.bias", "norm.gamma", "norm.beta", "norm.moving_mean", "norm.moving_variance",
    }  # fmt: skip
    assert kinds(graph) == ["Gemm", "BatchNormalization", "Mul", "Identity"]


def test_a_network_in_training_is_exported_for_evaluation_and_trains_on(tmp_path):
    net = nn.SequentialCell(nn.Dense(3, 3), nn.Dropout(p=0.5), nn.BatchNorm1d(3))
    net.set_train()
    net[2].set_train(False)
    assert kinds(exported(tmp_path, net, zeros(2, 3)).graph) == ["Gemm", "BatchNormalization"]
    assert [net.training, net[1].training, net[2].training] == [True, True, False]


def test_open_sizes_are_named_after_their_input(tmp_path):
    class Net(nn.Cell):
        def construct(self, x):
            return x.reshape(x.shape[0], -1), ops.concat([x, x], 1)

    graph = exported(tmp_path, Net(), Tensor(shape=[None, None, 3], dtype=ms.float32)).graph
    assert sizes(graph.input[0]) == ["x.shape[0]", "x.shape[1]", 3]
    assert sizes(graph.output[0]) == ["x.shape[0]", 0]  # 0: nothing is said
    assert sizes(graph.output[1]) == ["x.shape[0]", 0, 3]


def test_a_size_that_stays_needs_no_operators(tmp_path):
    net = nn.SequentialCell(nn.Flatten(), nn.Dense(12, 5))
    graph = exported(tmp_path, net, Tensor(shape=[None, 3, 4], dtype=ms.float32)).graph
    assert kinds(graph) == ["Reshape", "Gemm"]


@pytest.mark.parametrize("opset, expected", [(17, "Erf"), (19, "Erf"), (20, "Gelu"), (26, "Gelu")])
def test_operators_newer_than_the_version_are_written_as_others(tmp_path, opset, expected):
    model = exported(tmp_path, nn.GELU(False), zeros(2), opset_version=opset)
    assert model.opset_import[0].version == opset and expected in kinds(model.graph)


@pytest.mark.parametrize("opset, inputs", [(17, 1), (18, 2)])
def test_axes_of_reductions_are_where_the_version_has_them(tmp_path, opset, inputs):
    (node,) = exported(tmp_path, lambda x: x.mean(1), zeros(2, 3), opset_version=opset).graph.node
    assert node.op_type == "ReduceMean" and len(node.input) == inputs


def test_all_that_onnx_lacks_is_listed_at_once(tmp_path):
    class Net(nn.Cell):
        def construct(self, x):
            return ops.erfinv(x) + ops.lgamma(ops.relu(x))

    with pytest.raises(ValueError, match=r"ONNX has no operator for: erfinv \(.*\), lgamma \(.*\)"):
        exported(tmp_path, Net(), zeros(2))
    assert not os.listdir(tmp_path)


def test_a_network_with_state_is_refused(tmp_path):
    class Counter(nn.Cell):
        def __init__(self):
            super().__init__()
            self.calls = Parameter(zeros(1), name="calls")

        def construct(self, x):
            self.calls += 1
            return x * self.calls

    with pytest.raises(ValueError, match="changes the Parameters calls"):
        exported(tmp_path, Counter(), zeros(1))


@pytest.mark.parametrize(
    "opset, error", [(16, ValueError), (27, ValueError), ("18", TypeError), (True, TypeError)]
)
def test_a_version_that_is_not_written_is_told(tmp_path, opset, error):
    with pytest.raises(error, match="opset_version"):
        exported(tmp_path, nn.ReLU(), zeros(1), opset_version=opset)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_types_of_inputs_and_weights_are_kept(tmp_path, dtype):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.ones(3), dtype), name="w", requires_grad=False)

        def construct(self, x):
            return ops.concat([x, self.w])

    graph = exported(tmp_path, Net(), zeros(2, dtype=dtype)).graph
    numbers = {graph.input[0].type.tensor_type.elem_type, graph.initializer[0].data_type}
    assert [DTYPES[n] for n in numbers] == [dtype]


def test_the_same_network_gives_the_same_bytes(tmp_path):
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.GELU(), nn.Flatten(), nn.Dense(32, 4))
    files = []
    for _ in range(2):
        exported(tmp_path, net, zeros(1, 1, 4, 4))
        files.append((tmp_path / "net.onnx").read_bytes())
    assert files[0] == files[1]


def test_large_models_have_their_weights_beside_them(tmp_path, monkeypatch):
    net = nn.SequentialCell(nn.Dense(40, 50), nn.Dense(50, 3))
    whole = exported(tmp_path, net, zeros(1, 40))
    monkeypatch.setattr(save, "_LARGEST", 9000)
    graph = exported(tmp_path, net, zeros(1, 40)).graph
    assert sorted(os.listdir(tmp_path)) == ["net.onnx", "net.onnx.data"]
    data = (tmp_path / "net.onnx.data").read_bytes()
    outside = 0
    for tensor, before in zip(graph.initializer, whole.graph.initializer, strict=True):
        places = {entry.key: entry.value for entry in tensor.external_data}
        if not places:
            assert tensor.raw_data == before.raw_data
            continue
        outside += 1
        offset, length = int(places["offset"]), int(places["length"])
        assert places["location"] == "net.onnx.data" and data[offset : offset + length] == before.raw_data
    assert outside == 1  # 8000 bytes; the others are small


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    net = nn.Dense(40, 50)
    exported(tmp_path, net, zeros(1, 40))
    before = (tmp_path / "net.onnx").read_bytes()

    def fail(*_):
        raise OSError("the disk is full")

    for largest in (1 << 31, 100):
        monkeypatch.setattr(save, "_LARGEST", largest)
        monkeypatch.setattr(save, "with_data", fail)
        with pytest.raises(OSError, match="full"):
            exported(tmp_path, net, zeros(1, 40))
        assert os.listdir(tmp_path) == ["net.onnx"] and (tmp_path / "net.onnx").read_bytes() == before


def test_branches_and_loops_are_graphs_that_see_what_is_around_them(tmp_path):
    class Net(nn.Cell):
        def construct(self, x, n):
            i = Tensor(0, ms.int32)
            while i < n:
                x = x * 0.5 + 1
                i = i + 1
            if x.sum() > 3:
                return x - 1
            return x

    graph = exported(tmp_path, Net(), zeros(2, 2), zeros(dtype=ms.int32)).graph
    loop = next(node for node in graph.node if node.op_type == "Loop")
    branch = next(node for node in graph.node if node.op_type == "If")
    (body,) = (a.g for a in loop.attribute)
    assert len(body.output) == 3 and "n" in {name for node in body.node for name in node.input}
    assert [(a.name, len(a.g.input), len(a.g.output)) for a in branch.attribute] == [
        ("then_branch", 0, 1), ("else_branch", 0, 1),
    ]  # fmt: skip


class Sum(nn.Cell):
    def construct(self, x, y):
        if x.shape[0] != y.shape[0]:
            raise ValueError("the batches differ")
        return x + y


def test_sizes_of_one_name_are_one_size(tmp_path):
    inputs = [Tensor(shape=[None, 3], dtype=ms.float32) for _ in "xy"]
    with pytest.raises(RuntimeError, match="raise"):
        exported(tmp_path, Sum(), *inputs)
    named = {"x": {0: "batch"}, "y": {0: "batch"}}
    graph = exported(tmp_path, Sum(), *inputs, dynamic_axes=named).graph
    assert kinds(graph) == ["Add"]
    assert [sizes(i) for i in (*graph.input, *graph.output)] == [["batch", 3]] * 3


@pytest.mark.parametrize("named, error", [
    ({"z": {0: "batch"}}, ValueError), ({"x": {1: "batch"}}, ValueError), ({"x": {2: "batch"}}, ValueError),
    ({"x": ["batch"]}, TypeError), ({"x": {"0": "batch"}}, TypeError), (["x"], TypeError),
])  # fmt: skip
def test_names_of_sizes_are_checked(tmp_path, named, error):
    with pytest.raises(error, match="dynamic_axes"):
        exported(tmp_path, nn.ReLU(), Tensor(shape=[None, 3], dtype=ms.float32), dynamic_axes=named)
    assert not os.listdir(tmp_path)


def test_padding_that_follows_from_open_sizes_is_computed(tmp_path):
    net = nn.SequentialCell(nn.Conv2d(3, 4, 3, 2, "same"), nn.MaxPool2d(3, 2, "same"))
    graph = exported(tmp_path, net, Tensor(shape=[1, 3, None, None], dtype=ms.float32)).graph
    assert kinds(graph).count("Pad") == 2
    for node in graph.node:
        if node.op_type in ("Conv", "MaxPool"):
            assert next(list(a.ints) for a in node.attribute if a.name == "pads") == [0, 0, 0, 0]


@pytest.mark.parametrize("dtype, wide", [(ms.uint16, 6), (ms.bfloat16, 1)])
def test_types_that_runtimes_lack_are_computed_in_wider_ones(tmp_path, dtype, wide):
    graph = exported(tmp_path, lambda x: ops.maximum(x, x + x), zeros(2, dtype=dtype)).graph
    numbers = [a.i for node in graph.node if node.op_type == "Cast" for a in node.attribute]
    assert wide in numbers and DTYPES[numbers[-1]] is dtype
    assert DTYPES[graph.output[0].type.tensor_type.elem_type] is dtype
