"""Optimizer steps whose rate is the parameter's own: the Adam family, RMSProp, Adagrad, Adadelta."""

import numpy as np

from mycelia.engine.ops.define import op
from mycelia.engine.ops.nn_ops.optim import (
    _LR,
    _UPDATE,
    _check_numbers,
    _check_state,
    _np_decayed,
    _np_number,
    _np_numbers,
    _scalar,
)

# ------------------------------------------------------------------------ Adam and relatives


def _np_moments(m, v, g, b1, b2):
    """The running means of the gradient and of its square with a new one."""
    return m + (g - m) * (1 - b1), v + (g * g - v) * (1 - b2)


@op(name="adam", updates=("var", "m", "v"), mindir="Adam", **_UPDATE, cost=12)
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
    m, v = _np_moments(m, v, g, b1, b2)
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
    m, v = _np_moments(m, v, gradient, b1, b2)
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


@op(name="adam_weight_decay", updates=("var", "m", "v"), mindir="AdamWeightDecay", **_UPDATE, cost=14)
def _adam_weight_decay(var, m, v, lr, beta1, beta2, epsilon, decay, gradient, *, use_locking: "bool" = False):
    """Adam without bias correction, with decoupled decay:
    ``var -= lr * (m / (sqrt(v) + epsilon) + decay * var)``.

    Shapes: var, m, v, gradient equal, the others [].  dtypes: floating.  Source: Loshchilov and Hutter 2019.
    """
    lr, b1, b2, eps, decay = _np_numbers(var, lr, beta1, beta2, epsilon, decay)
    m, v = _np_moments(m, v, gradient, b1, b2)
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


@op(name="adamw", updates=("var", "m", "v"), **_UPDATE, cost=14)
def _adamw(var, m, v, step, lr, beta1, beta2, epsilon, decay, gradient):
    """Adam with bias correction and decoupled decay: ``var = (1 - lr * decay) * var - lr * mhat /
    (sqrt(vhat) + epsilon)``.

    ``mhat = m / (1 - beta1^step)``, ``vhat = v / (1 - beta2^step)``; `step` counts from 1.
    Shapes: var, m, v, gradient equal, the others [].  dtypes: floating.  Source: Loshchilov and Hutter 2019.
    """
    step, lr, b1, b2, eps, decay = _np_numbers(var, step, lr, beta1, beta2, epsilon, decay)
    m, v = _np_moments(m, v, gradient, b1, b2)
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


@op(name="lamb", updates=("var", "m", "v"), nondiff=True)
def _lamb(var, m, v, lr, beta1, beta2, epsilon, decay, global_step, gradient):
    """Adam with a trust ratio a layer: ``var -= lr * |var| / |u| * u``,
    ``u = mhat / (sqrt(vhat) + epsilon) + decay var``.

    The ratio is 1 where a norm is 0; mhat and vhat are corrected for step ``global_step``, counted from 1.
    Shapes: var, m, v, gradient equal, the others [].  dtypes: floating.  Source: You et al. 2020.
    """
    lr, b1, b2, eps, decay, step = _np_numbers(var, lr, beta1, beta2, epsilon, decay, global_step)
    m, v = _np_moments(m, v, gradient, b1, b2)
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
