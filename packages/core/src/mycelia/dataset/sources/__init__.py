"""Where rows come from: arrays, Python objects, files of many formats, published data sets."""

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

__all__ = [
    "AGNewsDataset", "AmazonReviewDataset", "CLUEDataset", "CMUArcticDataset", "CSVDataset",
    "Caltech101Dataset", "Caltech256Dataset", "CelebADataset", "Cifar100Dataset", "Cifar10Dataset",
    "CityscapesDataset", "CoNLL2000Dataset", "CocoDataset", "DBpediaDataset", "DIV2KDataset",
    "EMnistDataset", "EnWik9Dataset", "FakeImageDataset", "FashionMnistDataset", "FlickrDataset",
    "Flowers102Dataset", "Food101Dataset", "GTZANDataset", "GeneratorDataset", "IMDBDataset",
    "IWSLT2016Dataset", "IWSLT2017Dataset", "ImageFolderDataset", "KITTIDataset", "KMnistDataset",
    "LFWDataset", "LJSpeechDataset", "LSUNDataset", "LibriTTSDataset", "ManifestDataset", "MappableDataset",
    "MindDataset", "MnistDataset", "Multi30kDataset", "NumpySlicesDataset", "OBSMindDataset",
    "OmniglotDataset", "PaddedDataset", "PennTreebankDataset", "PhotoTourDataset", "Places365Dataset",
    "QMnistDataset", "RandomDataset", "RenderedSST2Dataset", "SBDataset", "SBUDataset", "SQuADDataset",
    "SST2Dataset", "STL10Dataset", "SUN397Dataset", "SVHNDataset", "SemeionDataset", "SogouNewsDataset",
    "SpeechCommandsDataset", "TFRecordDataset", "TedliumDataset", "TextFileDataset", "UDPOSDataset",
    "USPSDataset", "VOCDataset", "WIDERFaceDataset", "WikiTextDataset", "YahooAnswersDataset",
    "YelpReviewDataset", "YesNoDataset", "sync_wait_for_dataset",
]  # fmt: skip
