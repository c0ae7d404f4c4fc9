"""Trainings whose every step is another program: what watches them has a bound."""

from __future__ import annotations

import numpy as np

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.debug.conditions import Memory, condition
from mycelia.debug.online.observer import Debugged
from mycelia.engine import observing
from mycelia.engine.base.errors import Place
from mycelia.engine.observing import Operator
from mycelia.engine.observing.eager_programs import EagerPrograms
from mycelia.engine.observing.observers import Watched


def operators(*lines: int) -> list[Operator]:
    return [Operator(None, f"Default/Exp-op{n}", Place("train.py", line, "f"), {}, "Exp")
            for n, line in enumerate(lines)]  # fmt: skip


def test_programs_that_ran_least_recently_are_forgotten():
    programs = EagerPrograms(Watched("eager"))
    first = programs.of(operators(1, 2), ["a"])
    assert first is programs.calls
    found = []
    for step in range(1000):
        found.append(programs.of(operators(step + 10, -step), ["b"]).number)
        assert programs.of(operators(1, 2), ["a"]) is first  # it runs all the time
    assert len(set(found)) == 1000
    assert len(programs._marked) <= 32 and len(programs._ran) == len(programs._marked)
    assert programs.of(operators(1009, -999), ["b"]).number == found[-1]
    assert programs.of(operators(10, 0), ["b"]).number not in found  # it was forgotten


def test_values_of_the_step_before_are_those_of_the_graphs_that_ran_last():
    memory = Memory(condition("weight_not_changed"), {}, most_graphs=3)
    for graph in range(5):
        for iteration in range(3):
            memory.add((graph, "a", 0), iteration, np.array([iteration]))
        memory.add((0, "a", 0), 3 + graph, np.array([3 + graph]))
    assert [int(x[0]) for x in memory.earlier((0, "a", 0), 8)] == [7]
    assert [int(x[0]) for x in memory.earlier((4, "a", 0), 3)] == [2]
    assert memory.earlier((1, "a", 0), 3) == []


class Branches(nn.Cell):
    """Which of its layers run says a mask: 2**10 programs."""

    def __init__(self):
        super().__init__()
        self.layers = nn.CellList([nn.Dense(4, 4) for _ in range(10)])

    def construct(self, x, mask):
        for bit, layer in enumerate(self.layers):
            if mask >> bit & 1:
                x = ops.tanh(layer(x))
        return x


def train(steps: int, seed: int = 0) -> None:
    """Eager steps of other layers on other sizes each."""
    ms.set_seed(1)
    rng = np.random.default_rng(seed)
    net = Branches()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    step = ms.value_and_grad(lambda x, mask: net(x, mask).sum(), None, optimizer.parameters)
    for _ in range(steps):
        x = Tensor(rng.standard_normal((int(rng.integers(1, 60)), 4)).astype(np.float32))
        _, gradients = step(x, int(rng.integers(1, 1024)))
        optimizer(gradients)


class Silent:
    """A service that lets a training run."""

    lost, address = "", "nowhere"

    def __init__(self):
        self.sent: list[int] = []

    def call(self, name, request, **_):
        if name in ("SendGraph", "SendMultiGraphs"):
            self.sent.append(sum(part.finished for part in request))
        return None


def debugger() -> Debugged:
    found = Debugged(Silent())
    found.left = -1
    return found


def test_of_many_eager_programs_the_last_are_known():
    """With what belongs to them: graphs, Parameters, what the service is told."""
    watched = debugger()
    with ms.config.context(mode=ms.PYNATIVE_MODE), observing.watch_calls(watched) as calls:
        train(60)
        assert len(calls.programs._marked) <= 32
    assert watched.done >= 60 and len(watched.steps) <= 5
    kept = {number for step in watched.steps.values() for number in step}
    assert 20 < len(watched.graphs) <= 32 + len(kept) and max(watched.channel.sent) <= 32 + len(kept)
    assert {number for number, _ in watched.parameters} <= watched.graphs.keys() | kept
    assert watched.extents.keys() <= watched.graphs.keys()


def test_graphs_of_sizes_without_end_are_told_in_part():
    """A compiled function on other sizes each step: each is a graph to the debugger."""
    watched = debugger()
    run = ms.jit(lambda x: ops.tanh(x) * 2)
    observing.watch(watched)
    try:
        for size in range(1, 60):
            run(Tensor(np.ones(size, np.float32)))
    finally:
        observing.unwatch(watched)
    assert len(watched.graphs) <= 40 and len(watched.steps) <= 5
