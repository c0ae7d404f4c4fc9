# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.ops.random.generator import Generator as Generator
from mycelia.ops.operations import (
    Bernoulli as Bernoulli, Cauchy as Cauchy, ComputeAccidentalHits as ComputeAccidentalHits,
    Gamma as Gamma, LogNormalReverse as LogNormalReverse,
    LogUniformCandidateSampler as LogUniformCandidateSampler, Multinomial as Multinomial,
    MultinomialWithReplacement as MultinomialWithReplacement, NonDeterministicInts as NonDeterministicInts,
    ParameterizedTruncatedNormal as ParameterizedTruncatedNormal, Poisson as Poisson,
    RandomCategorical as RandomCategorical, RandomChoiceWithMask as RandomChoiceWithMask,
    RandomGamma as RandomGamma, RandomPoisson as RandomPoisson, RandomShuffle as RandomShuffle,
    Randperm as Randperm, RandpermV2 as RandpermV2, StandardLaplace as StandardLaplace,
    StandardNormal as StandardNormal, TruncatedNormal as TruncatedNormal, Uniform as Uniform,
    UniformCandidateSampler as UniformCandidateSampler, UniformInt as UniformInt,
    UniformReal as UniformReal,
)
from mycelia.ops.operations.array_ops import natural as natural, positive as positive
from mycelia.ops.primitives.checks import (
    Misfit as Misfit, anything as anything, boolean as boolean, dtype as _dtype, integer as integer,
    real as real,
)
from mycelia.ops.primitives.define import primitive as primitive
from mycelia.ops.primitives.random_ops import next_key as next_key, own_stream as own_stream

__all__ = [
    "Bernoulli", "Cauchy", "ComputeAccidentalHits", "Gamma", "Generator", "LogNormalReverse",
    "LogUniformCandidateSampler", "Misfit", "Multinomial", "MultinomialWithReplacement",
    "NonDeterministicInts", "ParameterizedTruncatedNormal", "Poisson", "RandomCategorical",
    "RandomChoiceWithMask", "RandomGamma", "RandomPoisson", "RandomShuffle", "Randperm", "RandpermV2",
    "StandardLaplace", "StandardNormal", "TruncatedNormal", "Uniform", "UniformCandidateSampler",
    "UniformInt", "UniformReal", "any_dtype", "anything", "boolean", "integer", "natural", "next_key",
    "own_stream", "positive", "primitive", "real", "sample_candidates", "uniform",
]

any_dtype = _dtype

def sample_candidates(owner, true_classes, num_true, count, unique, range_max, key, distribution, avoid=False) -> tuple[Tensor, Tensor, Tensor]:
    """What both samplers check and share; `key` of the draw."""

def uniform(state, shape, dtype=...) -> Tensor:
    """Numbers in [0, 1) of an object's stream."""
