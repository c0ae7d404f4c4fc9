"""The incomplete beta function."""

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import logarithms as _logarithms
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.elementwise.gamma import _lgamma, lgamma
from mycelia.engine.ops.elementwise.special import _apply

__all__: list[str] = []


def _np_fraction(a, b, x):
    """Continued fraction of Didonato and Morris 1992 by the modified method of Lentz; for x < a / (a + b)."""
    tiny = 1e-300
    c, d = np.ones_like(x), 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / np.where(np.abs(d) < tiny, tiny, d)
    value = d.copy()
    for m in range(1, 200):
        change = 1.0
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            d = 1.0 / np.where(np.abs(d) < tiny, tiny, d)
            c = 1.0 + numerator / c
            c = np.where(np.abs(c) < tiny, tiny, c)
            change = c * d
            value = value * change
        if np.all(np.abs(change - 1.0) < 1e-15):
            break
    return value


def _log_gamma(x):
    return _apply(_lgamma, x)


def _np_betainc(a, b, x):
    a, b, x = (np.asarray(v, np.float64) for v in (a, b, x))
    with np.errstate(all="ignore"):
        swapped = x > (a + 1.0) / (a + b + 2.0)  # the fraction of the complement converges there
        p, q = np.where(swapped, b, a), np.where(swapped, a, b)
        y = np.where(swapped, 1.0 - x, x)
        log_front = p * np.log(y) + q * np.log1p(-y) + _log_gamma(p + q) - _log_gamma(p) - _log_gamma(q)
        part = np.exp(log_front) / p * _np_fraction(p, q, np.where((y > 0) & (y < 1), y, 0.5))
    value = np.where(swapped, 1.0 - part, part)
    value = np.where(x <= 0, 0.0, np.where(x >= 1, 1.0, value))
    return np.where((a > 0) & (b > 0) & (x >= 0) & (x <= 1), value, np.nan)


def _one_shape(a, b, x):
    for name, other in (("a", a), ("b", b), ("x", x)):
        if other.dtype not in (dtypes.float32, dtypes.float64) or other.dtype is not a.dtype:
            raise TypeError(f"a, b and x must all be float32 or all float64, but {name} is {other.dtype}")
        if other.shape != a.shape:
            raise ValueError(f"a, b and x must have one shape, but {name} has {other.shape} and a {a.shape}")
    return TensorType(x.dtype, x.shape)


@op(infer=_one_shape, mindir="Betainc", batch=_batch.leading)
def betainc(a, b, x):
    """Regularized incomplete beta function: the part of B(a, b) that lies below x.

    Shapes: one for all.  dtypes: float32, float64.  Source: Abramowitz and Stegun 26.5.
    """
    return _np_betainc(a, b, x).astype(x.dtype)


@betainc.vjp
def betainc(ct, a, b, x):
    log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
    slope = _powers.exp((a - 1.0) * _logarithms.log(x) + (b - 1.0) * _logarithms.log1p(-x) - log_beta)
    return None, None, ct * slope


@betainc.samples
def betainc(rand):
    a, b = np.array([0.3, 2.0, 7.5], np.float32), np.array([0.4, 5.0, 0.9], np.float32)
    yield a, b, np.array([0.2, 0.6, 0.5], np.float32), dict(_grad=False)
    yield a[:2], b[:2], np.array([0.0, 1.0], np.float32), dict(_grad=False)
