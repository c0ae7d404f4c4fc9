"""Images read at places between elements, and windows of images added up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mycelia_lite.converter.meanings.table import meaning

_CUBIC = -0.75  # of Keys' cubic convolution


def _reflected(place: np.ndarray, low: float, high: float) -> np.ndarray:
    """Places beyond the ends, mirrored at them as often as needed."""
    span = high - low
    if span <= 0:
        return np.full_like(place, low)
    rest = np.mod(place - low, 2 * span)
    return low + np.minimum(rest, 2 * span - rest)


def _weights(fraction: np.ndarray, mode: int) -> list[tuple[int, np.ndarray]]:
    """Offsets of the elements around a place, and their weights."""
    if mode == 1:
        return [(0, 1 - fraction), (1, fraction)]

    def near(t):
        return ((_CUBIC + 2) * t - (_CUBIC + 3)) * t * t + 1

    def far(t):
        return ((_CUBIC * t - 5 * _CUBIC) * t + 8 * _CUBIC) * t - 4 * _CUBIC

    return [(-1, far(fraction + 1)), (0, near(fraction)), (1, near(1 - fraction)), (2, far(2 - fraction))]


@meaning("grid_sample")
def sampled(x, grid, *, mode, padding, corners):
    """x [N, C, sizes...] at places [N, ..., rank] from -1 to 1, the last axis of x first.

    `mode`: 0 nearest, 1 linear, 2 cubic; `padding`: 0 zeros, 1 the border, 2 mirror images.
    """
    sizes = x.shape[2:]
    axes = []  # of each axis (index, whether it is inside, weight) of the elements that count
    for d, n in enumerate(sizes):
        place = grid[..., len(sizes) - 1 - d].astype(np.float32)
        size = np.float32(n)
        place = (place + 1) / 2 * (size - 1) if corners else ((place + 1) * size - 1) / 2
        place = np.rint(place) if mode == 0 else place.astype(np.float64)
        low, high = (0.0, n - 1.0) if corners else (-0.5, n - 0.5)
        if padding == 1 and mode != 2:
            place = np.clip(place, 0, n - 1)
        elif padding == 2:
            place = np.where((place < low) | (place > high), _reflected(place, low, high), place)
        first = np.trunc(place) if mode == 0 else np.floor(place)
        around = [(0, np.ones_like(place))] if mode == 0 else _weights(place - first, mode)
        taps = []
        for offset, weight in around:
            at = first + offset
            inside = (at >= 0) & (at < n)
            at = np.where(inside, at, _reflected(at, low, high)) if padding == 2 else at
            taps.append((np.clip(np.trunc(at), 0, n - 1).astype(int), inside | bool(padding), weight))
        axes.append(taps)
    made = np.zeros((len(x), x.shape[1], *grid.shape[1:-1]))
    for image in range(len(x)):
        for taps in itertools.product(*axes):
            at = tuple(t[0][image] for t in taps)
            weight = np.prod([t[1][image] * t[2][image] for t in taps], axis=0)
            made[image] += np.where(weight == 0, 0, x[image][(slice(None), *at)] * weight)
    return made.astype(x.dtype)


@meaning("affine_grid")
def grid_of(theta, size, *, corners):
    """Places from -1 to 1 of images of `size`, through matrices [N, rank, rank + 1]; the last axis first."""
    sizes = [int(n) for n in size[2:]]
    lines = [
        np.linspace(-1, 1, n) if corners and n > 1 else (2 * np.arange(n) + 1) / n - 1 if not corners
        else np.full(n, -1.0)
        for n in sizes
    ]  # fmt: skip
    places = np.meshgrid(*lines, indexing="ij")[::-1]
    base = np.stack([*places, np.ones(sizes)], -1)
    return np.einsum("...k,nrk->n...r", base, theta.astype(np.float64)).astype(theta.dtype)


def _bilinear(image: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
    """image [C, H, W] at rows v and columns u; what lies outside is 0."""
    top, left = np.floor(v), np.floor(u)
    made = np.zeros((len(image), *v.shape))
    for down, right in itertools.product((0, 1), repeat=2):
        row, column = top + down, left + right
        inside = (row >= 0) & (row < image.shape[1]) & (column >= 0) & (column < image.shape[2])
        weight = (1 - abs(v - row)) * (1 - abs(u - column)) * inside
        at = [np.where(inside, i, 0).astype(int) for i in (row, column)]
        made += image[:, at[0], at[1]] * weight
    return made


@meaning("roi_align")
def regions_pooled(x, boxes, images, *, largest, half_pixel, samples, scale, pooled):
    """Means (or the largest part) of `samples` x `samples` places in each cell of regions, corners x y x y.

    With 0 samples there are as many as elements in a cell, rounded up. ONNX's RoiAlign.
    """
    made = np.zeros((len(boxes), x.shape[1], *pooled))
    for r, (box, image) in enumerate(zip(boxes.astype(np.float64), images.tolist(), strict=True)):
        left, top, right, bottom = box * scale - (0.5 if half_pixel else 0)
        sides = [bottom - top, right - left]
        sides = sides if half_pixel else [max(side, 1.0) for side in sides]
        cells = [side / n for side, n in zip(sides, pooled)]
        counts = [samples or max(int(np.ceil(cell)), 0) for cell in cells]
        rows, columns = (
            start + (np.arange(n * count) + 0.5) * cell / count if count else np.zeros(0)
            for start, n, cell, count in zip((top, left), pooled, cells, counts)
        )
        if not min(counts):
            continue
        v, u = np.meshgrid(rows, columns, indexing="ij")
        high, wide = x.shape[2:]
        there = (v >= -1) & (v <= high) & (u >= -1) & (u <= wide)
        v, u = np.clip(v, 0, high - 1), np.clip(u, 0, wide - 1)
        top_, left_ = np.minimum(np.floor(v), high - 1), np.minimum(np.floor(u), wide - 1)
        parts = []
        for down, right_ in itertools.product((0, 1), repeat=2):
            weight = (v - top_ if down else 1 - v + top_) * (u - left_ if right_ else 1 - u + left_) * there
            at = [np.minimum(a, n - 1).astype(int) for a, n in ((top_ + down, high), (left_ + right_, wide))]
            at = [np.where(there, a, 0) for a in at]
            parts.append(x[image][:, at[0], at[1]] * weight)
        shape = (x.shape[1], pooled[0], counts[0], pooled[1], counts[1])
        if largest:
            made[r] = np.max(parts, axis=0).reshape(shape).max(axis=(2, 4))
        else:
            made[r] = np.sum(parts, axis=0).reshape(shape).mean(axis=(2, 4))
    return made.astype(x.dtype)


@meaning("deform_conv")
def deformed(x, weight, offset, *more, stride, dilation, pad, group, offset_group, **given):
    """The convolution whose windows' places are moved by `offset`, y before x: ONNX's DeformConv."""
    there = given["with"]
    bias, mask = (more[sum(there[:i])] if t else None for i, t in enumerate(there))
    count, (rows, columns) = len(x), offset.shape[2:]
    outputs, kernel = weight.shape[0], weight.shape[2:]
    moves = offset.astype(np.float64).reshape(count, offset_group, *kernel, 2, rows, columns)
    factors = None if mask is None else mask.reshape(count, offset_group, *kernel, rows, columns)
    each = x.shape[1] // offset_group
    taps = np.zeros((count, x.shape[1], *kernel, rows, columns))
    for n, g, i, j in np.ndindex(count, offset_group, *kernel):
        v = np.arange(rows)[:, None] * stride[0] - pad[0] + i * dilation[0] + moves[n, g, i, j, 0]
        u = np.arange(columns) * stride[1] - pad[1] + j * dilation[1] + moves[n, g, i, j, 1]
        part = _bilinear(x[n, g * each : (g + 1) * each].astype(np.float64), v, u)
        taps[n, g * each : (g + 1) * each, i, j] = part if factors is None else part * factors[n, g, i, j]
    taps = taps.reshape(count, group, x.shape[1] // group, *taps.shape[2:])
    grouped = weight.astype(np.float64).reshape(group, outputs // group, *weight.shape[1:])
    y = np.einsum("ngcijrk,gocij->ngork", taps, grouped).reshape(count, outputs, rows, columns)
    return (y if bias is None else y + bias[:, None, None]).astype(x.dtype)


def _added_up(
    windows: np.ndarray, size: Sequence[int], stride: Sequence[int], pad: Sequence[int],
    dilation: Sequence[int],
) -> np.ndarray:  # fmt: skip
    """Windows [N, C, kernel..., counts...] added up in images [N, C, size...]; `pad`: begins, then ends."""
    rank = len(size)
    kernel, counts = windows.shape[2 : 2 + rank], windows.shape[2 + rank :]
    whole = [n + pad[d] + pad[d + rank] for d, n in enumerate(size)]
    reach = [
        max(n, (c - 1) * s + (k - 1) * e + 1)
        for n, c, s, k, e in zip(whole, counts, stride, kernel, dilation)
    ]
    made = np.zeros((*windows.shape[:2], *reach))
    for place in np.ndindex(*kernel):
        where = tuple(
            slice(p * e, p * e + (c - 1) * s + 1, s) for p, e, c, s in zip(place, dilation, counts, stride)
        )
        made[(slice(None), slice(None), *where)] += windows[(slice(None), slice(None), *place)]
    inner = tuple(slice(pad[d], pad[d] + n) for d, n in enumerate(size))
    return made[(slice(None), slice(None), *inner)]


@meaning("col2im")
def put_back(x, image, block, *, stride, dilation, pad):
    size, kernel = ([int(n) for n in v] for v in (image, block))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    rank = len(size)
    counts = [(n + pad[d] + pad[d + rank] - spans[d]) // stride[d] + 1 for d, n in enumerate(size)]
    windows = x.reshape(len(x), -1, *kernel, *counts)
    return _added_up(windows, size, stride, pad, dilation).astype(x.dtype)


def transposed_convolution(x, weight, *, stride, pad, dilation, extra, group):
    """Images [N, C, H, W] by weights [C, O / group, kh, kw]; `extra` rows and columns at the end."""
    kernel = weight.shape[2:]
    size = [
        (n - 1) * s + (k - 1) * d + 1 + e - pad[i] - pad[i + 2]
        for i, (n, s, k, d, e) in enumerate(zip(x.shape[2:], stride, kernel, dilation, extra))
    ]
    each = x.shape[1] // group
    grouped = x.astype(np.float64).reshape(len(x), group, each, *x.shape[2:])
    weights = weight.astype(np.float64).reshape(group, each, *weight.shape[1:])
    windows = np.einsum("ngchw,gcoij->ngoijhw", grouped, weights)
    windows = windows.reshape(len(x), -1, *kernel, *x.shape[2:])
    return _added_up(windows, size, stride, pad, dilation).astype(x.dtype)
