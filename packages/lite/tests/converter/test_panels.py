"""Weights that lie in the file as kernels read them: the same answers, nothing packed at load."""

from __future__ import annotations

import os

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import nn, ops
from mycelia_lite.converter import ConversionError, convert, trial
from mycelia_lite.format import Table, data_of, read, write

MINDIR = mslite.FmkType.MINDIR


class Net(nn.Cell):
    """Convolutions by all algorithms, a grouped one, one with the channels first, and products."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, pad_mode="valid", has_bias=True)
        self.deep = nn.Conv2d(32, 32, 3, pad_mode="valid", has_bias=True)
        self.odd = nn.Conv2d(32, 61, 1, pad_mode="valid", has_bias=True)
        self.apart = nn.Conv2d(61, 61, 3, pad_mode="valid", group=61)
        self.dense = nn.Dense(61, 47)
        self.weight = ms.Parameter(
            ms.Tensor(np.random.default_rng(1).normal(size=(47, 30)).astype(np.float32))
        )

    def construct(self, x):
        x = ops.relu(self.deep(ops.relu(self.stem(x))))
        return ops.matmul(ops.relu(self.dense(self.apart(self.odd(x)).mean((2, 3)))), self.weight)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    ms.set_seed(3)
    path = str(tmp_path_factory.mktemp("panels") / "net.mindir")
    ms.export(
        Net(), ms.Tensor(shape=[None, 3, None, None], dtype=ms.float32), file_name=path, file_format="MINDIR"
    )
    return path


@pytest.fixture(scope="module")
def files(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    return [convert(MINDIR, source, str(folder / f"n{on}"), pack_weights=on).path for on in (False, True)]


def images(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def answers(path, *arrays, **how):
    model = mslite.Model()
    model.build_from_file(path, **how)
    model.resize(model.get_inputs(), [list(a.shape) for a in arrays])
    return trial.answers(model, arrays)


def panels(path):
    return [n for n in read(path).nodes if n.primitive.kind == "Custom" and n.primitive.type == "panels"]


def test_answers_are_the_same_bits(files):
    plain, packed = files
    assert not panels(plain) and len(panels(packed)) == 4  # deep, odd, dense, weight
    for size in (8, 40, 57):  # by the direct form, by both of Winograd's
        x = images(2, 3, size, size)
        for a, b in zip(answers(plain, x), answers(packed, x), strict=True):
            np.testing.assert_array_equal(a, b)


def test_pixels_that_must_not_be_mixed_go_the_direct_way(files):
    x = images(1, 3, 40, 40)
    x[..., 5, 5] = 1e25
    x[..., 30, 30] = np.inf
    for a, b in zip(answers(files[0], x), answers(files[1], x), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_same_bytes_and_little_more(source, files, tmp_path):
    again = convert(MINDIR, source, str(tmp_path / "again"), pack_weights=True).path
    with open(again, "rb") as one, open(files[1], "rb") as other:
        assert one.read() == other.read()
    assert os.path.getsize(files[1]) < 1.1 * os.path.getsize(files[0])


@pytest.mark.parametrize(
    "options", [{"weights_apart": 1000}, {"encrypt_key": bytes(16)}, {"weight_fp16": True}]
)
def test_with_other_kinds_of_storage(source, files, options, tmp_path):
    path = convert(MINDIR, source, str(tmp_path / "n"), pack_weights=True, **options).path
    x = images(1, 3, 24, 24)
    how = {"dec_key": bytes(16)} if "encrypt_key" in options else {}
    (found,), (expected,) = answers(path, x, **how), answers(files[0], x)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-2 if "weight_fp16" in options else 0)


def test_a_configuration_of_mindspore_lite_asks_for_it(source, tmp_path):
    converter = mslite.Converter()
    converter.set_config_info("cpu_option_cfg_param", {"architecture": "ARM64", "instruction": "SIMD_DOT"})
    converter.convert(MINDIR, source, str(tmp_path / "n"))
    assert panels(str(tmp_path / "n.ms"))
    with pytest.raises(ValueError, match="architecture must be ARM64, but got 'X86'"):
        converter.set_config_info("cpu_option_cfg_param", {"architecture": "X86"})


def test_a_packed_file_is_a_source(files, tmp_path):
    path = convert(mslite.FmkType.MSLITE, files[1], str(tmp_path / "n")).path
    x = images(1, 3, 24, 24)
    np.testing.assert_array_equal(answers(path, x)[0], answers(files[0], x)[0])


def test_who_watches_sees_weights_in_their_own_order(files):
    model, seen = mslite.Model(), {}
    model.build_from_file(files[1])
    x = images(1, 3, 24, 24)
    model.resize(model.get_inputs(), [list(x.shape)])
    model.get_inputs()[0].set_data_from_numpy(x)

    def before(inputs, outputs, name, kind):
        if kind == "Conv2DFusion" and len(inputs) > 1:
            seen[name] = inputs[1].get_data_to_numpy().copy()
        return True

    model.predict(model.get_inputs(), before=before)
    plain = read(files[0])
    expected = {
        n.name: plain.allTensors[int(n.inputIndex[1])]
        for n in plain.nodes
        if n.primitive.kind == "Conv2DFusion"
    }
    assert set(seen) == set(expected)
    for name, tensor in expected.items():
        whole = np.frombuffer(data_of(tensor), np.float32).reshape([int(n) for n in tensor.dims])
        np.testing.assert_array_equal(seen[name], whole)


def changed(model, change):
    node = next(n for n in model.nodes if n.primitive.kind == "Custom" and n.primitive.type == "panels")
    change(model, node)


def wrong_axis(model, node):
    node.primitive.attr[0].data = (1 << 40).to_bytes(8, "little")


def no_axis(model, node):
    node.primitive.attr = []


def too_many_columns(model, node):
    model.allTensors[int(node.outputIndex[0])].dims = [4096, 1, 1, 4096]


def of_what_is_computed(model, node):
    node.inputIndex = [int(model.inputIndex[0])]


def made_twice(model, node):
    twin = Table(
        "CNode",
        name="twin",
        primitive=node.primitive,
        inputIndex=[node.inputIndex[0]],
        outputIndex=[node.outputIndex[0]],
    )
    graph = model.subGraph[0]
    model.nodes = [*model.nodes, twin]
    graph.nodeIndices = [*graph.nodeIndices, len(model.nodes) - 1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (wrong_axis, "cannot lie in panels along axis"),
        (no_axis, "must have one input, one output and one attribute"),
        (too_many_columns, "bytes are not the panels of its weights"),
        (of_what_is_computed, "must make weights of float32 of a constant"),
        (made_twice, "must make weights of float32 of a constant"),
    ],
)
def test_a_damaged_node_is_refused(files, tmp_path, change, reason):
    model = read(files[1])
    changed(model, change)
    write(str(tmp_path / "bad.ms"), model)
    with pytest.raises(RuntimeError, match=reason):
        mslite.Model().build_from_file(str(tmp_path / "bad.ms"))


def test_switch_must_be_one(source, tmp_path):
    with pytest.raises(TypeError, match="pack_weights must be a bool"):
        mslite.Converter().pack_weights = "on"
    with pytest.raises(ConversionError):
        convert(MINDIR, source + "x", str(tmp_path / "n"), pack_weights=True)
