"""A tensor of which each process of a group keeps one part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Share:
    """Part `rank` of `size` equal parts of a tensor of `shape`: of its elements in row-major order those from
    ``rank * length`` on. What is missing in the last parts are zeros.
    """

    rank: int
    size: int
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Elements of the whole tensor."""
        return math.prod(self.shape)

    @property
    def length(self) -> int:
        """Elements of a part."""
        return -(-self.count // self.size)

    @property
    def place(self) -> tuple[int, int]:
        """Where the part begins and ends among the elements there are."""
        begin = min(self.rank * self.length, self.count)
        return begin, min(begin + self.length, self.count)

    def of(self, whole: np.ndarray) -> np.ndarray:
        """The part [length] of a tensor."""
        begin, end = self.place
        part = np.zeros(self.length, whole.dtype)
        part[: end - begin] = whole.reshape(-1)[begin:end]
        return part

    def join(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """The tensor of which these are all parts, in order."""
        return np.concatenate(parts)[: self.count].reshape(self.shape)
