"""The numbers that a C++ program has of `std::minstd_rand0` and a seed, as MindSpore's CPU ops draw them.

Sources: Park and Miller 1988, "Random number generators: good ones are hard to find"; the seed is mixed by
Philox4x32-10 (Salmon et al. 2011) first.
"""

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ops.control_flow.python_call import call_python
from mycelia.engine.ops.random.draws import _np_philox

_MODULUS, _FACTOR = 2**31 - 1, 16807
_MIX_KEY = 0x02461E29_3EC8F720  # of MindSpore, for mixing the global seed with an op's

__all__: list[str] = []


def _mixed(seed):
    """The 64-bit state that an op's seed begins at."""
    words = _np_philox(_MIX_KEY, seed, np.zeros(1, np.uint64))[0]
    return int(words[0]) | int(words[1]) << 32


def _np_uniform_doubles(seed, skipped, count):
    """`count` numbers in [0, 1) after the first `skipped` of the sequence of `seed`: two steps each."""
    start = _mixed(seed) % _MODULUS or 1
    start = start * pow(_FACTOR, 2 * skipped, _MODULUS) % _MODULUS
    states = np.array([start * _FACTOR % _MODULUS], np.uint64)
    while len(states) < 2 * count:
        step = np.uint64(pow(_FACTOR, len(states), _MODULUS))
        states = np.concatenate([states, states * step % np.uint64(_MODULUS)])
    low, high = (states[: 2 * count].reshape(-1, 2) - np.uint64(1)).astype(np.float64).T
    return (low + high * (_MODULUS - 1)) / float(_MODULUS - 1) ** 2


def uniform_doubles(key, count):
    """The next `count` numbers for a key (seed, draw): earlier draws are taken to be as long. float64."""

    def run(key):
        seed, draw = (int(n) for n in key)
        return _np_uniform_doubles(seed & 0xFFFFFFFFFFFFFFFF, draw * count, count)

    return call_python(run, (key,), ((dtypes.float64, (count,)),))[0]
