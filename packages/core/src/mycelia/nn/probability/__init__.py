"""Distributions and bijectors."""

from mycelia.nn.probability import bijector, distribution

__all__ = ["bijector", "distribution"]
