"""Random tensors by distribution, random order, dropout: the public functions over the draws of draws.py."""

import numpy as np

from mycelia.engine.base import dtypes, errors, ignored
from mycelia.engine.ir.sizes import exact
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ops.arrays import gathering as _gathering
from mycelia.engine.ops.arrays import masks as _masks
from mycelia.engine.ops.arrays.create import zeros_like
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.ops.elementwise import logarithms as _logarithms
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.random.draws import (
    _dropout,
    _random_choice,
    _random_gamma,
    _random_int,
    _random_mask_choice,
    _random_normal,
    _random_permutation,
    _random_poisson,
    _random_uniform,
)
from mycelia.engine.ops.random.generator import _draw_key, _streams
from mycelia.engine.ops.random.stream import uniform_doubles
from mycelia.engine.ops.reductions import extreme_values as _extreme_values
from mycelia.engine.ops.reductions import reduce as _reduce
from mycelia.engine.ops.reductions import scan as _scan
from mycelia.engine.ops.reductions import softmaxes as _softmaxes


def _sizes(name, size):
    """A shape from an int, ints, a tuple, a list or a tensor."""
    if len(size) == 1 and not isinstance(size[0], (int, np.integer)):
        size = size[0].asnumpy().reshape(-1).tolist() if hasattr(size[0], "asnumpy") else size[0]
    for n in size:
        if not isinstance(n, (int, np.integer)) or isinstance(n, bool):
            raise errors.type_error(f"{name}: a shape must consist of integers, got {n!r}")
        if n < 0:
            raise errors.value_error(f"{name}: a shape must not be negative, got {tuple(size)}")
    return tuple(map(exact, size))


def _uniform(shape, dtype, seed=None, generator=None):
    return _random_uniform(_draw_key(seed, generator), shape=shape, dtype=dtype or dtypes.float32)


def _normal(shape, dtype, seed=None, generator=None):
    return _random_normal(_draw_key(seed, generator), shape=shape, dtype=dtype or dtypes.float32)


def _drawn_shape(shape, *parameters):
    """The requested shape broadcast with the shapes of distribution parameters."""
    return np.broadcast_shapes(shape, *(tuple(p.shape) for p in parameters if hasattr(p, "shape")))


def rand(*size, dtype=None, seed=None):
    """Numbers of the uniform distribution over [0, 1).

    Shapes: `size` as ints or one tuple.  dtypes: floating, float32 by default.
    """
    return _uniform(_sizes("rand", size), dtype, seed)


def rand_like(input, seed=None, *, dtype=None):
    """`rand` with the shape of `input`, and its dtype unless `dtype` is given."""
    return _uniform(tuple(input.shape), dtype or input.dtype, seed)


def randn(*size, dtype=None, seed=None):
    """Numbers of the standard normal distribution.

    Shapes: `size` as ints or one tuple.  dtypes: floating, float32 by default.
    """
    return _normal(_sizes("randn", size), dtype, seed)


def randn_like(input, seed=None, *, dtype=None):
    """`randn` with the shape of `input`."""
    return _normal(tuple(input.shape), dtype, seed)


def _integers(name, low, high, shape, seed, dtype, generator=None):
    dtype = dtype or dtypes.int64
    if not dtype.is_integer:
        raise errors.value_error(f"For '{name}', the 'dtype' must be an int type, but got {dtype}.")
    return _random_int(_draw_key(seed, generator), low, high, shape=shape, dtype=dtype)


def randint(low, high, size, seed=None, *, dtype=None):
    """Integers of the uniform distribution over [low, high).

    Shapes: `size`, a tuple.  dtypes: integer, int64 by default.  Errors: ValueError if low is not below high.
    """
    return _integers("randint", low, high, _sizes("randint", (size,)), seed, dtype)


def randint_like(input, low, high, seed=None, *, dtype=None):
    """`randint` with the shape of `input`, and its dtype unless `dtype` is given."""
    return _integers("randint_like", low, high, tuple(input.shape), seed, dtype or input.dtype)


@ignored.arguments(offset="the seed alone chooses the order")
def randperm(n, seed=0, offset=0, dtype=dtypes.int64):
    """The numbers 0 to n - 1 in random order; a `seed` of 0 continues the default stream.

    Shapes: [n].  dtypes: integer.  Errors: ValueError if n is negative.
    """
    if n < 0:
        raise errors.value_error(f"randperm: n must be 0 or more, got {n}")
    return _random_permutation(_draw_key(seed or None), n=n if type(n) is SymInt else int(n), dtype=dtype)


