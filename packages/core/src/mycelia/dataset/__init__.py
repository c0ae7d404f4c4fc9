"""The dataset pipeline: sources, operations on rows, samplers, transforms."""

from mycelia.dataset import audio, config, debug, text, transforms, vision
from mycelia.dataset.batching import BatchInfo
from mycelia.dataset.callback import DSCallback
from mycelia.dataset.config import ErrorSamplesMode
from mycelia.dataset.debug import DebugHook
from mycelia.dataset.file_rows import CLUEDataset, CSVDataset, TextFileDataset
from mycelia.dataset.generator import GeneratorDataset, PaddedDataset
from mycelia.dataset.image_files import Cifar10Dataset, Cifar100Dataset, FakeImageDataset, ImageFolderDataset
from mycelia.dataset.mindrecord import MindDataset
from mycelia.dataset.mnist import (
    EMnistDataset,
    FashionMnistDataset,
    KMnistDataset,
    MnistDataset,
    QMnistDataset,
)
from mycelia.dataset.operations import zip_datasets as zip
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import (
    DistributedSampler,
    PKSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Shuffle,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from mycelia.dataset.schema import Schema
from mycelia.dataset.serialize import compare, deserialize, serialize, show
from mycelia.dataset.sources import MappableDataset, NumpySlicesDataset
from mycelia.dataset.tfrecord import TFRecordDataset

__all__ = [
    "BatchInfo", "DSCallback", "Dataset", "DebugHook", "DistributedSampler", "EMnistDataset",
    "ErrorSamplesMode", "FashionMnistDataset", "GeneratorDataset", "KMnistDataset", "MappableDataset",
    "MindDataset", "MnistDataset", "NumpySlicesDataset", "PKSampler", "PaddedDataset", "QMnistDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "Shuffle", "SubsetRandomSampler", "SubsetSampler",
    "WaitedDSCallback", "WeightedRandomSampler", "audio", "config", "debug", "text", "transforms",
    "vision", "zip",
    "CLUEDataset", "CSVDataset", "Cifar100Dataset", "Cifar10Dataset", "FakeImageDataset",
    "ImageFolderDataset",
    "Schema", "TFRecordDataset", "TextFileDataset", "compare", "deserialize", "serialize", "show",
]  # fmt: skip


def __getattr__(name: str):
    if name == "WaitedDSCallback":  # it is a callback of the training too, which is built upon this package
        from importlib import import_module

        return globals().setdefault(name, import_module("mycelia.train.callbacks.waited").WaitedDSCallback)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
