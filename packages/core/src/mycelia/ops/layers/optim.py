"""Optimizer steps that update parameters and their state in place, one fused pass over memory each.

Hyperparameters that may change from step to step (learning rate, momentum, decay) are tensor inputs of one
element, so that a schedule needs no new compilation. The formulas are those of MindSpore's operators, whose
input order they keep except that everything that is updated comes first.
"""

import numpy as np

from mycelia import errors
from mycelia.ir.types import TensorType
from mycelia.ops.define import op

_UPDATE = dict(nondiff=True)


def _check_state(var, grad, *state):
    """The parameter, its gradient and its state must have one shape."""
    for tensor in (grad, *state):
        if tensor.shape != var.shape and -1 not in tensor.shape + var.shape:
            raise errors.value_error(
                f"parameter, gradient and state must have one shape, got {var.shape} and {tensor.shape}"
            )


def _check_numbers(**numbers):
    for name, number in numbers.items():
        if number.size != 1:
            raise errors.value_error(f"{name} must be one number, got shape {number.shape}")


def _np_decayed(grad, var, scale, weight_decay):
    """The gradient times `scale` plus the weight decay's share."""
    grad = grad if scale == 1 else grad * grad.dtype.type(scale)
    return grad + grad.dtype.type(weight_decay) * var if weight_decay else grad


def _np_number(x, dtype):
    """A hyperparameter as a scalar of the parameter's dtype."""
    return dtype.type(np.asarray(x).reshape(()))


def _np_numbers(var, *numbers):
    return tuple(_np_number(x, var.dtype) for x in numbers)


# ------------------------------------------------------------------------ gradient descent


@op(name="apply_gradient_descent", updates=("var",), mindir="ApplyGradientDescent", **_UPDATE)
def _apply_gradient_descent(var, alpha, delta):
    """``var -= alpha * delta``.

    Shapes: var, delta equal, alpha [].  dtypes: floating.
    """
    return var - _np_number(alpha, var.dtype) * delta


@_apply_gradient_descent.infer
def _apply_gradient_descent(var, alpha, delta):
    _check_state(var, delta)
    _check_numbers(alpha=alpha)
    return var


@_apply_gradient_descent.samples
def _apply_gradient_descent(rand):
    yield rand(3, 5), np.array(0.1, np.float32), rand(3, 5)


@op(name="sgd", updates=("parameters", "accum", "stat"), **_UPDATE)
def _sgd(
    parameters, accum, stat, gradient, learning_rate, momentum,
    *, dampening: "float" = 0.0, weight_decay: "float" = 0.0, nesterov: "bool" = False,
):  # fmt: skip
    """Stochastic gradient descent with momentum.

    ``g = gradient + weight_decay * parameters``; with momentum
    ``accum = momentum * accum + (1 - dampening) * g``, where `stat` is positive (the first step)
    ``accum = g``; then ``parameters -= lr * accum``, with nesterov ``lr * (g + momentum * accum)``.
    Shapes: parameters, accum, stat, gradient equal, the others [].  dtypes: floating.
    """
    lr, mu = _np_numbers(parameters, learning_rate, momentum)
    g = _np_decayed(gradient, parameters, 1, weight_decay)
    if mu <= 0:
        return parameters - lr * g, accum, stat
    damped = accum * mu + g * g.dtype.type(1 - dampening)
    accum = np.where(stat > 0, g, damped)
    step = g + accum * mu if nesterov else accum
    return parameters - lr * step, accum, np.zeros_like(stat)


@_sgd.infer
def _sgd(parameters, accum, stat, gradient, learning_rate, momentum, *, dampening, weight_decay, nesterov):
    _check_state(parameters, gradient, accum, stat)
    _check_numbers(learning_rate=learning_rate, momentum=momentum)
    return parameters, accum, stat


_LR = np.array(0.1, np.float32)


def _scalar(value):
    return np.array(value, np.float32)


