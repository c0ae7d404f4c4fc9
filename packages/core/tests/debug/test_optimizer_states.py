"""What optimizers keep of weights is no weight, and a layer that is called like a state is one."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, debug, mint, nn, ops
from mycelia.debug.conditions import is_weight
from mycelia.experimental import optim
from mycelia.nn.optim.states import OwnsStates

pytestmark = pytest.mark.usefixtures("from_the_first_step")


class Net(nn.Cell):
    """Its layers are called as optimizers call their states."""

    def __init__(self):
        super().__init__()
        self.linear, self.moments, self.prev = nn.Dense(3, 4), nn.Dense(4, 4), nn.Dense(4, 2)

    def construct(self, x):
        return self.prev(ops.relu(self.moments(self.linear(x))))


WEIGHTS = {f"{layer}.{part}" for layer in ("linear", "moments", "prev") for part in ("weight", "bias")}


NN = [getattr(nn, n) for n in dir(nn) if isinstance(getattr(nn, n), type)]
NN = [c for c in NN if issubclass(c, nn.Optimizer) and c is not nn.Optimizer]
OTHERS = [
    getattr(module, n)
    for module in (optim, mint.optim)
    for n in dir(module)
    if isinstance(getattr(module, n), type) and issubclass(getattr(module, n), optim.Optimizer)
]
EVERY = [c for c in NN + OTHERS if c is not optim.Optimizer]


def optimizer(kind, weights):
    if kind is nn.LARS:
        return nn.LARS(nn.Momentum(weights, 0.1, 0.9))
    if kind is nn.Momentum:
        return kind(weights, 0.1, 0.9)
    if kind is nn.AdaFactor:
        return kind(weights, learning_rate=None)
    return kind(weights, 0.1)


def weights_of_a_dump(folder, kind):
    """The nodes of a training's step that a dump has for weights, and all its Parameters."""
    net = Net()
    loss = nn.WithLossCell(net, nn.MSELoss())
    chosen = optimizer(kind, net.trainable_params())
    forward = ms.value_and_grad(loss, None, chosen.parameters)

    def step(x, y):
        _, gradients = forward(x, y)
        chosen(gradients)

    run = ms.jit(step) if ms.get_context("mode") == ms.GRAPH_MODE else step
    with debug.dump({"path": str(folder), "eager": True}):
        run(Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((2, 2), np.float32)))
    nodes = [n for n in debug.DumpAnalyzer(folder).select_nodes("") if n.kind == "Parameter"]
    return {n.name for n in nodes if is_weight(n.kind, n.name, n.attributes)}, {n.name for n in nodes}


def name_of(kind):
    return f"{kind.__module__}.{kind.__name__}"


@pytest.mark.parametrize("kind", EVERY, ids=name_of)
def test_states_of_every_optimizer_are_no_weights(kind, tmp_path):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    weights, parameters = weights_of_a_dump(tmp_path, kind)
    assert weights == WEIGHTS and issubclass(kind, OwnsStates)
    assert parameters > weights


@pytest.mark.parametrize("kind", [nn.FTRL, nn.Rprop, nn.ASGD, mint.optim.AdamW], ids=name_of)
def test_they_are_none_in_compiled_steps(kind, tmp_path):
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        weights, parameters = weights_of_a_dump(tmp_path, kind)
    finally:
        ms.set_context(mode=before)
    assert weights == WEIGHTS
    assert len(parameters) >= 2 * len(WEIGHTS)


def test_conditions_of_a_dump_pass_over_states(tmp_path, caplog):
    """FTRL's `linear.` begins as zeros, and is no weight that nobody initialized."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    weights = nn.Dense(3, 2, weight_init="ones", bias_init="ones").trainable_params()
    ftrl = nn.FTRL(weights)
    watch = {"condition": "weight_initialization", "params": {"zero_percentage_ge": 100}}
    with caplog.at_level("WARNING", logger="mycelia"):
        with debug.dump({"path": str(tmp_path), "conditions": [watch], "eager": True}):
            ftrl([ops.ones_like(w) for w in weights])
    assert not [r for r in caplog.records if "weight_initialization" in r.getMessage()]
    assert not list(tmp_path.rglob("*.npy"))


def test_an_optimizer_of_the_user_owns_what_it_keeps():
    class Mine(nn.Optimizer):
        def __init__(self, weights):
            super().__init__(0.1, weights)
            self.velocity = self.parameters.clone(prefix="velocity", init="zeros")
            self.counts = [ms.Parameter(Tensor(0.0), f"count_{p.name}") for p in self.parameters]

        def construct(self, gradients):
            return gradients

    net = Net()
    mine = Mine(net.trainable_params())
    assert all(p._is_optimizer_state for p in (*mine.velocity, *mine.counts, mine.global_step))
    assert not any(p._is_optimizer_state for p in net.get_parameters())
    mine.parameters = ms.ParameterTuple(mine.velocity)  # it learns these now
    assert not any(p._is_optimizer_state for p in mine.velocity)
