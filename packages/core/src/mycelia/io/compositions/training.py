"""Compositions of training steps: gradients and updates of parameters, out of ops that inference has too.

What an optimizer's op updates is a result here, which the graph assigns at its end.
"""

from __future__ import annotations

import numpy as np

from mycelia.engine import ops
from mycelia.engine.ops.nn_ops.adaptive_pool import _np_adaptive_matrices
from mycelia.engine.ops.nn_ops.average_pool import _average_attributes, _np_average_matrices
from mycelia.engine.ops.nn_ops.conv import _conv
from mycelia.engine.ops.nn_ops.conv_geometry import full_attributes
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.compositions.table import Unsupported, composition

_GROUPS = 32  # the gradient of a convolution in more groups would fill the file with operators

# ---- activations -------------------------------------------------------------------------------


def _where(test, dy):
    return ops.where(test, dy, ops.zeros_like(dy))


@composition
def relu_grad(dy, y):
    return _where(y > 0, dy)


@composition
def leaky_relu_grad(dy, x, *, alpha):
    return ops.where(x > 0, dy, dy * alpha)


@composition
def elu_grad(dy, y, *, alpha):
    return ops.where(y > 0, dy, dy * (y + alpha))


@composition
def hardtanh_grad(dy, x, *, min_val, max_val):
    return _where(ops.logical_and(x > min_val, x < max_val), dy)


@composition
def hardswish_grad(dy, x):
    return ops.where(x >= 3, dy, _where(x > -3, dy * (x / 3 + 0.5)))


@composition
def clip_grad(dy, x, *, min, max):
    inside = [] if min is None else [x >= min]
    inside += [] if max is None else [x <= max]
    return _where(ops.logical_and(*inside) if len(inside) == 2 else inside[0], dy) if inside else dy * 1


@composition
def tanh_grad(dy, y):
    return dy * (1 - y * y)


@composition
def sigmoid_grad(dy, y):
    return dy * y * (1 - y)


@composition
def silu_grad(dy, x):
    s = ops.sigmoid(x)
    return dy * s * (1 + x * (1 - s))


@composition
def softplus_grad(dy, x, *, beta, threshold):
    return ops.where(x * beta > threshold, dy, dy * ops.sigmoid(x * beta))


@composition
def gelu_grad(dy, x, *, approximate):
    if approximate == "tanh":
        slope = float(np.sqrt(2 / np.pi))
        t = ops.tanh(slope * (x + 0.044715 * x * x * x))
        return dy * 0.5 * (1 + t + x * (1 - t * t) * slope * (1 + 3 * 0.044715 * x * x))
    density = ops.exp(-0.5 * x * x) * float(1 / np.sqrt(2 * np.pi))
    return dy * (0.5 * (1 + ops.erf(x * float(np.sqrt(0.5)))) + x * density)


@composition
def softmax_grad(dy, y, *, axis):
    return (dy - ops.sum(dy * y, axis, True)) * y


@composition
def log_softmax_grad(dy, y, *, axis):
    return dy - ops.exp(y) * ops.sum(dy, axis, True)


@composition
def squared_error_grad(dy, x, y, *, reduction):
    return dy * (x - y) * (2 / max(1, x.size) if reduction == "mean" else 2)


# ---- layers ------------------------------------------------------------------------------------


@composition
def layer_norm_grad(dy, x, mean, inv_std, gamma=None, *, begin_norm_axis, params_rank, epsilon):
    axes = tuple(range(begin_norm_axis % x.ndim, x.ndim))
    others = tuple(range(x.ndim - params_rank))
    x_hat = (x - mean) * inv_std
    d_hat = dy if gamma is None else dy * gamma
    inner = ops.mean(d_hat * x_hat, axes, True)
    d_x = inv_std * (d_hat - ops.mean(d_hat, axes, True) - x_hat * inner)
    return d_x, _summed(dy * x_hat, others), _summed(dy, others)


def _summed(x, axes):
    return ops.sum(x, axes) if axes else x * 1


@composition
def batch_norm_grad(dy, x, scale, batch_mean, inv_std, *, epsilon, data_format):
    channel = 1 if data_format == "NCHW" else x.ndim - 1
    others = tuple(d for d in range(x.ndim) if d != channel)
    shape = [x.shape[channel] if d == channel else 1 for d in range(x.ndim)]
    mean, inverse, factor = (v.reshape(shape) for v in (batch_mean, inv_std, scale * inv_std))
    x_hat = (x - mean) * inverse
    inner = dy - ops.mean(dy, others, True) - x_hat * ops.mean(dy * x_hat, others, True)
    return factor * inner, ops.sum(dy * x_hat, others), ops.sum(dy, others)


def _spread(dy, matrices):
    """The gradient of means of windows along the last one or two axes: `matrices` [positions, size]."""
    *rows, columns = (ops.cast(Tensor(m.astype(np.float32)), dy.dtype) for m in matrices)
    if len(rows) > 1 or dy.ndim != 2 + len(matrices):
        raise Unsupported("the gradient of a mean of windows over three dimensions")
    spread = ops.matmul(dy, columns)
    return ops.matmul(ops.transpose(rows[0], (1, 0)), spread) if rows else spread


