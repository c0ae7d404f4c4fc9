"""CRC-32C (Castagnoli), and its masked form, which event and TFRecord files hold."""

from __future__ import annotations

import numpy as np

from mycelia.engine import _data

_MASK = 0xA282EAD8


def crc32c(data: bytes) -> int:
    """The checksum of `data`."""
    return int(crc32c_of(data, np.zeros(1, np.int64), np.full(1, len(data), np.int64))[0])


def crc32c_of(data, begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The checksums of pieces of a buffer, uint32 [pieces]. ValueError for a piece outside of it."""
    return _data.crc32c(data, np.ascontiguousarray(begins, np.int64), np.ascontiguousarray(sizes, np.int64))


def masked(crc):
    """A checksum, or an array of them, rotated by 15 bits and with a number added."""
    if isinstance(crc, np.ndarray):
        return ((crc >> 15) | (crc << 17)) + np.uint32(_MASK)
    return (((crc >> 15) | (crc << 17)) + _MASK) & 0xFFFFFFFF
