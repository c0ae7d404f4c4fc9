"""Two graphs as one: what is matched, what is told of it, and that nothing is lost."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn
from mycelia.train.summary import SummaryRecord
from mycelia_insight.records.graph import Leaf, ScopeGraph
from mycelia_insight.records.graph_difference import GraphDifference
from mycelia_insight.runs.graphs import Differences, Graphs
from mycelia_insight.runs.library import Library


def leaf(kind: str, scope: str, number: int, *inputs: int, shape: tuple = (2,), **attributes: str) -> Leaf:
    name = f"{scope}/{kind}-op{number}"
    ends = [(end, False) for end in inputs]
    return Leaf(name, kind, scope, "operator", ends, lambda: ("float32", shape), lambda: attributes)


def weight(name: str, shape: tuple = (2,)) -> Leaf:
    return Leaf(name, "Parameter", "", "parameter", [], lambda: ("float32", shape))


def states(both: GraphDifference) -> dict[str, str]:
    numbers, _ = both.differing(1000)
    return {both.graph.branches[number].name: both.state(number) for number in numbers}


def test_a_graph_is_like_itself():
    leaves = [weight("w"), leaf("MatMul", "net/fc", 1, 0), leaf("ReLU", "net", 2, 1)]
    both = GraphDifference(ScopeGraph("a", leaves), ScopeGraph("b", leaves))
    assert both.counts() == {"same": 3, "changed": 0, "left": 0, "right": 0} and both.differing(9) == ([], 0)


def test_nodes_keep_their_partners_when_their_numbers_change():
    """An operator more gives all after it new numbers: it alone is new, its user alone is changed."""
    left = [weight("w"), leaf("MatMul", "net", 1, 0), leaf("ReLU", "net", 2, 1), leaf("ReLU", "net", 3, 2)]
    right = [weight("w"), leaf("Cast", "net", 1, 0), leaf("MatMul", "net", 2, 1), leaf("ReLU", "net", 3, 2),
             leaf("ReLU", "net", 4, 3)]  # fmt: skip
    both = GraphDifference(ScopeGraph("a", left), ScopeGraph("b", right))
    assert states(both) == {"net/Cast-op1": "right", "net/MatMul-op2": "changed"}
    (change,) = both.changes(both.graph.find("net/MatMul-op2"))
    assert (change.what, change.left, change.right) == ("inputs", "w", "net/Cast-op1")
    back = GraphDifference(ScopeGraph("b", right), ScopeGraph("a", left))
    assert states(back) == {"net/Cast-op1": "left", "net/MatMul-op1": "changed"}


def test_attributes_shapes_and_parameters_that_differ_are_told():
    left = [weight("w", (3, 2)), weight("old"), leaf("Conv2D", "c", 1, 0, 1, stride="1", source="a.py:3")]
    right = [
        weight("w", (4, 2)),
        leaf("Conv2D", "c", 1, 0, stride="2", pad="1", source="a.py:9", shape=(-1,)),
    ]
    both = GraphDifference(ScopeGraph("a", left), ScopeGraph("b", right))
    assert states(both) == {"w": "changed", "old": "left", "c/Conv2D-op1": "changed"}
    told = {one.what: (one.left, one.right) for one in both.changes(both.graph.find("c/Conv2D-op1"))}
    assert told == {
        "output": ("float32[2]", "float32[?]"),
        "inputs": ("w, old", "w"),
        "stride": ("1", "2"),
        "pad": ("", "1"),
    }
    assert both.changes(both.graph.find("old")) == [] and both.changes(0) == []


def test_siblings_that_were_put_between_others_are_the_new_ones():
    def chain(*strides: str) -> list[Leaf]:
        return [weight("x")] + [leaf("Conv2D", "n", i, i, stride=one) for i, one in enumerate(strides)]

    both = GraphDifference(ScopeGraph("a", chain("1", "2", "3")), ScopeGraph("b", chain("1", "9", "2", "3")))
    assert states(both) == {"n/Conv2D-op1": "right", "n/Conv2D-op2": "changed"}  # the next one takes from it


def test_scopes_and_edges_tell_what_they_hold():
    left = [weight("w"), leaf("A", "s", 1, 0), leaf("B", "gone", 2, 1), leaf("C", "s", 3, 2)]
    right = [weight("w"), leaf("A", "s", 1, 0), leaf("C", "s", 2, 1)]
    both = GraphDifference(ScopeGraph("a", left), ScopeGraph("b", right))
    graph = both.graph
    assert both.counts(graph.find("gone")) == {"same": 0, "changed": 0, "left": 1, "right": 0}
    assert both.counts(graph.find("s")) == {"same": 1, "changed": 1, "left": 0, "right": 0}
    assert (both.state(graph.find("gone")), both.state(graph.find("s"))) == ("left", "changed")
    _, edges = graph.view(["s"])
    sides = {(graph.branches[e["from"]].name, graph.branches[e["to"]].name): e["sides"] for e in edges}
    assert sides == {
        ("w", "s/A-op1"): 3, ("s/A-op1", "gone"): 1, ("gone", "s/C-op2"): 1, ("s/A-op1", "s/C-op2"): 2
    }  # fmt: skip


def test_names_that_both_have_for_different_nodes_stay_apart():
    left = [leaf("A", "s", 1), leaf("A", "s", 2)]
    right = [leaf("B", "s", 1), Leaf("s/A-op1", "B", "s")]
    both = GraphDifference(ScopeGraph("a", left), ScopeGraph("b", right))
    names = [branch.name for branch in both.graph.branches[1:]]
    assert len(set(names)) == len(names) == 5  # the scope and four nodes
    assert both.counts()["left"] == both.counts()["right"] == 2


def test_random_graphs_lose_nothing():
    random = np.random.default_rng(0)

    def made() -> ScopeGraph:
        leaves = [weight(f"w{i}") for i in range(3)]
        for i in range(random.integers(1, 40)):
            ends = random.integers(0, len(leaves), random.integers(0, 3))
            scope = random.choice(["", "a", "a/b", "c"])
            leaves.append(
                leaf(random.choice(["A", "B"]), scope, i, *map(int, ends), stride=str(random.integers(3)))
            )
        return ScopeGraph("g", leaves)

    for _ in range(50):
        left, right = made(), made()
        both = GraphDifference(left, right)
        counts = both.counts()
        assert counts["same"] + counts["changed"] + counts["left"] == len(left.leaves)
        assert counts["same"] + counts["changed"] + counts["right"] == len(right.leaves)
        assert sum(both.counts(n)["left"] for n in both.graph.branches[0].children) == counts["left"]
        edges = [set(one.inputs) for one in left.leaves], [set(one.inputs) for one in right.leaves]
        for graph, bit, wanted in ((both.graph, 1, edges[0]), (both.graph, 2, edges[1])):
            assert np.count_nonzero(graph.sides & bit) == sum(map(len, wanted))


class Net(nn.Cell):
    def __init__(self, *sizes: int):
        super().__init__()
        self.fc1, self.fc2 = nn.Dense(4, sizes[0]), nn.Dense(sizes[0], 2)
        self.act = nn.ReLU() if len(sizes) == 1 else nn.Tanh()

    def construct(self, x):
        return self.fc2(self.act(self.fc1(x)))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Three runs of networks that are alike but for a size or an activation."""
    base = tmp_path_factory.mktemp("runs")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        for name, sizes in (("one", (8,)), ("wide", (16,)), ("tanh", (8, 1))):
            net = Net(*sizes)
            net(ms.Tensor(np.ones((3, 4), np.float32)))
            with SummaryRecord(str(base / name), network=net) as record:
                record.record(1)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    return base


def test_recorded_graphs_of_two_networks(recorded: Path, tmp_path):
    library = Library(str(recorded), str(tmp_path))
    library.look()
    while library.read():
        time.sleep(0)
    graphs, differences = Graphs(), Differences()
    one, wide, tanh = (graphs.get(library.get(f"./{name}"), "") for name in ("one", "wide", "tanh"))
    both = differences.get(one, tanh)
    assert differences.get(one, tanh) is both
    kinds = {(both.graph.branches[n].type, both.state(n)) for n in both.differing(100)[0]}
    assert {("relu", "left"), ("tanh", "right")} <= {(kind.lower(), state) for kind, state in kinds}
    sizes = differences.get(one, wide)
    assert sizes.counts()["left"] == sizes.counts()["right"] == 0 and sizes.counts()["changed"] >= 3
    weights = next(n for n in sizes.differing(100)[0] if sizes.graph.branches[n].name.endswith("fc1.weight"))
    assert [(c.what, c.left, c.right) for c in sizes.changes(weights)] == [
        ("output", "float32[8, 4]", "float32[16, 4]")
    ]
