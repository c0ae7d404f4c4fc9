"""Records of an event file one after the other, in the order of the file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from mycelia.io.crc32c import crc32c_of, masked

_AT_ONCE = 4 << 20  # bytes that are looked at together
_AROUND = 16  # bytes of a record beside its message: length, two checksums


class Untrusted(ValueError):
    """A length whose checksum is wrong: where the next record begins is not known."""

    def __init__(self, offset: int):
        super().__init__(f"the length at byte {offset} does not match its checksum")
        self.offset = offset


def frames(file: BinaryIO, size: int) -> Iterator[tuple[int, bytes | None]]:
    """(offset behind it, message) of each record; the message is None where its checksum is wrong.

    file: at its begin; size: bytes of it that are read. A record that is cut off at the end is left out.
    Errors: Untrusted.
    """
    base, rest, wanted = 0, b"", _AT_ONCE
    while base + len(rest) < size:
        data = rest + file.read(min(wanted, size - base - len(rest)))
        begins, sizes, at = [], [], 0
        while at + _AROUND <= len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            begins.append(at)
            sizes.append(length)
            if length > size - base - at - _AROUND:  # the last one, or no length
                break
            at += length + _AROUND
        if len(data) == len(rest):
            return
        heads = np.array(begins, np.int64)
        right = _right(data, heads, np.full(len(heads), 8, np.int64))
        known = len(heads) if right.all() else int(np.argmin(right))
        whole = [i for i in range(known) if begins[i] + sizes[i] + _AROUND <= len(data)]
        bodies = heads[whole] + 12
        lengths = np.array([sizes[i] for i in whole], np.int64)
        for i, is_right in zip(whole, _right(data, bodies, lengths).tolist(), strict=True):
            begin = begins[i] + 12
            message = data[begin : begin + sizes[i]]
            yield base + begin + sizes[i] + 4, message if is_right else None
        if known < len(heads):
            raise Untrusted(base + begins[known])
        done = begins[whole[-1]] + sizes[whole[-1]] + _AROUND if whole else 0
        # A record that is longer than what is looked at together is read as a whole.
        needed = sizes[len(whole)] + _AROUND if len(whole) < len(sizes) else 0
        base, rest = base + done, data[done:]
        if needed > size - base:
            return
        wanted = max(_AT_ONCE, needed - len(rest))


def _right(data: bytes, begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Whether pieces of `data` match the checksums behind them."""
    if not len(begins):
        return np.ones(0, bool)
    places = (begins + sizes)[:, None] + np.arange(4)
    told = np.frombuffer(data, np.uint8)[places].view("<u4").reshape(-1)
    return masked(crc32c_of(data, begins, sizes)) == told
