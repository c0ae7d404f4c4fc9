"""Special functions: error function and its kin, gamma function and its kin, number theory, digits."""

import math

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.elementwise.math import unary_samples
from mycelia.engine.ops.infer import broadcast, same, unbroadcast

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _apply(function, x):
    """A scalar function of doubles over an array."""
    values = np.frompyfunc(function, 1, 1)(x.astype(np.float64))
    return np.asarray(values, np.float64).astype(x.dtype)


# ----------------------------------------------------------------------------------------- error function


@op(
    elementwise="same", infer=same(), float_result=True, mindir="Erf", method=True, fuse="erf", primitive=True
)
def erf(input):
    """Error function: ``2 / sqrt(pi) * integral of exp(-t**2) from 0 to input``.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return _apply(math.erf, input)


@erf.vjp
def erf(ct, input):
    return _math.mul(ct, _math.mul(_powers.exp(_math.neg(_math.square(input))), _TWO_OVER_ROOT_PI))


erf.samples(unary_samples())


@op(elementwise="same", infer=same(), float_result=True, mindir="Erfc", method=True, primitive=True)
def erfc(input):
    """Complement of the error function, ``1 - erf(input)``, accurate also where it is tiny.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return _apply(math.erfc, input)


@erfc.vjp
def erfc(ct, input):
    return _math.mul(ct, _math.mul(_powers.exp(_math.neg(_math.square(input))), -_TWO_OVER_ROOT_PI))


@erfc.samples
def erfc(rand):
    yield from unary_samples()(rand)
    yield rand(257, low=-10, high=9), dict(_grad=False)


def _erfinv(y):
    """Newton's method on erf or, for large arguments, on log(erfc), from an asymptotic start."""
    if not abs(y) < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    a = abs(y)
    if a < 0.7:
        x = a * math.sqrt(math.pi) / 2
        for _ in range(6):
            x -= (math.erf(x) - a) / (_TWO_OVER_ROOT_PI * math.exp(-x * x))
    else:
        tail = 1 - a
        x = math.sqrt(-math.log(tail * math.sqrt(math.pi) * max(1.0, math.sqrt(-math.log(tail)))))
        for _ in range(30):
            complement = math.erfc(x)
            step = complement / (_TWO_OVER_ROOT_PI * math.exp(-x * x)) * math.log(complement / tail)
            x += step
            if abs(step) < 1e-15 * x:
                break
    return math.copysign(x, y)


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Erfinv",
    method=True,
    precision="wide",
    primitive=True,
)
def erfinv(input):
    """Inverse of the error function; infinite at -1 and 1, NaN beyond.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return _apply(_erfinv, input)


@erfinv.vjp
def erfinv(ct, out):
    return _math.mul(ct, _math.mul(_powers.exp(_math.square(out)), 1 / _TWO_OVER_ROOT_PI))


@erfinv.samples
def erfinv(rand):
    yield from unary_samples(-0.95, 0.95)(rand)
    yield np.array([1 - 1e-7, -1 + 1e-6, 0.7, 0.999, 1e-20, 0.0, 1.5], np.float32), dict(_grad=False)


# ----------------------------------------------------------------------------------------- gamma function


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


# ------------------------------------------------------------------------------------------ Bessel, logit


@op(elementwise="same", infer=same(), float_result=True, method=True)
def i0(input):
    """Modified Bessel function of the first kind, order 0.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    """
    return np.i0(input.astype(np.float64)).reshape(input.shape).astype(input.dtype)


@i0.vjp
def i0(ct, input):
    return _math.mul(ct, i1(input))


i0.samples(unary_samples())


def _i1(x):
    """Power series, which has positive terms; asymptotic expansion where it would be long."""
    if not math.isfinite(x):
        return x
    a = abs(x)
    if a < 30:
        term = total = 0.5 * a
        k = 1
        while term > 1e-17 * total and total > 0:
            term *= (0.5 * a) ** 2 / (k * (k + 1))
            total += term
            k += 1
    elif a > 709:
        total = math.inf
    else:
        term = total = 1.0
        for k in range(1, 16):
            term *= -(4 - (2 * k - 1) ** 2) / (8 * k * a)
            total += term
        total *= math.exp(a) / math.sqrt(2 * math.pi * a)
    return math.copysign(total, x)


@op(elementwise="same", infer=same(), float_result=True)
def i1(input):
    """Modified Bessel function of the first kind, order 1.

    Shapes: any -> same.  dtypes: floating; integers give float32.
    Source: Abramowitz and Stegun 9.6.10, 9.7.1.
    """
    return _apply(_i1, input)


@i1.vjp
def i1(ct, input, out):
    return _math.mul(ct, _math.sub(i0(input), _powers.xdivy(out, input)))


i1.samples(unary_samples(0.3, 4.0))


def logit(input, eps=None):
    """``log(x / (1 - x))``; with `eps`, x is first limited to [eps, 1 - eps].

    Shapes: any -> same.  dtypes: floating.
    """
    x = input if eps is None else _clipping.clamp(input, eps, 1 - eps)
    return _powers.log(_math.true_div(x, _math.sub(1.0, x)))


# ------------------------------------------------------------------------------------------ whole numbers


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("input", "other"),
    nondiff=True,
    mindir="Gcd",
    method=True,
    primitive=True,
)
def gcd(input, other):
    """Greatest common divisor, not negative; gcd(0, 0) = 0.

    Shapes: broadcast.  dtypes: integer.
    """
    return np.gcd(input, other)


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("input", "other"),
    nondiff=True,
    mindir="Lcm",
    method=True,
    primitive=True,
)
def lcm(input, other):
    """Least common multiple, not negative; 0 if either is 0.

    Shapes: broadcast.  dtypes: integer.
    """
    return np.lcm(input, other)


def _divisor_samples(rand):
    yield rand.ints(-30, 30, (3, 4)), rand.ints(-30, 30, (3, 4))
    yield rand.ints(0, 30, (2, 1), dtype="int64"), rand.ints(0, 30, (3,), dtype="int64")
    yield np.array([0, 0, 5], np.int32), np.array([0, 7, 0], np.int32)
    yield rand.ints(0, 2, (0,)), rand.ints(0, 2, (0,))


gcd.samples(_divisor_samples)
lcm.samples(_divisor_samples)


@op(elementwise="same", infer=same(dtypes.uint8), nondiff=True, mindir="PopulationCount", primitive=True)
def population_count(input_x):
    """Number of bits that are set in each element.

    Shapes: any -> same.  dtypes: integer -> uint8.
    """
    width = input_x.dtype.itemsize
    octets = np.ascontiguousarray(input_x).reshape(-1).view(np.uint8).reshape(*input_x.shape, width)
    return np.unpackbits(octets, axis=-1).sum(-1).astype(np.uint8)


@population_count.samples
def population_count(rand):
    yield rand.ints(-100, 100, (3, 4))
    yield rand.ints(0, 255, (5,), dtype="uint8")
    yield rand.ints(0, 9, ())
    yield rand.ints(0, 2, (0,))


# ---------------------------------------------------------------------------------- incomplete gamma


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
    exponent = _math.sub(_math.sub(_powers.xlogy(_math.sub(a, 1.0), x), x), lgamma(a))
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


__all__ = [
    "digamma", "erf", "erfc", "erfinv", "gcd", "i0", "igamma", "igammac", "lcm", "lgamma", "logit",
    "mvlgamma", "polygamma", "population_count", "zeta",
]  # fmt: skip
