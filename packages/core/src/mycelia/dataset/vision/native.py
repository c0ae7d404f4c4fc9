"""The native side of image transforms, `mycelia.engine._data`: which images it takes, where its libjpeg is.

JPEGs are decoded by libjpeg-turbo: the shared library that Pillow's wheel brings, or else the system's. It is
loaded when the first image is decoded; nothing has to be installed to build against it. Without it, and for
other formats, Pillow decodes.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import numpy as np

from mycelia.dataset.vision.enums import Inter
from mycelia.engine import _data

MODES = (Inter.NEAREST, Inter.LINEAR, Inter.CUBIC, Inter.AREA)
_MOST_PIXELS = 2**27  # of a JPEG: about where Pillow suspects a decompression bomb, and says so


def _libraries():
    """Where a libjpeg may be, the best one first."""
    spec = importlib.util.find_spec("PIL")
    if spec is not None and spec.origin:
        package = Path(spec.origin).parent
        yield from sorted(package.parent.glob("[Pp]illow.libs/libjpeg-*.so.62*"))
        yield from sorted(package.glob(".dylibs/libjpeg.62*.dylib"))
    yield from ("libjpeg.so.62", "libjpeg.62.dylib")


@functools.cache
def jpeg() -> bool:
    """Whether JPEGs can be decoded here."""
    return any(not _data.load_jpeg(str(path)) for path in _libraries())


def jpeg_shape(data: np.ndarray) -> tuple[int, int, bool] | None:
    """(rows, columns, whether the end is there) of a JPEG that can be decoded here; None for other bytes."""
    if not jpeg() or data.dtype != np.uint8 or not data.flags.c_contiguous:
        return None
    shape = _data.jpeg_shape(data)
    return shape if shape is not None and shape[0] * shape[1] <= _MOST_PIXELS else None


def decoded(data: np.ndarray) -> np.ndarray | None:
    """uint8 [n] -> uint8 [H, W, 3]; None for other formats and damaged data."""
    shape = jpeg_shape(data)
    return None if shape is None else changed(data, box=(0, 0, *shape[:2]))


def fits(image: np.ndarray) -> bool:
    """Whether an image is one that `changed` takes: uint8 [H, W, C], pixels next to each other."""
    if image.dtype != np.uint8 or image.ndim != 3 or not image.size:
        return False
    _, columns, channels = image.shape  # the stride of an axis of one element says nothing
    return (channels == 1 or image.strides[2] == 1) and (columns == 1 or image.strides[1] == channels)


def flat(image: np.ndarray) -> np.ndarray:
    """uint8 [H, W] or [H, W, C] as an image that `fits`."""
    image = image if image.ndim == 3 else image[:, :, None]
    return image if fits(image) else np.ascontiguousarray(image)


def changed(
    source,
    box=None,
    size=None,
    mode=Inter.LINEAR,
    window=None,
    flips=(False, False),
    planar=False,
    table=None,
    out=None,
) -> np.ndarray | None:
    """One pass over a JPEG's bytes or an image: its `box` (top, left, rows, columns), resized to `size`; of
    this the `window`, mirrored (left and right, top and bottom), each byte replaced by that of `table`
    [channels, 256], channels first if `planar`; in `out` if that has the result's shape and dtype. None for a
    damaged JPEG.
    """
    box = (0, 0, *source.shape[:2]) if box is None else box
    size = box[2:] if size is None else size
    window = (0, 0, *size) if window is None else window
    return _data.transform(source, box, size, mode, window, flips, planar, table, out)


def resized(image: np.ndarray, rows: int, columns: int, mode: Inter) -> np.ndarray:
    """uint8 [H, W] or [H, W, C] in another size."""
    return changed(flat(image), size=(rows, columns), mode=mode).reshape(rows, columns, *image.shape[2:])


def looked_up(image: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """Each byte of an image replaced by that of its channel's table; tables [256] or [channels, 256]."""
    pixels = flat(image)
    tables = np.ascontiguousarray(np.broadcast_to(tables, (pixels.shape[2], 256)))
    return changed(pixels, table=tables).reshape(image.shape)
