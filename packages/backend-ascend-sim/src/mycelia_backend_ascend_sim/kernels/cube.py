"""Kernels of the cube unit: products of matrices, convolutions and their gradients (R6 to R8).

Operands are read as they lie in memory; results lie in the cube's layouts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from mycelia import dtypes
from mycelia.dtypes import DType
from mycelia.io import device_formats as formats
from mycelia.io.device_formats import Formatted
from mycelia_backend_ascend_sim import arithmetic
from mycelia_backend_ascend_sim.overflow import AI_CORE, ATOMIC_ADD
from mycelia_backend_ascend_sim.tasks import Operand, Task

INTEGERS = (dtypes.int8, dtypes.uint8)
_COLUMNS = 1 << 23  # elements of windows that are laid out at one time, 32 MiB


def in_layout(values: np.ndarray, format: str, dtype: DType) -> Formatted | np.ndarray:
    """float32 `values` of a tensor of `dtype` in the cube's layout, where there is one for this rank."""
    fits = values.ndim >= 2 if format == "FRACTAL_NZ" else values.ndim == 4
    if not fits or not values.size:
        return values
    data = formats.to_device(values, format, formats.c0_of(dtype.itemsize))
    return Formatted(data, format, values.shape)


def _sums(task: Task, dtype: DType) -> dict[str, bool]:
    """How `arithmetic.accumulate` adds up products of tensors of `dtype`."""
    narrow = task.options.precision_mode == "allow_fp32_to_fp16"
    exact = dtype is dtypes.float16 or dtype is dtypes.float32 and narrow
    return {"exact": exact, "half": exact and task.options.accumulate == "fp16"}


def products(task: Task, a: np.ndarray, b: np.ndarray, dtype: DType) -> np.ndarray:
    """The products of a stack of matrices, of tensors of `dtype`; the axes before the last two broadcast."""
    how = _sums(task, dtype)
    if a.ndim == b.ndim == 2:
        return arithmetic.product(a, b, **how)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = np.empty((*batch, a.shape[-2], b.shape[-1]), np.float32)
    a = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    for place in np.ndindex(*batch):
        result[place] = arithmetic.product(a[place], b[place], **how)
    return result


def mat_mul_values(task: Task, x: Operand, y: Operand, *, transpose_a: bool, transpose_b: bool):
    """The product of the last two axes as it lies in the accumulators; integers of 8 bits give int32."""
    if x.dtype in INTEGERS:
        a, b = x.stored(), y.stored()
    else:
        a, b = x.cube_values("FRACTAL_NZ"), y.cube_values("FRACTAL_NZ")
    a = a.swapaxes(-1, -2) if transpose_a else a
    b = b.swapaxes(-1, -2) if transpose_b else b
    return arithmetic.integer_product(a, b) if x.dtype in INTEGERS else products(task, a, b, x.dtype)


def _rows(x: Operand) -> int:
    return int(np.prod(x.shape[:-1]))


def dense_values(task: Task, x: Operand, w: Operand, b: Operand | None):
    """``x @ w.T + b`` as it lies in the accumulators."""
    if x.dtype in INTEGERS:
        rows = x.stored().reshape(_rows(x), x.shape[-1])
        y = arithmetic.integer_product(rows, w.stored().T)
        return (y if b is None else y + b.stored()).reshape(*x.shape[:-1], w.shape[0])
    rows = x.cube_values("FRACTAL_NZ").reshape(_rows(x), x.shape[-1])
    y = arithmetic.product(rows, w.cube_values("FRACTAL_NZ").T, **_sums(task, x.dtype))
    y = y if b is None else y + b.values()
    return y.reshape(*x.shape[:-1], w.shape[0])


# ---- convolutions ------------------------------------------------------------------------------------------


