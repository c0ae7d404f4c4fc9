"""`auto_parallel` with sharding propagation: a few layouts say how the whole network is divided."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.engine.sharding.rewriter import Rewriter
from mycelia.parallel.engines import threads

sys.path.insert(0, str(Path(__file__).parent))
from test_semi_auto import (  # noqa: F401  (a fixture)
    CLASSES,
    HIDDEN,
    ROWS,
    TOKENS,
    WIDTH,
    Attention,
    Embedded,
    Mlp,
    X,
    graphs,
    train,
    weight,
)


def settings(mode="auto_parallel", **more):
    search = {"search_mode": "sharding_propagation"} if mode == "auto_parallel" else {}
    ms.set_auto_parallel_context(parallel_mode=mode, **{"dataset_strategy": "full_batch", **search, **more})


def annotated(**strategies):
    """The perceptron with layouts of some of its operators."""

    def make():
        net = Mlp(None, None, None)
        for name, strategy in strategies.items():
            getattr(net, name).shard(strategy)
        return net

    return make


def heads(dp, mp):
    """Attention of which only the products with the heads and one layer behind say how they are cut."""

    def make():
        net = Attention(1, 1)
        net.scores.shard(((dp, mp, 1, 1), (dp, mp, 1, 1)))
        net.up.matmul.shard(((dp, 1), (mp, 1)))
        return net

    return make


COLUMNS, ROWS_OF = ((), (0,)), ((0,), ())
CASES = {
    # ranks, network, data, Parameters that are cut and by which axes of the grid
    "forwards": (2, annotated(first=((1, 1), (1, 2))), X, {"w1": COLUMNS, "b1": ((0,),), "w2": ROWS_OF}),
    "backwards": (2, annotated(second=((1, 2), (2, 1))), X, {"w1": COLUMNS, "b1": ((0,),), "w2": ROWS_OF}),
    "from the middle": (2, annotated(add=((1, 2), (2,))), X, {"w1": COLUMNS, "b1": ((0,),), "w2": ROWS_OF}),
    "data and columns": (
        4, annotated(first=((2, 1), (1, 2))), X, {"w1": ((), (1,)), "b1": ((1,),), "w2": ((1,), ())},
    ),
    "rows of a table": (2, lambda: Embedded(((2, 1), (1, 1))), TOKENS, {"table": ROWS_OF}),
    "heads": (
        2, heads(1, 2), TOKENS,
        {"q.weight": ROWS_OF, "k.weight": ROWS_OF, "q.bias": ((0,),), "up.weight": ROWS_OF,
         "down.weight": COLUMNS},
    ),
    "heads and data": (4, heads(2, 2), TOKENS, {"q.weight": ((1,), ()), "down.weight": ((), (1,))}),
}  # fmt: skip


@pytest.mark.parametrize("share", (False, True), ids=("whole batch", "shares"))
@pytest.mark.parametrize("name", CASES)
def test_training_is_that_of_one_process(name, share):
    ranks, make, data, cut = CASES[name]
    plain = (lambda: Attention(1, 1)) if "heads" in name else lambda: Mlp(None, None, None)
    whole = Embedded if "table" in name else plain
    expected, weights, _ = train(whole, data)
    settings(dataset_strategy="data_parallel" if share else "full_batch")
    shares = {}

    def work(rank):
        kept = []

        def made():
            kept.append(make())
            return kept[0]

        found = train(made, data, rank, ranks, share)
        shares[rank] = {p.name: p.share for p in kept[0].get_parameters()}
        return found

    for losses, own, _ in threads.run(ranks, work):
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        for key, value in weights.items():
            np.testing.assert_allclose(own[key], value, rtol=1e-4, atol=2e-6, err_msg=key)
    for key, axes in cut.items():
        found = shares[0][next(n for n in shares[0] if n.endswith(key))]
        assert found is not None and found.axes == axes, key


def test_what_is_said_at_one_end_saves_gathering(monkeypatch):
    """The product before a cut one gives its columns where they are needed, instead of all of them."""
    gathered = []
    real = Rewriter._sliced

    def counting(self, value, atoms):
        if any(atoms):
            gathered.append(tuple(value.type.shape))
        return real(self, value, atoms)

    monkeypatch.setattr(Rewriter, "_sliced", counting)
    make, found = annotated(second=((1, 2), (2, 1))), {}
    for mode in ("semi_auto_parallel", "auto_parallel"):
        ms.reset_auto_parallel_context()
        settings(mode)
        threads.run(2, lambda rank: make()(Tensor(X)).asnumpy())
        found[mode] = [shape for shape in gathered if shape == (ROWS, HIDDEN)]
        gathered.clear()
    assert found["semi_auto_parallel"] and not found["auto_parallel"]


def test_without_any_layout_ranks_share_the_batch():
    expected, weights, _ = train(lambda: Mlp(None, None, None), X)
    settings(dataset_strategy="data_parallel")

    def work(rank):
        return train(lambda: Mlp(None, None, None), X, rank, 2, True)

    for losses, own, cut in threads.run(2, work):
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        assert not cut
        for key, value in weights.items():
            np.testing.assert_allclose(own[key], value, rtol=1e-4, atol=2e-6, err_msg=key)


def test_operators_without_a_rule_get_whole_operands():
    settings()

    def work(rank):
        relu = ops.ReLU().shard(((2, 1),))
        return ms.jit(lambda x: ops.cholesky(relu(x)) + 0)(Tensor(np.eye(4, dtype=np.float32))).asnumpy()

    for found in threads.run(2, work):
        np.testing.assert_array_equal(found, np.eye(4))


def test_loops_get_whole_operands():
    settings()

    def work(rank):
        relu = ops.ReLU().shard(((2, 1),))

        @ms.jit
        def run(x):
            x = relu(x)
            while x.sum() > 0:
                x = x - 1
            return x

        return run(Tensor(np.ones((4, 4), np.float32))).asnumpy()

    for found in threads.run(2, work):
        np.testing.assert_array_equal(found, np.zeros((4, 4)))


class Twice(nn.Cell):
    """One weight in two products, of which only the second is cut."""

    def __init__(self):
        super().__init__()
        self.w = weight(WIDTH, WIDTH)
        self.head = nn.Dense(WIDTH, CLASSES)
        self.first, self.second = ops.MatMul(), ops.MatMul()

    def construct(self, x):
        return self.head(self.second(ops.tanh(self.first(x, self.w)), self.w))


def test_a_parameter_of_two_operators_lies_as_its_layout_says():
    def make():
        net = Twice()
        net.second.shard(((1, 1), (1, 2)))
        return net

    expected, weights, _ = train(Twice, X)
    settings()
    for losses, own, cut in threads.run(2, lambda rank: train(make, X)):
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        assert any(name.endswith("w") for name in cut)
        for key, value in weights.items():
            np.testing.assert_allclose(own[key], value, rtol=1e-4, atol=2e-6, err_msg=key)


@pytest.mark.parametrize("given", ({}, {"search_mode": "dynamic_programming"},
                                   {"auto_parallel_search_mode": "recursive_programming"}))  # fmt: skip
def test_searches_by_cost_are_refused(given):
    ms.set_auto_parallel_context(parallel_mode="auto_parallel", **given)
    mode = next(iter(given.values()), "recursive_programming")
    with pytest.raises(NotImplementedError, match=f"search_mode='{mode}' would choose .* by their cost"):
        threads.run(2, lambda rank: ms.jit(lambda x: x + 1)(Tensor(X)))


@pytest.mark.parametrize("given", ({"search_mode": "sharding_propagation"},
                                   {"auto_parallel_search_mode": "sharding_propagation"},
                                   {"sharding_propagation": True}))  # fmt: skip
def test_all_spellings_ask_for_propagation(given):
    ms.set_auto_parallel_context(parallel_mode="auto_parallel", dataset_strategy="full_batch", **given)
    for found in threads.run(2, lambda rank: ms.jit(lambda x: x + 1)(Tensor(X)).asnumpy()):
        np.testing.assert_array_equal(found, X + 1)
