"""Draws from a counter: Philox4x32-10 of Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".

A key is an int64 tensor (seed, offset). Element i of a draw is word ``i % 4`` of the Philox block with
counter ``(i // 4, offset)`` and key ``seed``. So a draw does not depend on threads, device or mode, and a
gradient can make the same numbers again from the key.
"""

import math

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.define import op

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)  # golden ratio and sqrt(3) - 1, as in the paper
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def _np_philox(seed, offset, counters):
    """Words [n, 4] (uint32) of the blocks whose low 64 counter bits are `counters` (uint64 [n])."""
    seed, offset = int(seed) & 0xFFFFFFFFFFFFFFFF, int(offset) & 0xFFFFFFFFFFFFFFFF
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    c0, c1 = counters & _LOW, counters >> _HALF
    c2 = np.full_like(counters, offset & 0xFFFFFFFF)
    c3 = np.full_like(counters, offset >> 32)
    for _ in range(10):
        first, second = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1 = (second >> _HALF) ^ c1 ^ np.uint64(k0), second & _LOW
        c2, c3 = (first >> _HALF) ^ c3 ^ np.uint64(k1), first & _LOW
        k0, k1 = (k0 + _KEY_STEPS[0]) & 0xFFFFFFFF, (k1 + _KEY_STEPS[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def _np_words(key, count):
    """The first `count` words (uint32) of a draw."""
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    return _np_philox(key[0], key[1], blocks).reshape(-1)[:count]


def _np_long_words(key, count):
    """The first `count` 64-bit words of a draw: two words each, the first is the low half."""
    words = _np_words(key, 2 * count).reshape(-1, 2).astype(np.uint64)
    return words[:, 0] | words[:, 1] << _HALF


def _np_uniform(key, count, dtype):
    """Numbers in [0, 1): 24 random bits for float32 and narrower, 53 for float64."""
    if dtype == np.float64:
        return (_np_long_words(key, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return ((_np_words(key, count) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)).astype(dtype)


def _np_normal(key, count, dtype):
    """Standard normal numbers by Box and Muller: a pair from each pair of words."""
    pairs = (count + 1) // 2
    if dtype == np.float64:
        u = _np_uniform(key, 2 * pairs, np.float64).reshape(-1, 2)
        radius = np.sqrt(-2 * np.log(u[:, 0] + 2.0**-53))  # (0, 1]: the logarithm stays finite
    else:
        u = (_np_words(key, 2 * pairs) >> np.uint32(8)).reshape(-1, 2) * 2.0**-24
        radius = np.sqrt(-2 * np.log(u[:, 0] + 2.0**-24))
    angle = 2 * math.pi * u[:, 1]
    return (
        np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).reshape(-1)[:count].astype(dtype)
    )


def _check_key(key):
    if key.shape != (2,) or key.dtype is not dtypes.int64:
        raise errors.value_error(
            f"key must be int64 of shape (2,), got {key.dtype.name} of shape {key.shape}"
        )


def _draw_type(key, shape, dtype):
    _check_key(key)
    if any(n < 0 for n in shape):
        raise errors.value_error(f"shape must not be negative, got {shape}")
    return TensorType(dtype, tuple(shape))


def _infer_floating_draw(key, *, shape, dtype):
    if not dtype.is_floating:
        raise TypeError(f"dtype must be floating, got {dtype.name}")
    return _draw_type(key, shape, dtype)


_KEY = np.array([0x1234567890ABC, 5], np.int64)


@op(name="random_bits", nondiff=True)
def _random_bits(key, *, shape: "ints"):
    """The words of a draw.

    Shapes: key int64 [2] -> `shape`, uint32.
    """
    return _np_words(key, math.prod(shape)).reshape(shape)


@_random_bits.infer
def _random_bits(key, *, shape):
    return _draw_type(key, shape, dtypes.uint32)


@_random_bits.samples
def _random_bits(rand):
    yield _KEY, dict(shape=(3, 5))
    yield _KEY, dict(shape=(131,))
    yield _KEY, dict(shape=())
    yield _KEY, dict(shape=(0, 2))
    yield np.array([-1, -1], np.int64), dict(shape=(9,))


@op(name="random_uniform", infer=_infer_floating_draw, nondiff=True)
def _random_uniform(key, *, shape: "ints", dtype: "dtype" = dtypes.float32):
    """Numbers of the uniform distribution over [0, 1).

    Shapes: key int64 [2] -> `shape`.  dtypes: floating.
    """
    return _np_uniform(key, math.prod(shape), dtype.np).reshape(shape)


@_random_uniform.samples
def _random_uniform(rand):
    yield _KEY, dict(shape=(3, 5))
    yield _KEY, dict(shape=(131,))
    yield _KEY, dict(shape=(7,), dtype=dtypes.float64)
    yield _KEY, dict(shape=())
    yield _KEY, dict(shape=(0,))


@op(name="random_normal", infer=_infer_floating_draw, nondiff=True)
def _random_normal(key, *, shape: "ints", dtype: "dtype" = dtypes.float32):
    """Numbers of the standard normal distribution.

    Shapes: key int64 [2] -> `shape`.  dtypes: floating.  Source: Box and Muller 1958.
    """
    return _np_normal(key, math.prod(shape), dtype.np).reshape(shape)


@_random_normal.samples
def _random_normal(rand):
    yield _KEY, dict(shape=(3, 5))
    yield _KEY, dict(shape=(131,))
    yield _KEY, dict(shape=(7,), dtype=dtypes.float64)
    yield _KEY, dict(shape=())
    yield _KEY, dict(shape=(0,))


@op(name="random_int", nondiff=True)
def _random_int(key, low, high, *, shape: "ints", dtype: "dtype" = dtypes.int64):
    """Integers of the uniform distribution over [low, high).

    Shapes: key int64 [2], low and high [] -> `shape`.  dtypes: any.
    Errors: ValueError if low is not below high.
    """
    low, high = int(low), int(high)
    if low >= high:
        raise ValueError(f"low must be below high, got {low} and {high}")
    # The remainder of 64 bits: a range of n is uneven by n / 2^64 at most.
    words = _np_long_words(key, math.prod(shape)) % np.uint64(high - low)
    return (words.astype(np.int64) + low).astype(dtype.np).reshape(shape)


@_random_int.infer
def _random_int(key, low, high, *, shape, dtype):
    for name, bound in (("low", low), ("high", high)):
        if bound.size != 1:
            raise ValueError(f"{name} must be one number, got shape {bound.shape}")
    return _draw_type(key, shape, dtype)


@_random_int.samples
def _random_int(rand):
    yield _KEY, np.array(-3, np.int64), np.array(9, np.int64), dict(shape=(3, 5))
    yield _KEY, np.array(0, np.int64), np.array(2, np.int64), dict(shape=(131,), dtype=dtypes.int32)
    yield _KEY, np.array(0, np.int64), np.array(1, np.int64), dict(shape=(0,))


@op(name="random_permutation", nondiff=True)
def _random_permutation(key, *, n: "int", dtype: "dtype" = dtypes.int64):
    """The numbers 0 to n - 1 in random order.

    Shapes: key int64 [2] -> [n].  dtypes: integer.
    """
    return np.argsort(_np_long_words(key, n), kind="stable").astype(dtype.np)


@_random_permutation.infer
def _random_permutation(key, *, n, dtype):
    return _draw_type(key, (n,), dtype)


@_random_permutation.samples
def _random_permutation(rand):
    yield _KEY, dict(n=17)
    yield _KEY, dict(n=0)
    yield _KEY, dict(n=5, dtype=dtypes.int32)


@op(name="random_choice", nondiff=True)
def _random_choice(key, weights, *, count: "int", replacement: "bool" = True, dtype: "dtype" = dtypes.int32):
    """Indices along the last axis, drawn in proportion to `weights`, which need not add up to one.

    Without replacement the first arrivals of exponential clocks are taken.
    Shapes: key int64 [2], weights [C] or [N, C] -> [count] or [N, count].  dtypes: floating weights.
    Errors: ValueError if a weight is negative or not finite, a row has no weight,
    or fewer than `count` choices.
    """
    rows = weights.reshape(-1, weights.shape[-1]).astype(np.float64)
    if not (np.isfinite(rows).all() and (rows >= 0).all() and (rows.sum(1) > 0).all()):
        raise ValueError("weights must be finite, not negative, and not all zero in a row")
    if replacement:
        u = _np_uniform(key, len(rows) * count, np.float64).reshape(len(rows), count)
        edges = np.cumsum(rows, 1)
        last = np.array([np.flatnonzero(row)[-1] for row in rows], np.int64).reshape(-1, 1)
        picked = np.stack([
            np.searchsorted(e, x * e[-1], side="right") for e, x in zip(edges, u, strict=True)
        ]) if len(rows) else np.zeros((0, count), np.int64)  # fmt: skip
        picked = np.minimum(picked, last)  # rounding must not step over the last weight that is positive
    else:
        if count and (np.count_nonzero(rows, axis=1) < count).any():
            raise ValueError(f"count {count} exceeds the number of positive weights of a row")
        u = _np_uniform(key, rows.size, np.float64).reshape(rows.shape)
        with np.errstate(divide="ignore"):
            arrival = np.where(rows > 0, -np.log1p(-u) / rows, np.inf)
        picked = np.argsort(arrival, axis=1, kind="stable")[:, :count]
    return picked.reshape(*weights.shape[:-1], count).astype(dtype.np)


@_random_choice.infer
def _random_choice(key, weights, *, count, replacement, dtype):
    if weights.rank not in (1, 2):
        raise ValueError(f"weights must be [C] or [N, C], got shape {weights.shape}")
    return _draw_type(key, (*weights.shape[:-1], count), dtype)


@_random_choice.samples
def _random_choice(rand):
    yield _KEY, rand.positive(5), dict(count=9)
    yield _KEY, rand.positive(3, 5), dict(count=4, replacement=False)
    yield _KEY, np.array([0.0, 1.0, 0.0], np.float32), dict(count=3, dtype=dtypes.int64)


@_random_choice.batch
def _random_choice(call):
    """With one key for all, the examples draw as the rows of one call do."""
    if call.batched[0]:
        return _batch.one_by_one(call)
    weights = call.whole(1)
    return call.shaped(call.run([call.operands[0], _batch.reshaped(weights, (-1, weights.shape[-1]))]))


@op(name="random_mask_choice", outputs=2, nondiff=True)
def _random_mask_choice(key, mask, *, count: "int" = 256):
    """Positions of `count` true elements in random order, and which are real: fewer are padded with 0.

    Shapes: key int64 [2], mask bool [...] -> int32 [count, rank of mask], bool [count].
    """
    positions = np.argwhere(mask)
    order = np.argsort(_np_long_words(key, len(positions)), kind="stable")[:count]
    picked, real = np.zeros((count, mask.ndim), np.int32), np.arange(count) < len(order)
    picked[: len(order)] = positions[order]
    return picked, real


@_random_mask_choice.infer
def _random_mask_choice(key, mask, *, count):
    if not mask.dtype.is_bool:
        raise TypeError(f"input_x must be bool, got {mask.dtype.name}")
    if count < 1:
        raise ValueError(f"count must be positive, got {count}")
    return _draw_type(key, (count, mask.rank), dtypes.int32), TensorType(dtypes.bool_, (count,))


@_random_mask_choice.samples
def _random_mask_choice(rand):
    yield _KEY, rand.bools(4, 5), dict(count=6)
    yield _KEY, np.array([True, False, True]), dict(count=4)
    yield _KEY, np.zeros((2, 2), np.bool_), dict(count=3)


def _np_until_accepted(key, count, propose):
    """Rejection sampling: ``propose(at, u) -> (values, accepted)`` for the elements
    `at` still without a value.

    `u` holds four numbers in (0, 1) an element: the Philox block whose counter is (element, round).
    """
    values = np.zeros(count)
    waiting = np.arange(count)
    attempt = 0
    while len(waiting):
        counters = waiting.astype(np.uint64) | np.uint64(attempt) << _HALF
        u = (_np_philox(key[0], key[1], counters).astype(np.float64).T + 0.5) * 2.0**-32
        proposed, accepted = propose(waiting, u)
        values[waiting[accepted]] = proposed[accepted]
        waiting = waiting[~accepted]
        attempt += 1
    return values


def _np_repeated(parameter, shape):
    """The parameter of each element of a result [*shape, *parameter.shape], flat."""
    return np.broadcast_to(parameter.astype(np.float64), (*shape, *parameter.shape)).reshape(-1)


@op(name="random_gamma", nondiff=True)
def _random_gamma(key, alpha, *, shape: "ints", dtype: "dtype" = dtypes.float32):
    """Numbers of the gamma distribution with rate 1, `shape` for each `alpha`.

    Shapes: key int64 [2], alpha [...] -> [*shape, ...].  dtypes: floating.  Errors: ValueError if alpha is
    not positive.  Source: Marsaglia and Tsang 2000.
    """
    a = _np_repeated(alpha, shape)
    if not (a > 0).all():
        raise ValueError("alpha must be positive")
    d = (
        a + (a < 1) - 1 / 3
    )  # the method needs alpha >= 1; for less it runs with alpha + 1 and is lifted at the end

    def propose(at, u):
        z = np.sqrt(-2 * np.log(u[0])) * np.cos(2 * math.pi * u[1])
        cube = np.maximum(1 + z / np.sqrt(9 * d[at]), 0) ** 3
        with np.errstate(divide="ignore"):
            accepted = np.log(u[2]) < 0.5 * z * z + d[at] * (1 - cube + np.log(cube))
        return d[at] * cube * np.where(a[at] < 1, u[3] ** (1 / a[at]), 1), accepted

    return _np_until_accepted(key, len(a), propose).astype(dtype.np).reshape(*shape, *alpha.shape)


@_random_gamma.infer
def _random_gamma(key, alpha, *, shape, dtype):
    return _draw_type(key, (*shape, *alpha.shape), dtype)


@_random_gamma.samples
def _random_gamma(rand):
    yield _KEY, np.array([0.3, 1.0, 7.5], np.float32), dict(shape=(4,))
    yield _KEY, np.array(2.0, np.float32), dict(shape=(3, 2))


@op(name="random_poisson", nondiff=True)
def _random_poisson(key, rate, *, shape: "ints", dtype: "dtype" = dtypes.float32):
    """Numbers of the Poisson distribution, `shape` for each `rate`.

    Shapes: key int64 [2], rate [...] -> [*shape, ...].  dtypes: any.
    Errors: ValueError if a rate is negative.
    Source: inversion for small rates; Hoermann 1993, "The transformed rejection method" (PTRS), from 10 on.
    """
    mean = _np_repeated(rate, shape)
    if not (mean >= 0).all():
        raise ValueError("rate must not be negative")
    log_factorial = np.frompyfunc(lambda k: math.lgamma(k + 1), 1, 1)
    b = 0.931 + 2.53 * np.sqrt(mean)  # the constants of PTRS
    a = -0.059 + 0.02483 * b

    def propose(at, u):
        values, accepted = np.zeros(len(at)), np.ones(len(at), bool)
        small = mean[at] < 10
        if small.any():
            values[small] = _np_poisson_quantile(u[0][small], mean[at][small])
        big = ~small
        if big.any():
            m, aa, bb = mean[at][big], a[at][big], b[at][big]
            centred = u[0][big] - 0.5
            room = 0.5 - np.abs(centred)
            k = np.floor((2 * aa / room + bb) * centred + m + 0.43)
            inverse_alpha = 1.1239 + 1.1328 / (bb - 3.4)
            left = np.log(u[1][big] * inverse_alpha / (aa / (room * room) + bb))
            right = k * np.log(m) - m - log_factorial(np.maximum(k, 0)).astype(np.float64)
            values[big], accepted[big] = k, (k >= 0) & (left <= right)
        return values, accepted

    return _np_until_accepted(key, len(mean), propose).astype(dtype.np).reshape(*shape, *rate.shape)


def _np_poisson_quantile(u, mean):
    """Smallest k whose cumulative probability exceeds u."""
    k, term = np.zeros_like(u), np.exp(-mean)
    total = term.copy()
    searching = u >= total
    while searching.any():
        k = k + searching
        term = np.where(searching, term * mean / np.maximum(k, 1), term)
        total = np.where(searching, total + term, total)
        searching = searching & (u >= total) & (term > 0)
    return k


@_random_poisson.infer
def _random_poisson(key, rate, *, shape, dtype):
    return _draw_type(key, (*shape, *rate.shape), dtype)


@_random_poisson.samples
def _random_poisson(rand):
    yield _KEY, np.array([0.0, 0.3, 4.0, 60.0], np.float32), dict(shape=(5,))
    yield _KEY, np.array(2.0, np.float32), dict(shape=(3, 2), dtype=dtypes.int64)


# ------------------------------------------------------------------------ dropout


@op(name="dropout")
def _dropout(x, key, *, p: "float" = 0.5):
    """Zeroes elements with probability `p` and scales the others by ``1 / (1 - p)``;
    the key alone decides which.

    The map is linear in `x` and its own transpose, so no mask is kept for the gradient.
    Shapes: x any, key int64 [2] -> x's.  dtypes: floating.  Errors: ValueError if `p` is not in [0, 1).
    """
    kept = _np_words(key, x.size).reshape(x.shape) >= np.uint32(_drop_threshold(p))
    return np.where(kept, x * x.dtype.type(1 / (1 - p)), x.dtype.type(0))


def _drop_threshold(p):
    """A word below this drops its element."""
    return min(int(p * 2.0**32), 0xFFFFFFFF)


@_dropout.infer
def _dropout(x, key, *, p):
    if not 0 <= p < 1:
        raise ValueError(f"p must be in [0, 1), got {p}")
    _check_key(key)
    return x


@_dropout.vjp
def _dropout(ct, key, *, p):
    return _dropout(ct, key, p=p), None


@_dropout.samples
def _dropout(rand):
    yield rand(3, 5), _KEY
    yield rand(131), _KEY, dict(p=0.1)
    yield rand(7), _KEY, dict(p=0.0)
    yield rand(0), _KEY


@_dropout.batch
def _dropout(call):
    """One draw for the whole batch: each example has a mask of its own."""
    return _batch.one_by_one(call) if call.batched[1] else call.run(call.operands)
