"""Fourier transforms of TensorFlow Lite: complex numbers are pairs of float32, of which the model computes.

They exist from RFFT2D to REAL, IMAG or COMPLEX_ABS, and what lies between may give them another shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import integers, is_number, positive_axis, shape_of
from mycelia_lite.converter.importers.tflite.calls import Call, axes_of, operator
from mycelia_lite.converter.runtime_op import custom

_OPERATORS: dict[str, Callable] = {}


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Complex numbers: `parts` [..., 2] of float32, the real ones first."""

    parts: Any


def _of_spectra(name: str) -> Callable:
    def enter(function: Callable) -> Callable:
        _OPERATORS[name] = function
        operator(name)(_without_spectrum)
        return function

    return enter


def _without_spectrum(call: Call, x):
    raise call.fail("its input is no result of RFFT2D")


def run(call: Call, inputs: Sequence[Any]) -> Any:
    """The result of an operator on complex numbers. Errors: ConversionError if it has none here."""
    function = _OPERATORS.get(call.kind) or _MOVES.get(call.kind)
    if function is None or any(isinstance(v, Spectrum) for v in inputs[1:]):
        raise call.fail(
            "complex numbers, of which REAL, IMAG, COMPLEX_ABS and other shapes alone are imported"
        )
    return function(call, inputs[0].parts, *inputs[1:])


@operator("RFFT2D")
def _rfft2d(call, x, lengths):
    """Transforms of the last two axes, cut or filled with zeros to `lengths`; half of the last one stays."""
    rows, columns = integers(call, lengths, "fft_length")
    if rows < 1 or columns < 1 or len(shape_of(x)) < 2:
        raise call.fail(f"lengths {rows} and {columns} of the last of {len(shape_of(x))} axes")
    shape = shape_of(x)
    parts = _transform(ops.expand_dims(x, len(shape)), columns, len(shape) - 1, onesided=True)
    if rows == 1:
        return Spectrum(parts if shape[-2] == 1 else parts[(..., slice(0, 1), slice(None), slice(None))])
    return Spectrum(_transform(parts, rows, len(shape) - 2, onesided=False))


def _transform(parts: Any, length: int, axis: int, onesided: bool) -> Any:
    shape = [*shape_of(parts)[:-1], 2]
    shape[axis] = length // 2 + 1 if onesided else length
    inputs = [parts, ms.Tensor(np.int64(length))]
    kept = [n if is_number(n) else -1 for n in shape]
    return custom(
        "dft", inputs, [(parts.dtype, kept)], inverse=0, onesided=int(onesided), axis=axis, given=[1, 0]
    )


@_of_spectra("REAL")
def _real(call: Call, parts):
    return parts[..., 0]


@_of_spectra("IMAG")
def _imag(call: Call, parts):
    return parts[..., 1]


@_of_spectra("COMPLEX_ABS")
def _absolute(call: Call, parts):
    return ops.sqrt(ops.sum(ops.mul(parts, parts), (-1,)))


# ---- other shapes


def _reshape(call: Call, parts, shape=None):
    wanted = call.get("ReshapeOptions", "new_shape") or []
    wanted = list(wanted) if shape is None else integers(call, shape, "shape")
    if any(n == 0 for n in wanted if is_number(n)):
        raise call.fail(f"the shape {wanted} of complex numbers")
    return Spectrum(ops.reshape(parts, (*wanted, 2)))


def _squeeze(call: Call, parts):
    shape = shape_of(parts)[:-1]
    axes = call.get("SqueezeOptions", "squeeze_dims")
    axes = axes_of(call, axes, len(shape)) if len(axes) else [a for a, n in enumerate(shape) if n == 1]
    if any(shape[a] != 1 for a in axes):
        raise call.fail(f"axes {list(axes)} of {list(shape)} are not 1")
    return Spectrum(ops.squeeze(parts, tuple(axes)) if axes else parts)


def _expand_dims(call: Call, parts, axis):
    (place,) = integers(call, axis, "axis")
    return Spectrum(ops.expand_dims(parts, positive_axis(call, place, len(shape_of(parts)))))


_MOVES = {"RESHAPE": _reshape, "SQUEEZE": _squeeze, "EXPAND_DIMS": _expand_dims}
