"""Image files and their bytes: reading, writing, encoding; what is missing for video says so."""

from __future__ import annotations

import io
import os

import numpy as np

from mycelia.dataset.vision.base import ImageTransform, in_8_bits, is_pil, opened_image, pillow
from mycelia.dataset.vision.enums import ImageReadMode
from mycelia.engine.base import errors

# Shares of red, green and blue in a grey, in 2^-15, cut off and not rounded: as libpng has it.
_PNG_GREY = np.array([9798, 19235, 3735], np.int64)


def _array(op: str, name: str, value) -> np.ndarray:
    """An array, or a tensor as one."""
    from mycelia.engine.tensors.tensor import Tensor

    if isinstance(value, Tensor):
        return value.asnumpy()
    if not isinstance(value, np.ndarray):
        raise errors.type_error(op, f"{name} must be an array or a Tensor, but got {type(value)}")
    return value


def _name(op: str, value) -> str:
    if not isinstance(value, str):
        raise errors.type_error(op, f"Input filename is not of type {str}, but got: {type(value)}.")
    return value


def _encode(op: str, image, file_format: str, name: str, level, low: int, high: int) -> np.ndarray:
    if not isinstance(level, int):
        raise errors.type_error(op, f"{name} must be an int, but got {type(level)}")
    image = _array(op, "image", image)
    if image.dtype != np.uint8:
        raise errors.runtime_error(op, f"the image must be uint8, but its dtype is {image.dtype}")
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[:, :, 0]
    if image.ndim != 2 and not (image.ndim == 3 and image.shape[2] == 3):
        raise errors.runtime_error(
            op, f"the image must have 1 or 3 channels, but its shape is {list(image.shape)}"
        )
    if not low <= level <= high:
        raise errors.runtime_error(op, f"Invalid {name}: {level} is not in [{low}, {high}]")
    options = {"quality": level} if file_format == "JPEG" else {"compress_level": level}
    data = io.BytesIO()
    pillow().fromarray(image).save(data, file_format, **options)
    return np.frombuffer(data.getvalue(), np.uint8).copy()


def encode_jpeg(image, quality: int = 75) -> np.ndarray:
    """uint8 [H, W], [H, W, 1] or [H, W, 3] -> the bytes of a JPEG file, uint8 [n]; quality 1..100."""
    return _encode("encode_jpeg", image, "JPEG", "quality", quality, 1, 100)


def encode_png(image, compression_level: int = 6) -> np.ndarray:
    """uint8 [H, W], [H, W, 1] or [H, W, 3] -> the bytes of a PNG file, uint8 [n]; level 0..9."""
    return _encode("encode_png", image, "PNG", "compression_level", compression_level, 0, 9)


def get_image_num_channels(image) -> int:
    """Channels of an array [.., H, W, C] or [H, W], or of a PIL image."""
    if is_pil(image):
        return len(image.getbands())
    if not isinstance(image, np.ndarray):
        raise errors.type_error(
            "get_image_num_channels",
            "Input image is not of type <class 'numpy.ndarray'> or <class 'PIL.Image.Image'>, but got: "
            f"{type(image)}.",
        )
    if image.ndim < 2:
        raise errors.runtime_error(
            "get_image_num_channels", f"the shape {list(image.shape)} is none of an image"
        )
    return 1 if image.ndim == 2 else image.shape[-1]


def get_image_size(image) -> list[int]:
    """[height, width] of an array [.., H, W, C] or [H, W], or of a PIL image."""
    if is_pil(image):
        return [image.size[1], image.size[0]]
    if not isinstance(image, np.ndarray):
        raise errors.type_error(
            "get_image_size",
            "Input image is not of type <class 'numpy.ndarray'> or <class 'PIL.Image.Image'>, but got: "
            f"{type(image)}.",
        )
    if image.ndim < 2:
        raise errors.runtime_error("get_image_size", f"the shape {list(image.shape)} is none of an image")
    return list(image.shape[:2] if image.ndim == 2 else image.shape[-3:-1])


def read_file(filename: str) -> np.ndarray:
    """The bytes of a file, uint8 [n]."""
    try:
        return np.fromfile(_name("read_file", filename), np.uint8)
    except OSError as cause:
        raise errors.runtime_error("read_file", f"{filename} cannot be read: {cause}") from cause


def read_image(filename: str, mode: ImageReadMode = ImageReadMode.UNCHANGED) -> np.ndarray:
    """An image file as uint8 [H, W, C]; `mode` UNCHANGED, GRAYSCALE (C = 1) or COLOR (C = 3).

    UNCHANGED gives what the file has, less an alpha channel, as in MindSpore: C is 1 or 3; greys of 16 bits
    are uint16. Errors: TypeError; RuntimeError for what is no image; NotImplementedError for colours of 16
    bits in mode UNCHANGED.
    """
    _name("read_image", filename)
    if not isinstance(mode, ImageReadMode):
        raise errors.type_error("read_image", f"mode must be an ImageReadMode, but got {type(mode)}")
    with opened_image(filename, "read_image") as file:
        values = _channels(file, mode)
    return values if values.ndim == 3 else values[:, :, None]


def _channels(file, mode: ImageReadMode) -> np.ndarray:
    is_png = file.format == "PNG"
    if mode == ImageReadMode.COLOR:
        return np.array(in_8_bits(file).convert("RGB"))
    if mode == ImageReadMode.GRAYSCALE:
        image = in_8_bits(file)
        if not is_png or image.mode in ("1", "L", "LA"):
            return np.array(image.convert("L"))
        return (np.asarray(image.convert("RGB")) @ _PNG_GREY >> 15).astype(np.uint8)
    if file.tile and ";16" in str(file.tile[0][3]) and not file.mode.startswith("I;16"):
        raise errors.error(
            errors.NotSupportedError,
            "read_image",
            "colours of 16 bits are read in mode COLOR or GRAYSCALE only",
        )
    if file.mode == "1":
        return np.array(file.convert("L"))
    if file.mode == "LA" and not is_png:
        return np.array(file.getchannel(0))
    return np.array(
        file if file.mode in ("L", "RGB") or file.mode.startswith("I;16") else file.convert("RGB")
    )


