"""What image transforms share: which inputs they take, where they run, and their random numbers."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from mycelia.dataset.execution import rng_streams
from mycelia.dataset.vision.draws import Draws
from mycelia.engine.base import errors

# A pixel takes up to 4 bytes. Of a small image any promise is believed; a large one needs a file:
# deflate makes pixels up to 1032 times as small, LZW up to 2730 times.
_PIXEL, _SMALL, _RATIO = 4, 64 << 20, 4096


def is_pil(image) -> bool:
    """Whether `image` is a PIL image; Pillow is not imported for the answer."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(image, module.Image)


def pillow(name: str = "Image"):
    """A module of Pillow. ImportError that says what to install."""
    import importlib

    try:
        return importlib.import_module(f"PIL.{name}")
    except ImportError as cause:
        raise ImportError("images need Pillow: pip install pillow") from cause


def check_pixels(op: str, size: tuple[int, int], size_bytes: int) -> None:
    """RuntimeError for an image that would take far more memory than a file of so many bytes can mean."""
    width, height = size
    if width * height * _PIXEL > max(_SMALL, size_bytes * _RATIO):
        raise errors.runtime_error(
            op,
            f"the image would have {width} x {height} pixels, the file has {size_bytes} bytes: it is damaged",
        )


@contextlib.contextmanager
def opened_image(source, op: str) -> Iterator[Any]:
    """The PIL image of a file or stream; RuntimeError about `op` for what is none, and when reading fails."""
    name = f"{source}: " if isinstance(source, (str, os.PathLike)) else ""
    try:
        with pillow().open(source) as image:
            at = image.fp.tell()
            size_bytes = image.fp.seek(0, os.SEEK_END)
            image.fp.seek(at)
            check_pixels(op, image.size, size_bytes)
            yield image
    except errors.MyceliaError as e:
        e.message = name + e.message
        raise
    except ImportError:
        raise
    except Exception as cause:  # of any kind: formats are read by many hands
        why = cause if isinstance(cause, OSError) else f"{type(cause).__name__}: {cause}"
        raise errors.runtime_error(op, f"{name}the bytes are no image that can be read: {why}") from None


def in_8_bits(image) -> Any:
    """16-bit greys by their upper 8 bits, which `convert` would cut off; other PIL images as they are."""
    if not image.mode.startswith("I;16"):
        return image
    return pillow().fromarray((np.asarray(image) >> 8).astype(np.uint8))


def need_pil(op: str, image) -> None:
    """TypeError unless `image` is a PIL image."""
    if not is_pil(image):
        raise errors.type_error(op, f"the image must be a PIL image (see ToPIL), but got {type(image)}")


def need_array(op: str, image) -> None:
    """TypeError unless `image` is an array."""
    if not isinstance(image, np.ndarray):
        raise errors.type_error(op, f"the image must be a NumPy array, but got {type(image)}")


class ImageTransform:
    """A transform of one image; several images get the same random numbers.

    `on_array` takes [H, W] or [H, W, C]; with `batches` also more leading axes. `on_pil`, where it is there,
    takes a PIL image and gives one. Errors: TypeError for another input, RuntimeError for a wrong shape.
    """

    random = False
    batches = False
    on_pil = None
    ranks = (2, 3)
    device_target = "CPU"

    def __call__(self, *images):
        if not images:
            raise errors.runtime_error(type(self).__name__, "an image is needed")
        for image in images:
            if not isinstance(image, np.ndarray) and not is_pil(image):
                raise errors.type_error(
                    type(self).__name__,
                    f"Input should be NumPy or PIL image, got {type(image)}.",
                )
        if self.random and not rng_streams.active():
            self._draws = Draws()  # a call outside of a pipeline starts at the seed, if there is one
        if len(images) == 1:
            return self._one(images[0])
        if not self.random:
            raise self.failure(
                f"The op is OneToOne, can only accept one tensor as input. It got {len(images)}"
            )
        state = self.draws.state()
        results = []
        for image in images:
            self.draws.restore(state)
            results.append(self._one(image))
        return tuple(results)

    def _one(self, image):
        if is_pil(image):
            if self.on_pil is not None:
                return self.on_pil(image)
            image = np.asarray(image)
        if image.ndim > 3 and self.batches:
            state = self.draws.state() if self.random else None
            frames = []
            for frame in image.reshape((-1, *image.shape[-3:])):
                if state is not None:
                    self.draws.restore(state)
                frames.append(self.on_array(frame))
            return np.stack(frames).reshape(image.shape[:-3] + frames[0].shape)
        if self.ranks and image.ndim not in self.ranks:
            raise self.unfit("dimension", f"<H,W,C> or <H,W>, but its shape is {list(image.shape)}")
        return self.on_array(image)

    def on_array(self, image: np.ndarray) -> np.ndarray:
        """The transform of an array."""
        raise NotImplementedError(f"{type(self).__name__} does not take arrays")

    def failure(self, message: str) -> BaseException:
        """The error of an image that does not fit."""
        return errors.runtime_error(type(self).__name__, message)

    def unfit(self, what: str, wanted: str) -> BaseException:
        """The error of an image whose `what` (dimension, channel, data type) is not as wanted."""
        return self.failure(
            f"the {what} of image tensor does not match the requirement of operator. It should be {wanted}"
        )

    def need_channels(self, image: np.ndarray, *counts: int) -> None:
        """RuntimeError unless `image` is [H, W, C] with C in `counts`."""
        if image.ndim != 3 or image.shape[2] not in counts:
            wanted = " or ".join(str(count) for count in counts)
            raise self.unfit("channel", f"[H, W, {wanted}], but its shape is {list(image.shape)}")

    def need_bytes(self, image: np.ndarray) -> None:
        """RuntimeError unless `image` is uint8."""
        if image.dtype != np.uint8:
            raise self.unfit("data type", f"uint8, but it is {image.dtype}")

    @property
    def draws(self) -> Draws:
        """The random numbers of the row in a pipeline; elsewhere the transform's own, seeded at first use."""
        of_row = rng_streams.draws()
        if of_row is not None:
            return of_row
        own = self.__dict__.get("_draws")
        if own is None:
            own = self._draws = Draws()
        return own

    def device(self, device_target: str = "CPU"):
        """Where the transform runs: "CPU" here; "Ascend" is refused when there is none."""
        if not isinstance(device_target, str):
            raise errors.type_error(
                type(self).__name__, f"device_target must be a str, but got {device_target!r}"
            )
        if device_target not in ("CPU", "Ascend"):
            raise errors.value_error(
                type(self).__name__, f"device_target must be CPU or Ascend, but got {device_target!r}"
            )
        self.device_target = device_target
        return self

    def parse(self):
        """The operation that a pipeline runs: the transform itself."""
        return self


def pil_mode(op: str, interpolation: int):
    """Pillow's filter for an `Inter`; TypeError for one that PIL images do not have."""
    names = {0: "NEAREST", 1: "LANCZOS", 2: "BILINEAR", 3: "BICUBIC"}
    if interpolation not in names:
        raise errors.type_error(op, f"{interpolation!r} is not there for PIL images")
    return getattr(pillow().Resampling, names[interpolation])