def shuffle(x, seed=None):
    """`x` with its first axis in random order.

    Shapes: [n, ...] -> same.  dtypes: any.  Errors: TypeError or ValueError for another x or seed.
    """
    if not hasattr(x, "asnumpy"):
        raise errors.type_error(f"shuffle: x must be a Tensor, got {type(x).__name__}")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise errors.type_error(f"shuffle: seed must be an int, got {seed!r}")
    if seed is not None and seed < 0:
        raise errors.value_error(f"shuffle: seed must be 0 or more, got {seed}")
    return x if x.ndim == 0 else _gathering.gather(x, randperm(x.shape[0], seed or 0), 0)


def standard_normal(shape, seed=None):
    """Numbers of the standard normal distribution, float32.

    Shapes: `shape`, an int, tuple or tensor.
    """
    return _normal(_sizes("standard_normal", (shape,)), None, seed)


def standard_laplace(shape, seed=None):
    """Numbers of the Laplace distribution with mean 0 and scale 1, float32.

    Shapes: `shape`, an int, tuple or tensor.
    """
    drawn = _uniform(_sizes("standard_laplace", (shape,)), None, seed)
    centred = drawn - 0.5 + 2.0**-25  # never exactly -1/2: the logarithm stays finite
    return -_math.sign(centred) * _logarithms.log(1.0 - 2.0 * _math.abs(centred))


def uniform(shape, minval, maxval, seed=None, dtype=dtypes.float32):
    """Numbers of the uniform distribution over [minval, maxval).

    Shapes: `shape` broadcast with minval and maxval.  dtypes: floating; integer with one minval, maxval.
    """
    shape = _drawn_shape(_sizes("uniform", (shape,)), minval, maxval)
    if dtype.is_integer:
        return _integers("uniform", minval, maxval, shape, seed, dtype)
    return _uniform(shape, dtype, seed) * (maxval - minval) + minval


def normal(shape, mean, stddev, seed=None):
    """Numbers of the normal distribution with the given mean and standard deviation, float32.

    Shapes: `shape` broadcast with mean and stddev.
    """
    shape = _drawn_shape(_sizes("normal", (shape,)), mean, stddev)
    return _normal(shape, None, seed) * stddev + mean


def laplace(shape, mean, lambda_param, seed=None):
    """Numbers of the Laplace distribution: density ``exp(-|x - mean| / lambda_param) / (2 lambda_param)``,
    float32.

    Shapes: `shape` broadcast with mean and lambda_param.
    """
    shape = _drawn_shape(_sizes("laplace", (shape,)), mean, lambda_param)
    return standard_laplace(shape, seed) * lambda_param + mean


def gamma(shape, alpha, beta, seed=None):
    """Numbers of the gamma distribution with shape `alpha` and rate `beta`, float32.

    Shapes: [*shape, ...] with the broadcast shape of alpha and beta.
    """
    alpha = alpha + beta * 0.0
    return _random_gamma(_draw_key(seed), alpha, shape=_sizes("gamma", (shape,))) / beta


def random_gamma(shape, alpha, seed=None):
    """Numbers of the gamma distribution with shape `alpha` and rate 1.

    Shapes: [*shape, ...] with the shape of alpha.  dtypes: alpha's.
    """
    return _random_gamma(_draw_key(seed), alpha, shape=_sizes("random_gamma", (shape,)), dtype=alpha.dtype)


def poisson(shape, mean, seed=None):
    """Numbers of the Poisson distribution with the given mean, float32.

    Shapes: [*shape, ...] with the shape of mean.
    """
    return random_poisson(shape, mean, seed)


def random_poisson(shape, rate, seed=None, dtype=dtypes.float32):
    """Numbers of the Poisson distribution.

    Shapes: shape a vector, int32 or int64 -> [*shape, ...] with the shape of rate.  dtypes: any number.
    Errors: TypeError unless shape is a Tensor, rate a number or such a Tensor and seed an int.
    """
    if not hasattr(shape, "asnumpy") or shape.dtype not in (dtypes.int32, dtypes.int64):
        raise errors.type_error(f"random_poisson: shape must be an int32 or int64 Tensor, got {shape!r}")
    if shape.ndim != 1:
        raise errors.value_error(f"random_poisson: shape must be a vector, but it is {shape.ndim}-D")
    if getattr(rate, "dtype", None) is dtypes.bool_ or not (
        hasattr(rate, "asnumpy") or isinstance(rate, (int, float))
    ):
        raise errors.type_error(f"random_poisson: rate must be a Tensor of numbers, got {rate!r}")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise errors.type_error(f"random_poisson: seed must be an int, got {seed!r}")
    if seed is not None and seed < 0:
        raise errors.value_error(f"random_poisson: seed must be 0 or more, got {seed}")
    return _random_poisson(_draw_key(seed), rate, shape=_sizes("random_poisson", (shape,)), dtype=dtype)


