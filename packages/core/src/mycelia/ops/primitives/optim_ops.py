"""Steps of optimizers: they change their parameters and state in place, and return what these have become."""

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import TensorType, float16, float32
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.ops.nn_ops import adaptive_optim as _adaptive_optim
from mycelia.engine.ops.nn_ops import optim as _optim
from mycelia.ops.primitives.checks import anything, boolean, number, real
from mycelia.ops.primitives.define import primitive

_MEM = {"side_effect_mem": True}


def _step(function=None, *, check=None):
    return primitive(extra=_MEM, check=check)(function)


def _now(*variables):
    """What variables are after the step."""
    values = tuple(ops.stop_gradient(v) for v in variables)
    return values if len(values) > 1 else values[0]


# ----------------------------------------------------------------------------------------- gradient descent


@_step
def ApplyGradientDescent(var, alpha, delta):
    """``var -= alpha * delta``; returns var."""
    _optim._apply_gradient_descent(var, alpha, delta)
    return _now(var)


def _no_dampening(constants):
    if constants["nesterov"] and constants["dampening"]:
        raise errors.value_error(f"'dampening' must be 0 with nesterov, but got {constants['dampening']}")


@_step(check=_no_dampening)
def SGD(
    parameters, gradient, learning_rate, accum, momentum, stat,
    *, dampening: number = 0.0, weight_decay: number = 0.0, nesterov: boolean = False,
):  # fmt: skip
    """Gradient descent with momentum; `stat` is 1 before the first step. Returns the parameters."""
    _optim._sgd(
        parameters, accum, stat, gradient, learning_rate, momentum, dampening=float(dampening),
        weight_decay=float(weight_decay), nesterov=nesterov,
    )  # fmt: skip
    return _now(parameters)


def _check_sgd_shapes(
    self, parameters_shape, gradient_shape, learning_rate_shape, accum_shape, momentum_shape, stat_shape
):
    """Any shapes do; those of a call are checked by the call."""
    del parameters_shape, gradient_shape, learning_rate_shape, accum_shape, momentum_shape, stat_shape


def _check_sgd_dtypes(
    self, parameters_dtype, gradient_dtype, learning_rate_dtype, accum_dtype, momentum_dtype, stat_dtype
):
    """TypeError unless all are types of float16 or float32 tensors."""
    for given in (
        parameters_dtype, gradient_dtype, learning_rate_dtype, accum_dtype, momentum_dtype, stat_dtype
    ):  # fmt: skip
        if given not in (TensorType(float16), TensorType(float32)):
            raise errors.type_error("SGD", f"a tensor of float16 or float32 is expected, but got {given}")


SGD.check_shape, SGD.check_dtype = _check_sgd_shapes, _check_sgd_dtypes


@_step
def ApplyMomentum(
    variable, accumulation, learning_rate, gradient, momentum,
    *, use_nesterov: boolean = False, use_locking: boolean = False, gradient_scale: real = 1.0,
):  # fmt: skip
    """Gradient descent with momentum; returns the variable."""
    _optim._apply_momentum(
        variable, accumulation, learning_rate, gradient, momentum, use_nesterov=use_nesterov,
        gradient_scale=gradient_scale,
    )  # fmt: skip
    return _now(variable)


@_step
def ApplyKerasMomentum(
    var, accum, lr, grad, momentum, *, use_locking: boolean = False, use_nesterov: boolean = False
):
    """Momentum that holds steps: ``accum = momentum * accum - lr * grad``; returns var and accum."""
    assign(accum, accum * momentum - grad * lr)
    assign(var, var + (accum * momentum - grad * lr if use_nesterov else accum))
    return _now(var, accum)


@_step
def FusedWeightScaleApplyMomentum(
    weight_decay, scale, variable, accumulation, learning_rate, gradient, momentum
):  # fmt: skip
    """Momentum with the gradient scaled by `scale` and weight decay added; returns the variable."""
    decayed = gradient * scale + variable * weight_decay
    _optim._apply_momentum(variable, accumulation, learning_rate, decayed, momentum)
    return _now(variable)


# ----------------------------------------------------------------------------------------- Adam and relatives


@_step
def Adam(
    var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad,
    *, use_locking: boolean = False, use_nesterov: boolean = False,
):  # fmt: skip
    """A step of Adam; returns var, m, v."""
    numbers = (beta1_power, beta2_power, lr, beta1, beta2, epsilon)
    _adaptive_optim._adam(var, m, v, *numbers, grad, use_nesterov=use_nesterov)
    return _now(var, m, v)


@_step
def AdamNoUpdateParam(
    m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient,
    *, use_locking: boolean = False, use_nesterov: boolean = False,
):  # fmt: skip
    """What a step of Adam would add to the parameter; m and v are changed."""
    change = ops.zeros_like(gradient)
    numbers = (beta1_power, beta2_power, lr, beta1, beta2, epsilon)
    return _adaptive_optim._adam(change, m, v, *numbers, gradient, use_nesterov=use_nesterov)


