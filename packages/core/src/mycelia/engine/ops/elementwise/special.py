"""Special functions: error functions, gamma functions, number theory, digits."""

import math

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import logarithms as _logarithms
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.elementwise.math import unary_samples
from mycelia.engine.ops.infer import broadcast, same

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _apply(function, x):
    """A scalar function of doubles over an array."""
    values = np.frompyfunc(function, 1, 1)(x.astype(np.float64))
    return np.asarray(values, np.float64).astype(x.dtype)


@op(
    elementwise="same",
    infer=same(),
    float_result=True,
    mindir="Erf",
    onnx="Erf",
    method=True,
    fuse="erf",
    primitive=True,
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
    return _math.mul(ct, _math.sub(i0(input), _logarithms.xdivy(out, input)))


i1.samples(unary_samples(0.3, 4.0))


def logit(input, eps=None):
    """``log(x / (1 - x))``; with `eps`, x is first limited to [eps, 1 - eps].

    Shapes: any -> same.  dtypes: floating.
    """
    x = input if eps is None else _clipping.clamp(input, eps, 1 - eps)
    return _logarithms.log(_math.true_div(x, _math.sub(1.0, x)))


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


__all__ = ["erf", "erfc", "erfinv", "gcd", "i0", "lcm", "logit", "population_count"]