class Geometry:
    """The windows of a convolution: attributes spread over its dimensions, positions computed if None."""

    def __init__(self, size, kernel, positions, stride, pad, dilation) -> None:
        rank = len(kernel)
        self.size, self.kernel = tuple(size), tuple(kernel)
        self.stride = tuple(stride) * rank if len(stride) == 1 else tuple(stride)
        self.dilation = tuple(dilation) * rank if len(dilation) == 1 else tuple(dilation)
        self.pad = tuple(pad) * (2 * rank) if len(pad) == 1 else tuple(pad)
        self.positions = tuple(self._positions() if positions is None else positions)
        self.taps = list(itertools.product(*map(range, kernel)))

    def _positions(self) -> Iterator[int]:
        for d, n in enumerate(self.size):
            reach = self.dilation[d] * (self.kernel[d] - 1) + 1
            yield (n + self.pad[d] + self.pad[len(self.kernel) + d] - reach) // self.stride[d] + 1

    def meetings(self, tap) -> tuple[tuple, tuple] | None:
        """Slices of positions, and of the places that the tap reads there; None if all lie on padding."""
        at, read = [], []
        for d, t in enumerate(tap):
            offset = t * self.dilation[d] - self.pad[d]
            first = max(0, -(offset // self.stride[d]))
            last = min(self.positions[d] - 1, (self.size[d] - 1 - offset) // self.stride[d])
            if first > last:
                return None
            at.append(slice(first, last + 1))
            step = self.stride[d]
            read.append(slice(first * step + offset, last * step + offset + 1, step))
        return tuple(at), tuple(read)

    def columns(self, x: np.ndarray, *, backward: bool = False, missing: float = 0) -> np.ndarray:
        """What each tap reads: [taps, *x.shape[:-rank], *positions]; `missing` where it reads nothing.

        `backward`: x lies at positions, and the result at places.
        """
        rank = len(self.kernel)
        where = self.size if backward else self.positions
        result = np.full((len(self.taps), *x.shape[: x.ndim - rank], *where), missing, x.dtype)
        for i, tap in enumerate(self.taps):
            if found := self.meetings(tap):
                at, read = found if not backward else found[::-1]
                result[(i, ..., *at)] = x[(..., *read)]
        return result

    def full(self) -> bool:
        """Whether every tap meets an element at each position."""
        whole = tuple(slice(0, n) for n in self.positions)
        return all(found and found[0] == whole for found in map(self.meetings, self.taps))


def _images_at_once(channels: int, taps: int, places: int, images: int) -> Iterator[slice]:
    count = max(1, _COLUMNS // max(1, channels * taps * places))
    for first in range(0, images, count):
        yield slice(first, min(first + count, images))


def _windows(
    geometry: Geometry, x: np.ndarray, w: np.ndarray, backward: bool, how: dict[str, bool]
) -> np.ndarray:
    """Sums over (channel block, tap, channel) of R7: x [N, C, *places], w [C, O, taps] -> [N, O, *places]."""
    where = geometry.size if backward else geometry.positions
    images, channels = x.shape[:2]
    outputs, taps = w.shape[1:]
    places = int(np.prod(where))
    result = np.empty((outputs, images, places), np.float32)
    masked = not np.isfinite(w).all() and (backward or not geometry.full())
    whole = channels // arithmetic.BLOCK * arithmetic.BLOCK
    for here in _images_at_once(channels, taps, places, images):
        count = here.stop - here.start
        total = np.zeros((outputs, count * places), np.float32)
        columns = geometry.columns(x[here].swapaxes(0, 1), backward=backward)  # [taps, C, n, *places]
        columns = columns.reshape(taps, channels, count * places)
        mask = None
        if masked:
            ones = geometry.columns(np.ones_like(x[here], bool).swapaxes(0, 1), backward=backward)
            mask = ones.reshape(columns.shape)
        for first, last in ((0, whole), (whole, channels)):
            if first == last:
                continue
            size = min(arithmetic.BLOCK, last - first)

            def blocked(a, first=first, last=last, size=size):
                """[taps, C, M] -> [blocks of channels and taps, size, M]"""
                part = a[:, first:last].reshape(taps, -1, size, a.shape[-1])
                return np.ascontiguousarray(part.swapaxes(0, 1)).reshape(-1, size, a.shape[-1])

            arithmetic.accumulate(
                total,
                blocked(w.transpose(2, 0, 1)),
                blocked(columns),
                **how,
                mask=None if mask is None else blocked(mask),
            )
        result[:, here] = total.reshape(outputs, count, places)
    return result.swapaxes(0, 1).reshape(images, outputs, *where)


def _grouped(function, group: int, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """`function` for each group of channels; the results side by side."""
    if group == 1:
        return function(x, w)
    c, o = x.shape[1] // group, w.shape[0] // group
    parts = [function(x[:, g * c : (g + 1) * c], w[g * o : (g + 1) * o]) for g in range(group)]
    return np.concatenate(parts, 1)


def conv_values(task: Task, x: Operand, w: Operand, b: Operand | None, *, stride, pad, dilation, group):
    """A convolution as it lies in the accumulators."""
    xs, ws = x.cube_values("NC1HWC0"), w.cube_values("FRACTAL_Z")
    geometry = Geometry(x.shape[2:], w.shape[2:], None, stride, pad, dilation)
    how = _sums(task, x.dtype)

    def forward(xs, ws):
        return _windows(geometry, xs, ws.reshape(*ws.shape[:2], -1).swapaxes(0, 1), False, how)

    y = _grouped(forward, group, xs, ws)
    return y if b is None else y + b.values().reshape(-1, *[1] * (y.ndim - 2))


def conv_input_grad_values(task: Task, dy: Operand, w: Operand, *, size, stride, pad, dilation, group):
    ys, ws = dy.cube_values("NC1HWC0"), w.cube_values("FRACTAL_Z")
    geometry = Geometry(size, w.shape[2:], dy.shape[2:], stride, pad, dilation)
    how = _sums(task, dy.dtype)

    def backward(ys, ws):
        return _windows(geometry, ys, ws.reshape(*ws.shape[:2], -1), True, how)

    return _grouped(backward, group, ys, ws)


def conv_weight_grad_values(task: Task, x: Operand, dy: Operand, *, kernel, stride, pad, dilation, group):
    xs, ys = x.cube_values("NC1HWC0"), dy.cube_values("NC1HWC0")
    geometry = Geometry(x.shape[2:], kernel, dy.shape[2:], stride, pad, dilation)
    how = _sums(task, x.dtype)
    c, o = xs.shape[1] // group, ys.shape[1] // group
    parts = [
        _weight_grad(geometry, xs[:, g * c : (g + 1) * c], ys[:, g * o : (g + 1) * o], how)
        for g in range(group)
    ]
    return np.concatenate(parts, 0) if group > 1 else parts[0]


def _weight_grad(geometry: Geometry, x: np.ndarray, dy: np.ndarray, how: dict[str, bool]) -> np.ndarray:
    images, channels = x.shape[:2]
    taps, outputs = len(geometry.taps), dy.shape[1]
    places = int(np.prod(geometry.positions))
    blocks = -(-places // arithmetic.BLOCK)
    total = np.zeros((outputs, taps * channels), np.float32)
    masked = not np.isfinite(dy).all() and not geometry.full()

    def rows(a, last):
        """[n, *, places] -> [blocks of places of each image, 16, last]; missing places are zeros."""
        padded = np.zeros((len(a), blocks * arithmetic.BLOCK, last), a.dtype)
        padded[:, :places] = a.reshape(len(a), last, places).swapaxes(1, 2)
        return padded.reshape(-1, arithmetic.BLOCK, last)

    for here in _images_at_once(channels, taps, places, images):
        part = geometry.columns(x[here]).swapaxes(0, 1)  # [n, taps, C, *positions]
        mask = None
        if masked:
            mask = rows(geometry.columns(np.ones_like(x[here], bool)).swapaxes(0, 1), taps * channels)
        left, right = rows(dy[here], outputs), rows(part, taps * channels)
        arithmetic.accumulate(total, left, right, mask=mask, **how)
    return total.reshape(outputs, *geometry.kernel, channels).transpose(
        0, len(geometry.kernel) + 1, *range(1, len(geometry.kernel) + 1)
    )


#: op -> (accumulators of its kernel, layout of its result).
HOSTS = {
    "mat_mul": (mat_mul_values, "FRACTAL_NZ"),
    "batch_matmul": (mat_mul_values, "FRACTAL_NZ"),
    "dense": (dense_values, "FRACTAL_NZ"),
    "conv": (conv_values, "NC1HWC0"),
    "conv_input_grad": (conv_input_grad_values, "NC1HWC0"),
    "conv_weight_grad": (conv_weight_grad_values, "FRACTAL_Z"),
}
#: Ops whose results several cores add up in memory.
ATOMIC = {"conv_weight_grad": AI_CORE | ATOMIC_ADD}


def run(op: str, task: Task, *operands, **attrs):
    """The result of a cube op in its layout."""
    values, format = HOSTS[op]
    found = values(task, *operands, **attrs)
    task.status_bits = ATOMIC.get(op, AI_CORE)
    dtype = task.outputs[0].dtype
    return found if dtype in INTEGERS else in_layout(found, format, dtype)
