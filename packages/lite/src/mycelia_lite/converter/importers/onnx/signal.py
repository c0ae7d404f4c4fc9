"""ONNX's operators on signals: Fourier transforms, windows, mel filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    known_shape,
    need_known,
    operator,
    positive_axis,
    shape_of,
)
from mycelia_lite.converter.importers.onnx.file import dtype_of

_MOST_POINTS = 1 << 14  # of a transform, whose matrix becomes a constant


def _waves(call: Call, length: int, outputs: int, dtype: Any) -> tuple[Any, Any]:
    """Cosines and sines [length, outputs] of the products of places and frequencies."""
    if not 0 < length <= _MOST_POINTS:
        raise call.fail(f"a transform of {length} points, 1 to {_MOST_POINTS} are imported")
    angles = np.outer(np.arange(length), np.arange(outputs)) % length * (2 * np.pi / length)
    return tuple(ms.Tensor(f(angles).astype(dtype.np)) for f in (np.cos, np.sin))


def _fitted(x: Any, size: int, length: int) -> Any:
    """A signal along its last axis cut off or filled up with zeros."""
    if size > length:
        return x[..., :length]
    return ops.pad(x, (0, length - size)) if size < length else x


@operator("DFT")
def _dft(call, x, length=None, axis=None):
    """Products with the matrices of the waves; the last axis is [real] or [real, imaginary]."""
    inverse, onesided = call.get("inverse", 0), call.get("onesided", 0)
    if call.version >= 20:
        axis = -2 if axis is None else int(need_known(call, axis, "axis").reshape(()))
    else:
        axis = call.get("axis", 1)
    axis = positive_axis(call, axis, x.ndim)
    if axis == x.ndim - 1:
        raise call.fail("a transform along the axis of the real and imaginary part")
    parts, size = known_shape(call, x, (axis, x.ndim - 1))[-1], shape_of(x)[axis]
    if parts not in (1, 2) or not x.dtype.is_floating:
        raise call.fail(f"a signal of {x.dtype} with {parts} parts")
    whole_back = inverse and onesided
    if length is not None:
        length = int(need_known(call, length, "dft_length").reshape(()))
    else:
        length = 2 * (size - 1) if whole_back else size
    order = [d for d in range(x.ndim - 1) if d != axis]
    moved = ops.transpose(x, (x.ndim - 1, *order, axis))
    real, imaginary = moved[0], moved[1] if parts == 2 else None
    outputs = length // 2 + 1 if onesided and not inverse else length
    used = min(size, length // 2 + 1) if whole_back else length
    real = _fitted(real, size, used)
    imaginary = None if imaginary is None else _fitted(imaginary, size, used)
    cosines, sines = _waves(call, length, outputs, x.dtype)
    if whole_back:  # the other half of the frequencies is the conjugate of this one
        twice = np.full((used, 1), 2.0)
        twice[0] = 1
        if length % 2 == 0 and used == length // 2 + 1:
            twice[-1] = 1
        scale = ms.Tensor((twice / length).astype(x.dtype.np))
        y = ops.matmul(real, ops.mul(cosines[:used], scale))
        if imaginary is not None:
            y = ops.sub(y, ops.matmul(imaginary, ops.mul(sines[:used], scale)))
        results = [y]
    else:
        if inverse:
            cosines, sines = cosines / length, -sines / length
        results = [ops.matmul(real, cosines), ops.neg(ops.matmul(real, sines))]
        if imaginary is not None:
            results[0] = ops.add(results[0], ops.matmul(imaginary, sines))
            results[1] = ops.add(results[1], ops.matmul(imaginary, cosines))
    y = ops.stack(results)  # [parts, ..., frequencies]
    back = [0] * x.ndim
    for place, d in enumerate((x.ndim - 1, *order, axis)):
        back[d] = place
    return ops.transpose(y, tuple(back))


@operator("STFT")
def _stft(call, signal, step, window=None, length=None):
    """Transforms of frames of the signal, each times the window."""
    onesided = call.get("onesided", 1)
    step = int(need_known(call, step, "frame_step").reshape(()))
    if length is not None:
        length = int(need_known(call, length, "frame_length").reshape(()))
    elif window is not None:
        length = known_shape(call, window)[0]
    else:
        raise call.fail("neither window nor frame_length is there")
    shape = known_shape(call, signal, (1,))
    if signal.ndim == 3 and shape_of(signal)[2] == 2:
        parts = [signal[..., 0], signal[..., 1]]
        if onesided:
            raise call.attribute("onesided", "the signal is complex")
    else:
        parts = [ops.reshape(signal, shape[:2])]
    count = (shape[1] - length) // step + 1
    if step < 1 or count < 1:
        raise call.fail(f"frames of {length} at steps of {step} do not fit a signal of {shape[1]}")
    if count * length > 1 << 22:
        raise call.fail(f"{count} frames of {length}")
    places = ms.Tensor((np.arange(count)[:, None] * step + np.arange(length)).reshape(-1))
    frames = [ops.reshape(ops.gather(p, places, 1), (shape[0], count, length)) for p in parts]
    if window is not None:
        if shape_of(window) != (length,):
            raise call.fail(f"a window of {list(shape_of(window))} for frames of {length}")
        frames = [ops.mul(f, window) for f in frames]
    cosines, sines = _waves(call, length, length // 2 + 1 if onesided else length, signal.dtype)
    real, imaginary = ops.matmul(frames[0], cosines), ops.neg(ops.matmul(frames[0], sines))
    if len(frames) == 2:
        real = ops.add(real, ops.matmul(frames[1], sines))
        imaginary = ops.add(imaginary, ops.matmul(frames[1], cosines))
    return ops.stack([real, imaginary], -1)


_WINDOWS = {  # coefficients of 1, -cos, cos of twice the angle
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}


@operator(*_WINDOWS)
def _window(call, size):
    """A periodic window, or with `periodic` 0 a symmetric one; of a known size or one that is data."""
    dtype = dtype_of(call.get("output_datatype", 1), f"node '{call.name}' ({call.kind}): its result")
    count = int(need_known(call, size, "size").reshape(()))
    if not 0 <= count <= 1 << 22:
        raise call.fail(f"a window of {count} elements")
    period = count if call.get("periodic", 1) else count - 1
    angles = 2 * math.pi * np.arange(count) / max(period, 1)
    a, b, c = _WINDOWS[call.kind]
    values = a - b * np.cos(angles) + c * np.cos(2 * angles)
    return ms.Tensor(values.astype(dtype.np) if dtype is not ms.bfloat16 else values).astype(dtype)


@operator("MelWeightMatrix")
def _mel_weights(call, bins, length, rate, low, high):
    """Triangles whose corners are evenly spaced in mel, over the bins of a spectrogram."""
    dtype = dtype_of(call.get("output_datatype", 1), f"node '{call.name}' ({call.kind}): its result")
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
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
