"""IDX files, the format of MNIST (http://yann.lecun.com/exdb/mnist), also gzipped."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib

import numpy as np

from mycelia.io.files import atomic_write
from mycelia.io.reading import STEP, damaged

_TYPES = {8: np.uint8, 9: np.int8, 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
_RATIO = 1032  # how many times as small deflate makes data at most


def read_idx(path: str | os.PathLike) -> np.ndarray:
    """The array of a file, in the byte order of the machine.

    No more is read or unpacked than the header promises; a promise that the file cannot keep takes no memory.
    Errors: RuntimeError (also a ValueError) with the file's name for a damaged file; OSError.
    """
    size = os.path.getsize(path)
    compressed = os.fspath(path).endswith(".gz")
    with gzip.open(path, "rb") if compressed else open(path, "rb") as file:
        try:
            return _read(path, file, size * _RATIO if compressed else size)
        except (gzip.BadGzipFile, EOFError, zlib.error) as e:
            raise damaged(path, f"the compressed data is damaged: {e}") from None


def _read(path, file, most: int) -> np.ndarray:
    start = file.read(4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES:
        raise damaged(path, "not an IDX file")
    rank = start[3]
    head = file.read(4 * rank)
    if len(head) < 4 * rank:
        raise damaged(path, "the IDX header is cut off")
    shape = struct.unpack(f">{rank}I", head)
    dtype = np.dtype(_TYPES[start[2]])
    expected = math.prod(shape) * dtype.itemsize
    if rank > 32 or expected > most:
        raise damaged(path, f"the header promises {list(shape)} of {dtype}, more than the file can hold")
    data, at = np.empty(expected, np.uint8), 0
    while at < expected and (count := file.readinto(data[at : at + STEP].data)):
        at += count
    if at < expected or file.read(1):
        holds = "more" if at == expected else at
        raise damaged(path, f"the IDX file should hold {expected} bytes of data, but holds {holds}")
    return data.view(dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def write_idx(path: str | os.PathLike, array: np.ndarray) -> None:
    """Write uint8 data as an IDX file."""
    array = np.ascontiguousarray(array, np.uint8)
    with atomic_write(os.fspath(path)) as file:
        file.write(bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape))
        file.write(array.data)