def bernoulli(input, p=0.5, seed=None):
    """Ones with probability `p` and zeros, in the shape and dtype of `input`.

    Shapes: input any, p a number or broadcastable to it -> input's.
    """
    if isinstance(p, (int, float)) and not 0 <= p <= 1:
        raise errors.value_error(f"bernoulli: p must be in [0, 1], got {p}")
    return cast(_uniform(tuple(input.shape), None, seed) < p, input.dtype)


def multinomial(input, num_samples, replacement=True, seed=None):
    """Indices along the last axis, drawn in proportion to the weights `input`.

    Shapes: [C] or [N, C] -> [num_samples] or [N, num_samples], int32.
    """
    key = _draw_key(seed)
    return _random_choice(key, input, count=int(num_samples), replacement=bool(replacement))


def multinomial_with_replacement(x, seed, offset, numsamples, replacement=False):
    """Indices along the last axis, drawn in proportion to the weights `x` with the key (seed, offset).

    Shapes: [C] or [N, C] -> [numsamples] or [N, numsamples], int64.
    """
    from mycelia.engine.tensors.tensor import Tensor

    key = Tensor(np.array([int(seed), int(offset)], np.int64))
    return _random_choice(key, x, count=int(numsamples), replacement=bool(replacement), dtype=dtypes.int64)


def random_categorical(logits, num_sample, seed=0, dtype=dtypes.int64):
    """Class indices drawn from the softmax of `logits`.

    Shapes: logits [N, C] -> [N, num_sample].  dtypes: integer result.
    """
    seed = int(seed)
    key = _draw_key(generator=_streams.categorical_generator(seed) if seed else None)
    return _categories(key, logits, int(num_sample), dtype, bool(seed))


def _categories(key, logits, count, dtype, seeded):
    """Class indices: with a seed the ones that MindSpore has, the same numbers for all rows."""
    if not seeded:
        return _random_choice(key, _softmaxes.softmax(logits, -1), count=count, dtype=dtype)
    kind = dtypes.float64 if logits.dtype is dtypes.float64 else dtypes.float32
    logits = cast(logits, kind)
    bounds = _scan.cumsum(_powers.exp(logits - _extreme_values.amax(logits, -1, True)), -1)
    u = cast(cast(uniform_doubles(key, count), dtypes.float32), kind)
    wanted = cast(bounds[..., -1:] * u, dtypes.float32)
    passed = cast(bounds, kind)[..., None, :] < wanted[..., None]
    return cast(_reduce.sum(cast(passed, dtypes.int64), -1), dtype)


def choice_with_mask(input_x, count=256, seed=None):
    """Positions of `count` true elements in random order, and which are real: fewer are padded with 0.

    Shapes: input_x bool [...] -> int32 [count, rank], bool [count].
    """
    return _random_mask_choice(_draw_key(seed), input_x, count=int(count))


def gumbel_softmax(logits, tau=1.0, hard=False, dim=-1):
    """A soft sample of the classes: softmax of ``(logits + Gumbel noise) / tau`` along `dim`.

    `hard` gives the one-hot of the largest entry, with the gradient of the soft sample.
    Shapes: any -> same.  dtypes: floating.  Source: Jang et al. 2017.
    """
    noise = -_logarithms.log(-_logarithms.log(_uniform(tuple(logits.shape), logits.dtype) + 2.0**-25))
    soft = _softmaxes.softmax((logits + noise) * (1.0 / tau), dim)
    if not hard:
        return soft
    from mycelia.engine.ops.control_flow.control import stop_gradient

    best = cast(soft == _extreme_values.amax(soft, dim, True), soft.dtype)
    return soft + stop_gradient(best - soft)


