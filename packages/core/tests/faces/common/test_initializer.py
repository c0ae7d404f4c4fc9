"""Initializers: the distribution or the matrix that each promises, names, seeds, wrong arguments."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn
from mycelia.common import initializer as init
from mycelia.common.initializer import initializer

SHAPE = (100, 50, 3, 3)
FAN_IN, FAN_OUT = 450, 900


def values(kind, shape=SHAPE, dtype=ms.float32):
    ms.set_seed(1)
    return initializer(kind, shape, dtype).asnumpy()


@pytest.mark.parametrize(
    "kind, bound",
    [
        (init.Uniform(), 0.07),
        (init.Uniform(0.5), 0.5),
        (init.XavierUniform(), math.sqrt(6 / (FAN_IN + FAN_OUT))),
        (init.XavierUniform(2), 2 * math.sqrt(6 / (FAN_IN + FAN_OUT))),
        (init.HeUniform(), math.sqrt(6 / FAN_IN)),
        (init.HeUniform(mode="fan_out"), math.sqrt(6 / FAN_OUT)),
        (init.HeUniform(math.sqrt(5)), math.sqrt(1 / FAN_IN)),
        (init.HeUniform(nonlinearity="sigmoid"), math.sqrt(3 / FAN_IN)),
        (init.VarianceScaling(2.0, "fan_avg", "uniform"), math.sqrt(6 * 2 / (FAN_IN + FAN_OUT))),
    ],
)
def test_uniform_initializers_fill_their_interval(kind, bound):
    found = values(kind)
    assert np.abs(found).max() <= bound * (1 + 1e-6)
    assert np.abs(found).max() > 0.99 * bound
    assert abs(found.mean()) < 0.02 * bound
    np.testing.assert_allclose(found.std(), bound / math.sqrt(3), rtol=0.02)


@pytest.mark.parametrize(
    "kind, mean, sigma",
    [
        (init.Normal(), 0, 0.01),
        (init.Normal(0.5, 2.0), 2.0, 0.5),
        (init.XavierNormal(), 0, math.sqrt(2 / (FAN_IN + FAN_OUT))),
        (init.HeNormal(), 0, math.sqrt(2 / FAN_IN)),
        (init.HeNormal(1.0, "fan_out"), 0, math.sqrt(1 / FAN_OUT)),
        (init.HeNormal(nonlinearity="tanh"), 0, 5 / 3 / math.sqrt(FAN_IN)),
        (init.VarianceScaling(), 0, math.sqrt(1 / FAN_IN)),
        (init.VarianceScaling(3.0, "fan_out", "untruncated_normal"), 0, math.sqrt(3 / FAN_OUT)),
    ],
)
def test_normal_initializers_have_their_mean_and_deviation(kind, mean, sigma):
    found = values(kind)
    assert abs(found.mean() - mean) < 0.02 * sigma
    np.testing.assert_allclose(found.std(), sigma, rtol=0.02)


@pytest.mark.parametrize(
    "options",
    [{"sigma": 1.0}, {"sigma": 1.0, "a": 0.5, "b": 1.0}, {"sigma": 0.1, "mean": 5.0, "a": -1.0, "b": 1.0}],
)
def test_truncated_normal_stays_between_its_limits(options):
    found = values(init.TruncatedNormal(**options), (10_000,))
    assert found.min() >= options.get("a", -2.0) and found.max() <= options.get("b", 2.0)
    assert found.std() > 0


def test_constants():
    assert (values("zeros", (2, 3)) == 0).all() and (values(init.One(), (2, 3)) == 1).all()
    assert (values(init.Constant(2.5), (2, 3)) == 2.5).all() and (values(7, (2,)) == 7).all()
    np.testing.assert_array_equal(values(init.Constant(np.arange(3)), (2, 3)), [[0, 1, 2]] * 2)


def test_matrices():
    np.testing.assert_array_equal(values(init.Identity(), (2, 3)), np.eye(2, 3))
    q = values(init.Orthogonal(2.0), (4, 2, 3))
    np.testing.assert_allclose(q.reshape(4, 6) @ q.reshape(4, 6).T, 4 * np.eye(4), atol=1e-5)
    tall = values(init.Orthogonal(), (6, 4))
    np.testing.assert_allclose(tall.T @ tall, np.eye(4), atol=1e-6)
    sparse = values(init.Sparse(0.3), (10, 4))
    assert ((sparse == 0).sum(0) == 3).all()


def test_dirac_passes_channels_through():
    weight = values(init.Dirac(2), (4, 2, 3))
    x = np.random.default_rng(0).normal(size=(1, 4, 5)).astype(np.float32)
    y = ms.ops.conv1d(Tensor(x), Tensor(weight), pad_mode="same", groups=2)
    np.testing.assert_allclose(y.asnumpy(), x, rtol=1e-6)


def test_names_are_found_in_any_case():
    for name in (
        "zeros",
        "ones",
        "Normal",
        "uniform",
        "XavierUniform",
        "xavier_uniform",
        "heUniform",
        "he_normal",
        "TruncatedNormal",
    ):
        assert initializer(name, (3, 4)).shape == (3, 4)


@pytest.mark.parametrize("dtype", [ms.float16, ms.float32, ms.float64, ms.bfloat16, ms.int32])
def test_dtypes(dtype):
    made = initializer("ones", (2, 2), dtype)
    assert made.dtype is dtype and (made.asnumpy() == 1).all()


def test_the_same_seed_gives_the_same_weights_in_order():
    def weights():
        ms.set_seed(3)
        return [nn.Dense(3, 4).weight.asnumpy() for _ in range(2)]

    first, second = weights(), weights()
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
    assert (first[0] != first[1]).any()


def test_a_tensor_is_taken_as_it_is():
    given = Tensor([1.0, 2.0])
    assert initializer(given, (2,)) is given
    assert initializer(init.Normal, (2,)).shape == (2,)


@pytest.mark.parametrize(
    "kind, wrong",
    [
        (ValueError, lambda: initializer("norml", (2, 2))),
        (ValueError, lambda: initializer(Tensor([1.0]), (2,))),
        (ValueError, lambda: initializer("ones", (2, -1))),
        (ValueError, lambda: initializer("ones", (2, 1.5))),
        (TypeError, lambda: initializer([1.0], (1,))),
        (ValueError, lambda: initializer("xavier_uniform", (2,))),
        (ValueError, lambda: initializer("identity", (2, 2, 2))),
        (ValueError, lambda: initializer(init.Sparse(0.5), (2, 2, 2))),
        (ValueError, lambda: initializer("dirac", (2, 2))),
        (ValueError, lambda: initializer(init.Dirac(3), (4, 2, 3))),
        (ValueError, lambda: initializer("orthogonal", (2,))),
        (ValueError, lambda: init.TruncatedNormal(a=1.0, b=1.0)),
        (ValueError, lambda: init.VarianceScaling(-1.0)),
        (ValueError, lambda: init.VarianceScaling(mode="fan")),
        (ValueError, lambda: init.VarianceScaling(distribution="gauss")),
        (ValueError, lambda: initializer(init.HeNormal(mode="fan"), (2, 2))),
        (ValueError, lambda: initializer(init.HeNormal(nonlinearity="gauss"), (2, 2))),
        (NotImplementedError, lambda: initializer(init.Initializer(), (2,))),
    ],
)
def test_wrong_arguments_are_refused(kind, wrong):
    with pytest.raises(kind):
        wrong()


def test_an_initializer_of_ones_own():
    class Ramp(init.Initializer):
        def __call__(self, arr):
            arr[...] = np.arange(arr.size).reshape(arr.shape)

    assert initializer(Ramp(), (2, 2)).asnumpy().tolist() == [[0, 1], [2, 3]]


def test_common_leads_to_tensors_dtypes_and_seeds():
    from mycelia import common

    assert common.Tensor is Tensor and common.dtype.float32 is ms.float32
    assert common.initializer.Normal is init.Normal
    with pytest.raises(AttributeError, match="nothing"):
        common.nothing  # noqa: B018


def test_initializers_follow_the_stream_of_numpy():
    """Each takes one number of it, so what is drawn after a network was made is as in MindSpore."""
    state = np.random.get_state()
    try:
        np.random.seed(1)
        first = nn.Dense(2, 3)
        assert round(np.random.rand(), 5) == 0.00011  # the third number: a weight and a bias came before
        nn.BatchNorm2d(3)
        assert round(np.random.rand(), 5) == 0.30233
        if ms.get_seed() is None:
            np.random.seed(1)
            second = nn.Dense(2, 3)
            assert (first.weight.asnumpy() == second.weight.asnumpy()).all()
    finally:
        np.random.set_state(state)
