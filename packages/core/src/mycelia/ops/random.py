"""Random numbers from a counter: Philox4x32-10 of Salmon et al. 2011, "Parallel random numbers: as easy as
1, 2, 3".

A generator's state is an int64 tensor (seed, offset). Each draw takes the state as its key and moves the
offset by one; element i of the draw is word ``i % 4`` of the Philox block with counter ``(i // 4, offset)``
and key ``seed``. So a draw does not depend on threads, device or mode, and a gradient can make the same
numbers again from the key.
"""

import math
import os

import numpy as np

from mycelia import config, dtypes
from mycelia.ir.types import TensorType
from mycelia.ops import activation as _activation
from mycelia.ops import index as _index
from mycelia.ops import math as _math
from mycelia.ops import reduce as _reduce
from mycelia.ops.cast import cast
from mycelia.ops.define import op
from mycelia.ops.state import assign

# ------------------------------------------------------------------------ Philox

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
        raise ValueError(f"key must be int64 of shape (2,), got {key.dtype.name} of shape {key.shape}")


def _draw_type(key, shape, dtype):
    _check_key(key)
    if any(n < 0 for n in shape):
        raise ValueError(f"shape must not be negative, got {shape}")
    return TensorType(dtype, tuple(shape))


def _infer_floating_draw(key, *, shape, dtype):
    if not dtype.is_floating:
        raise TypeError(f"dtype must be floating, got {dtype.name}")
    return _draw_type(key, shape, dtype)


@op(name="rng_next", updates=("state",), nondiff=True)
def _rng_next(state):
    """The key of the next draw of a generator, whose offset moves on by one.

    Shapes: state int64 [2] (seed, offset) -> int64 [2].
    """
    return state + np.array([0, 1], np.int64), state.copy()


@_rng_next.infer
def _rng_next(state):
    _check_key(state)
    return state, state


@_rng_next.samples
def _rng_next(rand):
    yield np.array([7, 3], np.int64)


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

    Shapes: key int64 [2], low and high [] -> `shape`.  dtypes: any.  Errors: ValueError if low is not below
    high.
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
    Errors: ValueError if a weight is negative or not finite, a row has no weight, or fewer than `count`
    choices.
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


def _np_until_accepted(key, count, propose):
    """Rejection sampling: ``propose(at, u) -> (values, accepted)`` for the elements `at` still without a
    value.

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

    Shapes: key int64 [2], rate [...] -> [*shape, ...].  dtypes: any.  Errors: ValueError if a rate is
    negative.
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
    """Zeroes elements with probability `p` and scales the others by ``1 / (1 - p)``; the key alone decides
    which.

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


# ------------------------------------------------------------------------ generators


class Generator:
    """A stream of random numbers with a seed and a position.

    The state is a tensor that draws update, so that compiled code continues the stream where eager code left
    it.
    """

    def __init__(self):
        self._seed = 0
        self._tensor = None

    @property
    def _state(self):
        if self._tensor is None:
            from mycelia.tensor import Parameter  # tensors are built upon the ops

            state = np.array([self._seed, 0], np.int64)
            self._tensor = Parameter(state, name="random_state", requires_grad=False)
        return self._tensor

    def _restart(self, seed, offset=0):
        self._seed = seed
        if self._tensor is not None:
            from mycelia.tensor import Tensor

            self._tensor.set_data(Tensor(np.array([seed, offset], np.int64)))

    def _next_key(self):
        return _rng_next(self._state)

    def seed(self):
        """Sets a seed that the operating system makes up and returns it."""
        fresh = int.from_bytes(os.urandom(4), "little")
        self._restart(fresh)
        return fresh

    def manual_seed(self, seed):
        """Restarts the stream at `seed`, an integer; returns the generator."""
        if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
            raise TypeError(f"manual_seed: seed must be an int, got {type(seed).__name__}")
        self._restart(_signed(int(seed)))
        return self

    def initial_seed(self):
        """The seed that the stream started from."""
        return self._seed

    def get_state(self):
        """The state as a uint8 tensor of 16 bytes: seed and position."""
        from mycelia.tensor import Tensor

        return Tensor(self._state.asnumpy().view(np.uint8).copy())

    def set_state(self, state):
        """Continues from a state that `get_state` returned."""
        data = np.ascontiguousarray(state.asnumpy())
        if data.dtype != np.uint8 or data.size != 16:
            raise ValueError(
                f"set_state: state must be 16 bytes of uint8, got {data.dtype} of shape {data.shape}"
            )
        seed, offset = data.reshape(-1).view(np.int64)
        self._state  # noqa: B018 - the tensor must exist to take the position
        self._restart(int(seed), int(offset))


