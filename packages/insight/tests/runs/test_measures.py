"""Times of nodes and what of them was not finite: of trainings, of dumps, and of files that are hostile."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import config, debug, nn, ops
from mycelia.train import Model, SummaryCollector
from mycelia_insight.records.forward_graph import forward_graph
from mycelia_insight.records.node_measurements import parse
from mycelia_insight.runs.graphs import Graphs
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.measures import Measures

sys.path.insert(0, str(Path(__file__).parents[1]))
from event_files import scalar, write

BAD = 3  # the step with a NaN in its input


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.relu, self.flat, self.fc = (
            nn.Conv2d(1, 2, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dense(32, 3),
        )

    def construct(self, x):
        return self.fc(self.flat(self.relu(self.conv(x))))


class Branching(Net):
    """Its loss is NaN where a branch takes a logarithm."""

    def construct(self, x):
        x = super().construct(x)
        return ops.log(ops.abs(x) * -1.0 - 1.0) if x.sum() > -1e9 else x * 2.0


def branched(folder: Path) -> None:
    rows = [(np.full((1, 4, 4), 0.1, np.float32), np.int32(i % 3)) for i in range(4)]
    net = Branching()
    data = ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(2)
    model = Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.01, 0.9))
    wanted = {"collect_graph": True, "collect_nonfinite_nodes": folder.name == "branches"}
    model.train(1, data, callbacks=[SummaryCollector(str(folder), 1, 32, wanted, keep_default_action=False)])


def trained(folder: Path) -> None:
    rows = [(np.full((1, 4, 4), np.nan if i // 2 + 1 == BAD else 0.1 * i, np.float32), np.int32(i % 3))
            for i in range(10)]  # fmt: skip
    net = Net()
    data = ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(2)
    model = Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.01, 0.9))
    wanted = {
        "collect_graph": True,
        "collect_node_times": True,
        "collect_nonfinite_nodes": folder.name == "run",
    }
    model.train(1, data, callbacks=[SummaryCollector(str(folder), 1, 32, wanted, keep_default_action=False)])


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    base = tmp_path_factory.mktemp("runs")
    with config.context(mode=ms.GRAPH_MODE):
        trained(base / "run")
        with debug.dump({"path": str(base / "dumped" / "dump")}):
            trained(base / "dumped")
        with debug.dump({"path": str(base / "dumped2.0" / "dump"), "naming": "2.0"}):
            trained(base / "dumped2.0")
        branched(base / "branches")
        with debug.dump({"path": str(base / "dumped_branches" / "dump")}):
            branched(base / "dumped_branches")
    write(base / "other", [scalar("loss", 0, 1.0)])
    found = Library(str(base), str(tmp_path_factory.mktemp("workspace")))
    found.look()
    while found.read():
        pass
    return found


def told(graph, measured):
    """Faults of nodes by the ends of their names."""
    found = {branch.name.rpartition("/")[2]: measured.faults.told(number)
             for number, branch in enumerate(graph.branches) if graph.leaf(number)}  # fmt: skip
    return {name: one for name, one in found.items() if one}


def test_times_of_nodes_add_up(library):
    run = library.get("./run")
    graph = Graphs().get(run, "")
    found = Measures().of(run, graph, False)
    assert (found.steps, found.unattributed, found.faults) == (4, 0, None)
    times = {b.name: found.times.nanoseconds(n) for n, b in enumerate(graph.branches) if graph.leaf(n)}
    known = {name: one for name, one in times.items() if one is not None}
    assert found.times.timed == len(known) > 10 and all(one > 0 for one in known.values())
    assert found.times.nanoseconds(0) == sum(known.values())
    assert any(name.endswith("conv-Conv2d/conv-op1") for name in known)
    fused = [n for n, b in enumerate(graph.branches) if graph.leaf(n) and found.times.owner(n)]
    assert all(times[graph.branches[n].name] is None and found.times.owner(n) in known for n in fused)
    assert found.times.fused(0) == len(fused)


def test_what_is_not_finite_is_the_same_in_a_training_and_in_its_dump(library):
    graphs, measures = Graphs(), Measures()
    assert [measures.has(library.get(f"./{name}")) for name in ("run", "dumped", "other")] == [
        (True, True), (False, True), (False, False),
    ]  # fmt: skip
    noted, dumped = (
        told(graph := graphs.get(run, ""), measures.of(run, graph, True))
        for run in map(library.get, ("./run", "./dumped"))
    )
    both = set(noted) & set(dumped)
    assert {"conv-op1", "relu-op2"} <= both
    for name in both:
        if noted[name]["step"] == BAD:
            assert all(noted[name][kind] == dumped[name][kind] for kind in ("nan", "inf", "-inf")), name
    assert [name for name, one in noted.items() if one["first"]] == ["conv-op1"]
    # The dump has the argument itself, and iterations count from what the process has run.
    assert [name for name, one in dumped.items() if one["first"]] == ["argument0"]
    steps = debug.DumpAnalyzer(Path(library.get("./dumped").folder) / "dump").get_iterations()
    assert {one["step"] for one in dumped.values()} == {steps[BAD - 1]}
    found = measures.of(library.get("./dumped"), graphs.get(library.get("./dumped"), ""), True).dump
    assert (found.name, found.looked, found.iterations) == ("dump", BAD, 5)


def test_dumps_by_the_names_of_mindspore_2_0_tell_the_same(library):
    ours, short = (
        told(graph := Graphs().get(run, ""), Measures().of(run, graph, True))
        for run in map(library.get, ("./dumped", "./dumped2.0"))
    )
    for one in (*ours.values(), *short.values()):
        del one["step"]  # iterations count from what the process has run
    assert short == ours and len(short) > 10


def test_operators_of_branches_are_named_by_a_training_and_by_its_dump(library):
    noted, dumped = (
        told(graph := Graphs().get(run, ""), Measures().of(run, graph, True))
        for run in map(library.get, ("./branches", "./dumped_branches"))
    )
    (branch,) = [name for name, one in noted.items() if one["first"]]
    assert branch.startswith("cond-op") and [name for name, one in dumped.items() if one["first"]] == [branch]
    for one in (noted[branch], dumped[branch]):
        first = one["within"][0]
        assert first["name"] == "Default/network-WithLossCell/_backbone-Branching/Log-op0"
        assert (first["first"], first["nan"], first["inf"]) == (True, 6, 0)
        assert not any(other["first"] for other in one["within"][1:]) and one["nan"] >= 6
    # What a branch of the gradients makes of it did not begin there.
    assert any(one["within"] and not one["first"] for one in noted.values())
    assert not any(inner["first"] for one in noted.values() if not one["first"] for inner in one["within"])


def test_a_graph_without_what_trains_it_has_the_same_times(library):
    run = library.get("./run")
    graph = Graphs().get(run, "")
    whole, part = (Measures().of(run, one, True) for one in (graph, forward_graph(graph)))
    assert 0 < part.times.timed < whole.times.timed
    assert part.times.nanoseconds(0) < whole.times.nanoseconds(0)
    assert part.faults.told(0)["nodes"] < whole.faults.told(0)["nodes"]


ROW = {"calls": 1, "nanoseconds": 10}


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{", '{"version": 2, "nodes": {}}', '{"version": 1}', '{"version": 1, "nodes": []}',
        '{"version": 1, "nodes": {"a": 1}}', '{"version": 1, "nodes": {"a": {"nanoseconds": -1}}}',
        '{"version": 1, "nodes": {"a": {"nanoseconds": NaN}}}',
        '{"version": 1, "nodes": {"a": {"step": "1"}}}',
        '{"version": 1, "nodes": {"a": {"nanoseconds": 1e300}}}',
        '{"version": 1, "nodes": {"a": {"step": true}}}',
        '{"version": 1, "nodes": {"a": {"nanoseconds": 99999999999999999999}}}',
        '{"version": 1, "nodes": {"a": {"step": 1, "within": {}}}}',
        '{"version": 1, "nodes": {"a": {"step": 1, "within": [{"name": 1}]}}}',
        '{"version": 1, "nodes": {"a": {"step": 1, "within": [{"name": "b", "nan": -1}]}}}',
        '{"version": 1, "nodes": {}, "steps": -1}', '{"version": 1, "nodes": {"\\ud800": {}}}',
    ],
)  # fmt: skip
def test_what_is_no_such_file_is_refused(content):
    with pytest.raises(ValueError):
        parse(content.encode("utf-8", "surrogatepass"))


def test_hostile_files_are_passed_over(library, tmp_path):
    run = library.get("./other")
    folder = Path(run.folder)
    good = {"version": 1, "graph": "g", "steps": 0, "watched": True, "nodes": {"a/b": ROW, "c": {"in": 5}}}
    (tmp_path / "outside.json").write_text(json.dumps(good))
    (folder / "node_measurements.9.json").symlink_to(tmp_path / "outside.json")
    os.mkfifo(folder / "node_measurements.8.json")
    (folder / "node_measurements.7.json").mkdir()
    (folder / "node_measurements.6.json").write_text("{")
    measures = Measures()
    assert measures.has(run) == (False, False)
    (folder / "node_measurements.5.json").write_text(json.dumps(good))
    assert measures.has(run) == (True, True)
    graph = Graphs().get(library.get("./run"), "")
    found = measures.of(run, graph, True)  # another graph's: nothing of it is shown here
    assert (found.times, found.faults) == (None, None)
