"""Normalization by a length: of vectors along axes, and of a window of channels."""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.infer import normalize_axes, same
from mycelia.engine.ops.reductions import reduce as _reduce


def _type_along_axes(x, *, axis, epsilon):
    normalize_axes(axis, x.rank)
    return x


@op(
    infer=_type_along_axes,
    name="l2_normalize",
    mindir="L2Normalize",
    mindir_attributes=True,
    batch=_batch.along("axis"),
)
def _l2_normalize(x, *, axis: "ints" = (0,), epsilon: "float" = 1e-4):
    """Scale to length one along `axis`: ``x / sqrt(max(sum(x^2), epsilon))``.

    Shapes: any -> same.  dtypes: floating.
    """
    return x / np.sqrt(np.maximum((x * x).sum(axis, keepdims=True), x.dtype.type(epsilon)))


@_l2_normalize.vjp
def _l2_normalize(ct, x, *, axis, epsilon):
    squares = _reduce.sum(x * x, axis, True)
    scale = _powers.rsqrt(_clipping.maximum(squares, epsilon))
    # Below epsilon the length is the constant sqrt(epsilon): the result is linear in x there.
    along = _reduce.sum(ct * x, axis, True) * scale * scale * scale * (squares > epsilon)
    return ct * scale - x * along


@_l2_normalize.samples
def _l2_normalize(rand):
    yield rand(3, 5)
    yield rand(2, 3, 4), dict(axis=(-1,))
    yield rand(2, 3, 4), dict(axis=(0, 2), epsilon=1e-8)
    yield rand(0, 2)


def _np_window_sum(x, radius):
    total = np.zeros_like(x)
    channels = x.shape[1]
    for shift in range(-min(radius, channels - 1), min(radius, channels - 1) + 1):
        low, high = max(0, -shift), channels - max(0, shift)
        total[:, low:high] += x[:, low + shift : high + shift]
    return total


@op(infer=same(), name="channel_window_sum", batch=_batch.joined(0))
def _channel_window_sum(x, *, radius: "int"):
    """Sum over the channels within `radius` of each channel (axis 1); its own gradient,
    as the window is symmetric.

    Shapes: x [N, C, ...] -> same.  dtypes: floating.
    """
    return _np_window_sum(x, radius)


@_channel_window_sum.vjp
def _channel_window_sum(ct, *, radius):
    return _channel_window_sum(ct, radius=radius)


@_channel_window_sum.samples
def _channel_window_sum(rand):
    yield rand(2, 7, 3), dict(radius=2)
    yield rand(1, 2, 2, 2), dict(radius=5)
    yield rand(2, 3), dict(radius=0)


@op(infer=same(), mindir="LRN", mindir_attributes=True, batch=_batch.joined(0))
def _lrn(
    x, *, depth_radius: "int" = 5, bias: "float" = 1.0, alpha: "float" = 1.0, beta: "float" = 0.5,
    norm_region: "str" = "ACROSS_CHANNELS",
):  # fmt: skip
    """Local response normalization: ``x / (bias + alpha * (sum of x^2 over nearby channels)) ^ beta``.

    Shapes: x [N, C, H, W] -> same.  dtypes: floating.  Source: Krizhevsky et al. 2012.
    """
    return x * (bias + alpha * _np_window_sum(x * x, depth_radius)) ** -beta


@_lrn.vjp
def _lrn(ct, x, *, depth_radius, bias, alpha, beta):
    base = bias + alpha * _channel_window_sum(x * x, radius=depth_radius)
    shared = _channel_window_sum(ct * x * _powers.pow(base, -beta - 1.0), radius=depth_radius)
    return ct * _powers.pow(base, -beta) - (2.0 * alpha * beta) * x * shared


@_lrn.samples
def _lrn(rand):
    yield rand(2, 7, 3, 3), dict(depth_radius=2, bias=1.5, alpha=0.3, beta=0.75)
    yield rand(1, 3, 2, 2)


def lrn(x, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS"):
    """Local response normalization: ``x / (bias + alpha * (sum of x^2 over nearby channels)) ^ beta``.

    Shapes: x [N, C, H, W] -> same.  dtypes: floating.  Errors: ValueError for another rank.
    """
    if norm_region != "ACROSS_CHANNELS":
        raise errors.value_error(f"lrn: norm_region must be ACROSS_CHANNELS, got {norm_region!r}")
    if x.ndim != 4:
        raise errors.value_error(f"lrn: x must be [N, C, H, W], got shape {tuple(x.shape)}")
    return _lrn(
        x,
        depth_radius=depth_radius,
        bias=float(bias),
        alpha=float(alpha),
        beta=float(beta),
        norm_region=norm_region,
    )


__all__ = ["lrn"]
