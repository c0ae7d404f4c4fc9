"""Normalizations: layer, group, instance, root mean square, L2 and local response; batch in `batch_norm.py`.

Every one has a gradient op of its own. The forward ops also return the statistics that the gradient reads
again: the mean and the inverse standard deviation ``1 / sqrt(variance + epsilon)``.
"""

import math
from functools import partial

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import part_rules as _parts
from mycelia.engine.ops.define import op
from mycelia.engine.ops.double_backward import double_backward
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.infer import need_floating
from mycelia.engine.ops.reductions import reduce as _reduce


def _np_wide(x):
    """The array in at least float32: statistics of half precision data are taken in float32."""
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x


def _mean(x, axes):
    """Mean over `axes`, which stay with extent 1."""
    return _reduce.sum(x, axes, True) * (1.0 / max(1, math.prod(x.shape[a] for a in axes)))


def _centred(x, axes, epsilon):
    """Mean, inverse deviation and the data with mean 0 and variance 1 over `axes`, as a composition."""
    mean = _mean(x, axes)
    shifted = x - mean
    inv_std = _powers.rsqrt(_mean(shifted * shifted, axes) + epsilon)
    return mean, inv_std, shifted * inv_std


def _trailing(rank, axis):
    """Axes from `axis` to the last."""
    return tuple(range(axis % rank, rank))


def _leading(rank, vector_rank):
    """Axes that broadcasting a tensor of `vector_rank` over one of `rank` adds."""
    return tuple(range(rank - vector_rank))


def _sum_leading(x, vector_rank):
    """Sum over the axes that broadcasting a tensor of `vector_rank` over `x` adds."""
    return _reduce.sum(x, _leading(x.ndim, vector_rank)) if x.ndim > vector_rank else x


def _rows_type(x, axis, dtype):
    """Type of one statistic a row: `x` with the normalized axes of extent 1."""
    return TensorType(dtype, x.shape[: axis % x.rank] + (1,) * (x.rank - axis % x.rank))


def _normalized(rank, begin):
    """Labels of axes of which those from `begin` on are normalized together, and of the statistics."""
    axes = _parts.numbered(rank, range(begin, rank))
    return axes, axes


def _check_affine(x, begin, **vectors):
    need_floating(x=x)
    want = x.shape[begin % x.rank :]
    for name, vector in vectors.items():
        if vector is not None and (len(vector.shape) != len(want) or any(
            a != b and -1 not in (a, b) for a, b in zip(vector.shape, want)
        )):  # fmt: skip
            raise errors.value_error(
                f"{name} must have shape {want}, the last axes of {x.shape}, got {vector.shape}"
            )


@op(name="layer_norm", outputs=3, mindir="LayerNorm", cost=7, precision="wide")
def _layer_norm(
    input_x, gamma: "tensor?" = None, beta: "tensor?" = None,
    *, begin_norm_axis: "int" = 1, begin_params_axis: "int" = 1, epsilon: "float" = 1e-7,
):  # fmt: skip
    """Normalize each sample over the axes from `begin_norm_axis` on:
    ``gamma * (x - mean) / sqrt(var + eps) + beta``.

    Shapes: input_x [..., *norm], gamma and beta x's shape from `begin_params_axis` on -> x's, and the mean
    and inverse deviation with the normalized axes of extent 1.  dtypes: floating.  Source: Ba et al. 2016.
    """
    axes = _trailing(input_x.ndim, begin_norm_axis)
    wide = _np_wide(input_x)
    if wide.size == 0:
        rows = np.zeros(wide.shape[: axes[0]] + (1,) * len(axes), wide.dtype)
        return input_x, rows, rows
    mean = wide.mean(axes, keepdims=True)
    shifted = wide - mean
    inv_std = 1 / np.sqrt((shifted * shifted).mean(axes, keepdims=True) + wide.dtype.type(epsilon))
    y = shifted * inv_std
    y = y if gamma is None else y * gamma
    y = y if beta is None else y + beta
    return y.astype(input_x.dtype), mean, inv_std


