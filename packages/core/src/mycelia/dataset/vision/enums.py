"""Choices of image transforms: interpolation, border, layout, colour conversion, augmentation policy."""

from __future__ import annotations

import enum


class Inter(enum.IntEnum):
    """Interpolation. ANTIALIAS is for PIL images only, AREA and PILCUBIC for arrays only."""

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(str, enum.Enum):  # noqa: UP042 - str() shows the class, as in MindSpore
    """What lies beyond the edge: a colour, the last pixel, the mirror without or with the last pixel."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class AutoAugmentPolicy(str, enum.Enum):  # noqa: UP042 - str() shows the class, as in MindSpore
    """The data set that an `AutoAugment` policy was searched on."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


class ImageBatchFormat(enum.IntEnum):
    """Layout of a batch of images."""

    NHWC = 0
    NCHW = 1


class ImageReadMode(enum.IntEnum):
    """Channels of an image that is read: as stored, one, or three."""

    UNCHANGED = 0
    GRAYSCALE = 1
    COLOR = 2


class SliceMode(enum.IntEnum):
    """What happens to the rest when an image is cut into patches."""

    PAD = 0
    DROP = 1


class ConvertMode(enum.IntEnum):
    """Colour conversions; the names with the order of channels reversed do the same."""

    COLOR_BGR2BGRA = 0
    COLOR_RGB2RGBA = COLOR_BGR2BGRA
    COLOR_BGRA2BGR = 1
    COLOR_RGBA2RGB = COLOR_BGRA2BGR
    COLOR_BGR2RGBA = 2
    COLOR_RGB2BGRA = COLOR_BGR2RGBA
    COLOR_RGBA2BGR = 3
    COLOR_BGRA2RGB = COLOR_RGBA2BGR
    COLOR_BGR2RGB = 4
    COLOR_RGB2BGR = COLOR_BGR2RGB
    COLOR_BGRA2RGBA = 5
    COLOR_RGBA2BGRA = COLOR_BGRA2RGBA
    COLOR_BGR2GRAY = 6
    COLOR_RGB2GRAY = 7
    COLOR_GRAY2BGR = 8
    COLOR_GRAY2RGB = COLOR_GRAY2BGR
    COLOR_GRAY2BGRA = 9
    COLOR_GRAY2RGBA = COLOR_GRAY2BGRA
    COLOR_BGRA2GRAY = 10
    COLOR_RGBA2GRAY = 11
