"""Colours: between red, green, blue and hue, saturation, value, and changes of both."""

import numpy as np

from mycelia.engine.ops.define import op

__all__: list[str] = []


def _np_hsv(rgb):
    red, green, blue = np.moveaxis(rgb, -1, 0)
    value = np.maximum(np.maximum(red, green), blue)
    span = value - np.minimum(np.minimum(red, green), blue)
    with np.errstate(all="ignore"):
        saturation = np.where(value > 0, span / value, 0)
        hue = np.where(
            red == value, (green - blue) / span,
            np.where(green == value, (blue - red) / span + 2, (red - green) / span + 4),
        )  # fmt: skip
    hue = np.where(span > 0, hue / 6, 0)
    return np.stack([np.where(hue < 0, hue + 1, hue), saturation, value], -1)


def _np_rgb(hsv):
    hue, saturation, value = np.moveaxis(hsv, -1, 0)
    place = hue * 6
    parts = [np.abs(place - 3) - 1, 2 - np.abs(place - 2), 2 - np.abs(place - 4)]
    shares = np.stack([np.clip(p, 0, 1) for p in parts], -1)
    return ((shares - 1) * saturation[..., None] + 1) * value[..., None]


def _changed(images, function):
    wide = images.astype(np.float64 if images.dtype == np.float64 else np.float32)
    return function(wide).astype(images.dtype)


def _pixels(least):
    def infer(images, *factor):
        if images.rank < least or images.shape[-1] != 3 or not images.dtype.is_floating:
            raise ValueError(f"images must be floating of shape [..., 3], rank >= {least}, but are {images}")
        if factor and factor[0].size != 1:
            raise ValueError(f"the change must be one number, but has shape {factor[0].shape}")
        return images

    return infer


@op(infer=_pixels(1), nondiff=True, mindir="RGBToHSV")
def rgb_to_hsv(images):
    """Hue (0 to 1), saturation and value of red, green and blue. Shapes: [..., 3] -> same."""
    return _changed(images, _np_hsv)


@op(infer=_pixels(1), nondiff=True, mindir="HSVToRGB")
def hsv_to_rgb(images):
    """Red, green and blue of hue, saturation and value. Shapes: [..., 3] -> same."""
    return _changed(images, _np_rgb)


@op(infer=_pixels(3), nondiff=True, mindir="AdjustHue")
def adjust_hue(images, delta):
    """Colours turned by `delta` of the circle. Shapes: images [..., 3], delta [] -> images'."""

    def turned(rgb):
        hsv = _np_hsv(rgb)
        hsv[..., 0] = (hsv[..., 0] + float(delta.reshape(()))) % 1.0
        return _np_rgb(hsv)

    return _changed(images, turned)


@op(infer=_pixels(3), nondiff=True, mindir="AdjustSaturation")
def adjust_saturation(images, scale):
    """Saturation times `scale`, at most 1. Shapes: images [..., 3], scale [] -> images'."""

    def scaled(rgb):
        hsv = _np_hsv(rgb)
        hsv[..., 1] = np.clip(hsv[..., 1] * float(scale.reshape(())), 0, 1)
        return _np_rgb(hsv)

    return _changed(images, scaled)


def _samples(*extra):
    def samples(rand):
        yield rand.positive(2, 3, 3), *extra
        yield rand.positive(0, 2, 3), *extra
        yield np.array([[[0.5, 0.5, 0.5], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]], np.float32), *extra

    return samples


rgb_to_hsv.samples(_samples())
hsv_to_rgb.samples(_samples())
adjust_hue.samples(_samples(np.array(0.3, np.float32)))
adjust_saturation.samples(_samples(np.array(1.7, np.float32)))
