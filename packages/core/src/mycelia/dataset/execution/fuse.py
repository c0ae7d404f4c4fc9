"""Runs of image transforms as one step.

Decode, crop, resize, mirror, normalize, transpose: one after the other, each makes an image of its own, and
most of the first one is never looked at. A `Fused` works out from the sizes alone which part of the file's
image ends up where, and lets native code decode, resize, look up and place just that part, in one pass. What
it gives is equal to the steps' result to the last bit: resizing rounds to bytes as it would alone, and what
follows on bytes is a table of 256 values that the steps themselves have computed.

What does not fit (another format, a crop that needs padding, wrong input) runs step by step, with the same
random numbers; so do errors, which name the user's operation.
"""

from __future__ import annotations

import numpy as np

from mycelia.dataset import nodes, transforms
from mycelia.dataset.execution import rng_streams
from mycelia.dataset.vision import color, crops, geometry, native, tensor
from mycelia.dataset.vision.enums import Inter
from mycelia.engine.base import errors


class _Misfit(Exception):
    """An image that the steps must do one by one."""


class _Frame:
    """Which part of the source is where in the result: a box, its size, and a window of that."""

    __slots__ = ("box", "columns", "flip_x", "flip_y", "mode", "rows", "size", "window")

    def __init__(self, rows: int, columns: int):
        self.rows, self.columns = rows, columns  # of the image as it is so far
        self.box, self.size, self.window = (0, 0, rows, columns), None, None
        self.mode = Inter.LINEAR
        self.flip_x = self.flip_y = False

    def crop(self, top: int, left: int, rows: int, columns: int) -> None:
        """A rectangle of the image so far."""
        if top < 0 or left < 0 or rows > self.rows - top or columns > self.columns - left:
            raise _Misfit
        top = self.rows - top - rows if self.flip_y else top
        left = self.columns - left - columns if self.flip_x else left
        if self.size is None:
            self.box = (self.box[0] + top, self.box[1] + left, rows, columns)
        else:
            self.window = (self.window[0] + top, self.window[1] + left, rows, columns)
        self.rows, self.columns = rows, columns

    def resize(self, size, mode: Inter) -> None:
        """The image so far, in another size."""
        rows, columns = geometry.wanted(self.rows, self.columns, size)
        if mode not in native.MODES or not geometry.reachable(self.rows, self.columns, rows, columns):
            raise _Misfit
        self.size, self.window, self.mode = (rows, columns), (0, 0, rows, columns), mode
        self.rows, self.columns = rows, columns

    def mirror(self, axis: int) -> None:
        """Left and right exchanged (axis 1), or top and bottom."""
        if axis:
            self.flip_x = not self.flip_x
        else:
            self.flip_y = not self.flip_y


def _random_resized_crop(op, frame: _Frame) -> None:
    frame.crop(*op.choose(frame.rows, frame.columns))
    frame.resize(op.size, op.interpolation)


def _resized_crop(op, frame: _Frame) -> None:
    frame.crop(*op.box)
    frame.resize(op.size, op.interpolation)


