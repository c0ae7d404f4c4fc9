"""Random graphs answer alike before and after the optimiser."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia_lite.converter import optimise
from mycelia_lite.converter.optimise import redundant

from .random_graphs import Graph
from .small_models import agree, answers, only, values


@pytest.mark.fuzz(60)
def test_random_graphs_answer_alike(seed):
    model = Graph(seed).grow(12)
    arrays = values(model, seed)
    expected = answers(model, *arrays)
    after = model.copy()
    optimise.run(after)
    agree(expected, answers(after, *arrays), 1e-4)
    some = np.random.default_rng(seed).permutation(optimise.RULES)[: len(optimise.RULES) // 2]
    after = model.copy()
    optimise.run(after, only(*some))
    agree(expected, answers(after, *arrays), 1e-4)


_TURNED = (
    "transpose", "transpose", "transpose", "activation", "function", "clip", "arithmetic", "slice", "concat",
    "reduce", "softmax", "pad", "slices_together",
)  # fmt: skip


@pytest.mark.fuzz(40)
def test_transposes_move_through_random_graphs(seed):
    model = Graph(seed).grow(16, _TURNED)
    arrays = values(model, seed)
    expected = answers(model, *arrays)
    done = optimise.run(model, only("TransposeFusion"))
    assert done.transposes[1] <= done.transposes[0]
    agree(expected, answers(model, *arrays), 1e-4)


def test_random_graphs_reach_the_rules():
    """The fuzzer would be blind where nothing fires."""
    fired = dict.fromkeys(optimise.RULES, 0)
    for seed in range(60):
        for name, count in optimise.run(Graph(seed).grow(30)).fired.items():
            fired[name] += count
    assert sum(count > 0 for count in fired.values()) >= 30


def test_a_wrong_rule_is_found(monkeypatch):
    monkeypatch.setitem(redundant._NEUTRAL, "MulFusion", lambda graph, tensor: graph.number(tensor) == 0.5)
    with pytest.raises(AssertionError):
        for seed in range(60):
            model = Graph(seed).grow(12)
            arrays = values(model, seed)
            expected = answers(model, *arrays)
            optimise.run(model)
            agree(expected, answers(model, *arrays), 1e-4)
