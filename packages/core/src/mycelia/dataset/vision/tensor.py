"""Conversions: decoding, normalization, layout, dtype."""

from __future__ import annotations

import io
import math
import numbers

import numpy as np

from mycelia.dataset.transforms import TypeCast
from mycelia.dataset.vision import checks, color_kernels, native
from mycelia.dataset.vision.base import (
    ImageTransform,
    check_pixels,
    in_8_bits,
    is_pil,
    need_array,
    need_pil,
    opened_image,
    pillow,
)
from mycelia.dataset.vision.enums import ConvertMode
from mycelia.engine import _data
from mycelia.engine.base import errors


def decode(data: np.ndarray, op: str = "Decode", pil: bool = False):
    """Bytes of an image file, uint8 [n] -> uint8 [H, W, 3], or a PIL image.

    JPEGs by libjpeg-turbo itself where there is one; other formats, and what it cannot read, by Pillow.
    """
    if not pil:
        if shape := native.jpeg_shape(data):
            check_pixels(op, (shape[1], shape[0]), data.size)
        pixels = native.decoded(data)
        if pixels is not None:
            return pixels
    try:
        with opened_image(io.BytesIO(data.tobytes()), op) as image:
            converted = in_8_bits(image).convert("RGB")
    except errors.MyceliaRuntimeError as cause:
        if pil:
            raise errors.value_error(op, cause.message) from None
        raise
    return converted if pil else np.array(converted)


class Decode(ImageTransform):
    """An encoded image, uint8 [n], as uint8 [H, W, 3] in RGB, or as a PIL image."""

    def __init__(self, to_pil: bool = False):
        checks.kind("Decode", "to_pil", to_pil, bool)
        self.to_pil = to_pil

    def __call__(self, img):
        if isinstance(img, bytes):
            img = np.frombuffer(img, np.uint8)
        if not isinstance(img, np.ndarray) or img.dtype.kind == "U" or img.ndim != 1:
            what = f"{img.dtype} {list(img.shape)}" if isinstance(img, np.ndarray) else type(img)
            raise errors.type_error(
                "Decode",
                "The type of the encoded image should be <class 'numpy.ndarray'> of bytes [n], but got "
                f"{what}",
            )
        return decode(img, pil=self.to_pil)


def _per_channel(transform: ImageTransform, image: np.ndarray):
    """Mean and std shaped for `image`."""
    mean, std = np.asarray(transform.mean, np.float32), np.asarray(transform.std, np.float32)
    if image.ndim < 3:
        channels, shape = 1, ()
    elif transform.is_hwc:
        channels, shape = image.shape[-1], (-1,)
    else:
        channels, shape = image.shape[-3], (-1, 1, 1)
    if len(mean) == 1:
        return mean[0], std[0]
    if len(mean) != channels:
        raise transform.failure(
            "number of channels does not match the size of mean and std vectors: the image has "
            f"{channels}, they have {len(mean)}"
        )
    return mean.reshape(shape), std.reshape(shape)


class Normalize(ImageTransform):
    """``(image - mean) / std`` per channel, float32; channels last unless `is_hwc` is False."""

    ranks = ()

    def __init__(self, mean, std, is_hwc: bool = True):
        checks.statistics("Normalize", mean, std)
        checks.kind("Normalize", "is_hwc", is_hwc, bool)
        self.mean, self.std, self.is_hwc = mean, std, is_hwc

    def on_array(self, image):
        if image.ndim < 2:
            raise self.failure(f"the image must have height and width, but its shape is {list(image.shape)}")
        mean, std = _per_channel(self, image)
        if self.is_hwc and image.ndim == 3 and image.flags.c_contiguous:
            if native.fits(image):  # a value for each byte of each channel
                bytes_ = np.arange(256, dtype=np.float32)
                return native.looked_up(image, (bytes_ - mean.reshape(-1, 1)) / std.reshape(-1, 1))
            if image.dtype == np.float32 and image.size:
                return _data.normalize(image, *(np.resize(v, image.shape[2]) for v in (mean, std)))
        return (image.astype(np.float32) - mean) / std


class NormalizePad(ImageTransform):
    """`Normalize`, then one more channel of zeros; float32 or float16."""

    ranks = (3,)

    def __init__(self, mean, std, dtype: str = "float32", is_hwc: bool = True):
        checks.statistics("NormalizePad", mean, std)
        checks.kind("NormalizePad", "is_hwc", is_hwc, bool)
        checks.kind("NormalizePad", "dtype", dtype, str)
        if dtype not in ("float32", "float16"):
            raise errors.value_error("NormalizePad", f"dtype must be float32 or float16, but got {dtype!r}")
        self.mean, self.std, self.dtype, self.is_hwc = mean, std, dtype, is_hwc

    def on_array(self, image):
        if len(self.mean) != image.shape[-1 if self.is_hwc else 0]:
            raise self.failure(f"{len(self.mean)} means do not fit an image of shape {list(image.shape)}")
        mean, std = _per_channel(self, image)
        result = (image.astype(np.float32) - mean) / std
        # The zeros follow all values, also in the layout [H, W, C]: MindSpore's rows are like that.
        shape = (*image.shape[:2], image.shape[2] + 1) if self.is_hwc else (len(image) + 1, *image.shape[1:])
        padded = np.zeros(math.prod(shape), self.dtype)
        padded[: result.size] = result.ravel()
        return padded.reshape(shape)


