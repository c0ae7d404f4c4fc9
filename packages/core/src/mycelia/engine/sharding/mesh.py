"""Ranks as a grid, and where the elements of a value lie on it.

Layouts name the axes of grids of their own, such as (2, 4) and (8,) of eight ranks. All count ranks in
row-major order, so an axis is a range of divisors of their number, and the finest grid that has all these
axes serves for all layouts of a graph: its axes are called atoms here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mycelia.engine.base import errors

Atoms = tuple[int, ...]  # axes of the grid, the slowest first


class Placed(NamedTuple):
    """Where the elements of a value lie: `dims` has for each axis of the value the atoms that divide it;
    what each rank of the atoms `partial` has is one of the operands of the reduction `how`.
    """

    dims: tuple[Atoms, ...]
    partial: Atoms = ()
    how: str = "sum"

    @property
    def is_whole(self) -> bool:
        """Whether each rank has the value itself."""
        return not self.partial and not any(self.dims)


def whole(rank: int) -> Placed:
    """A value of that many axes which each rank has."""
    return Placed(((),) * rank)


def cuts_of(matrix: Sequence[int]) -> list[int]:
    """The strides of a grid's axes, and its size in front."""
    found = [math.prod(matrix)]
    for size in matrix:
        found.append(found[-1] // size)
    return found


class Mesh:
    """The finest grid that has the axes of all `matrices`, each of whose products is `size`; `rank` is this
    one's.

    Errors: NotImplementedError if there is none, as for (2, 3) and (3, 2).
    """

    def __init__(self, size: int, rank: int, matrices: Iterable[Sequence[int]]) -> None:
        cuts = sorted({size, 1}.union(*(cuts_of(m) for m in matrices)), reverse=True)
        for above, below in zip(cuts, cuts[1:]):
            if above % below:
                raise errors.error(
                    errors.NotSupportedError, "semi_auto_parallel",
                    f"layouts of one graph divide {size} ranks into blocks of {above} and of {below} "
                    f"ranks, which no "
                    "one grid has",
                    hint="give all layouts one device_matrix",
                )  # fmt: skip
        self.size, self.rank = size, rank
        self.strides = tuple(cuts[1:])
        self.sizes = tuple(above // below for above, below in zip(cuts, cuts[1:]))

    def axis(self, matrix: Sequence[int], axis: int) -> Atoms:
        """The atoms of an axis of a grid."""
        cuts = cuts_of(matrix)
        return tuple(i for i, stride in enumerate(self.strides) if cuts[axis + 1] <= stride < cuts[axis])

    def placed(self, matrix: Sequence[int], axes: Sequence[Sequence[int]]) -> Placed:
        """Where a value lies of which axis i is divided by the axes ``axes[i]`` of a grid."""
        dims = (tuple(a for axis in group for a in self.axis(matrix, axis)) for group in axes)
        return Placed(tuple(dims))

    def parts(self, atoms: Atoms) -> int:
        """Into how many parts they divide."""
        return math.prod(self.sizes[a] for a in atoms)

    def index(self, atoms: Atoms, rank: int | None = None) -> int:
        """Which part is that of `rank`, by default of this one."""
        rank, found = self.rank if rank is None else rank, 0
        for a in atoms:
            found = found * self.sizes[a] + rank // self.strides[a] % self.sizes[a]
        return found

    def members(self, atoms: Atoms) -> list[int]:
        """The ranks that differ from this one in `atoms` alone, by their part."""
        fixed = tuple(a for a in range(len(self.sizes)) if a not in atoms)
        mine = self.index(fixed)
        found = [r for r in range(self.size) if self.index(fixed, r) == mine]
        return sorted(found, key=lambda r: self.index(atoms, r))

    def shape(self, shape: Sequence[int], placed: Placed) -> tuple[int, ...]:
        """The sizes of a part."""
        return tuple(n // self.parts(atoms) for n, atoms in zip(shape, placed.dims))

    def text(self, placed: Placed) -> str:
        """A layout for a message: how many parts each axis has."""
        return f"({', '.join(str(self.parts(atoms)) for atoms in placed.dims)})"
