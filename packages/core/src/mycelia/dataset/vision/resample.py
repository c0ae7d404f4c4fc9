"""Resizing, warping and filtering of arrays, with the arithmetic of OpenCV.

8-bit images are interpolated in fixed point (11 bits of weight for resizing, 5 bits of position for warping),
so that results are equal to those of MindSpore's native transforms. They go to `mycelia.engine._data`, which
computes what is written here for the other dtypes.
"""

from __future__ import annotations

import math

import numpy as np

from mycelia.dataset.vision import native
from mycelia.dataset.vision.enums import Inter
from mycelia.engine import _data

_CUBIC = -0.75  # the free parameter of the cubic kernel
_POSITIONS = 32  # places between two pixels


def _cubic_weights(part: np.ndarray) -> np.ndarray:
    """Weights [n, 4] of the neighbours at -1, 0, 1, 2 for positions `part` in [0, 1)."""
    x, a = part.astype(np.float32), np.float32(_CUBIC)
    first = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a
    second = ((a + 2) * x - (a + 3)) * x * x + 1
    third = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1
    return np.stack([first, second, third, 1 - first - second - third], axis=-1).astype(np.float32)


def _places(size: int, wanted: int, area: bool):
    """Left neighbour and the distance from it for each wanted pixel."""
    scale = 1.0 / (wanted / size)
    at = np.arange(wanted)
    if area:
        low = np.floor(at * scale).astype(np.int64)
        part = ((at + 1) - (low + 1) / scale).astype(np.float32)
        return low, np.where(part <= 0, 0, part - np.floor(part)).astype(np.float32)
    exact = ((at + 0.5) * scale - 0.5).astype(np.float32)
    low = np.floor(exact).astype(np.int64)
    return low, (exact - low).astype(np.float32)


def _taps(size: int, wanted: int, mode: Inter, upscaled_area: bool):
    """Neighbours [wanted, taps] and their float32 weights."""
    low, part = _places(size, wanted, upscaled_area)
    if mode == Inter.CUBIC:
        return np.clip(low[:, None] + np.arange(-1, 3), 0, size - 1), _cubic_weights(part)
    part = np.where((low < 0) | (low >= size - 1), np.float32(0), part)
    low = np.clip(low, 0, size - 1)
    index = np.stack([low, np.minimum(low + 1, size - 1)], axis=-1)
    return index, np.stack([1 - part, part], axis=-1)


def _area(size: int, wanted: int) -> np.ndarray:
    """Shares [wanted, size] of the pixels that each wanted pixel covers."""
    scale = size / wanted
    edges = np.arange(wanted)[:, None] * scale
    pixels = np.arange(size)
    overlap = np.minimum(edges + scale, pixels + 1) - np.maximum(edges, pixels)
    return np.clip(overlap, 0, None) / np.minimum(scale, size - edges)


def resize(image: np.ndarray, rows: int, columns: int, mode: Inter) -> np.ndarray:
    """[H, W] or [H, W, C] -> the same with `rows` x `columns` pixels and the same dtype."""
    height, width = image.shape[:2]
    if (rows, columns) == (height, width):
        return image.copy()
    if image.dtype == np.uint8 and image.size:
        return native.resized(image, rows, columns, mode)
    if mode == Inter.NEAREST:
        r = np.minimum(np.floor(np.arange(rows) * (1.0 / (rows / height))).astype(np.int64), height - 1)
        c = np.minimum(np.floor(np.arange(columns) * (1.0 / (columns / width))).astype(np.int64), width - 1)
        return image[r][:, c]
    shrinks = rows <= height and columns <= width
    halves = height == 2 * rows and width == 2 * columns
    if (mode == Inter.AREA and shrinks) or (mode == Inter.LINEAR and halves):
        part = np.float64 if image.dtype == np.float64 else np.float32
        lines = np.tensordot(_area(height, rows).astype(part), image.astype(part), 1)
        result = np.moveaxis(np.tensordot(_area(width, columns).astype(part), lines, (1, 1)), 0, 1)
        if halves and image.dtype.kind in "iu":
            result = np.floor(result + 0.5)
        return to_dtype(result, image.dtype)
    upscaled_area = mode == Inter.AREA
    ri, rw = _taps(height, rows, mode, upscaled_area)
    ci, cw = _taps(width, columns, mode, upscaled_area)
    part = np.float64 if image.dtype == np.float64 else np.float32
    extra = (1,) * (image.ndim - 2)
    values = image.astype(part)
    lines = sum(values[:, ci[:, k]] * cw[:, k].reshape(1, -1, *extra) for k in range(cw.shape[1]))
    result = sum(lines[ri[:, k]] * rw[:, k].reshape(-1, 1, *extra) for k in range(rw.shape[1]))
    return to_dtype(result, image.dtype)


