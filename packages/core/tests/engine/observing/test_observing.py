"""Observers see what runs, and what they see is what would run without them."""

from __future__ import annotations

import functools
import gc
import json
import os
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.engine import observing
from mycelia.engine.backends import registry
from mycelia.engine.base.origins import Origin, origin
from mycelia.engine.compile import compiled


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.CellList([nn.Dense(4, 4), nn.Dense(4, 4)])
        self.norm = nn.BatchNorm1d(4)
        self.relu = nn.ReLU()

    def construct(self, x):
        for layer in self.layers:
            x = self.relu(layer(x))
        return self.norm(x)


def training(seed=0):
    ms.set_seed(seed)
    net = nn.WithLossCell(Net(), nn.MSELoss())
    step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 0.1))
    step.set_train()
    return step


def batches(count=4):
    rng = np.random.default_rng(3)
    return [[Tensor(rng.standard_normal((3, 4)).astype(np.float32)) for _ in range(2)] for _ in range(count)]


class Keeps(observing.Observer):
    """Keeps all that it is told."""

    def __init__(self, *iterations):
        self.iterations, self.runs, self.calls, self.ends, self.failures = iterations, [], [], [], []

    def wants(self, run):
        chosen = not self.iterations or run.iteration in self.iterations
        return observing.VALUES if chosen else observing.NOTHING

    def begin(self, run):
        self.runs.append((run.iteration, [name for name, _, _ in run.named_arguments()]))

    def seen(self, run, operator, inputs, outputs):
        self.calls.append((operator, list(inputs), list(outputs)))

    def failed(self, run, operator, inputs, error):
        self.failures.append((operator, list(inputs), error))

    def end(self, run, error):
        self.ends.append(error)

    def names(self):
        return [operator.name for operator, _, _ in self.calls]


@pytest.fixture
def watched():
    made = []

    def watch(*iterations):
        observing.set_iteration(0)
        observer = Keeps(*iterations)
        observing.watch(observer)
        made.append(observer)
        return observer

    yield watch
    for observer in made:
        observing.unwatch(observer)


def state(step):
    return {p.name: p.asnumpy().tobytes() for p in step.get_parameters()}


def test_steps_that_nobody_looks_at_are_arranged_for_watching_once(watched, monkeypatch):
    ms.set_context(mode=ms.GRAPH_MODE)
    arranged, asked = compiled.arranged, []
    monkeypatch.setattr(
        compiled, "arranged", lambda graph, *rest: asked.append(graph) or arranged(graph, *rest)
    )
    try:
        step, observer = training(), watched(2)
        for batch in batches():
            step(*batch)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert [iteration for iteration, _ in observer.runs] == [2]
    assert len(asked) == len(set(map(id, asked)))


def test_a_step_that_all_observers_let_pass_is_asked_nothing_and_counted(watched):
    ms.set_context(mode=ms.GRAPH_MODE)
    first, second, asked = watched(), watched(), []
    first.passes = lambda number: number < 2
    first.wants = lambda run: asked.append(run.iteration) or observing.VALUES
    second.passes = lambda number: number != 1
    try:
        step = training()
        for batch in batches():
            step(*batch)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert asked == [1, 2, 3] == [iteration for iteration, _ in first.runs]
    assert observing.iteration() == 4


class Wide(nn.Cell):
    def construct(self, x):
        return ops.matmul(ops.relu(x), x).sum()


@pytest.mark.parametrize("limit", [0, 3])
@pytest.mark.parametrize("fails", [False, True])
def test_small_operators_that_are_watched_wake_no_other_threads(watched, monkeypatch, limit, fails):
    limits = [limit]  # 0: none

    def limit_threads(self, count):
        limits.append(count)
        return limits[-2]

    monkeypatch.setattr(type(registry.host().backend), "limit_threads", limit_threads)
    observer, found = watched(), {}

    def seen(run, operator, inputs, outputs):
        found[operator.type] = limits[-1]
        if fails and operator.type == "MatMul":
            raise RuntimeError("enough")

    observer.seen = seen
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        with pytest.raises(RuntimeError, match="enough") if fails else nullcontext():
            Wide()(Tensor(np.ones((512, 512), np.float32)))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert found == {"ReLU": 1, "MatMul": limit} | ({} if fails else {"SumExt": 1})
    assert limits[-1] == limit


