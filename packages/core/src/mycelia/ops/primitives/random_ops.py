"""Random tensors: each object continues a stream of its own, or the default one if it has no seed."""

import math
import os

import numpy as np

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.nn_ops.candidates import sample_candidates
from mycelia.engine.ops.random.draws import (
    _random_bits,
    _random_choice,
    _random_gamma,
    _random_int,
    _random_mask_choice,
    _random_normal,
    _random_permutation,
    _random_poisson,
    _random_uniform,
)  # fmt: skip
from mycelia.engine.ops.random.generator import Generator, _draw_key, _streams
from mycelia.engine.ops.random.random import _categories
from mycelia.ops.primitives.checks import Misfit, anything, boolean, integer, natural, positive, real
from mycelia.ops.primitives.checks import dtype as any_dtype
from mycelia.ops.primitives.define import primitive

_HIDDEN = {"side_effect_hidden": True}


def _one_of(*kinds):
    """Check of a dtype that must be one of these."""

    def checked(value):
        if any_dtype(value) not in kinds:
            raise Misfit(TypeError, f"one of {list(kinds)}")
        return any_dtype(value)

    return checked


_floating = _one_of(dtypes.float16, dtypes.float32, dtypes.float64)
_integers = _one_of(dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)
_index = _one_of(dtypes.int32, dtypes.int64)
_category = _one_of(dtypes.int16, dtypes.int32, dtypes.int64)
_counts = _one_of(dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64)


def own_stream(constants):
    """The generator of an object with a seed; None without one."""
    seeds = [constants.get(name, 0) for name in ("seed", "seed2", "Seed0", "Seed1")]
    if not any(seeds):
        return None
    mixed = 0
    for seed in seeds:
        mixed = mixed * 0x9E3779B97F4A7C15 + seed & 0x7FFFFFFFFFFFFFFF
    return Generator().manual_seed(_streams._mixed(mixed))


def next_key(stream):
    """Key of the next draw of an object."""
    return _draw_key(generator=stream)


def _shape(owner, shape):
    """A shape given as a tuple or a tensor of ints."""
    if hasattr(shape, "asnumpy"):
        if not shape.dtype.is_integer:
            raise errors.type_error(owner, f"the shape must consist of integers, but it is {shape.dtype}")
        return tuple(shape.asnumpy().reshape(-1).tolist())
    if not isinstance(shape, tuple) or not all(isinstance(n, int) for n in shape):
        raise errors.type_error(owner, f"the shape must be a tuple or tensor of int, but got {shape!r}")
    if any(n <= 0 for n in shape):
        raise errors.value_error(owner, f"the shape must consist of positive numbers, but got {shape}")
    return shape


def _tensor(owner, name, value):
    if not hasattr(value, "asnumpy") and not hasattr(value, "dtype"):
        raise errors.type_error(owner, f"{name} must be a Tensor, but got {type(value).__name__}")
    return value


def _seeded(function=None, *, check=None):
    return primitive(extra=_HIDDEN, check=check, state=own_stream)(function)


def uniform(state, shape, dtype=dtypes.float32):
    """Numbers in [0, 1) of an object's stream."""
    return _random_uniform(next_key(state), shape=shape, dtype=dtype)


@_seeded
def StandardNormal(shape, *, seed: natural = 0, seed2: natural = 0, state):
    """Numbers of the standard normal distribution, float32."""
    return _random_normal(next_key(state), shape=_shape("StandardNormal", shape))


@_seeded
def StandardLaplace(shape, *, seed: natural = 0, seed2: natural = 0, state):
    """Numbers of the Laplace distribution with mean 0 and scale 1, float32."""
    centred = uniform(state, _shape("StandardLaplace", shape)) - 0.5 + 2.0**-25  # never exactly -1/2
    return -ops.sign(centred) * ops.log(1.0 - 2.0 * ops.abs(centred))


@_seeded
def UniformReal(shape, *, seed: natural = 0, seed2: natural = 0, state):
    """Numbers of the uniform distribution over [0, 1), float32."""
    return uniform(state, _shape("UniformReal", shape))


