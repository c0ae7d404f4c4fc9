"""Types are inferred when a node is made, and carried through from there."""

from collections import Counter

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.backends import registry
from mycelia.engine.compile import executable
from mycelia.engine.compile.passes import layout
from mycelia.engine.ops.define import OpDef


class Images(nn.Cell):
    """Convolutions with all that layouts, epilogues and fusion work on."""

    def __init__(self):
        super().__init__()
        self.convs = nn.CellList([nn.Conv2d(16, 16, 3) for _ in range(3)])
        self.norms = nn.CellList([nn.BatchNorm2d(16) for _ in range(3)])
        self.pool, self.head = nn.MaxPool2d(2, 2), nn.Dense(16, 5)

    def construct(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = ops.concat([ops.relu(norm(conv(x)))[:, :8], x[:, 8:]], 1)
        return self.head(ops.softmax(self.pool(x), 1).mean((2, 3)))


@pytest.fixture
def inferred(monkeypatch):
    """Counts of inferences by op."""
    counts, usual = Counter(), OpDef.infer_types

    def infer(definition, *args):
        counts[definition.name] += 1
        return usual(definition, *args)

    monkeypatch.setattr(OpDef, "infer_types", infer)
    return counts


def step_of(net):
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    grad = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

    @ms.jit
    def step(x):
        loss, gradients = grad(x)
        optimizer(gradients)
        return loss

    return step


def images(batch=2):
    return Tensor(np.random.default_rng(batch).normal(size=(batch, 16, 12, 12)).astype(np.float32))


def with_counts(monkeypatch, module, name, inferred, found):
    """Notes what is inferred within a function of a module."""
    usual = getattr(module, name)

    def counted(*args, **kwargs):
        before = Counter(inferred)
        result = usual(*args, **kwargs)
        found.append(inferred - before)
        return result

    monkeypatch.setattr(module, name, counted)


@pytest.mark.parametrize("training", [False, True])
def test_a_program_is_built_from_the_types_of_its_graph(monkeypatch, inferred, training):
    found = []
    with_counts(monkeypatch, executable.Builder, "build", inferred, found)
    with_counts(monkeypatch, executable.Builder, "__init__", inferred, found)
    net = Images().set_train(training)
    (step_of(net) if training else ms.jit(net))(images())
    assert len(found) > 1 and not any(found), found


@pytest.mark.skipif("cpu" not in registry.available(), reason="layouts need kernels")
def test_another_layout_carries_types_over(monkeypatch, inferred):
    found = []
    with_counts(monkeypatch, layout, "run", inferred, found)
    step_of(Images().set_train())(images())
    total = sum(found, Counter())
    assert total["conv_pack"] == 5 and set(total) <= {"conv_pack", "transpose", "reshape"}, total


def test_the_gradient_of_a_compiled_function_carries_the_types_of_its_graph(inferred):
    run = ms.jit(Images())
    run(images())
    assert {"conv", "max_pool", "dense", "concat"} <= set(inferred)
    inferred.clear()
    ms.grad(lambda x: run(x).sum())(images())
    assert {"conv_input_grad", "max_pool_grad"} <= set(inferred)
    assert not {"conv", "max_pool", "dense", "concat"} & set(inferred)
