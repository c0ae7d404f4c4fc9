"""Discrete distributions."""

from __future__ import annotations

import math

import numpy as np

from mycelia.engine import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.tensors.tensor import Parameter
from mycelia.nn.probability.base import Distribution
from mycelia.nn.probability.checks import require

_EPS = float(np.finfo(np.float32).eps)


def _xlogy(x, y):
    return x * ops.log(y)


class _Probable(Distribution):
    """One parameter: the probability of 1, inside (0, 1)."""

    _names = ("probs",)
    _call_names = ("probs1",)
    _integers = True

    def __init__(self, probs, seed, dtype, name):
        super().__init__(seed, dtype, name, {"probs": probs, "param_dict": {"probs": probs}})
        (value,) = self._set_parameters({"probs": probs})
        require(type(self).__name__, "probs", value, lambda p: (p > 0) & (p < 1), "between 0 and 1")

    probs = property(lambda self: self._probs_value, doc="The probability of 1.")


class Bernoulli(_Probable):
    """1 with probability `probs`, else 0."""

    def __init__(self, probs=None, seed=None, dtype=dtypes.int32, name="Bernoulli"):
        super().__init__(probs, seed, dtype, name)

    def _mean(self, p):
        return p

    def _mode(self, p):
        return (p > 0.5).astype(self.dtype)

    def _var(self, p):
        return p * (1.0 - p)

    def _entropy(self, p):
        return -_xlogy(1.0 - p, 1.0 - p) - _xlogy(p, p)

    def _log_prob(self, value, p):
        p = ops.clip(p, _EPS, 1.0 - _EPS)
        return ops.log(p) * value + ops.log(1.0 - p) * (1.0 - value)

    def _cdf(self, value, p):
        value = ops.floor(value)
        return ops.where(value < 0, 0.0, ops.where(value < 1, 1.0 - p, 1.0))

    def _kl_loss(self, p_b, p):
        return _xlogy(p, p / p_b) + _xlogy(1.0 - p, (1.0 - p) / (1.0 - p_b))

    def _sample(self, shape, p):
        return self._uniform((*shape, *p.shape)) < p


class Geometric(_Probable):
    """The number of failures before the first success."""

    def __init__(self, probs=None, seed=None, dtype=dtypes.int32, name="Geometric"):
        super().__init__(probs, seed, dtype, name)

    def _mean(self, p):
        return (1.0 - p) / p

    def _mode(self, p):
        return ops.zeros(p.shape, self.dtype)

    def _var(self, p):
        return (1.0 - p) / ops.square(p)

    def _entropy(self, p):
        return (-_xlogy(1.0 - p, 1.0 - p) - _xlogy(p, p)) / p

    def _prob(self, value, p):
        value = ops.floor(value)
        return ops.where(value < 0, 0.0, ops.exp(ops.log(1.0 - p) * value + ops.log(p)))

    def _cdf(self, value, p):
        value = ops.floor(value)
        return ops.where(value < 0, 0.0, 1.0 - ops.pow(1.0 - p, value + 1.0))

    def _kl_loss(self, p_b, p):
        return ops.log(p / p_b) + (1.0 - p) / p * ops.log((1.0 - p) / (1.0 - p_b))

    def _sample(self, shape, p):
        uniform = self._uniform((*shape, *p.shape), float(np.finfo(np.float32).tiny))
        return ops.floor(ops.log(uniform) / ops.log(1.0 - p))


