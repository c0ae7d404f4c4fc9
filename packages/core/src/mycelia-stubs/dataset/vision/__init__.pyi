# Written by tools/gen_stubs.py.
from mycelia.dataset.vision.augment import (
    AutoAugment as AutoAugment, BoundingBoxAugment as BoundingBoxAugment, RandAugment as RandAugment,
    RandomSelectSubpolicy as RandomSelectSubpolicy, TrivialAugmentWide as TrivialAugmentWide,
    UniformAugment as UniformAugment,
)
from mycelia.dataset.vision.batch import (
    CutMixBatch as CutMixBatch, CutOut as CutOut, Erase as Erase, MixUp as MixUp, MixUpBatch as MixUpBatch,
    RandomErasing as RandomErasing,
)
from mycelia.dataset.vision.bbox import (
    RandomCropWithBBox as RandomCropWithBBox, RandomHorizontalFlipWithBBox as RandomHorizontalFlipWithBBox,
    RandomResizeWithBBox as RandomResizeWithBBox, RandomResizedCropWithBBox as RandomResizedCropWithBBox,
    RandomVerticalFlipWithBBox as RandomVerticalFlipWithBBox, ResizeWithBBox as ResizeWithBBox,
)
from mycelia.dataset.vision.color import (
    AdjustBrightness as AdjustBrightness, AdjustContrast as AdjustContrast, AdjustGamma as AdjustGamma,
    AdjustHue as AdjustHue, AdjustSaturation as AdjustSaturation, AdjustSharpness as AdjustSharpness,
    AutoContrast as AutoContrast, Equalize as Equalize, GaussianBlur as GaussianBlur, Invert as Invert,
    Posterize as Posterize, RandomAdjustSharpness as RandomAdjustSharpness,
    RandomAutoContrast as RandomAutoContrast, RandomColor as RandomColor,
    RandomColorAdjust as RandomColorAdjust, RandomEqualize as RandomEqualize,
    RandomGrayscale as RandomGrayscale, RandomInvert as RandomInvert, RandomLighting as RandomLighting,
    RandomPosterize as RandomPosterize, RandomSharpness as RandomSharpness,
    RandomSolarize as RandomSolarize, Solarize as Solarize,
)
from mycelia.dataset.vision.crops import (
    CenterCrop as CenterCrop, Crop as Crop, FiveCrop as FiveCrop, RandomCrop as RandomCrop,
    RandomCropDecodeResize as RandomCropDecodeResize, RandomResizedCrop as RandomResizedCrop,
    ResizedCrop as ResizedCrop, SlicePatches as SlicePatches, TenCrop as TenCrop,
)
from mycelia.dataset.vision.enums import (
    AutoAugmentPolicy as AutoAugmentPolicy, Border as Border, ConvertMode as ConvertMode,
    ImageBatchFormat as ImageBatchFormat, ImageReadMode as ImageReadMode, Inter as Inter,
    SliceMode as SliceMode,
)
from mycelia.dataset.vision.files import (
    DecodeVideo as DecodeVideo, VideoDecoder as VideoDecoder, encode_jpeg as encode_jpeg,
    encode_png as encode_png, get_image_num_channels as get_image_num_channels,
    get_image_size as get_image_size, read_file as read_file, read_image as read_image,
    read_video as read_video, read_video_timestamps as read_video_timestamps, write_file as write_file,
    write_jpeg as write_jpeg, write_png as write_png,
)
from mycelia.dataset.vision.geometry import (
    HorizontalFlip as HorizontalFlip, Pad as Pad, PadToSize as PadToSize,
    RandomHorizontalFlip as RandomHorizontalFlip, RandomResize as RandomResize,
    RandomVerticalFlip as RandomVerticalFlip, Resize as Resize, VerticalFlip as VerticalFlip,
)
from mycelia.dataset.vision.tensor import (
    ConvertColor as ConvertColor, Decode as Decode, Grayscale as Grayscale, HWC2CHW as HWC2CHW,
    HsvToRgb as HsvToRgb, LinearTransformation as LinearTransformation, Normalize as Normalize,
    NormalizePad as NormalizePad, Rescale as Rescale, RgbToHsv as RgbToHsv, ToNumpy as ToNumpy,
    ToPIL as ToPIL, ToTensor as ToTensor, ToType as ToType,
)
from mycelia.dataset.vision.warps import (
    Affine as Affine, Perspective as Perspective, RandomAffine as RandomAffine,
    RandomPerspective as RandomPerspective, RandomRotation as RandomRotation, Rotate as Rotate,
)

__all__ = [
    "AdjustBrightness", "AdjustContrast", "AdjustGamma", "AdjustHue", "AdjustSaturation", "AdjustSharpness",
    "Affine", "AutoAugment", "AutoAugmentPolicy", "AutoContrast", "Border", "BoundingBoxAugment",
    "CenterCrop", "ConvertColor", "ConvertMode", "Crop", "CutMixBatch", "CutOut", "Decode", "DecodeVideo",
    "Equalize", "Erase", "FiveCrop", "GaussianBlur", "Grayscale", "HWC2CHW", "HorizontalFlip", "HsvToRgb",
    "ImageBatchFormat", "ImageReadMode", "Inter", "Invert", "LinearTransformation", "MixUp", "MixUpBatch",
    "Normalize", "NormalizePad", "Pad", "PadToSize", "Perspective", "Posterize", "RandAugment",
    "RandomAdjustSharpness", "RandomAffine", "RandomAutoContrast", "RandomColor", "RandomColorAdjust",
    "RandomCrop", "RandomCropDecodeResize", "RandomCropWithBBox", "RandomEqualize", "RandomErasing",
    "RandomGrayscale", "RandomHorizontalFlip", "RandomHorizontalFlipWithBBox", "RandomInvert",
    "RandomLighting", "RandomPerspective", "RandomPosterize", "RandomResize", "RandomResizeWithBBox",
    "RandomResizedCrop", "RandomResizedCropWithBBox", "RandomRotation", "RandomSelectSubpolicy",
    "RandomSharpness", "RandomSolarize", "RandomVerticalFlip", "RandomVerticalFlipWithBBox", "Rescale",
    "Resize", "ResizeWithBBox", "ResizedCrop", "RgbToHsv", "Rotate", "SliceMode", "SlicePatches",
    "Solarize", "TenCrop", "ToNumpy", "ToPIL", "ToTensor", "ToType", "TrivialAugmentWide", "UniformAugment",
    "VerticalFlip", "VideoDecoder", "encode_jpeg", "encode_png", "get_image_num_channels", "get_image_size",
    "read_file", "read_image", "read_video", "read_video_timestamps", "write_file", "write_jpeg",
    "write_png",
]
