"""Continuous distributions."""

from __future__ import annotations

import math

import numpy as np

from mycelia.engine import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.probability.base import Distribution
from mycelia.nn.probability.checks import require

_TINY = float(np.finfo(np.float32).tiny)  # keeps log() of a uniform number finite


def _param(**values) -> dict:
    return {**values, "param_dict": values}


def _shape(*values) -> tuple:
    return np.broadcast_shapes(*(v.shape for v in values))


def _lbeta(a, b):
    return ops.lgamma(a) + ops.lgamma(b) - ops.lgamma(a + b)


def _softplus(x):
    return ops.maximum(x, 0.0) + ops.log1p(ops.exp(-ops.abs(x)))


class _Located(Distribution):
    """Two parameters, the second positive."""

    def __init__(self, first, second, seed, dtype, name):
        values = dict(zip(self._names, (first, second)))
        super().__init__(seed, dtype, name, _param(**values))
        self._set_parameters(values)
        require(type(self).__name__, self._names[1], self.default_parameters[1], lambda v: v > 0, "positive")


class Normal(_Located):
    """Normal distribution with `mean` and standard deviation `sd`."""

    _names = ("mean", "sd")
    _shown_names = ("mean", "standard deviation")

    def __init__(self, mean=None, sd=None, seed=None, dtype=dtypes.float32, name="Normal"):
        super().__init__(mean, sd, seed, dtype, name)

    def _mean(self, mean, sd):
        return mean

    _mode = _mean

    def _sd(self, mean, sd):
        return sd

    def _entropy(self, mean, sd):
        return 0.5 * math.log(2 * math.pi * math.e) + ops.log(sd)

    def _log_prob(self, value, mean, sd):
        return -0.5 * ops.square((value - mean) / sd) - 0.5 * math.log(2 * math.pi) - ops.log(sd)

    def _cdf(self, value, mean, sd):
        return 0.5 * (1.0 + ops.erf((value - mean) / (sd * math.sqrt(2.0))))

    def _kl_loss(self, mean_b, sd_b, mean, sd):
        ratio = ops.log(sd) - ops.log(sd_b)
        return 0.5 * ops.square(mean / sd_b - mean_b / sd_b) + 0.5 * ops.expm1(2 * ratio) - ratio

    def _sample(self, shape, mean, sd):
        return ops.normal((*shape, *mean.shape) or (1,), mean, sd, self.seed).reshape((*shape, *mean.shape))


class Uniform(Distribution):
    """Uniform distribution between `low` and `high`."""

    _names = ("low", "high")

    def __init__(self, low=None, high=None, seed=None, dtype=dtypes.float32, name="Uniform"):
        super().__init__(seed, dtype, name, _param(low=low, high=high))
        low, high = self._set_parameters({"low": low, "high": high})
        if low is not None and high is not None and not (low.asnumpy() < high.asnumpy()).all():
            raise errors.value_error("Uniform", "low must be less than high")

    low = property(lambda self: self._low_value, doc="The lower end.")
    high = property(lambda self: self._high_value, doc="The upper end.")

    def _mean(self, low, high):
        return (low + high) / 2.0

    def _var(self, low, high):
        return ops.square(high - low) / 12.0

    def _entropy(self, low, high):
        return ops.log(high - low)

    def _prob(self, value, low, high):
        inside = ops.logical_and(value >= low, value <= high)
        return ops.where(inside, 1.0 / (high - low), 0.0)

    def _cdf(self, value, low, high):
        part = (value - low) / (high - low)
        return ops.where(value < low, 0.0, ops.where(value < high, part, 1.0))

    def _kl_loss(self, low_b, high_b, low, high):
        inside = ops.logical_and(low_b <= low, high <= high_b)
        return ops.where(inside, ops.log(high_b - low_b) - ops.log(high - low), math.inf)

    def _sample(self, shape, low, high):
        return (high - low) * self._uniform((*shape, *low.shape)) + low


class Exponential(Distribution):
    """Exponential distribution with `rate`."""

    _names = ("rate",)

    def __init__(self, rate=None, seed=None, dtype=dtypes.float32, name="Exponential"):
        super().__init__(seed, dtype, name, _param(rate=rate))
        (rate,) = self._set_parameters({"rate": rate})
        require("Exponential", "rate", rate, lambda v: v > 0, "positive")

    rate = property(lambda self: self._rate_value, doc="The rate.")

    def _mean(self, rate):
        return 1.0 / rate

    _sd = _mean

    def _mode(self, rate):
        return ops.zeros(rate.shape, self.dtype)

    def _entropy(self, rate):
        return 1.0 - ops.log(rate)

    def _log_prob(self, value, rate):
        return ops.where(value < 0, -math.inf, ops.log(rate) - rate * value)

    def _cdf(self, value, rate):
        return ops.where(value < 0, 0.0, 1.0 - ops.exp(-rate * value))

    def _log_survival(self, value, rate):
        return ops.where(value < 0, 0.0, -rate * value)

    def _kl_loss(self, rate_b, rate):
        return ops.log(rate) - ops.log(rate_b) + rate_b / rate - 1.0

    def _sample(self, shape, rate):
        return -ops.log(self._uniform((*shape, *rate.shape), _TINY)) / rate


