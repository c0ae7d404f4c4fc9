"""Resizing of images along one dimension after the other, as MindSpore's Resize operators place the pixels.

Where pixel i of the result lies among the old ones: "asymmetric" ``i * n / out``, "align_corners"
``i * (n - 1) / (out - 1)``, "half_pixel" ``(i + 0.5) * n / out - 0.5``.
"""

import math

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ops.arrays.shape import constant, reshape
from mycelia.engine.ops.images.image import (
    _cubic_terms,
    _library,
    _linear_terms,
    _numbers,
    _pick,
    _weighted,
)
from mycelia.engine.ops.linalg.products import matmul

__all__: list[str] = []


def placing(owner, align_corners, half_pixel_centers):
    """The name of the placing that two flags ask for."""
    if align_corners and half_pixel_centers:
        raise errors.value_error(owner, "half_pixel_centers must be False when align_corners is True")
    return "align_corners" if align_corners else "half_pixel" if half_pixel_centers else "asymmetric"


def _places(n, out, where):
    i = _numbers(out, n)
    if where == "align_corners":
        return i * ((n - 1) / (out - 1) if out > 1 else 0.0)
    return (i + 0.5) * (n / out) - 0.5 if where == "half_pixel" else i * (n / out)


def _nearest(x, axis, n, out, where):
    if where == "align_corners":
        at = _places(n, out, where) + 0.5
    else:
        at = (_numbers(out, n) + (0.5 if where == "half_pixel" else 0.0)) * (n / out)
    xp = _library(at)
    return _pick(x, xp.minimum(xp.floor(at), n - 1.0), axis)


def _linear(x, axis, n, out, where):
    return _weighted(x, axis, _linear_terms(_places(n, out, where), n))


def _cubic(x, axis, n, out, where):
    at = _places(n, out, where)
    xp = _library(at)
    low = xp.floor(at)
    at = low + xp.rint((at - low) * 1024) / 1024  # weights come from a table of 1024 distances
    return _weighted(x, axis, _cubic_terms(at, n, where != "half_pixel"))


_KINDS = {"nearest": _nearest, "linear": _linear, "cubic": _cubic}


def resize(owner, x, size, kind, where):
    """The spatial dimensions of x [N, C, *spatial] brought to `size`, a tuple or tensor of ints."""
    if hasattr(size, "asnumpy"):
        size = size.asnumpy().reshape(-1).tolist()
    if len(size) != x.ndim - 2 or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in size):
        raise errors.value_error(owner, f"size must be {x.ndim - 2} positive ints, but got {size}")
    for axis, out in enumerate(size, 2):
        x = _KINDS[kind](x, axis, x.shape[axis], out, where)
    return x


# ----------------------------------------------------------------------------------------- by matrices


def mixed(x, rows, columns):
    """x [N, H, W, C] with its rows and columns mixed by matrices [H', H] and [W', W]."""
    n, height, width, channels = x.shape
    m = constant(rows.astype(x.dtype.np), x.dtype)
    x = reshape(matmul(m, reshape(x, (n, height, width * channels))), (n, len(rows), width, channels))
    return matmul(constant(columns.astype(x.dtype.np), x.dtype), x)


def area_matrix(n, out, align_corners):
    """Each of `out` pixels is the mean of the old ones that it covers."""
    step = (n - 1) / (out - 1) if align_corners and out > 1 else n / out
    matrix = np.zeros((out, n))
    for i in range(out):
        low, high = i * step, (i + 1) * step
        for k in range(math.floor(low), math.ceil(high)):
            matrix[i, min(max(k, 0), n - 1)] += (min(k + 1, high) - max(k, low)) / step
    return matrix


def _lanczos(radius):
    def kernel(t):
        with np.errstate(all="ignore"):
            value = radius * np.sin(np.pi * t) * np.sin(np.pi * t / radius) / (np.pi * t) ** 2
        return np.where(t > radius, 0.0, np.where(t <= 1e-3, 1.0, value))

    return radius, kernel


def _bicubic(b, c):
    """Mitchell and Netravali 1988, with their two parameters."""

    def kernel(t):
        near = (12 - 9 * b - 6 * c) * t**3 + (-18 + 12 * b + 6 * c) * t**2 + 6 - 2 * b
        far = (-b - 6 * c) * t**3 + (6 * b + 30 * c) * t**2 + (-12 * b - 48 * c) * t + 8 * b + 24 * c
        return np.where(t < 1, near, np.where(t < 2, far, 0.0)) / 6

    return 2.0, kernel


#: By name: how far a kernel reaches, and its weight at a distance.
KERNELS = {
    "lanczos1": _lanczos(1.0),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
    "gaussian": (1.5, lambda t: np.where(t < 1.5, np.exp(-t * t / 0.5), 0.0)),
    "box": (1.0, lambda t: np.where(t < 0.5, 1.0, np.where(t == 0.5, 0.5, 0.0))),
    "triangle": (1.0, lambda t: np.maximum(1.0 - t, 0.0)),
    "keyscubic": _bicubic(0.0, 0.5),
    "mitchellcubic": _bicubic(1 / 3, 1 / 3),
}


def kernel_matrix(n, out, scale, translation, name, antialias):
    """Pixel x of the result lies at ``(x + 0.5 - translation) / scale``; zero outside of the image."""
    reach, kernel = KERNELS[name]
    spread = max(1 / scale, 1.0) if antialias else 1.0
    matrix = np.zeros((out, n))
    for i in range(out):
        at = (i + 0.5 - translation) / scale
        if not 0 <= at <= n:
            continue
        first = max(math.ceil(at - reach * spread - 0.5), 0)
        last = min(math.floor(at + reach * spread - 0.5), n - 1)
        k = np.arange(first, last + 1)
        weights = kernel(np.abs(k + 0.5 - at) / spread)
        if abs(weights.sum()) > 1e-30:
            matrix[i, k] = weights / weights.sum()
    return matrix
