"""Event files written byte by byte, MindSpore's and TensorBoard's."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from mycelia.engine.base import wire
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


def tensor(values: Sequence[float], *shape: int) -> bytes:
    """A TensorProto of float32; one dimension if no shape is given."""
    dims = b"".join(number(1, n) for n in shape or (len(values),))
    return dims + number(2, 11) + field(3, struct.pack(f"<{len(values)}f", *values))


def landscape(
    x: Sequence[float], y: Sequence[float], z: Sequence[float], path: dict[int, tuple] | None = None,
    end: tuple = (0.0, 0.0, 0.0), unit: str = "step", decomposition: str = "",
) -> bytes:  # fmt: skip
    """A LossLandscape; `z` row after row, `path`: step -> (x, y, z)."""

    def points(*axes: bytes) -> bytes:
        return b"".join(field(i, axis) for i, axis in enumerate(axes, 1))

    grid = points(tensor(x), tensor(y), tensor(z, len(y), len(x)))
    way = b""
    if path:
        axes = [tensor([point[i] for point in path.values()]) for i in range(3)]
        way = field(2, b"".join(number(1, step) for step in path) + field(2, points(*axes)))
    said = field(1, decomposition or ("PCA" if path else "Random")) + field(2, unit) + number(3, 10)
    return field(1, grid) + way + field(3, said) + field(4, points(*(tensor([one]) for one in end)))


def appended(message: bytes, more: bytes) -> bytes:
    """A field that holds a message, which gets more fields."""
    ((key, content),) = wire.fields(memoryview(message))
    return field(key, bytes(content) + more)
