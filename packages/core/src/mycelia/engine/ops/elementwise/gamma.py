"""The gamma function, its logarithm, derivatives and incomplete forms, and the zeta function."""

import math

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import logarithms as _logarithms
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.elementwise.math import unary_samples
from mycelia.engine.ops.elementwise.special import _apply
from mycelia.engine.ops.infer import broadcast, same, unbroadcast


def _lgamma(x):
    if math.isinf(x):
        return math.inf
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


@op(elementwise="same", infer=same(), float_result=True, mindir="Lgamma", method=True, primitive=True)
def lgamma(input):
    """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ...

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return _apply(_lgamma, input)


@lgamma.vjp
def lgamma(ct, input):
    return _math.mul(ct, digamma(input))


_GAMMA_POINTS = np.array(
    [0.5, 1.0, 2.0, 3.5, -0.5, -1.5, 30.0, 1e5, -20.25, 0.0, -3.0, np.inf, np.nan], np.float32
)


@lgamma.samples
def lgamma(rand):
    yield from unary_samples(0.3, 5.0)(rand)
    yield _GAMMA_POINTS, dict(_grad=False)


def _digamma(x):
    """Reflection for negative arguments, recurrence up to 8, then the asymptotic series."""
    if x == 0:
        return math.copysign(math.inf, -x)
    if math.isinf(x):
        return math.inf if x > 0 else math.nan
    if x < 0:
        if x == math.floor(x):
            return math.nan
        return _digamma(1 - x) - math.pi / math.tan(math.pi * math.fmod(x, 1.0))
    shift = 0.0
    while x < 8:
        shift += 1 / x
        x += 1
    z = 1 / (x * x)
    series = z * (
        1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z * (1 / 132 - z * (691 / 32760 - z / 12)))))
    )
    return math.log(x) - 0.5 / x - series - shift


@op(elementwise="same", infer=same(), float_result=True, mindir="Digamma", method=True, primitive=True)
def digamma(input):
    """Derivative of lgamma; minus infinity at 0, NaN at the negative integers.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    Source: Abramowitz and Stegun 6.3.5, 6.3.7, 6.3.18.
    """
    return _apply(_digamma, input)


@digamma.vjp
def digamma(ct, input):
    return _math.mul(ct, _polygamma(input, order=1))


@digamma.samples
def digamma(rand):
    yield from unary_samples(0.3, 5.0)(rand)
    yield _GAMMA_POINTS, dict(_grad=False)


# B(2k) / (2k)! for the Euler-Maclaurin sum of zeta.
_BERNOULLI = [1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600]


def _zeta(s, q):
    """Hurwitz zeta, sum of (q + k)**-s, by ten terms and the Euler-Maclaurin formula."""
    if not s > 1 or math.isnan(q):
        return math.inf if s == 1 else math.nan
    if math.isinf(q):
        return 0.0 if q > 0 else math.nan
    if q <= 0 and q == math.floor(q):
        return math.inf
    if q < 0 and s != math.floor(s):
        return math.nan
    total = 0.0
    while q < 10:
        sign = 1 if q > 0 or s % 2 == 0 else -1
        try:
            total += math.copysign(abs(q) ** -s, sign)
        except OverflowError:
            return math.copysign(math.inf, sign)
        q += 1
    total += q ** (1 - s) / (s - 1) + 0.5 * q**-s
    rising, power = s, q ** (-s - 1)
    for k, b in enumerate(_BERNOULLI):
        total += b * rising * power
        rising *= (s + 2 * k + 1) * (s + 2 * k + 2)
        power /= q * q
    return total


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("input", "other"),
    float_result=True,
    nondiff=True,
    mindir="Zeta",
    primitive=True,
)
def zeta(input, other):
    """Hurwitz zeta function: sum over k >= 0 of ``(other + k) ** -input``; infinite at poles, NaN below 1.

    Shapes: broadcast.  dtypes: floating, promoted.
    """
    values = np.frompyfunc(_zeta, 2, 1)(input.astype(np.float64), other.astype(np.float64))
    return np.asarray(values, np.float64).astype(input.dtype)


@zeta.samples
def zeta(rand):
    yield rand(3, 4, low=1.5, high=6), rand.positive(3, 4)
    yield rand(3, 1, low=1.5, high=6), rand.positive(4)
    yield np.array([1.0, 0.5, 2.0, 2.0, 3.0], np.float32), np.array([2.0, 2.0, 0.0, -1.0, -0.5], np.float32)
    yield rand(0), rand(0)


def _polygamma_type(x, *, order):
    if order < 1:
        raise ValueError(f"order must be 1 or more, got {order}")
    return x


@op(elementwise="same", name="polygamma", infer=_polygamma_type, float_result=True)
def _polygamma(x, *, order: "int"):
    """Derivative of digamma of the given order, at least 1.

    Shapes: any -> same.  dtypes: floating.
    """
    scale = (-1) ** (order + 1) * (math.factorial(order) if order <= 170 else math.inf)
    return _apply(lambda v: scale * _zeta(order + 1, v), x)


@_polygamma.vjp
def _polygamma(ct, x, *, order):
    return _math.mul(ct, _polygamma(x, order=order + 1))


@_polygamma.samples
def _polygamma(rand):
    yield rand(2, 5, low=0.5, high=4), dict(order=1)
    yield rand(5, low=0.8, high=4), dict(order=2)
    yield rand(0), dict(order=1)


def polygamma(n, input):
    """Derivative of digamma of order `n`, a number or a tensor with one integer; order 0 is digamma itself.

    Shapes: any -> same.  dtypes: floating.  Errors: ValueError for a negative order.
    """
    order = int(n.asnumpy()) if hasattr(n, "asnumpy") else int(n)
    if order < 0:
        raise errors.value_error(f"polygamma: the order must not be negative, but is {order}")
    return digamma(input) if order == 0 else _polygamma(input, order=order)


def mvlgamma(input, p):
    """Multivariate log-gamma function of dimension `p`.

    Shapes: any -> same.  dtypes: floating, greater than (p - 1) / 2.  Errors: ValueError for p < 1.
    """
    if p < 1:
        raise errors.value_error(f"mvlgamma: p must be at least 1, but is {p}")
    total = lgamma(input)
    for j in range(1, p):
        total = _math.add(total, lgamma(_math.sub(input, 0.5 * j)))
    return _math.add(total, 0.25 * p * (p - 1) * math.log(math.pi))


def _igamma_parts(a, x):
    """Regularized lower and upper incomplete gamma: series below x = a + 1, continued fraction above."""
    if not (a >= 0 and x >= 0) or a == x == 0:
        return math.nan, math.nan
    if x == 0 or math.isinf(a):
        return 0.0, 1.0
    if a == 0 or math.isinf(x):
        return 1.0, 0.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while abs(term) > 1e-17 * abs(total):
            n += 1
            term *= x / n
            total += term
        return min(total * scale, 1.0), max(1 - total * scale, 0.0)
    tiny = 1e-300
    b = x + 1 - a
    c, d = 1 / tiny, 1 / b
    h = d
    for k in range(1, 10000):
        numerator = -k * (k - a)
        b += 2
        d = numerator * d + b or tiny
        c = b + numerator / c or tiny
        d = 1 / d
        h *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return max(1 - scale * h, 0.0), min(scale * h, 1.0)


def _igamma(pick, a, x):
    values = np.frompyfunc(lambda p, q: _igamma_parts(p, q)[pick], 2, 1)(
        a.astype(np.float64), x.astype(np.float64)
    )
    return np.asarray(values, np.float64).astype(a.dtype)


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("input", "other"),
    float_result=True,
    mindir="Igamma",
    method=True,
    primitive=True,
)
def igamma(input, other):
    """Regularized lower incomplete gamma function P(a = `input`, x = `other`); differentiable in `other`.

    Shapes: broadcast.  dtypes: floating, not negative.  Source: Abramowitz and Stegun 6.5.29, 6.5.31.
    """
    return _igamma(0, input, other)


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("input", "other"),
    float_result=True,
    mindir="Igammac",
    method=True,
    primitive=True,
)
def igammac(input, other):
    """Regularized upper incomplete gamma function Q(a = `input`, x = `other`); differentiable in `other`.

    Shapes: broadcast.  dtypes: floating, not negative.  Source: Abramowitz and Stegun 6.5.29, 6.5.31.
    """
    return _igamma(1, input, other)


def _igamma_slope(ct, a, x):
    """``ct * x**(a - 1) exp(-x) / gamma(a)``."""
    exponent = _math.sub(_math.sub(_logarithms.xlogy(_math.sub(a, 1.0), x), x), lgamma(a))
    return _math.mul(ct, _powers.exp(exponent))


@igamma.vjp
def igamma(ct, input, other, other_shape):
    return None, unbroadcast(_igamma_slope(ct, input, other), other_shape)


@igammac.vjp
def igammac(ct, input, other, other_shape):
    return None, unbroadcast(_math.neg(_igamma_slope(ct, input, other)), other_shape)


def _igamma_samples(rand):
    yield rand.positive(3, 4), rand.positive(3, 4), dict(_grad=False)
    yield rand(3, 1, low=0.5, high=20), rand(4, low=0.1, high=30), dict(_grad=False)
    special = np.array([0.0, 1.0, 2.0, np.inf, np.nan, -1.0], np.float32)
    yield special[:, None], special, dict(_grad=False)
    yield rand(0), rand(0), dict(_grad=False)


igamma.samples(_igamma_samples)
igammac.samples(_igamma_samples)


__all__ = ["digamma", "igamma", "igammac", "lgamma", "mvlgamma", "polygamma", "zeta"]
