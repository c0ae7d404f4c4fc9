"""Random numbers of image transforms: Mersenne twister and the distributions of the C++ standard library.

With the same seed they are the numbers that MindSpore's native transforms draw.
"""

from __future__ import annotations

import math

import numpy as np

from mycelia.dataset import config

_NO_ENTROPY = np.random.SeedSequence(0)  # asking the system for random bits costs more than the seeding


class Draws:
    """A stream of random numbers; `seed` None takes the dataset's seed, or an arbitrary one."""

    def __init__(self, seed: int | None = None):
        if seed is None:
            seed = config.get_seed()
        if seed is None:
            seed = int(np.random.default_rng().integers(2**32))
        self._bits = np.random.MT19937(_NO_ENTROPY)
        self.reseed(seed)

    def reseed(self, seed: int) -> None:
        """Start again at a seed; its low 32 bits count."""
        self._seed, self._drawn = seed & 0xFFFFFFFF, 0
        self._bits._legacy_seeding(self._seed)
        self._spare: float | None = None

    def state(self):
        """What `restore` needs to draw the same numbers again; cheap, unlike the twister's own state."""
        return self._seed, self._drawn, self._spare

    def restore(self, state) -> None:
        """Go back to `state`."""
        seed, drawn, spare = state
        self.reseed(seed)
        self._bits.random_raw(drawn, False)
        self._drawn, self._spare = drawn, spare

    def word(self) -> int:
        """32 random bits."""
        self._drawn += 1
        return int(self._bits.random_raw())

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """A float32 in [low, high)."""
        unit = np.float32(self.word()) / np.float32(2**32)
        if unit >= 1:
            unit = np.nextafter(np.float32(1), np.float32(0))
        return float(unit * (np.float32(high) - np.float32(low)) + np.float32(low))

    def double(self) -> float:
        """A float64 in [0, 1)."""
        low = self.word()
        return min((low + self.word() * 2.0**32) / 2.0**64, math.nextafter(1.0, 0.0))

    def chance(self, probability: float) -> bool:
        """True with a probability."""
        return self.double() < probability

    def integer(self, low: int, high: int) -> int:
        """An int in [low, high]."""
        count = high - low + 1
        step = (2**32 - 1) // count
        while (word := self.word()) >= count * step:
            pass
        return low + word // step

    def _two(self, first: int, second: int) -> tuple[int, int]:
        """Ints below `first` and below `second` from one word."""
        return divmod(self.integer(0, first * second - 1), second)

    def shuffle(self, items) -> list:
        """The items in random order."""
        items = list(items)
        at = 1
        if len(items) % 2 == 0 and items:
            other = self.integer(0, 1)
            items[1], items[other] = items[other], items[1]
            at = 2
        for i in range(at, len(items), 2):
            for place, other in zip((i, i + 1), self._two(i + 1, i + 2)):
                items[place], items[other] = items[other], items[place]
        return items

    def sample(self, items, count: int) -> list:
        """`count` of the items, in their order."""
        items, chosen, at = list(items), [], 0
        left, count = len(items), min(count, len(items))
        while count and left >= 2:
            for drawn in self._two(left, left - 1):
                left -= 1
                if drawn < count:
                    chosen.append(items[at])
                    count -= 1
                at += 1
                if not count:
                    break
        while count:
            left -= 1
            if self.integer(0, left) < count:
                chosen.append(items[at])
                count -= 1
            at += 1
        return chosen

    def normal(self, scale: float = 1.0) -> float:
        """A normal number with mean 0 (polar method)."""
        if self._spare is not None:
            value, self._spare = self._spare, None
            return value * scale
        while True:
            x, y = 2 * self.uniform() - 1, 2 * self.uniform() - 1
            square = x * x + y * y
            if 0 < square <= 1:
                break
        factor = math.sqrt(-2 * math.log(square) / square)
        self._spare = x * factor
        return y * factor * scale

    def generator(self) -> np.random.Generator:
        """A NumPy generator seeded by this stream, for permutations and beta draws."""
        return np.random.default_rng(self.word())
