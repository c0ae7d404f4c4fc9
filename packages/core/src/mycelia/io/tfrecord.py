"""TFRecord files, and the tf.train.Example messages in them, without TensorFlow.

A record is its length (8 bytes), a checksum of the length, the data and a checksum of the data; checksums are
masked CRC-32C. An Example maps names to lists of bytes, floats or int64.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterator

import numpy as np

from mycelia import errors
from mycelia.io import wire
from mycelia.io.crc32c import crc32c_of, masked
from mycelia.io.windows import Windows

BYTES, FLOATS, INTS = 1, 2, 3  # kinds of a Feature, by its field number
_LENGTH = struct.Struct("<Q").unpack_from
_HEAD, _FOOT = 12, 4
_RECORDS, _BYTES = 1024, 1 << 20  # of a block, at least one record
_WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}


class DamagedRecordsError(errors.FileFormatError, RuntimeError):
    """A TFRecord file is cut off, changed, or no TFRecord file at all."""


def damaged(path: str, message: str) -> DamagedRecordsError:
    """The error for a file whose bytes are not what they should be."""
    hint = "a TFRecord file was expected, compressed as compression_type says"
    return errors.error(DamagedRecordsError, path, message, hint=hint)


class Block:
    """Some records of a file, one behind the other: where their data lies in `data`."""

    __slots__ = ("begins", "data", "first", "path", "sizes", "windows")

    def __init__(self, path, first: int, data, windows: Windows, begins: np.ndarray, sizes: np.ndarray):
        self.path, self.first, self.data, self.windows = path, first, data, windows
        self.begins, self.sizes = begins, sizes

    def __len__(self) -> int:
        return len(self.begins)

    def record(self, k: int) -> bytes:
        """The data of a record."""
        begin = int(self.begins[k])
        return self.data[begin : begin + int(self.sizes[k])]

    def check(self) -> None:
        """Compare the checksums of the data. Errors: DamagedRecordsError that names the record."""
        self._compare(crc32c_of(self.data, self.begins, self.sizes), self.begins + self.sizes, "data")

    def check_lengths(self) -> None:
        """Compare the checksums of the lengths."""
        heads = self.begins - _HEAD
        self._compare(crc32c_of(self.data, heads, np.full(len(heads), 8)), heads + 8, "length")

    def _compare(self, found: np.ndarray, places: np.ndarray, what: str) -> None:
        wrong = np.flatnonzero(masked(found) != self.windows.take("<u4", places))
        if len(wrong):
            raise damaged(
                self.path, f"the checksum of the {what} of record {self.first + int(wrong[0])} is wrong"
            )


def blocks(path: str, compression: str = "", check: bool = True) -> Iterator[Block]:
    """The records of a file; without `check` the checksums of the data are not compared.

    `compression`: '', 'ZLIB' or 'GZIP'. Errors: DamagedRecordsError; OSError.
    """
    number, rest = 0, b""
    for piece, last in _pieces(path, compression):
        data = rest + piece if rest else piece
        windows, at, end, rest = Windows(data), 0, len(data), b""
        while at < end and not rest:
            begins, stop = [], min(end, at + _BYTES)
            while at < stop and len(begins) < _RECORDS and end - at >= _HEAD:
                begins.append(at + _HEAD)
                at += _HEAD + _LENGTH(data, at)[0] + _FOOT
            places = np.array(begins, np.int64)
            ends = np.append(places[1:] - _HEAD, min(at, end))[: len(places)]
            block = Block(path, number, data, windows, places, ends - _FOOT - places)
            block.check_lengths()
            if at > end:
                rest = data[begins[-1] - _HEAD :]
                block.begins, block.sizes = places[:-1], block.sizes[:-1]
            elif at < end and end - at < _HEAD:
                rest = data[at:]
            number += len(block)
            if len(block):
                if check:
                    block.check()
                yield block
        if rest and last:
            raise damaged(path, f"record {number} is cut off: the file ends inside of it")


def blocks_at(path: str, places: list[tuple[np.ndarray, np.ndarray]]) -> Iterator[Block]:
    """The blocks of a plain file that was read before: begins and sizes of each block's records.

    Errors: DamagedRecordsError for data that does not fit its checksum; OSError.
    """
    data = next(_pieces(path, ""), (b"", True))[0]
    windows, number = Windows(data), 0
    for begins, sizes in places:
        block = Block(path, number, data, windows, begins, sizes)
        block.check()
        yield block
        number += len(begins)


def _pieces(path: str, compression: str) -> Iterator[tuple]:
    """(bytes, whether they are the last) of a file; those of a plain file are mapped."""
    with open(path, "rb") as file:
        if compression == "":
            if os.fstat(file.fileno()).st_size:
                yield mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), True
            return
        engine, ended = None, True
        try:
            while piece := file.read(_BYTES):
                while piece:
                    if ended:
                        engine = zlib.decompressobj(_WINDOW_BITS[compression])
                    plain = engine.decompress(piece)
                    piece, ended = engine.unused_data, engine.eof
                    if plain:
                        yield plain, False
        except zlib.error as e:
            raise damaged(path, f"the {compression} data is damaged: {e}") from None
        if not ended:
            raise damaged(path, f"the {compression} data is cut off")
        yield b"", True


def records(path: str, compression: str = "") -> Iterator[bytes]:
    """The data of each record. Errors: DamagedRecordsError; OSError."""
    for block in blocks(path, compression):
        for k in range(len(block)):
            yield block.record(k)


def count(path: str, compression: str = "") -> int:
    """How many records a file has."""
    return sum(len(block) for block in blocks(path, compression, check=False))


# ---- Examples ----------------------------------------------------------------------------------------------


def example(data: bytes) -> dict[str, list[bytes] | np.ndarray]:
    """The features of an Example: lists of bytes, float32 or int64 arrays. ValueError for another message."""
    found: dict[str, list[bytes] | np.ndarray] = {}
    try:
        for number, features in wire.fields(memoryview(data)):
            for kind, entry in wire.fields(features) if number == 1 else ():
                if kind == 1:
                    pair = dict(wire.fields(entry))
                    found[bytes(pair[1]).decode()] = _feature(pair.get(2, memoryview(b"")))
    except (KeyError, TypeError, UnicodeDecodeError) as e:
        raise ValueError(f"no Example: {type(e).__name__} {e}") from None
    return found


def _feature(data: memoryview) -> list[bytes] | np.ndarray:
    for kind, values in wire.fields(data):
        parts = [value for _, value in wire.fields(values)]
        if kind == BYTES:
            return [bytes(part) for part in parts]
        if kind == FLOATS:
            return np.frombuffer(b"".join(parts), "<f4").astype(np.float32)
        if kind == INTS:
            ints: list[int] = []
            for part in parts:
                at = 0
                while not isinstance(part, int) and at < len(part):
                    number, at = wire.read_varint(part, at)
                    ints.append(number)
                if isinstance(part, int):
                    ints.append(part)
            return np.asarray(ints, np.uint64).astype(np.int64)
    return np.zeros(0, np.int64)
