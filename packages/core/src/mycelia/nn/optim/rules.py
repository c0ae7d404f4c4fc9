"""Update rules that have no operator of their own: what one step does to one Parameter and its state.

Rules that are MindSpore's operators are ops (`engine/ops/nn_ops/optim.py` and `adaptive_optim.py`). A rule is
here if it is

* a step with no operator: `asgd`, `nadam`, `radam`; or a step around one: `rprop`;
* a step of PyTorch that differs from the operator of that name by more than a number: `adam`, `adamax`,
  `rms_prop`, `sgd`.

Each takes `rows`, one per Parameter of equal options: the Parameter p, its state, which has its shape unless
said, and its gradient g after weight decay; so what all of them share is computed once. Parameters and state
are written in place. `step` is the number of this step, counted from 1, `lr` the learning rate, both float32
[].
"""

from __future__ import annotations

from mycelia.engine import ops
from mycelia.engine.base import dtypes
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.ops.nn_ops import optim as _optim
from mycelia.engine.tensors.tensor import Tensor


def _power(base: float, exponent):
    return ops.pow(Tensor(float(base), dtypes.float32), exponent)


def _average(state, new, beta: float) -> None:
    """The running mean ``state = beta * state + (1 - beta) * new``."""
    assign(state, state * beta + new * (1 - beta))


def _moments(m, v, betas, g) -> None:
    _average(m, g, betas[0])
    _average(v, g * g, betas[1])


def adam(rows, step, lr, betas, eps: float, weight_decay: float = 0.0) -> None:
    """``p -= lr / (1 - beta1^step) * m / (sqrt(v) / sqrt(1 - beta2^step) + eps)``; rows (p, m, v, largest,
    g).

    `largest`: the largest v so far, which takes the place of v (Reddi et al. 2018), or None; `weight_decay`:
    that apart from the gradient, p is multiplied by ``1 - lr * weight_decay`` first (Loshchilov and Hutter
    2019). The operators (`adam`, `adam_amsgrad`, `adamw`) take the betas as float32, so that their 1 - beta2
    differs in the fifth digit, and the first two add eps before the correction.  Source: Kingma and Ba 2015.
    """
    size = lr / (1 - _power(betas[0], step))
    correction = ops.sqrt(1 - _power(betas[1], step))
    for p, m, v, largest, g in rows:
        if weight_decay:
            assign(p, p * (1 - lr * weight_decay))
        _moments(m, v, betas, g)
        if largest is not None:
            assign(largest, ops.maximum(largest, v))
            v = largest
        assign(p, p - size * m / (ops.sqrt(v) / correction + eps))


def adamax(rows, step, lr, betas, eps: float) -> None:
    """Adam in the infinity norm: ``u = max(beta2 * u, |g| + eps)``, ``p -= lr / (1 - beta1^step) * m / u``;
    rows (p, m, u, g).

    The operator (`apply_ada_max`) adds eps to u where it divides.  Source: Kingma and Ba 2015, section 7.
    """
    rate = lr / (1 - _power(betas[0], step))
    for p, m, u, g in rows:
        _average(m, g, betas[0])
        assign(u, ops.maximum(u * betas[1], ops.abs(g) + eps))
        assign(p, p - rate * m / u)


def nadam(rows, step, lr, betas, eps: float, momentum_decay: float) -> None:
    """Adam with Nesterov's momentum (Dozat 2016); rows (p, m, v, product, g), `product` [] of the momenta so
    far.
    """
    # 0.96 is the decay of the momentum schedule in the paper.
    mu = betas[0] * (1.0 - 0.5 * _power(0.96, step * momentum_decay))
    ahead = betas[0] * (1.0 - 0.5 * _power(0.96, (step + 1) * momentum_decay))
    correction = 1 - _power(betas[1], step)
    for p, m, v, product, g in rows:
        assign(product, product * mu)
        _moments(m, v, betas, g)
        root = ops.sqrt(v / correction) + eps
        now = lr * (1.0 - mu) / (1.0 - product) * g / root
        assign(p, p - now - lr * ahead / (1.0 - product * ahead) * m / root)


