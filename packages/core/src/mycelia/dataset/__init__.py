"""The dataset pipeline: sources, operations on rows, samplers, transforms."""

from mycelia.dataset import config, text, transforms, vision
from mycelia.dataset.batching import BatchInfo
from mycelia.dataset.callback import DSCallback, WaitedDSCallback
from mycelia.dataset.config import ErrorSamplesMode
from mycelia.dataset.debug import DebugHook
from mycelia.dataset.operations import zip_datasets as zip
from mycelia.dataset.pipeline import Dataset
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
    "SubsetSampler", "WeightedRandomSampler", "config", "text", "transforms", "vision", "zip",
]  # fmt: skip
