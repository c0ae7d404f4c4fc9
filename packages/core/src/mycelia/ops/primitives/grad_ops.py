"""Gradients as primitives of their own, which code written against `_grad_ops` calls.

Where the gradient follows from the result it is a formula; the others ask the function's own rule.
"""

from mycelia import ops
from mycelia.engine.autodiff.jacobian_products import vjp
from mycelia.engine.base import errors
from mycelia.engine.ops.arrays.shape import as_ints
from mycelia.engine.tensors.tensor import Tensor
from mycelia.ops.primitives.checks import anything, boolean, choice, integer, integers, real
from mycelia.ops.primitives.define import primitive, registry


def _pull(function, gradient, *inputs):
    """The gradients of ``function(*inputs)``; a single one by itself."""
    result, pull = vjp(function, *inputs)
    if isinstance(gradient, Tensor) and gradient.shape != result.shape:
        raise errors.shape_error(
            f"the shape of the gradient is not equal to that of the result: {gradient.shape}, {result.shape}"
        )
    found = pull(gradient)
    return found[0] if isinstance(found, tuple) and len(found) == 1 else found


# ---- called with (x, dy), or with the result in the place of x -------------------------------------------

_OF_INPUT = {
    "ACosGrad": "acos", "AbsGrad": "abs", "AsinGrad": "asin", "AtanGrad": "atan",
}  # fmt: skip
_OF_RESULT = {
    "AcoshGrad": lambda y, dy: dy / ops.sinh(y),
    "AsinhGrad": lambda y, dy: dy / ops.cosh(y),
    "InvGrad": lambda y, dy: -dy * y * y,
    "ReciprocalGrad": lambda y, dy: -dy * y * y,
    "RsqrtGrad": lambda y, dy: -0.5 * dy * y * y * y,
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "SqrtGrad": lambda y, dy: 0.5 * dy / y,
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
}
# ---- called with (dy, x, ...) ----------------------------------------------------------------------------
_OF_GRADIENT = {
    "FastGeLUGrad": "fast_gelu", "HSigmoidGrad": "hardsigmoid", "HSwishGrad": "hardswish",
    "ReLU6Grad": "relu6", "SiLUGrad": "silu", "SoftplusGrad": "softplus",
}  # fmt: skip


def _by_rule(called, function, gradient_first):
    function = getattr(ops, function)

    def gradient(x, dy):
        return _pull(function, dy, x)

    def swapped(dy, x):
        return _pull(function, dy, x)

    made = swapped if gradient_first else gradient
    made.__doc__ = f"Gradient of `{called.removesuffix('Grad')}`."
    primitive(made, name=called)


for _called, _function in _OF_INPUT.items():
    _by_rule(_called, _function, gradient_first=False)
for _called, _function in _OF_GRADIENT.items():
    _by_rule(_called, _function, gradient_first=True)
for _called, _formula in _OF_RESULT.items():
    _formula.__doc__ = f"Gradient of `{_called.removesuffix('Grad')}` from its result."
    primitive(_formula, name=_called)


@primitive
def Atan2Grad(x, y, dz):
    """Gradients of `Atan2`."""
    return _pull(ops.atan2, dz, x, y)


@primitive
def ReluGrad(dy, y):
    """Gradient of `ReLU` from its result."""
    return ops.where(y > 0, dy, ops.zeros_like(dy))


@primitive
def EluGrad(dy, y):
    """Gradient of `Elu` from its result."""
    return ops.where(y > 0, dy, dy * (y + 1))


@primitive
def SeLUGrad(dy, y):
    """Gradient of `SeLU` from its result."""
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return ops.where(y > 0, dy * scale, dy * (y + scale * alpha))


@primitive
def GeLUGrad(dy, x, y):
    """Gradient of `GeLU`, the form with tanh."""
    return _pull(lambda v: ops.gelu(v, approximate="tanh"), dy, x)


@primitive
def HShrinkGrad(gradients, features, *, lambd: real = 0.5):
    """Gradient of `HShrink`."""
    return _pull(lambda v: ops.hardshrink(v, lambd), gradients, features)


@primitive
def SoftShrinkGrad(input_grad, input_x, *, lambd: real = 0.5):
    """Gradient of `SoftShrink`."""
    return _pull(lambda v: ops.softshrink(v, lambd), input_grad, input_x)


@primitive
def PReLUGrad(dy, x, w):
    """Gradients of `PReLU`."""
    return _pull(ops.prelu, dy, x, w)


@primitive
def SoftmaxGrad(y, dy, axis=-1):
    """Gradient of `Softmax` from its result."""
    return y * (dy - ops.sum(dy * y, axis, True))


@primitive
def LogSoftmaxGrad(y, dy, *, axis: anything = -1):
    """Gradient of `LogSoftmax` from its result."""
    return dy - ops.exp(y) * ops.sum(dy, axis, True)


@primitive
def BiasAddGrad(dout, *, data_format: choice("NCHW", "NHWC", "NCDHW") = "NCHW"):
    """Gradient of the bias of `BiasAdd`."""
    channel = dout.ndim - 1 if data_format == "NHWC" else 1
    return ops.sum(dout, tuple(i for i in range(dout.ndim) if i != channel))


def _extreme(called, function):
    def gradient(x, y, dout, *, grad_x: boolean = True, grad_y: boolean = True):
        return _pull(function, dout, x, y)

    gradient.__doc__ = f"Gradients of `{called.removesuffix('Grad')}`."
    primitive(gradient, name=called)


_extreme("MaximumGrad", ops.maximum)
_extreme("MinimumGrad", ops.minimum)


