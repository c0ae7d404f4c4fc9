"""Tensors of all pairs and choices of elements: meshgrid, cartesian products, combinations."""

import itertools

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.symint import SymInt, applied
from mycelia.engine.ops.arrays.create import arange
from mycelia.engine.ops.arrays.gathering import gather
from mycelia.engine.ops.arrays.joining import stack
from mycelia.engine.ops.arrays.shape import broadcast_to, constant, reshape
from mycelia.engine.ops.late import ops


def meshgrid(*inputs, indexing="xy"):
    """Coordinate grids from vectors: result i holds the values of input i along its axis.

    Shapes: [m], [n] -> two of [m, n] (`indexing` "ij") or [n, m] ("xy").
    Errors: ValueError for another indexing.
    """
    if indexing not in ("xy", "ij"):
        raise errors.value_error(f"For 'meshgrid', indexing must be 'xy' or 'ij', but got {indexing!r}")
    if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)):
        inputs = inputs[0]
    for x in inputs:
        if x.ndim > 1:
            raise errors.value_error(f"For 'meshgrid', inputs must be vectors, but got shape {x.shape}")
    count = len(inputs)
    place = list(range(count))
    if indexing == "xy" and count > 1:
        place[0], place[1] = 1, 0
    shape = [0] * count
    for x, at in zip(inputs, place):
        shape[at] = x.size
    grids = (reshape(x, [-1 if i == at else 1 for i in range(count)]) for x, at in zip(inputs, place))
    return tuple(broadcast_to(grid, tuple(shape)) for grid in grids)


def cartesian_prod(*inputs):
    """All combinations of one element of each vector, as rows in row-major order."""
    if len(inputs) == 1:
        return reshape(inputs[0], (-1, 1))
    return stack([reshape(grid, (-1,)) for grid in meshgrid(*inputs, indexing="ij")], -1)


def combinations(input, r=2, with_replacement=False):
    """All choices of `r` elements of a vector, in order of their positions, as rows.

    Shapes: [n] -> [number, r].  Errors: ValueError if the input is no vector or r is negative.
    """
    if input.ndim != 1 or r < 0:
        raise errors.value_error(
            f"For 'combinations', a vector and r >= 0 are needed, but got {input.shape} and {r}"
        )
    return gather(input, choices(input.shape[0], r, with_replacement), 0)


def choices(n, r, with_replacement=False):
    """The positions of all choices of `r` from `n` places, in order, as rows: int64 [number, r]."""
    if type(n) is not SymInt or not 0 < r < _OPEN_CHOICES:
        choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
        return constant(np.array(list(choose(range(n), r)), np.int64).reshape(-1, r), dtypes.int64)
    if with_replacement:
        return choices(n + r - 1, r) - constant(np.arange(r))
    # Combinatorial number system: each number below C(n, r) is one sum C(d1, r) + C(d2, r - 1) + .. with
    # d1 > d2 > .., and counted from the end d1, d2, .. are the positions in order.
    tables = [arange(n)]
    for k in range(1, r):
        tables.append(tables[-1] * (tables[0] - k) // (k + 1))
    count = n
    for k in range(1, r):
        count = count * (n - k) // (k + 1)
    rest, columns = count - 1 - arange(applied(max, count, 0)), []
    for table in reversed(tables):
        digit = ops.searchsorted(table, rest, right=True) - 1
        rest = rest - gather(table, digit, 0)
        columns.append(n - 1 - digit)
    return stack(columns, -1)


# Products of C(n, k) and k + 1 stay within 64 bits below this number of places, for any n of which the
# choices fit into memory.
_OPEN_CHOICES = 30


__all__ = ["meshgrid", "cartesian_prod", "combinations"]
