# Written by tools/gen_stubs.py.
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
    "Caltech101Dataset", "Caltech256Dataset", "CelebADataset", "CityscapesDataset", "CocoDataset",
    "DIV2KDataset", "FlickrDataset", "Flowers102Dataset", "Food101Dataset", "KITTIDataset", "LFWDataset",
    "LSUNDataset", "ManifestDataset", "OmniglotDataset", "PhotoTourDataset", "Places365Dataset",
    "RenderedSST2Dataset", "SBDataset", "SBUDataset", "STL10Dataset", "SUN397Dataset", "SVHNDataset",
    "SemeionDataset", "USPSDataset", "VOCDataset", "WIDERFaceDataset",
]
