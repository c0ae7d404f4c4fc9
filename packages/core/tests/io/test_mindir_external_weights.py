"""Exported graphs whose weights lie in files of their own."""

import os
import signal

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.io import mindir
from mycelia.io.mindir import mindir_pb2 as pb
from mycelia.io.mindir import read, save


class Affine(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)
        self.fc.weight.set_data(Tensor(np.arange(6, dtype=np.float32).reshape(2, 3) / 10))

    def construct(self, x):
        return ops.softmax(ops.relu(self.fc(x)), -1)


def exported(tmp_path, net, *inputs, **options):
    path = str(tmp_path / "net")
    ms.export(net, *inputs, file_name=path, file_format="MINDIR", **options)
    return path + ".mindir"


def random(*shape):
    return Tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def test_weights_beyond_the_limit_go_to_a_file_beside_the_model(tmp_path, monkeypatch):
    monkeypatch.setattr(mindir, "_SPLIT_KIB", -1)
    net, x = Affine(), random(4, 3)
    exported(tmp_path, net, x)
    assert sorted(os.listdir(tmp_path)) == ["net_graph.mindir", "net_variables"]
    data = (tmp_path / "net_variables/data_0").read_bytes()
    assert data[0] == 1 and len(data) == 3 * 64 and not any(data[1:64])
    model = pb.ModelProto.FromString((tmp_path / "net_graph.mindir").read_bytes())
    places = {p.ref_key: (p.external_data.offset, p.external_data.length) for p in model.graph.parameter}
    assert places == {"fc.bias": (64, 8), "fc.weight": (128, 24)}
    graph = ms.load(str(tmp_path / "net_graph.mindir"))
    np.testing.assert_allclose(graph(x).asnumpy(), net(x).asnumpy(), rtol=1e-6)


class Shifted(nn.Cell):
    """Weights that are all `value`: a mix of two exports shows."""

    def __init__(self, value):
        super().__init__()
        self.first = Parameter(Tensor(np.full(3, value, np.float32)), name="first")
        self.second = Parameter(Tensor(np.full(3, value, np.float32)), name="second")
        self.value = float(value)

    def construct(self, x):
        return x * self.value + self.first * 10 + self.second * 100


STEPS = ("fsync", "replace", "link", "rename", "unlink", "chmod")


def export_until(path, value, step):
    """Exports in a process that is killed right before its step number `step`; how it ended."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    count = 0

    def counted(function):
        def run(*args, **kwargs):
            nonlocal count
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
            return function(*args, **kwargs)

        return run

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))
    try:
        ms.export(Shifted(value), random(3), file_name=path, file_format="MINDIR")
    finally:
        os._exit(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that share memory")
def test_a_killed_export_leaves_the_graph_with_its_own_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(mindir, "_SPLIT_KIB", -1)
    path, x = str(tmp_path / "net"), random(3)
    ms.export(Shifted(0), x, file_name=path, file_format="MINDIR")
    values, step, ended = {0}, 0, 1
    while ended:
        ended = export_until(path, step + 1, step)
        values.add(step + 1)
        found = ms.load(path + "_graph.mindir")(x).asnumpy()
        (value,) = [v for v in values if np.allclose(found, x.asnumpy() * v + 110 * v)]
        values = {value}
        step += 1
    assert step > 5 and values == {step}
    assert sorted(os.listdir(tmp_path)) == ["net_graph.mindir", "net_variables"]
    assert len(os.listdir(tmp_path / "net_variables")) == 1


def test_a_reader_finds_the_weights_of_a_graph_that_is_replaced_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr(mindir, "_SPLIT_KIB", -1)
    path, x = str(tmp_path / "net"), random(3)
    ms.export(Shifted(1), x, file_name=path, file_format="MINDIR")
    find = read.Model._find_external

    def replaced_before(self):
        monkeypatch.setattr(read.Model, "_find_external", find)
        ms.export(Shifted(2), x, file_name=path, file_format="MINDIR")
        find(self)

    monkeypatch.setattr(read.Model, "_find_external", replaced_before)
    found = ms.load(path + "_graph.mindir")(x).asnumpy()
    np.testing.assert_allclose(found, x.asnumpy() * 2 + 220, rtol=1e-6)


def test_a_file_beyond_what_protobuf_holds_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(save, "_LARGEST", 100)
    with pytest.raises(ValueError, match="net.mindir would have .* bytes, but a MindIR file holds up to 100"):
        exported(tmp_path, Affine(), random(4, 3))
    assert os.listdir(tmp_path) == []
