# Written by tools/gen_stubs.py.
from . import (
    audio as audio, config as config, debug as debug, execution as execution, sources as sources,
    text as text, transforms as transforms, utils as utils, vision as vision,
)
from mycelia.dataset.batching import BatchInfo as BatchInfo
from mycelia.dataset.cache import DatasetCache as DatasetCache
from mycelia.dataset.callback import DSCallback as DSCallback
from mycelia.dataset.combining import zip_datasets as _zip_datasets
from mycelia.dataset.config import ErrorSamplesMode as ErrorSamplesMode
from mycelia.dataset.debug import DebugHook as DebugHook
from mycelia.dataset.deserialize import deserialize as deserialize
from mycelia.dataset.execution.profiling import profile as profile
from mycelia.dataset.pipeline import Dataset as Dataset
from mycelia.dataset.samplers import (
    DistributedSampler as DistributedSampler, PKSampler as PKSampler, RandomSampler as RandomSampler,
    SequentialSampler as SequentialSampler, Shuffle as Shuffle, SubsetRandomSampler as SubsetRandomSampler,
    SubsetSampler as SubsetSampler, WeightedRandomSampler as WeightedRandomSampler,
)
from mycelia.dataset.schema import Schema as Schema
from mycelia.dataset.serialize import compare as compare, serialize as serialize, show as show
from mycelia.dataset.sources.audio import (
    CMUArcticDataset as CMUArcticDataset, GTZANDataset as GTZANDataset, LJSpeechDataset as LJSpeechDataset,
    LibriTTSDataset as LibriTTSDataset, SpeechCommandsDataset as SpeechCommandsDataset,
    TedliumDataset as TedliumDataset, YesNoDataset as YesNoDataset,
)
from mycelia.dataset.sources.file_rows import (
    CLUEDataset as CLUEDataset, CSVDataset as CSVDataset, TextFileDataset as TextFileDataset,
)
from mycelia.dataset.sources.generator import (
    GeneratorDataset as GeneratorDataset, PaddedDataset as PaddedDataset,
)
from mycelia.dataset.sources.image_files import (
    Cifar100Dataset as Cifar100Dataset, Cifar10Dataset as Cifar10Dataset,
    FakeImageDataset as FakeImageDataset, ImageFolderDataset as ImageFolderDataset,
)
from mycelia.dataset.sources.mindrecord import MindDataset as MindDataset
from mycelia.dataset.sources.mnist import (
    EMnistDataset as EMnistDataset, FashionMnistDataset as FashionMnistDataset,
    KMnistDataset as KMnistDataset, MnistDataset as MnistDataset, QMnistDataset as QMnistDataset,
)
from mycelia.dataset.sources.numbered import (
    MappableDataset as MappableDataset, NumpySlicesDataset as NumpySlicesDataset,
)
from mycelia.dataset.sources.random_rows import RandomDataset as RandomDataset
from mycelia.dataset.sources.remote import (
    OBSMindDataset as OBSMindDataset, sync_wait_for_dataset as sync_wait_for_dataset,
)
from mycelia.dataset.sources.text.plain import (
    CoNLL2000Dataset as CoNLL2000Dataset, EnWik9Dataset as EnWik9Dataset, IMDBDataset as IMDBDataset,
    PennTreebankDataset as PennTreebankDataset, UDPOSDataset as UDPOSDataset,
    WikiTextDataset as WikiTextDataset,
)
from mycelia.dataset.sources.text.tables import (
    AGNewsDataset as AGNewsDataset, AmazonReviewDataset as AmazonReviewDataset,
    DBpediaDataset as DBpediaDataset, SQuADDataset as SQuADDataset, SST2Dataset as SST2Dataset,
    SogouNewsDataset as SogouNewsDataset, YahooAnswersDataset as YahooAnswersDataset,
    YelpReviewDataset as YelpReviewDataset,
)
from mycelia.dataset.sources.text.translations import (
    IWSLT2016Dataset as IWSLT2016Dataset, IWSLT2017Dataset as IWSLT2017Dataset,
    Multi30kDataset as Multi30kDataset,
)
from mycelia.dataset.sources.tfrecord import TFRecordDataset as TFRecordDataset
from mycelia.dataset.sources.vision.arrays import (
    STL10Dataset as STL10Dataset, SemeionDataset as SemeionDataset, USPSDataset as USPSDataset,
)
from mycelia.dataset.sources.vision.detection import (
    CocoDataset as CocoDataset, KITTIDataset as KITTIDataset, VOCDataset as VOCDataset,
    WIDERFaceDataset as WIDERFaceDataset,
)
from mycelia.dataset.sources.vision.folders import (
    Caltech256Dataset as Caltech256Dataset, Food101Dataset as Food101Dataset, LSUNDataset as LSUNDataset,
    OmniglotDataset as OmniglotDataset, Places365Dataset as Places365Dataset,
    RenderedSST2Dataset as RenderedSST2Dataset, SUN397Dataset as SUN397Dataset,
)
from mycelia.dataset.sources.vision.listed import (
    CelebADataset as CelebADataset, FlickrDataset as FlickrDataset, LFWDataset as LFWDataset,
    ManifestDataset as ManifestDataset, SBUDataset as SBUDataset,
)
from mycelia.dataset.sources.vision.matlab import (
    Caltech101Dataset as Caltech101Dataset, Flowers102Dataset as Flowers102Dataset, SBDataset as SBDataset,
    SVHNDataset as SVHNDataset,
)
from mycelia.dataset.sources.vision.pairs import (
    CityscapesDataset as CityscapesDataset, DIV2KDataset as DIV2KDataset,
    PhotoTourDataset as PhotoTourDataset,
)
from mycelia.dataset.user_samplers import IterSampler as IterSampler, Sampler as Sampler
from mycelia.dataset.utils.line_reader import LineReader as LineReader
from mycelia.train.callbacks.waited import WaitedDSCallback as WaitedDSCallback