@_sgd.samples
def _sgd(rand):
    ones, zeros = np.ones((3, 5), np.float32), np.zeros((3, 5), np.float32)
    yield rand(3, 5), rand(3, 5), ones, rand(3, 5), _LR, _scalar(0.0), dict(weight_decay=0.1)
    yield rand(3, 5), rand(3, 5), ones, rand(3, 5), _LR, _scalar(0.9), dict(dampening=0.2)
    yield rand(3, 5), rand(3, 5), zeros, rand(3, 5), _LR, _scalar(0.9), dict(dampening=0.2, weight_decay=0.1)
    yield rand(3, 5), rand(3, 5), zeros, rand(3, 5), _LR, _scalar(0.9), dict(nesterov=True)


@op(name="apply_momentum", updates=("variable", "accumulation"), mindir="ApplyMomentum", **_UPDATE)
def _apply_momentum(
    variable, accumulation, learning_rate, gradient, momentum,
    *, use_nesterov: "bool" = False, use_locking: "bool" = False, gradient_scale: "float" = 1.0,
    weight_decay: "float" = 0.0,
):  # fmt: skip
    """Gradient descent with momentum:
    ``accumulation = momentum * accumulation + g; variable -= lr * accumulation``.

    With nesterov ``variable -= lr * (g + momentum * accumulation)``;
    ``g = gradient_scale * gradient + weight_decay * variable``.  Shapes: variable, accumulation, gradient
    equal, the others [].  dtypes: floating.
    """
    lr, mu = _np_numbers(variable, learning_rate, momentum)
    g = _np_decayed(gradient, variable, gradient_scale, weight_decay)
    accumulation = accumulation * mu + g
    step = g + accumulation * mu if use_nesterov else accumulation
    return variable - lr * step, accumulation


@_apply_momentum.infer
def _apply_momentum(variable, accumulation, learning_rate, gradient, momentum, **settings):
    _check_state(variable, gradient, accumulation)
    _check_numbers(learning_rate=learning_rate, momentum=momentum)
    return variable, accumulation


@_apply_momentum.samples
def _apply_momentum(rand):
    yield rand(3, 5), rand(3, 5), _LR, rand(3, 5), _scalar(0.9)
    yield rand(37), rand(37), _LR, rand(37), _scalar(0.9), dict(use_nesterov=True)
    yield rand(37), rand(37), _LR, rand(37), _scalar(0.9), dict(gradient_scale=0.5, weight_decay=0.1)
    yield rand(0), rand(0), _LR, rand(0), _scalar(0.9)


# ------------------------------------------------------------------------ Adam and relatives


@op(name="adam", updates=("var", "m", "v"), mindir="Adam", **_UPDATE)
def _adam(
    var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient,
    *, use_locking: "bool" = False, use_nesterov: "bool" = False, gradient_scale: "float" = 1.0,
    weight_decay: "float" = 0.0,
):  # fmt: skip
    """Adaptive moments: ``m = b1 m + (1 - b1) g``, ``v = b2 v + (1 - b2) g^2``, then

    ``var -= lr * sqrt(1 - beta2_power) / (1 - beta1_power) * m / (sqrt(v) + epsilon)``; with nesterov m is
    replaced by ``b1 m + (1 - b1) g`` there; ``g = gradient_scale * gradient + weight_decay * var``.
    Shapes: var, m, v, gradient equal, the others [].  dtypes: floating.  Source: Kingma and Ba 2015.
    """
    b1_power, b2_power, lr, b1, b2, eps = _np_numbers(
        var, beta1_power, beta2_power, lr, beta1, beta2, epsilon
    )
    g = _np_decayed(gradient, var, gradient_scale, weight_decay)
    m = m + (g - m) * (1 - b1)
    v = v + (g * g - v) * (1 - b2)
    rate = lr * np.sqrt(1 - b2_power) / (1 - b1_power)
    direction = m * b1 + (1 - b1) * g if use_nesterov else m
    return var - rate * direction / (np.sqrt(v) + eps), m, v


@_adam.infer
def _adam(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient, **settings):
    _check_state(var, gradient, m, v)
    _check_numbers(
        beta1_power=beta1_power, beta2_power=beta2_power, lr=lr, beta1=beta1, beta2=beta2, epsilon=epsilon
    )  # fmt: skip
    return var, m, v


