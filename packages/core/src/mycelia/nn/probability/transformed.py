"""Distributions of a bijector's values: TransformedDistribution, Gumbel, LogNormal."""

from __future__ import annotations

import math

import numpy as np

from mycelia.engine import ops
from mycelia.engine.base import dtypes, errors
from mycelia.nn.probability.base import Distribution
from mycelia.nn.probability.bijector import Bijector, Exp, GumbelCDF, Invert
from mycelia.nn.probability.checks import require
from mycelia.nn.probability.continuous import Normal, Uniform

_TINY = float(np.finfo(np.float32).tiny)


class TransformedDistribution(Distribution):
    """The distribution of ``bijector.forward(x)`` for x from `distribution`.

    Its methods take the parameters of `distribution`.  The mean is known for linear bijectors; else asking
    for it raises ValueError.
    """

    def __init__(self, bijector, distribution, seed=None, name="transformed_distribution"):
        for label, value, kind in (
            ("bijector", bijector, Bijector),
            ("distribution", distribution, Distribution),
        ):
            if not isinstance(value, kind):
                raise errors.type_error(
                    type(self).__name__, f"{label} must be a {kind.__name__}, but got {value!r:.60}"
                )
        param = {"bijector": bijector, "distribution": distribution}
        super().__init__(seed, distribution.dtype, name, param)
        self._bijector, self._distribution = bijector, distribution
        shape = None
        if distribution.batch_shape is not None and bijector.batch_shape is not None:
            shape = np.broadcast_shapes(distribution.batch_shape, bijector.batch_shape)
        self.__dict__.update(
            _is_scalar_batch=distribution.is_scalar_batch and bijector.is_scalar_batch,
            _batch_shape=distribution.batch_shape,
            _broadcast_shape=shape,
            default_parameters=distribution.default_parameters,
            parameter_names=distribution.parameter_names,
            parameter_type=distribution.parameter_type,
        )

    bijector = property(lambda self: self._bijector, doc="The bijector.")
    distribution = property(lambda self: self._distribution, doc="The distribution below.")
    dtype = property(lambda self: self._distribution.dtype, doc="The dtype of values.")

    @property
    def is_linear_transformation(self) -> bool:
        """Whether the bijector is linear."""
        return self._bijector.is_constant_jacobian

    def _log_prob(self, value, *args, **kwargs):
        below = self.distribution("log_prob", self.bijector("inverse", value), *args, **kwargs)
        return below + self.bijector("inverse_log_jacobian", value)

    def _cdf(self, value, *args, **kwargs):
        return self.distribution("cdf", self.bijector("inverse", value), *args, **kwargs)

    def _mean(self, *args, **kwargs):
        if not self.is_linear_transformation:
            raise errors.value_error(
                type(self).__name__, "the mean is only known for a linear transformation"
            )
        return self.bijector("forward", self.distribution("mean", *args, **kwargs))

    def _sample(self, *args, **kwargs):
        return self.bijector("forward", self.distribution("sample", *args, **kwargs))

    def get_dist_args(self, *args, **kwargs):
        if not self._names:
            raise self._missing("get_dist_args")
        return super().get_dist_args(*args, **kwargs)


Bijector._transformed = TransformedDistribution


class LogNormal(TransformedDistribution):
    """The distribution of ``exp(x)`` for normal x; its parameters are those of x."""

    _names = ("loc", "scale")

    def __init__(self, loc=None, scale=None, seed=0, dtype=dtypes.float32, name="LogNormal"):
        super().__init__(Exp(), Normal(loc, scale, dtype=dtype), seed, name)
        self.__dict__["parameter_names"] = ["loc", "scale"]

    loc = property(lambda self: self.default_parameters[0], doc="The mean of the logarithm.")
    scale = property(lambda self: self.default_parameters[1], doc="The deviation of the logarithm.")

    def _mean(self, loc, scale):
        return ops.exp(loc + 0.5 * ops.square(scale))

    def _mode(self, loc, scale):
        return ops.exp(loc - ops.square(scale))

    def _var(self, loc, scale):
        square = ops.square(scale)
        return ops.expm1(square) * ops.exp(2.0 * loc + square)

    def _entropy(self, loc, scale):
        return loc + 0.5 + ops.log(scale) + 0.5 * math.log(2 * math.pi)

    def _log_prob(self, value, loc, scale):
        inner = ops.log(value)
        return self.distribution._log_prob(inner, loc, scale) - inner

    def _cdf(self, value, loc, scale):
        found = self.distribution._cdf(ops.log(value), loc, scale)
        return ops.where(value > 0, found, 0.0)

    def _kl_loss(self, loc_b, scale_b, loc, scale):
        return self.distribution._kl_loss(loc_b, scale_b, loc, scale)

    def _sample(self, shape, loc, scale):
        return ops.exp(self.distribution._sample(shape, loc, scale))


class Gumbel(TransformedDistribution):
    """The distribution of the largest of many values; parameters come when it is made only."""

    _names = ("loc", "scale")

    def __init__(self, loc, scale, seed=0, dtype=dtypes.float32, name="Gumbel"):
        if not getattr(dtype, "is_floating", False):
            raise errors.type_error("Gumbel", f"dtype must be floating, but got {dtype}")
        cdf = GumbelCDF(_floats(loc, dtype), _floats(scale, dtype))
        super().__init__(Invert(cdf), Uniform(0.0, 1.0, dtype=dtype), seed, name)
        own = [ops.cast(cdf.loc, dtype), ops.cast(cdf.scale, dtype)]
        require("Gumbel", "scale", own[1], lambda v: v > 0, "positive")
        shape = np.broadcast_shapes(own[0].shape, own[1].shape)
        self.__dict__.update(
            default_parameters=own,
            parameter_names=["loc", "scale"],
            parameter_type=dtype,
            _batch_shape=shape,
            _broadcast_shape=shape,
            _is_scalar_batch=isinstance(loc, (int, float)) and isinstance(scale, (int, float)),
        )

    loc = property(lambda self: self.default_parameters[0], doc="The place.")
    scale = property(lambda self: self.default_parameters[1], doc="The spread.")

    def _mean(self, loc, scale):
        return loc + scale * np.euler_gamma

    def _mode(self, loc, scale):
        return loc

    def _sd(self, loc, scale):
        return scale * (math.pi / math.sqrt(6.0))

    def _entropy(self, loc, scale):
        return 1.0 + ops.log(scale) + np.euler_gamma

    def _log_prob(self, value, loc, scale):
        z = (value - loc) / scale
        return -(z + ops.exp(-z)) - ops.log(scale)

    def _cdf(self, value, loc, scale):
        return ops.exp(-ops.exp((loc - value) / scale))

    def _kl_loss(self, loc_b, scale_b, loc, scale):
        first = ops.log(scale_b / scale) + np.euler_gamma * (scale / scale_b - 1.0)
        rest = ops.expm1((loc_b - loc) / scale_b + ops.lgamma(scale / scale_b + 1.0))
        return first + (loc - loc_b) / scale_b + rest

    def _sample(self, shape, loc, scale):
        uniform = self._uniform((*shape, *loc.shape), _TINY)
        return loc - scale * ops.log(-ops.log(uniform))


def _floats(value, dtype):
    """Arrays of float64 in the wanted dtype; numbers stay numbers."""
    return value if isinstance(value, (int, float)) else np.asarray(value, dtype.np)
