"""Bessel functions of the first and second kind and modified ones, of orders 0 and 1, some scaled.

Each is evaluated in float64: by asymptotic expansions for large arguments, else by the trapezoid rule on
integrals of periodic or fast decaying functions, which converges faster than any power of the step; Y near 0
by its series. Source: DLMF 10.8, 10.9, 10.17, 10.32, 10.40.
"""

import numpy as np

from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.math import SPECIAL, unary_samples
from mycelia.engine.ops.infer import same

_SMALL, _LARGE = 2.0, 30.0  # asymptotic expansions have an error below 1e-16 from 30 on
_EULER = 0.57721566490153286
_ANGLES = (np.arange(64) + 0.5) * (np.pi / 64)  # enough nodes for cos(30 sin t)


def _by_range(x, *ranges):
    """Values of the functions in `ranges`, (upper bound, function), each on its part of the float64 `x`."""
    flat = x.astype(np.float64).reshape(-1)
    out = np.full(flat.shape, np.nan)
    low = 0.0
    for high, function in ranges:
        inside = (flat >= low) & (flat < high)
        if inside.any():
            out[inside] = function(flat[inside])
        low = high
    return out.reshape(x.shape)


def _hankel(order, x):
    """The slowly varying sums P and Q of DLMF 10.17.3."""
    mu = 4.0 * order * order
    p, q, term = np.ones_like(x), np.zeros_like(x), np.ones_like(x)
    for k in range(1, 24):
        term = term * (mu - (2 * k - 1) ** 2) / (8 * k * x)
        if k % 2:
            q += term if k % 4 == 1 else -term
        else:
            p += term if k % 4 == 0 else -term
    return p, q


def _j_asymptotic(order, x):
    p, q = _hankel(order, x)
    turn = x - (order / 2 + 0.25) * np.pi
    return np.sqrt(2 / (np.pi * x)) * (p * np.cos(turn) - q * np.sin(turn))


def _y_asymptotic(order, x):
    p, q = _hankel(order, x)
    turn = x - (order / 2 + 0.25) * np.pi
    return np.sqrt(2 / (np.pi * x)) * (p * np.sin(turn) + q * np.cos(turn))


def _j_integral(order, x):
    """DLMF 10.9.2: the mean of ``cos(order t - x sin t)`` over half a turn."""
    return np.cos(order * _ANGLES - x[:, None] * np.sin(_ANGLES)).mean(-1)


def _bessel_j(order, x):
    size = np.abs(x)
    found = _by_range(
        size, (_LARGE, lambda v: _j_integral(order, v)), (np.inf, lambda v: _j_asymptotic(order, v))
    )
    found = np.where(np.isinf(size), 0.0, found)
    return found if order == 0 else np.where(x == 0, x, np.copysign(1.0, x) * found)


def _y_series(order, x):
    """DLMF 10.8.2 and 10.8.1, by terms of the power series."""
    q, log = (x / 2) ** 2, np.log(x / 2)
    if order == 0:
        total, term, harmonic = np.zeros_like(x), np.ones_like(x), 0.0
        for k in range(1, 20):
            term = -term * q / (k * k)
            harmonic += 1 / k
            total -= harmonic * term
        return 2 / np.pi * ((log + _EULER) * _j_integral(0, x) + total)
    total, term, low, high = np.zeros_like(x), x / 2, -_EULER, 1 - _EULER
    for k in range(20):
        total += term * (low + high)
        term = -term * q / ((k + 1) * (k + 2))
        low, high = low + 1 / (k + 1), high + 1 / (k + 2)
    return (2 * log * _j_integral(1, x) - 2 / x - total) / np.pi


_STEPS = (np.arange(400) + 0.5) * (1 / 400)


def _y_between(order, x):
    """DLMF 10.9.7: an oscillating and a decaying integral; Gauss-Legendre rules on both."""
    node, weight = np.polynomial.legendre.leggauss(80)
    t = (node + 1) * (np.pi / 2)
    first = np.sin(x[:, None] * np.sin(t) - order * t) @ weight / 2
    reach = 6.0  # exp(-2 sinh 6) vanishes
    s = (node + 1) * (reach / 2)
    growth = np.exp(order * s) + (-1) ** order * np.exp(-order * s)
    second = (growth * np.exp(-x[:, None] * np.sinh(s))) @ weight * (reach / 2) / np.pi
    return first - second


def _bessel_y(order, x):
    found = _by_range(
        x,
        (_SMALL, lambda v: _y_series(order, v)),
        (_LARGE, lambda v: _y_between(order, v)),
        (np.inf, lambda v: _y_asymptotic(order, v)),
    )
    return np.where(x <= 0, -np.inf, np.where(np.isposinf(x), 0.0, found))


def _i_scaled(order, x):
    """``exp(-|x|) I(|x|)``, by DLMF 10.32.3 or the asymptotic expansion 10.40.1."""

    def integral(v):
        return (np.exp(v[:, None] * (np.cos(_ANGLES) - 1)) * np.cos(order * _ANGLES)).mean(-1)

    def asymptotic(v):
        mu = 4.0 * order * order
        total, term = np.ones_like(v), np.ones_like(v)
        for k in range(1, 24):
            term = -term * (mu - (2 * k - 1) ** 2) / (8 * k * v)
            total += term
        return total / np.sqrt(2 * np.pi * v)

    size = np.abs(x)
    found = np.where(np.isinf(size), 0.0, _by_range(size, (_LARGE, integral), (np.inf, asymptotic)))
    return found if order == 0 else np.where(x == 0, x, np.copysign(1.0, x) * found)