def _adam_numbers():
    return _scalar(0.81), _scalar(0.998), _LR, _scalar(0.9), _scalar(0.999), _scalar(1e-8)


@_adam.samples
def _adam(rand):
    yield rand(3, 5), rand(3, 5), rand.positive(3, 5), *_adam_numbers(), rand(3, 5)
    yield rand(37), rand(37), rand.positive(37), *_adam_numbers(), rand(37), dict(use_nesterov=True)
    yield (
        rand(37),
        rand(37),
        rand.positive(37),
        *_adam_numbers(),
        rand(37),
        dict(gradient_scale=0.5, weight_decay=0.1),
    )
    yield rand(0), rand(0), rand(0), *_adam_numbers(), rand(0)


@op(name="adam_amsgrad", updates=("var", "m", "v", "vhat"), **_UPDATE)
def _adam_amsgrad(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient):
    """Adam with the largest second moment so far: ``vhat = max(vhat, v)`` takes the place of v in the step.

    Shapes: var, m, v, vhat, gradient equal, the others [].  dtypes: floating.  Source: Reddi et al. 2018.
    """
    b1_power, b2_power, lr, b1, b2, eps = _np_numbers(
        var, beta1_power, beta2_power, lr, beta1, beta2, epsilon
    )
    m = m + (gradient - m) * (1 - b1)
    v = v + (gradient * gradient - v) * (1 - b2)
    vhat = np.maximum(vhat, v)
    rate = lr * np.sqrt(1 - b2_power) / (1 - b1_power)
    return var - rate * m / (np.sqrt(vhat) + eps), m, v, vhat


@_adam_amsgrad.infer
def _adam_amsgrad(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient):
    _check_state(var, gradient, m, v, vhat)
    return var, m, v, vhat


@_adam_amsgrad.samples
def _adam_amsgrad(rand):
    yield rand(3, 5), rand(3, 5), rand.positive(3, 5), rand.positive(3, 5), *_adam_numbers(), rand(3, 5)


@op(name="adam_weight_decay", updates=("var", "m", "v"), mindir="AdamWeightDecay", **_UPDATE)
def _adam_weight_decay(var, m, v, lr, beta1, beta2, epsilon, decay, gradient, *, use_locking: "bool" = False):
    """Adam without bias correction, with decoupled decay:
    ``var -= lr * (m / (sqrt(v) + epsilon) + decay * var)``.

    Shapes: var, m, v, gradient equal, the others [].  dtypes: floating.  Source: Loshchilov and Hutter 2019.
    """
    lr, b1, b2, eps, decay = _np_numbers(var, lr, beta1, beta2, epsilon, decay)
    m = m + (gradient - m) * (1 - b1)
    v = v + (gradient * gradient - v) * (1 - b2)
    return var - lr * (m / (np.sqrt(v) + eps) + decay * var), m, v


@_adam_weight_decay.infer
def _adam_weight_decay(var, m, v, lr, beta1, beta2, epsilon, decay, gradient, *, use_locking):
    _check_state(var, gradient, m, v)
    _check_numbers(lr=lr, beta1=beta1, beta2=beta2, epsilon=epsilon, decay=decay)
    return var, m, v


@_adam_weight_decay.samples
def _adam_weight_decay(rand):
    numbers = _LR, _scalar(0.9), _scalar(0.999), _scalar(1e-6), _scalar(0.01)
    yield rand(3, 5), rand(3, 5), rand.positive(3, 5), *numbers, rand(3, 5)
    yield rand(37), rand(37), rand.positive(37), *numbers, rand(37)


@op(name="adamw", updates=("var", "m", "v"), **_UPDATE)
def _adamw(var, m, v, step, lr, beta1, beta2, epsilon, decay, gradient):
    """Adam with bias correction and decoupled decay: ``var = (1 - lr * decay) * var - lr * mhat /
    (sqrt(vhat) + epsilon)``.

    ``mhat = m / (1 - beta1^step)``, ``vhat = v / (1 - beta2^step)``; `step` counts from 1.
    Shapes: var, m, v, gradient equal, the others [].  dtypes: floating.  Source: Loshchilov and Hutter 2019.
    """
    step, lr, b1, b2, eps, decay = _np_numbers(var, step, lr, beta1, beta2, epsilon, decay)
    m = m + (gradient - m) * (1 - b1)
    v = v + (gradient * gradient - v) * (1 - b2)
    root = np.sqrt(v) / np.sqrt(1 - b2**step) + eps
    return var * (1 - lr * decay) - lr / (1 - b1**step) * m / root, m, v


