"""ONNX's operators on signals: Fourier transforms, windows, mel filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx import run_time
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    cast,
    is_number,
    known,
    known_shape,
    need_known,
    operator,
    positive_axis,
    shape_of,
)
from mycelia_lite.converter.importers.onnx.file import dtype_of
from mycelia_lite.converter.runtime_op import OPEN, custom
from mycelia_lite.enums import DataType


def _parts(call: Call, x: Any) -> int:
    """1 or 2: whether the last axis of a signal is [real] or [real, imaginary]."""
    parts = known_shape(call, x, (x.ndim - 1,))[-1]
    if parts not in (1, 2) or not x.dtype.is_floating:
        raise call.fail(f"a signal of {x.dtype} with {parts} parts")
    return parts


def _number(value: Any) -> int | None:
    """The number of an input that is there and known."""
    found = None if value is None else known(value)
    return None if found is None else int(found.reshape(()))


@operator("DFT")
def _dft(call, x, length=None, axis=None):
    """Products with the matrices of the waves; length and axis may be data."""
    inverse, onesided = call.get("inverse", 0), call.get("onesided", 0)
    default = -2 if call.version >= 20 else call.get("axis", 1)
    parts = _parts(call, x)
    shape: list[Any] = [OPEN] * x.ndim
    shape[-1] = 1 if inverse and onesided else 2
    at = default if axis is None else _number(axis)
    if at is not None:
        at = positive_axis(call, at, x.ndim)
        if at == x.ndim - 1:
            raise call.fail(f"a transform along the axis of the {parts} parts")
        shape[:-1] = [OPEN if d == at else n for d, n in enumerate(shape_of(x)[:-1])]
        size = shape_of(x)[at]
        points = _number(length)
        if length is None and is_number(size):
            points = 2 * (size - 1) if inverse and onesided else size
        if points is not None:
            shape[at] = points // 2 + 1 if onesided and not inverse else points
    given = [v for v in (length, axis) if v is not None]
    return custom(
        "dft", [x, *given], [(x.dtype, shape)], inverse=inverse, onesided=onesided, axis=default,
        given=[int(v is not None) for v in (length, axis)],
    )  # fmt: skip


@operator("STFT")
def _stft(call, signal, step, window=None, length=None):
    """Transforms of frames of the signal, each times the window."""
    onesided = call.get("onesided", 1)
    if window is None and length is None:
        raise call.fail("neither window nor frame_length is there")
    if signal.ndim == 3 and _parts(call, signal) == 2 and onesided:
        raise call.attribute("onesided", "the signal is complex")
    points = shape_of(window)[0] if length is None else _number(length)
    hop, whole = _number(step), shape_of(signal)[1]
    shape: list[Any] = [shape_of(signal)[0], OPEN, OPEN, 2]
    if points is not None and is_number(points):
        shape[2] = points // 2 + 1 if onesided else points
        if hop is not None and hop > 0 and is_number(whole) and whole >= points:
            shape[1] = (whole - points) // hop + 1
    given = [v for v in (window, length) if v is not None]
    return custom(
        "stft", [signal, step, *given], [(signal.dtype, shape)], onesided=onesided,
        given=[int(v is not None) for v in (window, length)],
    )  # fmt: skip


_WINDOWS = {  # coefficients of 1, -cos, cos of twice the angle
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}


@operator(*_WINDOWS)
def _window(call, size):
    """A periodic window, or with `periodic` 0 a symmetric one."""
    dtype = dtype_of(call.get("output_datatype", 1), f"node '{call.name}' ({call.kind}): its result")
    a, b, c = _WINDOWS[call.kind]
    count = _number(size)
    return custom(
        "window", [size], [(dtype, (OPEN if count is None else count,))], a=a, b=b, c=c,
        periodic=call.choice("periodic", 1, (0, 1)), dtype=int(DataType.of(np.dtype(dtype.np))),
    )  # fmt: skip


@operator("MelWeightMatrix")
def _mel_weights(call, bins, length, rate, low, high):
    """Triangles whose corners are evenly spaced in mel, over the bins of a spectrogram."""
    dtype = dtype_of(call.get("output_datatype", 1), f"node '{call.name}' ({call.kind}): its result")
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    if run_time.is_data(bins, length, rate, low, high):
        return cast(_mel_weights_of_data(bins, length, rate, low, high), dtype)
    values = [
        need_known(call, v, n).reshape(()).item() for v, n in zip((bins, length, rate, low, high), names)
    ]
    bins, length, rate, low, high = values
    if not (0 < bins <= 1 << 12 and 0 < length <= 1 << 20 and rate > 0 and 0 <= low < high):
        raise call.fail(f"mel filters for {dict(zip(names, values))}")
    mel = [2595 * math.log10(1 + f / 700) for f in (low, high)]
    corners = np.arange(bins + 2) * ((mel[1] - mel[0]) / (bins + 2)) + mel[0]
    corners = ((length + 1) * (700 * (10 ** (corners / 2595) - 1)) // rate).astype(np.int64)
    spectrum = length // 2 + 1
    if corners.max() >= spectrum:
        raise call.fail(f"an upper edge of {high} Hz lies above half the rate {rate}")
    weights = np.zeros((spectrum, bins))
    at = np.arange(spectrum)
    for i, (left, center, right) in enumerate(zip(corners, corners[1:], corners[2:])):
        if center == left:
            weights[center, i] = 1
        else:
            rising = (at >= left) & (at <= center)
            weights[rising, i] = (at[rising] - left) / (center - left)
        falling = (at >= center) & (at < right)
        weights[falling, i] = (right - at[falling]) / max(right - center, 1)
    return ms.Tensor(weights.astype(dtype.np))


def _mel_weights_of_data(bins: Any, length: Any, rate: Any, low: Any, high: Any) -> Any:
    """The same matrix in float64, of numbers that only the running model knows."""
    bins, length, rate = (cast(ops.reshape(v, ()), ms.int64) for v in (bins, length, rate))
    one, two = (ms.Tensor(n, ms.int64) for n in (1, 2))

    def real(x: Any) -> Any:
        return ms.Tensor(np.float64(x)) if isinstance(x, float) else cast(x, ms.float64)

    def mel(hertz: Any) -> Any:
        ratio = ops.add(real(1.0), ops.div(real(ops.reshape(hertz, ())), real(700.0)))
        return ops.mul(real(2595 / math.log(10)), ops.log(ratio))

    first, last = mel(low), mel(high)
    step = ops.div(ops.sub(last, first), real(ops.add(bins, two)))
    corners = ops.add(ops.mul(real(run_time.counted(ops.add(bins, two))), step), first)
    hertz = ops.sub(ops.exp(ops.mul(corners, real(math.log(10) / 2595))), real(1.0))
    hertz = ops.mul(ops.mul(hertz, real(700.0)), real(ops.add(length, one)))
    corners = cast(ops.floor(ops.div(hertz, real(rate))), ms.int64)
    spectrum = ops.add(ops.floor_div(length, two), one)
    corners = run_time.require([corners], ops.less(ops.amax(corners), spectrum))[0]
    filters = run_time.counted(bins)
    left, center, right = (
        ops.expand_dims(ops.gather(corners, ops.add(filters, ms.Tensor(i, ms.int64)), 0), 0) for i in range(3)
    )
    at = ops.expand_dims(run_time.counted(spectrum), 1)
    rising = ops.logical_and(ops.greater_equal(at, left), ops.less_equal(at, center))
    up = ops.div(real(ops.sub(at, left)), real(ops.maximum(ops.sub(center, left), one)))
    up = ops.where(ops.equal(left, center), real(1.0), up)
    falling = ops.logical_and(ops.greater_equal(at, center), ops.less(at, right))
    down = ops.div(real(ops.sub(right, at)), real(ops.maximum(ops.sub(right, center), one)))
    return ops.where(falling, down, ops.where(rising, up, real(0.0)))
