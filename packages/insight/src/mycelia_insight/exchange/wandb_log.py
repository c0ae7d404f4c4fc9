"""Records of a `.wandb` file: W&B's log, framed as LevelDB's log files are.

Seven bytes stand in front: `:W&B`, 0xBEE1, a version. Blocks of 32768 bytes, the first counted from the begin
of the file, hold pieces of records: CRC-32 of type and data, size (16 bits), type: 1 the whole record, 2 its
first piece, 3 one between, 4 the last. Fewer than 7 bytes at the end of a block are filled with zeros.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

_MAGIC = b":W&B\xe1\xbe"
_BLOCK, _HEAD = 32768, struct.Struct("<IHB")
_WHOLE, _FIRST, _BETWEEN, _LAST = 1, 2, 3, 4
_MOST_BYTES = 64 << 20  # of a record


def records(file: BinaryIO, warn: Callable[[str], None]) -> Iterator[bytes]:
    """Whole records.  A piece with a wrong checksum costs its record and the rest of its block.

    Errors: ValueError if it is no such file.
    """
    begin = file.read(7)
    if begin[:6] != _MAGIC:
        raise ValueError("it does not begin as a log of W&B does")
    if begin[6:] != b"\0":
        raise ValueError(f"version {begin[6:].hex() or 'missing'} of W&B's log is not known")
    at, block = 7, file.read(_BLOCK - 7)
    parts: list[bytes] | None = None
    while block:
        place = 0
        while place + _HEAD.size <= len(block):
            check, size, kind = _HEAD.unpack_from(block, place)
            if (check, size, kind) == (0, 0, 0):
                break  # filled up
            data = block[place + _HEAD.size : place + _HEAD.size + size]
            if len(data) < size and at + len(block) < _end(file):
                warn(f"the piece at byte {at + place} is longer than its block")
                parts = None
                break
            if len(data) < size:
                return  # cut off while it was written
            if zlib.crc32(data, zlib.crc32(bytes([kind]))) != check or not _WHOLE <= kind <= _LAST:
                warn(f"the piece at byte {at + place} does not match its checksum")
                parts = None
                break
            place += _HEAD.size + size
            if kind == _WHOLE:
                parts = None
                yield data
            elif kind == _FIRST:
                parts = [data]
            elif parts is not None:
                parts.append(data)
                if sum(map(len, parts)) > _MOST_BYTES:
                    warn(f"the record that goes on at byte {at + place} has more than {_MOST_BYTES} bytes")
                    parts = None
                elif kind == _LAST:
                    whole, parts = b"".join(parts), None
                    yield whole
        at += len(block)
        block = file.read(_BLOCK)


def _end(file: BinaryIO) -> int:
    here = file.tell()
    end = file.seek(0, 2)
    file.seek(here)
    return end