@_seeded
def UniformInt(shape, minval, maxval, *, seed: natural = 0, seed2: natural = 0, state):
    """Integers of the uniform distribution over [minval, maxval), int32."""
    low, high = _tensor("UniformInt", "minval", minval), _tensor("UniformInt", "maxval", maxval)
    shape = _shape("UniformInt", shape)
    return _random_int(next_key(state), low, high, shape=shape, dtype=dtypes.int32)


@_seeded
def Gamma(shape, alpha, beta, *, seed: natural = 0, seed2: natural = 0, state):
    """Numbers of the gamma distribution with shape `alpha` and rate `beta`. Shapes: [*shape, *parameters]."""
    return _random_gamma(next_key(state), alpha + beta * 0.0, shape=_shape("Gamma", shape)) / beta


@_seeded
def RandomGamma(shape, alpha, *, seed: natural = 0, seed2: natural = 0, state):
    """Numbers of gamma distributions with rate 1. Shapes: `shape` -> [*shape, *alpha's]; alpha's dtype."""
    return _random_gamma(next_key(state), alpha, shape=_shape("RandomGamma", shape), dtype=alpha.dtype)


@_seeded
def RandomPoisson(
    shape, rate, *, seed: natural = 0, seed2: natural = 0, dtype: _counts = dtypes.int64, state
):
    """Numbers of Poisson distributions. Shapes: `shape` -> [*shape, *rate's]."""
    return _random_poisson(next_key(state), rate, shape=_shape("RandomPoisson", shape), dtype=dtype)


@_seeded
def Poisson(shape, mean, *, seed: natural = 0, seed2: natural = 0, state):
    """Numbers of Poisson distributions, int32. Shapes: `shape` -> [*shape, *mean's]."""
    return _random_poisson(next_key(state), mean, shape=_shape("Poisson", shape), dtype=dtypes.int32)


@_seeded
def TruncatedNormal(
    shape, *, dtype: _floating = dtypes.float32, seed: natural = 0, seed2: natural = 0, state
):
    """Numbers of the standard normal distribution that lie within two deviations."""
    shape = _shape("TruncatedNormal", _tensor("TruncatedNormal", "shape", shape))
    return ops.cast(_truncated(uniform(state, shape, dtypes.float64), -2.0, 2.0), dtype)


def _truncated(u, low, high):
    """Standard normal numbers between bounds, by the inverse of the distribution function."""
    root = 0.5**0.5
    first, last = (ops.erf(_as_float64(bound) * root) for bound in (low, high))
    return ops.erfinv(first + u * (last - first)) / root


def _as_float64(value):
    from mycelia.engine.tensors.tensor import Tensor

    return ops.cast(value, dtypes.float64) if hasattr(value, "asnumpy") else Tensor(value, dtypes.float64)


@_seeded
def ParameterizedTruncatedNormal(
    shape, mean, stdevs, min, max, *, seed: natural = 0, seed2: natural = 0, state
):
    """Numbers of normal distributions cut off at bounds; a parameter is one number or one a sample.

    Shapes: shape (batch, ...), the others [] or [batch] -> shape.
    """
    sizes = _shape("ParameterizedTruncatedNormal", shape)
    each = (-1, *(1,) * (len(sizes) - 1))
    m, s, low, high = (ops.reshape(_as_float64(p), each) for p in (mean, stdevs, min, max))
    drawn = _truncated(uniform(state, sizes, dtypes.float64), (low - m) / s, (high - m) / s)
    return ops.cast(drawn * s + m, mean.dtype)


@_seeded
def LogNormalReverse(input, *, mean: real = 1.0, std: real = 2.0, state):
    """Numbers whose logarithm is normally distributed, in the shape and dtype of `input`."""
    drawn = _random_normal(next_key(state), shape=tuple(input.shape))
    return ops.cast(ops.exp(drawn * std + mean), input.dtype)