@_step
def AdamWeightDecay(var, m, v, lr, beta1, beta2, epsilon, decay, gradient, *, use_locking: anything = False):
    """Adam without correction of the bias and with decoupled weight decay; returns var, m, v."""
    _adaptive_optim._adam_weight_decay(var, m, v, lr, beta1, beta2, epsilon, decay, gradient)
    return _now(var, m, v)


@_step
def FusedCastAdamWeightDecay(
    var, m, v, lr, beta1, beta2, epsilon, decay, gradient, norm, *, use_locking: boolean = False
):
    """`AdamWeightDecay` of half precision parameters, the gradient divided by `norm`; returns var, m, v."""
    wide = ops.cast(var, m.dtype)
    scaled = ops.cast(gradient, m.dtype) / norm
    stepped = _adaptive_optim._adam_weight_decay(wide, m, v, lr, beta1, beta2, epsilon, decay, scaled)
    assign(var, ops.cast(stepped, var.dtype))
    return _now(var, m, v)


@_step
def ApplyAdaMax(var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad):
    """A step of Adam with the largest gradient in place of the mean square; returns var, m, v."""
    _adaptive_optim._apply_ada_max(var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad)
    return _now(var, m, v)


@_step
def ApplyAdamWithAmsgrad(
    var, m, v, vhat, beta1_power, beta2_power, lr, grad,
    *, beta1: real = 0.9, beta2: real = 0.999, epsilon: real = 1e-8, use_locking: boolean = False,
):  # fmt: skip
    """Adam that divides by the largest mean square so far; returns var, m, v, vhat."""
    _adaptive_optim._adam_amsgrad(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)
    return _now(var, m, v, vhat)


@_step
def ApplyAdamWithAmsgradV2(
    var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad,
    *, use_locking: boolean = False,
):  # fmt: skip
    """Adam that divides by the largest mean square so far; returns var, m, v, vhat."""
    _adaptive_optim._adam_amsgrad(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)
    return _now(var, m, v, vhat)


def _adafactor(settings, epsilon, clip_threshold, beta1, beta2, weight_decay, lr, grad, variables):
    param, moment, row, column, square = variables
    first, second = epsilon[0], epsilon[1]
    energy = grad * grad + first
    if grad.ndim >= 2:
        assign(row, row * beta2 + ops.mean(energy, -1) * (1 - beta2))
        assign(column, column * beta2 + ops.mean(energy, -2) * (1 - beta2))
        rows = ops.rsqrt(row / ops.mean(row, -1, True))
        update = ops.expand_dims(rows, -1) * ops.expand_dims(ops.rsqrt(column), -2) * grad
    else:
        assign(square, square * beta2 + energy * (1 - beta2))
        update = ops.rsqrt(square) * grad
    update = update / ops.maximum(ops.sqrt(ops.mean(update * update)) / clip_threshold, 1.0)
    if settings["enable_scale_parameter"]:
        lr = lr * ops.maximum(ops.sqrt(ops.mean(param * param)), second)
    update = update * lr
    if settings["enable_first_moment"]:
        assign(moment, moment * beta1 + update * (1 - beta1))
        update = moment
    decayed = param - param * (weight_decay * lr) if settings["enable_weight_decay"] else param
    assign(param, decayed - update)
    return _now(param)


@_step
def FusedAdaFactor(
    epsilon, clip_threshold, beta1, beta2, weight_decay, learning_rate, gradient, param, exp_avg,
    exp_avg_sq_row, exp_avg_sq_col, exp_avg_sq,
    *, enable_scale_parameter: boolean = False, enable_first_moment: boolean = False,
    enable_weight_decay: boolean = False,
):  # fmt: skip
    """A step of Adafactor; returns the parameter. Source: Shazeer and Stern 2018."""
    settings = dict(
        enable_scale_parameter=enable_scale_parameter, enable_first_moment=enable_first_moment,
        enable_weight_decay=enable_weight_decay,
    )  # fmt: skip
    variables = (param, exp_avg, exp_avg_sq_row, exp_avg_sq_col, exp_avg_sq)
    numbers = (epsilon, clip_threshold, beta1, beta2, weight_decay, learning_rate)
    return _adafactor(settings, *numbers, gradient, variables)


@_step
def FusedAdaFactorWithGlobalNorm(
    epsilon, clip_threshold, beta1, beta2, weight_decay, learning_rate, gradient, param, exp_avg,
    exp_avg_sq_row, exp_avg_sq_col, exp_avg_sq, global_norm,
    *, enable_scale_parameter: boolean = False, enable_first_moment: boolean = False,
    enable_weight_decay: boolean = False,
):  # fmt: skip
    """`FusedAdaFactor` with the gradient divided by `global_norm`."""
    settings = dict(
        enable_scale_parameter=enable_scale_parameter, enable_first_moment=enable_first_moment,
        enable_weight_decay=enable_weight_decay,
    )  # fmt: skip
    variables = (param, exp_avg, exp_avg_sq_row, exp_avg_sq_col, exp_avg_sq)
    numbers = (epsilon, clip_threshold, beta1, beta2, weight_decay, learning_rate)
    return _adafactor(settings, *numbers, gradient / global_norm, variables)


