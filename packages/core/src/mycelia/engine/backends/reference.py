"""The reference backend: op bodies on NumPy arrays. Always present: oracle of the tests and last fallback."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mycelia.engine.backends.base import Backend
from mycelia.engine.base import dtypes
from mycelia.engine.ir.types import UNKNOWN, TensorType


class ReferenceBackend(Backend):
    """Runs every op by its body; `MYCELIA_FALLBACK` does not apply to it."""

    name = "reference"


def evaluate(
    definition, values: list, attrs: dict, out_types: tuple[TensorType, ...], kernel: Callable | None = None
) -> tuple[np.ndarray, ...]:
    """Results of the body, or of a backend's `kernel`, in the inferred dtypes (float32 for bfloat16).

    Raises RuntimeError when their number or shapes are not the inferred ones.
    """
    what = "body" if kernel is None else "kernel"
    with np.errstate(all="ignore"):
        result = (kernel or definition.body)(*values, **attrs)
    result = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if len(result) != len(out_types):
        raise RuntimeError(
            f"{definition.name}: the {what} gave {len(result)} results for {len(out_types)} inferred types"
        )
    arrays = []
    for value, expected in zip(result, out_types):
        array = np.asarray(value)
        want = np.dtype(np.float32) if expected.dtype is dtypes.bfloat16 else expected.dtype.np
        if array.dtype != want:
            with np.errstate(all="ignore"):
                array = array.astype(want)
        fits = array.ndim == len(expected.shape) and all(
            n in (m, UNKNOWN) for m, n in zip(array.shape, expected.shape)
        )
        if not fits:
            raise RuntimeError(
                f"{definition.name}: the {what} gave shape {array.shape}, inferred was {expected.shape}"
            )
        arrays.append(array)
    return tuple(arrays)


def reference_function(
    definition, attrs: dict, in_types: tuple, out_types: tuple, counts: tuple, kernel: Callable | None = None
):
    """The body or a backend's `kernel` as the native core calls it: flat arrays, bfloat16 as uint16 bits."""
    halves = [isinstance(t, TensorType) and t.dtype is dtypes.bfloat16 for t in in_types]
    any_half = any(halves) or any(t.dtype is dtypes.bfloat16 for t in out_types)

    def run(*arrays):
        values = arrays
        if any_half:
            values = [dtypes.from_bfloat16_bits(a) if h else a for a, h in zip(arrays, halves)]
        grouped = definition.group(tuple(values), counts)
        results = evaluate(definition, grouped, attrs, out_types, kernel)
        out = []
        for result, expected in zip(results, out_types, strict=True):
            if expected.dtype is dtypes.bfloat16:
                result = dtypes.to_bfloat16_bits(result)
            # The result becomes a tensor's memory: it must own it and share it with no input.
            if result.base is not None or not result.flags.c_contiguous or any(result is a for a in arrays):
                result = np.array(result, order="C")
            out.append(result)
        return tuple(out)

    return run