@primitive(extra=_HIDDEN)
def NonDeterministicInts(shape, *, dtype: _integers = dtypes.int64):
    """Any integers of the dtype, other ones in each run."""
    sizes = _shape("NonDeterministicInts", _tensor("NonDeterministicInts", "shape", shape))
    if dtype.itemsize == 4:
        return ops.cast(_random_bits(next_key(None), shape=sizes), dtype)
    halves = ops.cast(_random_bits(next_key(None), shape=(2, *sizes)), dtypes.int64)
    return ops.cast(halves[0] * 2**32 + halves[1], dtype)


def _size_list(value):
    if not isinstance(value, list):
        raise Misfit(TypeError, "a list of int")
    return [positive(n) for n in value]


def _float(value):
    if not isinstance(value, float):
        raise Misfit(TypeError, "a float")
    return value


@primitive(extra=_HIDDEN)
def Cauchy(*, size: _size_list, median: _float = 0.0, sigma: _float = 1.0):
    """Numbers of the Cauchy distribution, float32."""
    u = uniform(None, tuple(size)) + 2.0**-25
    return median + sigma * ops.tan((u - 0.5) * math.pi)


# ----------------------------------------------------------------------------------------- choices


@_seeded
def Multinomial(
    x, num_samples, *, seed: natural = 0, seed2: natural = 0, dtype: _index = dtypes.int32, state
):
    """Indices drawn in proportion to weights. Shapes: [C] or [N, C] -> [num_samples] or [N, num_samples]."""
    if x.ndim not in (1, 2):
        raise errors.value_error("Multinomial", f"x must have rank 1 or 2, but its shape is {tuple(x.shape)}")
    return _random_choice(next_key(state), x, count=int(num_samples), dtype=dtype)


@primitive(extra=_HIDDEN)
def MultinomialWithReplacement(x, seed, offset, *, numsamples: integer, replacement: boolean = False):
    """Indices drawn in proportion to weights with the key (seed, offset), int64."""
    if not replacement and numsamples > x.shape[-1]:
        raise errors.value_error(
            "MultinomialWithReplacement",
            f"without replacement numsamples must be at most {x.shape[-1]}, but got {numsamples}",
        )
    return ops.multinomial_with_replacement(x, seed, offset, numsamples, replacement)


@primitive(extra=_HIDDEN, state=lambda constants: {})
def RandomCategorical(logits, num_samples, seed=0, *, dtype: _category = dtypes.int64, state):
    """Classes drawn from the softmax of logits, one sequence for each `seed` that this object is called with.

    Shapes: [N, C] -> [N, num_samples].
    """
    seed = int(seed)
    if seed and seed not in state:
        state[seed] = Generator().manual_seed(seed)
    return _categories(_draw_key(generator=state.get(seed)), logits, int(num_samples), dtype, bool(seed))


def _check_bounds(constants):
    if constants["minval"] > constants["maxval"]:
        both = f"{constants['minval']} and {constants['maxval']}"
        raise errors.value_error("Uniform", f"minval must be at most maxval, but they are {both}")


@primitive(extra=_HIDDEN, state=own_stream, check=_check_bounds)
def Uniform(x, *, minval: _float = 0.0, maxval: _float = 1.0, seed: integer = 0, offset: integer = 0, state):
    """Numbers in [minval, maxval) with the shape and the floating dtype of `x`."""
    if not x.dtype.is_floating:
        raise errors.type_error("Uniform", f"x must be floating, but it is {x.dtype}")
    return minval + (maxval - minval) * uniform(state, tuple(x.shape), x.dtype)


@_seeded
def RandomChoiceWithMask(input_x, *, count: positive = 256, seed: integer = 0, seed2: integer = 0, state):
    """Positions of `count` true elements in random order, and which of them are real: the rest are 0."""
    if not input_x.dtype.is_bool:
        raise errors.type_error("RandomChoiceWithMask", f"input_x must be bool, but it is {input_x.dtype}")
    size = 2 * count * (4 * input_x.ndim + 1)  # both results, and the arrays that they are made of
    if size > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise errors.runtime_error(
            "RandomChoiceWithMask",
            f"{count} positions take {size >> 30} GiB, more than the memory of this machine",
        )
    return _random_mask_choice(next_key(state), input_x, count=count)


