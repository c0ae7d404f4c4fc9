"""What a dump says of graphs: the message that MindInsight's debugger reads, node by node."""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, debug, nn, ops
from mycelia.debug.reading.ir import read_graph
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


CONV = {"kernel_size": (3, 3), "stride": (2, 2), "pad_mode": "same"}


class Strided(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, stride=2)
        self.table = Tensor(np.arange(3, dtype=np.float32).reshape(1, 3, 1, 1))

    def construct(self, x):
        return ops.clamp(self.conv(x), 1e-30, 1e39) * self.table


def attributes(message_of_node):
    """Name -> fields of its ValueProto."""
    found = (message(a) for a in message_of_node[5])
    return {a[1][0].decode(): message(a[2][0]) for a in found}


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_nodes_have_their_attributes_and_graphs_their_constants(tmp_path, mode):
    ms.set_context(mode=mode)
    with debug.dump({"path": str(tmp_path), "eager": True}):
        Strided()(Tensor(np.ones((1, 2, 6, 6), np.float32)))
    graph = graph_in(tmp_path)
    nodes = [message(n) for n in graph[1]]
    conv = next(n for n in nodes if n[3] == [b"Conv2D"])
    (node,) = debug.DumpAnalyzer(tmp_path).select_nodes("Conv2D-op")
    told = attributes(conv)
    assert set(node.attributes) == set(told)
    assert node.attributes["stride"] == "(2, 2)"
    assert [message(v)[3] for v in told["stride"][18]] == [[2], [2]] and told["stride"][1] == [31]
    if mode == ms.GRAPH_MODE:  # eager code has it as what it is, data that nobody made
        tensors = [message(message(c)[2][0]) for c in graph[5]]
        arrays = [message(value[8][0]) for value in tensors if value[1] == [14]]
        (table,) = [array for array in arrays if array[4] == [b"\1\3\1\1"]]
        assert table[3] == [np.arange(3, dtype=np.float32).tobytes()] and table[5] == [11]
        mul = next(n for n in nodes if n[3] == [b"Mul"])
        assert message(mul[1][1])[1][0] in {message(c)[1][0] for c in graph[5]}


LINES = """%para1_x : <Tensor[Float32], (2, 2)>
%para2_fc.weight : <Ref[Tensor[Float32]], (2, 2)>
subgraph @kernel_graph0() {
  %0(a) = PrimFunc_Flatten(%para1_x) primitive_attrs: {k: Bool(1)} cnode_attrs: {checkpoint: Bool(1)}
      : (<Tensor[Float32], (2, 2)>) -> (<Tensor[Float32], (2, 2)>)
      # Fullname with scope: (Default/flat/Flatten-op0)
      # In file /net.py:3, 1~9/        x = flat(x)/
  %1(b) = Load(%para2_fc.weight, UMonad[U]) cnode_attrs: {checkpoint: Bool(1)} cnode_primal_attrs: {id: "7"}
      # Fullname with scope: (Default/fc/Load-op0)
  %2(c) = PrimFunc_RealDiv(Tensor(shape=[2, 2], dtype=Float32, value=
[[ 1.00000000e+00  1.00000000e+00]
 [ 1.00000000e+00  1.00000000e+00]]), %1) primitive_attrs: {k: I64(2)} cnode_attrs: {checkpoint: Bool(1)}
      # Fullname with scope: (Default/fc/RealDiv-op0)
      # In file /net.py:4, 1~9/        x = 1 / x/
  %3(d) = PrimFunc_Broken(%2
      # Fullname with scope: (Default/Broken-op0)
      # In file /net.py:5, 1~9/        broken/
  %4(e) = PrimFunc_MatMul(%0, %2, Bool(0)) {instance name: m} primitive_attrs: {} cnode_attrs: {}
      # Fullname with scope: (Default/fc/MatMul-op0)
      # In file /net.py:6, 1~9/        x = matmul(x, y)/
"""


def test_nodes_of_a_training_of_mindspore_have_their_own_names_inputs_and_lines(tmp_path):
    file = tmp_path / "graph.ir"
    file.write_text(LINES)
    nodes = {name: node for name, node in read_graph(file).items() if node.kind != "Parameter"}
    told = {name: (n.kind, n.inputs, [line.line for line in n.stack]) for name, n in nodes.items()}
    assert told == {
        "Default/flat/Flatten-op0": ("Flatten", ["x"], [3]),
        "Default/fc/Load-op0": ("Load", ["fc.weight"], []),
        "Default/fc/RealDiv-op0": ("RealDiv", ["Default/fc/Load-op0"], [4]),
        "Default/fc/MatMul-op0": ("MatMul", ["Default/flat/Flatten-op0", "Default/fc/RealDiv-op0"], [6]),
    }  # fmt: skip
    assert nodes["Default/fc/RealDiv-op0"].attributes == {"k": "I64(2)"}


def test_attributes_are_read_from_the_text_of_graphs():
    from mycelia.debug.reading.ir import attributes_of

    assert attributes_of('{a: (1, 2), b: "x, y: {", c: [1, [2]], d: Float32}\n') == {
        "a": "(1, 2)", "b": '"x, y: {"', "c": "[1, [2]]", "d": "Float32",
    }  # fmt: skip
    original = '{instance name: conv2d} primitive_attrs: {groups: I64(1), format: "NCHW"} cnode_attrs: {k: 1}'
    assert attributes_of(original) == {"groups": "I64(1)", "format": '"NCHW"'}
    for text in ("", "{}", "{instance name: relu} cnode_attrs: {checkpoint: Bool(1)}", "{a", "x: 1}", "{,}"):
        assert attributes_of(text) == {}