def test_a_watched_training_is_the_same_to_the_bit(watched, mode):
    plain, seen = training(), training()
    ms.set_context(jit_config={"jit_level": "O0"})  # what is watched runs unfused
    expected = [plain(*batch).asnumpy() for batch in batches()]
    ms.set_context(jit_config={})
    observer = watched()
    with observing.watch_calls(observer):
        got = [seen(*batch).asnumpy() for batch in batches()]
    assert [g.tobytes() for g in got] == [e.tobytes() for e in expected]
    assert state(seen) == state(plain)
    assert len(observer.ends) == 4 and set(observer.ends) == {None}


def test_only_the_iterations_that_are_wanted_are_seen(watched):
    ms.set_context(mode=ms.GRAPH_MODE)
    observer, step = watched(1, 3), training()
    for batch in batches(5):
        step(*batch)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert [iteration for iteration, _ in observer.runs] == [1, 3]
    assert observing.iteration() == 5


def test_both_modes_give_operators_the_same_names(watched):
    names = []
    for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=mode)
        observer, step = watched(), training()
        if mode == ms.PYNATIVE_MODE:
            observing.unwatch(observer)
            with observing.watch_calls(observer):
                step(*batches()[0])
        else:
            step(*batches()[0])
        names.append([n for n in observer.names() if not n.startswith("Gradients/")])
    first = "Default/network-WithLossCell/_backbone-Net/layers-CellList/0-Dense/Dense-op0"
    assert names[0][0] == names[1][0] == first
    assert [n for n in names[0] if "_backbone-Net" in n] == [n for n in names[1] if "_backbone-Net" in n]


def test_gradients_are_named_after_what_they_are_the_gradient_of(watched, mode):
    observer, step = watched(), training()
    with observing.watch_calls(observer):
        step(*batches()[0])
    scope = "Gradients/Default/network-WithLossCell/_backbone-Net/layers-CellList/1-Dense/Grad_Dense/"
    found = [o for o, _, _ in observer.calls if o.name.startswith(scope)]
    assert {o.type for o in found} >= {"MatMul"}
    file, line, function = found[0].stack[0]
    assert file == __file__ and function == "Net.construct"
    assert "layer(x)" in open(__file__).read().splitlines()[line - 1]


def test_inputs_of_updates_are_what_they_were_before(watched, mode):
    observer, step = watched(), training()
    before = step.network.trainable_params()[0].asnumpy().copy()
    with observing.watch_calls(observer):
        step(*batches()[0])
    inputs, outputs = next((i, o) for op, i, o in observer.calls if "Adam" in op.type)
    assert inputs[0].asnumpy().tobytes() == before.tobytes()
    after = step.network.trainable_params()[0].asnumpy()
    assert outputs[0].asnumpy().tobytes() == after.tobytes() != before.tobytes()


def test_operators_within_branches_and_loops_are_seen(watched):
    @ms.jit
    def f(x):
        total = ops.zeros_like(x)
        while x.sum() > 1.0:
            x = x / 2.0
            total = total + ops.exp(x)
        if total.sum() > 0:
            return ops.sin(total)
        return ops.cos(total)

    expected = f(Tensor([8.0])).asnumpy()
    observer = watched()
    got = f(Tensor([8.0])).asnumpy()
    kinds = [operator.type for operator, _, _ in observer.calls]
    assert got.tobytes() == expected.tobytes()
    assert kinds.count("Exp") == 3 and kinds.count("Sin") == 1 and kinds.count("Cos") == 0


def test_sizes_that_change_are_watched_too(watched):
    @ms.jit
    def f(x):
        return ops.exp(x).sum() * 2.0

    for n in (3, 4, 5):
        f(Tensor(np.ones(n, np.float32)))
    observer = watched()
    got = float(f(Tensor(np.ones(6, np.float32))))
    assert got == pytest.approx(12 * np.e, rel=1e-6)
    assert [i[0].shape for op, i, _ in observer.calls if op.type == "Exp"] == [(6,)]