@_layer_norm.infer
def _layer_norm(input_x, gamma, beta, *, begin_norm_axis, begin_params_axis, epsilon):
    for name, axis in (("begin_norm_axis", begin_norm_axis), ("begin_params_axis", begin_params_axis)):
        if not -input_x.rank <= axis < input_x.rank:
            raise ValueError(f"{name} {axis} is out of range for shape {input_x.shape}")
    _check_affine(input_x, begin_params_axis, gamma=gamma, beta=beta)
    rows = _rows_type(input_x, begin_norm_axis, _statistics_dtype(input_x))
    return input_x, rows, rows


def _statistics_dtype(x):
    """Statistics of half precision data are float32."""
    from mycelia.engine.base import dtypes

    return dtypes.float32 if x.dtype.itemsize < 4 else x.dtype


@_layer_norm.vjp
def _layer_norm(cts, outs, input_x, gamma, beta, *, begin_norm_axis, epsilon):
    if cts[1] is not None or cts[2] is not None:
        settings = dict(begin_norm_axis=begin_norm_axis, epsilon=epsilon)
        return double_backward(partial(_layer_norm_composition, **settings), cts, input_x, gamma, beta)
    d_x, d_gamma, d_beta = _layer_norm_grad(
        cts[0], input_x, outs[1], outs[2], gamma,
        begin_norm_axis=begin_norm_axis, params_rank=_params_rank(gamma, beta), epsilon=epsilon,
    )  # fmt: skip
    return d_x, None if gamma is None else d_gamma, None if beta is None else d_beta


def _layer_norm_composition(x, gamma, beta, *, begin_norm_axis, epsilon):
    """layer_norm out of public ops."""
    mean, inv_std, y = _centred(x, _trailing(x.ndim, begin_norm_axis), epsilon)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta, mean, inv_std


def _params_rank(gamma, beta):
    return gamma.ndim if gamma is not None else beta.ndim if beta is not None else 1


@_layer_norm.samples
def _layer_norm(rand):
    yield rand(3, 5), rand(5), rand(5)
    yield rand(2, 3, 4), rand(4), rand(4), dict(begin_norm_axis=-1, begin_params_axis=-1)
    yield rand(2, 3, 4), rand(3, 4), rand(3, 4), dict(epsilon=1e-3)
    yield rand(2, 3, 37), dict(begin_norm_axis=2)
    yield rand(2, 131), rand(131)
    yield rand(0, 4), rand(4), rand(4)


@_layer_norm.parts
def _layer_norm(node):
    rank = node.inputs[0].type.rank
    axes, rows = _normalized(rank, node.attrs["begin_norm_axis"] % rank)
    affine = [None if s is None else axes[rank - len(s) :] for s in _parts.shapes(node)[1:]]
    return _parts.PartRule([axes, *affine], [axes, rows, rows])


@_layer_norm.batch
def _layer_norm(call):
    x, gamma, beta = call.operands
    if not call.batched[0] or not call.only(0):
        return _batch.one_by_one(call)
    rank = call.rank()
    axes = {name: call.attrs[name] % rank + 1 for name in ("begin_norm_axis", "begin_params_axis")}
    return call.shaped(call.run([x, gamma, beta], **axes))


@op(name="layer_norm_grad", outputs=3, cost=10)
def _layer_norm_grad(
    dy, x, mean, inv_std, gamma: "tensor?" = None,
    *, begin_norm_axis: "int" = 1, params_rank: "int" = 1, epsilon: "float" = 1e-7,
):  # fmt: skip
    """Gradients of layer_norm with respect to x, gamma and beta; the statistics are functions of `x`.

    `params_rank` is the number of trailing axes that gamma and beta have.
    Shapes: dy, x equal, mean and inv_std one a row -> x's, gamma's, beta's.  dtypes: floating.
    """
    axes = _trailing(x.ndim, begin_norm_axis)
    others = _leading(x.ndim, params_rank)
    dy_wide = _np_wide(dy)
    x_hat = (_np_wide(x) - mean) * inv_std
    d_hat = dy_wide if gamma is None else dy_wide * gamma
    n = max(1, math.prod(x.shape[a] for a in axes))
    inner = (d_hat * x_hat).sum(axes, keepdims=True) / n
    d_x = inv_std * (d_hat - d_hat.sum(axes, keepdims=True) / n - x_hat * inner)
    return d_x.astype(x.dtype), (dy_wide * x_hat).sum(others), dy_wide.sum(others)