class _LocScale(_Located):
    _names = ("loc", "scale")

    loc = property(lambda self: self._loc_value, doc="The place.")
    scale = property(lambda self: self._scale_value, doc="The spread.")


class Cauchy(_LocScale):
    """Cauchy distribution; it has no mean and no variance: asking for them raises ValueError."""

    _shown_names = ("location", "scale")

    def __init__(self, loc=None, scale=None, seed=None, dtype=dtypes.float32, name="Cauchy"):
        super().__init__(loc, scale, seed, dtype, name)

    def mean(self, *args, **kwargs):
        raise errors.value_error("Cauchy", "the mean is not defined")

    def sd(self, *args, **kwargs):
        raise errors.value_error("Cauchy", "the standard deviation is not defined")

    def var(self, *args, **kwargs):
        raise errors.value_error("Cauchy", "the variance is not defined")

    def _mode(self, loc, scale):
        return loc

    def _entropy(self, loc, scale):
        return ops.log(scale) + math.log(4 * math.pi)

    def _log_prob(self, value, loc, scale):
        return -ops.log1p(ops.square((value - loc) / scale)) - ops.log(math.pi * scale)

    def _cdf(self, value, loc, scale):
        return ops.atan((value - loc) / scale) / math.pi + 0.5

    def _log_cdf(self, value, loc, scale):
        return ops.log1p(2.0 * ops.atan((value - loc) / scale) / math.pi) - math.log(2.0)

    def _kl_loss(self, loc_b, scale_b, loc, scale):
        both = ops.square(scale + scale_b) + ops.square(loc - loc_b)
        return ops.log(both) - math.log(4.0) - ops.log(scale) - ops.log(scale_b)

    def _sample(self, shape, loc, scale):
        uniform = self._uniform((*shape, *loc.shape))
        return loc + scale * ops.tan(math.pi * (uniform - 0.5))


class Logistic(_LocScale):
    """Logistic distribution."""

    _shown_names = ("location", "scale")

    def __init__(self, loc=None, scale=None, seed=None, dtype=dtypes.float32, name="Logistic"):
        super().__init__(loc, scale, seed, dtype, name)

    def _mean(self, loc, scale):
        return loc

    _mode = _mean

    def _sd(self, loc, scale):
        return scale * (math.pi / math.sqrt(3.0))

    def _entropy(self, loc, scale):
        return ops.log(scale) + 2.0

    def _log_prob(self, value, loc, scale):
        z = (value - loc) / scale
        return -z - 2.0 * _softplus(-z) - ops.log(scale)

    def _cdf(self, value, loc, scale):
        return ops.sigmoid((value - loc) / scale)

    def _log_cdf(self, value, loc, scale):
        return -_softplus((loc - value) / scale)

    def _survival_function(self, value, loc, scale):
        return ops.sigmoid((loc - value) / scale)

    def _log_survival(self, value, loc, scale):
        return -_softplus((value - loc) / scale)

    def _sample(self, shape, loc, scale):
        uniform = self._uniform((*shape, *loc.shape), _TINY)
        return (ops.log(uniform) - ops.log1p(-uniform)) * scale + loc


class HalfNormal(_Located):
    """Normal distribution folded at its mean: density at values of at least 0."""

    _names = ("mean", "sd")

    def __init__(self, mean=None, sd=None, seed=None, dtype=dtypes.float32, name="HalfNormal"):
        super().__init__(mean, sd, seed, dtype, name)

    def extend_repr(self) -> str:
        return ""

    def _prob(self, value, mean, sd):
        density = math.sqrt(2 / math.pi) / sd * ops.exp(-0.5 * ops.square((value - mean) / sd))
        return density * (value >= 0).astype(density.dtype)


class Laplace(_Located):
    """Laplace distribution."""

    _names = ("mean", "sd")

    def __init__(self, mean=None, sd=None, seed=None, dtype=dtypes.float32, name="Laplace"):
        super().__init__(mean, sd, seed, dtype, name)

    def extend_repr(self) -> str:
        return ""

    def _log_prob(self, value, mean, sd):
        return -ops.abs((value - mean) / sd) - ops.log(2.0 * sd)