__all__ = [
    "BatchInfo", "DSCallback", "Dataset", "DatasetCache", "DebugHook", "DistributedSampler",
    "ErrorSamplesMode", "PKSampler", "RandomSampler", "Sampler", "SequentialSampler", "Shuffle",
    "SubsetRandomSampler", "SubsetSampler", "WaitedDSCallback", "WeightedRandomSampler", "audio", "config",
    "debug", "text", "transforms", "utils", "vision", "zip", "IterSampler", "LineReader", "Schema",
    "compare", "deserialize", "profile", "serialize", "show", "AGNewsDataset", "AmazonReviewDataset",
    "CLUEDataset", "CMUArcticDataset", "CSVDataset", "Caltech101Dataset", "Caltech256Dataset",
    "CelebADataset", "Cifar100Dataset", "Cifar10Dataset", "CityscapesDataset", "CoNLL2000Dataset",
    "CocoDataset", "DBpediaDataset", "DIV2KDataset", "EMnistDataset", "EnWik9Dataset", "FakeImageDataset",
    "FashionMnistDataset", "FlickrDataset", "Flowers102Dataset", "Food101Dataset", "GTZANDataset",
    "GeneratorDataset", "IMDBDataset", "IWSLT2016Dataset", "IWSLT2017Dataset", "ImageFolderDataset",
    "KITTIDataset", "KMnistDataset", "LFWDataset", "LJSpeechDataset", "LSUNDataset", "LibriTTSDataset",
    "ManifestDataset", "MappableDataset", "MindDataset", "MnistDataset", "Multi30kDataset",
    "NumpySlicesDataset", "OBSMindDataset", "OmniglotDataset", "PaddedDataset", "PennTreebankDataset",
    "PhotoTourDataset", "Places365Dataset", "QMnistDataset", "RandomDataset", "RenderedSST2Dataset",
    "SBDataset", "SBUDataset", "SQuADDataset", "SST2Dataset", "STL10Dataset", "SUN397Dataset",
    "SVHNDataset", "SemeionDataset", "SogouNewsDataset", "SpeechCommandsDataset", "TFRecordDataset",
    "TedliumDataset", "TextFileDataset", "UDPOSDataset", "USPSDataset", "VOCDataset", "WIDERFaceDataset",
    "WikiTextDataset", "YahooAnswersDataset", "YelpReviewDataset", "YesNoDataset", "sync_wait_for_dataset",
]

zip = _zip_datasets
