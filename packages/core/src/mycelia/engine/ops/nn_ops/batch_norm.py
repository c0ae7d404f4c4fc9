"""Batch normalization: with given statistics, with those of the batch, and its gradient."""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.arrays.shape import reshape
from mycelia.engine.ops.define import op
from mycelia.engine.ops.double_backward import double_backward
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.infer import need_floating
from mycelia.engine.ops.nn_ops.norm import _centred, _np_wide
from mycelia.engine.ops.reductions import reduce as _reduce


def _channel_layout(rank, data_format):
    """Axis of the channels and the axes that statistics are taken over."""
    channel = 1 if data_format == "NCHW" else rank - 1
    return channel, tuple(a for a in range(rank) if a != channel)


def _per_channel(rank, channel):
    """Shape with -1 at the channel axis: lets a [C] vector broadcast."""
    return tuple(-1 if a == channel else 1 for a in range(rank))


def _check_channels(x, data_format, **vectors):
    need_floating(x=x)
    if x.rank < 2:
        raise errors.value_error(f"x must have rank 2 or more, got shape {x.shape}")
    channels = x.shape[_channel_layout(x.rank, data_format)[0]]
    for name, vector in vectors.items():
        if vector.rank != 1 or (vector.shape[0] != channels and -1 not in (vector.shape[0], channels)):
            raise errors.value_error(
                f"{name} must be [{channels}], the channels of x of shape {x.shape} ({data_format}), "
                f"but got {vector.shape}"
            )


@op(
    name="batch_norm_infer",
    batch=_batch.joined(0),
    cost=2,
    layout=_layout.formatted((0,), (0,)),
    precision="wide",
)
def _batch_norm_infer(
    x, scale, bias, mean, variance, *, epsilon: "float" = 1e-5, data_format: "NCHW|NHWC" = "NCHW"
):
    """Normalize each channel by given statistics: ``scale * (x - mean) / sqrt(variance + epsilon) + bias``.

    Shapes: x [N, C, ...] ("NHWC": [N, ..., C]), the others [C] -> x's.  dtypes: floating.
    Errors: ValueError if C differs.  Source: Ioffe and Szegedy 2015, algorithm 2.
    """
    shape = _per_channel(x.ndim, _channel_layout(x.ndim, data_format)[0])
    factor = scale / np.sqrt(variance + variance.dtype.type(epsilon))
    # The mean first: a product with a sum behind it loses the digits of deviations from a large mean.
    shifted = _np_wide(x) - mean.reshape(shape)
    return (shifted * factor.reshape(shape) + bias.reshape(shape)).astype(x.dtype)


@_batch_norm_infer.infer
def _batch_norm_infer(x, scale, bias, mean, variance, *, epsilon, data_format):
    _check_channels(x, data_format, scale=scale, bias=bias, mean=mean, variance=variance)
    return x


@_batch_norm_infer.vjp
def _batch_norm_infer(ct, x, scale, mean, variance, *, epsilon, data_format):
    channel, others = _channel_layout(x.ndim, data_format)
    shape = _per_channel(x.ndim, channel)
    inv_std = _powers.rsqrt(variance + epsilon)
    d_bias = _reduce.sum(ct, others)
    d_scale = _reduce.sum(ct * (x - reshape(mean, shape)), others) * inv_std
    return (
        ct * reshape(scale * inv_std, shape),
        d_scale,
        d_bias,
        -d_bias * scale * inv_std,
        -0.5 * d_scale * scale * inv_std * inv_std,
    )


@_batch_norm_infer.samples
def _batch_norm_infer(rand):
    yield rand(2, 3, 4, 5), rand(3), rand(3), rand(3), rand.positive(3)
    yield rand(4, 3), rand(3), rand(3), rand(3), rand.positive(3), dict(epsilon=1e-3)
    yield rand(2, 4, 5, 11), rand(11), rand(11), rand(11), rand.positive(11), dict(data_format="NHWC")
    yield rand(0, 3, 2), rand(3), rand(3), rand(3), rand.positive(3)


@op(
    name="batch_norm_train",
    updates=("mean", "variance"),
    outputs=3,
    cost=7,
    layout=_layout.formatted((2,), (2,)),
    precision="wide",
)
def _batch_norm_train(
    mean, variance, x, scale, bias,
    *, epsilon: "float" = 1e-5, momentum: "float" = 0.1, data_format: "NCHW|NHWC" = "NCHW",
):  # fmt: skip
    """Normalize each channel by the batch's own statistics,
    which also move the running `mean` and `variance`.

    ``running = (1 - momentum) * running + momentum * batch``, the batch variance unbiased there.
    Shapes: x [N, C, ...] ("NHWC": [N, ..., C]), the others [C] -> x's, batch mean [C], inverse deviation [C].
    dtypes: floating.  Errors: ValueError if C differs.  Source: Ioffe and Szegedy 2015, algorithm 1.
    """
    channel, others = _channel_layout(x.ndim, data_format)
    shape = _per_channel(x.ndim, channel)
    n = x.size // max(1, x.shape[channel])
    if n == 0:
        zeros = np.zeros_like(mean)
        return mean, variance, x, zeros, zeros
    wide = _np_wide(x)
    batch_mean = wide.mean(others)
    shifted = wide - batch_mean.reshape(shape)
    batch_variance = (shifted * shifted).mean(others)
    inv_std = 1 / np.sqrt(batch_variance + batch_variance.dtype.type(epsilon))
    y = shifted * (inv_std * scale).reshape(shape) + bias.reshape(shape)
    unbiased = batch_variance * (n / max(1, n - 1))
    new_mean = mean + momentum * (batch_mean - mean)
    new_variance = variance + momentum * (unbiased - variance)
    return (
        new_mean.astype(mean.dtype), new_variance.astype(variance.dtype),
        y.astype(x.dtype), batch_mean.astype(mean.dtype), inv_std.astype(mean.dtype),
    )  # fmt: skip