@_adamw.infer
def _adamw(var, m, v, step, lr, beta1, beta2, epsilon, decay, gradient):
    _check_state(var, gradient, m, v)
    _check_numbers(step=step, lr=lr, beta1=beta1, beta2=beta2, epsilon=epsilon, decay=decay)
    return var, m, v


@_adamw.samples
def _adamw(rand):
    numbers = _scalar(3.0), _LR, _scalar(0.9), _scalar(0.999), _scalar(1e-8), _scalar(0.01)
    yield rand(3, 5), rand(3, 5), rand.positive(3, 5), *numbers, rand(3, 5)
    yield rand(37), rand(37), rand.positive(37), *numbers, rand(37)


@op(name="apply_ada_max", updates=("var", "m", "v"), mindir="ApplyAdaMax", **_UPDATE)
def _apply_ada_max(var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad):
    """Adam in the infinity norm: ``v = max(b2 v, |g|)``,
    ``var -= lr / (1 - beta1_power) * m / (v + epsilon)``.

    Shapes: var, m, v, grad equal, the others [].  dtypes: floating.  Source: Kingma and Ba 2015, section 7.
    """
    b1_power, lr, b1, b2, eps = _np_numbers(var, beta1_power, lr, beta1, beta2, epsilon)
    m = m + (grad - m) * (1 - b1)
    v = np.maximum(b2 * v, np.abs(grad))
    return var - lr / (1 - b1_power) * m / (v + eps), m, v


@_apply_ada_max.infer
def _apply_ada_max(var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad):
    _check_state(var, grad, m, v)
    return var, m, v


@_apply_ada_max.samples
def _apply_ada_max(rand):
    numbers = _scalar(0.81), _LR, _scalar(0.9), _scalar(0.999), _scalar(1e-3)
    yield rand(3, 5), rand(3, 5), rand.positive(3, 5), *numbers, rand(3, 5)


@op(name="lamb", updates=("var", "m", "v"), **_UPDATE)
def _lamb(var, m, v, lr, beta1, beta2, epsilon, decay, global_step, gradient):
    """Adam with a trust ratio a layer: ``var -= lr * |var| / |u| * u``,
    ``u = mhat / (sqrt(vhat) + epsilon) + decay var``.

    The ratio is 1 where a norm is 0; mhat and vhat are corrected for step ``global_step``, counted from 1.
    Shapes: var, m, v, gradient equal, the others [].  dtypes: floating.  Source: You et al. 2020.
    """
    lr, b1, b2, eps, decay, step = _np_numbers(var, lr, beta1, beta2, epsilon, decay, global_step)
    m = m + (gradient - m) * (1 - b1)
    v = v + (gradient * gradient - v) * (1 - b2)
    update = m / (1 - b1**step) / (np.sqrt(v / (1 - b2**step)) + eps) + decay * var
    var_norm, update_norm = np.sqrt((var * var).sum()), np.sqrt((update * update).sum())
    trust = var_norm / update_norm if var_norm > 0 and update_norm > 0 else var.dtype.type(1)
    return var - lr * trust * update, m, v


@_lamb.infer
def _lamb(var, m, v, lr, beta1, beta2, epsilon, decay, global_step, gradient):
    _check_state(var, gradient, m, v)
    return var, m, v


@_lamb.samples
def _lamb(rand):
    numbers = _LR, _scalar(0.9), _scalar(0.999), _scalar(1e-6), _scalar(0.01), _scalar(3.0)
    yield rand(3, 5), rand(3, 5), rand.positive(3, 5), *numbers, rand(3, 5)
    yield np.zeros(4, np.float32), rand(4), rand.positive(4), *numbers, rand(4)


