"""Normalization of groups of channels."""

import math
from functools import partial

import numpy as np

from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays.shape import reshape
from mycelia.engine.ops.define import op
from mycelia.engine.ops.double_backward import double_backward
from mycelia.engine.ops.infer import need_floating
from mycelia.engine.ops.nn_ops.norm import _centred, _np_wide, _statistics_dtype
from mycelia.engine.ops.reductions import reduce as _reduce


def _grouped(shape, groups):
    """Shape [N, G, C / G, S] of a [N, C, ...] tensor."""
    return shape[0], groups, shape[1] // groups, math.prod(shape[2:])


@op(name="group_norm", outputs=3, batch=_batch.joined(0), cost=7, precision="wide")
def _group_norm(
    input, weight: "tensor?" = None, bias: "tensor?" = None, *, num_groups: "int", eps: "float" = 1e-5
):
    """Normalize each group of channels of each sample:
    ``weight * (input - mean) / sqrt(variance + eps) + bias``.

    Shapes: input [N, C, ...], weight and bias [C] -> input's, and mean and inverse deviation [N, num_groups].
    dtypes: floating.  Errors: ValueError if `num_groups` does not divide C.  Source: Wu and He 2018.
    """
    x = _np_wide(input).reshape(_grouped(input.shape, num_groups))
    if x.size == 0:
        rows = np.zeros(x.shape[:2], x.dtype)
        return input, rows, rows
    mean = x.mean((2, 3), keepdims=True)
    shifted = x - mean
    inv_std = 1 / np.sqrt((shifted * shifted).mean((2, 3), keepdims=True) + x.dtype.type(eps))
    y = shifted * inv_std
    y = y if weight is None else y * weight.reshape(1, num_groups, -1, 1)
    y = y if bias is None else y + bias.reshape(1, num_groups, -1, 1)
    return y.reshape(input.shape).astype(input.dtype), mean[:, :, 0, 0], inv_std[:, :, 0, 0]


def _check_groups(input, num_groups):
    channels = input.shape[1]
    if num_groups < 1 or (channels != -1 and channels % num_groups):
        raise ValueError(
            f"num_groups must divide the {channels} channels of input {input.shape}, got {num_groups}"
        )


@_group_norm.infer
def _group_norm(input, weight, bias, *, num_groups, eps):
    need_floating(input=input)
    if input.rank < 2:
        raise ValueError(f"input must be [N, C, ...], got shape {input.shape}")
    _check_groups(input, num_groups)
    channels = input.shape[1]
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is not None and (
            vector.rank != 1 or (vector.shape[0] != channels and -1 not in (channels,))
        ):
            raise ValueError(f"{name} must be [{channels}], got {vector.shape}")
    rows = TensorType(_statistics_dtype(input), (input.shape[0], num_groups))
    return input, rows, rows


@_group_norm.vjp
def _group_norm(cts, outs, input, weight, bias, *, num_groups, eps):
    if cts[1] is not None or cts[2] is not None:
        return double_backward(
            partial(_group_norm_composition, num_groups=num_groups, eps=eps), cts, input, weight, bias
        )
    d_x, d_weight, d_bias = _group_norm_grad(
        cts[0], input, outs[1], outs[2], weight, num_groups=num_groups, eps=eps
    )
    return d_x, None if weight is None else d_weight, None if bias is None else d_bias


def _group_norm_composition(x, weight, bias, *, num_groups, eps):
    """group_norm out of public ops."""
    grouped = _grouped(x.shape, num_groups)
    mean, inv_std, y = _centred(reshape(x, grouped), (2, 3), eps)
    vector = (1, num_groups, grouped[2], 1)
    y = y if weight is None else y * reshape(weight, vector)
    y = y if bias is None else y + reshape(bias, vector)
    return reshape(y, x.shape), reshape(mean, grouped[:2]), reshape(inv_std, grouped[:2])


@_group_norm.samples
def _group_norm(rand):
    yield rand(2, 4, 3, 5), rand(4), rand(4), dict(num_groups=2)
    yield rand(2, 6, 7), dict(num_groups=3)
    yield rand(2, 6), rand(6), dict(num_groups=1, eps=1e-3)
    yield rand(2, 3, 5), rand(3), rand(3), dict(num_groups=3)
    yield rand(0, 4, 3), dict(num_groups=2)


@op(name="group_norm_grad", outputs=3, cost=10)
def _group_norm_grad(
    dy, x, mean, inv_std, weight: "tensor?" = None, *, num_groups: "int", eps: "float" = 1e-5
):
    """Gradients of group_norm with respect to input, weight and bias; the statistics are functions of `x`.

    Shapes: dy, x [N, C, ...], mean and inv_std [N, num_groups] -> x's, [C], [C].  dtypes: floating.
    """
    shape = _grouped(x.shape, num_groups)
    n = max(1, shape[2] * shape[3])
    dy_wide = _np_wide(dy).reshape(shape)
    x_hat = (_np_wide(x).reshape(shape) - mean[:, :, None, None]) * inv_std[:, :, None, None]
    d_hat = dy_wide if weight is None else dy_wide * weight.reshape(1, num_groups, -1, 1)
    inner = (d_hat * x_hat).sum((2, 3), keepdims=True) / n
    d_x = inv_std[:, :, None, None] * (d_hat - d_hat.sum((2, 3), keepdims=True) / n - x_hat * inner)
    d_weight, d_bias = (dy_wide * x_hat).sum((0, 3)).reshape(-1), dy_wide.sum((0, 3)).reshape(-1)
    return d_x.reshape(x.shape).astype(x.dtype), d_weight, d_bias


@_group_norm_grad.infer
def _group_norm_grad(dy, x, mean, inv_std, weight, *, num_groups, eps):
    _check_groups(x, num_groups)
    vector = TensorType(_statistics_dtype(x), (x.shape[1],))
    return x, vector, vector


@_group_norm_grad.vjp
def _group_norm_grad(cts, dy, x, weight, *, num_groups, eps):
    def forward(x, weight):
        return _group_norm_composition(x, weight, None, num_groups=num_groups, eps=eps)[0]

    def gradient(dy, x, weight):
        d_bias = _reduce.sum(dy, tuple(a for a in range(x.ndim) if a != 1))
        return *double_backward(forward, (dy,), x, weight), d_bias

    d_dy, d_x, d_weight = double_backward(gradient, cts, dy, x, weight)
    return d_dy, d_x, None, None, d_weight


@_group_norm_grad.samples
def _group_norm_grad(rand):
    attributes = dict(num_groups=2, _grad=False)
    yield rand(3, 4, 5), rand(3, 4, 5), rand(3, 2), rand.positive(3, 2), rand(4), attributes
    yield rand(2, 6, 3, 3), rand(2, 6, 3, 3), rand(2, 2), rand.positive(2, 2), attributes


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Group normalization: each group of channels of each sample gets mean 0 and variance 1,
    then `weight` and `bias`.

    Shapes: input [N, C, ...], weight and bias [C] -> input's.  dtypes: floating.
    """
    return _group_norm(input, weight, bias, num_groups=int(num_groups), eps=float(eps))[0]


def _instance_norm(input, weight=None, bias=None, eps=1e-5):
    """Instance normalization: each channel of each sample by itself;
    group_norm with as many groups as channels.
    """
    return group_norm(input, input.shape[1], weight, bias, eps)


__all__ = ["group_norm"]
