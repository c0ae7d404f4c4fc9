"""Rows on disk: one file per cache, in a directory of its own, that only grows.

With `keep` a journal beside it tells which rows are in it, for the next start of the server.
"""

from __future__ import annotations

import os
import shutil
import threading
import zlib
from pathlib import Path

import numpy as np

from mycelia_cache import owner

_STEP = 8 << 20  # bytes that the file grows by at least
_RECORD = np.dtype([("row", "<u8"), ("offset", "<u8"), ("length", "<u8"), ("crc", "<u4"), ("check", "<u4")])


class Quota:
    """Bytes of disk for all caches of a server together; None for what the disk has."""

    def __init__(self, limit: int | None):
        self.limit, self.used = limit, 0
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Whether there was room for `size` more bytes; they are the caller's then."""
        with self._lock:
            if self.limit is not None and self.used + size > self.limit:
                return False
            self.used += size
            return True

    def give_back(self, size: int) -> None:
        """The caller needs `size` bytes no longer."""
        with self._lock:
            self.used -= size

    @property
    def free(self) -> int:
        """Bytes that nobody has."""
        return 1 << 62 if self.limit is None else max(0, self.limit - self.used)


class Holes:
    """Parts of a file that are free again before its end: offset and size of each."""

    def __init__(self) -> None:
        self._holes: list[tuple[int, int]] = []

    def __bool__(self) -> bool:
        return bool(self._holes)

    def take(self, size: int) -> int | None:
        """Where `size` bytes are free; None if no hole is as large."""
        for i, (at, length) in enumerate(self._holes):
            if length >= size:
                if length > size:
                    self._holes[i] = (at + size, length - size)
                else:
                    del self._holes[i]
                return at
        return None

    def add(self, at: int, size: int) -> None:
        """These bytes are free."""
        self._holes.append((at, size))

    @property
    def largest(self) -> int:
        """Bytes of the largest hole."""
        return max((length for _, length in self._holes), default=0)


class SpillFile:
    """The rows of one cache on disk.  Errors: OSError, RuntimeError for a directory of another user."""

    def __init__(self, directory: Path, quota: Quota, keep: bool):
        self.directory, self.quota, self._keep = directory, quota, keep
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        owner.require(directory)
        self.path = directory / "rows"
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self.fd = os.open(self.path, flags, 0o600)
        self._end = self._allocated = 0
        self._holes = Holes()
        self.full = False

    @property
    def room(self) -> int:
        """Bytes of a row that would still find a place."""
        return 0 if self.full else max(self._allocated - self._end + self.quota.free, self._holes.largest)

    def reserve(self, size: int) -> int | None:
        """Where `size` bytes may be written; None if the disk has no room for them."""
        if self.full:
            return None
        at = self._holes.take(size)
        if at is None and self._ensure(self._end + size):
            at, self._end = self._end, self._end + size
        return at

    def free(self, at: int, size: int) -> None:
        """What was reserved there is not needed: its writer is gone."""
        if at + size == self._end:
            self._end = at
        else:
            self._holes.add(at, size)

    def _ensure(self, end: int) -> bool:
        if end <= self._allocated:
            return True
        for step in (max(end - self._allocated, _STEP), end - self._allocated):
            if not self.quota.take(step):
                continue
            try:
                os.posix_fallocate(self.fd, self._allocated, step)
            except OSError:
                self.quota.give_back(step)
                continue
            self._allocated += step
            return True
        return False

    def read(self, offset: int, length: int, crc: int) -> bytes | None:
        """The bytes of a row; None if they cannot be read or are damaged."""
        try:
            data = os.pread(self.fd, length, offset)
        except OSError:
            return None
        return data if len(data) == length and zlib.crc32(data) == crc else None

    def note(self, rows: np.ndarray, offsets, lengths, crcs) -> None:
        """Write rows that are there into the journal."""
        if not self._keep or not len(rows):
            return
        records = np.zeros(len(rows), _RECORD)
        records["row"], records["offset"], records["length"], records["crc"] = rows, offsets, lengths, crcs
        records["check"] = [zlib.crc32(r.tobytes()[:28]) for r in records]
        with open(self.directory / "journal", "ab") as file:
            file.write(records.tobytes())

    def restored(self) -> np.ndarray:
        """The records in the journal of an earlier server. A torn end is left out."""
        try:
            data = (self.directory / "journal").read_bytes()
        except OSError:
            return np.zeros(0, _RECORD)
        records = np.frombuffer(data, _RECORD, len(data) // _RECORD.itemsize)
        size = os.fstat(self.fd).st_size
        good = [
            zlib.crc32(r.tobytes()[:28]) == r["check"] and r["offset"] + r["length"] <= size for r in records
        ]
        records = records[np.asarray(good, bool)]
        if len(records):
            self._end = int((records["offset"] + records["length"]).max())
            self._allocated = max(size, self._end)
            self.quota.take(self._allocated)
        return records

    def close(self, *, remove: bool) -> None:
        """Close the file, and remove it with its directory."""
        os.close(self.fd)
        self.quota.give_back(self._allocated)
        if remove:
            shutil.rmtree(self.directory, ignore_errors=True)
