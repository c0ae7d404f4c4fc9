"""Functions of images and feature maps [N, C, ...]: resizing, and moving elements
between channels and space.
"""

import math
from types import SimpleNamespace

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ops.arrays import create as _create
from mycelia.engine.ops.arrays import gathering as _gathering
from mycelia.engine.ops.arrays.axes import transpose
from mycelia.engine.ops.arrays.masks import where as _where
from mycelia.engine.ops.arrays.shape import constant, reshape
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise import rounding as _rounding
from mycelia.engine.ops.elementwise.cast import cast as _cast
from mycelia.engine.ops.nn_ops import adaptive_pool as _adaptive_pool

_RANKS = {
    "nearest": (3, 4, 5), "nearest-exact": (3, 4, 5), "area": (3, 4, 5),
    "linear": (3,), "bilinear": (4,), "bicubic": (4,), "trilinear": (5,),
}  # fmt: skip


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None
):
    """Resize the spatial dimensions to `size`, or by `scale_factor` (a number or one per dimension).

    `mode`: 'nearest', 'nearest-exact', 'area' (means) or 'linear', 'bilinear', 'trilinear', 'bicubic' for 1,
    2, 3 and 2 spatial dimensions. `align_corners`: the centres of the corner elements stay where they are,
    else the corners of the image. With `recompute_scale_factor` positions follow from the sizes, not from
    the factor as it was given.
    Shapes: [N, C, *spatial] -> [N, C, *size].  Errors: ValueError for a rank, mode or size that does not fit.
    """
    owner = "interpolate"
    if mode not in _RANKS:
        raise errors.one_of(mode, list(_RANKS), subject=owner, what="mode")
    if input.ndim not in _RANKS[mode]:
        raise errors.value_error(
            owner,
            f"mode {mode!r} takes inputs of rank {' or '.join(map(str, _RANKS[mode]))}, "
            f"got shape {list(input.shape)}",
        )
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise errors.value_error(owner, f"align_corners cannot be given with mode {mode!r}")
    if (size is None) == (scale_factor is None):
        raise errors.value_error(owner, "exactly one of size and scale_factor must be given")
    spatial = input.shape[2:]
    if size is not None:
        if recompute_scale_factor:
            raise errors.value_error(owner, "recompute_scale_factor needs scale_factor, not size")
        sizes, factors = _per_axis(owner, "size", size, len(spatial)), [None] * len(spatial)
    else:
        factors = _per_axis(owner, "scale_factor", scale_factor, len(spatial))
        sizes = [math.floor(n * f) for n, f in zip(spatial, factors)]
    if any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in sizes):
        raise errors.value_error(owner, f"the output size must hold positive ints, but is {tuple(sizes)}")
    if mode == "area":
        pool = (
            _adaptive_pool.adaptive_avg_pool1d,
            _adaptive_pool.adaptive_avg_pool2d,
            _adaptive_pool.adaptive_avg_pool3d,
        )[len(spatial) - 1]
        return pool(input, sizes[0] if len(sizes) == 1 else tuple(sizes))
    result = input
    for d, (n, out, factor) in enumerate(zip(spatial, sizes, factors)):
        step = n / out if factor is None or recompute_scale_factor else 1 / factor
        result = _resize_axis(result, d + 2, n, out, step, mode, bool(align_corners))
    return result


def _per_axis(owner: str, name: str, value, count: int) -> list:
    values = list(value) if isinstance(value, (tuple, list)) else [value] * count
    if len(values) != count:
        raise errors.value_error(
            owner, f"{name} must hold {count} numbers, one per dimension, but got {value!r}"
        )
    if any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in values):
        raise errors.type_error(owner, f"{name} must hold numbers, but got {value!r}")
    if any(v <= 0 for v in values):
        raise errors.value_error(owner, f"{name} must be positive, but got {value!r}")
    return values


def _resize_axis(x, axis: int, n: int, out: int, step: float, mode: str, align: bool):
    """One dimension from `n` to `out` elements that lie `step` old elements apart."""
    i = _numbers(out, n)
    xp = _library(i)
    if mode == "nearest":
        return _pick(x, xp.minimum(xp.floor(i * step), n - 1.0), axis)
    if mode == "nearest-exact":
        return _pick(x, xp.minimum(xp.floor((i + 0.5) * step), n - 1.0), axis)
    at = i * ((n - 1) / (out - 1) if out > 1 else 0.0) if align else (i + 0.5) * step - 0.5
    if mode == "bicubic":
        return _weighted(x, axis, _cubic_terms(at, n, align))
    return _weighted(x, axis, _linear_terms(at, n))


def _numbers(count: int, n: int):
    """0, 1, ... up to `count`: an array, or where it or `n` is a size left open a float64 tensor of the
    graph, so that what is computed from them holds for all sizes.
    """
    if type(count) is SymInt:
        return _cast(_create.arange(count), dtype=dtypes.float64)
    return constant(np.arange(count), dtypes.float64) if type(n) is SymInt else np.arange(count)


_OF_GRAPH = SimpleNamespace(
    floor=_rounding.floor, rint=_rounding.round, minimum=_clipping.minimum, maximum=_clipping.maximum,
    abs=_math.abs, where=_where,
)  # fmt: skip


