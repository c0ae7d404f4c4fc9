"""What nodes of a compiled training cost, and which were not finite, beside the event file."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mycelia as ms
from mycelia import config, nn, ops
from mycelia.engine.compile import executable
from mycelia.engine.compile.timing import Timing
from mycelia.profiler import Profiler
from mycelia.train import Callback, Model, SummaryCollector
from mycelia.train.summary.graph import graph_of, node_names
from mycelia.train.summary.node_measurements import TIMED_STEPS, NodeTimes, measured


class Net(nn.Cell):
    """conv, a fused chain of elementwise operators, two layers of one shape, and a logarithm."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.one, self.two = nn.Dense(4, 4), nn.Dense(4, 4)

    def construct(self, x):
        x = ops.tanh(ops.exp(ops.relu(self.conv(x)) * 0.1) + 1.0)
        x = self.two(self.one(x.mean((2, 3))))
        return ops.log(ops.abs(x) + 1e-3)


def rows(count: int, bad: int = -1):
    """Batches of two; step `bad`, from 1, has a NaN."""
    for i in range(2 * count):
        x = np.full((1, 8, 8), 0.01 * i, np.float32)
        if i // 2 + 1 == bad:
            x[0, 0, 0] = np.nan
        yield x, np.int32(i % 4)


def train(folder, steps: int, bad: int = -1, callbacks=(), mode=ms.GRAPH_MODE, rate=0.01, **wanted):
    with config.context(mode=mode):
        net = Net()
        data = ms.dataset.GeneratorDataset(list(rows(steps, bad)), ["x", "y"], shuffle=False).batch(2)
        model = Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), rate, 0.9))
        options = {"collect_specified_data": wanted, "keep_default_action": False} if wanted else {}
        model.train(1, data, callbacks=[SummaryCollector(str(folder), **options), *callbacks])
        return graph_of(model.train_network)


def read(folder) -> dict:
    (path,) = folder.glob("node_measurements.*.json")
    return json.loads(path.read_text())


def test_every_operator_has_the_time_that_it_took(tmp_path):
    graph = train(tmp_path, TIMED_STEPS + 3)
    found = read(tmp_path)
    names = node_names(graph)
    assert (found["version"], found["steps"], found["graph"]) == (1, TIMED_STEPS, graph.name)
    assert set(found["nodes"]) <= set(names.values()) and found["unattributed"] == 0
    assert found["watched"] is False
    timed = {name for name, row in found["nodes"].items() if "nanoseconds" in row}
    fused = {name: row["in"] for name, row in found["nodes"].items() if "in" in row}
    assert set(fused.values()) <= timed and not timed & set(fused)
    assert any(name.endswith("conv-Conv2d/conv-op1") for name in timed)
    assert all(found["nodes"][name]["calls"] == TIMED_STEPS for name in timed)
    assert all(found["nodes"][name]["nanoseconds"] > 0 for name in timed)
    # What has no instruction of its own does not compute: it is a view, or copies nothing.
    assert {node.op.name for node, name in names.items() if name not in found["nodes"]} <= {
        "reshape", "expand_dims", "broadcast_to", "squeeze",
    }  # fmt: skip


def test_all_time_of_a_program_is_given_to_nodes():
    with config.context(mode=ms.GRAPH_MODE):
        net, x = Net(), ms.Tensor(np.ones((2, 1, 8, 8), np.float32))
        net(x)
        graph = graph_of(net)
        timer = NodeTimes(graph)
        for _ in range(3):
            net(x)
        times = timer.stop()
    content = measured(graph, times, 3, None)
    total = sum(spent for _, _, spent in times)
    assert total == sum(row.get("nanoseconds", 0) for row in content["nodes"].values())
    assert max(len(node.parts) for node, _, _ in times) > 1  # something was fused
    dense = [name for name in content["nodes"] if "dense-op" in name]
    assert {name.split("/")[-2] for name in dense} == {"one-Dense", "two-Dense"}


def test_a_run_that_is_over_early_has_the_steps_that_it_had(tmp_path):
    train(tmp_path, 4)
    assert read(tmp_path)["steps"] == 3


@pytest.mark.parametrize("mode, wanted", [(ms.PYNATIVE_MODE, {}), (ms.GRAPH_MODE, {"collect_metric": True})])
def test_what_is_not_compiled_or_not_asked_for_has_no_file(tmp_path, mode, wanted):
    train(tmp_path, 4, mode=mode, **wanted)
    assert not list(tmp_path.glob("node_measurements*"))
    assert not executable.built_listeners


