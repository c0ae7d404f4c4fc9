"""Gradients and optimizer steps as MindSpore's training graphs have them."""

from __future__ import annotations

from mycelia.engine import ops
from mycelia.engine.autodiff.jacobian_products import vjp
from mycelia.engine.ops.elementwise.activation import _sigmoid_grad, _silu_grad
from mycelia.engine.ops.elementwise.gelu import _gelu_grad
from mycelia.engine.ops.elementwise.math import tanh_grad
from mycelia.engine.ops.elementwise.rectifiers import ABOVE_SIX, _hardtanh_grad, _relu_grad
from mycelia.engine.ops.nn_ops.batch_norm import _batch_norm_grad
from mycelia.engine.ops.nn_ops.norm import _layer_norm_grad
from mycelia.engine.ops.nn_ops.optim import _apply_momentum, _sgd
from mycelia.io.mindir.operators.arguments import ints, is_channels_last
from mycelia.io.mindir.operators.table import operator, writes
from mycelia.io.mindir.operators.windows import AvgPool, Conv2D, MaxPool


@operator
def ReluGrad(dy, y):
    return _relu_grad(dy, y)


@operator
def ReLU6Grad(dy, x):
    return _hardtanh_grad(dy, x, min_val=0.0, max_val=ABOVE_SIX)


@operator
def SigmoidGrad(y, dy):
    return _sigmoid_grad(dy, y)


@operator
def TanhGrad(y, dy):
    return tanh_grad(dy, y)


@operator
def SiLUGrad(dy, x):
    return _silu_grad(dy, x)


@operator
def GeLUGrad(dy, x, y):
    return _gelu_grad(dy, x, approximate="tanh")


@operator
def BiasAddGrad(dy, *, data_format="NCHW"):
    channel = dy.ndim - 1 if is_channels_last(data_format) else 1
    return ops.sum(dy, tuple(axis for axis in range(dy.ndim) if axis != channel))


@operator
def LayerNormGrad(
    x, dy, variance, mean, gamma, *, begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7
):  # fmt: skip
    inverse = ops.rsqrt(variance + epsilon)
    return _layer_norm_grad(
        dy, x, mean, inverse, gamma, begin_norm_axis=begin_norm_axis, params_rank=gamma.ndim, epsilon=epsilon
    )


@operator
def BatchNormGrad(
    dy, x, scale, mean, inverse, reserve=None, *, is_training=False, epsilon=1e-5, data_format="NCHW"
):
    layout = "NHWC" if is_channels_last(data_format) else "NCHW"
    if is_training:
        return _batch_norm_grad(dy, x, scale, mean, inverse, epsilon=epsilon, data_format=layout)
    raise NotImplementedError("BatchNormGrad of a network that is not being trained")


@operator
def Conv2DBackpropFilter(
    dy, x, filter_sizes, *, stride=1, dilation=1, pad=0, pad_mode="valid", group=1, data_format="NCHW"
):
    how = dict(stride=stride, dilation=dilation, pad=pad, pad_mode=pad_mode, group=group)
    w = ops.zeros(ints(filter_sizes), x.dtype)  # the convolution is linear in it
    return vjp(lambda w: Conv2D(x, w, data_format=data_format, **how), w)[1](dy)[0]


@operator
def MaxPoolGrad(x, out, dy, *, kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW"):
    windows = dict(kernel_size=kernel_size, strides=strides, pad_mode=pad_mode, data_format=data_format)
    return vjp(lambda x: MaxPool(x, **windows), x)[1](dy)[0]


@operator
def AvgPoolGrad(x, out, dy, *, kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW"):
    windows = dict(kernel_size=kernel_size, strides=strides, pad_mode=pad_mode, data_format=data_format)
    return vjp(lambda x: AvgPool(x, **windows), x)[1](dy)[0]


@writes
def SGD(variable, gradient, rate, accum, momentum, stat, *, dampening=0.0, weight_decay=0.0, nesterov=False):
    how = dict(dampening=dampening, weight_decay=weight_decay, nesterov=nesterov)
    return _sgd(variable, accum, stat, gradient, rate, momentum, **how)


@writes
def ApplyMomentum(
    variable, moment, rate, gradient, momentum, *, use_nesterov=False, use_locking=False, gradient_scale=1.0
):
    how = dict(use_nesterov=use_nesterov, gradient_scale=float(gradient_scale))
    return _apply_momentum(variable, moment, rate, gradient, momentum, **how)
