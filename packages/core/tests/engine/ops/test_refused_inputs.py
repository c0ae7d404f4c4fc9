"""Functions that take Tensors only, and numbers given as tensors of one element."""

import pytest

import mycelia as ms
from mycelia import Tensor, ops

X = ops.ones((2, 3))


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.select_scatter(1.0, 2, 0, 0),
        lambda: ops.select_scatter(X, 2, 0, 0),
        lambda: ops.slice_scatter(1.0, X),
    ],
)
def test_numbers_are_no_tensors(call):
    with pytest.raises(TypeError, match="must be a Tensor, got"):
        call()


@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit], ids=["eager", "jit"])
def test_values_of_one_hot_may_be_vectors_of_one_element(wrap):
    hot = wrap(lambda i, on, off: ops.operations.OneHot()(i, 3, on, off))
    found = hot(Tensor([0, 2], ms.int32), Tensor([5.0]), Tensor([-1.0]))
    assert found.asnumpy().tolist() == [[5, -1, -1], [-1, -1, 5]]
    slope = ms.grad(lambda on: ops.one_hot(Tensor([0, 2]), 3, on, Tensor([0.0])).sum())(Tensor([5.0]))
    assert slope.asnumpy().tolist() == [2]
