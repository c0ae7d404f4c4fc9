"""Colour, contrast, sharpness and blur; the random forms of them."""

from __future__ import annotations

import numpy as np

from mycelia.dataset.execution import rng_streams
from mycelia.dataset.vision import checks, color_kernels, resample
from mycelia.dataset.vision.base import ImageTransform, need_pil, pillow
from mycelia.dataset.vision.tensor import to_grey
from mycelia.engine.base import errors


def enhance(image, what: str, factor: float):
    """Pillow's `ImageEnhance`: Brightness, Contrast, Color or Sharpness."""
    return getattr(pillow("ImageEnhance"), what)(image).enhance(factor)


class AdjustBrightness(ImageTransform):
    """Every value times `brightness_factor`."""

    def __init__(self, brightness_factor: float):
        checks.number("AdjustBrightness", "brightness_factor", brightness_factor, 0)
        self.brightness_factor = brightness_factor

    def on_array(self, image):
        if image.ndim == 3 and image.shape[2] not in (1, 3):
            self.need_channels(image, 1, 3)
        return color_kernels.brightness(image, self.brightness_factor)

    def on_pil(self, image):
        return enhance(image, "Brightness", self.brightness_factor)


class AdjustContrast(ImageTransform):
    """0: the mean grey; 1: the image; above: more contrast."""

    def __init__(self, contrast_factor: float):
        checks.number("AdjustContrast", "contrast_factor", contrast_factor, 0)
        self.contrast_factor = contrast_factor

    def on_array(self, image):
        _need_colours(self, image)
        return color_kernels.contrast(image, self.contrast_factor)

    def on_pil(self, image):
        return enhance(image, "Contrast", self.contrast_factor)


def _need_colours(transform: ImageTransform, image: np.ndarray) -> None:
    transform.need_channels(image, 3)
    if image.dtype.name not in ("uint8", "uint16", "float32"):
        raise transform.failure(f"the image must be uint8, uint16 or float32, but its dtype is {image.dtype}")


class AdjustSaturation(ImageTransform):
    """0: grey; 1: the image; above: stronger colours."""

    def __init__(self, saturation_factor: float):
        checks.number("AdjustSaturation", "saturation_factor", saturation_factor, 0)
        self.saturation_factor = saturation_factor

    def on_array(self, image):
        _need_colours(self, image)
        return color_kernels.saturation(image, self.saturation_factor)

    def on_pil(self, image):
        return enhance(image, "Color", self.saturation_factor)


def pil_hue(image, factor: float):
    """A PIL image with its hue moved by `factor` of a turn."""
    if image.mode in ("L", "1", "I", "F"):
        return image
    h, s, v = image.convert("HSV").split()
    moved = np.array(h, np.uint8) + np.uint8(int(factor * 255) & 0xFF)
    return pillow().merge("HSV", (pillow().fromarray(moved), s, v)).convert(image.mode)


class AdjustHue(ImageTransform):
    """Hue moved by `hue_factor` of a turn, -0.5..0.5."""

    def __init__(self, hue_factor: float):
        checks.number("AdjustHue", "hue_factor", hue_factor, -0.5, 0.5)
        self.hue_factor = hue_factor

    def on_array(self, image):
        _need_colours(self, image)
        return color_kernels.hue(image, self.hue_factor)

    def on_pil(self, image):
        return pil_hue(image, self.hue_factor)


class AdjustSharpness(ImageTransform):
    """0: smoothed; 1: the image; above: sharper."""

    def __init__(self, sharpness_factor: float):
        checks.number("AdjustSharpness", "sharpness_factor", sharpness_factor, 0)
        self.sharpness_factor = sharpness_factor

    def on_array(self, image):
        if image.dtype.name not in ("uint8", "uint16", "int16", "float32", "float64"):
            raise self.failure(f"images of {image.dtype} cannot be filtered")
        return color_kernels.sharpness(image, self.sharpness_factor)