def _signed(seed):
    """`seed` modulo 2^64 as an int64."""
    return (seed + 2**63) % 2**64 - 2**63


class _Streams:
    """The generators behind the functions of this module: one without a seed argument, one for each that is
    given."""

    def __init__(self):
        self.global_seed = None
        self.default = Generator()
        self.is_seeded = False
        self.by_seed = {}

    def default_generator(self):
        if not self.is_seeded:
            self.default.seed()  # never the same twice unless the user asks for it
            self.is_seeded = True
        return self.default

    def generator(self, seed):
        if seed not in self.by_seed:
            self.by_seed[seed] = Generator().manual_seed(self._mixed(seed))
        return self.by_seed[seed]

    def _mixed(self, seed):
        return seed if self.global_seed is None else seed ^ self.global_seed * 0x9E3779B97F4A7C15 + 1

    def restart(self, seed):
        self.default.manual_seed(seed)
        self.is_seeded = True
        for own, generator in self.by_seed.items():
            generator.manual_seed(self._mixed(own))


_streams = _Streams()


def _follow(seed):
    """`ms.set_seed` and MYCELIA_SEED: compiled code sees the restart too, since it reads the state."""
    if seed is not None:
        _streams.global_seed = seed
        _streams.restart(seed)


config.on_change("seed", _follow)
_follow(config.get("seed"))


def set_seed(seed):
    """Fixes all random numbers from here on, NumPy's global ones included; `seed` is an integer of 0 or
    more."""
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
        raise TypeError(f"The argument 'seed' must be type of int, but got {type(seed)}.")
    if seed < 0:
        raise ValueError(
            f"For 'global_seed', the 'seed' must be int and must >= 0, but got '{seed}' with type 'int'."
        )
    np.random.seed(seed % 2**32)
    _streams.global_seed = int(seed)
    _streams.restart(int(seed))


def get_seed():
    """The seed of the last `set_seed`, None if there was none."""
    return _streams.global_seed


def manual_seed(seed):
    """Restarts the default generator at `seed` and returns it."""
    _streams.is_seeded = True
    return _streams.default.manual_seed(seed)


def seed():
    """Restarts the default generator at a seed that the operating system makes up, and returns that."""
    _streams.is_seeded = True
    return _streams.default.seed()


def initial_seed():
    """The seed of the default generator."""
    return _streams.default_generator().initial_seed()


def get_rng_state():
    """The default generator's state, a uint8 tensor of 16 bytes."""
    return _streams.default_generator().get_state()


def set_rng_state(state):
    """Continues the default generator from a state that `get_rng_state` returned."""
    _streams.is_seeded = True
    _streams.default.set_state(state)


def _draw_key(seed=None, generator=None):
    """Key of the next draw: of `generator`, of the stream that belongs to `seed`, or of the default
    stream."""
    if generator is None:
        generator = _streams.default_generator() if seed is None else _streams.generator(int(seed))
    return generator._next_key()


# ------------------------------------------------------------------------ public functions


def _sizes(name, size):
    """A shape from an int, ints, a tuple, a list or a tensor."""
    if len(size) == 1 and not isinstance(size[0], (int, np.integer)):
        size = size[0].asnumpy().reshape(-1).tolist() if hasattr(size[0], "asnumpy") else size[0]
    for n in size:
        if not isinstance(n, (int, np.integer)) or isinstance(n, bool):
            raise TypeError(f"{name}: a shape must consist of integers, got {n!r}")
        if n < 0:
            raise ValueError(f"{name}: a shape must not be negative, got {tuple(size)}")
    return tuple(int(n) for n in size)


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
    """`randn` with the shape of `input`, and its dtype unless `dtype` is given."""
    return _normal(tuple(input.shape), dtype or input.dtype, seed)


def _integers(name, low, high, shape, seed, dtype, generator=None):
    dtype = dtype or dtypes.int64
    if not dtype.is_integer:
        raise ValueError(f"For '{name}', the 'dtype' must be an int type, but got {dtype}.")
    return _random_int(_draw_key(seed, generator), low, high, shape=shape, dtype=dtype)


def randint(low, high, size, seed=None, *, dtype=None):
    """Integers of the uniform distribution over [low, high).

    Shapes: `size`, a tuple.  dtypes: integer, int64 by default.  Errors: ValueError if low is not below high.
    """
    return _integers("randint", low, high, _sizes("randint", (size,)), seed, dtype)


def randint_like(input, low, high, seed=None, *, dtype=None):
    """`randint` with the shape of `input`, and its dtype unless `dtype` is given."""
    return _integers("randint_like", low, high, tuple(input.shape), seed, dtype or input.dtype)


