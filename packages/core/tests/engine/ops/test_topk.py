"""`topk` that is not to sort: what is all there stays where it is."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops

X = Tensor([[3.0, 1.0, 4.0], [9.0, 2.0, 6.0]])


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit], ids=["eager", "jit"])
def test_all_unsorted(largest, wrap):
    values, places = wrap(lambda x: ops.topk(x, 3, largest=largest, sorted=False))(X)
    assert values.asnumpy().tolist() == X.asnumpy().tolist()
    assert (places.dtype, places.asnumpy().tolist()) == (ms.int32, [[0, 1, 2]] * 2)
    values, places = wrap(lambda x: ops.topk(x, 2, dim=0, largest=largest, sorted=False))(X)
    assert values.asnumpy().tolist() == X.asnumpy().tolist()
    assert places.asnumpy().tolist() == [[0] * 3, [1] * 3]


def test_some_unsorted_are_the_largest():
    values, places = ops.topk(X, 2, sorted=False)
    assert np.sort(values.asnumpy()).tolist() == [[3, 4], [6, 9]]
    assert np.take_along_axis(X.asnumpy(), places.asnumpy(), 1).tolist() == values.asnumpy().tolist()


def test_gradient_of_all_unsorted():
    weights = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found = ms.grad(lambda x: (ops.topk(x, 3, sorted=False)[0] * weights).sum())(X)
    assert found.asnumpy().tolist() == weights.asnumpy().tolist()


@pytest.mark.parametrize(
    ("other", "error"),
    [(ops.ones(2), ValueError), (ops.ones(3, ms.float16), TypeError), (ops.ones(3, ms.int32), TypeError)],
)
def test_squares_of_two_tensors_alike(other, error):
    x = ops.ones(3)
    assert [t.item() for t in ops.operations.SquareSumAll()(x, x)] == [3, 3]
    with pytest.raises(error):
        ops.operations.SquareSumAll()(x, other)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "positions",
    [
        lambda x: ops.argsort(x, 0),
        lambda x: ops.sort(x, 0)[1],
        lambda x: ops.topk(x, 2, 0)[1],
        lambda x: ops.max(x, 0)[1],
        lambda x: ops.median(x, 0)[1],
        lambda x: ops.cummax(x, 0)[1],
    ],
)
def test_positions_as_factors_pass_no_gradient_to_what_was_ordered(positions, compiled):
    def product(x, y):
        return (y * positions(x)).sum()

    gradient = ms.grad(product, (0, 1))
    x, y = ms.Tensor([3.0, 1.0, 2.0]), ms.Tensor([1.0])
    of_x, of_y = ms.jit(lambda *a: gradient(*a))(x, y) if compiled else gradient(x, y)
    assert of_x.asnumpy().tolist() == [0, 0, 0]
    assert of_y.asnumpy().tolist() == [positions(x).sum().item()]