@_batch_norm_train.infer
def _batch_norm_train(mean, variance, x, scale, bias, *, epsilon, momentum, data_format):
    _check_channels(x, data_format, scale=scale, bias=bias, mean=mean, variance=variance)
    return mean, variance, x, mean, mean


@_batch_norm_train.vjp
def _batch_norm_train(cts, outs, x, scale, *, epsilon, data_format):
    settings = dict(epsilon=epsilon, data_format=data_format)
    return None, None, *_batch_norm_grad(cts[0], x, scale, outs[1], outs[2], **settings)


@_batch_norm_train.samples
def _batch_norm_train(rand):
    yield rand(3), rand.positive(3), rand(2, 3, 4, 5), rand(3), rand(3)
    yield rand(3), rand.positive(3), rand(5, 3), rand(3), rand(3), dict(momentum=0.9, epsilon=1e-3)
    yield rand(11), rand.positive(11), rand(2, 4, 5, 11), rand(11), rand(11), dict(data_format="NHWC")
    yield rand(2), rand.positive(2), rand(3, 2, 37), rand(2), rand(2)
    yield rand(3), rand.positive(3), rand(0, 3, 2), rand(3), rand(3)


@op(name="batch_norm_grad", outputs=3, cost=10, layout=_layout.formatted((0, 1), (0,)))
def _batch_norm_grad(
    dy, x, scale, batch_mean, inv_std, *, epsilon: "float" = 1e-5, data_format: "NCHW|NHWC" = "NCHW"
):
    """Gradients of batch_norm_train with respect to x, scale and bias; the statistics are functions of `x`.

    Shapes: dy, x [N, C, ...], scale, batch_mean, inv_std [C] -> x's, [C], [C].  dtypes: floating.
    """
    channel, others = _channel_layout(x.ndim, data_format)
    shape = _per_channel(x.ndim, channel)
    n = max(1, x.size // max(1, x.shape[channel]))
    wide = _np_wide(dy)
    x_hat = (_np_wide(x) - batch_mean.reshape(shape)) * inv_std.reshape(shape)
    d_bias = wide.sum(others)
    d_scale = (wide * x_hat).sum(others)
    inner = wide - (d_bias / n).reshape(shape) - x_hat * (d_scale / n).reshape(shape)
    d_x = (scale * inv_std).reshape(shape) * inner
    return d_x.astype(x.dtype), d_scale.astype(scale.dtype), d_bias.astype(scale.dtype)


@_batch_norm_grad.infer
def _batch_norm_grad(dy, x, scale, batch_mean, inv_std, *, epsilon, data_format):
    return x, scale, scale


@_batch_norm_grad.vjp
def _batch_norm_grad(cts, dy, x, scale, *, epsilon, data_format):
    channel, others = _channel_layout(x.ndim, data_format)

    def forward(x, scale):
        return _centred(x, others, epsilon)[2] * reshape(scale, _per_channel(x.ndim, channel))

    def gradient(dy, x, scale):
        return *double_backward(forward, (dy,), x, scale), _reduce.sum(dy, others)

    return *double_backward(gradient, cts, dy, x, scale), None, None


@_batch_norm_grad.samples
def _batch_norm_grad(rand):
    # The statistics are not independent inputs, so finite differences over single inputs do not apply here.
    yield rand(2, 3, 4, 5), rand(2, 3, 4, 5), rand(3), rand(3), rand.positive(3), dict(_grad=False)
    yield rand(5, 3), rand(5, 3), rand(3), rand(3), rand.positive(3), dict(_grad=False)
    nhwc = dict(data_format="NHWC", _grad=False)
    yield rand(2, 4, 11), rand(2, 4, 11), rand(11), rand(11), rand.positive(11), nhwc


def batch_norm(input_x, running_mean, running_var, weight, bias, training=False, momentum=0.1, eps=1e-5):
    """Batch normalization: ``weight * (x - mean) / sqrt(var + eps) + bias`` per channel.

    In training the statistics are those of the batch, and the running ones move towards them by `momentum`.
    Shapes: input_x [N, C, ...], the others [C] -> input_x's.  dtypes: floating.
    """
    if training:
        statistics = dict(epsilon=float(eps), momentum=float(momentum))
        return _batch_norm_train(running_mean, running_var, input_x, weight, bias, **statistics)[0]
    return _batch_norm_infer(input_x, weight, bias, running_mean, running_var, epsilon=float(eps))


__all__ = ["batch_norm"]
