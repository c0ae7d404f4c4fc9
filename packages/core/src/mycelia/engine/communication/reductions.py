"""How the values of several processes become one: always in the order of their ranks, so that every process
gets the same bits, whatever carried them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_STEP = {"sum": np.add, "avg": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
REDUCTIONS = tuple(_STEP)


def check(owner: str, reduction: str, dtype: np.dtype) -> None:
    """Errors: ValueError for an unknown reduction, TypeError for an average of numbers that are no floats."""
    if reduction not in _STEP:
        raise ValueError(f"{owner}: the reduction must be one of {list(REDUCTIONS)}, but got {reduction!r}")
    if reduction == "avg" and dtype.kind not in "fc":
        raise TypeError(f"{owner}: an average needs floating numbers, but the dtype is {dtype}")


def combine(parts: Sequence[np.ndarray], reduction: str, out: np.ndarray | None = None) -> np.ndarray:
    """``parts[0] op parts[1] op ...``, in `out` or a new array; float16 is computed in float32 and rounded
    once.

    Shapes: all the same -> same.
    """
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