@op(name="lars_update", **_UPDATE)
def _lars_update(
    weight, gradient, norm_weight, norm_gradient, weight_decay, learning_rate,
    *, epsilon: "float" = 1e-5, hyperpara: "float" = 0.001, use_clip: "bool" = False,
):  # fmt: skip
    """The gradient scaled to the weight: ``(gradient + weight_decay * weight) * rate``.

    ``rate = hyperpara * |w| / (|g| + weight_decay * |w| + epsilon)``, with `use_clip` ``min(rate / lr, 1)``;
    it is 1 where a norm is 0. `norm_weight` and `norm_gradient` are the sums of squares.
    Shapes: weight, gradient equal, the others [] -> weight's.  dtypes: floating.  Source: You et al. 2017.
    """
    w2, g2, decay, lr = _np_numbers(weight, norm_weight, norm_gradient, weight_decay, learning_rate)
    w, g = np.sqrt(w2), np.sqrt(g2)
    rate = weight.dtype.type(1)
    if w > 0 and g > 0:
        rate = weight.dtype.type(hyperpara) * w / (g + decay * w + weight.dtype.type(epsilon))
        rate = min(rate / lr, weight.dtype.type(1)) if use_clip else rate
    return (gradient + decay * weight) * rate


@_lars_update.infer
def _lars_update(weight, gradient, norm_weight, norm_gradient, weight_decay, learning_rate, **settings):
    _check_state(weight, gradient)
    return TensorType(gradient.dtype, gradient.shape)


@_lars_update.samples
def _lars_update(rand):
    yield rand(3, 5), rand(3, 5), _scalar(2.0), _scalar(3.0), _scalar(0.1), _LR
    yield rand(3, 5), rand(3, 5), _scalar(2.0), _scalar(3.0), _scalar(0.1), _LR, dict(use_clip=True)
    yield rand(3, 5), rand(3, 5), _scalar(0.0), _scalar(3.0), _scalar(0.1), _LR


# ------------------------------------------------------------------------ mean squares


@op(name="apply_rms_prop", updates=("var", "mean_square", "moment"), mindir="ApplyRMSProp", **_UPDATE)
def _apply_rms_prop(
    var, mean_square, moment, learning_rate, grad, decay, momentum, epsilon, *, use_locking: "bool" = False
):
    """Root mean square scaling: ``s = decay s + (1 - decay) g^2``,
    ``moment = momentum moment + lr g / sqrt(s + epsilon)``.

    Then ``var -= moment``.  Shapes: var, mean_square, moment, grad equal, the others [].  dtypes: floating.
    Source: Tieleman and Hinton 2012.
    """
    lr, decay, mu, eps = _np_numbers(var, learning_rate, decay, momentum, epsilon)
    mean_square = mean_square + (grad * grad - mean_square) * (1 - decay)
    moment = moment * mu + lr * grad / np.sqrt(mean_square + eps)
    return var - moment, mean_square, moment


@_apply_rms_prop.infer
def _apply_rms_prop(var, mean_square, moment, learning_rate, grad, decay, momentum, epsilon, *, use_locking):
    _check_state(var, grad, mean_square, moment)
    _check_numbers(learning_rate=learning_rate, decay=decay, momentum=momentum, epsilon=epsilon)
    return var, mean_square, moment


@_apply_rms_prop.samples
def _apply_rms_prop(rand):
    numbers = _scalar(0.9), _scalar(0.5), _scalar(1e-3)
    yield rand(3, 5), rand.positive(3, 5), rand(3, 5), _LR, rand(3, 5), *numbers
    yield rand(37), rand.positive(37), rand(37), _LR, rand(37), *numbers


@op(
    name="apply_centered_rms_prop", updates=("var", "mean_gradient", "mean_square", "moment"),
    mindir="ApplyCenteredRMSProp", **_UPDATE,
)  # fmt: skip
def _apply_centered_rms_prop(
    var, mean_gradient, mean_square, moment, grad, learning_rate, decay, momentum, epsilon,
    *, use_locking: "bool" = False,
):  # fmt: skip
    """apply_rms_prop with the variance ``s - mean_gradient^2`` in place of the mean square s.

    Shapes: var, mean_gradient, mean_square, moment, grad equal, the others [].  dtypes: floating.
    Source: Graves 2013.
    """
    lr, decay, mu, eps = _np_numbers(var, learning_rate, decay, momentum, epsilon)
    mean_square = mean_square + (grad * grad - mean_square) * (1 - decay)
    mean_gradient = mean_gradient + (grad - mean_gradient) * (1 - decay)
    moment = moment * mu + lr * grad / np.sqrt(mean_square - mean_gradient * mean_gradient + eps)
    return var - moment, mean_gradient, mean_square, moment