class Rescale(ImageTransform):
    """``image * rescale + shift`` in float32."""

    ranks = ()

    def __init__(self, rescale: float, shift: float):
        checks.number("Rescale", "rescale", rescale, kinds=(numbers.Number,))
        checks.number("Rescale", "shift", shift, kinds=(numbers.Number,))
        self.rescale, self.shift = rescale, shift

    def on_array(self, image):
        # One rounding, as a fused multiply-add would have it, needs the product in float64.
        return (image.astype(np.float64) * np.float32(self.rescale) + np.float32(self.shift)).astype(
            np.float32
        )


class HWC2CHW(ImageTransform):
    """[H, W, C] -> [C, H, W]. RuntimeError for another rank."""

    def on_array(self, image):
        return image if image.ndim == 2 else channels_first(image)


def channels_first(image: np.ndarray) -> np.ndarray:
    """[H, W, C] -> [C, H, W]."""
    if image.dtype.kind in "biuf" and image.itemsize <= 8 and image.flags.c_contiguous:
        return _data.planes(image)
    return np.ascontiguousarray(image.transpose(2, 0, 1))


class ToTensor(ImageTransform):
    """[H, W, C] in 0..255 -> [C, H, W] in 0..1, of `output_type`."""

    def __init__(self, output_type=np.float32):
        from mycelia.engine.base.dtypes import as_dtype

        try:
            self.output_type = as_dtype(output_type).np
        except (TypeError, ValueError, KeyError):
            raise errors.type_error(
                "ToTensor", f"output_type must be a dtype, but got {output_type!r}"
            ) from None

    def on_array(self, image):
        image = image if image.ndim == 3 else image[:, :, None]
        if native.fits(image):
            table = (np.arange(256, dtype=np.float32) / np.float32(255)).astype(self.output_type)
            table = np.repeat(table[None], image.shape[2], axis=0)
            return native.changed(image, planar=True, table=table)
        scaled = channels_first(image).astype(np.float32) / np.float32(255)
        return scaled.astype(self.output_type, copy=False)


class ToNumpy(ImageTransform):
    """A PIL image, or a list, as an array."""

    def __call__(self, *images):
        results = tuple(np.array(image) for image in images)
        return results if len(results) > 1 else results[0]


class ToPIL(ImageTransform):
    """An array [H, W] or [H, W, C] with up to 4 channels as a PIL image."""

    def __call__(self, img):
        if is_pil(img):
            return img
        need_array("ToPIL", img)
        if img.ndim not in (2, 3):
            raise errors.value_error(
                "ToPIL", f"the image must have 2 or 3 axes, but its shape is {list(img.shape)}"
            )
        if img.ndim == 3 and img.shape[-1] > 4:
            raise errors.value_error(
                "ToPIL", f"the image must have at most 4 channels, but got {img.shape[-1]}"
            )
        if img.ndim == 3 and img.shape[-1] == 1:
            img = img[:, :, 0]
        if (img.ndim == 3 and img.dtype != np.uint8) or img.dtype.name in ("float16", "int64", "uint64"):
            raise errors.type_error(
                "ToPIL", f"no PIL image has the dtype {img.dtype} and the shape {list(img.shape)}"
            )
        return pillow().fromarray(img)


class ToType(TypeCast):
    """Convert to another dtype."""


class LinearTransformation(ImageTransform):
    """``(flattened image - mean_vector) @ transformation_matrix`` in the shape of the image (whitening)."""

    def __init__(self, transformation_matrix, mean_vector):
        checks.kind("LinearTransformation", "transformation_matrix", transformation_matrix, np.ndarray)
        checks.kind("LinearTransformation", "mean_vector", mean_vector, np.ndarray)
        rows, columns = transformation_matrix.shape
        if rows != columns or mean_vector.shape[0] != rows:
            raise errors.value_error(
                "LinearTransformation",
                f"the matrix must be square and as long as the mean, but their shapes are "
                f"{[rows, columns]} and {list(mean_vector.shape)}",
            )
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def __call__(self, np_img):
        need_array("LinearTransformation", np_img)
        if np_img.size != self.transformation_matrix.shape[0]:
            raise errors.value_error(
                "LinearTransformation",
                f"the image has {np_img.size} values, the matrix is for {len(self.transformation_matrix)}",
            )
        flat = np_img.reshape(1, -1) - self.mean_vector
        return (flat @ self.transformation_matrix).reshape(np_img.shape)