@_layer_norm_grad.infer
def _layer_norm_grad(dy, x, mean, inv_std, gamma, *, begin_norm_axis, params_rank, epsilon):
    if not 0 <= params_rank <= x.rank:
        raise ValueError(f"params_rank must be in [0, {x.rank}], got {params_rank}")
    params = TensorType(_statistics_dtype(x), x.shape[x.rank - params_rank :])
    return x, params, params


@_layer_norm_grad.vjp
def _layer_norm_grad(cts, dy, x, gamma, *, begin_norm_axis, params_rank, epsilon):
    def forward(x, gamma):
        return _layer_norm_composition(x, gamma, None, begin_norm_axis=begin_norm_axis, epsilon=epsilon)[0]

    def gradient(dy, x, gamma):
        return *double_backward(forward, (dy,), x, gamma), _sum_leading(dy, params_rank)

    d_dy, d_x, d_gamma = double_backward(gradient, cts, dy, x, gamma)
    return d_dy, d_x, None, None, d_gamma


@_layer_norm_grad.samples
def _layer_norm_grad(rand):
    yield rand(3, 5), rand(3, 5), rand(3, 1), rand.positive(3, 1), rand(5), dict(_grad=False)
    yield rand(7, 37), rand(7, 37), rand(7, 1), rand.positive(7, 1), dict(_grad=False)
    two = dict(params_rank=2, _grad=False)
    yield rand(2, 3, 4), rand(2, 3, 4), rand(2, 1, 1), rand.positive(2, 1, 1), rand(3, 4), two