@primitive
def L2NormalizeGrad(x, out, dout, *, axis: integers = (0,), epsilon: real = 1e-4):
    """Gradient of `L2Normalize`."""
    length = ops.sqrt(ops.maximum(ops.sum(ops.square(x), axis, True), epsilon))
    return (dout - out * ops.sum(dout * out, axis, True)) / length


@primitive
def SigmoidCrossEntropyWithLogitsGrad(x, y, dout):
    """Gradient of `SigmoidCrossEntropyWithLogits`."""
    return (ops.sigmoid(x) - y) * dout


@primitive
def SmoothL1LossGrad(
    prediction, target, dout, *, beta: real = 1.0, reduction: choice("none", "mean", "sum") = "none"
):
    """Gradient of `SmoothL1Loss`."""
    return _pull(lambda v: ops.smooth_l1_loss(v, target, beta, reduction), dout, prediction)


@primitive
def BinaryCrossEntropyGrad(x, y, doutput, weight=None, *, reduction: choice("mean", "sum", "none") = "mean"):
    """Gradient of `BinaryCrossEntropy`."""
    return _pull(lambda v: ops.binary_cross_entropy(v, y, weight, reduction), doutput, x)


@primitive
def KLDivLossGrad(
    doutput, x, target, *, reduction: choice("none", "mean", "batchmean", "sum", other=ValueError) = "mean"
):
    """Gradient of `KLDivLoss`: ``-target * doutput``, divided by what the loss is divided by."""
    count = x.size if reduction == "mean" else x.shape[0] if reduction == "batchmean" else 1
    return -target * doutput / count


@primitive
def StridedSliceGrad(
    dy, shapex, begin, end, strides, *, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0,
    shrink_axis_mask=0,
):  # fmt: skip
    """Gradient of `StridedSlice`: `dy` in its place, zeros elsewhere."""
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    zeros = ops.zeros(tuple(shapex), dy.dtype)
    part = ops.strided_slice(zeros, begin, end, strides, *masks)
    dy = dy if dy.shape == part.shape else ops.broadcast_to(dy, part.shape)
    return _pull(lambda v: ops.strided_slice(v, begin, end, strides, *masks), dy, zeros)


# ---- layers ----------------------------------------------------------------------------------------------


def _pooling(called, pool):
    def gradient(
        x, out, dout, *, kernel_size: anything = 1, strides: anything = 1, pad_mode: anything = "VALID",
        data_format: anything = "NCHW",
    ):  # fmt: skip
        forward = registry[pool](_window(kernel_size), _window(strides), pad_mode, data_format)
        return _pull(forward, dout, x)

    gradient.__doc__ = f"Gradient of `{pool}`."
    primitive(gradient, name=called)


def _window(sizes):
    """Height and width of sizes that may be given for all four axes."""
    return tuple(sizes[2:]) if isinstance(sizes, (tuple, list)) and len(sizes) == 4 else sizes


_pooling("MaxPoolGrad", "MaxPool")
_pooling("AvgPoolGrad", "AvgPool")


@primitive
def Conv2DBackpropFilter(
    dout, x, w_size, *, out_channel: anything, kernel_size: anything, pad_mode: anything = "valid",
    pad: anything = 0, pad_list: anything = (0, 0, 0, 0), mode: anything = 1, stride: anything = (1, 1),
    dilation: anything = (1, 1, 1, 1), group: anything = 1, data_format: anything = "NCHW",
):  # fmt: skip
    """Gradient of the weights of `Conv2D`, whose sizes `w_size` says."""
    w_size = as_ints(w_size)
    forward = registry["Conv2D"](
        w_size[0], w_size[2:], mode, pad_mode, pad, _window(stride), _window(dilation), group, data_format
    )
    weight = ops.zeros(w_size, x.dtype)
    return _pull(lambda w: forward(x, w), dout, weight)


@primitive
def DropoutGrad(dy, mask, *, keep_prob: real = 0.5):
    """Gradient of `Dropout`: what was kept, scaled as it was."""
    return dy * ops.cast(mask, dy.dtype) / keep_prob


@primitive
def LayerNormGrad(
    x, dy, variance, mean, gamma, *, begin_norm_axis: integer = 1, begin_params_axis: integer = 1
):
    """Gradients of `LayerNorm` for the input, its scale and its shift, from the statistics of the pass."""
    axes = tuple(range(begin_norm_axis % x.ndim, x.ndim))
    outer = tuple(range(begin_params_axis % x.ndim))
    deviation = ops.rsqrt(variance)
    normal = (x - mean) * deviation
    scaled = dy * gamma
    slope = ops.mean(scaled * normal, axes, True)
    # The last term is zero where `mean` is the mean of x.
    dx = scaled - ops.mean(scaled, axes, True) - slope * (normal - ops.mean(normal, axes, True))
    scale, shift = (ops.sum(t, outer) if outer else t for t in (dy * normal, dy))
    return dx * deviation, scale, shift


@primitive
def LayerNormGradGrad(
    x, dy, variance, mean, gamma, d_dx, d_dg, d_db,
    *, begin_norm_axis: integer = 1, begin_params_axis: integer = 1,
):  # fmt: skip
    """Gradients of `LayerNormGrad` for x, dy and gamma; `variance` and `mean` are those of x."""
    axes = tuple(range(begin_norm_axis % x.ndim, x.ndim))
    backward = LayerNormGrad(begin_norm_axis, begin_params_axis)

    def gradients(x, dy, gamma):
        centre = ops.mean(x, axes, True)
        spread = ops.mean(ops.square(x - centre), axes, True)
        # The values that are given, as functions of x.
        spread = spread - ops.stop_gradient(spread - variance)
        return backward(x, dy, spread, centre - ops.stop_gradient(centre - mean), gamma)

    return _pull(gradients, (d_dx, d_dg, d_db), x, dy, gamma)
