"""Minimization by quasi-Newton methods, and under inequalities by an augmented Lagrangian.

Sources: Nocedal and Wright 1999, Numerical Optimization, algorithms 6.1 (BFGS) and 7.4 (L-BFGS, two loops);
Conn, Gould and Toint 1991 (the multipliers).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mycelia import nn, ops
from mycelia.engine import autodiff
from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.faces.scipy.optimize.line_search import dot, number, searched

__all__ = ["minimize"]

CURVATURE = 1e-10  # least product of step and change of gradient that L-BFGS learns from


class OptimizeResults(NamedTuple):
    """What `minimize` found.

    status: 0 converged, 1 `maxiter` reached, 2 + that of the line search if it failed.
    """

    x: Tensor
    success: bool
    status: int
    fun: float
    jac: Tensor
    hess_inv: Tensor | None
    nfev: int
    njev: int
    nit: int


class LagrangeResults(NamedTuple):
    """The best point that keeps all constraints within their tolerances, and what the functions are there."""

    succeeded: bool
    best_value: np.ndarray
    object_value: np.ndarray
    loss_value: np.ndarray


class _Bfgs:
    """Directions by an estimate of the inverse Hessian."""

    def __init__(self, x, gradient):
        self.unit = self.hessian = ops.eye(x.shape[0], x.shape[0], x.dtype)

    def direction(self, gradient):
        return ops.neg(ops.matmul(self.hessian, gradient))

    def learn(self, step, change, gradient) -> None:
        rho = 1.0 / dot(change, step) if dot(change, step) else float("inf")
        left = self.unit - ops.outer(step, change) * rho
        self.hessian = ops.matmul(ops.matmul(left, self.hessian), ops.swapaxes(left, 0, 1))
        self.hessian = self.hessian + ops.outer(step, step) * rho


class _LimitedBfgs:
    """Directions by the last steps and changes of the gradient."""

    hessian = None

    def __init__(self, x, gradient, history_size):
        self.pairs = deque(maxlen=history_size)
        self.found = ops.neg(gradient)

    def direction(self, gradient):
        return self.found

    def learn(self, step, change, gradient) -> None:
        curvature = dot(change, step)
        if curvature <= CURVATURE:
            self.found = ops.neg(gradient)
            return
        self.pairs.append((step, change, 1.0 / curvature))
        q, factors = gradient, []
        for s, y, rho in reversed(self.pairs):
            factors.append(rho * dot(s, q))
            q = q - y * factors[-1]
        r = q * (curvature / dot(change, change))
        for (s, y, rho), factor in zip(self.pairs, reversed(factors)):
            r = r + s * (factor - rho * dot(y, r))
        self.found = ops.neg(r)


def _norm(x, order) -> float:
    return number(ops.max(ops.abs(x))[0]) if order == np.inf else dot(x, x) ** 0.5


def _descend(make, f, x, jac, maxiter=None, norm=np.inf, gtol=1e-5, line_search_maxiter=10):
    """Lines along the directions of a method until the gradient's norm is below `gtol`."""
    gradient_of = autodiff.grad(f) if jac is None else jac
    limit = x.size * 200 if maxiter is None else maxiter
    value, gradient = number(f(x)), gradient_of(x)
    before = value + _norm(gradient, 2) / 2
    method, calls, rounds, failure, converged = make(x, gradient), 1, 0, None, _norm(gradient, np.inf) < gtol
    while rounds < limit:
        direction = method.direction(gradient)
        found = searched(f, gradient_of, x, direction, value, gradient, before, limit=line_search_maxiter)
        calls += found.nfev
        if found.failed:
            failure = found.status
            break
        step = ops.mul(direction, found.a_k)
        change = found.g_k - gradient
        before, value, gradient, x = value, found.f_k, found.g_k, x + step
        converged = _norm(gradient, norm) < gtol
        if converged:
            break
        method.learn(step, change, gradient)
        rounds += 1
    status = 0 if converged else 1 if rounds == limit else 2 + failure
    return OptimizeResults(
        x=x, success=converged and failure is None, status=status, fun=value, jac=gradient,
        hess_inv=method.hessian, nfev=calls, njev=calls, nit=rounds,
    )  # fmt: skip


def _bfgs(f, x, jac, **options):
    return _descend(_Bfgs, f, x, jac, **options)


def _lbfgs(f, x, jac, history_size=20, **options):
    return _descend(lambda x, g: _LimitedBfgs(x, g, history_size), f, x, jac, **options)


