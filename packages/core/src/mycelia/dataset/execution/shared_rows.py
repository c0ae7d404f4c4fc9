"""Rows from process to process through shared memory that has no name: when its last user ends, it is gone.

A `Channel` sends Python objects over a connection. The bytes of their arrays go into a memory segment (an
anonymous file, whose descriptor travels once), so that a row is copied once on each side.
"""

from __future__ import annotations

import mmap
import os
import pickle
import struct
import tempfile
from multiprocessing import reduction

import numpy as np

_HEAD = struct.Struct("<BIIQ")  # what follows, slot, number of buffers, bytes of the pickle
_SMALL = 2048  # bytes up to which a message needs no segment; below what a socket takes without waiting
_ALIGN = 64
_IN_MESSAGE, _IN_SEGMENT, _NEW_SEGMENT = 0, 1, 2


def _anonymous_file(size: int) -> int:
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("mycelia-rows")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd


class Channel:
    """One end. Without `shared` everything goes through the connection itself."""

    def __init__(self, connection, shared: bool = True):
        self.connection, self._shared = connection, shared
        self.largest_sent = self.largest_received = 0  # bytes of a message that went through a segment
        self._out: dict[int, mmap.mmap] = {}
        self._in: dict[int, mmap.mmap] = {}

    def send(self, value, slot: int) -> None:
        """Send an object through the segment `slot`, which no message on its way may use. The object is
        pickled before anything is written.
        """
        buffers: list[memoryview] = []

        def aside(buffer: pickle.PickleBuffer) -> bool:
            try:
                buffers.append(buffer.raw())
            except BufferError:  # not contiguous: its bytes stay in the pickle
                return True
            return False

        head = pickle.dumps(value, 5, buffer_callback=aside)
        sizes = struct.pack(f"<{len(buffers)}Q", *(b.nbytes for b in buffers))
        total = _aligned(len(head)) + sum(_aligned(b.nbytes) for b in buffers)
        if total + len(sizes) <= _SMALL or not self._shared:
            message = _HEAD.pack(_IN_MESSAGE, slot, len(buffers), len(head))
            self.connection.send_bytes(b"".join([message, sizes, *_padded(head, buffers)]))
            return
        self.largest_sent = max(self.largest_sent, total)
        total += len(sizes)
        segment, fd = self._out.get(slot), None
        if segment is None or len(segment) < total:
            size = total + total // 4  # the next rows are seldom of exactly this size
            fd = _anonymous_file(size)
            segment = self._out[slot] = mmap.mmap(fd, size)
        at = 0
        for part in (sizes, head, *buffers):
            size = len(part) if isinstance(part, bytes) else part.nbytes
            segment[at : at + size] = part
            at += size if part is sizes else _aligned(size)
        kind = _IN_SEGMENT if fd is None else _NEW_SEGMENT
        self.connection.send_bytes(_HEAD.pack(kind, slot, len(buffers), len(head)))
        if fd is not None:
            reduction.send_handle(self.connection, fd, None)
            os.close(fd)

    def receive(self):
        """The next object. EOFError when the other end is closed."""
        message = self.connection.recv_bytes()
        kind, slot, count, head_size = _HEAD.unpack_from(message)
        if kind == _NEW_SEGMENT:
            fd = reduction.recv_handle(self.connection)
            self._in[slot] = mmap.mmap(fd, os.fstat(fd).st_size)
            os.close(fd)
        source = memoryview(message)[_HEAD.size :] if kind == _IN_MESSAGE else memoryview(self._in[slot])
        sizes = struct.unpack_from(f"<{count}Q", source)
        total = _aligned(head_size) + sum(map(_aligned, sizes))
        data = bytearray(source[8 * count : 8 * count + total])
        source.release()
        if kind != _IN_MESSAGE:
            self.largest_received = max(self.largest_received, total)
        view, at, buffers = memoryview(data), _aligned(head_size), []
        for size in sizes:
            buffers.append(view[at : at + size])
            at += _aligned(size)
        return pickle.loads(view[:head_size], buffers=buffers)

    def close(self) -> None:
        """Close the connection; segments go when the last of both ends has let go of them."""
        self.connection.close()
        self._out, self._in = {}, {}


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


def _padded(head: bytes, buffers: list[memoryview]):
    for part in (head, *buffers):
        size = part.nbytes if isinstance(part, memoryview) else len(part)
        yield part
        yield bytes(_aligned(size) - size)


class _Stack:
    """Many small rows alike, as one array per column."""

    def __init__(self, columns: list[np.ndarray]):
        self.columns = columns

    def __reduce__(self):
        return _Stack, (self.columns,)


def stacked(rows: list):
    """Many small rows alike as a `_Stack`, which travels faster; other lists as they are."""
    first = rows[0]
    if len(rows) < 4 or type(first) is not tuple:
        return rows
    if not all(type(c) is np.ndarray and c.nbytes <= _SMALL and c.dtype.kind in "biufc" for c in first):
        return rows
    kinds = [(c.dtype, c.shape) for c in first]
    columns = [np.empty((len(rows), *shape), dtype) for dtype, shape in kinds]
    for i, row in enumerate(rows):
        if type(row) is not tuple or len(row) != len(kinds):
            return rows
        for column, value, (dtype, shape) in zip(columns, row, kinds):
            if type(value) is not np.ndarray or value.dtype != dtype or value.shape != shape:
                return rows
            column[i] = value
    return _Stack(columns)


def unstacked(rows) -> list:
    """The rows of `stacked`."""
    if not isinstance(rows, _Stack):
        return rows
    return list(zip(*([c[i, ...] for i in range(len(c))] for c in rows.columns)))
