"""Images: those of a message, their type and size by their own first bytes. Nothing is decompressed here."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from mycelia_insight.records.tensors import strings
from mycelia_insight.records.wire import BYTES, VARINT, Broken, fields
from mycelia_insight.runs.kinds import Dialect

MOST_PIXELS = 1 << 26  # what a browser is asked to decode: 8192 x 8192


@dataclass(frozen=True)
class Picture:
    """An image in its file's bytes; `media_type` is one that cannot hold programs."""

    media_type: str
    width: int
    height: int
    data: bytes


def decode(message: bytes, dialect: Dialect, sample: int = 0) -> tuple[Picture, int]:
    """An image of a batch, and how many there are.  Errors: Broken; IndexError: no such sample."""
    found = _images(message, dialect)
    if not 0 <= sample < len(found):
        raise IndexError(f"there are {len(found)} images, got the index {sample}")
    return picture(found[sample]), len(found)


def _images(message: bytes, dialect: Dialect) -> list[bytes]:
    encoded: list[bytes] = []
    for number, kind, value in fields(message):
        if number == 1 and kind == VARINT and dialect == Dialect.TENSORBOARD and value == 7:
            # A tensor of texts, or an image of 7 rows: a shape follows in the former, a width in the latter.
            second = next((kind for n, kind, _ in fields(message) if n == 2), BYTES)
            if second == BYTES:
                _, found = strings(message)
                return found[2:]  # width and height stand before the images
        elif number == 4 and kind == BYTES:
            encoded.append(bytes(value))
    if not encoded:
        raise Broken("there is no image in the message")
    return encoded


def picture(data: bytes) -> Picture:
    """Errors: Broken, if it is no PNG, JPEG or GIF, or claims more than MOST_PIXELS."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR" and len(data) >= 24:
        kind, (width, height) = "image/png", struct.unpack(">II", data[16:24])
    elif data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        kind, (width, height) = "image/gif", struct.unpack("<HH", data[6:10])
    elif data[:3] == b"\xff\xd8\xff":
        kind, (width, height) = "image/jpeg", _size_of_jpeg(data)
    else:
        raise Broken("the image is neither PNG, JPEG nor GIF")
    if width * height > MOST_PIXELS or not width * height:
        raise Broken(f"the image claims {width} x {height} pixels; at most {MOST_PIXELS} are shown")
    return Picture(kind, width, height, data)


def _size_of_jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    raise Broken("a JPEG without a size")
