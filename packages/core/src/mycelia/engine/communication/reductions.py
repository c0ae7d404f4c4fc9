"""How the values of several processes become one: always in the order of their ranks, so that every process
gets the same bits, whatever carried them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
