"""A tensor of which each process of a group keeps one part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Share:
    """Part `rank` of `size` equal parts of a tensor of `shape`: of its elements in row-major order those from
    ``rank * length`` on. What is missing in the last parts are zeros. With an `owner` from 0 on that part has
    all elements, in their shape, and the others none.
    """

    rank: int
    size: int
    shape: tuple[int, ...]
    owner: int = -1

    @property
    def count(self) -> int:
        """Elements of the whole tensor."""
        return math.prod(self.shape)

    @property
    def length(self) -> int:
        """Elements of the part."""
        if self.owner >= 0:
            return self.count if self.rank == self.owner else 0
        return -(-self.count // self.size)

    @property
    def part_shape(self) -> tuple[int, ...]:
        """The sizes of the part."""
        return self.shape if self.rank == self.owner else (self.length,)

    @property
    def place(self) -> tuple[int, int]:
        """Where the part begins and ends among the elements there are."""
        begin = 0 if self.owner >= 0 else min(self.rank * self.length, self.count)
        return begin, min(begin + self.length, self.count)

    def of(self, whole: np.ndarray) -> np.ndarray:
        """The part of a tensor."""
        begin, end = self.place
        part = np.zeros(self.length, whole.dtype)
        part[: end - begin] = whole.reshape(-1)[begin:end]
        return part.reshape(self.part_shape)

    def join(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """The tensor of which these are all parts, in order."""
        if self.owner >= 0:
            return parts[self.owner].reshape(self.shape)
        return np.concatenate(parts)[: self.count].reshape(self.shape)


@dataclass(frozen=True, slots=True)
class GridShare:
    """The part of process `rank` of a tensor of `shape`, of which axis i is divided among processes by the
    axes ``axes[i]`` of the grid `matrix`, which counts them in row-major order.
    """

    rank: int
    matrix: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many processes there are."""
        return math.prod(self.matrix)

    @property
    def part_shape(self) -> tuple[int, ...]:
        """The sizes of a part."""
        return tuple(n // self._parts(axes) for n, axes in zip(self.shape, self.axes))

    def _parts(self, axes: Sequence[int]) -> int:
        return math.prod(self.matrix[a] for a in axes)

    def place(self, rank: int) -> tuple[slice, ...]:
        """Where the part of a process lies."""
        at = np.unravel_index(rank, self.matrix)
        found = []
        for n, axes in zip(self.part_shape, self.axes):
            index = 0
            for a in axes:
                index = index * self.matrix[a] + int(at[a])
            found.append(slice(n * index, n * (index + 1)))
        return tuple(found)

    def of(self, whole: np.ndarray) -> np.ndarray:
        """The part of a tensor."""
        return whole[self.place(self.rank)]

    def join(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """The tensor of which these are the parts of all processes, in order."""
        whole = np.empty(self.shape, parts[0].dtype)
        for rank, part in enumerate(parts):
            whole[self.place(rank)] = part
        return whole
