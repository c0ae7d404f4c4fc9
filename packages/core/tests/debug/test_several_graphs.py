"""Scripts of more than one graph, as two networks that are trained by turns, or a training that is evaluated
in between: the step before of a tensor is that of its graph, and Parameters of one name are told apart.
"""

from __future__ import annotations

import gc
import json

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, debug, nn, ops
from mycelia.debug.conditions import NO_PREVIOUS
from mycelia.engine import observing

pytestmark = pytest.mark.usefixtures("from_the_first_step")

X, Y = Tensor(np.ones((4, 3), np.float32)), Tensor(np.zeros((4, 2), np.float32))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)

    def construct(self, x):
        return self.fc(ops.relu(x))


@pytest.fixture
def graph_mode():
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=before)


def training(rate: float) -> nn.Cell:
    ms.set_seed(1)
    net = Net()
    return nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), rate))


def by_turns(steps: int, frozen: nn.Cell, learning: nn.Cell) -> None:
    """Iterations 0, 2, 4... train the one, 1, 3, 5... the other."""
    for step in range(steps):
        (learning if step % 2 else frozen)(X, Y)


def unchanged(folder, **point):
    """(iterations with a hit, those with error 4) of all weights of a dump."""
    dump = debug.DumpAnalyzer(folder)
    weights = dump.select_tensors(r"^fc(_\d+)?\.weight$", use_regex=True)
    hits = dump.check_watchpoints([debug.Watchpoint(weights, debug.TensorUnchangedCondition(**point))])
    return (
        sorted(h.tensor.iteration for h in hits if not h.error_code),
        sorted(h.tensor.iteration for h in hits if h.error_code == NO_PREVIOUS),
    )


def test_the_step_before_is_that_of_the_graph(tmp_path, mode):
    """In eager code, too, where one line calls both, whose operators have the same names."""
    with debug.dump({"path": str(tmp_path), "eager": True}):
        by_turns(6, training(0.0), training(0.5))
    assert unchanged(tmp_path) == ([2, 4], [0, 1])


def test_a_step_that_was_not_dumped_is_none_to_compare_with(tmp_path, mode):
    with debug.dump({"path": str(tmp_path), "eager": True, "iteration": "0-1|3-9"}):
        by_turns(8, training(0.0), training(0.5))
    assert unchanged(tmp_path) == ([6], [0, 1, 3, 4])


def test_steps_of_a_graph_that_left_no_tensors_are_known_to_be_its(tmp_path, graph_mode):
    """Only one of the two graphs has what is dumped."""
    evaluate = ms.jit(lambda x: ops.sin(x))
    train = training(0.5)
    kernels = {"dump_mode": 1, "kernels": ["ReLU"]}
    with debug.dump({"path": str(tmp_path), **kernels}):
        for _ in range(3):
            train(X, Y)
            evaluate(X)
    dump = debug.DumpAnalyzer(tmp_path)
    assert dump.get_iterations() == [0, 2, 4]
    changed = debug.WatchCondition("expression", expression="previous.max >= 0")
    hits = dump.check_watchpoints([debug.Watchpoint(dump.select_tensors("/ReLU-op"), changed)])
    assert [(h.tensor.iteration, h.error_code) for h in hits] == [(0, NO_PREVIOUS), (2, 0), (4, 0)]


def test_two_steps_before_are_two_steps_of_the_graph(tmp_path, graph_mode):
    """The first channel is dead in steps 0 to 4, all others in those of another graph."""
    relu, other = ms.jit(lambda x: ops.relu(x)), ms.jit(lambda x: ops.relu(-ops.abs(x)))
    with debug.dump({"path": str(tmp_path)}):
        for step in range(3):
            relu(Tensor(np.float32([[-1.0, step - 1.0]])))
            other(X)
    dump = debug.DumpAnalyzer(tmp_path)
    first = min(t.node.graph for t in dump.select_tensors("ReLU-op"))
    mine = [t for t in dump.select_tensors("ReLU-op", iterations=4) if t.node.graph == first]
    point = debug.Watchpoint(mine, debug.WatchCondition("dead_relu", dead_percentage_ge=1, steps=3))
    (hit,) = dump.check_watchpoints([point])
    assert hit.found.parameters[0].actual == 50.0