def _bounded(lower, upper) -> Callable:
    """From a free variable to one within the bounds."""
    if lower is None and upper is None:
        return lambda x: x
    if lower is None:
        return lambda x: upper - x * x
    if upper is None:
        return lambda x: lower + x * x
    return lambda x: (upper - lower) * ops.sigmoid(x) + lower


def _lagrange(
    f, x0, constraints, tol=None, obj_weight=1.0, lower=None, upper=None, learning_rate=0.1,
    coincide_fun=None, rounds=10, steps=1000, log_sw=False,
):  # fmt: skip
    """Adam on the augmented Lagrangian; its multipliers and penalty change after each round."""
    inside = _bounded(lower, upper)
    parameter = Parameter(x0, name="x")
    optimizer = nn.Adam([parameter], learning_rate=learning_rate, use_locking=True)
    limits = np.ones(len(constraints), np.float32) if tol is None else np.asarray(tol, np.float32)
    penalty, bar, multipliers = 1.0, 1.0, [1.0] * len(constraints)

    def lagrangian():
        x = inside(parameter)
        shared = () if coincide_fun is None else (coincide_fun(x),)
        broken = [c(x, *shared) for c in constraints]
        objective = f(x, *shared)
        extra = sum(
            ops.square(ops.relu(m / penalty + c)) - (m / penalty) ** 2 for m, c in zip(multipliers, broken)
        )
        return obj_weight * objective + penalty / 2 * extra, objective, ops.stack(broken), x

    step = autodiff.value_and_grad(lagrangian, None, [parameter], has_aux=True)
    best, least, values, succeeded = x0.asnumpy(), None, np.ones(len(constraints), np.float32), False
    for turn in range(rounds):
        for i in range(steps):
            (loss, objective, broken, x), gradients = step()
            optimizer(gradients)
            here, now = number(objective), broken.asnumpy().reshape(-1)
            if log_sw:
                _log(turn, i, here, now, loss)
            if least is None:
                least = here
            if (now - limits).max() < 0 and here < least:
                best, least, values, succeeded = x.asnumpy(), here, now, True
        pressed = [max(float(c), -m / penalty) for c, m in zip(now, multipliers)]
        if sum(p * p for p in pressed) ** 0.5 <= bar:
            multipliers = [max(m + penalty * float(c), 0.0) for m, c in zip(multipliers, now)]
            bar = bar / penalty**0.9
        else:
            penalty *= 1.1
            bar = 1.0 / penalty**0.1
    return LagrangeResults(succeeded, best, np.float32(least), values)


def _log(turn, i, objective, broken, loss) -> None:
    from mycelia.engine.base import log

    log.info(
        f"round {turn}, step {i}: objective {objective:g}, constraints {broken.tolist()}, "
        f"loss {number(loss):g}"
    )


_SOLVERS = {"bfgs": _bfgs, "lbfgs": _lbfgs}


def minimize(
    func, x0, args=(), method=None, jac=None, hess=None, hessp=None, bounds=None, constraints=(), tol=None,
    callback=None, options=None,
):  # fmt: skip
    """A minimum of ``func(x, *args)`` near `x0`.

    `method` is "BFGS" or "LBFGS", or "LAGRANGE" for `constraints`, functions that shall not be positive,
    each within its tolerance of `tol`. `jac` is the gradient, by default the automatic one. `hess`, `hessp`,
    `bounds` and `callback` have no effect. `options`: maxiter, norm, gtol, line_search_maxiter, for LBFGS
    history_size; for LAGRANGE obj_weight, lower, upper, learning_rate, coincide_fun, rounds, steps, log_sw.
    Shapes: x0 [n].  Errors: ValueError without a known method, TypeError if `args` is no tuple.
    """
    options = options or {}
    if method is None:
        raise errors.value_error("minimize", "a method is needed: 'BFGS', 'LBFGS' or 'LAGRANGE'")
    if not isinstance(args, tuple):
        raise errors.type_error("minimize", f"args must be a tuple, but got {args!r}")
    name = method.lower()
    if name == "lagrange":
        _check_constraints(func, constraints, tol)
        return _lagrange(func, x0, constraints, tol, **options)
    if name not in _SOLVERS:
        raise errors.value_error(
            "minimize", f"method must be 'BFGS', 'LBFGS' or 'LAGRANGE', but got {method!r}"
        )
    return _SOLVERS[name](lambda x: func(x, *args), x0, jac, **options)


def _check_constraints(func, constraints, tol) -> None:
    for what in (func, *constraints):
        if not callable(what):
            raise errors.type_error("minimize", f"functions are needed, but got {type(what).__name__}")
    if tol is not None and len(tol) != len(constraints):
        raise errors.value_error("minimize", f"{len(tol)} tolerances for {len(constraints)} constraints")
