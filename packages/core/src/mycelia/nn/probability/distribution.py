"""Distributions, under MindSpore's path."""

from mycelia.nn.probability.base import Distribution
from mycelia.nn.probability.continuous import (
    Beta,
    Cauchy,
    Exponential,
    Gamma,
    HalfNormal,
    Laplace,
    Logistic,
    Normal,
    StudentT,
    Uniform,
)
from mycelia.nn.probability.discrete import Bernoulli, Categorical, Geometric, Poisson
from mycelia.nn.probability.transformed import Gumbel, LogNormal, TransformedDistribution

__all__ = [
    "Bernoulli", "Beta", "Categorical", "Cauchy", "Distribution", "Exponential", "Gamma", "Geometric",
    "Gumbel", "HalfNormal", "Laplace", "LogNormal", "Logistic", "Normal", "Poisson", "StudentT",
    "TransformedDistribution", "Uniform",
]  # fmt: skip
