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
from mycelia.engine.ops.arrays.shape import reshape
from mycelia.engine.ops.define import op
from mycelia.engine.ops.double_backward import double_backward
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.infer import need_floating, normalize_axes, same
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


# ------------------------------------------------------------------------ layer


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


# ------------------------------------------------------------------------ group and instance


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


# ---------------------------------------------------------------- root mean square


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


def add_rms_norm(x1, x2, gamma, epsilon=1e-6):
    """rms_norm of a sum.

    Shapes: x1, x2 equal, gamma the last axes -> the result, the factor of rms_norm, and ``x1 + x2``.
    """
    total = x1 + x2
    y, r_std = rms_norm(total, gamma, epsilon=float(epsilon))
    return y, r_std, total


# ---------------------------------------------------------------- L2 and local response


def _type_along_axes(x, *, axis, epsilon):
    normalize_axes(axis, x.rank)
    return x


@op(infer=_type_along_axes, name="l2_normalize", mindir="L2Normalize", batch=_batch.along("axis"))
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


@op(infer=same(), mindir="LRN", batch=_batch.joined(0))
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


__all__ = ["add_layer_norm", "add_rms_norm", "group_norm", "layer_norm", "lrn", "rms_norm"]
