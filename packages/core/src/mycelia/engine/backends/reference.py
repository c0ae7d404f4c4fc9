"""The reference backend: op bodies on NumPy arrays. Always present: oracle of the tests and last fallback."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mycelia.engine import _C
from mycelia.engine.backends.base import Backend, Buffer
from mycelia.engine.base import dtypes
from mycelia.engine.ir.graph import Graph
from mycelia.engine.ir.types import UNKNOWN, TensorType


class ReferenceBackend(Backend):
    """Runs every op by its body; `MYCELIA_FALLBACK` does not apply to it."""

    name = "reference"


def evaluate(
    definition, values: list, attrs: dict, out_types: tuple[TensorType, ...], kernel: Callable | None = None
) -> tuple[np.ndarray, ...]:
    """Results of the body, or of a backend's `kernel`, in the inferred dtypes (float32 for bfloat16, or its
    bits where the body moves these).

    Raises RuntimeError when their number or shapes are not the inferred ones.
    """
    what = f"{definition.name}: the {'body' if kernel is None else 'kernel'}"
    with np.errstate(all="ignore"):
        result = (kernel or definition.body)(*values, **attrs)
    return as_inferred(result, out_types, what)


def as_inferred(result, out_types: tuple[TensorType, ...], what: str) -> tuple[np.ndarray, ...]:
    """The arrays that `what` gave in the inferred dtypes.

    Raises RuntimeError when their number or shapes are not the inferred ones.
    """
    result = in_number(result, out_types, what)
    arrays = []
    for value, expected in zip(result, out_types):
        array = np.asarray(value)
        want = np.dtype(np.float32) if expected.dtype is dtypes.bfloat16 else expected.dtype.np
        if array.dtype != want and array.dtype != dtypes.BFLOAT16_BITS:
            with np.errstate(all="ignore"):
                array = array.astype(want)
        fits = array.ndim == len(expected.shape) and all(
            n in (m, UNKNOWN) for m, n in zip(array.shape, expected.shape)
        )
        if not fits:
            raise RuntimeError(f"{what} gave shape {array.shape}, inferred was {expected.shape}")
        arrays.append(array)
    return tuple(arrays)


def in_number(result, out_types: tuple[TensorType, ...], what: str) -> tuple:
    """The results as a tuple. Raises RuntimeError unless there is one per inferred type."""
    result = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if len(result) != len(out_types):
        raise RuntimeError(f"{what} gave {len(result)} results for {len(out_types)} inferred types")
    return result


def buffer_of(tensor: _C.Tensor) -> Buffer:
    """The memory of `tensor`, as `Backend.launch` takes it."""
    return Buffer(tensor._data_ptr, tensor.dtype, tensor.shape)


def launch_function(
    backend: Backend, definition, attrs: dict, out_types: tuple, counts: tuple, kernel: Callable
) -> Callable:
    """A `kernel` in Python of a device with memory of its own, as the native core calls it: with Tensors that
    lie there, those to read and those to write.
    """

    def compute(*arrays):
        results = in_number(
            kernel(*definition.group(arrays, counts), **attrs), out_types, f"{definition.name}: the kernel"
        )
        for array, expected in zip(results, out_types):
            if tuple(array.shape) != expected.shape:
                raise RuntimeError(
                    f"{definition.name}: the kernel gave shape {tuple(array.shape)}, "
                    f"inferred was {expected.shape}"
                )
        return results

    def run(inputs, outputs):
        backend.launch(
            compute, [t if t is None else buffer_of(t) for t in inputs], [buffer_of(t) for t in outputs]
        )

    return run


def reference_function(
    definition, attrs: dict, in_types: tuple, out_types: tuple, counts: tuple, kernel: Callable | None = None
):
    """The body or a backend's `kernel` as the native core calls it: flat arrays, bfloat16 as uint16 bits.

    Bodies compute with float32 for bfloat16; those `on_host` move data: they get its bits, as BFLOAT16_BITS.
    """
    halves = [isinstance(t, TensorType) and t.dtype is dtypes.bfloat16 for t in in_types]
    of_half = _as_bits if definition.on_host else dtypes.from_bfloat16_bits
    any_half = any(halves) or any(t.dtype is dtypes.bfloat16 for t in out_types)

    def run(*arrays):
        values = arrays
        if any_half:
            values = [of_half(a) if h else a for a, h in zip(arrays, halves)]
        grouped = definition.group(tuple(values), counts)
        results = evaluate(definition, grouped, attrs, out_types, kernel)
        return tuple(owned(r, t.dtype, arrays) for r, t in zip(results, out_types, strict=True))

    return run


def _as_bits(array: np.ndarray) -> np.ndarray:
    return array.view(dtypes.BFLOAT16_BITS)


def compiled_function(backend: Backend, graph: Graph) -> Callable[..., tuple[_C.Tensor, ...]]:
    """A function of Tensors that runs what `backend` compiled `graph` to."""
    compiled = backend.compile(graph)
    types, what = graph.output_types, f"the graph that backend {backend.name} compiled"

    def on_device(*tensors):
        results = tuple(_C.empty(t.dtype, t.shape, backend.device) for t in types)
        backend.launch(
            lambda *arrays: in_number(compiled(*arrays), types, what),
            [buffer_of(_C.on_device(t, backend.device)) for t in tensors],
            [buffer_of(t) for t in results],
        )
        return results

    def on_host(*tensors):
        arrays = tuple(t.asnumpy() for t in tensors)
        results = as_inferred(compiled(*arrays), types, what)
        return tuple(_C.from_array(owned(r, t.dtype, arrays), t.dtype, True) for r, t in zip(results, types))

    return on_device if backend.device else on_host


def owned(result: np.ndarray, dtype: dtypes.DType, inputs: tuple) -> np.ndarray:
    """The bits of `result` in memory of its own, which becomes a tensor's: it is none of the `inputs`'."""
    if result.dtype == dtypes.BFLOAT16_BITS:
        result = result.view(np.uint16)
    elif dtype is dtypes.bfloat16:
        result = dtypes.to_bfloat16_bits(result)
    if result.base is not None or not result.flags.c_contiguous or any(result is a for a in inputs):
        result = np.array(result, order="C")
    return result
