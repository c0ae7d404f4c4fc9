"""The table of a cache: where each row is. The server writes it, clients on the same host read it directly.

It lies in a memory file, or in one without a name on the spill disk: a page of head, then 32 bytes per row
number. A row is written once, its place
before its state, and does not change while the cache lives, except that a row found damaged in a spill
file becomes empty again. So a reader that takes the states first, and the places afterwards, needs no lock.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from pathlib import Path

import numpy as np

MAGIC = 0x315844494359_4D  # "MYCIDX1"
HEAD_BYTES = 4096
ENTRY = np.dtype([("state", "<u4"), ("crc", "<u4"), ("offset", "<u8"), ("length", "<u8"), ("ticket", "<u8")])
MAX_ROWS = 1 << 32

# State of an entry.
EMPTY, IN_MEMORY, ON_DISK, PENDING = 0, 1, 2, 3
# Words of the head.
W_MAGIC, W_SLOTS, W_GONE, W_CLIENTS = range(4)


class Index:
    """The server's side. `directory`: where its file is; None for memory.  Errors: OSError without room."""

    def __init__(self, directory: Path | None = None):
        if directory is None:
            self.fd = os.memfd_create("mycelia-cache-index", os.MFD_CLOEXEC)
        else:
            self.fd = _nameless(directory)
        try:
            os.posix_fallocate(self.fd, 0, HEAD_BYTES)
        except OSError:
            os.close(self.fd)
            raise
        self.slots = 0
        self._map()
        self.head[W_MAGIC] = MAGIC

    def _map(self) -> None:
        self._memory = mmap.mmap(self.fd, HEAD_BYTES + self.slots * ENTRY.itemsize)
        self.head = np.frombuffer(self._memory, "<u8", HEAD_BYTES // 8)
        self.entries = np.frombuffer(self._memory, ENTRY, self.slots, HEAD_BYTES)

    @property
    def bytes(self) -> int:
        """Memory of the table."""
        return HEAD_BYTES + self.slots * ENTRY.itemsize

    def bytes_for(self, rows: int) -> int:
        """Memory that the table takes when it reaches up to this number of rows."""
        return HEAD_BYTES + max(self.slots, self._slots_for(rows)) * ENTRY.itemsize

    def _slots_for(self, rows: int) -> int:
        per_page = 4096 // ENTRY.itemsize
        return -(-rows // per_page) * per_page

    def grow(self, rows: int) -> None:
        """Reach up to this number of rows. OSError if there is no memory, ValueError for too many."""
        if rows > MAX_ROWS:
            raise ValueError(f"row numbers must be below {MAX_ROWS}")
        slots = self._slots_for(rows)
        if slots <= self.slots:
            return
        os.posix_fallocate(self.fd, 0, HEAD_BYTES + slots * ENTRY.itemsize)
        self.slots = slots
        self._map()
        self.head[W_SLOTS] = slots

    def close(self) -> None:
        """Tell readers that the cache is gone."""
        self.head[W_GONE] = 1
        self.head = self.entries = self._memory = None
        os.close(self.fd)


def _nameless(directory: Path) -> int:
    """A file on the disk of `directory` that goes when nobody has it open any more."""
    with contextlib.suppress(OSError):  # not every file system can do it in one step
        return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fd, path = tempfile.mkstemp(prefix="table-", dir=directory)
    os.unlink(path)
    return fd


class IndexReader:
    """A client's side."""

    def __init__(self, fd: int):
        self.fd = fd
        self._map()

    def _map(self) -> None:
        self._memory = mmap.mmap(self.fd, 0, mmap.MAP_SHARED, mmap.PROT_READ)
        self.head = np.frombuffer(self._memory, "<u8", HEAD_BYTES // 8)
        self.entries = np.frombuffer(self._memory, ENTRY, -1, HEAD_BYTES)

    @property
    def gone(self) -> bool:
        """Whether the session was destroyed or the server stopped."""
        return bool(self.head[W_GONE])

    @property
    def clients(self) -> int:
        """How many clients have joined the cache."""
        return int(self.head[W_CLIENTS])

    def states(self, rows: np.ndarray) -> np.ndarray:
        """State of each row; EMPTY beyond the table."""
        slots = int(self.head[W_SLOTS])
        if slots > len(self.entries):
            self._map()
        entries = self.entries
        if len(rows) and int(rows.max()) < len(entries):
            return entries["state"][rows]
        inside = rows < len(entries)
        states = np.zeros(len(rows), np.uint32)
        states[inside] = entries["state"][rows[inside]]
        return states

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Entries of rows whose states said that they are there."""
        return self.entries[rows]