def _center_crop(op, frame: _Frame) -> None:
    rows, columns = op.size
    frame.crop((frame.rows - rows) // 2, (frame.columns - columns) // 2, rows, columns)


def _random_crop(op, frame: _Frame) -> None:
    padding, top, left = op.choose(frame.rows, frame.columns)
    if any(padding):
        raise _Misfit
    frame.crop(top, left, *op.size)


def _random_flip(op, frame: _Frame) -> None:
    if op.draws.chance(op.prob):
        frame.mirror(op.axis)


# What a step does to the frame, by its exact type: a subclass may do something else.
_RESIZES = {
    geometry.Resize: lambda op, frame: frame.resize(op.size, op.interpolation),
    geometry.RandomResize: lambda op, frame: frame.resize(op.size, op.mode()),
    crops.ResizedCrop: _resized_crop,
    crops.RandomResizedCrop: _random_resized_crop,
    crops.RandomCropDecodeResize: _random_resized_crop,
}
_CROPS = {
    crops.Crop: lambda op, frame: frame.crop(*op.coordinates, *op.size),
    crops.CenterCrop: _center_crop,
    crops.RandomCrop: _random_crop,
}
_FLIPS = {
    geometry.HorizontalFlip: lambda op, frame: frame.mirror(op.axis),
    geometry.VerticalFlip: lambda op, frame: frame.mirror(op.axis),
    geometry.RandomHorizontalFlip: _random_flip,
    geometry.RandomVerticalFlip: _random_flip,
}
_FRAMED = _RESIZES | _CROPS | _FLIPS
_DECODES = (tensor.Decode, crops.RandomCropDecodeResize)
_PLANES = (tensor.HWC2CHW, tensor.ToTensor)  # channels first
# What gives each byte a value that depends on nothing else but the channel.
_POINTS = (
    tensor.Normalize, tensor.Rescale, tensor.ToType, transforms.TypeCast, color.Invert, color.Posterize,
    color.Solarize, color.AdjustBrightness, color.AdjustGamma,
)  # fmt: skip


class Fused:
    """Several image transforms as one; `steps` are the user's operations."""

    def __init__(self, steps: list):
        self.steps = list(steps)
        self.__name__ = ", ".join(type(op).__name__ for op in steps)
        self._encoded = type(steps[0]) in _DECODES
        self._frame_steps = [(_FRAMED[type(op)], op) for op in steps if type(op) in _FRAMED]
        self._random = any(getattr(op, "random", False) for op in steps)
        self._tail = [op for op in steps if type(op) in _POINTS or type(op) in _PLANES]
        self._planar = any(type(op) in _PLANES for op in steps)
        self._tables: dict[int, np.ndarray | None] = {}

    def __reduce__(self):
        return Fused, (self.steps,)

    def __call__(self, *values):
        draws = rng_streams.draws() if self._random else None
        if len(values) == 1 and isinstance(values[0], np.ndarray) and (draws or not self._random):
            state = draws.state() if draws else None
            try:
                result = self._at_once(values[0])
            except (_Misfit, errors.MyceliaError):
                result = None
            if result is not None:
                return result
            if draws:
                draws.restore(state)
        return self._one_by_one(values)

    def _at_once(self, source: np.ndarray) -> np.ndarray | None:
        """The result; None if it cannot be had like this."""
        if self._encoded:
            shape = native.jpeg_shape(source) if source.ndim == 1 else None
            if shape is None or not shape[2]:  # a file that is cut off must fail, wherever the crop lies
                return None
            channels = 3
        elif native.fits(source):
            shape, channels = source.shape, source.shape[2]
        else:
            return None
        frame = _Frame(*shape[:2])
        for place, op in self._frame_steps:
            place(op, frame)
        flips, table = (frame.flip_x, frame.flip_y), self._table(channels)
        return native.changed(
            source,
            frame.box,
            frame.size,
            frame.mode,
            frame.window,
            flips,
            self._planar,
            table,
            rng_streams.place(),
        )

    def _table(self, channels: int) -> np.ndarray | None:
        """What the steps after the geometry make of each byte of each channel; None if nothing."""
        if channels not in self._tables:
            self._tables[channels] = self._probed(channels)
        return self._tables[channels]

    def _probed(self, channels: int) -> np.ndarray | None:
        if all(type(op) is tensor.HWC2CHW for op in self._tail):
            return None
        image = np.repeat(np.arange(256, dtype=np.uint8), channels).reshape(256, 1, channels)
        try:
            for op in self._tail:
                image = op(image)
        except Exception:  # the steps fail on images too, and then say why
            raise _Misfit from None
        if image.shape != ((channels, 256, 1) if self._planar else (256, 1, channels)):
            raise _Misfit
        return np.ascontiguousarray(image.reshape(channels, 256) if self._planar else image[:, 0].T)

    def _one_by_one(self, values: tuple):
        for op in self.steps:
            try:
                values = op(*values)
            except Exception as e:
                raise nodes.operation_failed(op, True, e) from e
            if not isinstance(values, tuple):
                values = (values,)
        return values if len(values) > 1 else values[0]


class _Run:
    """Transforms that may become one step, as they are collected."""

    def __init__(self):
        self.steps: list = []
        self.resized = self.flipped = self.pointed = self.planar = False

    def take(self, op) -> bool:
        """Add a transform, if the steps so far let it join."""
        kind = type(op)
        if kind in _DECODES and (self.steps or getattr(op, "to_pil", False)):
            return False
        if kind in _RESIZES:
            # Resizing what is mirrored rounds to the other side, and values that are no bytes otherwise.
            if self.resized or self.flipped or self.pointed or self.planar:
                return False
            self.resized = True
        elif kind in _CROPS or kind in _FLIPS:
            if self.planar:
                return False
            self.flipped = self.flipped or kind in _FLIPS
        elif kind in _PLANES:
            if self.planar:
                return False
            self.planar = True
        elif kind in _POINTS:
            self.pointed = True
        elif kind not in _DECODES:
            return False
        self.steps.append(op)
        return True

    def done(self) -> list:
        """One step, or what there is."""
        gains = len(self.steps) > 1 and any(type(op) not in _POINTS for op in self.steps)
        return [Fused(self.steps)] if gains else self.steps


def _flat(operations):
    for op in operations:
        if type(op) is transforms.Compose and all(_Run().take(inner) for inner in op.transforms):
            yield from op.transforms
        else:
            yield op


def fused(operations: list) -> list:
    """The operations of a map, each run of image transforms that can be one step as a `Fused`."""
    out: list = []
    run = _Run()
    for op in _flat(operations):
        if run.take(op):
            continue
        out += run.done()
        run = _Run()
        if not run.take(op):
            out.append(op)
    return out + run.done()
