"""What cannot be divided is refused by name; what has no layout is whole on all ranks."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.engine.communication.share import GridShare
from mycelia.engine.sharding.mesh import Mesh
from mycelia.engine.sharding.rules import regrouped
from mycelia.parallel.engines import threads

sys.path.insert(0, str(Path(__file__).parent))
from test_semi_auto import ROWS, Mlp, X, Y, graphs, seeding, weight  # noqa: F401  (a fixture)


def divided(ranks, function, *arguments, dataset="full_batch"):
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy=dataset)
    return threads.run(ranks, lambda rank: function(*arguments) if arguments else function(rank))


def product(strategy, out=None, x=(ROWS, 8), w=(8, 6)):
    """A product of two matrices by a strategy, in a graph of its own."""
    op = ops.MatMul().shard(strategy) if out is None else ops.MatMul().shard(strategy, out)
    run = ms.jit(lambda a, b: op(a, b))
    return run(Tensor(np.ones(x, np.float32)), Tensor(np.ones(w, np.float32)))


LAYOUT = ms.Layout((2, 2), ("dp", "mp"))


@pytest.mark.parametrize(
    ("ranks", "strategy", "kind", "words"),
    [
        (2, ((1, 1), (1, 4)), ValueError, "axis 1 of tensor 1 has 6 elements.*4 equal "
        "parts.*MatMul|MatMul.*axis 1"),
        (2, ((1, 1), (1, 3)), ValueError, "MatMul.*needs 3 ranks.*do not divide the 2"),
        (2, ((1, 2), (1, 1)), ValueError, r"MatMul.*axis 0 of tensor 1 into 1 parts.*another tensor into 2"),
        (2, ((1, 1),), ValueError, r"MatMul.*is for 1 tensors, but 2 were given.*\[8, 8\], \[8, 6\]"),
        (2, ((1,), (1, 1)), ValueError, "MatMul.*a number for each of its 2 axes"),
        (2, ((0, 1), (1, 1)), ValueError, "MatMul.*positive numbers"),
        (2, (LAYOUT("dp", "None"), LAYOUT("None", "mp")), ValueError, "MatMul.*is of 4 ranks, but 2 train"),
        (4, (LAYOUT("dp", "None"), LAYOUT("None", ("dp", "mp"))), ValueError,
         r"MatMul.*axis 1 of 6 cannot be cut into 4 equal parts.*\('dp', 'mp'\).*dp=2, mp=2"),
        (4, (LAYOUT("dp"), LAYOUT("None", "mp")), ValueError, r"MatMul.*is of 1 axes, but the tensor "
        r".*\[8, 8\]"),
    ],
)  # fmt: skip
def test_a_wrong_layout_names_operator_axes_and_sizes(ranks, strategy, kind, words):
    with pytest.raises(kind, match=words):
        divided(ranks, product, strategy)


def test_interleaved_layouts_are_refused():
    layout = ms.Layout((2, 2, 1), ("dp", "mp", "interleaved_parallel"))
    with pytest.raises(NotImplementedError, match="MatMul.*interleaved"):
        divided(4, product, (layout("dp", "None"), layout("None", "mp")))


def test_layouts_that_no_one_grid_has_are_refused():
    def work(rank):
        two, three = ops.ReLU().shard(((2, 1),)), ops.ReLU().shard(((3, 1),))
        return ms.jit(lambda x: three(two(x)))(Tensor(np.ones((6, 2), np.float32)))

    with pytest.raises(NotImplementedError, match="blocks of 3 and of 2 ranks"):
        divided(6, work)


def test_an_operator_without_a_rule_is_named_with_what_is_divided():
    def work(rank):
        relu = ops.ReLU().shard(((2, 1),))
        return ms.jit(lambda x: ops.cholesky(relu(x)))(Tensor(np.eye(4, dtype=np.float32)))

    with pytest.raises(
        NotImplementedError,
        match=r"cholesky.*operand 0 of shape \[4, 4\] is divided \(2, "
        r"1\)",
    ):
        divided(2, work)


def test_an_operator_without_a_rule_runs_on_whole_operands():
    def work(rank):
        cut, join = ops.ReLU().shard(((2, 1),)), ops.ReLU().shard(((1, 1),))
        return ms.jit(lambda x: ops.cholesky(join(cut(x))))(Tensor(np.eye(4, dtype=np.float32))).asnumpy()

    for found in divided(2, work):
        np.testing.assert_array_equal(found, np.eye(4))


def test_a_layout_in_a_loop_is_refused():
    def work(rank):
        relu = ops.ReLU().shard(((2, 1),))

        @ms.jit
        def run(x):
            while x.sum() > 0:
                x = relu(x) - 1
            return x

        return run(Tensor(np.ones((4, 4), np.float32)))

    with pytest.raises(NotImplementedError, match="ReLU.*in a loop"):
        divided(2, work)


def test_eager_calls_are_refused():
    def operator(rank):
        return ops.ReLU().shard(((2, 1),))(Tensor(np.ones((4, 4), np.float32)))

    def optimizer(rank):
        net = Mlp(None, None, None)
        made = nn.SGD(net.trainable_params())
        return made(tuple(p * 0 for p in net.trainable_params()))

    ms.set_context(mode=ms.PYNATIVE_MODE)
    for eager, name in ((operator, "ReLU"), (optimizer, "SGD")):
        with pytest.raises(RuntimeError, match=f"{name}.*divides graphs, but this runs eagerly"):
            divided(2, eager)


def test_a_gradient_from_outside_of_the_graph_is_refused():
    def work(rank):
        net = Mlp(((1, 1), (1, 2)), ((1, 2), (2, 1)), ((1, 2), (2,)))
        run = ms.jit(lambda x: net(x).sum())
        return ms.value_and_grad(run, None, net.trainable_params())(Tensor(X))

    ms.set_context(mode=ms.PYNATIVE_MODE)
    with pytest.raises(RuntimeError, match="gradient is taken of a compiled function from outside"):
        divided(2, work)


def test_ranks_with_other_weights_are_told():
    def work(rank):
        net = nn.Dense(8, 4)
        net.weight.set_data(Tensor(np.full((4, 8), float(rank), np.float32)))
        net.matmul.shard(((1, 1), (2, 1)))
        return net(Tensor(X))

    with pytest.raises(RuntimeError, match="'weight' is not the same on rank 0 and on rank 1"):
        divided(2, work)


def test_a_part_is_not_taken_for_the_whole():
    """After the settings are gone a graph would compute with a part."""
    nets = {}

    def work(rank):
        nets[rank] = net = Mlp(((1, 1), (1, 2)), ((1, 2), (2, 1)), ((1, 2), (2,)))
        return net(Tensor(X)).asnumpy()

    first, second = divided(2, work)
    np.testing.assert_array_equal(first, second)
    assert nets[0].w1.shape == (8, 8) and nets[0].w1.sliced
    ms.reset_auto_parallel_context()
    with pytest.raises(RuntimeError, match="a part of w1 only"):
        nets[0](Tensor(X))


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        (((2, 1),), "is for 1 tensors, but the function is called with 2"),
        (((2, 1, 1), (2,)), "is for 3 axes"),
    ],
)
def test_a_dataset_strategy_that_does_not_fit_is_told(strategy, words):
    def work(rank):
        return ms.jit(lambda x, y: x.sum() + y.sum())(Tensor(X), Tensor(Y))

    with pytest.raises(ValueError, match=words):
        divided(2, work, dataset=strategy)


def test_results_with_the_rows_of_a_batch_are_shares():
    """Each rank gets back the rows that it gave; other results are whole."""

    def work(rank):
        net = Mlp(((2, 1), (1, 2)), ((2, 2), (2, 1)), ((2, 2), (2,)))
        rows = X[rank * 2 : rank * 2 + 2]
        run = ms.jit(lambda x: (net(x), net(x).mean(0), x.mean()))
        return [found.asnumpy() for found in run(Tensor(rows))]

    with seeding:
        net = Mlp(None, None, None)
    expected = net(Tensor(X)).asnumpy()
    for rank, (rows, mean, number) in enumerate(divided(4, work, dataset="data_parallel")):
        np.testing.assert_allclose(rows, expected[rank * 2 : rank * 2 + 2], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(mean, expected.mean(0), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(number, X.mean(), rtol=1e-5, atol=1e-6)


def test_positions_outside_of_a_cut_table_are_refused():
    def work(rank):
        gather, table = ops.Gather().shard(((2, 1), (1,))), weight(16, 4)
        return ms.jit(lambda ids: gather(table, ids, 0))(Tensor(np.array([0, 16], np.int32)))

    with pytest.raises(IndexError):
        divided(2, work)


def test_functions_and_cells_are_divided_as_operators_are():
    def work(rank):
        net = nn.Dense(8, 16, weight_init=weight(16, 8), bias_init=weight(16))
        run = net.shard(((1, 1),), ((1, 2),), {"self.weight": (2, 1)})
        square = ms.parallel.shard(lambda x: x * x, ((2, 1),))
        found = ms.jit(lambda x: square(run(x)))(Tensor(X))
        return found.asnumpy(), net.weight.share

    net = nn.Dense(8, 16, weight_init=weight(16, 8), bias_init=weight(16))
    for found, share in divided(2, work):
        np.testing.assert_allclose(found, net(Tensor(X)).asnumpy() ** 2, rtol=1e-5)
        assert isinstance(share, GridShare) and share.part_shape == (8, 8)


def test_shapes_are_grouped_into_common_axes():
    left, right, sizes = regrouped((4, 6, 8), (24, 2, 4))
    assert [len(axis) for axis in left] == [1, 1, 2] and [len(axis) for axis in right] == [2, 1, 1]
    assert sorted(sizes.values()) == [2, 4, 4, 6]
    assert regrouped((2, 9), (6, 3))[2] == {"0:0": 2, "1:0": 3, "1:1": 3}
    assert regrouped((0, 4), (4, 0)) == (((), ()), ((), ()), {})


def test_a_grid_share_puts_parts_together():
    whole = np.arange(48).reshape(4, 12)
    parts = [GridShare(r, (2, 3), ((), (1, 0)), (4, 12)).of(whole) for r in range(6)]
    assert parts[0].shape == (4, 2)
    np.testing.assert_array_equal(GridShare(0, (2, 3), ((), (1, 0)), (4, 12)).join(parts), whole)
    np.testing.assert_array_equal(
        parts[4], whole[:, 6:8] if Mesh(6, 4, [(2, 3)]).index((1, 0)) == 3 else None
    )
