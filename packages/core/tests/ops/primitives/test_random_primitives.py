"""Primitives that draw random numbers, by the seeds that they are given."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops


def floats(values):
    return Tensor(np.array(values, np.float32))


def test_categories_are_those_of_the_seed():
    logits = floats(np.log([[1, 2, 3, 4]]))
    draw = ops.RandomCategorical(ms.int32)
    assert draw(logits, 8, 7).asnumpy().tolist() == [[2, 3, 3, 2, 3, 1, 1, 3]]
    assert draw(logits, 8, 7).asnumpy().tolist() == [[3, 3, 1, 3, 3, 2, 1, 3]]
    assert draw(logits, 8, 9).asnumpy().tolist() == [[1, 2, 2, 0, 2, 1, 3, 2]]
    again = ops.RandomCategorical(ms.int32)
    compiled = ms.jit(lambda logits: again(logits, 8, 7))
    assert compiled(logits).asnumpy().tolist() == [[2, 3, 3, 2, 3, 1, 1, 3]]
    assert compiled(logits).asnumpy().tolist() == [[3, 3, 1, 3, 3, 2, 1, 3]]


def test_uniform_of_a_tensor():
    x = Tensor(np.zeros((50, 3), np.float16))
    drawn = ops.operations.Uniform(1.0, 3.0, seed=4)(x)
    assert drawn.shape == x.shape and drawn.dtype is ms.float16
    assert 1.0 <= drawn.asnumpy().min() < 1.5 and 2.5 < drawn.asnumpy().max() <= 3.0
    with pytest.raises(ValueError, match="minval"):
        ops.operations.Uniform(2.0, 1.0)
    with pytest.raises(TypeError, match="floating"):
        ops.operations.Uniform()(Tensor([1, 2]))


def test_a_generator_steps():
    generator = ms.Generator().manual_seed(3)
    assert [int(n) for n in generator._step(Tensor(5))] == [3, 0]
    assert [int(n) for n in generator._step(2)] == [3, 5]
    assert generator.get_state().asnumpy().view(np.int64).tolist() == [3, 7]


@pytest.mark.parametrize(
    "shape, rate, seed, error",
    [
        ((3,), floats([1]), 1, TypeError),
        (Tensor([[3]]), floats([1]), 1, ValueError),
        (Tensor([3]), Tensor([True]), 1, TypeError),
        (Tensor([3]), [1.0], 1, TypeError),
        (Tensor([3]), floats([1]), 0.5, TypeError),
        (Tensor([3]), floats([1]), -1, ValueError),
    ],
)
def test_what_poisson_refuses(shape, rate, seed, error):
    with pytest.raises(error, match="random_poisson"):
        ops.random_poisson(shape, rate, seed)


def test_seeds_of_choices_may_be_negative():
    places, real = ops.RandomChoiceWithMask(4, 1, -1024)(Tensor([True, False, True, True]))
    assert real.asnumpy().tolist() == [True, True, True, False]
    assert sorted(places.asnumpy()[:3, 0].tolist()) == [0, 2, 3]
