"""TFRecord files, and the tf.train.Example messages in them, without TensorFlow.

A record is its length (8 bytes), a checksum of the length, the data and a checksum of the data; checksums are
masked CRC-32C. An Example maps names to lists of bytes, floats or int64.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Generator, Iterator

import numpy as np

from mycelia.engine.base import wire
from mycelia.io import reading
from mycelia.io.crc32c import crc32c_of, masked
from mycelia.io.reading import STEP, FileBytes
from mycelia.io.windows import Windows

BYTES, FLOATS, INTS = 1, 2, 3  # kinds of a Feature, by its field number
_LENGTH = struct.Struct("<Q").unpack_from
_HEAD, _FOOT = 12, 4
_RECORDS, _BYTES = 1024, STEP  # of a block, at least one record
_WINDOW_BITS = {"GZIP": 31, "ZLIB": 15}
_LARGEST = 1 << 31  # of a compressed record: an Example, a message of protobuf, has no more bytes


def damaged(path: str, message: str) -> reading.DamagedFileError:
    """The error for a file whose bytes are not what they should be."""
    return reading.damaged(path, message, "a TFRecord file was expected, compressed as compression_type says")


class Block:
    """Some records of a file, one behind the other: where their data lies in `data`.

    `offset`: where `data` begins in a plain file.
    """

    __slots__ = ("_windows", "begins", "data", "first", "offset", "path", "sizes")

    def __init__(self, path, first: int, data, offset: int, begins: np.ndarray, sizes: np.ndarray):
        self.path, self.first, self.data, self.offset = path, first, data, offset
        self.begins, self.sizes = begins, sizes
        self._windows: Windows | None = None

    def __len__(self) -> int:
        return len(self.begins)

    @property
    def windows(self) -> Windows:
        if self._windows is None:
            self._windows = Windows(self.data)
        return self._windows

    @property
    def places(self) -> np.ndarray:
        """Where the data of the records begins in a plain file."""
        return self.begins + self.offset

    def record(self, k: int) -> bytes:
        """The data of a record."""
        begin, size = int(self.begins[k]), int(self.sizes[k])
        if self.data is not None:
            return self.data[begin : begin + size]
        place = np.array([begin + self.offset], np.int64)
        (again,) = blocks_at(self.path, [(place, self.sizes[k : k + 1])], self.first + k)
        return again.data[:size]

    def let_go(self) -> None:
        """Keep the places only: records that are asked for later are read again from the (plain) file."""
        self.data = self._windows = None

    def check(self) -> None:
        """Compare the checksums of the data. Errors: DamagedFileError that names the record."""
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

    `compression`: '', 'ZLIB' or 'GZIP'. Errors: DamagedFileError; OSError.
    """
    number, rest, offset, wanted = 0, b"", 0, _BYTES
    pieces = _plain(path) if compression == "" else _decompressed(path, compression)
    next(pieces)
    while piece := pieces.send(wanted):
        data = rest + piece if rest else piece
        at, end, rest, wanted = 0, len(data), b"", _BYTES
        while at < end and not rest:
            begins, stop = [], min(end, at + _BYTES)
            while at < stop and len(begins) < _RECORDS and end - at >= _HEAD:
                begins.append(at + _HEAD)
                at += _HEAD + _LENGTH(data, at)[0] + _FOOT
            places = np.array(begins, np.int64)
            block = Block(path, number, data, offset, places, np.diff(places, append=0))
            block.check_lengths()
            if at > end:  # the last one is not whole
                wanted, at = max(wanted, at - end), begins[-1] - _HEAD
                block.begins = places = places[:-1]
            if at < end and (len(places) < len(begins) or end - at < _HEAD):
                rest = data[at:]
            if len(places):
                block.sizes = np.append(places[1:] - _HEAD, at) - _FOOT - places
                if check:
                    block.check()
                number += len(block)
                yield block
        offset += end - len(rest)
        if compression and wanted > _LARGEST:
            raise damaged(path, f"record {number} would have more than {_LARGEST} bytes")
    if rest:
        raise damaged(path, f"record {number} is cut off: the file ends inside of it")


def blocks_at(path: str, places: list[tuple[np.ndarray, np.ndarray]], number: int = 0) -> Iterator[Block]:
    """The blocks of a plain file that was read before: where each block's records begin, and their sizes.

    `number`: of the first record. Errors: DamagedFileError for data that does not fit its checksum;
    OSError.
    """
    with contextlib.closing(FileBytes(path, damaged)) as file:
        for begins, sizes in places:
            if not len(begins):
                continue
            start = int(begins[0])
            data = file.piece(start, int(begins[-1] + sizes[-1]) + _FOOT)
            block = Block(path, number, data, start, begins - start, sizes)
            block.check()
            yield block
            number += len(begins)


def _plain(path: str) -> Generator[bytes, int, None]:
    """Pieces of a file, of as many bytes as are sent or, at its end, fewer."""
    wanted = yield b""
    with contextlib.closing(FileBytes(path, damaged)) as file:
        at = 0
        # What is larger than the rest is not read: the record is cut off.
        while at < len(file) and wanted <= max(_BYTES, len(file) - at):
            end = min(at + wanted, len(file))
            piece = file.piece(at, end)
            at = end
            wanted = yield piece
    yield b""


def _decompressed(path: str, compression: str) -> Generator[bytes, int, None]:
    """The same of a compressed file; no more is unpacked than was asked for."""
    wanted = yield b""
    engine, ended, made = zlib.decompressobj(), True, bytearray()
    with open(path, "rb") as file:
        packed = file.read(_BYTES)
        try:
            while packed or not ended:
                if ended:
                    engine = zlib.decompressobj(_WINDOW_BITS[compression])
                plain = engine.decompress(packed, min(_BYTES, wanted - len(made)))
                if not packed and not plain and not engine.eof:
                    raise damaged(path, f"the {compression} data is cut off")
                made += plain
                ended = engine.eof
                packed = (engine.unused_data if ended else engine.unconsumed_tail) or file.read(_BYTES)
                if len(made) >= wanted:
                    wanted = yield bytes(made)
                    made.clear()
        except zlib.error as e:
            raise damaged(path, f"the {compression} data is damaged: {e}") from None
    if made:
        yield bytes(made)
    yield b""


def records(path: str, compression: str = "") -> Iterator[bytes]:
    """The data of each record. Errors: DamagedFileError; OSError."""
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
