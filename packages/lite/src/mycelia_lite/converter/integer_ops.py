"""Ops on integers of 8 bits that core lacks: what NumPy says here, a kernel of the runtime computes."""

from typing import Any

import numpy as np

import mycelia as ms
from mycelia.ir import TensorType
from mycelia.ops.define import op

_DTYPES = {"int8": ms.int8, "uint8": ms.uint8, "int32": ms.int32}


def multiplied(x: Any, multiplier: int, left: int, right: int, up: Any = False) -> np.ndarray:
    """x * 2^left * multiplier / 2^31 rounded with halves up, over 2^right with halves away from zero; int64.

    `up`: there, too, halves go up. x * 2^left must fit int32; multiplier is from 0 to 2^31 - 1.
    """
    product = np.asarray(x, np.int64) * (multiplier << left)
    high = (product + 2**30) >> 31
    if not right:
        return high
    return (high + 2 ** (right - 1) - ((high < 0) & ~np.asarray(up, bool))) >> right


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


@op(name="rescale_columns", nondiff=True, on_host=True)
def rescale_columns(x, factors, *, together: "int" = 0, zero: "int", low: "int", high: "int", to: "str"):
    """`rescale` of x [..., C], int32 or whole numbers in float32, by a factor for each column: int8 or uint8.

    factors: int32 [3, C], rows of multipliers, of shifts (to the left, or negative) and of `up`. `together`:
    elements behind the last multiple of it, if it is not 0, round away from zero.
    """
    wide = np.clip(np.rint(x), -(2.0**31), 2.0**31 - 1).astype(np.int64)
    made = np.empty(wide.shape, np.int64)
    last = np.arange(wide.size).reshape(wide.shape) >= wide.size // (together or 1) * (together or 1)
    for column, (multiplier, shift, up) in enumerate(factors.T.tolist()):
        ways = up & ~last[..., column]
        made[..., column] = multiplied(wide[..., column], multiplier, max(shift, 0), max(-shift, 0), ways)
    return np.clip(made + zero, low, high).astype(to)


@rescale_columns.infer
def rescale_columns(x, factors, *, together, zero, low, high, to):
    return TensorType(_DTYPES[to], x.shape)


@op(name="integer_products", nondiff=True, on_host=True)
def integer_products(
    x, weight, zero: "tensor?" = None, b: "tensor?" = None,
    *, stride: "ints" = (1, 1), pad: "ints" = (0, 0, 0, 0), dilation: "ints" = (1, 1), x_zero: "int" = 0,
):  # fmt: skip
    """Sums of ``(x - x_zero) * (weight - zero)``, plus `b`, of integers of 8 bits; exact below 2^24.

    Shapes: x [..., I], weight [O, I] -> [..., O]; or images [N, H, W, I], weight [O, kh, kw, I], `pad`
    begins, then ends -> [N, H', W', O]; zero and b [O].
    dtypes: x int8 or uint8, weight int8, zero and b int32 -> float32.
    """
    columns = weight.astype(np.int64) - (0 if zero is None else zero.reshape(-1, *[1] * (weight.ndim - 1)))
    numbers = x.astype(np.int64) - x_zero
    if weight.ndim == 2:
        sums = numbers @ columns.T
    else:
        numbers = np.pad(numbers, ((0, 0), (pad[0], pad[2]), (pad[1], pad[3]), (0, 0)))
        sizes = _sizes(x.shape, weight.shape, stride, pad, dilation)
        sums = np.zeros((len(x), *sizes, len(weight)), np.int64)
        for place in np.ndindex(*weight.shape[1:3]):
            first = [p * d for p, d in zip(place, dilation)]
            rows, lines = (slice(f, f + (n - 1) * s + 1, s) for f, n, s in zip(first, sizes, stride))
            sums += numbers[:, rows, lines] @ columns[:, place[0], place[1]].T
    return (sums if b is None else sums + b).astype(np.float32)


def _sizes(image: Any, weight: Any, stride: Any, pad: Any, dilation: Any) -> list[Any]:
    spans = [(k - 1) * d + 1 for k, d in zip(weight[1:3], dilation)]
    return [(n + pad[i] + pad[2 + i] - spans[i]) // stride[i] + 1 for i, n in enumerate(image[1:3])]


@integer_products.infer
def integer_products(x, weight, zero, b, *, stride, pad, dilation, x_zero):
    sizes = () if weight.rank == 2 else _sizes(x.shape, weight.shape, stride, pad, dilation)
    before = x.shape[:-1] if weight.rank == 2 else x.shape[:1]
    return TensorType(ms.float32, (*before, *sizes, weight.shape[0]))


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
