"""Random numbers of a pipeline: each row has a stream of its own, whoever computes it and when.

Its key mixes the seed, the epoch, the node's place in the pipeline and the row's number, so that values do
not depend on how many threads or processes work. All operations of one `map` draw from the row's stream, one
after the other. The engine calls `enter` before a row and `leave` after it; operations ask for `draws()`,
`rng()`, `python()` or `numpy()`, which outside of a pipeline give None or the module's own numbers.
"""

from __future__ import annotations

import random
import threading

import numpy as np

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mixed(x: int) -> int:
    """64 bits that depend on all bits of `x` (splitmix64: Steele, Lea and Flood 2014)."""
    x = (x + _GOLDEN) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def base_key(seed: int, epoch: int, place: int) -> int:
    """What the keys of all rows of a node in an epoch have in common."""
    return mixed(mixed(mixed(seed & _MASK) ^ (epoch & _MASK)) ^ place)


class _Here(threading.local):
    """The row that this thread computes, and its generators as far as they were asked for."""

    def __init__(self):
        self.base: int | None = None
        self.row = 0
        self.draws = self.rng = self.python = self.numpy = None
        self.place: np.ndarray | None = None
        self.seeded: set[str] = set()  # which of them stand at the row's start or behind it

    def key(self) -> int:
        """The key of the row's stream: computed only when something is drawn."""
        return row_key(self.base, self.row)


_here = _Here()


def row_key(base: int, row: int) -> int:
    """The key of one row."""
    return mixed(base ^ mixed(row))


def enter(base: int | None, row: int = 0) -> None:
    """Let this thread draw from the stream of a row."""
    _here.base, _here.row = base, row
    if _here.seeded:
        _here.seeded.clear()


def leave() -> None:
    """This thread computes no row of a pipeline any more."""
    enter(None)


def set_place(place: np.ndarray | None) -> None:
    """Say where this thread's row belongs: the array that its last step may write into, and then returns."""
    _here.place = place


def place() -> np.ndarray | None:
    """Where this thread's row belongs, or None."""
    return _here.place


def active() -> bool:
    """Whether this thread computes a row of a pipeline."""
    return _here.base is not None


def draws():
    """The row's `vision.draws.Draws`; None outside of a pipeline."""
    if _here.base is None:
        return None
    if "draws" not in _here.seeded:
        if _here.draws is None:
            from mycelia.dataset.vision.draws import Draws

            _here.draws = Draws(0)
        _here.draws.reseed(_here.key())
        _here.seeded.add("draws")
    return _here.draws


def rng() -> np.random.Generator | None:
    """The row's NumPy generator; None outside of a pipeline."""
    if _here.base is None:
        return None
    if "rng" not in _here.seeded:
        if _here.rng is None:
            _here.rng = np.random.Generator(np.random.PCG64(0))
        key = _here.key()
        high, low = mixed(key ^ 1), mixed(key ^ 2)
        _here.rng.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": high << 64 | low, "inc": key << 1 | 1},
            "has_uint32": 0,
            "uinteger": 0,
        }
        _here.seeded.add("rng")
    return _here.rng


def python() -> random.Random:
    """The row's numbers in the form of the module `random`; the module's own outside of a pipeline."""
    if _here.base is None:
        return random
    if "python" not in _here.seeded:
        if _here.python is None:
            _here.python = random.Random()
        _here.python.seed(_here.key())
        _here.seeded.add("python")
    return _here.python


def numpy() -> np.random.RandomState:
    """The row's numbers in the form of the module `numpy.random`; the module's own outside of a pipeline."""
    if _here.base is None:
        return np.random
    if "numpy" not in _here.seeded:
        if _here.numpy is None:
            _here.numpy = np.random.RandomState(0)
        _here.numpy.seed(_here.key() & 0xFFFFFFFF)
        _here.seeded.add("numpy")
    return _here.numpy
