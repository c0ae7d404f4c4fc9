"""Random streams: the generator's known words, what a seed fixes, and the moments of the distributions."""

import numpy as np
import pytest

import mycelia.tensor  # noqa: F401
from mycelia import config, dtypes, ops
from mycelia.engine.autodiff.transforms import grad
from mycelia.engine.ops.random import draws, generator
from mycelia.tensor import Tensor


@pytest.fixture(autouse=True)
def seeded():
    with config.context(seed=3):
        yield


@pytest.mark.parametrize(
    ("seed", "offset", "counter", "words"),
    [
        # Known answers of the Random123 distribution for philox4x32-10.
        (0, 0, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        (-1, -1, 2**64 - 1, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    ],
)
def test_philox_gives_the_published_words(seed, offset, counter, words):
    found = draws._np_philox(seed, offset, np.array([counter], np.uint64))
    assert found.tolist() == [words]


def test_random_bits_start_with_the_published_words():
    found = draws._random_bits(Tensor(np.zeros(2, np.int64)), shape=(4,))
    assert found.asnumpy().tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_set_seed_repeats_all_streams():
    def draw():
        return [
            ops.rand(3),
            ops.rand(3, seed=5),
            ops.randn(4),
            ops.randperm(6),
            ops.dropout(Tensor(np.ones(9, "f"))),
        ]

    first = [x.asnumpy() for x in draw()]
    config.set_seed(3)
    for a, b in zip(first, draw(), strict=True):
        np.testing.assert_array_equal(a, b.asnumpy())


def test_a_stream_moves_on():
    assert not np.array_equal(ops.rand(4).asnumpy(), ops.rand(4).asnumpy())
    assert not np.array_equal(ops.rand(4, seed=5).asnumpy(), ops.rand(4, seed=5).asnumpy())


def test_restored_state_continues_the_stream():
    ops.rand(5)
    state = generator.get_rng_state()
    first = ops.rand(5).asnumpy()
    generator.set_rng_state(state)
    np.testing.assert_array_equal(ops.rand(5).asnumpy(), first)


def test_generator_state_is_seed_and_position():
    stream = generator.Generator().manual_seed(7)
    stream._next_key()
    assert stream.get_state().asnumpy().view(np.int64).tolist() == [7, 1]
    assert stream.initial_seed() == 7


def test_dropout_gradient_has_the_mask_of_the_result():
    x = Tensor(np.arange(1, 200, dtype=np.float32))
    key = Tensor(np.array([9, 4], np.int64))
    result = draws._dropout(x, key, p=0.4)
    gradient = grad(lambda v: ops.sum(draws._dropout(v, key, p=0.4)))(x)
    np.testing.assert_allclose(gradient.asnumpy() * x.asnumpy(), result.asnumpy(), rtol=1e-6)


def test_dropout_keeps_the_share_and_the_mean():
    result = ops.dropout(Tensor(np.ones(100_000, np.float32)), p=0.3).asnumpy()
    assert abs((result == 0).mean() - 0.3) < 0.01
    assert abs(result.mean() - 1) < 0.01


def test_dropout_leaves_the_input_alone_outside_training():
    x = Tensor(np.ones(4, np.float32))
    assert ops.dropout(x, 0.5, training=False) is x
    assert ops.dropout(x, 0.0) is x


def test_dropout2d_drops_whole_channels():
    result = ops.dropout2d(Tensor(np.ones((8, 16, 3, 3), np.float32)), p=0.5).asnumpy().reshape(8, 16, 9)
    assert np.array_equal(result.min(2), result.max(2))
    assert set(np.unique(result)) == {0.0, 2.0}


N = 40_000
MOMENTS = {
    "uniform": (lambda: ops.uniform((N,), 2.0, 5.0), 3.5, 3 / 12**0.5),
    "normal": (lambda: ops.normal((N,), 1.0, 2.0), 1, 2),
    "laplace": (lambda: ops.laplace((N,), 1.0, 2.0), 1, 2 * 2**0.5),
    "gamma below 1": (lambda: ops.random_gamma((N,), Tensor(np.float32(0.4))), 0.4, 0.4**0.5),
    "gamma": (lambda: ops.random_gamma((N,), Tensor(np.float32(6.0))), 6, 6**0.5),
    "poisson small": (lambda: ops.random_poisson(Tensor([N]), Tensor(np.float32(3.0))), 3, 3**0.5),
    "poisson large": (lambda: ops.random_poisson(Tensor([N]), Tensor(np.float32(50.0))), 50, 50**0.5),
    "randint": (lambda: ops.randint(-3, 7, (N,)), 1.5, (99 / 12) ** 0.5),
    "bernoulli": (lambda: ops.bernoulli(Tensor(np.zeros(N, np.float32)), 0.2), 0.2, 0.4),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name):
    draw, mean, deviation = MOMENTS[name]
    found = draw().asnumpy().astype(np.float64)
    # Five standard errors; that of the deviation is wider for heavy tails.
    assert abs(found.mean() - mean) < 5 * deviation / N**0.5
    assert abs(found.std() - deviation) < 0.04 * deviation


def test_multinomial_follows_the_weights():
    found = ops.multinomial(Tensor(np.array([1, 0, 3], np.float32)), N).asnumpy()
    assert np.abs(np.bincount(found, minlength=3) / N - [0.25, 0, 0.75]).max() < 0.01


def test_multinomial_without_replacement_never_repeats():
    found = ops.multinomial(Tensor(np.ones((50, 6), np.float32)), 6, False).asnumpy()
    assert np.array_equal(np.sort(found, 1), np.tile(np.arange(6), (50, 1)))


def test_randperm_is_a_permutation():
    found = ops.randperm(100, dtype=dtypes.int32).asnumpy()
    assert np.array_equal(np.sort(found), np.arange(100)) and not np.array_equal(found, np.arange(100))


def test_bad_arguments_name_the_function():
    with pytest.raises(ValueError, match="low must be below high"):
        ops.randint(5, 0, (3,))
    with pytest.raises(ValueError, match="dropout.*p must be"):
        ops.dropout(Tensor(np.ones(3, np.float32)), 1.5)