# Channels taken, in order; 3 is the alpha channel, opaque where the image has none.
_ORDERS = {
    0: (0, 1, 2, 3),
    1: (0, 1, 2),
    2: (2, 1, 0, 3),
    3: (2, 1, 0),
    4: (2, 1, 0),
    5: (2, 1, 0, 3),
    8: (0, 1, 2),
    9: (0, 1, 2, 3),
}
_GREYS = {6: "B", 7: "R", 10: "B", 11: "R"}


class ConvertColor(ImageTransform):
    """Another order or number of channels, see `ConvertMode`."""

    def __init__(self, convert_mode: ConvertMode):
        checks.kind("ConvertColor", "convert_mode", convert_mode, ConvertMode)
        self.convert_mode = convert_mode

    def on_array(self, image):
        mode = int(self.convert_mode)
        flat = image if image.ndim == 3 else image[:, :, None]
        counts = (3, 4) if mode in _GREYS else (1,) if mode in (8, 9) else (1, 3, 4)
        if flat.shape[2] not in counts:
            raise self.failure(f"{self.convert_mode.name} needs {counts} channels, but got {flat.shape[2]}")
        if image.dtype.name not in ("uint8", "uint16", "float32"):
            raise self.failure(f"the image must be uint8, uint16 or float32, but its dtype is {image.dtype}")
        if mode in _GREYS:
            return color_kernels.grey(flat, _GREYS[mode])
        planes = [flat[..., i] for i in range(flat.shape[2])]
        if len(planes) == 1:
            planes = planes * 3
        if len(planes) == 3:
            opaque = np.iinfo(image.dtype).max if image.dtype.kind == "u" else 1
            planes.append(np.full(image.shape[:2], opaque, image.dtype))
        return np.stack([planes[i] for i in _ORDERS[mode]], axis=-1)


class _HsvTransform(ImageTransform):
    """Colours of float arrays [.., H, W, C] or [.., C, H, W] in 0..1."""

    def __init__(self, is_hwc: bool = False):
        checks.kind(type(self).__name__, "is_hwc", is_hwc, bool)
        self.is_hwc = is_hwc

    def __call__(self, image):
        op = type(self).__name__
        need_array(op, image)
        axis = -1 if self.is_hwc else -3
        if image.ndim not in (3, 4) or image.shape[axis] != 3:
            raise errors.type_error(
                op, f"the image must have 3 channels, but its shape is {list(image.shape)}"
            )
        channels = (np.take(image, i, axis).astype(np.float64) for i in range(3))
        return np.stack(self.convert(*channels), axis=axis)


class RgbToHsv(_HsvTransform):
    """RGB -> hue, saturation, value, all in 0..1, float64."""

    @staticmethod
    def convert(r, g, b):
        """Planes of red, green, blue -> planes of hue, saturation, value."""
        high, low = np.maximum(np.maximum(r, g), b), np.minimum(np.minimum(r, g), b)
        span = high - low
        grey = span == 0
        safe = np.where(grey, 1.0, span)
        rc, gc, bc = (high - r) / safe, (high - g) / safe, (high - b) / safe
        h = np.where(r == high, bc - gc, np.where(g == high, 2.0 + rc - bc, 4.0 + gc - rc))
        h = np.where(grey, 0.0, (h / 6.0) % 1.0)
        return h, np.where(grey, 0.0, span / np.where(high == 0, 1.0, high)), high


class HsvToRgb(_HsvTransform):
    """Hue, saturation, value in 0..1 -> RGB, float64."""

    @staticmethod
    def convert(h, s, v):
        """Planes of hue, saturation, value -> planes of red, green, blue."""
        sector = (h * 6.0).astype(np.int64)
        part = h * 6.0 - sector
        low, fall, rise = v * (1.0 - s), v * (1.0 - s * part), v * (1.0 - s * (1.0 - part))
        sector = sector % 6
        return (
            np.choose(sector, [v, fall, low, low, rise, v]),
            np.choose(sector, [rise, v, v, fall, low, low]),
            np.choose(sector, [low, low, rise, v, v, fall]),
        )


class Grayscale(ImageTransform):
    """A PIL image in grey, with one or three channels."""

    def __init__(self, num_output_channels: int = 1):
        checks.kind("Grayscale", "num_output_channels", num_output_channels, int)
        if num_output_channels not in (1, 3):
            raise errors.value_error(
                "Grayscale", f"num_output_channels must be 1 or 3, but got {num_output_channels}"
            )
        self.num_output_channels = num_output_channels

    def __call__(self, img):
        need_pil("Grayscale", img)
        return to_grey(img, self.num_output_channels)


def to_grey(image, channels: int):
    """A PIL image in grey with 1 or 3 channels."""
    image = image.convert("L")
    return image if channels == 1 else pillow().merge("RGB", (image,) * 3)