@_layer_norm_grad.parts
def _layer_norm_grad(node):
    rank = node.inputs[1].type.rank
    axes, rows = _normalized(rank, node.attrs["begin_norm_axis"] % rank)
    gamma = _parts.shapes(node)[4]
    params = axes[rank - node.attrs["params_rank"] :]
    return _parts.PartRule(
        [axes, axes, rows, rows, None if gamma is None else axes[rank - len(gamma) :]], [axes, params, params]
    )


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Layer normalization over the last axes: ``weight * (input - mean) / sqrt(variance + eps) + bias``.

    Shapes: input [..., *normalized_shape], weight and bias normalized_shape -> input's.  dtypes: floating.
    Errors: ValueError if the last axes of `input` are not `normalized_shape`.
    """
    normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    begin = input.ndim - len(normalized_shape)
    if not normalized_shape or begin < 0 or tuple(input.shape[begin:]) != normalized_shape:
        raise errors.value_error(
            f"layer_norm: the last axes of input must be normalized_shape {normalized_shape},"
            f" got shape {tuple(input.shape)}"
        )
    axes = dict(begin_norm_axis=begin, begin_params_axis=begin)
    return _layer_norm(input, weight, bias, epsilon=float(eps), **axes)[0]


def add_layer_norm(x1, x2, gamma, beta, epsilon=1e-5, additional_output=False):
    """Layer normalization of a sum over the last axes, those of `gamma`.

    Shapes: x1, x2 equal -> the result, mean, inverse deviation, and ``x1 + x2`` (zeros unless
    `additional_output`).
    """
    total = x1 + x2
    begin = total.ndim - gamma.ndim
    axes = dict(begin_norm_axis=begin, begin_params_axis=begin)
    y, mean, inv_std = _layer_norm(total, gamma, beta, epsilon=float(epsilon), **axes)
    return y, mean, inv_std, total if additional_output else total * 0.0


@op(name="rms_norm", outputs=2, mindir="RmsNorm", batch=_batch.first_leading, cost=4, precision="wide")
def rms_norm(x, gamma, *, epsilon: "float" = 1e-6):
    """Divide by the root mean square over the axes of `gamma`: ``gamma * x / sqrt(mean(x^2) + epsilon)``.

    Shapes: x [..., *norm], gamma norm -> x's, and the factor ``1 / sqrt(...)``, normalized axes of extent 1.
    dtypes: floating.  Source: Zhang and Sennrich 2019.
    """
    axes = _trailing(x.ndim, -gamma.ndim)
    wide = _np_wide(x)
    if x.size == 0:
        return x, np.zeros(x.shape[: axes[0]] + (1,) * len(axes), wide.dtype)
    r_std = 1 / np.sqrt((wide * wide).mean(axes, keepdims=True) + wide.dtype.type(epsilon))
    return (wide * r_std * gamma).astype(x.dtype), r_std


@rms_norm.infer
def rms_norm(x, gamma, *, epsilon):
    if not 1 <= gamma.rank <= x.rank:
        raise ValueError(f"gamma must have rank 1 to {x.rank}, got shape {gamma.shape}")
    _check_affine(x, x.rank - gamma.rank, gamma=gamma)
    return x, _rows_type(x, x.rank - gamma.rank, _statistics_dtype(x))


@rms_norm.vjp
def rms_norm(cts, outs, x, gamma, *, epsilon):
    if cts[1] is not None:
        return double_backward(partial(_rms_norm_composition, epsilon=epsilon), cts, x, gamma)
    return _rms_norm_grad(cts[0], x, gamma, outs[1], epsilon=epsilon)


def _rms_norm_composition(x, gamma, *, epsilon):
    """rms_norm out of public ops."""
    r_std = _powers.rsqrt(_mean(x * x, _trailing(x.ndim, -gamma.ndim)) + epsilon)
    return x * r_std * gamma, r_std


@rms_norm.samples
def rms_norm(rand):
    yield rand(3, 5), rand(5)
    yield rand(2, 3, 4), rand(3, 4), dict(epsilon=1e-3)
    yield rand(2, 131), rand(131)
    yield rand(0, 4), rand(4)


@rms_norm.parts
def rms_norm(node):
    rank, params = (v.type.rank for v in node.inputs)
    axes, rows = _normalized(rank, rank - params)
    return _parts.PartRule([axes, axes[rank - params :]], [axes, rows])


@op(name="rms_norm_grad", outputs=2, cost=8)
def _rms_norm_grad(dy, x, gamma, r_std, *, epsilon: "float" = 1e-6):
    """Gradients of rms_norm with respect to x and gamma; `r_std` is a function of `x`.

    Shapes: dy, x equal, gamma the last axes, r_std one a row -> x's, gamma's.  dtypes: floating.
    """
    axes = _trailing(x.ndim, -gamma.ndim)
    dy_wide = _np_wide(dy)
    x_hat = _np_wide(x) * r_std
    d_hat = dy_wide * gamma
    inner = (d_hat * x_hat).sum(axes, keepdims=True) / max(1, gamma.size)
    d_gamma = (dy_wide * x_hat).sum(_leading(x.ndim, gamma.ndim))
    return (r_std * (d_hat - x_hat * inner)).astype(x.dtype), d_gamma.astype(gamma.dtype)


@_rms_norm_grad.infer
def _rms_norm_grad(dy, x, gamma, r_std, *, epsilon):
    return x, gamma


@_rms_norm_grad.vjp
def _rms_norm_grad(cts, dy, x, gamma, *, epsilon):
    forward = partial(_rms_norm_composition, epsilon=epsilon)

    def gradient(dy, x, gamma):
        return tuple(double_backward(forward, (dy, None), x, gamma))

    return *double_backward(gradient, cts, dy, x, gamma), None


@_rms_norm_grad.samples
def _rms_norm_grad(rand):
    yield rand(3, 5), rand(3, 5), rand(5), rand.positive(3, 1), dict(_grad=False)
    yield rand(7, 37), rand(7, 37), rand(37), rand.positive(7, 1), dict(_grad=False)


@_rms_norm_grad.parts
def _rms_norm_grad(node):
    rank, params = node.inputs[1].type.rank, node.inputs[2].type.rank
    axes, rows = _normalized(rank, rank - params)
    return _parts.PartRule([axes, axes, axes[rank - params :], rows], [axes, axes[rank - params :]])


def add_rms_norm(x1, x2, gamma, epsilon=1e-6):
    """rms_norm of a sum.

    Shapes: x1, x2 equal, gamma the last axes -> the result, the factor of rms_norm, and ``x1 + x2``.
    """
    total = x1 + x2
    y, r_std = rms_norm(total, gamma, epsilon=float(epsilon))
    return y, r_std, total


__all__ = ["add_layer_norm", "add_rms_norm", "layer_norm", "rms_norm"]
