"""Event files written byte by byte, MindSpore's and TensorBoard's."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from mycelia.io.crc32c import crc32c, masked


def varint(n: int) -> bytes:
    n &= 2**64 - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def field(number: int, data: bytes | str) -> bytes:
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(n: int, value: int) -> bytes:
    return varint(n << 3) + varint(value)


def double(n: int, value: float) -> bytes:
    return varint(n << 3 | 1) + struct.pack("<d", value)


def single(n: int, value: float) -> bytes:
    return varint(n << 3 | 5) + struct.pack("<f", value)


def framed(message: bytes) -> bytes:
    length = struct.pack("<Q", len(message))
    return (
        length
        + struct.pack("<I", masked(crc32c(length)))
        + message
        + struct.pack("<I", masked(crc32c(message)))
    )


def event(step: int, time: float, *rest: bytes) -> bytes:
    return double(1, time) + number(2, step) + b"".join(rest)


def scalar(tag: str, step: int, value: float, time: float = 0.0) -> bytes:
    """A record of MindSpore's with one value."""
    return framed(event(step, time, field(5, field(1, field(1, tag) + single(3, value)))))


MINDSPORE = framed(double(1, 1.0) + field(3, "MindSpore.Event:1"))
TENSORBOARD = framed(double(1, 1.0) + field(3, "brain.Event:2"))


def path_of(folder: Path, seconds: int = 1700000000, suffix: str = "_MS") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"events.out.events.summary.{seconds}.0.host{suffix}"


def write(
    folder: Path, records: Iterable[bytes], seconds: int = 1700000000, first: bytes = MINDSPORE
) -> Path:
    path = path_of(folder, seconds)
    path.write_bytes(first + b"".join(records))
    return path
