"""The device's own layouts, and conversions both ways: NC1HWC0, FRACTAL_Z and FRACTAL_NZ.

A row of C0 elements has 32 bytes: 16 of float16, 32 of int8, 8 of float32. Axes are padded with zeros to
whole rows and fractals of 16 rows.

=========== ====================== ===========================================
format      tensor                 shape in memory
=========== ====================== ===========================================
NC1HWC0     images [N, C, H, W]    [N, ceil(C / C0), H, W, C0]
FRACTAL_Z   weights [O, I, H, W]   [ceil(I / C0) * H * W, ceil(O / 16), 16, C0]
FRACTAL_NZ  matrices [..., M, N]   [..., ceil(N / C0), ceil(M / 16), 16, C0]
=========== ====================== ===========================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROW_BYTES = 32
FRACTAL = 16  # rows of a fractal
PRIVATE = ("NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ")


def c0_of(itemsize: int) -> int:
    """Elements of `itemsize` bytes in one row."""
    return ROW_BYTES // itemsize


def _ceil(n: int, size: int) -> int:
    return -(-n // size)


def _padded(x: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """`x` at the beginning of zeros of shape `sizes`."""
    if x.shape == sizes:
        return x
    result = np.zeros(sizes, x.dtype)
    result[tuple(slice(n) for n in x.shape)] = x
    return result


def check_rank(format: str, shape: tuple[int, ...]) -> None:
    """Raises ValueError for an unknown format, or one that does not hold tensors of this rank."""
    if format not in PRIVATE:
        raise ValueError(f"the format must be one of {list(PRIVATE)}, but got {format!r}")
    fits = len(shape) >= 2 if format == "FRACTAL_NZ" else len(shape) == 4
    if not fits:
        rank = "2 or more axes" if format == "FRACTAL_NZ" else "4 axes"
        raise ValueError(f"{format} holds tensors of {rank}, but the shape is {list(shape)}")


def device_shape(format: str, shape: tuple[int, ...], c0: int) -> tuple[int, ...]:
    """The shape in memory of a tensor of `shape`. Errors: ValueError if the format does not hold it."""
    check_rank(format, shape)
    if format == "NC1HWC0":
        n, c, h, w = shape
        return n, _ceil(c, c0), h, w, c0
    if format == "FRACTAL_Z":
        o, i, h, w = shape
        return _ceil(i, c0) * h * w, _ceil(o, FRACTAL), FRACTAL, c0
    return *shape[:-2], _ceil(shape[-1], c0), _ceil(shape[-2], FRACTAL), FRACTAL, c0


def to_device(x: np.ndarray, format: str, c0: int | None = None) -> np.ndarray:
    """`x` in `format`; `c0` is that of its dtype unless given. Errors: ValueError as `device_shape`."""
    c0 = c0_of(x.dtype.itemsize) if c0 is None else c0
    device_shape(format, x.shape, c0)
    if format == "NC1HWC0":
        n, c, h, w = x.shape
        c1 = _ceil(c, c0)
        padded = _padded(x, (n, c1 * c0, h, w)).reshape(n, c1, c0, h, w)
        return np.ascontiguousarray(padded.transpose(0, 1, 3, 4, 2))
    if format == "FRACTAL_Z":
        o, i, h, w = x.shape
        o1, i1 = _ceil(o, FRACTAL), _ceil(i, c0)
        padded = _padded(x, (o1 * FRACTAL, i1 * c0, h, w)).reshape(o1, FRACTAL, i1, c0, h, w)
        return np.ascontiguousarray(padded.transpose(2, 4, 5, 0, 1, 3).reshape(i1 * h * w, o1, FRACTAL, c0))
    *batch, m, n = x.shape
    m1, n1 = _ceil(m, FRACTAL), _ceil(n, c0)
    padded = _padded(x, (*batch, m1 * FRACTAL, n1 * c0)).reshape(*batch, m1, FRACTAL, n1, c0)
    axes = range(len(batch))
    k = len(batch)
    return np.ascontiguousarray(padded.transpose(*axes, k + 2, k, k + 1, k + 3))


def from_device(x: np.ndarray, format: str, shape: tuple[int, ...]) -> np.ndarray:
    """The tensor of `shape` that `x` holds in `format`.

    Errors: ValueError if `x` is not what that tensor takes in memory.
    """
    c0 = x.shape[-1] if x.ndim else 0
    want = device_shape(format, tuple(shape), c0) if c0 else ()
    if x.shape != want:
        raise ValueError(
            f"a tensor of {list(shape)} in {format} has shape {list(want)} in memory, but got {list(x.shape)}"
        )
    if format == "NC1HWC0":
        n, c, h, w = shape
        return np.ascontiguousarray(x.transpose(0, 1, 4, 2, 3).reshape(n, x.shape[1] * c0, h, w)[:, :c])
    if format == "FRACTAL_Z":
        o, i, h, w = shape
        split = x.reshape(_ceil(i, c0), h, w, x.shape[1], FRACTAL, c0).transpose(3, 4, 0, 5, 1, 2)
        return np.ascontiguousarray(split.reshape(x.shape[1] * FRACTAL, -1, h, w)[:o, :i])
    *batch, m, n = shape
    k = len(batch)
    split = x.transpose(*range(k), k + 1, k + 2, k, k + 3)
    whole = split.reshape(*batch, x.shape[-3] * FRACTAL, x.shape[-4] * c0)
    return np.ascontiguousarray(whole[..., :m, :n])


@dataclass(frozen=True, slots=True)
class Formatted:
    """A tensor as it lies on the device: `data` in `format`, of a tensor of `shape`."""

    data: np.ndarray
    format: str
    shape: tuple[int, ...]

    def plain(self) -> np.ndarray:
        """The tensor itself, row-major."""
        return from_device(self.data, self.format, self.shape)