def _library(places):
    """NumPy, or the functions of the same names for tensors."""
    return np if isinstance(places, np.ndarray) else _OF_GRAPH


def _pick(x, places, axis: int):
    graph = _library(places) is _OF_GRAPH
    found = _cast(places, dtype=dtypes.int32) if graph else constant(places.astype(np.int32))
    return _gathering.gather(x, found, axis)


def _weighted(x, axis: int, terms):
    total = None
    for places, weights in terms:
        shape = (-1,) + (1,) * (x.ndim - axis - 1)
        if _library(weights) is _OF_GRAPH:
            factors = _cast(reshape(weights, shape), dtype=x.dtype)
        else:
            factors = constant(weights.reshape(shape).astype(x.dtype.np), x.dtype)
        term = _math.mul(_pick(x, places, axis), factors)
        total = term if total is None else _math.add(total, term)
    return total


def _linear_terms(at, n: int):
    """The two neighbours of each place, and their weights."""
    xp = _library(at)
    at = xp.minimum(xp.maximum(at, 0.0), n - 1.0)
    low = xp.floor(at)
    return [(low, 1 - (at - low)), (xp.minimum(low + 1, n - 1.0), at - low)]


def _cubic_terms(at, n: int, align: bool):
    """Four neighbours and their weights by cubic convolution (Keys 1981).

    As MindSpore's CPU kernel: with aligned corners a = -0.75 and the border repeated, else a = -0.5,
    neighbours beyond the border left out, and places rounded to 1 / 1024, the step of its table of weights.
    """
    xp = _library(at)
    low = xp.floor(at)
    at = at if align else low + xp.rint((at - low) * 1024) / 1024
    terms = []
    for k in (-1, 0, 1, 2):
        places = low + k
        weights = _cubic(at - places, -0.75 if align else -0.5)
        terms.append((places, weights if align else xp.where((places >= 0) & (places < n), weights, 0.0)))
    total = sum(weights for _, weights in terms)
    return [(xp.minimum(xp.maximum(places, 0.0), n - 1.0), weights / total) for places, weights in terms]


def _cubic(distance, a: float):
    xp = _library(distance)
    t = xp.abs(distance)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return xp.where(t <= 1, near, xp.where(t < 2, far, 0.0))


def upsample(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None
):
    """The same as `interpolate`."""
    return interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


def _check_factor(owner: str, name: str, factor) -> None:
    if isinstance(factor, bool) or not isinstance(factor, int):
        raise errors.type_error(owner, f"{name} must be an int, but got {factor!r}")
    if factor < 1:
        raise errors.value_error(owner, f"{name} must be positive, but got {factor}")


def pixel_shuffle(input, upscale_factor):
    """Channels moved into space (Shi et al. 2016).

    Shapes: [..., C * r * r, H, W] -> [..., C, H * r, W * r].
    """
    _check_factor("pixel_shuffle", "upscale_factor", upscale_factor)
    r = upscale_factor
    if input.ndim < 3 or input.shape[-3] % (r * r):
        raise errors.value_error(
            "pixel_shuffle",
            f"the input must be [..., C * {r * r}, H, W], but its shape is {list(input.shape)}",
        )
    *lead, c, h, w = input.shape
    k = len(lead)
    x = reshape(input, (*lead, c // (r * r), r, r, h, w))
    x = transpose(x, (*range(k), k, k + 3, k + 1, k + 4, k + 2))
    return reshape(x, (*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(input, downscale_factor):
    """Space moved into channels, the inverse of `pixel_shuffle`.

    Shapes: [..., C, H * r, W * r] -> [..., C * r * r, H, W].
    """
    _check_factor("pixel_unshuffle", "downscale_factor", downscale_factor)
    r = downscale_factor
    if input.ndim < 3 or input.shape[-1] % r or input.shape[-2] % r:
        raise errors.value_error(
            "pixel_unshuffle",
            f"the input must be [..., C, H * {r}, W * {r}], but its shape is {list(input.shape)}",
        )
    *lead, c, h, w = input.shape
    k = len(lead)
    x = reshape(input, (*lead, c, h // r, r, w // r, r))
    x = transpose(x, (*range(k), k, k + 2, k + 4, k + 1, k + 3))
    return reshape(x, (*lead, c * r * r, h // r, w // r))


def channel_shuffle(x, groups):
    """Channels of `groups` groups interleaved (Zhang et al. 2018). Shapes: [..., C, H, W] -> same."""
    _check_factor("channel_shuffle", "groups", groups)
    if x.ndim < 3 or x.shape[-3] % groups:
        raise errors.value_error(
            "channel_shuffle",
            f"x must be [..., C, H, W] with C divisible by {groups}, but its shape is {list(x.shape)}",
        )
    *lead, c, h, w = x.shape
    k = len(lead)
    y = transpose(reshape(x, (*lead, groups, c // groups, h, w)), (*range(k), k + 1, k, k + 2, k + 3))
    return reshape(y, (*lead, c, h, w))


__all__ = ["channel_shuffle", "interpolate", "pixel_shuffle", "pixel_unshuffle", "upsample"]