class AdjustGamma(ImageTransform):
    """``gain * image ** gamma`` of values in 0..1 (8-bit: 0..255)."""

    ranks = ()

    def __init__(self, gamma: float, gain: float = 1):
        checks.number("AdjustGamma", "gamma", gamma, 0)
        if gain is not None:
            checks.number("AdjustGamma", "gain", gain)
        self.gamma, self.gain = gamma, gain

    def on_array(self, image):
        if image.ndim < 2 or (image.ndim > 2 and image.shape[-1] not in (1, 3)):
            raise self.failure(f"the image must have 1 or 3 channels, but its shape is {list(image.shape)}")
        return color_kernels.gamma(image, self.gamma, self.gain)

    def on_pil(self, image):
        table = [int((256 - 0.001) * self.gain * pow(x / 255.0, self.gamma)) for x in range(256)]
        bands = len(image.getbands())
        return image.point(table * bands) if bands in (1, 3) else image


def _need_grey_or_colours(transform: ImageTransform, image: np.ndarray) -> None:
    transform.need_bytes(image)
    if image.ndim == 3 and image.shape[2] not in (1, 3):
        transform.need_channels(image, 1, 3)


class AutoContrast(ImageTransform):
    """Each channel stretched to 0..255, without `cutoff` percent at both ends and without `ignore`."""

    def __init__(self, cutoff: float = 0.0, ignore=None):
        self.cutoff, self.ignore = cutoff, checks.contrast(type(self).__name__, cutoff, ignore)

    def on_array(self, image):
        _need_grey_or_colours(self, image)
        return color_kernels.auto_contrast(image, self.cutoff, self.ignore)

    def on_pil(self, image):
        return pillow("ImageOps").autocontrast(image, self.cutoff, self.ignore)


class Equalize(ImageTransform):
    """Each channel with a flat histogram."""

    def on_array(self, image):
        _need_grey_or_colours(self, image)
        return color_kernels.equalize(image)

    def on_pil(self, image):
        return pillow("ImageOps").equalize(image)


class Invert(ImageTransform):
    """``255 - image``; three channels."""

    def on_array(self, image):
        self.need_channels(image, 3)
        return resample.to_dtype(255 - image.astype(np.float64), image.dtype)

    def on_pil(self, image):
        return pillow("ImageOps").invert(image)


class Posterize(ImageTransform):
    """The upper `bits` bits of each byte."""

    def __init__(self, bits: int):
        checks.integer("Posterize", "bits", bits, 0, 8)
        self.bits = bits

    def on_array(self, image):
        self.need_bytes(image)
        return color_kernels.posterize(image, self.bits)


def _thresholds(op: str, value) -> None:
    checks.kind(op, "threshold", value, (int, float, list, tuple))
    values = (value, value) if isinstance(value, checks.NUMBER) else value
    if len(values) != 2:
        raise errors.type_error(op, f"threshold must be a number or (low, high), but got {value!r}")
    for v in values:
        checks.number(op, "threshold", v, 0, 255)
    if values[0] > values[1]:
        raise errors.value_error(op, f"threshold must be (low, high), but got {value!r}")


class Solarize(ImageTransform):
    """Values within `threshold` (low, high), or from it on, inverted."""

    def __init__(self, threshold):
        _thresholds("Solarize", threshold)
        self.threshold = (threshold, threshold) if isinstance(threshold, checks.NUMBER) else tuple(threshold)

    def on_array(self, image):
        if image.ndim == 3 and image.shape[2] not in (1, 3):
            self.need_channels(image, 1, 3)
        return color_kernels.solarize(image, *self.threshold)