# ----------------------------------------------------------------------------------------- Adagrad


@_step
def ApplyAdagrad(var, accum, lr, grad, *, update_slots: boolean = True):
    """``accum += grad^2; var -= lr * grad / sqrt(accum)``; returns var and accum."""
    _adaptive_optim._apply_adagrad(var, accum, lr, grad, update_slots=update_slots)
    return _now(var, accum)


@_step
def ApplyAdagradV2(var, accum, lr, grad, *, epsilon: real, update_slots: boolean = True):
    """`ApplyAdagrad` with `epsilon` added to the root; returns var and accum."""
    _adaptive_optim._apply_adagrad_v2(var, accum, lr, grad, epsilon=epsilon, update_slots=update_slots)
    return _now(var, accum)


@_step
def ApplyAdagradDA(
    var, gradient_accumulator, gradient_squared_accumulator, grad, lr, l1, l2, global_step,
    *, use_locking: boolean = False,
):  # fmt: skip
    """Dual averaging: the parameter from the sums of gradients and their squares alone; returns var.

    Source: Duchi et al. 2011.
    """
    assign(gradient_accumulator, gradient_accumulator + grad)
    assign(gradient_squared_accumulator, gradient_squared_accumulator + grad * grad)
    step = ops.cast(global_step, var.dtype)
    total = gradient_accumulator
    shrunk = ops.sign(total) * ops.relu(ops.abs(total) - l1 * step)
    assign(var, -lr * shrunk / (l2 * step * lr + ops.sqrt(gradient_squared_accumulator)))
    return _now(var)


@_step
def ApplyAdadelta(var, accum, accum_update, lr, rho, epsilon, grad):
    """A step of Adadelta; returns var, accum, accum_update."""
    _adaptive_optim._apply_adadelta(var, accum, accum_update, lr, rho, epsilon, grad)
    return _now(var, accum, accum_update)


@_step
def ApplyProximalAdagrad(var, accum, lr, l1, l2, grad, *, use_locking: boolean = False):
    """Adagrad followed by the proximal map of the norms; returns var and accum."""
    _optim._apply_proximal_adagrad(var, accum, lr, l1, l2, grad)
    return _now(var, accum)


@_step
def ApplyProximalGradientDescent(var, alpha, l1, l2, delta):
    """Gradient descent followed by the proximal map of the norms; returns var."""
    _optim._apply_proximal_gradient_descent(var, alpha, l1, l2, delta)
    return _now(var)


@_step
def ApplyFtrl(var, accum, linear, grad, lr, l1, l2, lr_power, *, use_locking: boolean = False):
    """Follow the regularized leader; returns var."""
    _optim._apply_ftrl(var, accum, linear, grad, lr, l1, l2, lr_power)
    return _now(var)


# ----------------------------------------------------------------------------------------- others


@_step
def ApplyRMSProp(
    var, mean_square, moment, learning_rate, grad, decay, momentum, epsilon, *, use_locking: boolean = False
):
    """Scaling by the root mean square; returns var."""
    _adaptive_optim._apply_rms_prop(var, mean_square, moment, learning_rate, grad, decay, momentum, epsilon)
    return _now(var)


@_step
def ApplyCenteredRMSProp(
    var, mean_gradient, mean_square, moment, grad, learning_rate, decay, momentum, epsilon,
    *, use_locking: boolean = False,
):  # fmt: skip
    """Scaling by the deviation; returns var."""
    state = dict(mean_gradient=mean_gradient, mean_square=mean_square, moment=moment)
    numbers = dict(grad=grad, learning_rate=learning_rate, decay=decay, momentum=momentum, epsilon=epsilon)
    _adaptive_optim._apply_centered_rms_prop(var, **state, **numbers)
    return _now(var)


@_step
def ApplyAddSign(var, m, lr, alpha, sign_decay, beta, grad):
    """Larger steps where gradient and momentum agree, by addition; returns var and m."""
    _optim._apply_add_sign(var, m, lr, alpha, sign_decay, beta, grad)
    return _now(var, m)


@_step
def ApplyPowerSign(var, m, lr, logbase, sign_decay, beta, grad):
    """Larger steps where gradient and momentum agree, by a power; returns var and m."""
    _optim._apply_power_sign(var, m, lr, logbase, sign_decay, beta, grad)
    return _now(var, m)


@primitive
def LARSUpdate(
    weight, gradient, norm_weight, norm_gradient, weight_decay, learning_rate,
    *, epsilon: real = 1e-5, hyperpara: real = 0.001, use_clip: boolean = False,
):  # fmt: skip
    """The gradient scaled to the weight; the norms are sums of squares."""
    return _optim._lars_update(
        weight, gradient, norm_weight, norm_gradient, weight_decay, learning_rate, epsilon=epsilon,
        hyperpara=hyperpara, use_clip=use_clip,
    )  # fmt: skip
