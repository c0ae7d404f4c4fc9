"""Layers of images and feature maps: resizing, channels moved to space and back, cropping, similarity."""

from __future__ import annotations

import math

from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import float32
from mycelia.engine.ops.images import image as _image
from mycelia.nn.cell import Cell


class Upsample(Cell):
    """Resize the spatial dimensions; see `ops.interpolate`. Shapes: [N, C, *spatial] -> [N, C, *size]."""

    def __init__(
        self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None
    ):
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def construct(self, x):
        return _image.interpolate(
            x, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )


class PixelShuffle(Cell):
    """Channels moved into space. Shapes: [..., C * r * r, H, W] -> [..., C, H * r, W * r]."""

    def __init__(self, upscale_factor: int):
        super().__init__()
        _image._check_factor("PixelShuffle", "upscale_factor", upscale_factor)
        self.upscale_factor = upscale_factor

    def construct(self, input):
        return _image.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Cell):
    """Space moved into channels. Shapes: [..., C, H * r, W * r] -> [..., C * r * r, H, W]."""

    def __init__(self, downscale_factor: int):
        super().__init__()
        _image._check_factor("PixelUnshuffle", "downscale_factor", downscale_factor)
        self.downscale_factor = downscale_factor

    def construct(self, input):
        return _image.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Cell):
    """Channels of `groups` groups interleaved. Shapes: [..., C, H, W] -> same."""

    def __init__(self, groups: int):
        super().__init__()
        _image._check_factor("ChannelShuffle", "groups", groups)
        self.groups = groups

    def construct(self, x):
        return _image.channel_shuffle(x, self.groups)

    def extend_repr(self):
        return f"groups={self.groups}"


class CentralCrop(Cell):
    """The middle of images, `central_fraction` in (0, 1] of height and width.
    Shapes: [..., H, W] -> [..., h, w].
    """

    def __init__(self, central_fraction: float):
        super().__init__()
        if not isinstance(central_fraction, float):
            raise errors.type_error(
                "CentralCrop", f"central_fraction must be a float, but got {central_fraction!r}"
            )
        if not 0 < central_fraction <= 1:
            raise errors.value_error(
                "CentralCrop", f"central_fraction must be in (0, 1], but got {central_fraction}"
            )
        self.central_fraction = central_fraction

    def construct(self, image):
        if image.ndim not in (3, 4):
            raise errors.shape_error(
                "CentralCrop",
                f"the image must be [C, H, W] or [N, C, H, W], but its shape is {list(image.shape)}",
            )
        height, width = image.shape[-2:]
        top, left = (int((n - n * self.central_fraction) / 2) for n in (height, width))
        return image[..., top : height - top, left : width - left]


class PSNR(Cell):
    """Peak signal-to-noise ratio in decibel: ``10 log10(max_val^2 / mean((a - b)^2))``. Shapes: [N, C, H,
    W] twice -> [N]."""

    def __init__(self, max_val=1.0):
        super().__init__()
        if isinstance(max_val, bool) or not isinstance(max_val, (int, float)):
            raise errors.type_error("PSNR", f"max_val must be a number, but got {max_val!r}")
        if max_val <= 0:
            raise errors.value_error("PSNR", f"max_val must be positive, but got {max_val}")
        self.max_val = max_val

    def construct(self, img1, img2):
        from mycelia.engine.ops.elementwise.cast import cast
        from mycelia.engine.ops.elementwise.logarithms import log
        from mycelia.engine.ops.reductions.reduce import mean

        if img1.ndim != 4 or img1.shape != img2.shape:
            raise errors.shape_error(
                "PSNR",
                f"the images must both be [N, C, H, W], but the shapes are {img1.shape} and {img2.shape}",
            )
        difference = cast(img1, float32) - cast(img2, float32)
        error = mean(difference * difference, (1, 2, 3))
        return (log(error) - 2 * math.log(self.max_val)) * (-10 / math.log(10))


class ReduceLogSumExp(Cell):
    """``log(sum(exp(x)))`` over `axis`, computed without overflow; see `ops.logsumexp`."""

    def __init__(self, axis, keep_dims: bool = False):
        super().__init__()
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x):
        from mycelia.engine.ops.reductions.moments import logsumexp

        return logsumexp(x, self.axis, self.keep_dims)