class Categorical(Distribution):
    """A class by its number: `probs` [..., classes], each positive, with the sum 1."""

    _names = ("probs",)
    _integers = True

    def __init__(self, probs=None, seed=None, dtype=dtypes.int32, name="Categorical"):
        super().__init__(seed, dtype, name, {"probs": probs, "param_dict": {"probs": probs}})
        (value,) = self._set_parameters({"probs": probs})
        if value is None:
            return
        if value.ndim == 0:
            raise errors.value_error("Categorical", "probs must have a rank of at least 1")
        require("Categorical", "probs", value, lambda p: (p > 0) & (p < 1), "between 0 and 1")
        if not isinstance(probs, Parameter):
            total = np.sum(np.asarray(value.asnumpy()), -1)
            if not np.allclose(total, 1.0, rtol=10 * _EPS, atol=_EPS):
                raise errors.value_error("Categorical", "the probs of all classes must sum to 1")
        if value.ndim == 1:
            self.__dict__["_is_scalar_batch"] = True
        self.__dict__["_broadcast_shape"] = value.shape[:-1]

    probs = property(lambda self: self._probs_value, doc="The probabilities.")

    def _numbers(self, p):
        return ops.arange(0, p.shape[-1]).astype(p.dtype)

    def _mean(self, p):
        return (self._numbers(p) * p).sum(-1, keepdims=True)

    def _mode(self, p):
        return ops.argmax(p, -1).astype(self.dtype)

    def _var(self, p):
        numbers = self._numbers(p)
        squares = (ops.square(numbers) * p).sum(-1, keepdims=True)
        return squares - ops.square((numbers * p).sum(-1, keepdims=True))

    def _entropy(self, p):
        return -_xlogy(p, p).sum(-1, keepdims=True).squeeze()

    def _kl_loss(self, p_b, p):
        a, b = ops.log_softmax(ops.log(p), -1), ops.log_softmax(ops.log(p_b), -1)
        return (ops.exp(a) * (a - b)).sum(-1, keepdims=True).squeeze()

    def _picked(self, table, value):
        """Rows of `table` at the numbers of `value`, and where these are below or above all classes."""
        value = ops.where(ops.logical_and(value < 0, value > -1), 0.0, ops.floor(value))
        shape = np.broadcast_shapes(value.shape, table.shape[:-1])
        classes = table.shape[-1]
        index = ops.clip(value, 0.0, classes - 1.0).astype(dtypes.int32)
        rows = ops.broadcast_to(table, (*shape, classes))
        index = ops.broadcast_to(index, shape).expand_dims(-1)
        picked = ops.gather_elements(rows, len(shape), index).squeeze(-1)
        return picked, value < 0, value > classes - 1

    def _log_prob(self, value, p):
        picked, below, above = self._picked(ops.log(p), value)
        return ops.where(ops.logical_or(below, above), math.nan, picked)

    def _cdf(self, value, p):
        picked, below, _ = self._picked(ops.cumsum(p, -1), value)
        return ops.where(below, 0.0, picked)

    def _sample(self, shape, p):
        uniform = self._uniform((*shape, *p.shape[:-1], 1))
        number = (uniform > ops.cumsum(p, -1)).astype(dtypes.int32).sum(-1)
        return ops.minimum(number, p.shape[-1] - 1)


class Poisson(Distribution):
    """The number of events with `rate`."""

    _names = ("rate",)
    _integers = True

    def __init__(self, rate=None, seed=None, dtype=dtypes.float32, name="Poisson"):
        super().__init__(seed, dtype, name, {"rate": rate, "param_dict": {"rate": rate}})
        (value,) = self._set_parameters({"rate": rate})
        require("Poisson", "rate", value, lambda v: v > 0, "positive")

    rate = property(lambda self: self._rate_value, doc="The rate.")

    def _mean(self, rate):
        return rate

    _var = _mean

    def _mode(self, rate):
        return ops.floor(rate)

    def _log_prob(self, value, rate):
        safe = ops.maximum(value, 0.0)
        found = ops.log(rate) * safe - ops.lgamma(safe + 1.0)
        return ops.where(value < 0, -math.inf, found) - rate

    def _cdf(self, value, rate):
        safe = ops.maximum(value, 0.0)
        return ops.where(value < 0, 0.0, 1.0 - ops.igamma(1.0 + safe, rate))

    def _sample(self, shape, rate):
        # Knuth's way would loop; the sum of exponential waits does the same in one pass.
        most = int(float(rate.max()) + 10 * math.sqrt(float(rate.max())) + 20)
        waits = -ops.log(self._uniform((*shape, *rate.shape, most), float(np.finfo(np.float32).tiny)))
        arrivals = ops.cumsum(waits, -1)
        return (arrivals < rate.expand_dims(-1)).astype(dtypes.int32).sum(-1)
