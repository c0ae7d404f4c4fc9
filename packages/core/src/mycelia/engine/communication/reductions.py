"""How the values of several processes become one: always in the order of their ranks, so that every process
gets the same bits, whatever carried them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import dtypes
from mycelia.engine.base.dtypes import BFLOAT16_BITS, from_bfloat16_bits, to_bfloat16_bits

_STEP = {"sum": np.add, "avg": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
REDUCTIONS = tuple(_STEP)


def check(owner: str, reduction: str, dtype: np.dtype) -> None:
    """Errors: ValueError for an unknown reduction, TypeError for an average of numbers that are no floats."""
    if reduction not in _STEP:
        raise ValueError(f"{owner}: the reduction must be one of {list(REDUCTIONS)}, but got {reduction!r}")
    if reduction == "avg" and dtype.kind not in "fc" and dtype != BFLOAT16_BITS:
        raise TypeError(f"{owner}: an average needs floating numbers, but the dtype is {name_of(dtype)}")


def name_of(dtype: np.dtype) -> str:
    """A dtype in words, which are the same on all machines."""
    return "bfloat16" if dtype == BFLOAT16_BITS else str(dtype)


def array_of(tensor: _C.Tensor) -> np.ndarray:
    """The elements of a tensor, of bfloat16 as bits."""
    found = tensor._bits()
    return found.view(BFLOAT16_BITS) if tensor.dtype is dtypes.bfloat16 else found


def tensor_of(array: np.ndarray) -> _C.Tensor:
    """What `array_of` was given, with this memory."""
    if array.dtype == BFLOAT16_BITS:
        return _C.from_array(array.view(np.uint16), dtypes.bfloat16, True)
    return _C.from_array(array, dtypes.as_dtype(array.dtype), True)


def combine(parts: Sequence[np.ndarray], reduction: str, out: np.ndarray | None = None) -> np.ndarray:
    """``parts[0] op parts[1] op ...``, in `out` or a new array; float16 and bfloat16 (BFLOAT16_BITS) are
    computed in float32 and rounded once.

    Shapes: all the same -> same.
    """
    if parts[0].dtype == BFLOAT16_BITS:
        total = combine([from_bfloat16_bits(part.view(np.uint16)) for part in parts], reduction)
        rounded = to_bfloat16_bits(total).view(BFLOAT16_BITS)
        if out is None:
            return rounded
        out[...] = rounded
        return out
    step, dtype = _STEP[reduction], parts[0].dtype
    wide = np.dtype(np.float32) if dtype == np.float16 else dtype
    if len(parts) == 1:
        total = parts[0].astype(wide)
    else:
        target = out if out is not None and out.dtype == wide else None
        total = np.asarray(step(parts[0], parts[1], out=target, dtype=wide))
        for part in parts[2:]:
            step(total, part, out=total, dtype=wide)
    if reduction == "avg":
        total = np.asarray(total / wide.type(len(parts)))
    if out is None:
        return np.asarray(total, dtype)
    if total is not out:
        out[...] = total
    return out


NATIVE = (np.dtype(np.float32), np.dtype(np.float64))
_BLOCK_BYTES = 256 << 10  # that stay in a core's cache between steps


def combine_blocks(parts: Sequence[np.ndarray], reduction: str, divisor: float, out: np.ndarray) -> None:
    """`combine` of flat arrays in `out`, which may be one of them, and then divided by `divisor`: as an op
    divides, so 16-bit floats are rounded twice.
    """
    if reduction == "sum" and len(parts) > 1 and out.dtype in NATIVE:
        _C.add_up(list(parts), divisor, out)
        return
    length = max(1, _BLOCK_BYTES // out.itemsize)
    is_part = any(map(partial(np.may_share_memory, out), parts))
    spare = np.empty(min(length, out.size), out.dtype) if is_part else None
    with np.errstate(all="ignore"):  # sums may overflow, and between arrays there are any bits
        for begin in range(0, out.size, length):
            cut = slice(begin, begin + length)
            target = out[cut]
            total = target if spare is None else spare[: target.size]
            combine([part[cut] for part in parts], reduction, total)
            if divisor != 1:
                divide(total, divisor)
            if total is not target:
                target[...] = total


def divide(array: np.ndarray, divisor: float) -> None:
    """Divides the numbers of an array as an op does, in place."""
    if array.dtype == BFLOAT16_BITS:
        wide = from_bfloat16_bits(array.view(np.uint16)) / np.float32(divisor)
        array[...] = to_bfloat16_bits(wide).view(BFLOAT16_BITS)
    elif array.dtype == np.float16:
        array[...] = array.astype(np.float32) / np.float32(divisor)
    else:
        np.divide(array, array.dtype.type(divisor), out=array)