@_apply_centered_rms_prop.infer
def _apply_centered_rms_prop(
    var, mean_gradient, mean_square, moment, grad, learning_rate, decay, momentum, epsilon, *, use_locking
):
    _check_state(var, grad, mean_gradient, mean_square, moment)
    _check_numbers(learning_rate=learning_rate, decay=decay, momentum=momentum, epsilon=epsilon)
    return var, mean_gradient, mean_square, moment


@_apply_centered_rms_prop.samples
def _apply_centered_rms_prop(rand):
    small, square = rand(3, 5) * 0.1, rand.positive(3, 5) + 0.5
    yield rand(3, 5), small, square, rand(3, 5), rand(3, 5), _LR, _scalar(0.9), _scalar(0.5), _scalar(1e-3)


@op(name="apply_adagrad", updates=("var", "accum"), mindir="ApplyAdagrad", **_UPDATE)
def _apply_adagrad(var, accum, lr, grad, *, update_slots: "bool" = True):
    """Scaling by all past squares: ``accum += g^2`` (if update_slots), ``var -= lr * g / sqrt(accum)``.

    Shapes: var, accum, grad equal, lr [].  dtypes: floating.  Source: Duchi et al. 2011.
    """
    accum = accum + grad * grad if update_slots else accum
    return var - _np_number(lr, var.dtype) * grad / np.sqrt(accum), accum


@_apply_adagrad.infer
def _apply_adagrad(var, accum, lr, grad, *, update_slots):
    _check_state(var, grad, accum)
    _check_numbers(lr=lr)
    return var, accum


@_apply_adagrad.samples
def _apply_adagrad(rand):
    yield rand(3, 5), rand.positive(3, 5), _LR, rand(3, 5)
    yield rand(37), rand.positive(37), _LR, rand(37), dict(update_slots=False)


@op(name="apply_adagrad_v2", updates=("var", "accum"), mindir="ApplyAdagradV2", **_UPDATE)
def _apply_adagrad_v2(var, accum, lr, grad, *, epsilon: "float", update_slots: "bool" = True):
    """``accum += g^2`` (if update_slots), ``var -= lr * g / (sqrt(accum) + epsilon)``.

    Shapes: var, accum, grad equal, lr [].  dtypes: floating.
    """
    accum = accum + grad * grad if update_slots else accum
    return var - _np_number(lr, var.dtype) * grad / (np.sqrt(accum) + var.dtype.type(epsilon)), accum


@_apply_adagrad_v2.infer
def _apply_adagrad_v2(var, accum, lr, grad, *, epsilon, update_slots):
    _check_state(var, grad, accum)
    _check_numbers(lr=lr)
    return var, accum


@_apply_adagrad_v2.samples
def _apply_adagrad_v2(rand):
    yield rand(3, 5), rand.positive(3, 5), _LR, rand(3, 5), dict(epsilon=1e-3)


@op(name="apply_adadelta", updates=("var", "accum", "accum_update"), mindir="ApplyAdadelta", **_UPDATE)
def _apply_adadelta(var, accum, accum_update, lr, rho, epsilon, grad):
    """Steps in units of the parameter: ``u = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * g``.

    ``accum = rho accum + (1 - rho) g^2`` before, ``accum_update = rho accum_update + (1 - rho) u^2`` after,
    and ``var -= lr * u``.
    Shapes: var, accum, accum_update, grad equal, the others [].  dtypes: floating.  Source: Zeiler 2012.
    """
    lr, rho, eps = _np_numbers(var, lr, rho, epsilon)
    accum = rho * accum + (1 - rho) * grad * grad
    update = np.sqrt(accum_update + eps) / np.sqrt(accum + eps) * grad
    return var - lr * update, accum, rho * accum_update + (1 - rho) * update * update


