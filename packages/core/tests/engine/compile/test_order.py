"""The stage "order" of the compiler: passes that decide when nodes run, and the check of what they decide."""

import copy
import re

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.backends import registry
from mycelia.engine.compile import executable
from mycelia.engine.compile.draft import Draft, Window
from mycelia.engine.compile.passes import inter_op, pass_manager, pipeline, recompute, schedule
from mycelia.engine.ir.verify import InvalidGraph

pytestmark = pytest.mark.skipif("cpu" not in registry.available(), reason="needs kernels")
NAMES = ("schedule", "recompute", "inter_op")  # and "early": packages/core/tests/parallel/test_overlap.py


class Paths(nn.Cell):
    """Normalized paths that meet at the end: each pass of the stage finds something to do."""

    def __init__(self):
        super().__init__()
        layers = [nn.Dense(8, 8), nn.BatchNorm1d(8), nn.ReLU()]
        self.paths = nn.CellList([nn.SequentialCell(*copy.deepcopy(layers * 3)) for _ in range(2)])
        self.last = nn.Dense(16, 7)

    def construct(self, x):
        return self.last(ops.concat([path(x) for path in self.paths], 1))


@pytest.fixture
def eager_passes(monkeypatch):
    """Two threads, and nothing is too small to run beside another or to be computed twice."""
    for name, value in dict(threads=lambda: 2, _GAIN=0.0, _HANDOVER=50.0).items():
        monkeypatch.setattr(inter_op, name, value)
    for name, value in dict(_LEAST_PEAK=0, _LEAST_SIZE=0, _LEAST_FALL=0.0, _BUDGET=10.0).items():
        monkeypatch.setattr(recompute, name, value)


def trained(passes, **settings):
    """Parameters after two steps, and the largest program of the step."""
    ms.set_seed(3)
    net, made = Paths().set_train(), []
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    grad = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

    @ms.jit
    def step(x):
        loss, gradients = grad(x)
        optimizer(gradients)
        return loss

    x = Tensor(np.random.default_rng(0).normal(size=(512, 8)).astype(np.float32))
    executable.built_listeners.append(made.append)
    try:
        with ms.config.context(passes=passes, check=True, **settings):
            for _ in range(2):
                step(x)
    finally:
        executable.built_listeners.remove(made.append)
    weights = [p.asnumpy() for p in net.get_parameters()]
    return weights, max(made, key=lambda program: program.instruction_count)


def test_all_passes_of_the_stage_are_in_the_pipeline():
    assert tuple(step.name for step in pipeline("order")) == ("early", *NAMES)
    with ms.config.context(passes="-recompute"):
        assert [step.name for step in pipeline("order")] == ["early", "schedule", "inter_op"]


@pytest.mark.parametrize("off", [*NAMES, "order"])
def test_what_is_switched_off_is_not_done_and_changes_no_bit(eager_passes, tmp_path, off):
    everything, usual = trained("", save_graphs=2, save_graphs_path=str(tmp_path / "all"))
    without, program = trained(f"-{off}", save_graphs=2, save_graphs_path=str(tmp_path / "some"))
    assert all((a == b).all() for a, b in zip(everything, without, strict=True))
    assert usual.task_groups and usual.info.recomputed
    assert bool(program.task_groups) is (off not in ("inter_op", "order"))
    assert bool(program.info.recomputed) is (off not in ("recompute", "order"))
    files = {name: " ".join(p.stem for p in (tmp_path / name).rglob("*.ir")) for name in ("all", "some")}
    for name in NAMES:
        assert re.search(rf"order_pm_\d_{name}_", files["all"])
        assert bool(re.search(rf"order_pm_\d_{name}_", files["some"])) is (off not in (name, "order"))


@pytest.mark.parametrize(("passes", "some"), [("", True), ("-schedule", False)])
def test_updates_in_place_are_the_business_of_the_schedule(monkeypatch, passes, some):
    drafts = []
    monkeypatch.setattr(executable, "Draft", lambda *what: drafts.append(Draft(*what)) or drafts[-1])
    trained(passes)
    assert any(draft.in_place for draft in drafts) is some


def drafted(function, *args):
    """The lowered graph of a function, and its draft."""
    found = []

    def order(graph, backend, draft):
        pass_manager.order(graph, backend, draft)
        found.append((graph, draft))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executable, "order", order)
        ms.jit(function)(*args)
    return found[0]  # before its prologues


def parameter(name, *shape):
    return ms.Parameter(Tensor(np.ones(shape, np.float32)), name=name)


def test_a_reader_behind_an_update_in_place_is_refused():
    weight, other = parameter("weight", 8, 8), parameter("other", 8, 8)

    def step():
        read = ops.matmul(weight, other)
        ops.assign_add(weight, other)
        return read

    graph, draft = drafted(step)
    assert len(draft.in_place) == 1
    draft.verify(graph)
    graph.nodes.reverse()
    with pytest.raises(InvalidGraph, match=r"\(linear\): it reads a parameter that node 0 \(assign_add\)"):
        draft.verify(graph)


@pytest.mark.parametrize("view", [False, True])
def test_dependent_nodes_at_the_same_time_are_refused(view):
    def function(x):
        made = ops.matmul(x, x)
        return ops.matmul(made.reshape(4, 16).transpose(1, 0).reshape(8, 8) if view else made, x)

    with ms.config.context(passes="-fuse"):
        graph, draft = drafted(function, Tensor(np.ones((8, 8), np.float32)))
    last = len(graph.nodes)
    draft.windows = [Window(0, last, (1, last))]
    with pytest.raises(InvalidGraph, match=r"it reads what node 0 \(mat_mul\) makes at the same time"):
        draft.verify(graph)
    draft.windows = [Window(0, 1, (1,)), Window(1, last, (last,))]
    draft.verify(graph)


def test_a_faulty_order_of_a_plugin_is_found_by_the_check(monkeypatch):
    """A pass that runs updates first, behind the schedule that knows when they may."""
    weight, other = parameter("weight", 8, 8), parameter("other", 8, 8)
    usual = schedule.run

    def spoiled(graph, draft):
        changed = usual(graph, draft)
        graph.nodes.sort(key=lambda node: node.op.name != "assign_add")
        return changed

    monkeypatch.setattr(schedule, "run", spoiled)

    @ms.jit
    def step():
        read = ops.matmul(weight, other)
        ops.assign_add(weight, other)
        return read

    with ms.config.context(check=True), pytest.raises(InvalidGraph, match="assign_add"):
        step()
