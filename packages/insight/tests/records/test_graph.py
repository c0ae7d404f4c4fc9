"""Graphs decoded and folded: real files, those of this product, and hostile ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn
from mycelia.train.summary import SummaryRecord
from mycelia_insight.records.forward_graph import forward_graph
from mycelia_insight.records.graph import WINDOW, Leaf, ScopeGraph
from mycelia_insight.records.graph_files import ir_message, of_mindspore, of_tensorboard
from mycelia_insight.records.lineage import dataset_graph
from mycelia_insight.runs.graphs import Graphs, pipelines, sources
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE))
from event_files import TENSORBOARD, event, field, framed, number, scalar, write  # noqa: E402

FIXTURE = HERE / "fixtures" / "summary"


def node(
    key: str, kind: str, scope: str, *inputs: str, control: tuple[str, ...] = (), full: str = ""
) -> bytes:
    ends = b"".join(
        field(1, field(1, name) + number(2, int(name in control))) for name in (*inputs, *control)
    )
    shape = b"".join(field(1, number(1, size)) for size in (2, -1))
    result = field(6, number(1, 14) + field(2, number(1, 11) + field(2, shape)))
    name = field(8, full or f"{scope}/{kind}-op{key}")
    return field(1, ends + field(2, key) + field(3, kind) + field(4, scope) + result + name)


def run_of(base: Path, workspace: Path, id: str):
    library = Library(str(base), str(workspace))
    library.look()
    while library.read():
        pass
    return library.get(id)


@pytest.fixture(scope="module")
def mindspore(tmp_path_factory):
    return run_of(FIXTURE, tmp_path_factory.mktemp("workspace"), "./run1")


def test_a_graph_of_mindspore(mindspore):
    expected = json.loads((FIXTURE / "run1.expected.json").read_text())["graph"]["ops"]
    graph = Graphs().get(mindspore, "")
    counts: dict[str, int] = {}
    for leaf in graph.leaves:
        counts[leaf.type] = counts.get(leaf.type, 0) + 1
    # MindInsight draws a parameter once for each scope that takes it, this page once.
    operators = {kind: n for kind, n in expected.items() if kind != "Parameter"}
    assert {kind: counts[kind] for kind in operators} == operators
    number = graph.find("Default/network-WithLossCell/_backbone-TrainNet/net-LeNet5/conv1-Conv2d/Conv2D-op0")
    leaf = graph.leaf(number)
    assert (leaf.dtype, leaf.shape) == ("float32", (4, 6, 28, 28))
    assert leaf.attributes()["kernel_size"] == "(5, 5)" and leaf.attributes()["format"] == '"NCHW"'
    inputs, outputs = graph.neighbours(number)
    assert [graph.leaves[at].type for at, _ in inputs] == ["Parameter", "Load"]
    assert "ReLU" in [graph.leaves[at].type for at, _ in outputs]


def test_what_is_seen_is_what_is_open(mindspore):
    graph = Graphs().get(mindspore, "")
    seen, edges = graph.view([])
    assert [graph.branches[n].name for n in seen] == ["Default", "Gradients", "output"]
    names = [graph.branches[n].name for n in graph.view(["Default", "Default/network-WithLossCell"])[0]]
    assert "Default/network-WithLossCell/_backbone-TrainNet" in names
    # What lies in a scope that is folded is not seen, whatever is said of it.
    assert graph.view(["Default/network-WithLossCell"])[0] == seen
    opened = [branch.name for branch in graph.branches]
    seen, edges = graph.view(opened)
    plain = {(s, t) for t, leaf in enumerate(graph.leaves) for s, _ in leaf.inputs}
    leaf_at = {int(graph.branch_of_leaf[i]): i for i in range(len(graph.leaves))}
    assert {(leaf_at[edge["from"]], leaf_at[edge["to"]]) for edge in edges} == plain
    assert all(graph.leaves[graph._leaf_of[n]].name for n in seen if n in leaf_at)


def test_the_pipeline_of_mindspore(mindspore):
    (found,) = pipelines(mindspore)
    batch = found["graph"]
    assert (batch["op_type"], batch["batch_size"], batch["drop_remainder"]) == ("Batch", 4, False)
    mapped = batch["children"][0]
    assert mapped["operations"][0]["tensor_op_name"] == "TypeCast"
    assert mapped["children"][0]["op_type"] == "MindDataDataset"


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Dense(4, 8), nn.Dense(8, 2)

    def construct(self, x):
        return self.two(ms.ops.relu(self.one(x)))


def test_graphs_and_stages_that_core_writes(tmp_path):
    net, folder = Net(), tmp_path / "runs" / "own"
    with ms.config.context(save_graphs=2, save_graphs_path=str(folder / "stages")):
        ms.jit(net.construct)(ms.Tensor(np.ones((1, 4), np.float32)))
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        net(ms.Tensor(np.ones((1, 4), np.float32)))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    with SummaryRecord(str(folder), network=net) as record:
        record.record(1)
    run = run_of(tmp_path / "runs", tmp_path / "workspace", "./own")
    listed = sources(run)
    assert listed[0].id == "event-0" and listed[0].step == 0
    stages = [source.id for source in listed if source.id.endswith(".ir")]
    stages = [id for id in stages if "type_inference" in id or "validate" in id or "_lower_" in id]
    assert any("type_inference" in id for id in stages) and any("validate" in id for id in stages)
    graphs = Graphs()
    for id in ("event-0", *stages):
        graph = graphs.get(run, id)
        assert {leaf.type for leaf in graph.leaves} >= {"Parameter"}, id
        sources_of = {leaf.source for leaf in graph.leaves if leaf.kind == "operator"}
        assert any(text.rpartition(":")[0] == __file__ for text in sources_of), (id, sources_of)
        assert {"one.weight", "two.bias"} <= {leaf.name.rpartition("/")[2] for leaf in graph.leaves}, id
    assert graphs.get(run, "../own/stages/x.ir") is None


def test_a_graph_of_tensorboard(tmp_path):
    def entry(name: str, kind: str, *inputs: str) -> bytes:
        ends = b"".join(field(3, one) for one in inputs)
        attribute = field(5, field(1, "T") + field(2, number(6, 1)))
        return field(1, field(1, name) + field(2, kind) + ends + attribute)

    data = (
        entry("a/x", "Placeholder") + entry("a", "Identity", "a/x:0") + entry("b", "Add", "a", "^a/x", "none")
    )
    write(tmp_path / "runs" / "tb", [framed(event(0, 1.0, field(4, data)))], first=TENSORBOARD)
    graph = Graphs().get(run_of(tmp_path / "runs", tmp_path / "workspace", "./tb"), "")
    assert [leaf.name for leaf in graph.leaves] == ["a/x", "a (node)", "b"]
    assert graph.leaves[2].inputs == [(1, False), (0, True)] and graph.leaves[2].dtype == "float32"
    assert [graph.branches[n].name for n in graph.view(["a"])[0]] == ["a", "a/x", "a (node)", "b"]
    assert of_tensorboard(data).find("b")


def test_siblings_of_one_type_are_one():
    data = b"".join(node(str(i), "Load", "net") for i in range(5)) + node(
        "9", "Add", "net", "0", control=("1",)
    )
    graph = of_mindspore(data)
    seen, edges = graph.view(["net"])
    assert [graph.branches[n].label for n in seen] == ["net", "Load[5]_0", "Add-op9"]
    (edge,) = edges
    assert edge["count"] == 2 and not edge["control"]
    _, edges = graph.view(["net", "net/Load[5]_0"])
    assert {graph.branches[edge["from"]].label: edge["control"] for edge in edges} == {
        "Load-op0": False,
        "Load-op1": True,
    }
    assert graph.view([])[1] == []  # what goes on inside of a folded scope is no edge
    assert graph.leaves[0].shape == (2, -1) and graph.leaves[0].is_dynamic
    four = of_mindspore(
        b"".join(node(str(i), "Load", "net") for i in range(4)) + node("9", "Add", "net", "0")
    )
    assert len(four.view(["net"])[0]) == 6


@pytest.mark.parametrize(
    "data",
    [
        node("1", "Add", "a", "2") + node("2", "Add", "a", "1"),  # a cycle
        node("1", "Add", "a", "1"),  # of one node
        node("1", "Add", "a", "missing", "2"),
        node("1", "Add", "a" * 100_000) + node("2", "<script>alert(1)</script>", "\x00/\n//"),
        node("1", "Add", "/".join("s" * 5000)),  # 5000 levels
        node("1", "Add", "a", full="same") + node("1", "Add", "a", full="same") + node("2", "Add", "same"),
        field(1, b"") * 50,
        field(3, b"") + field(5, b"") + field(4, b""),
        b"",
    ],
)  # fmt: skip
def test_strange_graphs_are_shown(data):
    graph = of_mindspore(data)
    names = [branch.name for branch in graph.branches[1:]]
    assert len(set(names)) == len(names)
    seen, _ = graph.view(names)
    assert len(seen) == len(names)
    for at in range(1, len(graph.branches)):
        graph.neighbours(at)
        assert len(graph.path(at)) <= 101
    assert graph.branches[0].end == len(graph.leaves)


def test_a_type_that_is_broken_costs_itself_alone():
    broken = field(1, field(2, "1") + field(3, "Add") + field(4, "a") + field(6, b"\x0a"))
    graph = of_mindspore(broken + node("2", "Add", "a", "1"))
    assert (graph.leaves[0].dtype, graph.leaves[0].shape) == ("", None)
    seen, edges = graph.view(["a"])
    assert len(seen) == 3 and len(edges) == 1


def test_what_is_no_graph_is_refused():
    whole = node("1", "Add", "a", "b")
    for data in (
        whole[:-3],
        b"\xff" * 30,
        b"\x0b",
        number(1, 1) + field(4, b"\xff"),
        number(1, 1) + field(4, number(1, 3)),
    ):
        with pytest.raises(ValueError):
            of_mindspore(data)
    with pytest.raises(ValueError):
        ir_message("graph ??")
    with pytest.raises(ValueError):
        dataset_graph(field(1, b"\xff"))
    deep = b""
    for _ in range(1100):
        deep = field(1, deep)
    with pytest.raises(ValueError, match="deeper"):
        dataset_graph(deep)


def test_a_hundred_thousand_nodes():
    rows = [
        node(str(i), f"Kind{i % 7}", f"block{i // 1000}/cell{i // 100 % 10}", str(i - 1))
        for i in range(100_000)
    ]
    graph = of_mindspore(b"".join(rows))
    seen, edges = graph.view(["block3", "block3/cell2"])
    assert (len(graph.leaves), len(seen)) == (100_000, 100 + 10 + 7)
    flat = of_mindspore(b"".join(node(str(i), f"Kind{i}", "", str(i - 1)) for i in range(2000)))
    seen, _ = flat.view([])
    assert 1 < len(seen) <= WINDOW
    assert flat.search("kind1999")[1] == 1


def test_files_of_graphs_and_links(tmp_path):
    folder = tmp_path / "runs" / "r"
    write(folder, [scalar("loss", 0, 1.0)])
    graph = node("1", "Add", "a")
    (folder / "model.pb").write_bytes(number(1, 3) + field(4, graph))
    (folder / "broken.pb").write_bytes(b"\xff\xff")
    (tmp_path / "secret.pb").write_bytes(graph)
    (folder / "link.pb").symlink_to(tmp_path / "secret.pb")
    write(folder / "inner", [scalar("loss", 0, 1.0)])
    (folder / "inner" / "its.pb").write_bytes(graph)
    run = run_of(tmp_path / "runs", tmp_path / "workspace", "./r")
    assert [source.id for source in sources(run)] == ["broken.pb", "model.pb"]
    assert Graphs().get(run, "model.pb").leaves[0].type == "Add"
    with pytest.raises(ValueError):
        Graphs().get(run, "broken.pb")
    assert run.entries(Kind.GRAPH) is None
    (folder / "validate.ir").write_text("# IR entry: @2075_2006___main___Net_construct\n")  # by MindSpore
    with pytest.raises(ValueError, match="the .pb of the same graph is shown"):
        Graphs().get(run, "validate.ir")


def test_the_forward_part_has_no_gradients_optimizer_or_order():
    """As MindInsight shows `mode=optimize`: what is read in an order is read from the parameter itself."""

    def leaf(name, type, *inputs, kind="operator"):
        return Leaf(name, type, name.rpartition("/")[0], kind, [(i, False) for i in inputs])

    weight = "Default/net/w"
    leaves = [
        leaf("Default/net/Conv2D-op0", "Conv2D", 1, 6), leaf("Default/net/Load-op0", "Load", 5, 2),
        leaf("Default/UpdateState-op0", "UpdateState", 7), leaf("Gradients/Default/net/Grad-op0", "Grad", 0),
        leaf("Default/optimizer-SGD/SGD-op0", "SGD", 5, 3), leaf(weight, "Parameter", kind="parameter"),
        leaf("Default/optimizer-SGD/x", "Parameter", kind="parameter"),
        leaf("Default/optimizer-SGD/rate", "Parameter", kind="parameter"),
        leaf("output", "Output", 4, 0, kind="output"),
    ]  # fmt: skip
    found = forward_graph(ScopeGraph("g", leaves))
    assert {one.name: one.scope for one in found.leaves} == {
        "Default/net/Conv2D-op0": "Default/net", "output": "", "Default/net/w": "Default/net",
        "Default/optimizer-SGD/x": "Default/net",
    }  # fmt: skip
    inputs = {one.name: [found.leaves[i].name for i, _ in one.inputs] for one in found.leaves if one.inputs}
    assert inputs == {
        "Default/net/Conv2D-op0": ["Default/net/w", "Default/optimizer-SGD/x"],
        "output": ["Default/net/Conv2D-op0"],
    }


def test_our_training_step_has_the_scopes_of_cells_and_a_forward_part(tmp_path):
    net = Net()
    loss = nn.WithLossCell(net, nn.MSELoss())
    step = nn.TrainOneStepCell(loss, nn.Momentum(net.trainable_params(), 0.1, 0.9))
    folder = tmp_path / "runs" / "own"
    with ms.config.context(mode=ms.GRAPH_MODE, save_graphs=2, save_graphs_path=str(folder / "stages")):
        step(ms.Tensor(np.ones((1, 4), np.float32)), ms.Tensor(np.ones((1, 2), np.float32)))
        with SummaryRecord(str(folder), network=step) as record:
            record.record(1)
    run = run_of(tmp_path / "runs", tmp_path / "workspace", "./own")
    graphs = Graphs()
    captured = next(source.id for source in sources(run) if "type_inference" in source.id)
    for id in ("event-0", captured):
        scopes = {leaf.scope for leaf in graphs.get(run, id).leaves}
        assert "Default/network-WithLossCell/_backbone-Net/two-Dense" in scopes, (id, scopes)
        assert any(scope.startswith("Gradients/Default/network-WithLossCell") for scope in scopes), id
        assert any(scope.startswith("Default/optimizer-Momentum") for scope in scopes), id
        forward = graphs.get(run, id, True)
        left = {leaf.scope for leaf in forward.leaves if leaf.kind == "operator"}
        assert "Default/network-WithLossCell/_backbone-Net/two-Dense" in left, (id, left)
        assert not any("Gradients" in scope or "optimizer-" in scope for scope in left), (id, left)
        assert 2 < len(forward.leaves) < len(graphs.get(run, id).leaves)


def test_bytes_of_outputs_count_what_is_known():
    types = {
        "a": ("float32", (2, 3)), "b": ("bfloat16", ()), "c": ("bool", (5,)), "d": ("complex64", (0, 7)),
        "e": ("float32", (2, -1)), "f": ("string", (4,)), "g": ("", None), "h": ("uint8", (10**12, 10**12)),
    }  # fmt: skip
    leaves = [Leaf(f"s/{n}", "Op", f"s/{n}", type_of=lambda its=its: its) for n, its in types.items()]
    graph = ScopeGraph("g", leaves)
    sizes = {leaf.name[2]: leaf.output_bytes for leaf in leaves}
    assert sizes == {"a": 24, "b": 2, "c": 5, "d": 0, "e": None, "f": None, "g": None, "h": 10**24}
    outputs, scope = graph.outputs, graph.find("s")
    assert (outputs.bytes(scope), outputs.unknown(scope)) == (24 + 2 + 5 + 10**24, 3)
    assert (outputs.bytes(graph.find("s/e")), outputs.unknown(graph.find("s/e"))) == (None, 1)
    dtypes = outputs.dtypes(scope)
    assert sum(dtypes.values()) == sum(bool(leaf.dtype) for leaf in leaves)
    assert list(dtypes.values()) == sorted(dtypes.values(), reverse=True)
    assert outputs.dtypes(graph.find(leaves[0].name)) == {leaves[0].dtype: 1}
