"""The dataset pipeline: sources, operations on rows, samplers, transforms."""

from mycelia.dataset import config, transforms, vision
from mycelia.dataset.pipeline import BatchInfo, Dataset
from mycelia.dataset.pipeline import zip_datasets as zip
from mycelia.dataset.samplers import (
    DistributedSampler,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from mycelia.dataset.sources import GeneratorDataset, MappableDataset, MnistDataset, NumpySlicesDataset

__all__ = [
    "BatchInfo", "Dataset", "DistributedSampler", "GeneratorDataset", "MappableDataset", "MnistDataset",
    "NumpySlicesDataset", "PKSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
    "SubsetSampler", "WeightedRandomSampler", "config", "transforms", "vision", "zip",
]  # fmt: skip