def radam(rows, step, lr, betas, eps: float) -> None:
    """Adam with the variance of its rate rectified (Liu et al. 2020); rows (p, m, v, g)."""
    power = _power(betas[1], step)
    first, second = 1 - _power(betas[0], step), 1 - power
    longest = 2 / (1 - betas[1]) - 1
    length = longest - 2 * step * power / second
    # Up to length 5 the variance is not tractable and the step is one of plain momentum.
    known = ops.maximum(length, 5.0)
    scale = (longest - 4) * (longest - 2)
    rect = ops.sqrt((known - 4) * (known - 2) * longest / (scale * known))
    for p, m, v, g in rows:
        _moments(m, v, betas, g)
        adaptive = ops.sqrt(second) / (ops.sqrt(v) + eps) * rect
        assign(p, p - m / first * lr * ops.where(length > 5.0, adaptive, 1.0))


def rms_prop(rows, lr, alpha: float, eps: float, momentum: float, centered: bool) -> None:
    """``p -= lr * g / (sqrt(square) + eps)``, `square` the running mean of g * g; rows (p, mean, square,
    moment, g).

    `centered`: the variance ``square - mean * mean`` takes the place of `square`, `mean` that of g; with
    `momentum` ``moment = momentum * moment + g / (...)`` that of the quotient.  The operators
    (`apply_rms_prop`, `apply_centered_rms_prop`) add eps under the root and have lr in the moment.  Source:
    Tieleman and Hinton 2012.
    """
    for p, mean, square, moment, g in rows:
        _average(square, g * g, alpha)
        variance = square
        if centered:
            _average(mean, g, alpha)
            variance = square - mean * mean
        move = g / (ops.sqrt(variance) + eps)
        if momentum > 0:
            assign(moment, moment * momentum + move)
            move = moment
        assign(p, p - lr * move)


def sgd(rows, first, lr, momentum: float, dampening: float, nesterov: bool) -> None:
    """``velocity = momentum * velocity + (1 - dampening) * g; p -= lr * velocity``, the first velocity is g;
    rows (p, velocity, g).

    `nesterov`: ``p -= lr * (g + momentum * velocity)``.  `first`: a bool tensor, whether this is the first
    step; the operator (`sgd`) reads and writes a tensor of the shape of p for it, which checkpoints of
    MindSpore's SGD have.
    """
    for p, velocity, g in rows:
        if momentum:
            moving = velocity * momentum + g * (1 - dampening)
            assign(velocity, ops.where(first, g, moving))
            g = g + velocity * momentum if nesterov else velocity
        assign(p, p - lr * g)


def asgd(rows, step, lr, lambd: float, alpha: float, t0: float) -> None:
    """Averaged descent (Polyak and Juditsky 1992): ``p = p * (1 - lambd * eta) - eta * g; ax += (p - ax) *
    mu``; rows (p, ax, mu, eta, g).

    `eta` [], the rate of the next step, becomes ``lr / (1 + lambd * lr * step)^alpha``, `mu` [] becomes
    ``1 / max(step - t0, 1)``.  Computed in float32.
    """
    for p, ax, mu, eta, g in rows:
        rate = ops.where(step == 1, lr, eta)
        wide, mean = ops.cast(p, dtypes.float32), ops.cast(ax, dtypes.float32)
        moved = wide * (1.0 - lambd * rate) - rate * ops.cast(g, dtypes.float32)
        assign(ax, ops.cast(mean + (moved - mean) * mu, ax.dtype))
        assign(p, ops.cast(moved, p.dtype))
        assign(eta, lr / ops.pow(1.0 + lambd * lr * step, alpha))
        assign(mu, 1.0 / ops.maximum(step - t0, 1.0))


def rprop(rows, first, lr, etas, sizes) -> None:
    """The operator `rprop`, whose step sizes are `lr` in the first step; rows (p, previous, size, g).

    `first`: a bool tensor, whether this is the first step; `etas`: by which factor a step shrinks and grows;
    `sizes`: the smallest and the largest step.
    """
    (eta_minus, eta_plus), (step_min, step_max) = etas, sizes
    numbers = dict(
        eta_minus=float(eta_minus),
        eta_plus=float(eta_plus),
        step_min=float(step_min),
        step_max=float(step_max),
    )
    for p, previous, size, g in rows:
        assign(size, ops.where(first, ops.cast(lr, size.dtype), size))
        _optim._rprop(p, previous, size, g, **numbers)