class GaussianBlur(ImageTransform):
    """Blur with a kernel of odd `kernel_size` and `sigma`, each one number or (x, y)."""

    def __init__(self, kernel_size, sigma=None):
        checks.kind("GaussianBlur", "kernel_size", kernel_size, (int, list, tuple))
        lengths = (kernel_size,) * 2 if isinstance(kernel_size, int) else tuple(kernel_size)
        checks.kind("GaussianBlur", "sigma", 0 if sigma is None else sigma, (int, float, list, tuple))
        sigma = 0 if sigma is None else sigma
        sigmas = (sigma,) * 2 if isinstance(sigma, checks.NUMBER) else tuple(sigma)
        for name, values in (("kernel_size", lengths), ("sigma", sigmas)):
            if len(values) != 2:
                raise errors.type_error("GaussianBlur", f"{name} must have two values, but got {values!r}")
        for length in lengths:
            checks.integer("GaussianBlur", "kernel_size", length)
            if length % 2 == 0:
                raise errors.value_error(
                    "GaussianBlur", f"Input kernel_size is not an odd value: {kernel_size!r}"
                )
        for value in sigmas:
            checks.number("GaussianBlur", "sigma", value, 0)
        self.kernel_size, self.sigma = lengths, sigmas

    def on_array(self, image):
        if image.dtype.name not in ("uint8", "uint16", "int16", "float32", "float64"):
            raise self.failure(f"images of {image.dtype} cannot be filtered")
        return resample.gaussian_blur(image, self.kernel_size, self.sigma)


class RandomColorAdjust(ImageTransform):
    """Brightness, contrast, saturation and hue by random factors, in random order."""

    random = True

    def __init__(self, brightness=(1, 1), contrast=(1, 1), saturation=(1, 1), hue=(0, 0)):
        op = "RandomColorAdjust"
        self.brightness = checks.factors(op, "brightness", brightness)
        self.contrast = checks.factors(op, "contrast", contrast)
        self.saturation = checks.factors(op, "saturation", saturation)
        self.hue = checks.factors(op, "hue", hue, 0, -0.5, 0.5)

    def on_array(self, image):
        _need_colours(self, image)
        steps = [
            (self.brightness, color_kernels.brightness),
            (self.contrast, color_kernels.contrast),
            (self.saturation, color_kernels.saturation),
            (self.hue, color_kernels.hue),
        ]
        for limits, change in self.draws.shuffle(steps):
            factor = limits[0] if limits[0] == limits[1] else self.draws.uniform(*limits)
            if factor != (0 if change is color_kernels.hue else 1):
                image = change(image, factor)
        return image.copy()

    def on_pil(self, image):
        limits = (self.brightness, self.contrast, self.saturation, self.hue)
        factors = [rng_streams.python().uniform(*pair) for pair in limits]
        names = ["Brightness", "Contrast", "Color", None]
        steps = list(zip(names, factors))
        rng_streams.python().shuffle(steps)
        for name, factor in steps:
            image = enhance(image, name, factor) if name else pil_hue(image, factor)
        return image


class RandomColor(ImageTransform):
    """Saturation by a random factor in `degrees`."""

    random = True

    def __init__(self, degrees=(0.1, 1.9)):
        self.degrees = checks.pair("RandomColor", "degrees", degrees, 0)

    def on_array(self, image):
        self.need_channels(image, 3)
        if image.dtype.name not in ("uint8", "uint16", "float32"):
            raise self.failure(f"the image must be uint8, uint16 or float32, but its dtype is {image.dtype}")
        return color_kernels.saturation(image, self.draws.uniform(*self.degrees))

    def on_pil(self, image):
        low, high = self.degrees
        return enhance(image, "Color", (high - low) * rng_streams.python().random() + low)


class RandomSharpness(ImageTransform):
    """Sharpness by a random factor in `degrees`."""

    random = True

    def __init__(self, degrees=(0.1, 1.9)):
        self.degrees = checks.pair("RandomSharpness", "degrees", degrees, 0)

    def on_array(self, image):
        return color_kernels.sharpness(image, self.draws.uniform(*self.degrees))

    def on_pil(self, image):
        low, high = self.degrees
        return enhance(image, "Sharpness", (high - low) * rng_streams.python().random() + low)


class _Sometimes(ImageTransform):
    """A transform with a probability; otherwise the image stays."""

    random = True
    transform: ImageTransform

    def on_array(self, image):
        return self.transform.on_array(image) if self.draws.chance(self.prob) else image.copy()


