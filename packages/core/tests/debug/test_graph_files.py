"""What a dump says of graphs: the message that MindInsight's debugger reads, node by node."""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, debug, nn, ops
from mycelia.engine.base import wire


@pytest.fixture(autouse=True)
def graph_mode():
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 3)

    def construct(self, x):
        first, second, _ = ops.split(ops.relu(self.fc(x)), 1, 1)
        return first + second


def message(data):
    """Number -> values of a message's fields; texts as such."""
    found = defaultdict(list)
    for number, value in wire.fields(memoryview(data)):
        found[number].append(value if isinstance(value, int) else bytes(value))
    return found


def graph_in(folder):
    (path,) = folder.rglob("ms_output_trace_code_graph_*.pb")
    model = message(path.read_bytes())
    assert model[1] == [1]
    return message(model[4][0])


X = np.ones((2, 4), np.float32)


def test_the_graph_message_has_the_names_of_the_files(tmp_path):
    net = Net()
    with debug.dump({"path": str(tmp_path)}):
        net(Tensor(X))
    graph = graph_in(tmp_path)
    number = next(p.name for p in (tmp_path / "rank_0/Net").iterdir())
    assert graph[2] == [f"kernel_graph_{number}".encode()] and graph[6] == [number.encode()]
    assert {message(p)[1][0] for p in graph[3]} == {b"inputs0", b"fc.weight", b"fc.bias"}
    nodes = [message(n) for n in graph[1]]
    full_names = {n[8][0].decode().replace("/", "_") for n in nodes}
    dumped = {p.name.split(".")[1] for p in tmp_path.rglob("*.npy") if not p.name.startswith("Parameter")}
    assert dumped and dumped <= full_names
    dense = next(n for n in nodes if n[3] == [b"Dense"])
    assert dense[8] == [b"Default/fc-Dense/Dense-op0"] and dense[4] == [b"Default/fc-Dense"]
    assert [message(i)[1][0] for i in dense[1]] == [b"inputs0", b"fc.weight", b"fc.bias"]
    lines = dense[9][0].decode().splitlines()
    assert lines[-1].startswith(f"# In file {__file__}:") and "ops.split(" in lines[-1]
    names = {n[2][0]: n for n in nodes}
    add = next(n for n in nodes if n[3] == [b"Add"])
    assert [names[message(i)[1][0]][3][0] for i in add[1]] == [b"Split"] * 2


def test_eager_calls_have_a_message_that_says_what_fed_them(tmp_path):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    with debug.dump({"path": str(tmp_path)}):
        ops.relu(ops.exp(Tensor(X)))
    nodes = [message(n) for n in graph_in(tmp_path)[1]]
    assert [n[3][0] for n in nodes] == [b"Exp", b"ReLU"]
    assert [message(i)[1][0] for i in nodes[1][1]] == nodes[0][2]


def test_operators_of_branches_are_nodes(tmp_path):
    class Loop(nn.Cell):
        def construct(self, x):
            while x.sum() < 100.0:
                x = x * 2.0
            return x

    with debug.dump({"path": str(tmp_path)}):
        Loop()(Tensor(X))
    (order,) = tmp_path.rglob("ms_execution_order_graph_*.csv")
    expected = set(order.read_text().splitlines()[1:])
    nodes = [message(n) for n in graph_in(tmp_path)[1]]
    assert expected and expected <= {n[8][0].decode() for n in nodes}
    known = {n[2][0] for n in nodes} | {message(p)[1][0] for p in graph_in(tmp_path)[3]}
    known |= {message(c)[1][0] for c in graph_in(tmp_path)[5]}
    assert {message(i)[1][0] for n in nodes for i in n[1]} <= known


def test_the_copy_of_the_configuration_has_what_readers_ask_for(tmp_path):
    with debug.dump({"path": str(tmp_path), "kernels": []}):
        Net()(Tensor(X))
    (path,) = tmp_path.rglob(".dump_metadata/data_dump.json")
    common = json.loads(path.read_text())["common_dump_settings"]
    assert (common["net_name"], common["input_output"], common["kernels"]) == ("Net", 0, [])


def test_a_complete_configuration_is_copied_as_it_is(tmp_path):
    text = json.dumps(
        {
            "common_dump_settings": {"path": str(tmp_path / "d"), "net_name": "N", "input_output": 0},
            "e2e_dump_settings": {"enable": True},
        },
        indent=5,
    )
    (tmp_path / "dump.json").write_text(text)
    with debug.dump(str(tmp_path / "dump.json")):
        Net()(Tensor(X))
    (path,) = tmp_path.rglob(".dump_metadata/data_dump.json")
    assert path.read_text() == text