def dropout(input, p=0.5, training=True, seed=None):
    """Zeroes elements with probability `p` and scales the others by ``1 / (1 - p)``;
    `input` itself if not training.

    Shapes: any -> same.  dtypes: floating.  Errors: ValueError if `p` is not in [0, 1).
    """
    if not training or p == 0:
        return input
    return _dropout(input, _draw_key(seed), p=float(p))


def _channel_dropout(name, input, p, training, ranks):
    if input.ndim not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise errors.value_error(f"{name}: input must have rank {wanted}, got shape {tuple(input.shape)}")
    if not 0 <= p <= 1:
        raise errors.value_error(f"{name}: p must be in [0, 1], got {p}")
    if not training or p == 0:
        return input
    if p == 1:
        return zeros_like(input)
    lead = tuple(input.shape[: input.ndim - (max(ranks) - 2)])
    drawn = _uniform(lead + (1,) * (input.ndim - len(lead)), None)
    return input * cast((drawn >= p) * (1.0 / (1.0 - p)), input.dtype)


def dropout1d(input, p=0.5, training=True):
    """Zeroes whole channels with probability `p` and scales the others by ``1 / (1 - p)``.

    Shapes: [N, C, L] or [C, L] -> same.  dtypes: floating.
    """
    return _channel_dropout("dropout1d", input, p, training, (2, 3))


def dropout2d(input, p=0.5, training=True):
    """Zeroes whole channels with probability `p` and scales the others by ``1 / (1 - p)``.

    Shapes: [N, C, H, W] -> same.  dtypes: floating.
    """
    return _channel_dropout("dropout2d", input, p, training, (3, 4))


def dropout3d(input, p=0.5, training=True):
    """Zeroes whole channels with probability `p` and scales the others by ``1 / (1 - p)``.

    Shapes: [N, C, D, H, W] -> same.  dtypes: floating.
    """
    return _channel_dropout("dropout3d", input, p, training, (4, 5))


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3):
    """Rectifier with random slopes for negative values, uniform over [lower, upper).

    Shapes: any -> same.  dtypes: floating.  Errors: ValueError unless lower <= upper.
    """
    if lower > upper:
        raise errors.value_error(f"rrelu: lower must be at most upper, got {lower} and {upper}")
    slope = _uniform(tuple(input.shape), input.dtype) * (upper - lower) + lower
    return _masks.where(input >= 0, input, input * slope)


def _overwrite(input, value):
    assign(input, cast(value, input.dtype))
    return input


def uniform_(input, from_=0, to=1, *, generator=None):
    """Overwrites `input` with numbers of the uniform distribution over [from_, to)."""
    return _overwrite(input, _uniform(tuple(input.shape), None, None, generator) * (to - from_) + from_)


def normal_(input, mean=0, std=1, *, generator=None):
    """Overwrites `input` with numbers of the normal distribution."""
    return _overwrite(input, _normal(tuple(input.shape), None, None, generator) * std + mean)


def exponential_(input, lambd=1, *, generator=None):
    """Overwrites `input` with numbers of the exponential distribution with rate `lambd`."""
    return _overwrite(
        input, -_logarithms.log(1.0 - _uniform(tuple(input.shape), None, None, generator)) / lambd
    )


def random_(input, from_=0, to=None, *, generator=None):
    """Overwrites `input` with integers of [from_, to); without `to` with the range
    that its dtype holds exactly.
    """
    if to is None:
        # A floating dtype holds all integers up to 2 ^ (bits of its mantissa + 1).
        exact = (
            2 ** (np.finfo(input.dtype.np).nmant + 1)
            if input.dtype.is_floating
            else np.iinfo(input.dtype.np).max
        )
        from_, to = (0, exact + 1) if from_ == 0 else (0, from_)
    drawn = _random_int(_draw_key(None, generator), from_, min(to, 2**63 - 1), shape=tuple(input.shape))
    return _overwrite(input, drawn)


__all__ = [
    "bernoulli", "choice_with_mask",
    "dropout", "dropout1d", "dropout2d", "dropout3d", "exponential_", "gamma", "gumbel_softmax",
    "laplace", "multinomial", "multinomial_with_replacement", "normal", "normal_", "poisson", "rand",
    "rand_like",
    "randint", "randint_like", "randn", "randn_like", "random_", "random_categorical", "random_gamma",
    "random_poisson", "randperm", "rrelu", "shuffle", "standard_laplace", "standard_normal", "uniform",
    "uniform_",
]  # fmt: skip
