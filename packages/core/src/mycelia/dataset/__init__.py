"""The dataset pipeline: sources, operations on rows, samplers, transforms."""

# Modules of nodes add methods to Dataset: all of them are imported here, so that each dataset has them all.
from mycelia.dataset import (
    audio,
    columns,
    config,
    debug,
    export,
    gates,
    mapping,
    padding,
    selection,
    sources,
    text,
    transforms,
    utils,
    vision,
)
from mycelia.dataset.batching import BatchInfo
from mycelia.dataset.cache import DatasetCache
from mycelia.dataset.callback import DSCallback
from mycelia.dataset.combining import zip_datasets as zip
from mycelia.dataset.config import ErrorSamplesMode
from mycelia.dataset.debug import DebugHook
from mycelia.dataset.deserialize import deserialize
from mycelia.dataset.execution import iterator, transfer
from mycelia.dataset.execution.profiling import profile
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import (
    DistributedSampler,
    PKSampler,
    RandomSampler,
    SequentialSampler,
    Shuffle,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from mycelia.dataset.schema import Schema
from mycelia.dataset.serialize import compare, serialize, show
from mycelia.dataset.sources import *
from mycelia.dataset.user_samplers import IterSampler, Sampler
from mycelia.dataset.utils import LineReader

__all__ = [
    "BatchInfo", "DSCallback", "Dataset", "DatasetCache", "DebugHook", "DistributedSampler",
    "ErrorSamplesMode", "PKSampler", "RandomSampler", "Sampler", "SequentialSampler", "Shuffle",
    "SubsetRandomSampler", "SubsetSampler", "WaitedDSCallback", "WeightedRandomSampler", "audio", "config",
    "debug", "text", "transforms", "utils", "vision", "zip", "IterSampler", "LineReader", "Schema",
    "compare", "deserialize", "profile", "serialize", "show", *sources.__all__,
]  # fmt: skip


def __getattr__(name: str):
    if name == "WaitedDSCallback":  # it is a callback of the training too, which is built upon this package
        from importlib import import_module

        return globals().setdefault(name, import_module("mycelia.train.callbacks.waited").WaitedDSCallback)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