def test_conditions_of_a_dump_compare_steps_of_one_graph(tmp_path, mode, caplog):
    watch = {"condition": "weight_not_changed", "nodes": ["fc"]}
    with caplog.at_level("WARNING", logger="mycelia"):
        with debug.dump({"path": str(tmp_path), "conditions": [watch], "eager": True}):
            by_turns(6, training(0.0), training(0.5))
    told = [r.getMessage() for r in caplog.records if "weight_not_changed" in r.getMessage()]
    assert [t.partition("iteration ")[2][0] for t in told] == ["2", "4"]
    assert debug.DumpAnalyzer(tmp_path).get_iterations() == [2, 4]


def test_conditions_of_a_dump_look_back_over_no_gap(tmp_path, mode):
    watch = {"condition": "weight_not_changed", "nodes": ["fc"]}
    fields = {"conditions": [watch], "iteration": "0|2-4", "eager": True}
    with debug.dump({"path": str(tmp_path), **fields}):
        by_turns(5, training(0.0), training(0.5))
    assert debug.DumpAnalyzer(tmp_path).get_iterations() == [4]


def test_two_parameters_of_one_name_are_both_dumped(tmp_path, mode):
    first, second = nn.Dense(3, 3), nn.Dense(3, 3)
    assert first.weight.name == second.weight.name

    def both(x):
        return second(first(x))

    run = ms.jit(both) if mode == ms.GRAPH_MODE else both
    with debug.dump({"path": str(tmp_path), "eager": True}):
        run(X)
    dump = debug.DumpAnalyzer(tmp_path)
    found = [t.value() for t in dump.select_tensors("weight")]
    assert {t.node.name for t in dump.select_tensors("weight")} == {"weight", "weight_1"}
    for wanted in (first.weight, second.weight):
        assert any(np.array_equal(value, wanted.asnumpy()) for value in found)


def test_eager_steps_call_a_parameter_by_one_name_as_long_as_it_lives(tmp_path):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    first, second = training(0.0), training(0.5)
    seen = {}

    class Looks(observing.Observer):
        def end(self, run, error):
            seen[run.iteration] = set(run.parameters)

    with observing.watch_calls(Looks()):
        by_turns(4, first, second)
        del second
        gc.collect()
        by_turns(2, first, training(0.5))
    mine, others = {"fc.weight", "fc.bias"}, {"fc_1.weight", "fc_1.bias"}
    for iteration, names in seen.items():
        wanted = others if iteration % 2 else mine
        assert {n for n in names if n.startswith("fc")} == wanted, iteration


def test_names_of_parameters_are_their_own():
    from mycelia.engine.observing.parameter_names import all_distinct

    assert all_distinct(["a.weight", "b.weight"]) == ["a.weight", "b.weight"]
    assert all_distinct(["a.weight", "a.weight", "a_1.weight", "a.weight"]) == [
        "a.weight", "a_2.weight", "a_1.weight", "a_3.weight",
    ]  # fmt: skip
    assert all_distinct(["inputs0", "inputs0"]) == ["inputs0", "inputs0_1"]
    assert all_distinct(["moments.fc.weight"] * 2)[1] == "moments.fc_1.weight"


