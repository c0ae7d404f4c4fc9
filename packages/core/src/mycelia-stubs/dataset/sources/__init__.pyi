# Written by tools/gen_stubs.py.
from . import text as text, vision as vision
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
]