def test_nodes_that_make_what_is_not_finite_are_noted_with_the_step(tmp_path):
    graph = train(tmp_path, 6, bad=3, collect_nonfinite_nodes=True)
    found = read(tmp_path)["nodes"]
    (conv,) = [row for name, row in found.items() if name.endswith("conv-Conv2d/conv-op1")]
    assert (conv["step"], conv["inf"], conv["-inf"]) == (3, 0, 0) and 0 < conv["nan"] < 2 * 4 * 64
    assert all(row["step"] == 3 for row in found.values() if "step" in row)
    # The argument is to blame, with which the gradient of the weight has its NaN, too: one node tells.
    assert [name.rpartition("/")[2] for name, row in found.items() if "first" in row] == ["conv-op1"]
    assert not any("nanoseconds" in row for row in found.values()) and set(found) <= set(
        node_names(graph).values()
    )


def test_a_training_that_is_finite_says_so(tmp_path):
    train(tmp_path, 4, collect_nonfinite_nodes=True)
    found = read(tmp_path)
    assert (found["watched"], found["nodes"]) == (True, {})


def test_a_step_in_which_the_machine_did_something_else_does_not_count(monkeypatch):
    with config.context(mode=ms.GRAPH_MODE):
        net, x = Net(), ms.Tensor(np.ones((2, 1, 8, 8), np.float32))
        net(x)
        graph = graph_of(net)
    timer = NodeTimes(graph)
    (timing,) = timer._timings
    rows = len(timing.program.nodes)
    taken = iter([10, 1020, 1030])  # nanoseconds so far: the second step took a hundred times as long
    monkeypatch.setattr(
        timing, "read", lambda: [(1, spent)] * rows if (spent := next(taken, None)) else [(3, 1030)] * rows
    )
    for _ in range(3):
        timer.step()
    assert {(calls, spent) for _, calls, spent in timer.stop()} == {(3, 10)}


class Born(nn.Cell):
    """A NaN that a logarithm makes, and goes on through a view."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 4)

    def construct(self, x):
        return self.fc(ops.log(self.fc(x) - 100.0).reshape((-1, 4)).tanh())


def test_the_node_is_told_with_which_it_began(tmp_path):
    rows = [(np.ones(4, np.float32), np.int32(1))] * 4
    with config.context(mode=ms.GRAPH_MODE):
        net = Born()
        data = ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(2)
        model = Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params()))
        wanted = {"collect_nonfinite_nodes": True}
        collector = SummaryCollector(str(tmp_path), collect_specified_data=wanted, keep_default_action=False)
        model.train(1, data, callbacks=[collector])
        (log,) = [n for node, n in node_names(graph_of(model.train_network)).items() if node.op.name == "log"]
    found = read(tmp_path)["nodes"]
    bad = [name for name, row in found.items() if row.get("step") == 1]
    began = [name for name, row in found.items() if row.get("first")]
    assert len(bad) > len(began) == 1
    # The logarithm is fused with what comes behind it: the last of them gives the output.
    assert began == [log] or began[0].rpartition("/")[2].startswith("tanh-op")


class Failing(Callback):
    def step_end(self, run_context):
        if run_context.original_args().cur_step_num == 5:
            raise KeyError("of a callback")


def test_a_training_that_fails_leaves_what_was_measured(tmp_path):
    with pytest.raises(KeyError):
        train(
            tmp_path, 8, bad=2, callbacks=[Failing()], collect_nonfinite_nodes=True, collect_node_times=True
        )
    found = read(tmp_path)
    assert found["steps"] == 4 and any(row.get("step") == 2 for row in found["nodes"].values())
    assert not executable.built_listeners


def test_a_profiler_and_a_collector_time_one_training(tmp_path):
    with Profiler() as profiler:
        train(tmp_path, TIMED_STEPS + 4)
    (conv,) = [row for row in profiler.rows() if row.name == "conv" and row.where == "compiled"]
    assert conv.calls == TIMED_STEPS + 4
    assert read(tmp_path)["steps"] == TIMED_STEPS


def test_times_of_one_program_may_be_wanted_by_several():
    run = ms.jit(lambda x: ops.exp(x) + 1.0)
    x = ms.Tensor(np.ones(4, np.float32))
    before = set(executable.live_programs())
    run(x)
    (program,) = set(executable.live_programs()) - before
    outer = Timing(program)
    run(x)
    inner = Timing(program)
    run(x)
    assert inner.stop()[0][0] == 1 and inner.stop()[0][0] == 1
    run(x)
    assert outer.stop()[0][0] == 3
    run(x)
    assert program.timings()[0][0] == 3  # nobody times it


def test_a_disk_without_room_ends_no_training(tmp_path, monkeypatch, caplog):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mycelia.train.summary.node_measurements.write_text", full)
    train(tmp_path, 3)
    assert "No space left" in caplog.text