def test_a_gradient_through_a_watched_function_is_the_same(watched):
    @ms.jit
    def f(x):
        return (ops.sin(x) * x).sum()

    x = Tensor([1.0, 2.0])
    expected = ms.grad(f)(x).asnumpy()
    watched()
    assert ms.grad(f)(x).asnumpy() == pytest.approx(expected, rel=1e-6)


def test_who_fails_is_told_and_parameters_stay(watched):
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.Dense(2, 2)

    @ms.jit
    def f(x, index):
        net.weight.set_data(net.weight + 1.0)
        return ops.gather(x, index, 0)

    before = net.weight.asnumpy().copy()
    observer = watched()
    with pytest.raises(Exception, match="index|out of"):
        f(Tensor([1.0, 2.0]), Tensor([7], ms.int32))
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert net.weight.asnumpy().tobytes() == before.tobytes()
    assert [op.type for op, _, _ in observer.failures] == ["Gather"] and len(observer.ends) == 1
    assert isinstance(observer.ends[0], Exception)


def test_an_observer_that_raises_ends_the_run(watched):
    class Raises(observing.Observer):
        def seen(self, run, operator, inputs, outputs):
            raise RuntimeError("stop here")

    observer = Raises()
    observing.watch(observer)
    try:
        with pytest.raises(RuntimeError, match="stop here"):
            ms.jit(lambda x: x + 1.0)(Tensor([1.0]))
    finally:
        observing.unwatch(observer)
    assert float(ms.jit(lambda x: x + 1.0)(Tensor([1.0]))) == 2.0


def test_eager_steps_end_with_the_optimizer(watched):
    step = training()
    observer = Keeps()
    observing.set_iteration(0)
    with observing.watch_calls(observer) as calls:
        for batch in batches(3):
            step(*batch)
        calls.end_step()
        ops.exp(Tensor([1.0]))
    assert [iteration for iteration, _ in observer.runs] == [0, 1, 2, 3]
    assert observer.names()[-1] == "Default/Exp-op0"


def test_eager_steps_that_nobody_wants_count():
    step, observer = training(), Keeps(1, 3)
    observing.set_iteration(0)
    with observing.watch_calls(observer):
        for batch in batches(5):
            step(*batch)
    assert [iteration for iteration, _ in observer.runs] == [1, 3]
    assert observer.names().count("Default/network-WithLossCell/_backbone-Net/relu-ReLU/ReLU-op0") == 2


def test_blocks_in_blocks_are_told_of_the_same_steps():
    """A dump and a debugger of one training, or a callback that watches within either."""
    outer, inner = Keeps(), Keeps()
    observing.set_iteration(0)
    with observing.watch_calls(outer) as calls:
        ops.exp(Tensor([1.0]))
        with observing.watch_calls(inner) as same:
            ops.log(Tensor([1.0]))
        ops.sin(Tensor([1.0]))
    assert same is calls
    assert [iteration for iteration, _ in outer.runs] == [0, 1, 2]
    assert outer.names() == ["Default/Exp-op0", "Default/Log-op0", "Default/Sin-op0"]
    assert [iteration for iteration, _ in inner.runs] == [1] and inner.names() == ["Default/Log-op0"]
    ops.cos(Tensor([1.0]))
    assert len(outer.runs) == 3


def test_blocks_may_end_in_the_order_in_which_they_began():
    """As a recorder and a dump do that are switched on and off beside one another."""
    first, second = Keeps(), Keeps()
    blocks = [observing.watch_calls(first), observing.watch_calls(second)]
    for block in blocks:
        block.__enter__()
    ops.exp(Tensor([1.0]))
    blocks[0].__exit__(None, None, None)
    ops.log(Tensor([1.0]))
    blocks[1].__exit__(None, None, None)
    ops.sin(Tensor([1.0]))
    assert first.names() == ["Default/Exp-op0"]
    assert second.names() == ["Default/Exp-op0", "Default/Log-op0"]