def randperm(n, seed=0, offset=0, dtype=dtypes.int64):
    """The numbers 0 to n - 1 in random order; a `seed` of 0 continues the default stream.

    Shapes: [n].  dtypes: integer.  Errors: ValueError if n is negative.
    """
    if n < 0:
        raise ValueError(f"randperm: n must be 0 or more, got {n}")
    return _random_permutation(_draw_key(seed or None), n=int(n), dtype=dtype)


def shuffle(x, seed=None):
    """`x` with its first axis in random order.

    Shapes: [n, ...] -> same.  dtypes: any.
    """
    return x if x.ndim == 0 else _index.gather(x, randperm(x.shape[0], seed or 0), 0)


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
    return -_math.sign(centred) * _math.log(1.0 - 2.0 * _math.abs(centred))


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

    Shapes: [*shape, ...] with the shape of rate.  dtypes: any.
    """
    return _random_poisson(_draw_key(seed), rate, shape=_sizes("random_poisson", (shape,)), dtype=dtype)


def bernoulli(input, p=0.5, seed=None):
    """Ones with probability `p` and zeros, in the shape and dtype of `input`.

    Shapes: input any, p a number or broadcastable to it -> input's.
    """
    if isinstance(p, (int, float)) and not 0 <= p <= 1:
        raise ValueError(f"bernoulli: p must be in [0, 1], got {p}")
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
    from mycelia.tensor import Tensor

    key = Tensor(np.array([int(seed), int(offset)], np.int64))
    return _random_choice(key, x, count=int(numsamples), replacement=bool(replacement), dtype=dtypes.int64)


def random_categorical(logits, num_sample, seed=0, dtype=dtypes.int64):
    """Class indices drawn from the softmax of `logits`.

    Shapes: logits [N, C] -> [N, num_sample].  dtypes: integer result.
    """
    weights = _activation.softmax(logits, -1)
    return _random_choice(_draw_key(seed or None), weights, count=int(num_sample), dtype=dtype)


def gumbel_softmax(logits, tau=1.0, hard=False, dim=-1):
    """A soft sample of the classes: softmax of ``(logits + Gumbel noise) / tau`` along `dim`.

    `hard` gives the one-hot of the largest entry, with the gradient of the soft sample.
    Shapes: any -> same.  dtypes: floating.  Source: Jang et al. 2017.
    """
    noise = -_math.log(-_math.log(_uniform(tuple(logits.shape), logits.dtype) + 2.0**-25))
    soft = _activation.softmax((logits + noise) * (1.0 / tau), dim)
    if not hard:
        return soft
    from mycelia.autodiff.transforms import stop_gradient  # autodiff is built upon the ops

    best = cast(soft == _reduce.amax(soft, dim, True), soft.dtype)
    return soft + stop_gradient(best - soft)


def dropout(input, p=0.5, training=True, seed=None):
    """Zeroes elements with probability `p` and scales the others by ``1 / (1 - p)``; `input` itself if not
    training.

    Shapes: any -> same.  dtypes: floating.  Errors: ValueError if `p` is not in [0, 1).
    """
    if not training or p == 0:
        return input
    return _dropout(input, _draw_key(seed), p=float(p))


def _channel_dropout(name, input, p, training, ranks):
    if input.ndim not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise ValueError(f"{name}: input must have rank {wanted}, got shape {tuple(input.shape)}")
    if not 0 <= p < 1:
        raise ValueError(f"{name}: p must be in [0, 1), got {p}")
    if not training or p == 0:
        return input
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

    Shapes: any -> same.  dtypes: floating.  Errors: ValueError unless 0 <= lower <= upper <= 1.
    """
    if not 0 <= lower <= upper <= 1:
        raise ValueError(f"rrelu: 0 <= lower <= upper <= 1 must hold, got {lower} and {upper}")
    slope = _uniform(tuple(input.shape), input.dtype) * (upper - lower) + lower
    return _index.where(input > 0, input, input * slope)


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
    return _overwrite(input, -_math.log(1.0 - _uniform(tuple(input.shape), None, None, generator)) / lambd)


def random_(input, from_=0, to=None, *, generator=None):
    """Overwrites `input` with integers of [from_, to); without `to` with the range that its dtype holds
    exactly."""
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
    "bernoulli", "dropout", "dropout1d", "dropout2d", "dropout3d", "exponential_", "gamma", "gumbel_softmax",
    "laplace", "multinomial", "multinomial_with_replacement", "normal", "normal_", "poisson", "rand",
    "rand_like",
    "randint", "randint_like", "randn", "randn_like", "random_", "random_categorical", "random_gamma",
    "random_poisson", "randperm", "rrelu", "shuffle", "standard_laplace", "standard_normal", "uniform",
    "uniform_",
]  # fmt: skip
