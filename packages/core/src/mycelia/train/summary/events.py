"""Event files: records of (length, its checksum, message, its checksum), written one after the other.

Each record goes to the file in one write, so that a reader finds whole records only.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import BinaryIO

from mycelia.engine import _data
from mycelia.engine.base import log
from mycelia.engine.base.wire import field, varint


def framed(message: bytes) -> bytes:
    """A record."""
    return _data.framed(message)


def double(number: int, value: float) -> bytes:
    """A field of type double."""
    return varint(number << 3 | 1) + struct.pack("<d", value)


def single(number: int, value: float) -> bytes:
    """A field of type float."""
    return varint(number << 3 | 5) + struct.pack("<f", value)


def text(number: int, value: str) -> bytes:
    """A field of type string."""
    return field(number, value.encode())


def event_file_name(prefix: str, suffix: str, seconds: int, kind: str = "events.summary") -> str:
    """MindInsight knows an event file by its name: time, device and host are part of it.

    `kind`: "tfevents" for the file that TensorBoard reads; the names of the two differ in nothing else.
    """
    return f"{prefix}.out.{kind}.{seconds}.0.{socket.gethostname()}{suffix}"


class EventFile:
    """A file of records, made with its first one.  Records beyond `limit` bytes are dropped, with a warning.

    `raise_errors`: whether an error of the disk is raised; else it is logged and the file ends there.
    """

    def __init__(self, path: str, limit: int | None, raise_errors: bool, first: bytes | None = None):
        self.path, self._limit, self._raise, self._first = path, limit, raise_errors, first
        self._file: BinaryIO | None = None
        self._size, self._stopped = 0, False

    def write(self, message: bytes) -> None:
        """Append a record."""
        if self._stopped:
            return
        size = len(message) + 16
        if self._limit is not None and self._size + size > self._limit:
            log.logger(__name__).warning("%s is full: max_file_size is %d", self.path, self._limit)
            self._stopped = True
            return
        try:
            if self._file is None:
                self._file = open(self.path, "ab")
                os.chmod(self.path, 0o600)
                if self._first is not None:
                    self._file.write(framed(self._first))
            self._file.write(framed(message))
            self._size += size
        except OSError as e:
            self._stopped = True
            if self._raise:
                raise
            log.logger(__name__).error("cannot write %s: %s", self.path, e.strerror)

    def flush(self) -> None:
        """Hand all records to the system."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Close the file and leave it read-only, as MindSpore does."""
        if self._file is not None:
            self._file.close()
            self._file = None
            os.chmod(self.path, 0o400)
        self._stopped = True