@_apply_adadelta.infer
def _apply_adadelta(var, accum, accum_update, lr, rho, epsilon, grad):
    _check_state(var, grad, accum, accum_update)
    _check_numbers(lr=lr, rho=rho, epsilon=epsilon)
    return var, accum, accum_update


@_apply_adadelta.samples
def _apply_adadelta(rand):
    state = rand.positive(3, 5), rand.positive(3, 5)
    yield rand(3, 5), *state, _LR, _scalar(0.9), _scalar(1e-3), rand(3, 5)


# ------------------------------------------------------------------------ signs, proximal steps


@op(name="apply_add_sign", updates=("var", "m"), mindir="ApplyAddSign", **_UPDATE)
def _apply_add_sign(var, m, lr, alpha, sign_decay, beta, grad):
    """``m = beta m + (1 - beta) g``, ``var -= lr * (alpha + sign_decay * sign(g) * sign(m)) * g``.

    Shapes: var, m, grad equal, the others [].  dtypes: floating.  Source: Bello et al. 2017.
    """
    lr, alpha, sign_decay, beta = _np_numbers(var, lr, alpha, sign_decay, beta)
    m = beta * m + (1 - beta) * grad
    return var - lr * (alpha + sign_decay * np.sign(grad) * np.sign(m)) * grad, m


@_apply_add_sign.infer
def _apply_add_sign(var, m, lr, alpha, sign_decay, beta, grad):
    _check_state(var, grad, m)
    return var, m


@_apply_add_sign.samples
def _apply_add_sign(rand):
    yield rand(3, 5), rand(3, 5), _LR, _scalar(0.9), _scalar(0.7), _scalar(0.6), rand(3, 5)


@op(name="apply_power_sign", updates=("var", "m"), mindir="ApplyPowerSign", **_UPDATE)
def _apply_power_sign(var, m, lr, logbase, sign_decay, beta, grad):
    """``m = beta m + (1 - beta) g``, ``var -= lr * exp(logbase * sign_decay * sign(g) * sign(m)) * g``.

    Shapes: var, m, grad equal, the others [].  dtypes: floating.  Source: Bello et al. 2017.
    """
    lr, logbase, sign_decay, beta = _np_numbers(var, lr, logbase, sign_decay, beta)
    m = beta * m + (1 - beta) * grad
    return var - lr * np.exp(logbase * sign_decay * np.sign(grad) * np.sign(m)) * grad, m


@_apply_power_sign.infer
def _apply_power_sign(var, m, lr, logbase, sign_decay, beta, grad):
    _check_state(var, grad, m)
    return var, m


@_apply_power_sign.samples
def _apply_power_sign(rand):
    yield rand(3, 5), rand(3, 5), _LR, _scalar(0.9), _scalar(0.7), _scalar(0.6), rand(3, 5)


def _np_proximal(x, rate, l1, l2):
    """The step towards zero that L1 and L2 penalties ask for."""
    return np.sign(x) * np.maximum(np.abs(x) - rate * l1, 0) / (1 + rate * l2)


@op(
    name="apply_proximal_gradient_descent", updates=("var",), mindir="ApplyProximalGradientDescent", **_UPDATE
)
def _apply_proximal_gradient_descent(var, alpha, l1, l2, delta):
    """Gradient descent with L1 and L2 penalties: ``x = var - alpha delta``, shrunk by ``alpha l1``, over
    ``1 + alpha l2``.

    Shapes: var, delta equal, the others [].  dtypes: floating.  Source: Duchi and Singer 2009.
    """
    alpha, l1, l2 = _np_numbers(var, alpha, l1, l2)
    return _np_proximal(var - alpha * delta, alpha, l1, l2)


@_apply_proximal_gradient_descent.infer
def _apply_proximal_gradient_descent(var, alpha, l1, l2, delta):
    _check_state(var, delta)
    return var


@_apply_proximal_gradient_descent.samples
def _apply_proximal_gradient_descent(rand):
    yield rand(3, 5), _LR, _scalar(0.2), _scalar(0.3), rand(3, 5)


