"""Memory that the master shares with one worker on its host, for large tensors.

It is a file without a name, made by the master and inherited by the worker: nobody else can open it, and it
goes when the two do, however they end.
"""

from __future__ import annotations

import bisect
import mmap
import os
import threading

import numpy as np

SMALLEST_SHARED = 64 << 10  # below that a copy through the socket is as quick
_PAGE = 4096
_SIZE = 256 << 20  # address space: pages are taken when they are first written


class Arena:
    """The memory. The master gives out places in it; the worker only reads and writes at those."""

    def __init__(self, fd: int, size: int) -> None:
        self.fd = fd
        self.size = size
        self._map = mmap.mmap(fd, size)
        self._free = [(0, size)]  # (offset, length), by offset, never adjacent
        self._lock = threading.Lock()

    @classmethod
    def create(cls, size: int = _SIZE) -> Arena:
        """New memory, for the master."""
        fd = os.memfd_create("mycelia-serving", os.MFD_CLOEXEC)
        os.ftruncate(fd, size)
        return cls(fd, size)

    def take(self, count: int) -> int | None:
        """A place for so many bytes; None if there is none."""
        count = -(-max(count, 1) // _PAGE) * _PAGE
        with self._lock:
            for at, (offset, length) in enumerate(self._free):
                if length >= count:
                    if length == count:
                        del self._free[at]
                    else:
                        self._free[at] = (offset + count, length - count)
                    return offset
        return None

    def give_back(self, offset: int, count: int) -> None:
        """A place is free again."""
        count = -(-max(count, 1) // _PAGE) * _PAGE
        with self._lock:
            at = bisect.bisect_left(self._free, (offset, 0))
            if at < len(self._free) and self._free[at][0] == offset + count:
                count += self._free.pop(at)[1]
            if at and sum(self._free[at - 1]) == offset:
                at -= 1
                offset, before = self._free.pop(at)
                count += before
            self._free.insert(at, (offset, count))

    def write(self, offset: int, array: np.ndarray) -> None:
        """Copy an array to a place."""
        target = np.frombuffer(self._map, np.uint8, array.nbytes, offset)
        target[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    def read(self, offset: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        """A copy of the array at a place, read-only. ValueError if it does not lie inside."""
        array = np.ndarray(shape, dtype, self._map, offset).copy()
        array.flags.writeable = False
        return array

    def close(self) -> None:
        """Let go of it."""
        os.close(self.fd)