def write_file(filename: str, data) -> None:
    """uint8 [n], an array or a tensor, as a file."""
    _name("write_file", filename)
    data = _array("write_file", "data", data)
    if data.dtype != np.uint8 or data.ndim != 1:
        raise errors.runtime_error(
            "write_file", f"data must be uint8 [n], but got {data.dtype} {list(data.shape)}"
        )
    if os.path.isdir(filename):
        raise errors.runtime_error("write_file", f"Invalid file path, {filename} is not a regular file.")
    try:
        data.tofile(filename)
    except OSError as cause:
        raise errors.runtime_error("write_file", f"{filename} cannot be written: {cause}") from cause


def write_jpeg(filename: str, image, quality: int = 75) -> None:
    """`encode_jpeg` into a file."""
    write_file(_name("write_jpeg", filename), encode_jpeg(image, quality))


def write_png(filename: str, image, compression_level: int = 6) -> None:
    """`encode_png` into a file."""
    write_file(_name("write_png", filename), encode_png(image, compression_level))


def _no_video(op: str) -> BaseException:
    return errors.error(
        errors.NotSupportedError, op, "there is no video decoder; decode with PyAV or OpenCV instead"
    )


def _unit(op: str, pts_unit, make=errors.value_error) -> None:
    if not isinstance(pts_unit, str):
        raise errors.type_error(op, f"Input pts_unit is not of type {str}, but got {type(pts_unit)}")
    if pts_unit not in ("pts", "sec"):
        raise make(op, f"Not supported pts_unit {pts_unit!r}: it is 'pts' or 'sec'")


# Where the first bytes of a video file say what it is: MP4 and MOV, AVI, Matroska and WebM, MPEG, Ogg.
_VIDEO_MARKS = {4: (b"ftyp", b"moov", b"mdat", b"free", b"wide"), 0: (b"RIFF", b"\x1aE\xdf\xa3", b"OggS")}
_VIDEO_MARKS[0] += (b"\x00\x00\x01\xba", b"\x00\x00\x01\xb3", b"FLV\x01")


def _video_file(op: str, filename: str, make=errors.value_error) -> None:
    """`make` gives the error for what is no file; RuntimeError for no video."""
    if not os.path.exists(filename):
        raise make(op, f"Invalid file path, {filename} does not exist.")
    if not os.path.isfile(filename):
        raise make(op, f"Invalid file path, {filename} is not a regular file.")
    with open(filename, "rb") as file:
        head = file.read(16)
    if not any(head[at : at + 4] in marks for at, marks in _VIDEO_MARKS.items()):
        raise errors.runtime_error(op, f"Failed to open the file {filename}: it is no video")


def read_video(filename: str, start_pts=0, end_pts=None, pts_unit: str = "pts"):
    """Not there: checks its arguments, then NotSupportedError, since no video decoder is built in."""
    _name("read_video", filename)
    for name, value in (("start_pts", start_pts), ("end_pts", end_pts)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise errors.type_error(
                "read_video", f"Input {name} is not of type {[int, float]}: {type(value)}"
            )
    _unit("read_video", pts_unit)
    _video_file("read_video", filename)
    if start_pts < 0:
        raise errors.value_error("read_video", f"Not supported start_pts for {start_pts}: it is negative")
    if end_pts is not None and end_pts < start_pts:
        raise errors.value_error("read_video", f"Not supported end_pts for {end_pts}: it is before start_pts")
    raise _no_video("read_video")


def read_video_timestamps(filename: str, pts_unit: str = "pts"):
    """Not there: checks its arguments, then NotSupportedError, since no video decoder is built in."""
    _name("read_video_timestamps", filename)
    _unit("read_video_timestamps", pts_unit, errors.runtime_error)
    _video_file("read_video_timestamps", filename, errors.runtime_error)
    raise _no_video("read_video_timestamps")


class DecodeVideo(ImageTransform):
    """Not there: NotSupportedError when it is called, since no video decoder is built in."""

    def __call__(self, *videos):
        for video in videos:
            if not isinstance(video, np.ndarray):
                raise errors.type_error("DecodeVideo", f"Input should be ndarray, got {type(video)}.")
            if video.size == 0:
                raise errors.runtime_error("DecodeVideo", "Input Tensor has no data.")
            if video.ndim != 1:
                raise errors.runtime_error(
                    "DecodeVideo", f"invalid input shape, only support 1D input, got rank: {video.ndim}"
                )
            if video.dtype != np.uint8:
                raise errors.runtime_error(
                    "DecodeVideo",
                    f"The type of the elements of input data should be UINT8, but got {video.dtype}.",
                )
        raise _no_video("DecodeVideo")


class VideoDecoder:
    """Not there: checks the file, then NotSupportedError, since no video decoder is built in."""

    def __init__(self, source: str):
        if not os.path.isfile(source):
            raise errors.value_error("VideoDecoder", f"there is no file {source}")
        raise _no_video("VideoDecoder")

    @property
    def metadata(self) -> dict:
        """Width, height, duration, number of frames, frames per second."""
        raise _no_video("VideoDecoder.metadata")

    def get_frames_at(self, indices):
        """Frames by their numbers."""
        raise _no_video("VideoDecoder.get_frames_at")
