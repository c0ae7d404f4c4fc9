"""Batch normalization joined with its neighbours: in training with what follows it, a residual, an
activation; in inference with the convolution before it.

Programs hold these forms, users never call them: they have no gradient and no public name. The compiler emits
them where the backend has kernels for them.
"""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ops.define import op
from mycelia.engine.ops.lowered.packed import np_activated
from mycelia.engine.ops.nn_ops.batch_norm import (
    _batch_norm_grad,
    _batch_norm_train,
    _channel_layout,
    _check_channels,
    _per_channel,
)


def _np_gated(dy, y, activation):
    """The gradient of the activation: `dy` where `y`, its argument or its result, is inside."""
    inside = y > 0 if activation == "relu" else (y > 0) & (y < 6)
    return np.where(inside, dy, np.zeros_like(dy))


def _check_same(like, **tensors):
    for name, t in tensors.items():
        if t is not None and (t.shape != like.shape or t.dtype is not like.dtype):
            raise errors.value_error(
                f"{name} must be {like.dtype.name} of shape {list(like.shape)} as x is, "
                f"but is {t.dtype.name} of shape {list(t.shape)}"
            )


@op(name="batch_norm_act_train", updates=("mean", "variance"), outputs=3, nondiff=True, cost=9)
def _batch_norm_act_train(
    mean, variance, x, scale, bias, residual: "tensor?" = None,
    *, epsilon: "float" = 1e-5, momentum: "float" = 0.1, data_format: "NCHW|NHWC" = "NCHW",
    activation: "none|relu|relu6" = "none",
):  # fmt: skip
    """Normalize as batch_norm_train, then add and activate: ``activation(batch_norm(x) + residual)``.

    Shapes: x, residual [N, C, ...] ("NHWC": [N, ..., C]), the others [C] -> x's, batch mean [C], inverse
    deviation [C].  dtypes: floating.  Errors: ValueError if C differs or x and residual differ.
    """
    body = _batch_norm_train.definition.body
    settings = dict(epsilon=epsilon, momentum=momentum, data_format=data_format)
    new_mean, new_variance, y, *statistics = body(mean, variance, x, scale, bias, **settings)
    y = y if residual is None else y + residual
    return new_mean, new_variance, np_activated(y, activation), *statistics


@_batch_norm_act_train.infer
def _batch_norm_act_train(
    mean, variance, x, scale, bias, residual, *, epsilon, momentum, data_format, activation
):
    _check_channels(x, data_format, scale=scale, bias=bias, mean=mean, variance=variance)
    _check_same(x, residual=residual)
    return mean, variance, x, mean, mean


@_batch_norm_act_train.samples
def _batch_norm_act_train(rand):
    yield rand(3), rand.positive(3), rand(2, 3, 4, 5), rand(3), rand(3), dict(activation="relu")
    yield rand(3), rand.positive(3), rand(2, 3, 4, 5), rand(3), rand(3), rand(2, 3, 4, 5)
    nhwc = dict(data_format="NHWC", activation="relu6", momentum=0.9, epsilon=1e-3)
    yield rand(11), rand.positive(11), rand(2, 4, 5, 11), rand(11, low=0, high=9), rand(11), nhwc
    yield rand(11), rand.positive(11), rand(9, 11), rand(11), rand(11), rand(9, 11), nhwc
    yield rand(2), rand.positive(2), rand(3, 2, 37), rand(2), rand(2), rand(3, 2, 37), dict(activation="relu")
    yield rand(3), rand.positive(3), rand(0, 3, 2), rand(3), rand(3), rand(0, 3, 2)


@op(name="batch_norm_act_grad", outputs=3, nondiff=True, cost=13)
def _batch_norm_act_grad(
    dy, x, scale, bias, batch_mean, inv_std,
    *, epsilon: "float" = 1e-5, data_format: "NCHW|NHWC" = "NCHW", activation: "relu|relu6" = "relu",
):  # fmt: skip
    """Gradients of batch_norm_act_train without a residual with respect to x, scale and bias.

    What the activation was given is computed again from `x` and the statistics.
    Shapes: dy, x [N, C, ...], the others [C] -> x's, [C], [C].  dtypes: floating.
    Errors: ValueError if C differs or dy and x differ.
    """
    shape = _per_channel(x.ndim, _channel_layout(x.ndim, data_format)[0])
    factor = scale * inv_std
    y = x * factor.reshape(shape) + (bias - batch_mean * factor).reshape(shape)
    settings = dict(epsilon=epsilon, data_format=data_format)
    return _batch_norm_grad.definition.body(
        _np_gated(dy, y, activation), x, scale, batch_mean, inv_std, **settings
    )