class StudentT(Distribution):
    """Student's distribution with `df` degrees of freedom."""

    _names = ("df", "mean", "sd")

    def __init__(self, df=None, mean=None, sd=None, seed=None, dtype=dtypes.float32, name="StudentT"):
        values = {"df": df, "mean": mean, "sd": sd}
        super().__init__(seed, dtype, name, _param(**values))
        df, _, sd = self._set_parameters(values)
        require("StudentT", "sd", sd, lambda v: v > 0, "positive")
        require("StudentT", "df", df, lambda v: v > 0, "positive")

    def extend_repr(self) -> str:
        return ""

    def _log_prob(self, value, df, mean, sd):
        y = (value - mean) / sd
        scale = ops.log(ops.abs(sd)) + 0.5 * ops.log(df) + 0.5 * math.log(math.pi)
        scale = scale + ops.lgamma(0.5 * df) - ops.lgamma(0.5 * (df + 1.0))
        return -0.5 * (df + 1.0) * ops.log1p(ops.square(y) / df) - scale


def _refuse_numbers(owner, **given):
    """TypeError for parameters that are single numbers: lists, arrays and Tensors are taken."""
    for name, value in given.items():
        if isinstance(value, (int, float)):
            raise errors.type_error(owner, f"{name} can't be scalar, but got {value!r}")


class Beta(_Located):
    """Beta distribution; samples come from two gamma distributions."""

    _names = ("concentration1", "concentration0")

    def __init__(
        self, concentration1=None, concentration0=None, seed=None, dtype=dtypes.float32, name="Beta"
    ):
        _refuse_numbers("Beta", concentration1=concentration1, concentration0=concentration0)
        super().__init__(concentration1, concentration0, seed, dtype, name)
        require("Beta", "concentration1", self._concentration1_value, lambda v: v > 0, "positive")

    concentration1 = property(lambda self: self._concentration1_value, doc="The weight of 1.")
    concentration0 = property(lambda self: self._concentration0_value, doc="The weight of 0.")

    def _mean(self, a, b):
        return a / (a + b)

    def _var(self, a, b):
        total = a + b
        return a * b / (ops.square(total) * (total + 1.0))

    def _mode(self, a, b):
        inside = ops.logical_and(a > 1, b > 1)
        return ops.where(inside, (a - 1.0) / (a + b - 2.0), math.nan)

    def _entropy(self, a, b):
        rest = (a + b - 2.0) * ops.digamma(a + b)
        return _lbeta(a, b) - (a - 1.0) * ops.digamma(a) - (b - 1.0) * ops.digamma(b) + rest

    def _log_prob(self, value, a, b):
        return (a - 1.0) * ops.log(value) + (b - 1.0) * ops.log1p(-value) - _lbeta(a, b)

    def _kl_loss(self, a_b, b_b, a, b):
        difference = _lbeta(a_b, b_b) - _lbeta(a, b)
        own = ops.digamma(a) * (a - a_b) + ops.digamma(b) * (b - b_b)
        return difference + own - ops.digamma(a + b) * (a + b - a_b - b_b)

    def _sample(self, shape, a, b):
        one, zero = (ops.gamma(shape or (1,), x, Tensor(1.0), self.seed or None) for x in (a, b))
        return (one / (one + zero)).reshape((*shape, *a.shape))


class Gamma(_Located):
    """Gamma distribution."""

    _names = ("concentration", "rate")

    def __init__(self, concentration=None, rate=None, seed=None, dtype=dtypes.float32, name="Gamma"):
        _refuse_numbers("Gamma", concentration=concentration, rate=rate)
        super().__init__(concentration, rate, seed, dtype, name)
        require("Gamma", "concentration", self._concentration_value, lambda v: v > 0, "positive")

    concentration = property(lambda self: self._concentration_value, doc="The shape parameter.")
    rate = property(lambda self: self._rate_value, doc="The rate.")

    def _mean(self, a, rate):
        return a / rate

    def _var(self, a, rate):
        return a / ops.square(rate)

    def _sd(self, a, rate):
        return ops.sqrt(a) / rate

    def _mode(self, a, rate):
        return ops.where(a > 1, (a - 1.0) / rate, math.nan)

    def _entropy(self, a, rate):
        return a - ops.log(rate) + ops.lgamma(a) + (1.0 - a) * ops.digamma(a)

    def _log_prob(self, value, a, rate):
        return (a - 1.0) * ops.log(value) - rate * value - ops.lgamma(a) + a * ops.log(rate)

    def _cdf(self, value, a, rate):
        return ops.igamma(a, rate * value)

    def _kl_loss(self, a_b, rate_b, a, rate):
        shapes = (a - a_b) * ops.digamma(a) + ops.lgamma(a_b) - ops.lgamma(a)
        return shapes + a_b * (ops.log(rate) - ops.log(rate_b)) + a * (rate_b / rate - 1.0)

    def _sample(self, shape, a, rate):
        drawn = ops.gamma(shape or (1,), a, Tensor(1.0), self.seed or None)
        return drawn.reshape((*shape, *a.shape)) / rate
