"""What it takes of graphs, and what core refuses."""

from __future__ import annotations

import numpy as np
import pytest
from torch_backend.backend import TorchBackend

import mycelia as ms
from mycelia.testing.comparison import on_backend
from mycelia.testing.training_contract import train_lenet


@pytest.fixture
def parts(monkeypatch):
    """The ops of each part that is compiled as a whole."""
    seen = []
    compile = TorchBackend.compile

    def watched(self, graph):
        seen.append([node.op.name for node in graph.nodes])
        return compile(self, graph)

    monkeypatch.setattr(TorchBackend, "compile", watched)
    return seen


def test_a_step_of_lenet_is_taken_in_two_parts(parts):
    """In front of the loss and behind it; the optimizer runs on the host."""
    with on_backend("torch"):
        losses = [float(t) for t in train_lenet("step")[:4]]
    assert losses[-1] < losses[0]
    forward, backward = parts
    assert forward.count("conv") == 2 and forward.count("dense") == 3
    assert {"conv_weight_grad", "max_pool_grad", "relu_grad", "mat_mul"} <= set(backward)


def test_what_it_does_not_know_splits_a_graph(parts):
    def mixed(x):
        y = x * 2 + 1
        return ms.ops.sinh(y) * y - x

    x = np.linspace(-1, 1, 5, dtype=np.float32)
    with on_backend("torch"):
        got = ms.jit(mixed)(ms.Tensor(x)).asnumpy()
    np.testing.assert_allclose(got, np.sinh(2 * x + 1) * (2 * x + 1) - x, rtol=1e-5)
    assert parts == [["mul", "add"], ["mul", "sub"]]


def test_each_size_is_compiled():
    double = ms.jit(lambda x: x + x)
    with on_backend("torch"):
        for n in (2, 3, 4, 2):
            assert double(ms.Tensor(np.ones(n, np.float32))).asnumpy().tolist() == [2] * n


@pytest.mark.parametrize("claims, problem", [
    (lambda graph: [graph.nodes[:1], graph.nodes[:1]], "claimed twice"),
    (lambda graph: [[graph.nodes[0], graph.nodes[-1]]], "needs what others compute from its own results"),
])  # fmt: skip
def test_groups_that_cannot_run_as_a_whole_are_refused(monkeypatch, claims, problem):
    monkeypatch.setattr(TorchBackend, "claims", lambda self, graph: claims(graph))
    with on_backend("torch"), pytest.raises(ValueError, match=problem):
        ms.jit(lambda x: ms.ops.sinh(x * 2) + x)(ms.Tensor(np.ones(3, np.float32)))