class TestEagerPrograms:
    """Which graph the eager calls of a step are of."""

    def programs(self, *steps):
        found = []

        class Looks(observing.Observer):
            def end(self, run, error):
                found.append(run.program.number)

        with observing.watch_calls(Looks()) as calls:
            for step in steps:
                step()
                calls.end_step()
        return [number - found[0] for number in found]

    def test_steps_of_other_lines_are_other_graphs(self):
        x = Tensor([1.0])
        first = lambda: ops.exp(x)
        second = lambda: ops.exp(x)
        assert self.programs(first, second, first, second) == [0, 1, 0, 1]

    def test_a_step_that_does_less_is_of_the_same_graph(self):
        x = Tensor([1.0])

        def loop(times):
            for _ in range(times):
                ops.exp(x)

        assert self.programs(lambda: loop(2), lambda: loop(1), lambda: loop(4), lambda: loop(2)) == [0] * 4

    def test_one_step_that_does_more_takes_no_others_with_it(self):
        """Watchpoints of the first graph hold on: those that follow fit both."""
        x = Tensor([1.0])

        def step(*more):
            ops.exp(x)
            for one in more:
                one(x)

        asked = (ops.sin,), (), (ops.cos,), (), (ops.cos,)
        assert self.programs(*(functools.partial(step, *more) for more in asked)) == [0, 0, 1, 0, 1]

    def test_as_long_as_a_step_goes_on_it_is_what_it_may_be(self):
        x, may_be = Tensor([1.0]), []

        class Looks(observing.Observer):
            def seen(self, run, operator, inputs, outputs):
                may_be.append((operator.type, run.program.number, {of.number for of in run.candidates}))

        def step(last):
            ops.exp(x)
            last(x)

        with observing.watch_calls(Looks()) as calls:
            for last in (ops.sin, ops.cos, ops.sin):
                step(last)
                calls.end_step()
        (_, first, _), (_, sin, _), (_, cut, _), (_, cos, _), (_, at, both), (_, again, one) = may_be
        assert first == sin == cut == again != cos  # the beginning of the second was like the first
        assert both == {sin, cos} and at in both and one == {sin}


def test_calls_of_other_threads_are_not_seen():
    import threading

    observer = Keeps()
    with observing.watch_calls(observer):
        thread = threading.Thread(target=lambda: ops.exp(Tensor([1.0])))
        thread.start()
        thread.join()
    assert observer.calls == []


def test_nothing_is_kept_of_what_was_watched(watched):
    observer = watched()
    f = ms.jit(lambda x: ops.exp(x) + 1.0)
    f(Tensor([1.0]))
    observer.calls.clear()
    observing.unwatch(observer)
    gc.collect()
    assert float(f(Tensor([0.0]))) == 2.0


def here():
    return origin(2)


def test_an_origin_has_the_lines_that_led_there():
    def caller():
        return here()

    found = caller()
    assert isinstance(found, Origin) and found.scope == "Default"
    assert [function.rpartition(".")[2] for _, _, function in found.stack[:2]] == [
        "caller",
        "test_an_origin_has_the_lines_that_led_there",
    ]
    gradient = found.of_gradient("Exp")
    assert gradient.scope == "Gradients/Default/Grad_Exp" and gradient.stack == found.stack


def test_classes_can_be_left_out_of_scopes(watched):
    ms.set_context(mode=ms.GRAPH_MODE, reserve_class_name_in_scope=False)
    try:
        observer, step = watched(), training()
        step(*batches()[0])
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE, reserve_class_name_in_scope=True)
    assert observer.names()[0] == "Default/network/_backbone/layers/0/Dense-op0"


def test_the_first_operator_of_a_process_is_seen_by_who_comes_with_it(tmp_path):
    """A dump that the environment asks for begins with the first operator, and has it."""
    settings = tmp_path / "dump.json"
    common = {"path": str(tmp_path / "dump")}
    settings.write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True}}))
    script = "import mycelia as ms\nfor op in (ms.ops.exp, ms.ops.relu): op(ms.Tensor([1.0]))"
    env = {**os.environ, "MYCELIA_DUMP_CONFIG": str(settings)}
    subprocess.run([sys.executable, "-c", script], env=env, check=True)
    kinds = {path.name.split(".")[0] for path in (tmp_path / "dump").rglob("*.npy")}
    assert kinds == {"Exp", "ReLU"}