@composition
def avg_pool_grad(dy, *, size, kernel, stride, pad, ceil, count_include_pad, divisor, data_format):
    if data_format != "NCHW":
        raise Unsupported("avg_pool_grad with the channels last")
    how = _average_attributes(dy.ndim - 2, kernel, stride, pad)
    return _spread(dy, _np_average_matrices(size, *how, ceil, count_include_pad, divisor))


@composition
def adaptive_avg_pool_grad(dy, *, size):
    return _spread(dy, _np_adaptive_matrices(size, dy.shape[2:]))


@composition
def conv_weight_grad(x, dy, *, kernel, stride, pad, dilation, group):
    """The convolution of the data with the gradient, batch and channels exchanged."""
    if group > _GROUPS:
        raise Unsupported(
            f"the gradient of a convolution in {group} groups (up to {_GROUPS} are written out)"
        )
    swap = (1, 0, *range(2, x.ndim))
    kernel, stride, pad, dilation = full_attributes(x.ndim - 2, kernel, stride, pad, dilation)
    parts = []
    for part, ct in zip(ops.split(x, x.shape[1] // group, 1), ops.split(dy, dy.shape[1] // group, 1)):
        sums = _conv(ops.transpose(part, swap), ops.transpose(ct, swap), None, dilation, pad, stride, 1)
        parts.append(ops.transpose(sums[(slice(None), slice(None), *map(slice, kernel))], swap))
    return parts[0] if group == 1 else ops.concat(parts, 0)


# ---- optimizers --------------------------------------------------------------------------------


def _numbers(variable, *values):
    return tuple(ops.reshape(v, ()).astype(variable.dtype) for v in values)


def _decayed(gradient, variable, scale, weight_decay):
    gradient = gradient if scale == 1 else gradient * scale
    return gradient + weight_decay * variable if weight_decay else gradient


@composition
def apply_gradient_descent(variable, alpha, delta):
    return variable - _numbers(variable, alpha)[0] * delta


@composition
def sgd(variable, accum, stat, gradient, rate, momentum, *, dampening, weight_decay, nesterov):
    rate, momentum = _numbers(variable, rate, momentum)
    g = _decayed(gradient, variable, 1, weight_decay)
    moved = ops.where(stat > 0, g, accum * momentum + g * (1 - dampening))
    step = g + moved * momentum if nesterov else moved
    has_momentum = momentum > 0
    return (
        variable - rate * ops.where(has_momentum, step, g),
        ops.where(has_momentum, moved, accum),
        ops.where(has_momentum, ops.zeros_like(stat), stat),
    )


@composition
def apply_momentum(
    variable,
    accumulation,
    rate,
    gradient,
    momentum,
    *,
    use_nesterov,
    use_locking,
    gradient_scale,
    weight_decay,
):
    rate, momentum = _numbers(variable, rate, momentum)
    g = _decayed(gradient, variable, gradient_scale, weight_decay)
    accumulation = accumulation * momentum + g
    return variable - rate * (g + accumulation * momentum if use_nesterov else accumulation), accumulation


def _moments(m, v, b1, b2, g):
    return m + (g - m) * (1 - b1), v + (g * g - v) * (1 - b2)


@composition
def adam(
    var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient,
    *, use_locking, use_nesterov, gradient_scale, weight_decay,
):  # fmt: skip
    power1, power2, lr, b1, b2, eps = _numbers(var, beta1_power, beta2_power, lr, beta1, beta2, epsilon)
    g = _decayed(gradient, var, gradient_scale, weight_decay)
    m, v = _moments(m, v, b1, b2, g)
    direction = m * b1 + (1 - b1) * g if use_nesterov else m
    return var - lr * ops.sqrt(1 - power2) / (1 - power1) * direction / (ops.sqrt(v) + eps), m, v


@composition
def adam_weight_decay(var, m, v, lr, beta1, beta2, epsilon, decay, gradient, *, use_locking):
    lr, b1, b2, eps, decay = _numbers(var, lr, beta1, beta2, epsilon, decay)
    m, v = _moments(m, v, b1, b2, gradient)
    return var - lr * (m / (ops.sqrt(v) + eps) + decay * var), m, v


@composition
def adamw(var, m, v, step, lr, beta1, beta2, epsilon, decay, gradient):
    step, lr, b1, b2, eps, decay = _numbers(var, step, lr, beta1, beta2, epsilon, decay)
    m, v = _moments(m, v, b1, b2, gradient)
    root = ops.sqrt(v) / ops.sqrt(1 - b2**step) + eps
    return var * (1 - lr * decay) - lr / (1 - b1**step) * m / root, m, v


@composition
def apply_rms_prop(var, mean_square, moment, lr, grad, decay, momentum, epsilon, *, use_locking):
    lr, decay, momentum, eps = _numbers(var, lr, decay, momentum, epsilon)
    mean_square = mean_square + (grad * grad - mean_square) * (1 - decay)
    moment = moment * momentum + lr * grad / ops.sqrt(mean_square + eps)
    return var - moment, mean_square, moment


@composition
def apply_adagrad(var, accum, lr, grad, *, update_slots):
    accum = accum + grad * grad if update_slots else accum * 1
    return var - _numbers(var, lr)[0] * grad / ops.sqrt(accum), accum
