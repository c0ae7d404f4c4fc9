"""Parts of a compiled graph that run at the same time."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.backends import registry
from mycelia.engine.compile import executable
from mycelia.engine.compile.passes import inter_op

pytestmark = pytest.mark.skipif("cpu" not in registry.available(), reason="needs kernels")


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(inter_op, "threads", lambda: 2)


@pytest.fixture
def built(monkeypatch):
    found = []
    monkeypatch.setattr(executable, "built_listeners", [found.append])
    return found


def rand(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


class Wide(nn.Cell):
    """Four paths of small products that meet at the end."""

    def __init__(self, paths=4, size=96):
        super().__init__()
        self.first = nn.CellList([nn.Dense(size, size, activation="tanh") for _ in range(paths)])
        self.second = nn.CellList([nn.Dense(size, size) for _ in range(paths)])
        self.last = nn.Dense(paths * size, 7)

    def construct(self, x):
        made = [second(first(x)) for first, second in zip(self.first, self.second)]
        return self.last(ops.relu(ops.concat(made, 1)))


def test_paths_of_a_wide_net_are_tasks(two_threads, built):
    net, x = Wide(), rand(33, 96)
    got = ms.jit(net)(x)
    np.testing.assert_allclose(got.asnumpy(), net(x).asnumpy(), rtol=2e-5, atol=2e-5)
    (program,) = (p for p in built if p.task_groups)
    ((begin, ends),) = program.task_groups
    names = [n.op.name for n in program.nodes]
    assert len(ends) == 2 and names[begin : ends[-1]].count("linear") == 8
    parts = [names[begin : ends[0]], names[ends[0] : ends[1]]]
    assert sorted(parts[0]) == sorted(parts[1]), "both threads have as much to do"


def test_training_step_gives_the_same_bits_with_and_without(monkeypatch, built):
    x = rand(33, 96)

    def trained(threads):
        monkeypatch.setattr(inter_op, "threads", lambda: threads)
        ms.set_seed(5)
        net = Wide()
        optimizer = nn.Adam(net.trainable_params(), 0.01)
        grad = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

        @ms.jit
        def step(x):
            loss, gradients = grad(x)
            optimizer(gradients)
            return loss

        losses = [float(step(x)) for _ in range(5)]
        return losses, [p.asnumpy() for p in net.get_parameters()]

    alone, weights = trained(1)
    assert not any(p.task_groups for p in built)
    together, others = trained(2)
    assert any(p.task_groups for p in built)
    assert alone == together and all((a == b).all() for a, b in zip(weights, others))


@pytest.mark.parametrize("make", [
    lambda x: ops.relu(x @ x) @ x,  # a chain
    lambda x: (x + 1) * (x - 1),  # too little to hand over
    lambda x: ops.concat([ops.tile(x, (8, 8)) @ ops.tile(x, (n, 8)).T for n in (7, 8)], 1),  # large
], ids=["chain", "little", "large"])  # fmt: skip
def test_what_gains_nothing_stays_in_order(two_threads, built, make):
    x = rand(64, 64)
    np.testing.assert_allclose(ms.jit(make)(x).asnumpy(), make(x).asnumpy(), rtol=1e-4, atol=1e-3)
    assert built and not any(p.task_groups for p in built)


def test_an_error_in_a_task_is_the_users(two_threads, built):
    """Indices out of range are found while the kernels run."""
    table, x = rand(300, 200), rand(33, 200)

    @ms.jit
    def f(x, at):
        paths = [ops.tanh(x @ x.T @ x) + ops.gather(table, at, 0) for _ in range(1)]
        return paths[0] + ops.exp(-ops.abs(x @ x.T)) @ x

    good = f(x, Tensor(np.arange(33, dtype=np.int32)))
    assert good.shape == (33, 200)
    with pytest.raises(IndexError, match="300"):
        f(x, Tensor(np.full(33, 300, np.int32)))


def test_task_groups_are_checked(two_threads, built):
    ms.jit(Wide())(rand(33, 96))
    program = next(p for p in built if p.task_groups)
    count = program.instruction_count
    for bad in (((0, (count + 1, count + 2)),), ((3, (3, 4)),), ((0, (2,)),), ((4, (5, 6)), (0, (1, 2)))):
        with pytest.raises(ValueError, match="task_groups"):
            program.task_groups = bad
    with pytest.raises(TypeError, match="task_groups"):
        program.task_groups = None


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("leave", [
    lambda a, b: (a.reshape(8, 12, 4, 16), b.reshape(8, 12, 4, 16)),
    lambda a, b: (a, b[:, :, :1].squeeze(-1), b[None]),
    lambda a, b: (a.reshape(-1), ops.tanh(b.reshape(-1, 8)) * 2, b.reshape(-1, 8).expand_dims(0)),
], ids=["reshaped", "squeezed", "read again"])  # fmt: skip
def test_views_of_paths_may_leave_the_program(monkeypatch, built, threads, leave):
    monkeypatch.setattr(inter_op, "threads", lambda: threads)
    first, second, x = nn.Dense(64, 64), nn.Dense(64, 64), rand(8, 12, 64)

    def function(x):
        h = ops.tanh(x)
        return leave(first(h), second(h))

    for found, expected in zip(ms.jit(function)(x), function(x), strict=True):
        np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-5)