def _k_scaled(order, x):
    """``exp(x) K(x)``: DLMF 10.32.9 by the trapezoid rule, whose integrand decays twice exponentially."""

    def integral(v):
        # The integrand is below 1e-20 where v (cosh t - 1) - order t > 50.
        reach = np.arccosh(1 + 60 / v)
        t = _STEPS * reach[:, None]
        values = np.exp(-v[:, None] * (np.cosh(t) - 1)) * np.cosh(order * t)
        return values.mean(-1) * reach

    found = _by_range(x, (np.inf, integral))
    return np.where(x <= 0, np.inf, np.where(np.isposinf(x), 0.0, found))


def _grown(scaled, order, x, sign):
    """The function itself from the scaled one; 0 and infinity where the exponential says so."""
    size = np.abs(x.astype(np.float64))
    found = scaled(order, x) * np.exp(sign * size)
    if sign < 0:
        return np.where(x <= 0, np.inf, np.where(np.isposinf(x), 0.0, found))
    return np.where(np.isinf(size), np.inf if order == 0 else np.copysign(np.inf, x), found)


def _block(name, body, text, mindir, low, high):
    def function(x):
        return body(x)

    function.__name__ = name
    function.__module__ = __name__
    function.__doc__ = f"""{text}

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    made = op(elementwise="same", infer=same(), float_result=True, mindir=mindir)(function)

    def samples(rand):
        yield from unary_samples(low, high)(rand)
        yield np.array([0.5, 1.9, 2.1, 7.0, 29.9, 30.1, 80.0, 1e4, -3.0], np.float32), dict(_grad=False)
        yield SPECIAL, dict(_grad=False)

    made.definition.samples(samples)
    return made


bessel_j0 = _block("bessel_j0", lambda x: _bessel_j(0, x), "Bessel function J0.", "BesselJ0", -5, 5)
bessel_j1 = _block("bessel_j1", lambda x: _bessel_j(1, x), "Bessel function J1.", "BesselJ1", 0.3, 5)
bessel_y0 = _block(
    "bessel_y0", lambda x: _bessel_y(0, x), "Bessel function Y0; minus infinity below 0.", "BesselY0", 0.3, 5
)
bessel_y1 = _block(
    "bessel_y1", lambda x: _bessel_y(1, x), "Bessel function Y1; minus infinity below 0.", "BesselY1", 0.3, 5
)
bessel_i0 = _block(
    "bessel_i0", lambda x: _grown(_i_scaled, 0, x, 1), "Modified Bessel function I0.", "BesselI0", -4, 4
)
bessel_i1 = _block(
    "bessel_i1", lambda x: _grown(_i_scaled, 1, x, 1), "Modified Bessel function I1.", "BesselI1", 0.3, 4
)
bessel_k0 = _block(
    "bessel_k0", lambda x: _grown(_k_scaled, 0, x, -1), "Modified Bessel function K0.", "BesselK0", 0.3, 5
)
bessel_k1 = _block(
    "bessel_k1", lambda x: _grown(_k_scaled, 1, x, -1), "Modified Bessel function K1.", "BesselK1", 0.3, 5
)
bessel_i0e = _block("bessel_i0e", lambda x: _i_scaled(0, x), "``exp(-|x|) * I0(x)``.", "BesselI0e", 0.3, 5)
bessel_i1e = _block("bessel_i1e", lambda x: _i_scaled(1, x), "``exp(-|x|) * I1(x)``.", "BesselI1e", 0.3, 5)
bessel_k0e = _block("bessel_k0e", lambda x: _k_scaled(0, x), "``exp(x) * K0(x)``.", "BesselK0e", 0.3, 5)
bessel_k1e = _block("bessel_k1e", lambda x: _k_scaled(1, x), "``exp(x) * K1(x)``.", "BesselK1e", 0.3, 5)


def _over(y, x):
    """``y / x``; at 0 the limit 1/2 of J1 and I1."""
    from mycelia.engine.ops.arrays.masks import where
    from mycelia.engine.ops.elementwise import comparison

    zero = comparison.equal(x, 0.0)
    return where(zero, 0.5, _math.true_div(y, where(zero, 1.0, x)))


def _rules():
    """The slopes, DLMF 10.6.2 and 10.29.2 and their scaled forms."""
    mul, sub, add, neg, div, sign = _math.mul, _math.sub, _math.add, _math.neg, _math.true_div, _math.sign
    slopes = {
        bessel_j0: lambda x, y: neg(bessel_j1(x)),
        bessel_j1: lambda x, y: sub(bessel_j0(x), _over(y, x)),
        bessel_y0: lambda x, y: neg(bessel_y1(x)),
        bessel_y1: lambda x, y: sub(bessel_y0(x), div(y, x)),
        bessel_i0: lambda x, y: bessel_i1(x),
        bessel_i1: lambda x, y: sub(bessel_i0(x), _over(y, x)),
        bessel_k0: lambda x, y: neg(bessel_k1(x)),
        bessel_k1: lambda x, y: neg(add(bessel_k0(x), div(y, x))),
        bessel_i0e: lambda x, y: sub(bessel_i1e(x), mul(sign(x), y)),
        bessel_i1e: lambda x, y: sub(bessel_i0e(x), add(_over(y, x), mul(sign(x), y))),
        bessel_k0e: lambda x, y: sub(y, bessel_k1e(x)),
        bessel_k1e: lambda x, y: sub(mul(y, sub(1.0, _math.reciprocal(x))), bessel_k0e(x)),
    }
    for function, slope in slopes.items():
        _set_rule(function, slope)


def _set_rule(function, slope):
    def rule(ct, x, out):
        return _math.mul(ct, slope(x, out))

    function.definition.vjp(rule)


_rules()

__all__ = [
    "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "bessel_j0", "bessel_j1", "bessel_k0",
    "bessel_k0e", "bessel_k1", "bessel_k1e", "bessel_y0", "bessel_y1",
]  # fmt: skip
