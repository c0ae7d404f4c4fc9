"""Data that shows which numbers a network computes: arrays, or folders with images or raw tensors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycelia_lite.enums import Format
from mycelia_lite.model import Model

_MOST = 65535
_METHODS = ("LINEAR", "NEAREST", "CUBIC")
_COLOURS = ("RGB", "GRAY", "BGR")

Sample = Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Folders:
    """Files of calibration data, a folder for each input; they are taken in the order of their names.

    paths: folder by the name of the input. most: files that are used, 0 for all. images: files are images,
    else raw tensors in the layout and dtype of the input. Of images, in this order: colour is RGB, BGR or
    GRAY; resize is (width, height) that they get, by method LINEAR, NEAREST or CUBIC; crop is (width, height)
    of the middle that stays; mean and std have a number for each channel, ``(x - mean) / std``.

    Errors: TypeError, ValueError that name the field.
    """

    paths: Mapping[str, str]
    most: int = 0
    images: bool = True
    colour: str = "RGB"
    resize: tuple[int, int] | None = None
    method: str = "LINEAR"
    crop: tuple[int, int] | None = None
    mean: Sequence[float] = ()
    std: Sequence[float] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.paths, Mapping) or not self.paths:
            raise TypeError(f"paths must be folders by the names of inputs, but got {self.paths!r}")
        if type(self.most) is not int or not 0 <= self.most <= _MOST:
            raise ValueError(f"most must be an int from 0 to {_MOST}, but got {self.most!r}")
        if self.colour not in _COLOURS:
            raise ValueError(f"colour must be one of {', '.join(_COLOURS)}, but got {self.colour!r}")
        if self.method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(_METHODS)}, but got {self.method!r}")
        for name in ("resize", "crop"):
            value = getattr(self, name)
            if value is not None and (len(value) != 2 or not all(type(n) is int and n > 0 for n in value)):
                raise ValueError(f"{name} must be (width, height), but got {value!r}")
        channels = 1 if self.colour == "GRAY" else 3
        for name in ("mean", "std"):
            value = np.asarray(getattr(self, name), np.float64)
            if value.size not in (0, channels) or value.ndim > 1 or not np.isfinite(value).all():
                raise ValueError(f"{name} must have {channels} numbers, but got {getattr(self, name)!r}")
        if any(s == 0 for s in self.std):
            raise ValueError(f"std must not be 0, but got {self.std!r}")


Data = Folders | Sequence[Any]


@dataclass(frozen=True)
class _Border:
    """An input as the file has it: -1 for open sizes."""

    name: str
    shape: list[int]
    dtype: np.dtype
    format: Format


def check(data: Any) -> None:
    """Errors: TypeError for what is no calibration data, ValueError if there is none."""
    if isinstance(data, Folders):
        return
    if isinstance(data, str | bytes | np.ndarray | Mapping) or not isinstance(data, Sequence):
        raise TypeError(
            "calibration must be Folders, or a list with an array for each run, or a dictionary of arrays by "
            f"the names of inputs, but got {type(data).__name__}"
        )
    if not data:
        raise ValueError("calibration has no data: at least one input of the network is needed")
    for i, each in enumerate(data):
        arrays = each.values() if isinstance(each, Mapping) else (each,)
        if not all(isinstance(a, np.ndarray) for a in arrays):
            raise TypeError(f"calibration[{i}] must be an array or a dictionary of them")


def samples(data: Data, model: Model) -> Iterator[list[np.ndarray]]:
    """Arrays for the inputs of `model`, run by run.

    Errors: ValueError that names the folder and file, or the array, which does not fit.
    """
    inputs = [_Border(t.name, t.shape, np.dtype(t.dtype.numpy), t.format) for t in model.get_inputs()]
    if not isinstance(data, Folders):
        for i, each in enumerate(data):
            yield _given(each, f"calibration[{i}]", inputs)
        return
    names = [t.name for t in inputs]
    if unknown := sorted(set(data.paths) - set(names)):
        raise ValueError(f"calibration: no input is called '{unknown[0]}', there are {', '.join(names)}")
    if missing := [n for n in names if n not in data.paths]:
        raise ValueError(f"calibration: there is no folder for the input '{missing[0]}'")
    files = [_files(data.paths[name], name) for name in names]
    if len({len(f) for f in files}) > 1:
        counts = ", ".join(f"{len(f)} for '{n}'" for f, n in zip(files, names, strict=True))
        raise ValueError(f"calibration: folders must have as many files each, but there are {counts}")
    count = min(len(files[0]), data.most or len(files[0]))
    if not data.images:
        for i in range(count):
            yield [_raw(f[i], t) for f, t in zip(files, inputs, strict=True)]
        return
    batch = inputs[0].shape[0] if inputs[0].shape else 1
    batch = max(batch, 1)
    for first in range(0, count, batch):
        places = [(first + k) % count for k in range(batch)]  # a last batch that is not full begins anew
        yield [_images([f[p] for p in places], t, data) for f, t in zip(files, inputs, strict=True)]


def _given(each: Any, name: str, inputs: Sequence[_Border]) -> list[np.ndarray]:
    if not isinstance(each, Mapping):
        if len(inputs) != 1:
            raise ValueError(f"{name}: the network has {len(inputs)} inputs: give arrays by their names")
        each = {inputs[0].name: each}
    if set(each) != {t.name for t in inputs}:
        raise ValueError(
            f"{name}: arrays for {', '.join(t.name for t in inputs)} are needed, but got {', '.join(each)}"
        )
    return [_fitting(each[t.name], t, f"{name} for the input '{t.name}'") for t in inputs]


def _fitting(array: np.ndarray, tensor: _Border, name: str) -> np.ndarray:
    wanted = tensor.dtype
    if array.dtype != wanted:
        raise ValueError(f"{name} must be {wanted.name}, but is {array.dtype.name}")
    shape = tensor.shape
    if array.ndim != len(shape) or any(n not in (m, -1) for m, n in zip(array.shape, shape)):
        raise ValueError(f"{name} must have the shape {shape}, but has {list(array.shape)}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} has elements that are NaN or infinite")
    return np.ascontiguousarray(array)


# ---- files


def _files(folder: str, name: str) -> list[str]:
    """The files of a folder by their names; hidden ones are left out."""
    place = f"calibration: the folder {folder} for the input '{name}'"
    try:
        found = sorted(n for n in os.listdir(folder) if not n.startswith("."))
    except OSError as error:
        raise ValueError(f"{place} cannot be read: {error.strerror}") from error
    if not found:
        raise ValueError(f"{place} is empty")
    paths = [os.path.join(folder, n) for n in found]
    for path in paths:
        if not os.path.isfile(path):
            raise ValueError(f"{place} has '{os.path.basename(path)}', which is no file")
    return paths


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ValueError(f"calibration: the file {path} cannot be read: {error.strerror}") from error


def _raw(path: str, tensor: _Border) -> np.ndarray:
    content, dtype, shape = _read(path), tensor.dtype, list(tensor.shape)
    one = int(np.prod([n for n in shape if n >= 0], dtype=np.int64)) * dtype.itemsize
    if shape.count(-1) > 1:
        raise ValueError(
            f"calibration: the file {path} has no shape, but the input '{tensor.name}' has several open "
            f"sizes, {shape}: give arrays, or fix them by inputShape"
        )
    count = len(content) // one if one else 0
    if len(content) != one * (count if -1 in shape else 1) or not content:
        most = f"whole multiples of {one}" if -1 in shape else str(one)
        raise ValueError(
            f"calibration: the file {path} has {len(content)} bytes, but the input '{tensor.name}', "
            f"{dtype.name}{shape}, takes {most}"
        )
    shape = [count if n < 0 else n for n in shape]
    return _fitting(np.frombuffer(content, dtype).reshape(shape), tensor, f"calibration: the file {path}")


def _images(paths: Sequence[str], tensor: _Border, how: Folders) -> np.ndarray:
    """A batch in the layout of the input, float32 or uint8 as the input is."""
    pixels = [_image(path, how) for path in paths]
    for path, image in zip(paths, pixels, strict=True):
        if image.shape != pixels[0].shape:
            raise ValueError(
                f"calibration: the images {paths[0]} and {path} go together, but one is "
                f"{_size(pixels[0])}, the other {_size(image)}: give resize_width and resize_height"
            )
    batch = np.stack(pixels)
    shape = tensor.shape
    if len(shape) != 4:
        raise ValueError(f"calibration: images do not fit the input '{tensor.name}' of shape {shape}")
    channels = batch.shape[3]
    first = shape[1] == channels and (shape[3] != channels or tensor.format == Format.NCHW)
    if first:
        batch = np.moveaxis(batch, 3, 1)
    wanted = tensor.dtype
    if wanted.kind != "f" and batch.dtype.kind == "f" and not (len(how.mean) or len(how.std)):
        batch = np.rint(batch)
    if any(n not in (m, -1) for m, n in zip(batch.shape, shape)):
        raise ValueError(
            f"calibration: the image {paths[0]} is {_size(pixels[0])}, which does not fit the input "
            f"'{tensor.name}' of shape {shape}: give resize_width and resize_height"
        )
    return _fitting(batch.astype(wanted), tensor, f"calibration: the image {paths[0]}")


def _size(image: np.ndarray) -> str:
    return f"{image.shape[1]} x {image.shape[0]} with {image.shape[2]} channels"


def _image(path: str, how: Folders) -> np.ndarray:
    """Pixels [H, W, C] of float32."""
    from mycelia.dataset import vision  # which those who give arrays do not need

    content = np.frombuffer(_read(path), np.uint8)
    try:
        pixels = vision.Decode()(content)
    except Exception as error:  # whatever a decoder says of a file that is no image
        raise ValueError(f"calibration: the file {path} is no image that can be read: {error}") from error
    if how.resize is not None:
        pixels = vision.Resize((how.resize[1], how.resize[0]), vision.Inter[how.method])(pixels)
    if how.crop is not None:
        if pixels.shape[0] < how.crop[1] or pixels.shape[1] < how.crop[0]:
            raise ValueError(
                f"calibration: the image {path} is {_size(pixels)}, smaller than its center crop of "
                f"{how.crop[0]} x {how.crop[1]}"
            )
        pixels = vision.CenterCrop((how.crop[1], how.crop[0]))(pixels)
    made = pixels.astype(np.float32)
    if how.colour == "GRAY":
        made = made @ np.array([[0.299], [0.587], [0.114]], np.float32)
    elif how.colour == "BGR":
        made = made[:, :, ::-1]
    if len(how.mean):
        made = made - np.asarray(how.mean, np.float32)
    if len(how.std):
        made = made / np.asarray(how.std, np.float32)
    return made
