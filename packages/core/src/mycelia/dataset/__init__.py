"""The dataset pipeline: sources, operations on rows, samplers, transforms."""

from mycelia.dataset import audio, config, debug, text, transforms, utils, vision
from mycelia.dataset.batching import BatchInfo
from mycelia.dataset.cache import DatasetCache
from mycelia.dataset.callback import DSCallback
from mycelia.dataset.config import ErrorSamplesMode
from mycelia.dataset.debug import DebugHook
from mycelia.dataset.execution.profiling import profile
from mycelia.dataset.operations import zip_datasets as zip
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import (
    DistributedSampler,
    IterSampler,
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
from mycelia.dataset.sources.audio import (
    CMUArcticDataset,
    GTZANDataset,
    LibriTTSDataset,
    LJSpeechDataset,
    SpeechCommandsDataset,
    TedliumDataset,
    YesNoDataset,
)
from mycelia.dataset.sources.file_rows import CLUEDataset, CSVDataset, TextFileDataset
from mycelia.dataset.sources.generator import GeneratorDataset, PaddedDataset
from mycelia.dataset.sources.image_files import (
    Cifar10Dataset,
    Cifar100Dataset,
    FakeImageDataset,
    ImageFolderDataset,
)
from mycelia.dataset.sources.mindrecord import MindDataset
from mycelia.dataset.sources.mnist import (
    EMnistDataset,
    FashionMnistDataset,
    KMnistDataset,
    MnistDataset,
    QMnistDataset,
)
from mycelia.dataset.sources.numbered import MappableDataset, NumpySlicesDataset
from mycelia.dataset.sources.random_rows import RandomDataset
from mycelia.dataset.sources.remote import OBSMindDataset, sync_wait_for_dataset
from mycelia.dataset.sources.text import (
    AGNewsDataset,
    AmazonReviewDataset,
    CoNLL2000Dataset,
    DBpediaDataset,
    EnWik9Dataset,
    IMDBDataset,
    IWSLT2016Dataset,
    IWSLT2017Dataset,
    Multi30kDataset,
    PennTreebankDataset,
    SogouNewsDataset,
    SQuADDataset,
    SST2Dataset,
    UDPOSDataset,
    WikiTextDataset,
    YahooAnswersDataset,
    YelpReviewDataset,
)
from mycelia.dataset.sources.tfrecord import TFRecordDataset
from mycelia.dataset.sources.vision import (
    Caltech101Dataset,
    Caltech256Dataset,
    CelebADataset,
    CityscapesDataset,
    CocoDataset,
    DIV2KDataset,
    FlickrDataset,
    Flowers102Dataset,
    Food101Dataset,
    KITTIDataset,
    LFWDataset,
    LSUNDataset,
    ManifestDataset,
    OmniglotDataset,
    PhotoTourDataset,
    Places365Dataset,
    RenderedSST2Dataset,
    SBDataset,
    SBUDataset,
    SemeionDataset,
    STL10Dataset,
    SUN397Dataset,
    SVHNDataset,
    USPSDataset,
    VOCDataset,
    WIDERFaceDataset,
)
from mycelia.dataset.utils import LineReader

__all__ = [
    "BatchInfo", "DSCallback", "Dataset", "DatasetCache", "DebugHook", "DistributedSampler", "EMnistDataset",
    "ErrorSamplesMode", "FashionMnistDataset", "GeneratorDataset", "KMnistDataset", "MappableDataset",
    "MindDataset", "MnistDataset", "NumpySlicesDataset", "PKSampler", "PaddedDataset", "QMnistDataset",
    "RandomDataset", "RandomSampler", "Sampler", "SequentialSampler", "Shuffle", "SubsetRandomSampler",
    "SubsetSampler",
    "WaitedDSCallback", "WeightedRandomSampler", "audio", "config", "debug", "text", "transforms",
    "utils", "vision", "zip", "IterSampler", "LineReader", "OBSMindDataset", "sync_wait_for_dataset",
    "CLUEDataset", "CSVDataset", "Cifar100Dataset", "Cifar10Dataset", "FakeImageDataset",
    "ImageFolderDataset",
    "Schema", "TFRecordDataset", "TextFileDataset", "compare", "deserialize", "profile", "serialize", "show",
    "AGNewsDataset", "AmazonReviewDataset", "CMUArcticDataset", "Caltech101Dataset", "Caltech256Dataset",
    "CelebADataset", "CityscapesDataset", "CoNLL2000Dataset", "CocoDataset", "DBpediaDataset",
    "DIV2KDataset", "EnWik9Dataset", "FlickrDataset", "Flowers102Dataset", "Food101Dataset",
    "GTZANDataset", "IMDBDataset", "IWSLT2016Dataset", "IWSLT2017Dataset", "KITTIDataset", "LFWDataset",
    "LJSpeechDataset", "LSUNDataset", "LibriTTSDataset", "ManifestDataset", "Multi30kDataset",
    "OmniglotDataset", "PennTreebankDataset", "PhotoTourDataset", "Places365Dataset",
    "RenderedSST2Dataset", "SBDataset", "SBUDataset", "SQuADDataset", "SST2Dataset", "STL10Dataset",
    "SUN397Dataset", "SVHNDataset", "SemeionDataset", "SogouNewsDataset", "SpeechCommandsDataset",
    "TedliumDataset", "UDPOSDataset", "USPSDataset", "VOCDataset", "WIDERFaceDataset", "WikiTextDataset",
    "YahooAnswersDataset", "YelpReviewDataset", "YesNoDataset",
]  # fmt: skip


def __getattr__(name: str):
    if name == "WaitedDSCallback":  # it is a callback of the training too, which is built upon this package
        from importlib import import_module

        return globals().setdefault(name, import_module("mycelia.train.callbacks.waited").WaitedDSCallback)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
