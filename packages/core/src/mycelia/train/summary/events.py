"""Event files: records of (length, its checksum, message, its checksum), written one after the other.

Records go to the file whole, so that a reader finds whole ones only; short ones wait for others, a second at
most while others come.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct

import numpy as np

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


def begin_event_file(directory: str, prefix: str, suffix: str, seconds: int) -> int:
    """Make an empty event file that no other process has; the time in its name: `seconds`, or later.

    Processes may begin in one folder in the same second; of a run that recorded nothing but its lineage that
    file is left, which is read-only.  A folder that cannot be written to is told with the first record.
    """
    while True:
        path = os.path.join(directory, event_file_name(prefix, suffix, seconds))
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            seconds += 1
            continue
        except OSError:
            return seconds
        if not os.path.exists(os.path.join(directory, event_file_name(prefix, "_lineage", seconds))):
            return seconds
        os.unlink(path)
        seconds += 1


class EventFile:
    """A file of records, made with its first one and closed read-only, as MindSpore does.

    `limit`: bytes; records beyond are dropped, with a warning, and the file ends; `raise_errors`: whether an
    error of the disk is raised; else it is logged. The file ends there, behind its last whole record.
    """

    def __init__(self, path: str, limit: int | None, raise_errors: bool, first: bytes = b""):
        self.path, self._limit, self._raise = path, limit, raise_errors
        self._process = os.getpid()
        self._file = _data.EventFile(path, -1 if limit is None else limit, first)

    def write(self, message: bytes) -> None:
        """Append a record."""
        try:
            taken = self._file.write(message)
        except OSError as error:
            self._failed(error)
        else:
            if taken is False:
                self._full()

    def write_values(self, step: int, items: list[tuple[str, str, float | np.ndarray]]) -> None:
        """Append an event of now with values, (tag, plugin, content), as `values.encoded` takes them.

        Errors: ValueError for images that have neither 1 nor 3 channels.
        """
        try:
            taken = self._file.write_values(step, items)
        except OSError as error:
            self._failed(error)
        else:
            if taken is False:
                self._full()

    def flush(self) -> None:
        """Hand all records to the system."""
        try:
            self._file.flush()
        except OSError as error:
            self._failed(error)

    def close(self) -> None:
        """Close the file and leave it read-only; one without a record goes. Nothing in the child of a fork:
        what the file lacks may wait in the parent.
        """
        if os.getpid() != self._process:
            return
        try:
            self._file.close()
        except OSError as error:
            self._failed(error)
        with contextlib.suppress(OSError):
            if not os.path.getsize(self.path):
                os.unlink(self.path)

    def _full(self) -> None:
        log.logger(__name__).warning("%s is full: max_file_size is %d", self.path, self._limit)

    def _failed(self, error: OSError) -> None:
        if self._raise:
            raise error
        log.logger(__name__).error("cannot write %s: %s", self.path, error.strerror)
