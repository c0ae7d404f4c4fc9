"""Numbers of operators are those of the captured graph: an operator has one name, whatever passes do to a
graph, and the one that it has in eager mode.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, debug, nn, ops, precision
from mycelia.debug.reading.folders import Dump
from mycelia.engine import observing
from mycelia.engine.base.origins import Numbered, Origin
from mycelia.engine.compile.passes import pass_manager
from mycelia.engine.ir.walk import all_nodes
from mycelia.engine.observing.operator_names import named_operators, operators_of

X = Tensor(np.linspace(0.1, 1.0, 12).reshape(3, 4).astype(np.float32))
SETTINGS = ["", "-cse", "-simplify", "-dce", "-fold", "-inline", "-cse,-dce", "-lower", "-order"]


class Values(observing.Observer):
    """What each operator made, by its name."""

    def __init__(self):
        self.found: dict[str, np.ndarray] = {}

    def seen(self, run, operator, inputs, outputs):
        assert operator.name not in self.found
        self.found[operator.name] = outputs[0].asnumpy()


def tangled(x):
    """Dead code, equal operators, what is folded and what is put in another form."""
    ops.exp(x)
    twice = ops.exp(x) + ops.exp(x)
    ops.sin(twice)
    back = ops.neg(ops.neg(ops.exp(twice)))
    folded = ops.exp(Tensor(np.ones(4, np.float32))) * 1.0
    if x.sum() > 0:
        back = ops.exp(back) * ops.exp(folded)
    else:
        back = ops.sin(back)
    return ops.exp(back) - ops.sin(back)


def of_graph(function, passes: str, *given) -> dict[str, np.ndarray]:
    values = Values()
    with ms.config.context(passes=passes):
        observing.watch(values)
        try:
            ms.jit(lambda *g: function(*g))(*given)
        finally:
            observing.unwatch(values)
    return values.found


def of_eager(function, *given) -> dict[str, np.ndarray]:
    values = Values()
    with observing.watch_calls(values):
        function(*given)
    return values.found


@pytest.mark.parametrize("passes", SETTINGS)
def test_a_name_stands_for_one_value_whatever_passes_are_on(passes):
    all_ = of_graph(tangled, "-optimize", X)
    some = of_graph(tangled, passes, X)
    assert len(some) > 3
    for name, value in some.items():
        if name in all_:  # else a pass put it in the place of several
            np.testing.assert_array_equal(value, all_[name], err_msg=name)
    assert {"Default/Exp-op3", "Default/Sin-op2"} <= set(some) & set(all_)


def straight(x):
    """No branch, and no constant that is computed while the code is captured."""
    ops.exp(x)
    twice = ops.exp(x) + ops.exp(x)
    return ops.exp(ops.neg(ops.neg(ops.exp(twice)))) - ops.sin(twice)


def test_graphs_and_eager_calls_have_the_same_names():
    eager, graph = of_eager(straight, X), of_graph(straight, "", X)
    assert {"Default/Exp-op0", "Default/Exp-op3", "Default/Exp-op4", "Default/Sub-op0"} <= set(graph)
    assert set(graph) <= set(eager)
    for name in graph:
        np.testing.assert_allclose(graph[name], eager[name], rtol=1e-6, err_msg=name)


def test_sizes_and_threads_change_no_name():
    small, large = (Tensor(np.full((rows, 4), 0.5, np.float32)) for rows in (2, 50_000))
    names = [set(of_graph(tangled, "", x)) for x in (small, large)]
    with ms.config.context(runtime_num_threads=1):
        names.append(set(of_graph(tangled, "", large)))
    run, values = ms.jit(lambda x: tangled(x)), [Values(), Values()]
    for one, rows in zip(values, (5, 9)):  # the second is captured for any number of rows
        observing.watch(one)
        run(Tensor(np.full((rows, 4), 0.5, np.float32)))
        observing.unwatch(one)
    names += [set(one.found) for one in values]
    assert all(one == names[0] for one in names)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(*[nn.Dense(4, 4, activation="relu") for _ in range(4)])

    def construct(self, x):
        return self.layers(x)


def training() -> nn.Cell:
    ms.set_seed(2)
    net = Net()
    loss = nn.WithLossCell(net, nn.MSELoss())
    return nn.TrainOneStepCell(loss, nn.Momentum(net.trainable_params(), 0.1, 0.9))


def outputs(folder: Path) -> dict[tuple[str, int], np.ndarray]:
    """The outputs of the first step of each graph of a dump, by name and slot."""
    found = {}
    for step in Dump(folder).steps:
        for record in step.records():
            if step.iteration == 0 and record.io == "output" and record.kind != "Parameter":
                found[record.name, record.slot] = record.array()
    return found


@pytest.mark.parametrize("passes", ["", "-order", "-schedule", "-fuse", "-simplify"])
def test_instructions_of_programs_have_the_names_of_the_graph(tmp_path, passes):
    """Updates of Parameters of one shape run in another order than the code has them."""
    with ms.config.context(mode=ms.GRAPH_MODE):
        observing.set_iteration(0)
        with debug.dump({"path": str(tmp_path / "graph"), "input_output": 2}):
            training()(X, X)
        with ms.config.context(passes=passes), precision.collect("program", path=str(tmp_path / passes)):
            training()(X, X)
    graph, program = outputs(tmp_path / "graph"), outputs(tmp_path / passes)
    updates = {key for key in program if "ApplyMomentum" in key[0]}
    assert len(updates) >= 8 and updates <= graph.keys()
    for key in program.keys() & graph.keys():
        if program[key].shape == graph[key].shape:
            np.testing.assert_allclose(program[key], graph[key], rtol=1e-4, atol=1e-6, err_msg=str(key))


def test_what_a_pass_puts_in_has_a_number_that_no_captured_operator_has():
    origin = Origin((("train.py", 3, "f"),), "Default", numbered=Numbered("Exp", 2, 7, 20))
    assert origin.number_of("Exp") == 2 and origin.number_of("Mul") == 27
    assert Origin((("train.py", 3, "f"),)).number_of("Exp") is None


class Graphs(observing.Observer):
    """The graphs that ran."""

    def __init__(self):
        self.found = []

    def wants(self, run):
        self.found.append(run.of.graph)
        return observing.NOTHING


def graph_of(run, *given):
    graphs = Graphs()
    observing.watch(graphs)
    try:
        run(*given)
    finally:
        observing.unwatch(graphs)
    return graphs.found[-1]


def names_of(graph) -> list[str]:
    return [operator.name for operator in operators_of(graph).values()]


def test_numbers_survive_the_cache_on_disk(tmp_path):
    with ms.config.context(enable_compile_cache=True, compile_cache_path=str(tmp_path)):
        runs = [ms.jit(tangled) for _ in range(2)]
        names = [names_of(graph_of(run, X)) for run in runs]
    assert [run.cache_info().loaded for run in runs] == [0, 1]
    assert names[0] == names[1] and len(set(names[0])) == len(names[0])


def test_a_graph_that_is_numbered_twice_keeps_its_numbers():
    graph = graph_of(ms.jit(lambda x: ops.exp(ops.exp(x)) + ops.exp(ops.sin(x))), X)
    before = names_of(graph)
    pass_manager.optimize(graph)
    assert names_of(graph) == before
    nodes = [node for _, node in all_nodes(graph)]
    doubled = [o.name for o in named_operators([*nodes, *nodes])]
    assert doubled[: len(nodes)] == before and len(set(doubled)) == len(doubled)


def test_names_of_2_0_depend_on_no_pass(tmp_path):
    found = {}
    for passes in ("", "-cse"):
        with ms.config.context(passes=passes, mode=ms.GRAPH_MODE):
            with debug.dump({"path": str(tmp_path / passes), "naming": "2.0"}):
                ms.jit(lambda x: tangled(x))(X)
        dump = debug.DumpAnalyzer(tmp_path / passes)
        found[passes] = {
            t.node.name: t.value() for t in dump.select_tensors("-op") if t.io == "output"
        }  # fmt: skip
    shared = found[""].keys() & found["-cse"].keys()
    assert len(shared) > 5
    for name in shared:
        np.testing.assert_array_equal(found[""][name], found["-cse"][name], err_msg=name)