class TestOnline:
    """What a debugged training checks at the end of its steps."""

    @pytest.fixture
    def debugged(self):
        pytest.importorskip("google.protobuf")
        from mycelia.debug.online import watchpoints
        from mycelia.debug.online.steps import Steps

        class Watched(observing.Observer):
            """Keeps steps as a debugged training does, and checks what `watches` holds."""

            def __init__(self):
                self.steps, self.watches, self.found = Steps(2, 1 << 20), [], []

            def watch(self, number, name, graph="", **params):
                from mycelia.debug.messages import debugger_pb2 as messages

                command = messages.SetCMD(id=1, watch_condition=messages.WatchCondition(condition=number))
                for key, value in params.items():
                    command.watch_condition.params.add(name=key, value=value)
                command.watch_nodes.add(node_name=name, graph_name=graph)
                self.watches.append(watchpoints.read(command))

            def begin(self, run):
                values = self.steps.begin(run.iteration, run.of.number)
                run.notes[self] = values
                for name, tensor, _ in run.named_arguments():
                    self.steps.add_parameter(run.iteration, values, name, tensor._detach())

            def seen(self, run, operator, inputs, outputs):
                call = operator, list(inputs), list(outputs)
                self.steps.add_call(run.iteration, run.notes[self], call)

            def end(self, run, error):
                for name, (_, before) in run.parameters.items():
                    self.steps.add_parameter(run.iteration, run.notes[self], name, before)
                self.steps.move(run.iteration, run.notes[self], run.program.number)

            def settled(self, run):
                self.check(run.iteration)

            def check(self, iteration):
                for hit in watchpoints.hits(self.watches, self.steps, iteration):
                    self.found.append((iteration, hit.error_code))

        return Watched()

    def test_the_step_before_is_that_of_the_graph(self, debugged, graph_mode):
        debugged.watch(20, "fc.weight", rtol=1e-5)
        observing.watch(debugged)
        try:
            by_turns(6, training(0.0), training(0.5))
        finally:
            observing.unwatch(debugged)
        assert debugged.found == [(0, 4), (1, 4), (2, 0), (4, 0)]

    def test_of_eager_calls_it_is_the_one_that_had_the_parameter(self, debugged):
        ms.set_context(mode=ms.PYNATIVE_MODE)
        debugged.watch(20, "fc.weight", rtol=1e-5)
        debugged.watch(20, "fc_1.weight", rtol=1e-5)
        with observing.watch_calls(debugged):
            by_turns(6, training(0.0), training(0.5))
        assert debugged.found == [(0, 4), (1, 4), (2, 0), (4, 0)]

    def test_a_watchpoint_that_is_set_late_finds_what_is_kept(self, debugged, graph_mode):
        first, second = training(0.0), training(0.5)
        observing.watch(debugged)
        try:
            by_turns(2, first, second)
            debugged.watch(20, "fc.weight", rtol=1e-5)
            first(X, Y)
            debugged.check(2)  # once more, as "recheck" does
        finally:
            observing.unwatch(debugged)
        assert debugged.found == [(2, 4), (2, 4)]  # step 0 is not kept any more: the last two are

    def test_a_step_that_is_checked_before_its_end_is_none_to_look_back_at(self, debugged):
        """Of eager calls it may turn out to be of another graph than it seems at first."""
        from mycelia.debug.online import watchpoints

        ms.set_context(mode=ms.PYNATIVE_MODE)
        told = []

        def look():
            told.extend(watchpoints.hits(debugged.watches, debugged.steps, 1, is_over=False))

        def step(x, last, between=lambda: None):
            y = ops.exp(x)
            between()
            last(y)

        debugged.watch(20, "Default/Exp-op0", rtol=1e-5)
        with observing.watch_calls(debugged) as calls:
            for steps in (X, ops.sin), (Tensor(np.zeros((4, 3), np.float32)), ops.cos, look), (X, ops.sin):
                step(*steps)
                calls.end_step()
        assert not told  # it is another value than that of the step before
        assert debugged.found == [(0, 4), (1, 4), (2, 0)]

    def test_a_step_without_the_tensor_is_none_to_compare_with(self, debugged, graph_mode):
        """Memory was short in the middle step."""
        run = ms.jit(lambda x: ops.relu(x))
        observing.watch(debugged)
        try:
            run(X)
            (graph,) = debugged.steps[0]
            debugged.watch(20, "Default/ReLU-op0", f"graph_{graph}", rtol=1e-5)
            run(X)
            debugged.steps.most_bytes = 1
            run(X)
            debugged.steps.most_bytes = 1 << 20
            run(X)
            run(X)
        finally:
            observing.unwatch(debugged)
        assert debugged.found == [(1, 0), (2, 8 | 32), (3, 4), (4, 0)]


def test_the_order_of_execution_is_that_of_each_graph(tmp_path, graph_mode):
    with debug.dump({"path": str(tmp_path)}):
        by_turns(5, training(0.0), training(0.5))
    runs = [
        [int(line) for line in path.read_text().split()]
        for path in sorted(tmp_path.glob("rank_0/execution_order/ms_global_*.csv"))
    ]
    assert runs == [[0, 2, 4], [1, 3]]
    told = json.loads((tmp_path / "rank_0" / ".dump_metadata" / "config.json").read_text())
    assert told["device_target"] == "CPU"


def test_weights_of_another_graph_are_not_where_a_nan_was_born(tmp_path, graph_mode):
    net = Net()
    loss = nn.WithLossCell(net, nn.MSELoss())
    step = nn.TrainOneStepCell(loss, nn.SGD(net.trainable_params(), 0.1))
    with debug.dump({"path": str(tmp_path)}):
        step(X, ops.log(Y - 1.0))  # NaN labels
        loss(X, Y)  # an evaluation, whose first step this is
    found = debug.DumpAnalyzer(tmp_path).trace_nonfinite()
    told = {(row["op_full_name"], row["iteration"], row["born"]) for row in found}
    assert ("inputs1", 0, True) in told and ("fc.weight", 1, None) in told
    assert [name for name, _, born in told if born] == ["inputs1"]
