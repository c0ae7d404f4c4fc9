"""What calls of reductions with arrays of the same sizes share, found once."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mycelia.engine.communication import reductions, shared

#: Arrays up to this size go whole to everybody: one round of messages is quicker than half of the bytes.
WHOLE_BYTES = 32 << 10
_LISTED = 120  # characters of shapes that a call is told with; longer ones are told apart by a sum over them


class Recipe(NamedTuple):
    """`what`: the call, `told`: the same for boards;
    `results`: where each result begins, its elements and its shape; `offsets`: where arrays are laid, in
    bytes; `count`: elements with gaps; `cuts`: which elements are whose, and none if each adds all.
    """

    what: str
    told: bytes
    results: list[tuple[int, int, tuple[int, ...]]]
    offsets: tuple[int, ...]
    count: int
    cuts: list[slice]
    reduction: str
    divisor: float
    scatters: bool


def recipe_of(
    size: int, reduction: str, divisor: float, name: str, scatters: bool, dtype: np.dtype, shapes: Sequence
) -> Recipe:
    """Of a group of `size` members. Errors: as collectives have."""
    reductions.check("all_reduce", reduction, dtype)
    sizes = [math.prod(shape) for shape in shapes]
    offsets, count = _layout(sizes, dtype)
    kind = "reduce_scatter" if scatters else "all_reduce"
    listed = " ".join(str(list(shape)) for shape in shapes)
    if len(listed) > _LISTED:
        listed = f"[{count}] in {len(shapes)} arrays ({zlib.crc32(listed.encode()):x})"
    then = "" if divisor == 1 else f", divided by {divisor:g}"
    what = f"{kind}({reduction}, {reductions.name_of(dtype)} {listed}, started for {name}{then})"
    results = list(zip(offsets, sizes, shapes))
    if scatters:
        results = [(0, count // size, (count // size,))]
    cuts = []
    if scatters or (size > 2 and count * dtype.itemsize > WHOLE_BYTES):
        bounds = [count * i // size for i in range(size + 1)]
        cuts = [slice(a, b) for a, b in zip(bounds, bounds[1:])]
    begins = tuple(at * dtype.itemsize for at in offsets)
    return Recipe(what, what.encode(), results, begins, count, cuts, reduction, divisor, scatters)


def _layout(sizes: Sequence[int], dtype: np.dtype) -> tuple[list[int], int]:
    """Where each array begins, in elements, and how many there are: each at a line of the cache."""
    line = max(1, shared.ALIGNMENT // dtype.itemsize)
    offsets, end = [], 0
    for size in sizes:
        begin = -(-end // line) * line
        offsets.append(begin)
        end = begin + size
    return offsets, end
