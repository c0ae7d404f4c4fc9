"""Optimizer steps that update parameters and their state in place, one fused pass over memory each.

Here are those of gradient descent, momentum and their relatives; `adaptive_optim.py` has Adam's family.

Hyperparameters that may change from step to step (learning rate, momentum, decay) are tensor inputs of one
element, so that a schedule needs no new compilation. The formulas are those of MindSpore's operators, whose
input order they keep except that everything that is updated comes first.
"""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op
from mycelia.engine.ops.part_rules import each_element

_UPDATE = dict(nondiff=True, parts=each_element)


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


@op(name="sgd", updates=("parameters", "accum", "stat"), **_UPDATE, cost=4)
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


@op(name="apply_momentum", updates=("variable", "accumulation"), mindir="ApplyMomentum", **_UPDATE, cost=4)
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