@_seeded
def RandomShuffle(input_x, *, seed: natural = 0, seed2: natural = 0, state):
    """The parts along the first axis in random order."""
    if input_x.ndim == 0:
        return input_x
    return ops.gather(input_x, _random_permutation(next_key(state), n=input_x.shape[0]), 0)


@_seeded
def RandpermV2(n, *, seed: integer = 0, offset: integer = 0, dtype: anything = dtypes.int64, state):
    """The numbers 0 to n - 1 in random order."""
    return _random_permutation(next_key(state), n=int(n), dtype=dtype)


@primitive(extra=_HIDDEN)
def Randperm(n, *, max_length: positive = 1, pad: integer = -1, dtype: anything = dtypes.int32):
    """The numbers 0 to n - 1 in random order, followed by `pad` up to `max_length`. Shapes: n [1]."""
    count = int(n)
    if count > max_length:
        raise errors.value_error("Randperm", f"n must be at most max_length {max_length}, but got {count}")
    drawn = _random_permutation(next_key(None), n=count, dtype=dtype)
    return ops.concat((drawn, ops.full((max_length - count,), pad, dtype=dtype)))


def _maybe_seed(value):
    if integer(value) < -1:
        raise Misfit(ValueError, "-1 or an int >= 0")
    return value


def _bernoulli_stream(constants):
    seeds = (constants["seed"], constants["offset"])
    return own_stream(dict(zip(("seed", "seed2"), seeds))) if seeds[0] >= 0 else None


@primitive(extra=_HIDDEN, state=_bernoulli_stream)
def Bernoulli(x, p, *, seed: _maybe_seed = -1, offset: natural = 0, state):
    """Ones with probability `p`, a number or a tensor, in the shape and dtype of x."""
    return ops.cast(uniform(state, tuple(x.shape)) < p, x.dtype)


# ----------------------------------------------------------------------------------------- candidates


def _few_enough(constants):
    if constants["unique"] and constants["num_sampled"] > constants["range_max"]:
        raise errors.value_error(
            f"num_sampled {constants['num_sampled']} must be at most range_max {constants['range_max']}"
        )


@primitive(check=_few_enough, extra=_HIDDEN, state=own_stream)
def UniformCandidateSampler(
    true_classes, *, num_true: positive, num_sampled: positive, unique: boolean, range_max: positive,
    seed: natural = 0, remove_accidental_hits: boolean = False, state,
):  # fmt: skip
    """Classes drawn uniformly, see `ops.uniform_candidate_sampler`."""
    how = (num_true, num_sampled, unique, range_max, next_key(state), "uniform", remove_accidental_hits)
    return sample_candidates("UniformCandidateSampler", true_classes, *how)


@primitive(check=_few_enough, extra=_HIDDEN, state=own_stream)
def LogUniformCandidateSampler(
    true_classes, *, num_true: positive = 1, num_sampled: positive = 5, unique: boolean = True,
    range_max: positive = 5, seed: natural = 0, state,
):  # fmt: skip
    """Classes drawn as of words by frequency, see `ops.log_uniform_candidate_sampler`."""
    how = (num_true, num_sampled, unique, range_max, next_key(state), "log_uniform")
    return sample_candidates("LogUniformCandidateSampler", true_classes, *how)


@primitive
def ComputeAccidentalHits(true_classes, sampled_candidates, *, num_true: positive = 1):
    """Where drawn classes are true ones: rows, positions among the drawn, and the weight -max of float32.

    Shapes: true_classes [N, num_true], sampled_candidates [S] -> int32 [K], int64 [K], float32 [K].
    """
    from mycelia.engine.tensors.tensor import Tensor

    true = true_classes.asnumpy()
    if true.ndim != 2 or true.shape[1] != num_true:
        raise errors.value_error(
            "ComputeAccidentalHits", f"true_classes must be [N, {num_true}], but its shape is {true.shape}"
        )
    hits = true[:, :, None] == sampled_candidates.asnumpy()[None, None, :]
    rows, _, places = np.nonzero(hits)
    weights = np.full(len(rows), -np.finfo(np.float32).max, np.float32)
    return Tensor(rows.astype(np.int32)), Tensor(places.astype(np.int64)), Tensor(weights)
