"""Whether a result did not fit into its type although it looks finite: what a device tells by a status, found
from an operator's inputs and output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

NOT_FINITE = "NaN or infinities"
HALF_MAX = 65504.0  # the greatest float16

#: Exact results but for rounding, in float64, by types of operators whose integers wrap around.
_RESULTS: dict[str, tuple[int, Callable[..., np.ndarray]]] = {
    "add": (2, np.add), "sub": (2, np.subtract), "mul": (2, np.multiply), "neg": (1, np.negative),
    "abs": (1, np.abs), "square": (1, np.square),
}  # fmt: skip
_DIVISIONS = frozenset("div realdiv floordiv truncatediv mod floormod truncatemod reciprocal inv".split())


def overflow_of(output: np.ndarray, kind: str, inputs: Sequence[np.ndarray] | None) -> str:
    """What overflowed; empty if nothing did, or nothing is known of it.

    `kind`: the type of the operator; `inputs`: what it read, None if that is not at hand: then NaN and
    infinities alone are found.
    """
    if output.dtype.kind in "fc" and not np.isfinite(output).all():
        return NOT_FINITE
    if inputs is None:
        return ""
    name = kind.lower()
    if name in _DIVISIONS and inputs and (inputs[-1] == 0).any():
        return "division by zero"
    if output.dtype == np.float16 and _saturates(output) and not any(map(_saturates, inputs)):
        return "float16 saturation"
    if output.dtype.kind in "iu" and _wraps(name, output, inputs):
        return "integer overflow"
    return ""


def _saturates(x: np.ndarray) -> bool:
    return x.dtype == np.float16 and bool((np.abs(x) == HALF_MAX).any())


def _wraps(name: str, output: np.ndarray, inputs: Sequence[np.ndarray]) -> bool:
    """What wraps around is off by a multiple of two to the number of bits, far more than float64 rounds."""
    result = output.astype(np.float64)
    if name == "cast" and len(inputs) >= 1 and inputs[0].dtype.kind in "fiu":
        exact = np.trunc(inputs[0].astype(np.float64))
        if not np.isfinite(exact).all():
            return True
        return exact.shape == result.shape and bool((np.abs(exact - result) > np.abs(exact) * 1e-15).any())
    count, compute = _RESULTS.get(name, (0, np.negative))
    if not count or len(inputs) != count or any(x.dtype.kind not in "iu" for x in inputs):
        return False
    try:
        exact = compute(*(x.astype(np.float64) for x in inputs))
    except ValueError:  # shapes that do not broadcast: not what the type of operator says
        return False
    bits = 8 * output.dtype.itemsize
    return exact.shape == result.shape and bool((np.abs(exact - result) >= 2.0 ** (bits - 1)).any())
