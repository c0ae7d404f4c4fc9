"""Ops on integers of 8 bits that core lacks: what NumPy says here, a kernel of the runtime computes."""

from typing import Any

import numpy as np

import mycelia as ms
from mycelia.ir import TensorType
from mycelia.ops.define import op

_DTYPES = {"int8": ms.int8, "uint8": ms.uint8, "int32": ms.int32}


def multiplied(x: Any, multiplier: int, left: int, right: int, up: bool | int = False) -> np.ndarray:
    """x * 2^left * multiplier / 2^31 rounded with halves up, over 2^right with halves away from zero; int64.

    `up`: there, too, halves go up. x * 2^left must fit int32; multiplier is from 0 to 2^31 - 1.
    """
    product = np.asarray(x, np.int64) * (multiplier << left)
    high = (product + 2**30) >> 31
    if not right:
        return high
    return (high + 2 ** (right - 1) - ((high < 0) & (not up))) >> right


def _rescaled(
    x: Any, multiplier: int, left: int, right: int, up: int, zero: int, low: int, high: int, to: str
) -> np.ndarray:  # fmt: skip
    made = multiplied(x, multiplier, left, right, up) + zero
    return np.clip(made, low, high).astype(to)


@op(name="lookup", nondiff=True, on_host=True)
def lookup(x, table):
    """The element of `table` [256] for each of x, int8 or uint8, whose least integer has the first one."""
    return table[x.astype(np.int64) - np.iinfo(x.dtype).min]


@lookup.infer
def lookup(x, table):
    return TensorType(table.dtype, x.shape)


@op(name="rescale", nondiff=True, on_host=True)
def rescale(
    x,
    *,
    multiplier: "int",
    left: "int",
    right: "int",
    up: "int",
    zero: "int",
    low: "int",
    high: "int",
    to: "str",
):
    """`multiplied` of x, int32, plus `zero`, from `low` to `high`, as `to`: int8, uint8 or int32."""
    return _rescaled(x, multiplier, left, right, up, zero, low, high, to)


@rescale.infer
def rescale(x, *, multiplier, left, right, up, zero, low, high, to):
    return TensorType(_DTYPES[to], x.shape)


HOW = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@op(name="pair", nondiff=True, on_host=True)
def pair(
    x,
    y,
    of_x,
    of_y,
    *,
    how: "str",
    whole: "int",
    multiplier: "int",
    left: "int",
    right: "int",
    up: "int",
    zero: "int",
    low: "int",
    high: "int",
    to: "str",
):
    """`rescale` of what ``HOW[how]`` makes of the int32s that tables [256] have for x and y, of 8 bits.

    One of them broadcasts to the other, number `whole`, which has the shape of the result.
    """
    first, second = (t[v.astype(np.int64) - np.iinfo(v.dtype).min] for v, t in ((x, of_x), (y, of_y)))
    return _rescaled(HOW[how](first, second), multiplier, left, right, up, zero, low, high, to)


@pair.infer
def pair(x, y, of_x, of_y, *, how, whole, multiplier, left, right, up, zero, low, high, to):
    return TensorType(_DTYPES[to], (x, y)[whole].shape)