def to_dtype(values: np.ndarray, dtype) -> np.ndarray:
    """Round half to even and clip for ints; a plain cast for floats."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.clip(np.rint(values), limits.min, limits.max).astype(dtype)
    return values.astype(dtype)


def _outside(fill, channels: int, dtype) -> np.ndarray:
    """What lies outside of an image, for each channel: four values that repeat."""
    fill = np.resize(np.asarray(fill, np.float64), 4)
    return to_dtype(np.resize(fill, channels) if channels > 4 else fill[:channels], dtype)


def _tap_weights(mode: Inter) -> np.ndarray:
    """Float32 weights [32, taps] of the neighbours for each fraction of a position; one tap for NEAREST."""
    if mode == Inter.NEAREST:
        return np.ones((_POSITIONS, 1), np.float32)
    if mode == Inter.CUBIC:
        return _cubic_weights(np.arange(_POSITIONS) / _POSITIONS)
    part = np.arange(_POSITIONS, dtype=np.float32) / _POSITIONS
    return np.stack([1 - part, part], axis=-1)


def _warp_bytes(image, inverse: np.ndarray, rows: int, columns: int, mode: Inter, fill, perspective: bool):
    """An 8-bit image through a map, from the way back [3, 3]: the same arithmetic in native code."""
    flat = native.flat(image)
    fill = _outside(fill, flat.shape[2], np.uint8)
    inverse = np.ascontiguousarray(inverse, np.float64)
    warped = _data.warp(flat, inverse, (rows, columns), perspective, _tap_weights(mode), fill)
    return warped.reshape(rows, columns, *image.shape[2:])


def _fetch(image: np.ndarray, y: np.ndarray, x: np.ndarray, fill: np.ndarray) -> np.ndarray:
    """Pixels at (y, x), `fill` outside; always with a channel axis."""
    height, width = image.shape[:2]
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    values = image[np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)]
    return np.where(inside[..., None], values, fill)


def _sample(image: np.ndarray, x: np.ndarray, y: np.ndarray, mode: Inter, fill) -> np.ndarray:
    """Pixels at fixed-point positions (5 bits of fraction), or whole ones for NEAREST."""
    flat = image if image.ndim == 3 else image[:, :, None]
    fill = _outside(fill, flat.shape[2], image.dtype)
    if mode == Inter.NEAREST:
        return _fetch(flat, y, x, fill).reshape(x.shape + image.shape[2:])
    x0, y0, fx, fy = x >> 5, y >> 5, x & 31, y & 31
    table, first = _tap_weights(mode), -1 if mode == Inter.CUBIC else 0
    taps = table.shape[1]
    part = np.float64 if image.dtype == np.float64 else np.float32
    total = np.zeros((*x.shape, flat.shape[2]), part)
    for i in range(taps):
        for j in range(taps):
            weight = table[fy][..., i] * table[fx][..., j]
            total += weight[..., None] * _fetch(flat, y0 + i + first, x0 + j + first, fill).astype(part)
    return to_dtype(total, image.dtype).reshape(x.shape + image.shape[2:])


def warp_affine(image: np.ndarray, matrix, rows: int, columns: int, mode: Inter, fill) -> np.ndarray:
    """The image moved by a matrix [2, 3] of (x, y) positions; `fill` where nothing comes from."""
    inverse = np.linalg.inv(np.vstack([np.asarray(matrix, np.float64), [0, 0, 1]]))[:2]
    if image.dtype == np.uint8 and image.size:
        square = np.vstack([inverse, [0, 0, 1]])
        return _warp_bytes(image, square, rows, columns, mode, fill, False)
    x, y = np.arange(columns), np.arange(rows)[:, None]
    half = 512 if mode == Inter.NEAREST else 16
    shift = 10 if mode == Inter.NEAREST else 5
    places = [
        (
            np.rint((m[1] * y + m[2]) * 1024).astype(np.int64)
            + half
            + np.rint(m[0] * x * 1024).astype(np.int64)
        )
        >> shift
        for m in inverse
    ]
    return _sample(image, places[0], places[1], mode, fill)


def perspective_matrix(source, target) -> np.ndarray:
    """The matrix [3, 3] that moves four points (x, y) of `source` to those of `target`."""
    equations, values = [], []
    for (x, y), (u, v) in zip(source, target):
        equations += [[x, y, 1, 0, 0, 0, -x * u, -y * u], [0, 0, 0, x, y, 1, -x * v, -y * v]]
        values += [u, v]
    solution = np.linalg.lstsq(np.array(equations, np.float64), np.array(values, np.float64), rcond=None)[0]
    return np.append(solution, 1.0).reshape(3, 3)


def warp_perspective(image: np.ndarray, matrix: np.ndarray, mode: Inter) -> np.ndarray:
    """The image seen through a matrix [3, 3]; black where nothing comes from."""
    inverse = np.linalg.inv(matrix)
    height, width = image.shape[:2]
    if image.dtype == np.uint8 and image.size:
        return _warp_bytes(image, inverse, height, width, mode, 0, True)
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    depth = inverse[2, 0] * x + inverse[2, 1] * y + inverse[2, 2]
    scale = np.divide(
        1 if mode == Inter.NEAREST else _POSITIONS, depth, out=np.zeros_like(depth), where=depth != 0
    )
    places = [np.rint((m[0] * x + m[1] * y + m[2]) * scale).astype(np.int64) for m in inverse[:2]]
    return _sample(image, places[0], places[1], mode, 0)


def rotate(image: np.ndarray, degrees: float, mode: Inter, expand: bool, centre, fill) -> np.ndarray:
    """The image turned counter-clockwise around `centre` (x, y), by default its middle."""
    height, width = image.shape[:2]
    cx, cy = centre if centre else ((width - 1) / 2.0, (height - 1) / 2.0)
    angle = math.radians(degrees)
    cos, sin = math.cos(angle), math.sin(angle)
    matrix = np.array(
        [[cos, sin, (1 - cos) * cx - sin * cy], [-sin, cos, sin * cx + (1 - cos) * cy]], np.float64
    )
    rows, columns = height, width
    if expand:
        wide = np.float32(abs(width * cos) + abs(height * sin))
        high = np.float32(abs(width * sin) + abs(height * cos))
        matrix[0, 2] += wide / 2.0 - width / 2.0
        matrix[1, 2] += high / 2.0 - height / 2.0
        rows, columns = int(np.rint(high)), int(np.rint(wide))
    return warp_affine(image, matrix, rows, columns, mode, fill)


def affine_matrix(width, height, degrees, translate, scale, shear) -> np.ndarray:
    """[2, 3]: shear (x, y, degrees), turn and scale around the middle, then move by `translate` pixels."""
    angle, sx, sy = math.radians(degrees), math.radians(shear[0]), math.radians(shear[1])
    cx, cy = (width - 1) / 2.0, (height - 1) / 2.0
    turned = angle - sy
    a = scale * math.cos(turned) / math.cos(sy)
    b = scale * (-math.cos(turned) * math.tan(sx) / math.cos(sy) - math.sin(angle))
    c = scale * math.sin(turned) / math.cos(sy)
    d = scale * (-math.sin(turned) * math.tan(sx) / math.cos(sy) + math.cos(angle))
    return np.array(
        [[a, b, (1 - a) * cx - b * cy + translate[0]], [c, d, (1 - d) * cy - c * cx + translate[1]]]
    )


def _gauss(length: int, sigma: float) -> np.ndarray:
    if sigma <= 0:
        sigma = length * 0.15 + 0.35
    at = np.arange(length) - (length - 1) * 0.5
    weights = np.exp(-(at**2) / (2 * sigma * sigma))
    return weights / weights.sum()


def gaussian_blur(image: np.ndarray, lengths, sigmas) -> np.ndarray:
    """Blur with kernels of `lengths` and `sigmas` (x, y); the border is mirrored without its last pixel."""
    if sigmas[0] <= 0 and sigmas[1] <= 0:
        sigmas = (lengths[0] * 0.15 + 0.35,) * 2
    across, down = (_gauss(length, sigma) for length, sigma in zip(lengths, sigmas))
    if image.dtype == np.uint8 and image.size:
        return _data.blur(native.flat(image), across, down).reshape(image.shape)
    return to_dtype(_along(_along(image.astype(np.float64), across, 1), down, 0), image.dtype)


def _along(values: np.ndarray, weights: np.ndarray, axis: int) -> np.ndarray:
    reach = len(weights) // 2
    size = values.shape[axis]
    widths = [(0, 0)] * values.ndim
    widths[axis] = (reach, reach)
    padded = np.pad(values, widths, mode="reflect" if size > 1 else "edge")
    return sum(w * np.take(padded, np.arange(k, k + size), axis) for k, w in enumerate(weights))


def border(image: np.ndarray, left: int, top: int, right: int, bottom: int, mode: str, fill) -> np.ndarray:
    """The image with a border; `mode` is a value of `Border`, `fill` a colour for the constant one."""
    widths = ((top, bottom), (left, right)) + ((0, 0),) * (image.ndim - 2)
    if mode != "constant":
        return np.pad(image, widths, mode=mode)
    height, width = image.shape[:2]
    result = np.empty((height + top + bottom, width + left + right, *image.shape[2:]), image.dtype)
    result[:] = to_dtype(np.asarray(fill, np.float64), image.dtype)[
        : image.shape[2] if image.ndim == 3 else 1
    ]
    result[top : top + height, left : left + width] = image
    return result