@op(name="apply_proximal_adagrad", updates=("var", "accum"), mindir="ApplyProximalAdagrad", **_UPDATE)
def _apply_proximal_adagrad(var, accum, lr, l1, l2, grad, *, use_locking: "bool" = False):
    """Adagrad with L1 and L2 penalties: the proximal step with the rate ``lr / sqrt(accum)`` of each element.

    Shapes: var, accum, grad equal, the others [].  dtypes: floating.  Source: Duchi and Singer 2009.
    """
    lr, l1, l2 = _np_numbers(var, lr, l1, l2)
    accum = accum + grad * grad
    rate = lr / np.sqrt(accum)
    return _np_proximal(var - rate * grad, rate, l1, l2), accum


@_apply_proximal_adagrad.infer
def _apply_proximal_adagrad(var, accum, lr, l1, l2, grad, *, use_locking):
    _check_state(var, grad, accum)
    return var, accum


@_apply_proximal_adagrad.samples
def _apply_proximal_adagrad(rand):
    yield rand(3, 5), rand.positive(3, 5), _LR, _scalar(0.2), _scalar(0.3), rand(3, 5)


@op(name="apply_ftrl", updates=("var", "accum", "linear"), mindir="ApplyFtrl", **_UPDATE)
def _apply_ftrl(var, accum, linear, grad, lr, l1, l2, lr_power, *, use_locking: "bool" = False):
    """Follow the regularized leader: ``n = accum + g^2``,
    ``linear += g - (n^-p - accum^-p) / lr * var``, p = lr_power.

    ``var = (sign(linear) l1 - linear) / (n^-p / lr + 2 l2)`` where ``|linear| > l1``, else 0; ``accum = n``.
    Shapes: var, accum, linear, grad equal, the others [].  dtypes: floating.  Source: McMahan et al. 2013.
    """
    lr, l1, l2, power = _np_numbers(var, lr, l1, l2, lr_power)
    total = accum + grad * grad
    root, old_root = total**-power, accum**-power
    linear = linear + grad - (root - old_root) / lr * var
    var = np.where(np.abs(linear) > l1, (np.sign(linear) * l1 - linear) / (root / lr + 2 * l2), 0)
    return var.astype(linear.dtype), total, linear


@_apply_ftrl.infer
def _apply_ftrl(var, accum, linear, grad, lr, l1, l2, lr_power, *, use_locking):
    _check_state(var, grad, accum, linear)
    return var, accum, linear


@_apply_ftrl.samples
def _apply_ftrl(rand):
    state = rand.positive(3, 5), rand(3, 5)
    yield rand(3, 5), *state, rand(3, 5), _LR, _scalar(0.2), _scalar(0.3), _scalar(-0.5)


@op(name="rprop", updates=("var", "prev", "step_size"), **_UPDATE)
def _rprop(
    var, prev, step_size, grad,
    *, eta_minus: "float" = 0.5, eta_plus: "float" = 1.2, step_min: "float" = 1e-6, step_max: "float" = 50.0,
):  # fmt: skip
    """Resilient propagation: the step grows where the gradient keeps its sign,
    shrinks and pauses where it flips.

    ``var -= sign(g) * step_size``; `prev` is the last gradient that was used, 0 after a flip.
    Shapes: all equal.  dtypes: floating.  Source: Riedmiller and Braun 1993.
    """
    agreement = grad * prev
    factor = np.where(agreement > 0, eta_plus, np.where(agreement < 0, eta_minus, 1)).astype(var.dtype)
    step_size = np.clip(step_size * factor, step_min, step_max).astype(var.dtype)
    used = np.where(agreement < 0, var.dtype.type(0), grad)
    return var - np.sign(used) * step_size, used, step_size


@_rprop.infer
def _rprop(var, prev, step_size, grad, **settings):
    _check_state(var, grad, prev, step_size)
    return var, prev, step_size


@_rprop.samples
def _rprop(rand):
    yield rand(3, 5), rand(3, 5), rand.positive(3, 5), rand(3, 5)


__all__ = []