@_batch_norm_act_grad.infer
def _batch_norm_act_grad(dy, x, scale, bias, batch_mean, inv_std, *, epsilon, data_format, activation):
    _check_channels(x, data_format, scale=scale, bias=bias, batch_mean=batch_mean, inv_std=inv_std)
    _check_same(x, dy=dy)
    return x, scale, scale


@_batch_norm_act_grad.samples
def _batch_norm_act_grad(rand):
    yield rand(2, 3, 4, 5), rand(2, 3, 4, 5), rand(3), rand(3), rand(3), rand.positive(3)
    nhwc = dict(data_format="NHWC", activation="relu6")
    yield rand(2, 4, 11), rand(2, 4, 11), rand(11, low=0, high=9), rand(11), rand(11), rand.positive(11), nhwc
    yield rand(5, 3), rand(5, 3), rand(3), rand(3), rand(3), rand.positive(3), dict(data_format="NHWC")
    relu6 = dict(activation="relu6")
    yield rand(3, 2, 37), rand(3, 2, 37), rand(2), rand(2), rand(2), rand.positive(2), relu6


@op(name="batch_norm_fold", outputs=2, nondiff=True, cost=0)
def _batch_norm_fold(
    weight, scale, shift, mean, variance, bias: "tensor?" = None,
    *, epsilon: "float" = 1e-5, axis: "int" = 0,
):  # fmt: skip
    """Weights and bias of the convolution that does what this one and batch_norm_infer behind it do.

    `axis`: that of the output channels in `weight`. A product too small for the dtype becomes the smallest
    normal number of its sign, not zero: infinity times it is infinity.
    Shapes: weight [O, ...] (axis 1: [I, O, ...]), the others [O] -> weight's, [O].  dtypes: floating.
    Errors: ValueError if C differs, or a result is not finite: then the two steps give other values.
    """
    shape = tuple(-1 if i == axis else 1 for i in range(weight.ndim))
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + variance.dtype.type(epsilon))
        by = factor.reshape(shape)
        made = weight * by
        least = np.copysign(np.finfo(made.dtype).tiny, made)
        made = np.where((made == 0) & (weight != 0) & (by != 0), least, made)
        made_bias = shift - (mean if bias is None else mean - bias) * factor
    if not (np.isfinite(made).all() and np.isfinite(made_bias).all()):
        raise errors.value_error("batch_norm_fold", "a folded weight is not finite")
    return made, made_bias


@_batch_norm_fold.infer
def _batch_norm_fold(weight, scale, shift, mean, variance, bias, *, epsilon, axis):
    if weight.rank < 2 or axis not in (0, 1):
        raise errors.value_error(f"weight must be [O, I, ...] and axis 0 or 1, got {weight} and axis={axis}")
    vectors = dict(scale=scale, shift=shift, mean=mean, variance=variance, bias=bias)
    for name, vector in vectors.items():
        if vector is not None and vector.shape != weight.shape[axis : axis + 1]:
            raise errors.value_error(
                f"{name} must be [{weight.shape[axis]}] for weight {weight} and axis={axis}, but got {vector}"
            )
    return weight, scale


@_batch_norm_fold.samples
def _batch_norm_fold(rand):
    yield rand(5, 3, 3, 2), rand(5), rand(5), rand(5), rand.positive(5)
    yield rand(4, 6, 1, 1), rand(6), rand(6), rand(6), rand.positive(6), rand(6), dict(axis=1, epsilon=1e-3)
    yield rand(37, 1, 5, 5), rand(37), rand(37), rand(37), rand.positive(37), rand(37)
    yield rand(0, 2, 3), rand(0), rand(0), rand(0), rand.positive(0)
    tiny = rand(3, 2, 1, 1) * np.float32(1e-30)
    yield tiny, rand(3) * np.float32(1e-30), rand(3), rand(3), rand.positive(3)
