"""Published sets of images, one small module per kind of layout."""

from mycelia.dataset.sources.vision.arrays import SemeionDataset, STL10Dataset, USPSDataset
from mycelia.dataset.sources.vision.detection import CocoDataset, KITTIDataset, VOCDataset, WIDERFaceDataset
from mycelia.dataset.sources.vision.folders import (
    Caltech256Dataset,
    Food101Dataset,
    LSUNDataset,
    OmniglotDataset,
    Places365Dataset,
    RenderedSST2Dataset,
    SUN397Dataset,
)
from mycelia.dataset.sources.vision.listed import (
    CelebADataset,
    FlickrDataset,
    LFWDataset,
    ManifestDataset,
    SBUDataset,
)
from mycelia.dataset.sources.vision.matlab import (
    Caltech101Dataset,
    Flowers102Dataset,
    SBDataset,
    SVHNDataset,
)
from mycelia.dataset.sources.vision.pairs import CityscapesDataset, DIV2KDataset, PhotoTourDataset

__all__ = [
    "Caltech101Dataset", "Caltech256Dataset", "CelebADataset", "CityscapesDataset", "CocoDataset",
    "DIV2KDataset", "FlickrDataset", "Flowers102Dataset", "Food101Dataset", "KITTIDataset", "LFWDataset",
    "LSUNDataset", "ManifestDataset", "OmniglotDataset", "PhotoTourDataset", "Places365Dataset",
    "RenderedSST2Dataset", "SBDataset", "SBUDataset", "STL10Dataset", "SUN397Dataset", "SVHNDataset",
    "SemeionDataset", "USPSDataset", "VOCDataset", "WIDERFaceDataset",
]  # fmt: skip
