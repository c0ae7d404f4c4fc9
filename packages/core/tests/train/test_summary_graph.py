"""The graph of a training in an event file."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import mycelia as ms
from mycelia import config, nn, ops
from mycelia.engine.base.wire import fields
from mycelia.train import Model, SummaryCollector, SummaryRecord
from mycelia.train.summary.graph import graph_message, graph_of
from mycelia.train.summary.precision import RAISED, REDUCED, precision_flags


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(6, 3)

    def construct(self, x):
        return self.fc(ops.split(ops.relu(x), 6, 1)[0])


def _train(folder, **options):
    net = Net()
    rows = [(np.ones(12, np.float32) * i, np.int32(i % 3)) for i in range(4)]
    data = ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(2)
    model = Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params()))
    wanted = {"collect_graph": True, "collect_metric": True}
    collector = SummaryCollector(
        str(folder), collect_freq=1, collect_specified_data=wanted, keep_default_action=False, **options
    )
    model.train(1, data, callbacks=[collector])
    return model


def _graphs(folder) -> list[bytes]:
    data, at, found = b"".join(path.read_bytes() for path in folder.glob("*_MS")), 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        found += [bytes(v) for n, v in fields(memoryview(data)[at + 12 : at + 12 + length]) if n == 4]
        at += length + 16
    return found


def _text(message, number: int) -> str:
    return next(bytes(v).decode() for n, v in fields(message) if n == number)


def _parts(graph: bytes, number: int) -> list[memoryview]:
    return [v for n, v in fields(memoryview(graph)) if n == number]


def test_the_graph_of_a_compiled_training_is_recorded_once(tmp_path):
    with config.context(mode=ms.GRAPH_MODE):
        model = _train(tmp_path)
        expected = graph_of(model.train_network)
    (graph,) = _graphs(tmp_path)
    nodes, parameters, constants = (_parts(graph, number) for number in (1, 3, 5))
    own = [_text(node, 3) for node in nodes if _text(node, 3) not in ("TupleGetItem", "MakeTuple")]
    assert own == [node.op.name for node in expected.nodes]
    assert [_text(node, 2) for node in nodes] == [str(i + 1) for i in range(len(nodes))]
    names = {_text(node, 2) for node in nodes} | {_text(p, 1) for p in parameters + constants}
    assert {"fc.weight", "fc.bias"} <= names
    (output,) = _parts(graph, 4)
    read = [_text(v, 1) for node in nodes for n, v in fields(node) if n == 1] + [_text(output, 1)]
    assert set(read) <= names
    scopes = {_text(node, 4) for node in nodes}
    assert "Default/network-WithLossCell/_backbone-Net/fc-Dense" in scopes


def test_each_node_says_where_it_is_and_what_it_gives(tmp_path):
    with config.context(mode=ms.GRAPH_MODE):
        net = Net()
        net(ms.Tensor(np.ones((2, 12), np.float32)))
        graph = graph_message(graph_of(net))
    dense = next(node for node in _parts(graph, 1) if _text(node, 3) == "dense")
    name = _text(dense, 2)
    assert _text(dense, 8) == f"{_text(dense, 4)}/dense-op{name}"
    operator = next(a for n, a in fields(dense) if n == 5 and _text(a, 1) == "operator")
    (value,) = [v for n, v in fields(operator) if n == 2]
    assert _text(value, 7) == "Dense-op0"  # as dumps call it
    (kind,) = [v for n, v in fields(dense) if n == 6]
    (tensor,) = [v for n, v in fields(kind) if n == 2]
    (shape,) = [v for n, v in fields(tensor) if n == 2]
    sizes = [next(fields(dim))[1] for n, dim in fields(shape)]
    assert sizes == [2, 3]


class Mixed(nn.Cell):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.relu = nn.Dense(6, 4), nn.Dense(4, 3), nn.ReLU()

    def construct(self, x):
        return self.two(self.relu(self.one(x))).mean()


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
def test_operators_of_reduced_precision_are_marked(level):
    net = Mixed()
    if level != "O0":
        net = ms.amp.auto_mixed_precision(net, level)
    with config.context(mode=ms.GRAPH_MODE):
        net(ms.Tensor(np.ones((2, 6), np.float32)))
        graph = graph_of(net)
    flags = precision_flags(graph)
    short = {node for node in graph.nodes if any(str(v.type.dtype) == "Float16" for v in node.outputs)}
    assert {node for node, flag in flags.items() if flag == REDUCED} >= short
    assert bool(short) == (level != "O0") and (level != "O0" or not flags)
    message = graph_message(graph)
    marked = [node for node in _parts(message, 1) if b"precision_flag" in bytes(node)]
    assert len(marked) == len(flags)
    if level == "O1":  # the mean is of numbers that have their bits again
        (mean,) = [node for node in graph.nodes if node.op.name == "mean"]
        assert flags[mean] == RAISED


def test_what_reads_reduced_numbers_is_reduced_until_they_are_raised():
    def run(x, y):
        short = x.astype(ms.float16)
        chain = (short * 2.0).exp()
        index = chain.argmax()
        return chain.astype(ms.float32) + y, y.exp(), index, x.astype(ms.float32) * 3.0

    class Net(nn.Cell):
        def construct(self, x, y):
            return run(x, y)

    net, x = Net(), ms.Tensor(np.ones(4, np.float32))
    with config.context(mode=ms.GRAPH_MODE):
        net(x, x + 1.0)
    graph = graph_of(net)
    flags = [(node.op.name, precision_flags(graph).get(node, "")) for node in graph.nodes]
    assert [flag for name, flag in flags if name == "cast"][:2] == [REDUCED, RAISED]
    assert ("exp", REDUCED) in flags and ("exp", "") in flags and ("add", RAISED) in flags


def test_a_training_that_is_not_compiled_has_no_graph(tmp_path):
    with config.context(mode=ms.PYNATIVE_MODE):
        _train(tmp_path)
    assert _graphs(tmp_path) == []


def test_a_record_shows_the_graph_of_its_network(tmp_path):
    net = Net()
    with config.context(mode=ms.GRAPH_MODE), SummaryRecord(str(tmp_path), network=net) as record:
        record.record(1)
        net(ms.Tensor(np.ones((2, 12), np.float32)))
        record.record(2)
        record.record(3)
    (graph,) = _graphs(tmp_path)
    assert _text(memoryview(graph), 2) == "Net.construct"


@pytest.mark.parametrize("wanted", [True, False])
def test_a_graph_that_is_not_asked_for_is_not_collected(wanted, tmp_path):
    net = Net()
    rows = [(np.ones(12, np.float32), np.int32(1))] * 2
    data = ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(2)
    model = Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params()))
    collector = SummaryCollector(
        str(tmp_path), collect_specified_data={"collect_graph": wanted}, keep_default_action=False
    )
    with config.context(mode=ms.GRAPH_MODE):
        model.train(1, data, callbacks=[collector])
    assert len(_graphs(tmp_path)) == wanted