class RandomAdjustSharpness(_Sometimes):
    """`AdjustSharpness` with a probability."""

    def __init__(self, degree: float, prob: float = 0.5):
        checks.number("RandomAdjustSharpness", "degree", degree, 0)
        checks.probability("RandomAdjustSharpness", prob)
        self.degree, self.prob, self.transform = degree, prob, AdjustSharpness(degree)


class RandomAutoContrast(_Sometimes):
    """`AutoContrast` with a probability."""

    def __init__(self, cutoff: float = 0.0, ignore=None, prob: float = 0.5):
        self.transform = AutoContrast(cutoff, ignore)
        checks.probability("RandomAutoContrast", prob)
        self.cutoff, self.ignore, self.prob = cutoff, self.transform.ignore, prob


class RandomEqualize(_Sometimes):
    """`Equalize` with a probability."""

    def __init__(self, prob: float = 0.5):
        checks.probability("RandomEqualize", prob)
        self.prob, self.transform = prob, Equalize()


class RandomInvert(_Sometimes):
    """`Invert` with a probability."""

    def __init__(self, prob: float = 0.5):
        checks.probability("RandomInvert", prob)
        self.prob, self.transform = prob, Invert()


class RandomGrayscale(ImageTransform):
    """A PIL image in grey, with a probability; the number of channels stays."""

    random = True

    def __init__(self, prob: float = 0.1):
        checks.probability("RandomGrayscale", prob)
        self.prob = prob

    def __call__(self, img):
        need_pil("RandomGrayscale", img)
        return to_grey(img, 1 if img.mode == "L" else 3) if self.prob > rng_streams.python().random() else img


class RandomPosterize(ImageTransform):
    """`Posterize` with random bits: a number, or (smallest, largest)."""

    random = True

    def __init__(self, bits=(8, 8)):
        checks.kind("RandomPosterize", "bits", bits, (list, tuple, int))
        if isinstance(bits, int):
            checks.integer("RandomPosterize", "bits", bits, 1, 8)
        else:
            checks.pair("RandomPosterize", "bits", bits, 1, 8)
            for v in bits:
                checks.integer("RandomPosterize", "bits", v, 0, 255)
        self.bits = bits

    def on_array(self, image):
        self.need_bytes(image)
        low, high = (self.bits, self.bits) if isinstance(self.bits, int) else self.bits
        return color_kernels.posterize(image, low if low == high else self.draws.integer(low, high))


class RandomSolarize(ImageTransform):
    """`Solarize` between two random thresholds in a range."""

    random = True

    def __init__(self, threshold=(0, 255)):
        checks.kind("RandomSolarize", "threshold", threshold, (list, tuple))
        checks.pair("RandomSolarize", "threshold", threshold, 0, 255)
        self.threshold = tuple(threshold)

    def on_array(self, image):
        if image.ndim == 3 and image.shape[2] not in (1, 3):
            self.need_channels(image, 1, 3)
        low, high = int(self.threshold[0]), int(self.threshold[1])
        return color_kernels.solarize(
            image, *sorted((self.draws.integer(low, high), self.draws.integer(low, high)))
        )


# Principal components of the colours of ImageNet, scaled by the roots of their variances
# (Krizhevsky, Sutskever and Hinton 2012, section 4.1).
_LIGHT = np.array(
    [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]
) * np.array([55.46, 4.794, 1.148])


class RandomLighting(ImageTransform):
    """Light of a random colour added: normal draws with deviation `alpha` along the colours of ImageNet."""

    random = True

    def __init__(self, alpha: float = 0.05):
        checks.number("RandomLighting", "alpha", alpha, 0)
        self.alpha = alpha

    def on_array(self, image):
        self.need_channels(image, 3)
        light = _LIGHT @ [self.draws.normal(self.alpha) for _ in range(3)]
        return resample.to_dtype(image.astype(np.float64) + light, image.dtype)

    def on_pil(self, image):
        light = _LIGHT @ rng_streams.numpy().normal(0.0, self.alpha, 3)
        values = np.array(image.convert("RGB")).astype(np.float64) + light
        return pillow().fromarray(np.clip(values, 0, 255).astype(np.uint8))
